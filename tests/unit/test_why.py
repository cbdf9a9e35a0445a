"""`fairway why`: the change, and everything that is said to be behind it, is what the log and the tables have."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

from st_common import tables
from st_common.answers.batch import batch_of
from st_common.checks.sentences import Others, sentence
from st_common.checks.why import fix_of, fixes_at, why
from st_common.cli import app
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.engine.archive import Archive
from st_common.engine.journal import Journal
from st_common.engine.local import LocalEngine
from st_common.errors import QueryError
from st_common.position import position_of
from st_common.query.registry import drop, register
from st_common.query.text import parse
from tests.kit.log_writer import bare_log

pytestmark = pytest.mark.spec("X5")

T0 = datetime(2024, 5, 1, 12, tzinfo=UTC)
CONF = """
[streams.taxis]
format = "csv"
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
silence_s = 60
columns = { object = "id", event_ts = "t", x = "x", y = "y", gone = "gone" }
attributes = { speed = "double" }
"""
LEFT = "REGISTER QUERY left_side AS SELECT * FROM taxis INSIDE (0, 0, 5, 10)"
FIXES = [
    [("taxi-1", 0, 9, 1, "", 3.5), ("taxi-2", 1, 1, 1, "", "")],
    [("taxi-1", 2, 4, 1, "", 7.5), ("taxi-2", 3, 9, 9, "", "")],
    [
        ("taxi-3", 4, 2, 2, "", ""),
        ("taxi-3", 5, "", "", "true", ""),
        ("taxi-2", 100, 8, 8, "", ""),
    ],
]


def commit(engine, archive):
    while engine.batch():
        pass
    engine.commit()
    while archive.batch():
        pass


@pytest.fixture
def home(tmp_path):
    """A home in which each segment of FIXES was a commit of its own."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(CONF)
    home, streams = Home(tmp_path), load_streams(tmp_path / "conf")
    register(home, streams, parse(LEFT), owner="ada")
    engine, archive = (
        LocalEngine(home, streams["taxis"]),
        Archive(home, streams["taxis"]),
    )
    for segment in FIXES:
        lines = [
            f"{i},{round(T0.timestamp()) + t},{x},{y},{gone},{v}"
            for i, t, x, y, gone, v in segment
        ]
        bare_log(home.log("taxis")).append(
            "\n".join(["id,t,x,y,gone,speed", *lines]).encode(), arrival_us=0
        )
        commit(engine, archive)
    engine.close()
    return home


def explained(home, name, **more):
    return why(
        home,
        "left_side",
        name,
        stream=load_streams(home.root / "conf")["taxis"],
        **more,
    )


def test_an_entry_is_explained_by_its_fix_its_query_and_its_commit(home):
    found = explained(home, "taxi-1", at=T0 + timedelta(seconds=50))
    assert (found.stream, found.change["sign"], found.change["cause"]) == (
        "taxis",
        1,
        "enter",
    )
    assert (found.change["position"], found.change["segment"], found.change["row"]) == (
        position_of(2, 0),
        2,
        0,
    )
    assert found.fix is not None
    assert (found.fix.segment, found.fix.row, found.fix.x, found.fix.y) == (
        2,
        0,
        4.0,
        1.0,
    )
    assert found.fix.event_ts == T0 + timedelta(seconds=2)
    assert found.fix.attributes == {"speed": 7.5}
    assert found.registered is not None
    assert (
        found.registered.text,
        found.registered.owner,
        found.registered.position,
    ) == (LEFT, "ada", 0)
    assert (found.tick, found.joined, found.focals) == (None, None, {})
    assert found.sentence == (
        "taxi-1 came into the answer: with its fix of 2024-05-01 12:00:02 UTC at (4, 1) it satisfies version 1 of "
        "left_side (inside the rectangle (0, 0) to (5, 10))."
    )


