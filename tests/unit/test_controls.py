"""Control rows: one writer, one reader, and whatever a reader wants of them, what nobody knows is an error."""

import dataclasses
import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.answers.outlets import Outlet
from st_common.checks.archived import controls_of
from st_common.checks.history import registered_by
from st_common.checks.verify import verify
from st_common.client.registration import Registration as Following
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.contracts import load_contract
from st_common.controls.reading import chosen, row_at, rows_of
from st_common.controls.rectangles import Rectangles
from st_common.controls.rows import (
    PLAN_FIELDS,
    AboutQuery,
    Clock,
    Drop,
    End,
    Export,
    Fail,
    Follow,
    LayerVersion,
    Reading,
    Register,
    Registration,
    Replace,
)
from st_common.controls.writing import payload_of, to_bytes
from st_common.delivery.watermarks import SourceTime, time_now
from st_common.engine.archive import Archive
from st_common.engine.export import asked_exports
from st_common.engine.packets import packets_of, step_settings
from st_common.engine.run import run
from st_common.engine.timekeeper import Timekeeper
from st_common.errors import LogError
from st_common.history.latest import Focals
from st_common.layers.announce import announce
from st_common.log.control import control_rows, write_clock
from st_common.log.log import Log
from st_common.operations.status import read_status, write_status
from st_common.operators.events.packet import Packet, control_packet
from st_common.operators.runtime.stages import step
from st_common.operators.state.state import State
from st_common.position import position_of
from st_common.query import lookup, registry
from st_common.query.control import plan_of, plans_of
from st_common.query.derived import roll_forward
from st_common.query.plan import Plan
from st_common.query.text import parse
from tests.kit.log_writer import bare_log

PLAN = {"v": 3, "stream": "cars", "inside": {"kind": "circle", "x": 1.0, "y": 2.0}}
pytestmark = pytest.mark.spec("S2")
CORNERS = {"minx": 0.0, "miny": 0.0, "maxx": 5.0, "maxy": 5.0}
BOX = {"kind": "box", **CORNERS}

# What logs have held since each kind was first written: these bytes must never change.
GOLDEN = [
    (
        Register(query='a "é"', version=1, plan=PLAN, text="REGISTER ..", owner="me"),
        b'{"op":"register","query":"a \\"\\u00e9\\"","version":1,"plan":{"v":3,"stream":"cars","inside":'
        b'{"kind":"circle","x":1.0,"y":2.0}},"text":"REGISTER ..","owner":"me"}\n',
    ),
    (
        Replace(query="a", version=2, plan={"v": 3, "stream": "s"}, layer_version=7),
        b'{"op":"replace","query":"a","version":2,"plan":{"v":3,"stream":"s"},"text":null,"owner":null,'
        b'"layer_version":7}\n',
    ),
    (
        Follow(query="a", version=1, plan={"v": 3, "stream": "s"}, areas=("depot",)),
        b'{"op":"follow","query":"a","version":1,"plan":{"v":3,"stream":"s"},"text":null,"owner":null,'
        b'"areas":["depot"]}\n',
    ),
    (
        Follow(query="a", version=1, plan={"v": 3, "stream": "s"}, layer="parks"),
        b'{"op":"follow","query":"a","version":1,"plan":{"v":3,"stream":"s"},"text":null,"owner":null,'
        b'"layer":"parks"}\n',
    ),
    (Drop(query="a"), b'{"op":"drop","query":"a"}\n'),
    (
        Fail(query="a", version=2, why="it cannot"),
        b'{"op":"fail","query":"a","version":2,"why":"it cannot"}\n',
    ),
    (
        LayerVersion(layer="parks", version=3),
        b'{"op": "layer", "layer": "parks", "version": 3}\n',
    ),
    (Clock(ts_us=5), b'{"op": "clock", "ts": 5}\n'),
    (Clock(ts_us=5, delay_us=0), b'{"op": "clock", "ts": 5, "delay_us": 0}\n'),
    (End(), b'{"op": "end"}\n'),
    (Export(), b'{"op": "export"}\n'),
    (
        Reading(reading={"format": "csv"}),
        b'{"op": "reading", "reading": {"format": "csv"}}\n',
    ),
]

