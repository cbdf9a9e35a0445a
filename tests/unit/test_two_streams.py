"""Queries over two streams: the joint stream that they make, what they tell, and what does not go together."""

from pathlib import Path

import pyarrow.compute as pc
import pytest
from typer.testing import CliRunner

from fairway import connect
from st_common import tables
from st_common.answers.answers import answer
from st_common.answers.changes import stream_changes
from st_common.answers.stream_state import state_of
from st_common.checks.verify import verify
from st_common.cli import app
from st_common.config.home import Home
from st_common.delivery.feeders import feed, feeders_of
from st_common.delivery.joint_feed import JointFeed, note_of
from st_common.delivery.settings import wanted
from st_common.engine.run import run
from st_common.log.control import write_clock, write_end
from st_common.log.log import Log
from st_common.log.reader import pieces
from st_common.maintenance.readers import readers_of_log
from st_common.operations.awaited import awaited_us
from st_common.query.area_store import HomeAreas
from st_common.query.created_streams import known_streams
from st_common.query.leases import leased
from st_common.query.lookup import queries
from st_common.query.problem import TextError
from st_common.query.registry import carry_out, drop
from st_common.query.text import parse, to_text
from tests.kit.log_writer import bare_log

JOINT = "cars-and-police"
_STREAM = """
[streams.%s]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y", gone = "gone" }
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
running = true
"""
CARS = 'attributes = { speed = "double", state = "string" }\n'
POLICE = 'attributes = { rank = "string" }\n'
NEAR = "SELECT * FROM cars c JOIN police p ON ST_DWithin(c, p, 10 m)"


def home_of(folder: Path, *, cars: str = CARS, police: str = POLICE) -> Home:
    (folder / "conf").mkdir(parents=True)
    conf = _STREAM % "cars" + cars + _STREAM % "police" + police + _STREAM % "taxis"
    (folder / "conf" / "streams.toml").write_text(conf)
    return Home(folder)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return home_of(tmp_path)


def says(home: Home, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, words, env={"FAIRWAY_HOME": str(home.root)})
    return done.exit_code, done.output + (done.stderr or "")


def streams(home: Home):
    return known_streams(home, home.root / "conf")


def carried_out(home: Home, text: str):
    known = streams(home)
    statements = parse(text, areas=HomeAreas(home, lambda: known))
    return carry_out(home, known, statements, owner="me")


def plan_of(home: Home, select: str):
    known = streams(home)
    text = f"REGISTER QUERY q AS {select}"
    (statement,) = parse(text, areas=HomeAreas(home, lambda: known))
    return statement.plan


def came(home: Home, stream: str, *rows: str, end: bool = False) -> None:
    header = {"cars": "id,t,x,y,gone,speed,state", "police": "id,t,x,y,gone,rank"}
    log = bare_log(home.log(stream))
    text = "\n".join([header[stream], *rows]) + "\n"
    log.append(text.encode(), arrival_us=1)
    if end:
        write_end(log, arrival_us=1)


def joined(home: Home) -> JointFeed:
    known = streams(home)
    done = JointFeed(home, known[JOINT], known)
    done.run()
    return done


def told(home: Home, query: str) -> list[tuple]:
    run(home, streams(home)[JOINT], until_idle=True)
    rows = stream_changes(home, JOINT, query).to_pylist()
    return [
        (row["object"], row["partner"], row["sign"], row["event_ts"].timestamp())
        for row in rows
    ]