@pytest.mark.parametrize(
    ("name", "cause", "says"),
    [
        (
            "taxi-1",
            "expired",
            "said nothing for 60 s after its fix of 2024-05-01 12:00:02 UTC at (4, 1)",
        ),
        (
            "taxi-2",
            "leave",
            "with its fix of 2024-05-01 12:00:03 UTC at (9, 9) it satisfies version 1 of left_side no",
        ),
        ("taxi-3", "gone", "the feed said that taxi-3 is gone"),
    ],
)
def test_every_cause_has_its_words(home, name, cause, says):
    found = explained(home, name)
    assert found.change["cause"] == cause
    assert says in found.sentence


def test_the_batch_is_the_commit_of_the_table_that_has_the_row(home):
    path = home.table("changes", "taxis")
    rows = tables.read(path).to_pylist()
    assert (
        len(
            {
                batch_of(home, "taxis", row["position"], row["seq"]).version
                for row in rows
            }
        )
        == 3
    )
    for row in rows:
        batch = batch_of(home, "taxis", row["position"], row["seq"])
        own = {
            (r["position"], r["seq"])
            for r in tables.read(path, version=batch.version).to_pylist()
        }
        before = {
            (r["position"], r["seq"])
            for r in tables.read(path, version=batch.version - 1).to_pylist()
        }
        assert (row["position"], row["seq"]) in own - before
        assert batch.from_position <= row["position"] <= batch.through_position
        assert batch.committed_ts is not None


def test_when_the_log_of_the_table_is_cut_the_file_is_named(home):
    path = home.table("changes", "taxis")
    row = tables.read(path).sort_by("position").to_pylist()[0]
    from deltalake import DeltaTable

    DeltaTable(path).create_checkpoint()
    kept = sorted((path / "_delta_log").glob("*.json"))
    for each in kept[:-1]:
        each.unlink()
    batch = batch_of(home, "taxis", row["position"], row["seq"])
    assert (batch.version, batch.journal) == (None, False)
    assert batch.file is not None
    assert (path / batch.file).exists()
    assert batch.written_ts is not None
    assert abs(batch.written_ts.timestamp() - (path / batch.file).stat().st_mtime) < 5
    assert batch_of(home, "taxis", position_of(1, 1000), 0) != batch


def test_a_change_that_only_the_journal_has_says_so(home):
    row = tables.read(home.table("changes", "taxis")).slice(0, 1)
    journal = Journal(home, "taxis", epoch=1)
    ahead = row.set_column(
        row.column_names.index("position"), "position", [[position_of(4, 0)]]
    )
    journal.append(ahead, behind=-1)
    journal.close()
    found = explained(home, row["object"][0].as_py())
    assert found.change["position"] == position_of(4, 0)
    assert found.batch.journal
    assert found.batch.version is None


def test_a_dropped_query_still_explains(home):
    streams = load_streams(home.root / "conf")
    drop(home, "left_side")
    register(home, streams, parse(LEFT.replace("5, 10", "10, 10")), owner="bob")
    engine, archive = (
        LocalEngine(home, streams["taxis"]),
        Archive(home, streams["taxis"]),
    )
    commit(engine, archive)
    engine.close()
    found = explained(home, "taxi-2")
    assert found.registered is not None
    assert (
        found.change["cause"],
        found.registered.version,
        found.registered.owner,
    ) == ("registered", 2, "bob")
    assert found.sentence.startswith(
        "taxi-2 was there when version 2 of left_side was registered: its fix of"
    )
    earlier = explained(home, "taxi-2", at=T0 + timedelta(seconds=50))
    assert earlier.registered is not None
    assert (earlier.change["query_version"], earlier.registered.owner) == (1, "ada")