names, whole = st.text(max_size=8), st.integers(-(2**62), 2**62)
plans = st.builds(
    lambda version, stream, where: {"v": version, "stream": stream, "where": where},
    st.sampled_from([1, 2, 3]),
    names,
    names,
)
asked = {
    "query": names,
    "version": whole,
    "plan": plans,
    "text": st.none() | names,
    "owner": st.none() | names,
    "layer_version": st.none() | whole,
}
any_rows = st.one_of(
    st.builds(Register, **asked),
    st.builds(Replace, **asked),
    st.builds(Follow, **asked, layer=st.none() | names),
    st.builds(Drop, query=names),
    st.builds(Fail, query=names, version=whole, why=st.none() | names),
    st.builds(LayerVersion, layer=names, version=whole),
    st.builds(Clock, ts_us=whole, delay_us=st.none() | whole),
    st.just(End()),
    st.just(Export()),
    st.builds(Reading, reading=st.dictionaries(names, names, max_size=2)),
)


@pytest.mark.parametrize(("row", "line"), GOLDEN)
def test_what_is_written_never_changes(row, line):
    assert to_bytes(row) == line
    assert rows_of(line, stream="cars", segment=1) == (row,)


@given(st.lists(any_rows, max_size=6))
def test_what_is_written_is_read_again(rows):
    payload = payload_of(rows)
    assert rows_of(payload, stream="s", segment=0) == tuple(rows)
    assert rows_of(payload.rstrip(b"\n"), stream="s", segment=0) == tuple(rows)
    for number, row in enumerate(rows):
        assert row_at(payload, number, stream="s", segment=0) == row
    assert row_at(payload, len(rows), stream="s", segment=0) is None


def test_a_reader_gets_the_kinds_that_it_wants():
    rows = rows_of(
        payload_of(row for row, _ in GOLDEN if not isinstance(row, Reading)),
        stream="s",
        segment=0,
    )
    assert [number for number, _ in chosen(rows, Clock)] == [7, 8]
    assert [type(row) for _, row in chosen(rows, Registration)] == [
        Register,
        Replace,
        Follow,
        Follow,
    ]
    assert [row.query for _, row in chosen(rows, AboutQuery)][1:] == ["a"] * 5
    assert not list(chosen(rows, Reading))


def box_lines(count: int, seed: int = 1) -> bytes:
    rng = random.Random(seed)
    plan = {"v": 3, "stream": "cars"}
    return payload_of(
        Register(
            query=f"q{n}",
            version=1 + n % 3,
            plan=plan | {"inside": BOX | {"minx": -rng.random(), "miny": -float(n)}},
            text=f"t{n}",
            owner="me",
        )
        for n in range(count)
    )


def test_rectangles_are_the_rows_that_reading_one_by_one_gives(monkeypatch):
    payload = box_lines(100)
    columns = rows_of(payload, stream="cars", segment=4)
    assert isinstance(columns, Rectangles)
    monkeypatch.setattr("st_common.controls.rectangles._LEAST_ROWS", 1 << 30)
    rows = rows_of(payload, stream="cars", segment=4)
    assert isinstance(rows, tuple)
    assert tuple(columns) == rows
    assert columns[3:5] == list(rows[3:5])
    assert plans_of(columns) == [plan_of(row, 0) for row in rows]
    assert [at for at, _ in chosen(columns, Registration)] == list(range(100))
    assert not list(chosen(columns, Clock))
    assert [text and json.loads(text) for text in columns.plan_texts()] == [
        row.plan for row in rows
    ]


def test_the_step_registers_rectangles_alike_as_columns_and_row_by_row(monkeypatch):
    payload = box_lines(80)
    settings, told = step_settings(CARS), []
    for least in (1, 1 << 30):
        monkeypatch.setattr("st_common.controls.rectangles._LEAST_ROWS", least)
        packet = Packet.from_blob(control_packet(0, payload, stream="cars").to_blob())
        assert isinstance(packet.controls, Rectangles) == (least == 1)
        made = step(State(), [packet], settings, lambda *_: None)
        told.append((made.state.queries, made.changes.to_pylist()))
    assert told[0] == told[1]
    assert len(told[0][0]) == 80


def test_what_a_plan_may_say_is_what_plans_have():
    own = {field.name for field in dataclasses.fields(Plan)}
    assert own | {"v"} == PLAN_FIELDS