def fixes(home: Home) -> list[tuple[str, int]]:
    """What the joint log has, in its order."""
    log, stream = Log(home.log(JOINT)), streams(home)[JOINT]
    parts = [one.part for one in pieces(log, log.segments(0), stream) if one.part]
    return [
        (name, ts // 1_000_000)
        for part in parts
        for name, ts in zip(
            part.decoded.fixes["object"].to_pylist(),
            part.decoded.fixes["event_ts"].to_pylist(),
            strict=True,
        )
    ]


@pytest.mark.spec("G4", "B9")
def test_objects_of_two_streams_that_are_called_alike_are_two(home: Home):
    carried_out(home, f"REGISTER QUERY near AS {NEAR}")
    came(home, "cars", "7,1,0,0,,3,free", "8,2,5,5,,,", "7,4,100,0,,,", end=True)
    came(home, "police", "7,1,1,1,,a", "7,5,100,1,,b", end=True)
    joined(home)
    assert told(home, "near") == [
        ("cars/7", "police/7", 1, 1.0),
        ("cars/8", "police/7", 1, 2.0),
        ("cars/7", "police/7", -1, 4.0),
        ("cars/7", "police/7", 1, 5.0),
        ("cars/8", "police/7", -1, 5.0),
    ]
    assert [one.holds for one in verify(home, streams(home)[JOINT])] == [True]


@pytest.mark.spec("G4", "G5")
def test_a_region_and_neighbours_go_with_an_object_of_another_stream(home: Home):
    text = """
    REGISTER QUERY around AS SELECT * FROM cars INSIDE ('M', 'police.7', 20, 20);
    REGISTER QUERY nearest AS SELECT object, distance() AS m FROM cars KNN ('M', 1, 'police.7');
    REGISTER QUERY own AS SELECT * FROM cars INSIDE ('M', '8', 20, 20) KNN ('M', 1, 'police.7')
    """
    carried_out(home, text)
    came(home, "cars", "7,1,0,0,,,", "8,2,2,2,,,", "9,3,500,0,,,", end=True)
    came(home, "police", "7,1,1,0,,", "7,4,501,0,,", "8,4,5,5,,", end=True)
    joined(home)
    assert told(home, "around") == [
        ("cars/7", None, 1, 1.0),
        ("cars/8", None, 1, 2.0),
        ("cars/7", None, -1, 4.0),
        ("cars/8", None, -1, 4.0),
        ("cars/9", None, 1, 4.0),
    ]
    assert answer(home, "nearest")["object"].to_pylist() == ["cars/9"]
    assert answer(home, "own")["object"].to_pylist() == ["cars/7"]


@pytest.mark.parametrize(
    "select",
    [
        NEAR,
        "SELECT p.object AS who, c.speed FROM cars c, police p WHERE ST_DWithin(c, p, 1 km)",
        "SELECT p.object, COUNT(*) AS n FROM cars c JOIN police p ON ST_DWithin(c, p, 1 km) GROUP BY p.object",
        "SELECT COUNT(object) FROM cars WHERE EXISTS (SELECT 1 FROM police p WHERE ST_DWithin(cars, p, 9 m))",
        "SELECT * FROM cars c WHERE NOT EXISTS (SELECT 1 FROM police p WHERE ST_DWithin(c, p, 9 m) AND p.rank = 'a')",
        "SELECT p.rank FROM cars c LEFT JOIN police p ON ST_DWithin(c, p, 9 m) AND NEAREST(c, p, 1) WHERE c.id = '7'",
        "SELECT * FROM (SELECT c.speed FROM cars c JOIN police p ON ST_DWithin(c, p, 9 m)) r WHERE r.speed > 5",
        "SELECT * FROM cars WHERE object <> '7' INSIDE ('M', 'police.7', 50 m)",
        "SELECT * FROM cars GROUP KNN (1, MAX, (1, 2), ('M', 'police.7'), ('M', '3'))",
        "SELECT * FROM cars REVERSE KNN ('M', 'police.7')",
    ],
)
def test_its_canonical_text_says_the_same_without_knowing_of_two(
    home: Home, select: str
):
    plan = plan_of(home, select)
    assert plan.stream == JOINT
    assert "stream_name" in to_text(plan, "q")
    (again,) = parse(to_text(plan, "q"))
    assert again.plan == plan


def test_the_plan_of_two_is_that_of_their_joint_stream(home: Home):
    (known,) = parse(
        f"""REGISTER QUERY q AS SELECT c.stream_object AS object, p.rank FROM "{JOINT}" c JOIN "{JOINT}" p
        ON ST_DWithin(c, p, 10 m) WHERE c.speed > 3 AND c.stream_name = 'cars' AND p.stream_name = 'police'"""
    )
    two = "SELECT object, p.rank FROM Cars c JOIN POLICE p ON ST_DWithin(c, p, 10 m) WHERE c.speed > 3"
    assert plan_of(home, two) == known.plan


def test_the_second_query_takes_the_joint_stream_that_there_is(home: Home):
    first = carried_out(home, f"REGISTER QUERY a AS {NEAR}")
    turned = NEAR.replace("cars c", "police c").replace("police p", "cars p")
    second = carried_out(home, f"REGISTER QUERY b AS {turned}")
    assert (first.streams_created, second.streams_created) == ((JOINT,), ())
    assert {row.stream for row in (*first.rows, *second.rows)} == {JOINT}


def test_it_begins_with_the_last_fix_of_each_object(home: Home):
    came(home, "cars", "7,1,0,0,,,", "7,3,2,0,,,", "7,3,9,0,,,", "8,2,5,5,,,")
    came(home, "police", "7,4,1,1,,")
    carried_out(home, f"REGISTER QUERY near AS {NEAR}")
    came(home, "cars", "7,2,0,0,,,", "8,6,50,5,,,", end=True)
    came(home, "police", "7,9,1,1,,", end=True)
    joined(home)
    assert fixes(home) == [
        ("cars/8", 2),
        ("cars/7", 3),
        ("cars/7", 2),
        ("police/7", 4),
        ("cars/8", 6),
        ("police/7", 9),
    ]
    # The one at x = 2 was first of its time; the one of second 2 came late.
    assert told(home, "near")[:2] == [
        ("cars/7", "police/7", 1, 4.0),
        ("cars/8", "police/7", 1, 4.0),
    ]


def test_from_beginning_it_begins_with_all_that_the_logs_hold(home: Home):
    came(home, "cars", "7,1,0,0,,,", "7,3,2,0,,,", end=True)
    came(home, "police", "7,1,1,1,,", end=True)
    with connect(home.root) as client:
        client.register(f"REGISTER QUERY near AS {NEAR} FROM BEGINNING")
    joined(home)
    assert fixes(home) == [("cars/7", 1), ("police/7", 1), ("cars/7", 3)]


def test_the_stream_that_is_behind_holds_the_other_one_back_and_is_named(home: Home):
    carried_out(home, f"REGISTER QUERY near AS {NEAR}")
    came(home, "cars", "7,1,0,0,,,", "7,9,0,0,,,")
    came(home, "police", "7,4,0,0,,")
    done = joined(home)
    assert fixes(home) == [("cars/7", 1), ("police/7", 4)]
    assert done.waits_for == "police"
    assert state_of(home, JOINT).waits_for == "police"
    assert awaited_us(home.stream("police"), 4_000_000) == 9_000_001
    write_clock(bare_log(home.log("police")), 10_000_000, arrival_us=1)
    assert joined(home).waits_for == ""
    assert fixes(home)[-1] == ("cars/7", 9)


def test_a_late_fix_is_late_as_in_its_own_stream(tmp_path: Path):
    home = home_of(tmp_path, cars=CARS + "lateness_s = 5\n")
    carried_out(home, f"REGISTER QUERY near AS {NEAR}")
    came(home, "police", "7,1,0,0,,", "7,2,0,0,,", "8,1,0,0,,", end=True)
    came(home, "cars", "7,10,1,0,,,", "8,5,1,0,,,", "9,4,1,0,,,", end=True)
    done = joined(home)
    assert done.late == 1
    assert fixes(home) == [
        ("police/7", 1),
        ("police/7", 2),
        ("police/8", 1),
        ("cars/8", 5),
        ("cars/7", 10),
    ]


def test_two_writers_write_each_fix_once(home: Home):
    carried_out(home, f"REGISTER QUERY near AS {NEAR}")
    known = streams(home)
    writers = [JointFeed(home, known[JOINT], known) for _ in range(2)]
    for second in range(1, 12):
        came(home, "cars", f"7,{second},0,0,,,")
        came(home, "police", f"7,{second},0,0,,")
        writers[second % 2].poll()
    for one in (*writers, *writers):
        one.run()
    assert sorted(fixes(home)) == sorted(set(fixes(home)))
    assert len(fixes(home)) == 21  # the last of the second stream may have equals


def test_what_the_joint_stream_has_not_read_is_not_purged(home: Home):
    carried_out(home, f"REGISTER QUERY near AS {NEAR}")
    came(home, "cars", "7,1,0,0,,,")
    assert dict(readers_of_log(home, "cars")) == {f"joint stream {JOINT}": 0}
    came(home, "police", "7,4,0,0,,")
    joined(home)
    after = dict(readers_of_log(home, "cars"))
    assert after == {f"joint stream {JOINT}": Log(home.log("cars")).end()}
    drop(home, "near")
    carried_out(home, f'DROP STREAM "{JOINT}"')
    assert not note_of(home, JOINT).exists()
    assert dict(readers_of_log(home, "cars")) == {}


def test_what_joins_two_streams_runs_when_both_do(home: Home):
    carried_out(home, f"REGISTER QUERY near AS {NEAR}")
    known = streams(home)
    assert wanted(home.root / "conf", known) == {f"feed-{JOINT}": True}
    came(home, "cars", "7,1,0,0,,,", end=True)
    came(home, "police", "7,1,0,0,,", end=True)
    (joint,) = feeders_of(known).values()
    assert feed(home, joint, known, until_idle=True).records == 2


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            f"{NEAR} INSIDE ('M', 'taxis.7', 20, 20)",
            "this one is over cars, police and taxis",
        ),
        (
            "SELECT * FROM cars c JOIN taxi p ON ST_DWithin(c, p, 10 m)",
            "unknown layer 'taxi'",
        ),
        (
            NEAR.replace("ST_DWithin(c, p, 10 m)", "ST_Intersects(c, p)"),
            "ST_Intersects needs a layer",
        ),
    ],
)
def test_what_cannot_be_asked_of_two_is_refused(
    home: Home, statement: str, message: str
):
    with pytest.raises(TextError, match=message):
        carried_out(home, f"REGISTER QUERY q AS {statement}")
    assert JOINT not in streams(home)