def test_a_change_of_an_older_version_names_its_own_text_and_plan(home, run):
    streams = load_streams(home.root / "conf")
    newer = LEFT.replace("REGISTER QUERY left_side", "REPLACE QUERY Left_Side").replace(
        "5, 10", "10, 10"
    )
    register(home, streams, parse(newer), owner="bob")
    engine, archive = (
        LocalEngine(home, streams["taxis"]),
        Archive(home, streams["taxis"]),
    )
    commit(engine, archive)
    engine.close()
    for at, version, text, corner in (
        ("2024-05-01T12:00:50", 1, LEFT, "(0, 0, 5, 10)"),
        ("2024-05-01T13:00:00", 2, newer, "(0, 0, 10, 10)"),
    ):
        found = json.loads(
            run("why", "LEFT_SIDE", "taxi-2", "--at", at, "--json").stdout
        )
        assert (
            found["change"]["query_version"]
            == found["registered"]["version"]
            == version
        )
        assert (found["registered"]["text"], found["newest"]) == (text, 2)
        assert found["registered"]["plan"]["inside"]["maxx"] == (
            5.0 if version == 1 else 10.0
        )
        words = " ".join(run("why", "left_side", "taxi-2", "--at", at).stdout.split())
        assert f"text {text}" in words
        assert (
            f"plan REGISTER QUERY left_side AS SELECT * FROM taxis INSIDE {corner}"
            in words
        )
        assert ("the newest is version 2" in words) == (version == 1)


@pytest.mark.parametrize(
    ("query", "name", "more", "says"),
    [
        ("left", "taxi-1", {}, "unknown query 'left'"),
        ("left_side", "taxi1", {}, "did you mean taxi-1"),
        ("left_side", "bus", {}, "objects: taxi-1, taxi-2, taxi-3"),
        (
            "left_side",
            "taxi-3",
            {"at": T0},
            "'taxi-3' was never in the answer of 'left_side' up to 2024-05-01T12:00:00",
        ),
        ("left_side", "taxi-1", {"partner": "park"}, "it joins nothing"),
    ],
)
def test_what_never_was_is_an_error_with_a_hint(home, query, name, more, says):
    with pytest.raises(QueryError) as error:
        why(home, query, name, **more)
    assert says in str(error.value)


def test_the_last_fix_before_a_tick_is_that_of_brute_force(home):
    stream = load_streams(home.root / "conf")["taxis"]
    rows = tables.read(home.table("positions", "taxis")).to_pylist()
    rows = [row | {"position": position_of(row["segment"], row["row"])} for row in rows]
    names = ["taxi-1", "taxi-2", "taxi-3"]
    for tick in (T0 + timedelta(seconds=seconds) for seconds in (0, 1, 2, 3, 4, 5, 99)):
        past = min(row["position"] for row in rows if row["event_ts"] > tick)
        found = fixes_at(home, stream, names, past, tick)
        for name in names:
            own = [r for r in rows if r["object"] == name and r["event_ts"] <= tick]
            last = max(own, key=lambda r: r["event_ts"], default=None)
            one = found[name]
            assert (one and one.position) == (last and last["position"])
    assert fixes_at(home, None, names, past, tick) == dict.fromkeys(names)
    assert fix_of(home, "taxis", "taxi-9", T0) is None


def test_a_fix_that_came_when_its_object_was_silent_is_not_the_last_that_counted(home):
    start = round(T0.timestamp())
    rows = [
        ("bus", 110, 1),
        ("z", 200, 9),
        ("bus", 120, 5),
        ("z", 201, 9),
    ]  # silence is 60 s: at 120 it is too late
    lines = [f"{name},{start + t},{x},1,," for name, t, x in rows]
    bare_log(home.log("taxis")).append(
        "\n".join(["id,t,x,y,gone,speed", *lines]).encode(), arrival_us=0
    )
    stream = load_streams(home.root / "conf")["taxis"]
    engine = LocalEngine(home, stream)
    commit(engine, Archive(home, stream))
    engine.close()
    found = fixes_at(home, stream, ["bus"], position_of(9, 0), None)["bus"]
    assert found is not None
    assert found.x == 1


@pytest.fixture
def run(home, monkeypatch):
    monkeypatch.setenv("FAIRWAY_HOME", str(home.root))
    return lambda *args: CliRunner().invoke(app, list(args), prog_name="fairway")


def test_the_command_shows_people_all_of_it(run):
    found = run("why", "left_side", "taxi-1", "--at", "2024-05-01T12:00:50")
    assert found.exit_code == 0
    words = " ".join(found.stdout.split())
    for part in (
        "taxi-1 came into the answer",
        "change +1 enter at 2024-05-01 12:00:02 UTC",
        "segment 2, row 0",
        "batch version 2 of the table, committed at",
        "fix 2024-05-01 12:00:02 UTC (4, 1), speed 7.5",
        "query left_side, version 1, registered by ada at position 0",
        LEFT,
    ):
        assert part in words