# Rows that this version does not know, what an error shows of each, and the way out.
NEWER = {
    "an op": (b'{"op":"pause","until":5}', r'row 2 .* "pause"'),
    "a field": (
        b'{"op":"drop","query":"a","cascade":true}',
        r"row 2 .*'cascade'.*true",
    ),
    "a version of a plan": (
        b'{"op":"register","query":"a","version":1,"plan":{"v":4,"stream":"cars"}}',
        r"row 2 .* version 4",
    ),
    "a field of a plan": (
        b'{"op":"replace","query":"a","version":2,"plan":{"v":3,"stream":"cars","having":"n > 1"}}',
        r"row 2 .*'having'.*n > 1",
    ),
}
DAMAGED = {
    "no JSON": (b'{"op":"clock"', "row 2 .* cannot be read"),
    "no text": (b'{"op":"drop","query":"\xff"}', "row 2 .* cannot be read"),
    "nested without end": (b"[" * 100_000, "row 2 .* cannot be read"),
    "nothing": (b"", "row 2 .* cannot be read"),
    "two rows": (b'{"op":"end"} {"op":"end"}', "row 2 .* cannot be read"),
    "no object": (b"[1]", r"row 2 .*\[1\] is no JSON object"),
    "no op": (b'{"ts":5}', "row 2 .* null"),
    "an op that is no text": (b'{"op":["end"]}', r'row 2 .*\["end"\]'),
    "no time": (b'{"op":"clock"}', "row 2 .*'ts' of 'clock' is missing"),
    "a time that is a text": (b'{"op":"clock","ts":"5"}', "row 2 .*'ts'.*\"5\""),
    "a time in parts": (b'{"op":"clock","ts":5.5}', "row 2 .*'ts'.*5.5"),
    "a truth for a number": (
        b'{"op":"layer","layer":"l","version":true}',
        "row 2 .*'version'.*true",
    ),
    "a delay that is a text": (
        b'{"op":"clock","ts":5,"delay_us":"6"}',
        "row 2 .*'delay_us'.*\"6\"",
    ),
    "a plan without a version": (
        b'{"op":"register","query":"a","version":1,"plan":{"stream":"cars"}}',
        "row 2 .*version null",
    ),
    "a plan without a stream": (
        b'{"op":"register","query":"a","version":1,"plan":{"v":3}}',
        "row 2 .*names no stream",
    ),
    "a plan that is a text": (
        b'{"op":"register","query":"a","version":1,"plan":"box"}',
        "row 2 .*'plan'.*\"box\"",
    ),
}


@pytest.mark.parametrize("what", NEWER | DAMAGED)
def test_a_row_that_nobody_knows_is_an_error_that_says_where_and_what_to_do(what):
    line, says = (NEWER | DAMAGED)[what]
    payload = b'{"op":"end"}\n' + line + b"\n"
    with pytest.raises(LogError, match=f"segment 7 of stream cars: {says}") as caught:
        rows_of(payload, stream="cars", segment=7)
    assert caught.value.hint
    if what in NEWER:
        assert "newer version" in caught.value.hint
    with pytest.raises(LogError, match=says):
        row_at(payload, 1, stream="cars", segment=7)


CARS = StreamSettings(
    name="cars",
    format="csv",
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
    crs="planar",
    time_unit="s",
    max_ahead_s=None,
)
QUERIES = """
REGISTER QUERY q AS SELECT * FROM cars INSIDE (0, 0, 5, 5);
REGISTER QUERY m AS SELECT * FROM cars INSIDE ('M', 'a', 5.0, 5.0);
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A home with a stream that has run, and queries."""
    home = Home(tmp_path_factory.mktemp("controls") / "home")
    registry.register(home, {"cars": CARS}, parse(QUERIES), owner="me")
    bare_log(home.log("cars")).append(
        b"id,t,x,y\na,1,1,1\nb,2,2,2\n", arrival_us=5, live=True
    )
    run(home, CARS, until_idle=True)
    return home


@pytest.fixture
def home(ran, tmp_path):
    shutil.copytree(ran.root, tmp_path / "home")
    return Home(tmp_path / "home")


def _log(home: Home) -> Log:
    return Log(home.log("cars"))


def _packets(home: Home) -> list[Packet]:
    log = _log(home)
    return [one[0] for one in packets_of(log, log.segments(0), CARS, shards=1)]


def _changes() -> pa.Table:
    schema = load_contract("changes").arrow_schema()
    return pa.table({field.name: pa.nulls(1, field.type) for field in schema})


def _time_passed_on(home: Home) -> object:
    """What a stream passes on to another one, when its engine is said to be behind all that stands in its log."""
    folder, end = home.stream("cars"), position_of(_log(home).end(), 0)
    status = read_status(folder)
    write_status(folder, replace(status, position=end))
    return time_now(home, "cars", SourceTime())


