"""Bytes of a feed cut into whole records: wherever they are cut, nothing is lost, and nothing is there twice."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.decode import decode
from st_common.sources.framing import Lines, of_document, of_message
from tests.kit.feeding import stream_with

pytestmark = pytest.mark.spec("B6")

CSV = stream_with({"kind": "stdin"})
BARE = stream_with(
    {"kind": "stdin"}, header=False, columns={"object": 1, "x": 2, "y": 3}
)
JSON = stream_with({"kind": "stdin"}, format="ndjson")

LINES = st.lists(st.text(st.sampled_from("ab,1\r é"), max_size=6), max_size=8)


def cut(data, places):
    """The data in portions."""
    ends = sorted({min(place, len(data)) for place in places} | {0, len(data)})
    return [data[a:b] for a, b in itertools.pairwise(ends)]


def filled(lines):
    """Those that are records to whoever decodes them: a line of blanks is a bad one."""
    return [line for line in lines if line.removesuffix(b"\r")]


@given(
    LINES,
    st.lists(st.integers(0, 60), max_size=6),
    st.booleans(),
    st.sampled_from([None, b"id,t,x,y", b"x;id,t", b"(no header)"]),
)
def test_lines_are_the_same_wherever_a_connection_is_cut(
    lines, places, is_ended, header
):
    data = "\n".join(lines).encode() + b"\n" * is_ended
    if header is not None:
        data = data.lstrip(b"\r\n")
    sent = b"" if header in (None, b"(no header)") else header + b"\n"
    data = sent + data
    framing = Lines(BARE if header is None else CSV)
    given_out = [framing.feed(one) for one in cut(data, places)] + [framing.end()]
    arrivals = [one for one in given_out if one is not None]
    expected = list(data.split(b"\n"))
    rest = expected[1:] if sent else expected
    got = b"".join(one.body for one in arrivals).split(b"\n")
    assert filled(got) == filled(rest)
    assert sum(one.records for one in arrivals) == len(filled(rest))
    assert framing.taken == len(data)
    for one in arrivals:
        assert one.body.endswith(b"\n")
        assert one.header == (b"" if header is None else header + b"\n")


def test_blank_lines_in_front_of_a_header_are_no_header():
    framing = Lines(CSV)
    assert framing.feed(b"\r\n\n") is None
    arrival = framing.feed(b"\nid,t,x,y\na,1,2,3\n")
    assert (arrival.header, arrival.body) == (b"id,t,x,y\n", b"a,1,2,3\n")


def test_no_record_is_lost_of_a_connection_that_names_no_column():
    framing = Lines(CSV)
    arrival = framing.feed(b"444,1,2,3\n555,1,2,3\n")
    assert arrival.records == 2
    decoded = decode(arrival.header + arrival.body, CSV, arrival_us=0)
    assert decoded.rejects["reason"].to_pylist() == ["missing_column"] * 2
    assert decoded.rejects["raw"].to_pylist() == [b"444,1,2,3", b"555,1,2,3"]


def test_a_line_that_never_ends_is_taken_as_one_record():
    framing = Lines(BARE)
    assert framing.feed(b"a" * (1 << 19)) is None
    arrival = framing.feed(b"a" * (1 << 19))
    assert arrival is not None
    assert arrival.records == 1
    assert framing.feed(b"b,1,2\n").body == b"b,1,2\n"


@pytest.mark.parametrize(
    ("message", "body"),
    [
        (b'{"id": 1,\n "t": 2}\n', b'{"id": 1,  "t": 2}\n'),
        (b'{"id": 1}\r\n{"id": 2}', b'{"id": 1}\r\n{"id": 2}\n'),
        (b'[{"id": 1}, {"id": 2}]', b'{"id": 1}\n{"id": 2}\n'),
        (b"{\n no json\n", b"{\n no json\n"),
    ],
)
def test_messages_of_json_become_an_object_a_line(message, body):
    (arrival,) = of_message(message, JSON)
    assert arrival.body.replace(b" {", b"{") == body
    assert arrival.records == body.count(b"\n")


def test_an_empty_message_is_nothing():
    assert of_message(b"\r\n", JSON) == []
    assert of_message(b"", BARE) == []


def test_a_document_of_lines_keeps_its_header_apart():
    (arrival,) = of_document(b"id,t,x,y\na,1,2,3\nb,1,2,3", CSV)
    assert (arrival.header, arrival.body) == (b"id,t,x,y\n", b"a,1,2,3\nb,1,2,3\n")
    assert arrival.records == 2


def test_a_document_that_cannot_be_cut_is_kept_as_it_is():
    columns = {"object": "trk/name", "event_ts": "time", "x": "lon", "y": "lat"}
    gpx = stream_with(
        {"kind": "http", "url": "http://127.0.0.1/"},
        format="gpx",
        columns=columns,
        time_unit="iso",
        crs="EPSG:4326",
    )
    (arrival,) = of_document(b"<gpx><trk>", gpx)
    assert (arrival.body, arrival.is_lines, arrival.records) == (
        b"<gpx><trk>",
        False,
        1,
    )
