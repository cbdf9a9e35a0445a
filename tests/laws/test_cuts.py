"""A feed cut into any batches gives the fixes of a replay in one: what was said before stands in front of each."""

import itertools
import json
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.decode import decode
from st_common.formats.said_before import MARK, said_before
from st_common.replay.memory import LONGEST_TEXT, MOST_AGE_S, Memory
from tests.kit.effort import tries

pytestmark = pytest.mark.spec("B6", "B7")

PLACE = {"x": "longitude", "y": "latitude"}
PLANES = StreamSettings(
    name="planes",
    format="sbs1",
    columns=Columns(object="hex", event_ts="time", **PLACE),
    time_unit="%Y/%m/%d %H:%M:%S",
    attributes={
        "callsign": "string",
        "altitude": "double",
        "ground_speed": "double",
        "track": "double",
        "vertical_rate": "double",
        "squawk": "string",
        "on_ground": "bool",
    },
    max_ahead_s=None,
)
SHIPS = StreamSettings(
    name="ships",
    format="ais",
    columns=Columns(object="mmsi", event_ts="time", **PLACE),
    attributes={
        "type": "long",
        "sog": "double",
        "name": "string",
        "callsign": "string",
        "destination": "string",
        "shiptype": "long",
        "imo": "long",
        "draught": "double",
        "length": "long",
        "width": "long",
    },
    max_ahead_s=None,
)
UNTIMED = replace(SHIPS, columns=replace(SHIPS.columns, event_ts=None))
RECORDINGS = [
    ("adsb-sbs1-ulm/sbs1.txt", PLANES),
    ("ais-denmark/nmea-stream-2010-06-11.txt", SHIPS),
    ("ais-nmea-mixed/gpsd-sample.aivdm", UNTIMED),
    ("ais-nmea-mixed/libais-test.aivdm", UNTIMED),
    ("ais-nmea-mixed/libais-typeexamples.nmea", UNTIMED),
    ("ais-nmea-mixed/libais-tagblock.nmea", UNTIMED),
    ("ais-nmea-mixed/pyais-nmea_data_sample.txt", UNTIMED),
]
STEP_US = 200_000


def fixes_of(payloads, stream):
    """The fixes of payloads one behind the other, without what differs by its batch; and how many records there are."""
    fixes, records, rejects = [], 0, 0
    for payload in payloads:
        decoded = decode(payload, stream, arrival_us=0)
        fixes += decoded.fixes.drop_columns(["row"]).to_pylist()
        records += decoded.rows
        rejects += len(decoded.rejects)
    assert len(fixes) + rejects == records
    if stream.columns.event_ts is None:  # the time is the arrival
        fixes = [{**fix, "event_ts": 0} for fix in fixes]
    return fixes, records


def batches(lines, ends):
    borders = sorted({min(end, len(lines)) for end in ends} | {0, len(lines)})
    return [b"".join(lines[a:b]) for a, b in itertools.pairwise(borders)]


def captured(payloads, stream):
    """Payloads as a capture stores them, of a batch each 200 ms."""
    memory = Memory(stream)
    return [
        memory.put_in_front(payload, arrival_us=number * STEP_US)
        for number, payload in enumerate(payloads)
    ]


def assert_same(lines, ends, stream):
    whole = fixes_of([b"".join(lines)], stream)
    assert fixes_of(captured(batches(lines, ends), stream), stream) == whole


@pytest.mark.parametrize(("path", "stream"), RECORDINGS)
@pytest.mark.parametrize("size", [1, 3, 50])
def test_a_recording_in_batches_of_so_many_lines_gives_the_same(
    shared, path, stream, size
):
    lines = (shared / "data" / path).read_bytes().splitlines(keepends=True)
    lines = lines[: 120 * size]
    assert_same(lines, range(0, len(lines), size), stream)


@pytest.mark.parametrize(("path", "stream"), RECORDINGS)
@tries(5)
@given(data=st.data())
def test_a_recording_in_any_batches_gives_the_same(shared, path, stream, data):
    lines = (shared / "data" / path).read_bytes().splitlines(keepends=True)
    ends = data.draw(st.lists(st.integers(0, len(lines)), max_size=30))
    assert_same(lines, ends, stream)


