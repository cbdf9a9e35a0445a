"""The registry of queries: names, versions, all or none, over one stream's log or several."""

import json
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from st_common import tables
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.contracts import load_contract, require_match
from st_common.errors import LogError, QueryError
from st_common.layers.announce import announce
from st_common.log.log import Log
from st_common.position import row_of, segment_of
from st_common.query import commit, row_writing
from st_common.query.control import payloads
from st_common.query.derived import roll_forward
from st_common.query.lookup import find, history, queries
from st_common.query.problem import TextError
from st_common.query.registry import check, drop, register
from st_common.query.text import parse
from tests.kit.log_writer import bare_log

INSIDE = "INSIDE (0, 0, 1, 1)"


def stream(name: str, crs: str = "EPSG:4326") -> StreamSettings:
    return StreamSettings(
        name=name, format="csv", columns=Columns(object="id", x="x", y="y"), crs=crs
    )


STREAMS = {name: stream(name) for name in ("taxis", "ships")} | {
    "plane": stream("plane", "planar")
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def do(
    home: Home, text: str, *, owner: str = "ada", now_us: int = 1_000
) -> list[tuple[str, str, int, str]]:
    rows = register(home, STREAMS, parse(text), owner=owner, now_us=now_us)
    return [(row.op, row.name, row.version, row.stream) for row in rows]


def live(home: Home) -> dict[str, int]:
    return {row.name: row.version for row in queries(home)}


def log_rows(home: Home, name: str) -> list[list[dict]]:
    log = bare_log(home.log(name))
    return [
        [json.loads(line) for line in log.read(segment).splitlines()]
        for segment in log.control_segments(0)
    ]


def add_layer(home: Home, name: str, version: int = 1) -> None:
    for _ in range(version + 1):  # version 0 is the table without rows
        write_deltalake(
            home.table("layers", name), pa.table({"fid": ["w1"]}), mode="overwrite"
        )


@pytest.mark.spec("P4")
def test_a_registration_is_one_control_segment_that_says_everything(home: Home):
    text = f"REGISTER QUERY a AS SELECT * FROM taxis {INSIDE}; REGISTER QUERY b AS SELECT * FROM taxis EMIT EVERY"
    assert do(home, text) == [
        ("register", "a", 1, "taxis"),
        ("register", "b", 1, "taxis"),
    ]
    ((first, second),) = log_rows(home, "taxis")
    assert first == {
        "op": "register",
        "query": "a",
        "version": 1,
        "plan": {
            "v": 3,
            "stream": "taxis",
            "inside": {"kind": "box", "minx": 0, "miny": 0, "maxx": 1, "maxy": 1},
        },
        "text": f"REGISTER QUERY a AS SELECT * FROM taxis {INSIDE}",
        "owner": "ada",
    }
    assert (second["query"], second["plan"]["emit"]) == ("b", "every")


def test_a_row_knows_its_place_in_the_log(home: Home):
    bare_log(home.log("taxis")).append(b"id,x,y\n", arrival_us=1)
    rows = register(
        home,
        STREAMS,
        parse("REGISTER QUERY a AS SELECT * FROM taxis; DROP QUERY a"),
        owner="ada",
        now_us=7,
    )
    assert [
        (segment_of(row.position), row_of(row.position), row.arrival_us) for row in rows
    ] == [(1, 0, 7), (1, 1, 7)]
    assert history(home) == rows


def test_versions_count_on_over_replace_and_drop(home: Home):
    register_a = f"REGISTER QUERY a AS SELECT * FROM taxis {INSIDE}"
    do(home, register_a)
    assert do(home, "REPLACE QUERY a AS SELECT * FROM taxis INSIDE (5, 5, 6, 6)") == [
        ("replace", "a", 2, "taxis")
    ]
    assert do(home, "DROP QUERY a") == [("drop", "a", 2, "taxis")]
    assert live(home) == {}
    assert do(home, register_a) == [("register", "a", 3, "taxis")]
    assert live(home) == {"a": 3}
    assert [(row.op, row.version) for row in history(home, "a")] == [
        ("register", 1),
        ("replace", 2),
        ("drop", 2),
        ("register", 3),
    ]


def test_a_dropped_name_may_move_to_another_stream(home: Home):
    do(home, "REGISTER QUERY a AS SELECT * FROM taxis")
    do(home, "DROP QUERY a; REGISTER QUERY a AS SELECT * FROM ships")
    (row,) = queries(home)
    assert (row.stream, row.version) == ("ships", 2)
    assert [one["op"] for one in log_rows(home, "taxis")[-1]] == ["drop"]


def test_queries_of_one_stream(home: Home):
    do(
        home,
        "REGISTER QUERY b AS SELECT * FROM taxis; REGISTER QUERY a AS SELECT * FROM ships",
    )
    assert [row.name for row in queries(home)] == ["a", "b"]
    assert [row.name for row in queries(home, ["taxis"])] == ["b"]


def test_the_layer_of_a_join_is_pinned_to_its_version(home: Home):
    add_layer(home, "parks", version=2)
    do(
        home,
        "REGISTER QUERY a AS SELECT * FROM taxis JOIN parks ON ST_Intersects(taxis, parks)",
    )
    ((row,),) = log_rows(home, "taxis")
    assert row["layer_version"] == 2
    assert queries(home)[0].layer_version == 2


def test_a_layer_that_is_loaded_meanwhile_is_announced_behind_the_query(
    home: Home, monkeypatch: pytest.MonkeyPatch
):
    add_layer(home, "parks", version=2)
    real, loads = row_writing.layers, []

    def layers(home: Home) -> dict[str, int]:
        versions = real(home)
        add_layer(home, "parks", version=0)
        loads.append(pool.submit(announce, home, layer="parks", stream="taxis"))
        wait(
            loads[-1:], timeout=0.3
        )  # long enough to be written before, were the log not locked
        return versions

    with ThreadPoolExecutor() as pool, monkeypatch.context() as racing:
        racing.setattr(row_writing, "layers", layers)
        do(
            home,
            "REGISTER QUERY a AS SELECT * FROM taxis JOIN parks ON ST_Intersects(taxis, parks)",
        )
    last = log_rows(home, "taxis")[-1][-1]
    assert (last["op"], last["version"]) == (
        "layer",
        DeltaTable(home.table("layers", "parks")).version(),
    )
    assert all(load.done() for load in loads)


@pytest.mark.spec("P4")
@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        (
            "REGISTER QUERY old AS SELECT * FROM taxis",
            "old",
            "registered already (REPLACE QUERY old",
        ),
        (
            "REGISTER QUERY n AS SELECT * FROM taxis;\nREGISTER QUERY n AS SELECT * FROM ships",
            "n AS",
            "in line 1",
        ),
        (
            "REGISTER QUERY n AS\nSELECT * FROM taxi",
            "taxi",
            "unknown stream 'taxi' (did you mean taxis?)",
        ),
        (
            "REGISTER QUERY n AS SELECT * FROM buses",
            "buses",
            "known streams: taxis, ships, plane",
        ),
        (
            "REGISTER QUERY n AS SELECT * FROM taxis JOIN park p ON ST_Intersects(taxis, p)",
            "park p",
            "did you mean parks?",
        ),
        (
            "REGISTER QUERY n AS SELECT * FROM taxis JOIN x ON ST_Intersects(taxis, x)",
            "x ON",
            "fairway layer load",
        ),
        (
            "REPLACE QUERY olf AS SELECT * FROM taxis",
            "olf",
            "unknown query 'olf' (did you mean old?)",
        ),
        (
            "REPLACE QUERY old AS SELECT * FROM ships",
            "ships",
            "on stream 'taxis' (drop it",
        ),
        ("DROP QUERY new", "new", "unknown query 'new'"),
        ("DROP QUERY old; DROP QUERY old", "old", "was dropped"),
        (
            "REGISTER QUERY n AS SELECT * FROM taxis INSIDE (60, 124, 61, 125)",
            "INSIDE",
            "longitude first",
        ),
        (
            "REGISTER QUERY n AS SELECT sped FROM taxis WHERE speed_mps > 3",
            "sped FROM",
            "unknown column 'sped'",
        ),
        (
            "REGISTER QUERY n AS\nSELECT * FROM taxis WHERE\nspeed_mph > 3",
            "speed_mph",
            "did you mean speed_mps?",
        ),
        ("EXPLAIN OLE", "OLE", "unknown query 'OLE' (did you mean old?)"),
    ],
)
def test_one_wrong_statement_registers_nothing_and_is_pointed_at(
    home: Home, text: str, at: str, says: str
):
    add_layer(home, "parks")
    do(home, "REGISTER QUERY old AS SELECT * FROM taxis")
    before = log_rows(home, "taxis")
    good = "REGISTER QUERY good AS SELECT * FROM ships;\n"
    statements = parse(good + text, file="q.sql")
    for attempt in (
        lambda: register(home, STREAMS, statements, owner="ada"),
        lambda: check(home, STREAMS, statements),
    ):
        with pytest.raises(TextError) as caught:
            attempt()
        assert says.replace("in line 1", "in line 2") in str(caught.value)
        whole = good + text
        start = whole.rindex(at)
        line = whole[:start].count("\n") + 1
        assert str(caught.value).startswith(
            f"q.sql:{line}:{start - whole.rfind(chr(10), 0, start)}: "
        )
    assert log_rows(home, "taxis") == before
    assert not home.log("ships").exists()
    assert live(home) == {"old": 1}