@pytest.mark.parametrize(
    ("police", "message"),
    [
        ("silence_s = 60\n", "differ in silence_s: off and 60.0"),
        ("tick_s = 5\n", "differ in tick_s: 1.0 and 5.0"),
        ("moving = false\n", "'police' has moving = false"),
        (
            'attributes = { speed = "long" }\n',
            "attribute 'speed' of stream 'police' is 'long'",
        ),
        ('attributes = { speed = "double km/h" }\n', "'double km/h'"),
        (
            'attributes = { stream_name = "string" }\n',
            "which cars-and-police says itself",
        ),
    ],
)
def test_settings_that_do_not_go_together_are_named(
    tmp_path: Path, police: str, message: str
):
    home = home_of(tmp_path, police=police)
    with pytest.raises(TextError, match=message):
        carried_out(home, f"REGISTER QUERY q AS {NEAR}")
    assert JOINT not in streams(home)


def test_two_that_were_never_joined_have_no_past(home: Home):
    with pytest.raises(TextError, match="have not been joined yet"):
        carried_out(home, NEAR)


def test_a_joined_stream_is_not_joined_again_and_what_it_joins_stays(home: Home):
    carried_out(home, f"REGISTER QUERY near AS {NEAR}")
    with pytest.raises(TextError, match="joins two streams already"):
        carried_out(
            home,
            f'REGISTER QUERY q AS SELECT * FROM taxis t JOIN "{JOINT}" j ON ST_DWithin(t, j, 5 m)',
        )
    with pytest.raises(TextError, match=f"query 'near' is about stream '{JOINT}'"):
        carried_out(home, f'DROP STREAM "{JOINT}"')


