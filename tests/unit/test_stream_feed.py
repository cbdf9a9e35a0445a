"""A query's stream into another stream's log: each element once, whatever dies in between."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common.answers.answers import answer
from st_common.answers.changes import passed_changes
from st_common.cli import app
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import load_streams
from st_common.decode import decode
from st_common.delivery.feeding_query import feed_folder
from st_common.delivery.stream_feed import StreamFeed
from st_common.engine.local import LocalEngine
from st_common.engine.run import run
from st_common.errors import ConfigError, QueryError
from st_common.log.control import write_end
from st_common.log.log import Log
from st_common.query.plan import Aggregate, Box, Plan
from st_common.query.registry import drop
from tests.kit.log_writer import bare_log

CONF = """
[streams.cars]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
attributes = { kind = "string" }

[streams.arrivals]
format = "ndjson"
columns = { object = "object", event_ts = "event_ts", x = "x", y = "y" }
crs = "planar"
time_unit = "us"
max_ahead_s = "off"
attributes = { kind = "string", cause = "string" }
"""
ZONE = Box(minx=0, miny=0, maxx=10, maxy=10)
CAME = Plan(stream="cars", inside=ZONE, columns=(("kind", "kind"),), emit="istream")


@pytest.fixture
def home(tmp_path):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(CONF)
    return Home(tmp_path)


def streams(home):
    return load_streams(home.root / "conf")


def register(home, name, plan, stream="cars", version=1):
    row = {
        "op": "register",
        "query": name,
        "version": version,
        "plan": plan.to_json(),
        "text": "",
        "owner": "t",
    }
    Log(home.log(stream)).append(json.dumps(row).encode(), arrival_us=0, control=True)


def drive(home, *fixes):
    """Fixes (object, seconds, x, kind) and what they change, committed."""
    lines = "".join(
        f"{name},{second},{x},1,{kind}\n" for name, second, x, kind in fixes
    )
    bare_log(home.log("cars")).append(b"id,t,x,y,kind\n" + lines.encode(), arrival_us=0)
    engine = LocalEngine(home, streams(home)["cars"])
    while engine.batch():
        pass
    engine.close()


def fed(home):
    log = bare_log(home.log("arrivals"))
    return [
        json.loads(line)
        for one in log.segments(0)
        if not one.clock
        for line in log.read(one).splitlines()
    ]


def feed(home, query="came", **settings):
    target = streams(home)["arrivals"]
    new = {name: getattr(target, name) for name in target.__slots__} | settings
    return StreamFeed(home, query, StreamSettings(**new), clock=lambda: 7)


@pytest.mark.spec("W6")
def test_what_a_query_gives_is_a_stream_that_another_query_reads(home):
    register(home, "came", CAME)
    register(
        home,
        "crowd",
        Plan(stream="arrivals", inside=ZONE, emit="changes"),
        stream="arrivals",
    )
    drive(
        home,
        ("a", 1, 20, "bus"),
        ("a", 2, 5, "bus"),
        ("b", 2, 6, "car"),
        ("a", 3, 30, "bus"),
        ("a", 4, 7, "taxi"),
    )
    once = feed(home)
    once.run()
    assert once.records == 3
    entries = [
        (one["object"], one["event_ts"], one["x"], one["y"], one["kind"], one["sign"])
        for one in fed(home)[1:]
    ]
    assert entries == [
        ("a", 2_000_000, 5, 1, "bus", 1),
        ("b", 2_000_000, 6, 1, "car", 1),
        ("a", 4_000_000, 7, 1, "taxi", 1),
    ]
    segment = Log(home.log("arrivals")).segments(1)[0]
    decoded = decode(
        Log(home.log("arrivals")).read(segment), streams(home)["arrivals"], arrival_us=7
    )
    assert not len(decoded.rejects)
    assert decoded.fixes.select(["object", "x", "kind", "cause"]).to_pylist()[-1] == {
        "object": "a",
        "x": 7.0,
        "kind": "taxi",
        "cause": "enter",
    }
    engine = LocalEngine(home, streams(home)["arrivals"])
    while engine.batch():
        pass
    engine.close()
    assert passed_changes(home, "crowd")["object"].to_pylist() == ["a", "b"]


@pytest.mark.spec("W6")
def test_what_went_is_where_its_object_was_then_with_its_columns(home):
    row = Plan(stream="cars", inside=ZONE, emit="dstream", columns=(("kind", "kind"),))
    register(home, "went", row)
    lines = "a,1,5,1,bus\na,2,20,2,bus\nb,2,6,1,car\na,3,7,1,bus\na,4,30,4,bus\na,5,40,5,bus\n"
    log = bare_log(home.log("cars"))
    log.append(b"id,t,x,y,kind\n" + lines.encode(), arrival_us=0)
    log.append(
        json.dumps({"op": "drop", "query": "went"}).encode(), arrival_us=0, control=True
    )
    register(home, "went", row, version=2)
    engine = LocalEngine(home, streams(home)["cars"])
    while engine.batch():
        pass
    engine.close()
    feed(home, "WENT").run()
    went = [
        (one["object"], one["x"], one["y"], one["kind"], one["cause"], one["sign"])
        for one in fed(home)
    ]
    assert went == [
        ("a", 20, 2, "bus", "leave", -1),
        ("a", 30, 4, "bus", "leave", -1),
        ("b", 6, 1, "car", "dropped", -1),
    ]


@pytest.mark.spec("W6", "X7")
def test_it_goes_on_where_it_ended_even_without_its_note(home):
    register(home, "came", CAME)
    drive(home, ("a", 1, 5, "bus"), ("b", 2, 6, "car"))
    feed(home).run()
    feed(home).run()
    assert len(fed(home)) == 2
    for note in feed_folder(home, "arrivals").iterdir():
        note.unlink()  # as if it had died behind the append
    bare_log(home.log("arrivals")).append(b"what others write {\n[]\n", arrival_us=9)
    drive(home, ("c", 3, 7, "bus"))
    feed(home).run()
    log = bare_log(home.log("arrivals"))
    last = log.read(log.segments(0)[-1])
    assert json.loads(last)["object"] == "c"
    assert [log.read(one).count(b'"seq"') for one in log.segments(0)] == [2, 0, 1]


@pytest.mark.spec("W6", "X7")
def test_two_feeders_write_each_element_once(home):
    register(home, "came", CAME)
    first, second = feed(home), feed(home)
    for number in range(4):
        drive(home, (f"o{number}", number + 1, 5, "bus"))
        first.poll()
        second.poll()
    assert [one["object"] for one in fed(home)] == ["o0", "o1", "o2", "o3"]
    assert (first.records, second.records) == (4, 0)


@pytest.mark.spec("W6", "X7")
@pytest.mark.slow
def test_a_killed_feeder_repeats_and_loses_nothing(home):
    register(home, "came", CAME)
    script = (
        "import sys\nfrom pathlib import Path\nfrom st_common.config.home import Home\n"
        "from st_common.delivery.stream_feed import StreamFeed\n"
        "from st_common.config.streams import load_streams\nhome = Home(Path(sys.argv[1]))\n"
        "feed = StreamFeed(home, 'came', load_streams(home.root / 'conf')['arrivals'])\n"
        "(home.root / 'ready').touch()\nfeed.run(follow=True)\n"
    )
    for number in range(3):
        process = subprocess.Popen([sys.executable, "-c", script, str(home.root)])
        deadline = time.monotonic() + 60
        while not (home.root / "ready").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        for part in range(3):
            drive(
                home,
                *[
                    (f"o{number}-{part}-{n}", 10 * number + part, 5, "bus")
                    for n in range(20)
                ],
            )
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        (home.root / "ready").unlink()
    feed(home).run()
    expected = [row["object"] for row in passed_changes(home, "came").to_pylist()]
    assert len(expected) == 180
    assert [one["object"] for one in fed(home)] == expected


@pytest.mark.spec("W6")
@pytest.mark.parametrize(
    ("plan", "settings", "message"),
    [
        (Plan(stream="cars", inside=ZONE), {}, "no place.*select x and y"),
        (
            Plan(stream="cars", inside=ZONE, columns=(("x", "x"),)),
            {},
            "there is no y",
        ),
        (
            Plan(stream="cars", aggregate=Aggregate(function="count"), emit="istream"),
            {},
            r"no place.*AVG\(x\) AS x",
        ),
        (CAME, {"format": "csv"}, "is csv"),
        (CAME, {"name": "cars"}, "reads stream 'cars' itself"),
        (CAME, {"time_unit": "%d/%m/%Y"}, "time_unit"),
        (
            CAME,
            {"attributes": {"kinds": "string"}},
            "attribute kinds = 'kinds' is no part",
        ),
        (
            CAME,
            {"columns": Columns(object="id", event_ts="fix_ts", x="x", y="y")},
            "object = 'id' is no part",
        ),
        (
            CAME,
            {"columns": Columns(object="row", x="x", y="y", gone="left")},
            "gone = 'left' is no part",
        ),
    ],
)
def test_what_cannot_be_fed_is_refused(home, plan, settings, message):
    register(home, "came", plan)
    with pytest.raises((ConfigError, QueryError), match=message):
        feed(home, **settings)


@pytest.mark.spec("W6")
def test_a_change_without_a_place_ends_it_behind_what_came_before(home):
    register(
        home,
        "came",
        Plan(
            stream="cars",
            inside=ZONE,
            columns=(("x", "nullif(x, 6)"), ("y", "y")),
            emit="istream",
        ),
    )
    drive(home, ("a", 1, 5, "bus"), ("b", 2, 6, "car"), ("c", 3, 7, "bus"))
    for _ in range(2):
        with pytest.raises(QueryError, match="has no place"):
            feed(home, attributes={}).run()
    assert [one["object"] for one in fed(home)] == ["a"]


@pytest.mark.spec("W6")
@pytest.mark.parametrize(
    ("unit", "stamp"),
    [
        ("us", 2_500_000),
        ("ms", 2500),
        ("s", 2.5),
        ("iso", "1970-01-01T00:00:02.500000Z"),
    ],
)
def test_times_are_in_the_unit_of_the_target(home, unit, stamp):
    register(home, "came", CAME)
    drive(home, ("a", 2.5, 5, "bus"))
    feed(home, time_unit=unit, attributes={}).run()
    assert fed(home)[0]["event_ts"] == fed(home)[0]["fix_ts"] == stamp


@pytest.mark.spec("W6")
def test_the_command_feeds_once(home: Home, tmp_path: Path):
    register(home, "came", CAME)
    drive(home, ("a", 1, 5, "bus"))
    done = CliRunner().invoke(
        app, ["--home", str(tmp_path), "capture", "arrivals", "--query", "came"]
    )
    assert (done.exit_code, done.output) == (
        0,
        "arrivals: 1 records of query came on stream cars\n",
    )


def controls(home):
    log = bare_log(home.log("arrivals"))
    rows = [
        json.loads(line)
        for one in log.segments(0)
        if one.control
        for line in log.read(one).splitlines()
    ]
    return [(row["op"], row.get("ts")) for row in rows if row["op"] in ("clock", "end")]


def drive_and_run(home, *fixes, end=False):
    log = bare_log(home.log("cars"))
    lines = "".join(
        f"{name},{second},{x},1,{kind}\n" for name, second, x, kind in fixes
    )
    log.append(b"id,t,x,y,kind\n" + lines.encode(), arrival_us=0)
    if end:
        write_end(log, arrival_us=0)
    run(home, streams(home)["cars"], until_idle=True)


@pytest.mark.spec("S1", "W6")
def test_the_clock_and_the_end_of_the_source_are_passed_on_so_that_the_last_tick_is_told(
    home,
):
    register(home, "came", CAME)
    crowd = Plan(stream="arrivals", inside=ZONE, aggregate=Aggregate(function="count"))
    register(home, "crowd", crowd, stream="arrivals")
    drive_and_run(home, ("a", 2, 5, "bus"))
    feed(home).run()
    feed(home).run()
    assert controls(home) == [("clock", 2_000_000)]  # the source's clock, once
    drive_and_run(home, ("z", 9, 99, "bus"))  # no change of the query, but time goes on
    feed(home).run()
    assert controls(home) == [("clock", 2_000_000), ("clock", 9_000_000)]
    run(home, streams(home)["arrivals"], until_idle=True)
    assert answer(home, "crowd")["value"].to_pylist() == [1.0]
    drive_and_run(home, ("b", 9.5, 5, "bus"), end=True)
    feed(home).run()
    feed(home).run()
    assert controls(home)[2:] == [("clock", 9_500_000), ("end", None)]
    run(home, streams(home)["arrivals"], until_idle=True)
    assert answer(home, "crowd")["value"].to_pylist() == [2.0]


@pytest.mark.spec("S1")
def test_a_stream_with_two_sources_goes_by_the_one_that_is_behind(home):
    register(home, "came", CAME)
    register(home, "went", dataclasses.replace(CAME, emit="dstream"))
    drive_and_run(home, ("a", 2, 5, "bus"), ("a", 3, 50, "bus"))
    feed(home, attributes={}).run()
    drive_and_run(home, ("a", 8, 5, "bus"), end=True)
    feed(home, attributes={}).run()
    assert controls(home) == [("clock", 3_000_000), ("clock", 8_000_000), ("end", None)]
    note = feed_folder(home, "arrivals") / "cars.went.json"
    note.write_text(
        json.dumps(
            {"position": -1, "seq": 0, "segment": 0, "time": {"clock_us": 8_000_000}}
        )
    )
    drive_and_run(home, ("a", 20, 50, "bus"), end=True)
    feed(home, attributes={}).run()
    assert controls(home) == [
        ("clock", 3_000_000),
        ("clock", 8_000_000),
        ("end", None),
    ]  # the other is at 8 s
    feed(home, "went", attributes={}).run()
    assert controls(home)[3:] == [("clock", 20_000_000), ("end", None)]


@pytest.mark.spec("S1")
def test_a_source_whose_query_was_dropped_holds_nobody_back(home):
    register(home, "came", CAME)
    register(home, "went", dataclasses.replace(CAME, emit="dstream"))
    drive_and_run(home, ("a", 2, 5, "bus"))
    feed(home, attributes={}).run()
    feed(home, "went", attributes={}).run()
    drive_and_run(home, ("z", 9, 99, "bus"))
    feed(home, attributes={}).run()
    assert controls(home)[-1] == ("clock", 2_000_000)  # `went` is still there
    drop(home, "went")
    drive_and_run(home, ("z", 20, 99, "bus"))
    feed(home, attributes={}).run()
    assert controls(home)[-1] == ("clock", 20_000_000)


@pytest.mark.spec("S1")
def test_a_source_whose_note_was_removed_holds_nobody_back_and_is_fed_once_all_the_same(
    home,
):
    register(home, "came", CAME)
    register(home, "went", dataclasses.replace(CAME, emit="dstream"))
    drive_and_run(home, ("a", 2, 5, "bus"), ("a", 3, 50, "bus"))
    feed(home, attributes={}).run()
    feed(home, "went", attributes={}).run()
    (feed_folder(home, "arrivals") / "cars.went.json").unlink()
    drive_and_run(home, ("z", 9, 99, "bus"))
    feed(home, attributes={}).run()
    assert controls(home)[-1] == ("clock", 9_000_000)
    before = fed(home)
    feed(home, "went", attributes={}).run()
    assert fed(home) == before