def test_a_box_off_the_earth_is_fine_on_a_plane(home: Home):
    do(home, "REGISTER QUERY a AS SELECT * FROM plane INSIDE (500, 500, 600, 600)")
    assert live(home) == {"a": 1}


def test_all_wrong_statements_are_named_at_once(home: Home):
    text = "DROP QUERY x; REGISTER QUERY a AS SELECT * FROM taxi; REGISTER QUERY b AS SELECT * FROM taxis; DROP QUERY y"
    with pytest.raises(TextError) as caught:
        do(home, text)
    assert len(caught.value.problems) == 3


@pytest.mark.spec("P4")
@pytest.mark.parametrize(
    ("region", "at", "says"),
    [
        (
            "'POLYGON((0 0, 1 1, 0 1, 1 0, 0 0))'",
            "'POLYGON",
            "the area is not valid: its border crosses itself",
        ),
        ("'POLYGON((0 0, 1 1)'", "'POLYGON", "this is no WKT"),
        ("(1, 2, 3)", "1, 2, 3)", "expected 4 numbers, not 3"),
        ("CIRCLE (1, 2, -3)", "-3", "a radius is 0 or more"),
        ("nowhere", "nowhere", "unknown area 'nowhere'"),
    ],
)
def test_a_bad_geometry_is_pointed_at_before_anything_is_done(
    home: Home, region: str, at: str, says: str
):
    text = f"REGISTER QUERY good AS SELECT * FROM ships;\nREGISTER QUERY n AS SELECT * FROM taxis INSIDE {region}"
    with pytest.raises(TextError) as caught:
        do(home, text)
    assert says in str(caught.value)
    assert len(caught.value.problems) == 1
    assert caught.value.line == 2
    assert caught.value.column == text.rindex(at) - text.index("\n")
    assert queries(home) == []