@pytest.mark.spec("G4", "P14")
def test_programs_register_queries_over_two_streams_also_for_as_long_as_they_ask(
    home: Home,
):
    with (
        connect(home.root) as client,
        client.register(f"REGISTER QUERY near AS {NEAR}", ephemeral=True),
    ):
        assert [row.stream for row in queries(home)] == [JOINT]
        assert [*leased(home)] == ["near"]
    assert JOINT in streams(home)


def test_a_named_area_goes_with_an_object_of_its_own_stream(home: Home):
    carried_out(home, "CREATE AREA near_me AS ('M', 'police.7', 5 m)")
    with pytest.raises(TextError, match=r"write \('M', 'police.7', ..\) itself"):
        carried_out(home, "REGISTER QUERY q AS SELECT * FROM cars INSIDE near_me")


def test_a_statement_of_a_shape_that_was_read_before_is_over_two_all_the_same(
    home: Home,
):
    texts = [
        f"REGISTER QUERY q{number} AS SELECT * FROM cars INSIDE ('M', '{focal}', 20, 20)"
        for number, focal in enumerate(["7", "8", "9", "police.7", "10"])
    ]
    rows = carried_out(home, ";".join(texts)).rows
    assert [row.stream for row in rows] == ["cars", "cars", "cars", JOINT, "cars"]
    assert rows[3].plan.focals == ("police/7",)