def test_without_what_was_said_before_a_batch_lacks_names(shared):
    """Else the tests above could not fail."""
    for path, stream in RECORDINGS[:2]:
        lines = (shared / "data" / path).read_bytes().splitlines(keepends=True)
        bare = batches(lines, range(0, len(lines), 50))
        whole, records = fixes_of([b"".join(lines)], stream)
        fixes, found = fixes_of(bare, stream)
        assert found == records
        assert fixes != whole


POSITION = "135OaP001b10m:ROTN1SLRjJ0<0l"
PARTS = st.tuples(
    st.integers(1, 2), st.integers(1, 2), st.just("1"), st.sampled_from("AAAB")
) | st.tuples(st.just(3), st.integers(1, 3), st.just("1"), st.just("A"))
GAP = b"!AIVDM,1,1,,B,402=481uaUcf;OQ55JS9ITi025Jp,0*2B\n" * 90
TIME = b"$PGHP,1,2010,6,11,11,46,11,390,231,45,992190934,1,2B*5B\r\n"
COMMENT = b'#said {"objects":{},"unfinished":[],"received":""}\n'
OTHERS = (GAP, TIME, COMMENT, b"# a comment\n", b"\r\n", b"noise\n")


def part(of):
    """A part of a message; those of a message of two, put together, are a position."""
    parts, number, group, channel = of
    cut = len(POSITION) * (number - 1) // parts, len(POSITION) * number // parts
    body = f"AIVDM,{parts},{number},{group},{channel},{POSITION[slice(*cut)]},0"
    checked = 0
    for letter in body.encode():
        checked ^= letter
    return f"!{body}*{checked:02X}\n".encode()


FIRST, LAST, ALONE = (part((*of, "1", "A")) for of in ((2, 1), (2, 2), (1, 1)))


@tries(60)
@example([FIRST, GAP, GAP, GAP, LAST], [2])  # too far apart, though not in its batch
@example([FIRST, GAP, GAP, LAST], [0, 1])
@example([FIRST, FIRST, LAST, LAST], [2])
@example([TIME, ALONE], [0])
@example([TIME, FIRST, LAST], [1])
@given(
    st.lists(
        st.one_of(PARTS.map(part), PARTS.map(part), st.sampled_from(OTHERS)),
        max_size=14,
    ),
    st.lists(st.integers(0, 14), max_size=8),
)
def test_parts_of_messages_go_on_in_later_batches(pieces, ends):
    lines = b"".join(pieces).splitlines(keepends=True)
    sizes = list(itertools.accumulate(len(piece.splitlines()) for piece in pieces))
    borders = [sizes[end] for end in ends if end < len(sizes)]
    assert_same(lines, borders, UNTIMED)
    assert_same(lines, borders, SHIPS)


def test_such_parts_are_positions():
    payload = part((2, 1, "1", "A")) + part((2, 2, "1", "A"))
    assert len(decode(payload, UNTIMED, arrival_us=0).fixes) == 1


def plane(icao, kind, callsign="", place=",", altitude=""):
    stamp = "2022/09/23,11:27:16.635"
    said = f"{callsign},{altitude},,,{place},,,0,0,0,0"
    return f"MSG,{kind},1,1,{icao},1,{stamp},{stamp},{said}\n".encode()


def names_of(payload, stream=PLANES):
    return decode(payload, stream, arrival_us=0).fixes["callsign"].to_pylist()


def test_what_was_said_is_known_for_an_hour():
    hour_us = MOST_AGE_S * 1_000_000
    for later_us, name in ((hour_us, "N1"), (hour_us + 1, None)):
        memory = Memory(PLANES)
        memory.put_in_front(plane("A", 1, "N1"), arrival_us=7)
        fix = plane("A", 3, place="48.4,9.7")
        assert names_of(memory.put_in_front(fix, arrival_us=7 + later_us)) == [name]