@pytest.mark.spec("P4")
def test_of_many_that_register_one_name_at_once_one_gets_it(home: Home):
    def attempt(number: int) -> bool:
        try:
            do(
                home,
                f"REGISTER QUERY own{number} AS SELECT * FROM taxis; REGISTER QUERY one AS SELECT * FROM ships",
            )
        except TextError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = [number for number, got in enumerate(pool.map(attempt, range(8))) if got]
    assert len(won) == 1
    assert set(live(home)) == {"one", f"own{won[0]}"}


def test_dropping_by_name(home: Home):
    do(home, "REGISTER QUERY a AS SELECT * FROM taxis")
    assert drop(home, "a").version == 1
    assert live(home) == {}
    for name, says in (("a", "dropped already"), ("aa", "did you mean a?")):
        with pytest.raises(QueryError, match=says):
            drop(home, name)
    assert find(home, "a").op == "drop"


def test_no_statement_writes_nothing(home: Home):
    assert do(home, "-- nothing") == []
    assert queries(home) == []
    assert not home.log("taxis").exists()


def fail_at(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Makes the append with this number die, as a killed process does."""
    calls = 0
    real = Log.append

    def append(self: Log, payload: bytes, **options: object) -> object:
        nonlocal calls
        calls += 1
        if calls == number:
            raise KeyboardInterrupt
        return real(self, payload, **options)

    monkeypatch.setattr(Log, "append", append)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_writer_that_dies_between_streams_leaves_all_or_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch, number: int
):
    text = "; ".join(
        f"REGISTER QUERY {name} AS SELECT * FROM {name}"
        for name in ("plane", "ships", "taxis")
    )
    with monkeypatch.context() as dying:
        fail_at(dying, number)
        with pytest.raises(KeyboardInterrupt):
            do(home, text)
    bare_log(home.log("ships")).append(
        b"id,x,y\n", arrival_us=5
    )  # capture goes on meanwhile
    assert live(home) == {"plane": 1, "ships": 1, "taxis": 1}
    assert live(home) == {"plane": 1, "ships": 1, "taxis": 1}
    assert [len(log_rows(home, name)) for name in ("plane", "ships", "taxis")] == [
        1,
        1,
        1,
    ]
    do(home, "DROP QUERY ships")
    assert live(home) == {"plane": 1, "taxis": 1}


def test_a_writer_that_dies_before_anything_leaves_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as dying:
        fail_at(dying, 1)
        with pytest.raises(KeyboardInterrupt):
            do(home, "REGISTER QUERY a AS SELECT * FROM taxis")
    assert live(home) == {}


def test_what_does_not_fit_into_one_segment_is_all_or_nothing_too(
    home: Home, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("st_common.query.control.SEGMENT_LIMIT", 1000)
    text = "; ".join(
        f"REGISTER QUERY q{number} AS SELECT * FROM taxis" for number in range(20)
    )
    with monkeypatch.context() as dying:
        fail_at(dying, 3)
        with pytest.raises(KeyboardInterrupt):
            do(home, text)
    assert len(queries(home)) == 20
    segments = log_rows(home, "taxis")
    assert len(segments) > 2
    assert [row["query"] for segment in segments for row in segment] == [
        f"q{number}" for number in range(20)
    ]


@given(sizes=st.lists(st.integers(1, 30)), limit=st.integers(31, 64))
def test_payloads_keep_the_lines_and_stay_below_the_limit(sizes: list[int], limit: int):
    lines = [b"x" * (size - 1) + b"\n" for size in sizes]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("st_common.query.control.SEGMENT_LIMIT", limit)
        parts = payloads(lines)
    assert b"".join(parts) == b"".join(lines)
    assert all(0 < len(part) < limit for part in parts)


def test_a_broken_control_row_is_named(home: Home):
    bare_log(home.log("taxis")).append(
        b'{"op":"clock","ts":1}\n{"op":"drop","query":"a"}\n',
        arrival_us=1,
        control=True,
    )
    with pytest.raises(
        LogError, match="segment 0 of stream taxis: row 2 is no control row"
    ):
        queries(home)


def test_names_of_queries_streams_and_layers_are_found_in_any_case(home: Home):
    add_layer_with_tags(home, "parks")
    do(
        home,
        "REGISTER QUERY Centre AS SELECT * FROM TAXIS T JOIN Parks P ON ST_Intersects(T, P)",
    )
    (row,) = queries(home)
    assert (row.name, row.stream, row.plan.join.layer, row.layer_version) == (
        "Centre",
        "taxis",
        "parks",
        1,
    )
    for text, says in (
        (
            "REGISTER QUERY centre AS SELECT * FROM ships",
            "query 'Centre' is registered already",
        ),
        (
            "REGISTER QUERY n AS SELECT * FROM ships; REGISTER QUERY N AS SELECT * FROM ships",
            "'n' is registered",
        ),
        (
            "REPLACE QUERY CENTRE AS SELECT * FROM ships",
            "query 'Centre' is on stream 'taxis'",
        ),
    ):
        with pytest.raises(TextError, match=says):
            do(home, text)
    assert do(home, "REPLACE QUERY CENTRE AS SELECT * FROM Taxis") == [
        ("replace", "Centre", 2, "taxis")
    ]
    assert find(home, "centRE").name == "Centre"
    assert do(home, "DROP QUERY centre") == [("drop", "Centre", 2, "taxis")]
    assert do(home, "REGISTER QUERY CENTRE AS SELECT * FROM ships") == [
        ("register", "Centre", 3, "ships")
    ]
    assert drop(home, "CENTRE").version == 3


def test_a_key_of_the_papers_is_the_features_id_in_the_plan(home: Home):
    add_layer_with_tags(home, "cars")
    do(
        home,
        "REGISTER QUERY a AS SELECT M.ObjectID FROM taxis M JOIN cars F ON M.ObjectID = F.ObjectID",
    )
    (row,) = queries(home)
    assert (row.plan.join.left, row.plan.join.right, row.plan.columns) == (
        "object",
        "fid",
        (("object", "object"),),
    )


def add_layer_with_tags(home: Home, name: str) -> None:
    contract = load_contract("layers")
    edges = dict.fromkeys(("minx", "miny", "maxx", "maxy"), 0.0)
    row = {
        **edges,
        "region_id": "0",
        "home": True,
        "fid": "w1",
        "kind": "car",
        "tags": [("name", "A")],
        "geometry": b"",
    }
    tables.replace(
        home.table("layers", name),
        pa.Table.from_pylist([row], contract.arrow_schema()),
        contract,
    )


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(("register", "replace", "drop")), st.sampled_from("ab")
        ),
        max_size=12,
    )
)
def test_the_registry_is_the_fold_of_its_rows(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str]]
):
    home = Home(tmp_path_factory.mktemp("home"))
    alive: set[str] = set()
    versions: dict[str, int] = {}
    for op, name in steps:
        text = (
            f"DROP QUERY {name}"
            if op == "drop"
            else f"{op} QUERY {name} AS SELECT * FROM taxis"
        )
        if (op == "register") == (name in alive):
            with pytest.raises(TextError):
                do(home, text)
            continue
        do(home, text)
        versions[name] = versions.get(name, 0) + (op != "drop")
        alive = alive - {name} if op == "drop" else alive | {name}
    assert live(home) == {name: versions[name] for name in alive}


def table_rows(home: Home) -> list[dict]:
    return (
        DeltaTable(home.table("queries"))
        .to_pyarrow_table()
        .sort_by([("stream", "ascending"), ("position", "ascending")])
        .to_pylist()
    )


def test_the_table_follows_the_logs_each_row_once(home: Home):
    do(
        home,
        "REGISTER QUERY a AS SELECT * FROM taxis; REGISTER QUERY b AS SELECT * FROM ships",
    )
    assert roll_forward(home) == 2
    assert roll_forward(home) == 0
    Log(home.log("taxis")).append(
        b'{"op":"clock","ts":1}\n', arrival_us=1, control=True
    )
    do(home, "DROP QUERY a; REPLACE QUERY b AS SELECT * FROM ships EMIT EVERY")
    assert roll_forward(home) == 2
    assert [
        (row["stream"], row["op"], row["name"], row["version"])
        for row in table_rows(home)
    ] == [
        ("ships", "register", "b", 1),
        ("ships", "replace", "b", 2),
        ("taxis", "register", "a", 1),
        ("taxis", "drop", "a", 1),
    ]
    places = [row["position"] for row in table_rows(home) if row["name"] == "a"]
    assert places == [row.position for row in history(home, "a")]
    require_match(load_contract("queries"), home.table("queries"))


def test_the_table_can_be_made_again(home: Home):
    do(
        home,
        "REGISTER QUERY a AS SELECT * FROM taxis; REGISTER QUERY b AS SELECT * FROM ships; DROP QUERY a",
    )
    roll_forward(home)
    before = table_rows(home)
    for path in sorted(home.table("queries").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    roll_forward(home)
    assert table_rows(home) == before


def test_an_intent_survives_only_until_it_is_done(home: Home):
    do(
        home,
        "REGISTER QUERY a AS SELECT * FROM taxis; REGISTER QUERY b AS SELECT * FROM ships",
    )
    assert not commit.unfinished(home)