@pytest.mark.spec("G4")
def test_commands_register_join_run_and_say_who_is_waited_for(home: Home):
    asked = ("query", "register", "--text", f"REGISTER QUERY near AS {NEAR}")
    assert f"created stream {JOINT}" in says(home, *asked)[1]
    came(home, "cars", "7,1,0,0,,,", "7,9,0,0,,,")
    came(home, "police", "7,4,0,0,,")
    _, shown = says(home, "capture", JOINT)
    assert f"{JOINT}: 2 fixes of cars and police" in shown
    assert "later fixes wait for police" in shown
    assert f"{JOINT}: waits for police" in says(home, "status")[1]
    came(home, "police", "7,9,50,0,,", end=True)
    write_end(bare_log(home.log("cars")), arrival_us=1)
    assert f"{JOINT}: 4 fixes" in says(home, "run", JOINT, "--until-idle")[1]
    assert "cars/7  police/7  -1" in says(home, "changes", "near")[1]
    assert "waits for" not in says(home, "status")[1]
    code, shown = says(home, "verify")
    assert code == 0, shown


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('query = "near"', "joins beside query"),
        ('engine = "spark"', "joins with engine = 'spark'"),
        ('joins = ["cars", "cars"]', "two different streams"),
        ('joins = ["cars"]', "must be two streams"),
        ('joins = ["cars", "police@x"]', "'police@x' is no stream"),
    ],
)
def test_a_joint_stream_in_the_settings_is_checked(
    tmp_path: Path, more: str, message: str
):
    home = home_of(tmp_path)
    joins = "" if "joins" in more else 'joins = ["cars", "police"]\n'
    table = '[streams.both]\nformat = "parquet"\ncolumns = { object = "o", x = "x", y = "y" }\n'
    with (home.root / "conf" / "streams.toml").open("a") as file:
        file.write(table + joins + more + "\n")
    assert message in str(streams(home).broken["both"])


def test_one_that_was_dropped_goes_on_when_the_two_are_asked_about_again(home: Home):
    carried_out(home, f"REGISTER QUERY near AS {NEAR}")
    came(home, "cars", "7,1,0,0,,,")
    came(home, "police", "7,1,1,0,,")
    joined(home)
    assert told(home, "near") == []
    drop(home, "near")
    carried_out(home, f'DROP STREAM "{JOINT}"')
    came(home, "cars", "7,3,0,0,,,", "7,5,0,0,,,")
    carried_out(home, f"REGISTER QUERY again AS {NEAR}")
    came(home, "police", "7,7,50,0,,", end=True)
    came(home, "cars", "8,8,50,0,,,", end=True)
    joined(home)
    assert fixes(home) == [
        ("cars/7", 1),
        ("police/7", 1),
        ("cars/7", 5),
        ("police/7", 7),
        ("cars/8", 8),
    ]
    assert [row[:3] for row in told(home, "again")] == [
        ("cars/7", "police/7", 1),
        ("cars/7", "police/7", -1),
        ("cars/8", "police/7", 1),
    ]


@pytest.mark.spec("G4", "S6")
def test_days_of_a_joint_stream_are_processed_again_and_tried_with_other_questions(
    home: Home,
):
    """The visits of a day are those that its changes tell; another distance is tried on it as on any stream."""
    assert (
        says(home, "query", "register", "--text", f"REGISTER QUERY near AS {NEAR}")[0]
        == 0
    )
    noon, day = 1_714_564_800, 86_400  # of 2024-05-01
    places = [(hour * 3600, 8 * (hour % 3)) for hour in range(-8, 8)]
    for stream, rest in (("cars", ",,,"), ("police", ",,")):
        rows = [
            f"{stream[0]},{noon + start + after},{x * (stream == 'cars')},0{rest}"
            for start in (0, day)
            for after, x in places
        ]
        came(home, stream, *rows, end=True)
    for stream in ("cars", "police", JOINT):
        code, told = says(home, "run", stream, "--until-idle")
        assert code == 0, told
    changes = stream_changes(home, JOINT, "near")
    entered = changes.filter(pc.greater(changes["sign"], 0))["event_ts"].to_pylist()
    assert len(entered) > 9
    interval = ("--from", "2024-05-01", "--to", "2024-05-03")
    code, told = says(home, "reprocess", JOINT, *interval)
    assert code == 0, told
    visits = tables.read(home.table("visits", JOINT))
    begun = visits.filter(pc.not_equal(visits["cause_in"], "day"))  # none at midnight
    assert sorted(begun["from_ts"].to_pylist()) == entered
    questions = home.root / "wider.sql"
    questions.write_text("REGISTER QUERY near AS " + NEAR.replace("10 m", "20 m") + ";")
    code, told = says(
        home, "backtest", str(questions), "--stream", JOINT, "--days", "1"
    )
    assert (code, "near" in told) == (0, True), told