READERS: dict[str, Callable[[Home], object]] = {
    "the local engine": lambda home: run(home, CARS, until_idle=True),
    "packets of any engine": _packets,
    "exports": lambda home: asked_exports(_packets(home)),
    "the timekeeper": lambda home: Timekeeper(_log(home), CARS, start=_log(home).end()),
    "the archive": lambda home: Archive(home, CARS).batch(),
    "verify": lambda home: verify(home, CARS),
    "the history of queries": lookup.history,
    "the queries": lookup.queries,
    "a query by its name": lambda home: lookup.find(home, "q"),
    "a registration": lambda home: registry.register(
        home,
        {"cars": CARS},
        parse(QUERIES.splitlines()[1].replace("q AS", "r AS")),
        owner="me",
    ),
    "a drop": lambda home: registry.drop(home, "q"),
    "a failure": lambda home: registry.suspend(home, [("q", 1, "it cannot")]),
    "the table of queries": roll_forward,
    "the table latest": lambda home: Focals("cars").at(
        home, position_of(_log(home).end(), 0)
    ),
    "time that is passed on": _time_passed_on,
    "outlets": lambda home: Outlet(home, "cars").passed(_changes()),
    "announcements of layers": lambda home: announce(home, stream="cars"),
}


@pytest.mark.parametrize("what", NEWER)
@pytest.mark.parametrize("reader", READERS)
def test_whoever_reads_a_log_stops_at_a_row_that_nobody_knows(home, reader, what):
    line, says = NEWER[what]
    READERS[reader](home)  # without such a row all goes well
    _log(home).append(b'{"op":"end"}\n' + line, arrival_us=9, control=True)
    number = _log(home).end() - 1
    with pytest.raises(LogError, match=f"segment {number} of stream cars: {says}"):
        READERS[reader](home)


def test_a_client_that_follows_a_query_stops_at_a_row_that_nobody_knows(home):
    following = Following(home, lookup.find(home, "q"))
    _log(home).append(NEWER["an op"][0], arrival_us=9, control=True)
    with pytest.raises(LogError, match=r'of stream cars: row 1 .* "pause"'):
        for _ in following.within(2.0):
            pass


UNKNOWN_PARTS = {
    "spiral": {"inside": {"kind": "spiral", "width": 5.0}},
    "westwards_of": {"inside": BOX | {"westwards_of": "a"}},
    "sometimes": {"emit": "sometimes"},
    "last": {"order": "last"},
    "touches": {"join": {"layer": "parks", "predicate": "touches"}},
    "median": {"aggregate": {"function": "median"}},
    "median of distances": {
        "neighbours": {
            "kind": "group",
            "k": 1,
            "total": "median of distances",
            "places": [{"x": 0.0, "y": 0.0}],
        }
    },
    "height": {
        "frame": {"sliding": [{"range": {"by": "height", "amount": 5.0}}]},
    },
    "turned": {"transforms": [{"kind": "turned", "amount": 5.0}]},
    "angle": {"compare": {"box": CORNERS, "angle": 5.0}},
    "hop": {"frame": {"sliding": [{"range": {"by": "time", "amount": 5.0}, "hop": 1}]}},
}


@pytest.mark.parametrize("part", UNKNOWN_PARTS)
def test_a_plan_with_a_part_that_nobody_knows_is_an_error_where_plans_are_made(
    home, part
):
    plan = {"v": 3, "stream": "cars", **UNKNOWN_PARTS[part]}
    row = Register(query="c", version=1, plan=plan)
    number = _log(home).append(to_bytes(row), arrival_us=9, control=True).number
    end = position_of(number + 1, 0)
    readers = (
        READERS["the local engine"],
        READERS["the history of queries"],
        lambda home: registered_by(controls_of(_log(home), end), 1.0),
    )
    for read in readers:
        says = f"segment {number} of stream cars: row 1 .*'c'.*{part}"
        with pytest.raises(LogError, match=says):
            read(home)


def test_records_that_are_read_by_an_unknown_setting_are_an_error_that_says_where(home):
    log = bare_log(home.log("cars"))
    row = Reading(reading={"charset": "latin1"})
    number = log.append(to_bytes(row), arrival_us=9, reading=True).number
    log.append(b"id,t,x,y\nb,3,5,5\n", arrival_us=9)
    says = f"stream cars: segment {number}, row 1: .*charset = 'latin1'"
    for reader in ("the local engine", "the archive"):
        with pytest.raises(LogError, match=says) as caught:
            READERS[reader](home)
        assert "newer version" in caught.value.hint


@pytest.mark.parametrize(
    ("row", "marks"),
    [
        (Drop(query="q"), {"clock": True}),
        (Reading(reading={}), {"control": True}),
        (End(), {"reading": True}),
    ],
)
def test_a_segment_holds_what_its_header_announces(home, row, marks):
    write_clock(_log(home), 5_000_000, arrival_us=9)
    segment = _log(home).append(to_bytes(row), arrival_us=9, **marks)
    says = f"segment {segment.number} of stream cars: row 1 says '{row.op}', which the header"
    with pytest.raises(LogError, match=says):
        control_rows(_log(home), segment)
    with pytest.raises(LogError, match=says):
        _packets(home)