def test_of_too_many_objects_those_that_spoke_last_are_known(monkeypatch):
    monkeypatch.setattr("st_common.replay.memory.MOST_OBJECTS", 2)
    memory = Memory(PLANES)
    for number, icao in enumerate("ABCA"):
        memory.put_in_front(plane(icao, 1, f"N{icao}"), arrival_us=number)
    fixes = b"".join(plane(icao, 3, place="48.4,9.7") for icao in "ABC")
    assert names_of(memory.put_in_front(fixes, arrival_us=9)) == ["NA", None, "NC"]


def test_a_text_that_nobody_could_be_called_by_is_not_kept():
    memory = Memory(PLANES)
    memory.put_in_front(plane("A", 1, "N1"), arrival_us=0)
    memory.put_in_front(plane("A", 1, "N" * (LONGEST_TEXT + 1)), arrival_us=0)
    fix = plane("A", 3, place="48.4,9.7")
    assert names_of(memory.put_in_front(fix, arrival_us=0)) == [None]


def test_where_there_is_no_room_a_batch_is_stored_and_somebody_is_told(
    monkeypatch, caplog
):
    memory = Memory(PLANES)
    said = plane("A", 1, "N1") + plane("B", 1, "N2")
    memory.put_in_front(said, arrival_us=0)
    fixes = plane("A", 3, place="48.4,9.7") + plane("B", 3, place="48.4,9.7")
    used = (2 << 20) + len(fixes) + len(json.dumps({"A": {"callsign": "N1"}}))
    flags = len(', "on_ground": "0"')
    monkeypatch.setattr("st_common.replay.memory.SEGMENT_LIMIT", used + flags)
    assert names_of(memory.put_in_front(fixes, arrival_us=0)) == ["N1", None]
    assert "no room for what 1 objects said before" in caplog.text


def test_a_batch_that_needs_nothing_is_stored_as_it_came():
    memory = Memory(replace(PLANES, attributes={}))
    memory.put_in_front(plane("A", 1, "N1"), arrival_us=0)
    fix = plane("A", 3, place="48.4,9.7")
    assert memory.put_in_front(fix, arrival_us=0) == fix
    cars = replace(
        PLANES, format="csv", columns=Columns(object="id", x="x", y="y"), attributes={}
    )
    assert Memory(cars).put_in_front(b"id,x,y\n", arrival_us=0) == b"id,x,y\n"


@pytest.mark.parametrize(
    "line",
    [
        b'#said {"objects":{"A":{"callsign":"N1"}},"unfinished":[],"received":""}',
        b"#said {",
        b"#said []",
        b'#said {"objects":{"A":7},"unfinished":[],"received":""}',
        b'#said {"objects":{},"unfinished":[[1]],"received":""}',
    ],
)
def test_a_record_that_looks_like_what_was_said_is_a_record(line):
    payload = line + b"\n" + plane("A", 3, place="48.4,9.7")
    stored = Memory(PLANES).put_in_front(payload, arrival_us=0)
    assert stored.endswith(payload)
    decoded = decode(stored, PLANES, arrival_us=0)
    assert Counter(decoded.rejects["raw"].to_pylist()) == {line: 1}
    assert decoded.fixes["callsign"].to_pylist() == [None]


@given(
    st.dictionaries(
        st.sampled_from(["A", "219000001", ""]),
        st.dictionaries(
            st.sampled_from(["callsign", "shiptype", "draught", "length"]),
            st.one_of(st.booleans(), st.integers(), st.floats(), st.text(max_size=3)),
        ),
    ),
    st.lists(st.tuples(st.integers(), st.text(max_size=5)), max_size=3),
    st.text(max_size=5),
)
def test_whatever_stands_in_front_a_payload_is_decoded(objects, unfinished, received):
    said = {"objects": objects, "unfinished": unfinished, "received": received}
    front = MARK + json.dumps(said).encode() + b"\n"
    for record, stream in (
        (plane("A", 3, place="48.4,9.7"), PLANES),
        (part((1, 1, "", "A")), UNTIMED),
    ):
        assert said_before(front + record)[1] == record
        decoded = decode(front + record, stream, arrival_us=0)
        assert decoded.rows == 1