def test_the_command_gives_programs_json(run):
    found = json.loads(run("why", "left_side", "taxi-3", "--json").stdout)
    assert found["change"]["cause"] == "gone"
    assert found["change"]["event_ts"] == "2024-05-01T12:00:05Z"
    assert found["fix"]["x"] is None
    assert found["fix"]["gone"] is True
    assert found["registered"]["text"] == LEFT
    assert found["batch"]["version"] == 3
    wrong = run("why", "left_side", "taxi3")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert (
        wrong.stderr
        == "error: 'taxi3' was never in the answer of 'left_side' (did you mean taxi-3?)\n"
    )


def test_who_leaves_the_nearest_is_told_who_came_in_its_place(home, run):
    streams = load_streams(home.root / "conf")
    two = "REGISTER QUERY two AS SELECT * FROM taxis KNN (2, 0, 0)"
    register(home, streams, parse(two), owner="ada")
    engine, archive = (
        LocalEngine(home, streams["taxis"]),
        Archive(home, streams["taxis"]),
    )
    for fixes in (
        "a,200,1,0,,\nb,200,2,0,,\nc,200,9,0,,",
        "c,205,0.5,0,,",
        "a,210,3,0,,",
        "c,220,,,true,",
    ):
        lines = [line.split(",") for line in fixes.split("\n")]
        text = "".join(
            ",".join([i, str(round(T0.timestamp()) + int(t)), *rest]) + "\n"
            for i, t, *rest in lines
        )
        bare_log(home.log("taxis")).append(
            b"id,t,x,y,gone,speed\n" + text.encode(), arrival_us=0
        )
        commit(engine, archive)
    engine.close()
    found = why(
        home, "two", "b", at=T0 + timedelta(seconds=208), stream=streams["taxis"]
    )
    assert found.change["cause"] == "leave"
    assert list(found.newcomers) == ["c"]
    assert found.sentence.endswith(
        "among the 2 nearest to (0, 0)); in its place came c at (0.5, 0)."
    )
    words = " ".join(run("why", "two", "a").stdout.split())
    assert "in its place came b at (2, 0)." in words
    assert "newcomer b 2024-05-01 12:03:20 UTC (2, 0)" in words
    assert list(json.loads(run("why", "two", "a", "--json").stdout)["newcomers"]) == [
        "b"
    ]
    assert why(home, "two", "c", stream=streams["taxis"]).newcomers == {}


@pytest.mark.parametrize(
    ("cause", "says"),
    [
        (
            "enter",
            "came into the answer of version 1 of way at the tick of 2024-05-01 12:00:05 UTC (in the last 5000 m of",
        ),
        (
            "aged",
            "left the answer of version 1 of way at the tick of 2024-05-01 12:00:05 UTC: it lies in the windows no",
        ),
        ("leave", "taxi-1 itself counts no more"),
        ("gone", "the feed said that taxi-1 is gone"),
        (
            "inside",
            "stayed in the answer of version 1 of way at the tick of 2024-05-01 12:00:05 UTC",
        ),
    ],
)
def test_of_windows_in_brackets_a_change_is_about_a_fix(cause, says):
    (statement,) = parse(
        "REGISTER QUERY way AS SELECT * FROM taxis [RANGE BY 5 km RATTR SPACE, SLIDE BY 1 km SATTR SPACE]"
    )
    change = {
        "object": "taxi-1",
        "partner": "2024-05-01T12:00:02.000000Z",
        "query": "way",
        "query_version": 1,
        "value": None,
        "sign": 1,
        "cause": cause,
        "event_ts": T0 + timedelta(seconds=5),
        "fix_ts": T0 + timedelta(seconds=2),
        "layer_version": None,
    }
    said = sentence(change, statement.plan, None, Others(focals={}, newcomers={}), None)
    assert said.startswith("A fix of taxi-1 (2024-05-01 12:00:02 UTC) ")
    assert says in said
