"""The law of segments decoded together: fixes, rejects, rows and counts are those of each segment by itself."""

import gzip

import pyarrow as pa
import pytest
from google.transit import gtfs_realtime_pb2 as pb
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.decode import decode
from st_common.decode.batch import Raw, decode_all
from st_common.formats.arrow_rows import packed
from tests.kit.effort import tries

HEADER = b"id,ts,x,y,n"
CSV = (
    b"a,1,2,3,4",
    b"b,2.5,3,4,",
    b"c,2001-01-01T00:00:00Z,1,1,x",
    b'"d,e",3,4,5,6',
    b'f"g,1,2,3,4',
    b'h,1,2,3,"4',
    b'"4,i,1,2,3',
    b"j,1,2,3",
    b"k,1,2,3,4,5",
    b",1,2,3,4",
    b"l,1,99999,3,4",
    b"m\0,1,2,3,4",
    b"\xff,1,2,3,4",
    b"\xe2\x82,1,2,3,4",
    b"\xc3\xa9,1,2,3,4",
    b"n,1,2,3,4\r",
    b"o\rp,1,2,3,4",
    b"",
    b" ",
    b"\xef\xbb\xbfq,1,2,3,4",
    b"r,99999999999,2,3,4",
    HEADER,
)
JSON = (
    b'{"id":"a","ts":1,"x":2,"y":3,"n":4}',
    b'{"id":"b","ts":2,"x":2,"y":3,"n":"x"}',
    b'{"id":"c","ts":1,"x":null}',
    b'{"id":"d",',
    b"}",
    b"[",
    b"]",
    b"[]",
    b'[{"id":"e","ts":1,"x":2,"y":3},',
    b'{"id":"f","ts":1,"x":2,"y":3}]',
    b"7",
    b" ",
    b"",
    b"\xef\xbb\xbf{}",
    b'{"id":"\xff","ts":1,"x":2,"y":3}',
    b'{"id":"\0","ts":1,"x":2,"y":3}',
    b'{"id":"g","ts":1,"x":2,"y":3}\r',
    b'{"id":"h\xc3',
)


def payloads(lines, headers):
    """Payloads of lines, most of them in shape; with or without a last line end; at times packed, cut or of nothing."""
    good = st.sampled_from(lines[:2])
    body = st.lists(st.one_of(good, good, st.sampled_from(lines)), max_size=4)
    whole = st.tuples(
        st.sampled_from(headers), body, st.sampled_from([b"\n", b"\r\n"]), st.booleans()
    )
    text = whole.map(lambda w: w[2].join([*w[0], *w[1]]) + w[2] * w[3])
    packed = text.map(gzip.compress)
    return st.one_of(text, text, text, text, packed, packed.map(lambda data: data[:-9]))


def segments(lines, headers):
    one = st.builds(
        Raw,
        payload=payloads(lines, headers),
        arrival_us=st.integers(1, 3).map(lambda s: s * 10**9),
    )
    return st.lists(one, max_size=12)


def stream(form, **other):
    columns = other.pop("columns", None) or Columns(
        object="id", event_ts="ts", x="x", y="y"
    )
    attributes = other.pop("attributes", {"n": "long"})
    return StreamSettings(
        name="s", format=form, columns=columns, attributes=attributes, **other
    )


SETTINGS = {
    "csv": stream("csv", time_unit="s", max_ahead_s=None),
    "csv ahead": stream("csv", time_unit="s", max_ahead_s=60.0),
    "csv iso": stream("csv", time_unit="iso", max_ahead_s=None),
    "csv without times": stream("csv", columns=Columns(object="id", x="x", y="y")),
    "csv without quotes": stream("csv", time_unit="s", max_ahead_s=None, quote=""),
    "csv without header": stream(
        "csv",
        time_unit="s",
        header=False,
        max_ahead_s=None,
        attributes={"5": "double"},
        columns=Columns(object="1", event_ts="2", x="3", y="4"),
    ),
    "ndjson": stream("ndjson", time_unit="s", max_ahead_s=None),
    "ndjson without times": stream(
        "ndjson", columns=Columns(object="id", x="x", y="y")
    ),
}


def as_one(found, settings):
    """What `decode` gives for each segment by itself."""
    out = []
    for one in found:
        decoded = decode(one.payload, settings, arrival_us=one.arrival_us)
        out.append((decoded.fixes.to_pylist(), decoded.rejects.to_pylist()))
    return out


def as_parts(parts, settings):
    """The same, dealt back from parts."""
    out = []
    for part in parts:
        assert (
            part.decoded.fixes.schema
            == decode(b"", settings, arrival_us=0).fixes.schema
        )
        fixes, rejects = (
            part.decoded.fixes.to_pylist(),
            part.decoded.rejects.to_pylist(),
        )
        for at in range(part.segments):
            mine = [
                row
                for row, place in zip(fixes, part.fix_at, strict=True)
                if place == at
            ]
            other = [
                row
                for row, place in zip(rejects, part.reject_at, strict=True)
                if place == at
            ]
            out.append((mine, other))
    return out


@pytest.mark.spec("S4", "P1")
@pytest.mark.parametrize("name", SETTINGS)
@tries(100)
@given(data=st.data())
def test_segments_decoded_together_are_what_each_is_by_itself(name, data):
    settings = SETTINGS[name]
    headers = (
        [()]
        if settings.format == "ndjson" or not settings.header
        else [(HEADER,)] * 5 + [(b"x,y,id,ts,n",), (b"id",), ()]
    )
    found = data.draw(segments(JSON if settings.format == "ndjson" else CSV, headers))
    parts = list(decode_all(found, settings))
    assert sum(part.segments for part in parts) == len(found)
    assert as_parts(parts, settings) == as_one(found, settings)
    alone = [decode(one.payload, settings, arrival_us=one.arrival_us) for one in found]
    assert sum(part.decoded.rows for part in parts) == sum(one.rows for one in alone)
    assert sum(sum(part.decoded.nulled.values()) for part in parts) == sum(
        sum(one.nulled.values()) for one in alone
    )


def test_segments_of_one_fix_are_one_part_and_what_is_out_of_shape_stands_alone():
    settings = SETTINGS["csv"]
    good, bad = b"id,ts,x,y,n\na,1,2,3,4\n", b"id,ts,x,y,n\na,1\n"
    found = [
        Raw(payload=bad if number == 70 else good, arrival_us=0)
        for number in range(100)
    ]
    sizes = [part.segments for part in decode_all(found, settings)]
    assert sum(sizes) == 100
    assert len(sizes) < 12
    assert [part.segments for part in decode_all(found[:70], settings)] == [70]


BUSES = stream(
    "gtfs-rt",
    columns=Columns(
        object="vehicle_id", event_ts="timestamp", x="longitude", y="latitude"
    ),
    attributes={"trip_id": "string", "speed": "double"},
    max_ahead_s=None,
)


def message(header_s, vehicles):
    """A FeedMessage; of a vehicle that says no time that of its header counts."""
    feed = pb.FeedMessage()
    feed.header.gtfs_realtime_version = "2.0"
    feed.header.timestamp = header_s
    for number, time_s in enumerate(vehicles):
        vehicle = feed.entity.add(id=str(number)).vehicle
        vehicle.vehicle.id, vehicle.trip.trip_id = "a" * (number + 1), "trip"
        vehicle.position.longitude, vehicle.position.latitude = 1.5, number + 0.5
        if time_s:
            vehicle.timestamp = time_s
    return feed.SerializeToString()


MESSAGES = st.builds(
    message,
    st.integers(1, 3).map(lambda day: day * 86_400),
    st.lists(st.sampled_from([0, 7]), max_size=3),
)
BROKEN = st.one_of(
    st.tuples(MESSAGES, st.integers(0, 60)).map(lambda m: m[0][: m[1]]),
    st.tuples(MESSAGES, st.integers(1, 20)).map(lambda m: m[0][m[1] :]),
    st.tuples(MESSAGES, st.binary(max_size=4)).map(b"".join),
    MESSAGES.map(gzip.compress),
)
"""Cut at either end, with noise behind it, or packed."""


@pytest.mark.spec("B7")
@tries(200)
@given(st.lists(st.one_of(MESSAGES, MESSAGES, MESSAGES, BROKEN), max_size=8))
def test_messages_of_gtfs_realtime_decoded_together_are_what_each_is_by_itself(some):
    found = [Raw(payload=payload, arrival_us=7) for payload in some]
    parts = list(decode_all(found, BUSES))
    assert as_parts(parts, BUSES) == as_one(found, BUSES)


def test_whole_messages_of_gtfs_realtime_are_decoded_by_one_call():
    found = [Raw(payload=message(86_400, [0, 7]), arrival_us=0) for _ in range(50)]
    assert [part.segments for part in decode_all(found, BUSES)] == [50]


SCHEMAS = (
    {"id": pa.string(), "ts": pa.int64(), "x": pa.float64(), "y": pa.float64()},
    {
        "id": pa.int32(),
        "ts": pa.timestamp("ms", "UTC"),
        "x": pa.int8(),
        "y": pa.string(),
        "n": pa.string(),
    },
    {
        "id": pa.dictionary(pa.int32(), pa.string()),
        "ts": pa.string(),
        "x": pa.float32(),
        "y": pa.float64(),
        "n": pa.list_(pa.int8()),
    },
)
VALUES = {
    pa.string(): st.sampled_from(["a", "b", " 7 ", "2024-01-01T00:00:00Z", "", None]),
    pa.int64(): st.sampled_from([0, 1, 7, 10**10, None]),
    pa.float64(): st.sampled_from([0.0, 1.5, float("nan"), 99999.0, None]),
    pa.int32(): st.sampled_from([1, 2, None]),
    pa.int8(): st.sampled_from([1, 2, None]),
    pa.timestamp("ms", "UTC"): st.sampled_from([0, 1_700_000_000_000, None]),
    pa.float32(): st.sampled_from([1.5, None]),
    pa.list_(pa.int8()): st.sampled_from([[1], [], None]),
}
VALUES[pa.dictionary(pa.int32(), pa.string())] = VALUES[pa.string()]


@st.composite
def bodies(draw):
    """A body of rows of Arrow; now and then cut, with noise behind it, packed, or a text."""
    schema = draw(st.sampled_from(SCHEMAS))
    count = draw(st.integers(0, 3))
    columns = {
        name: pa.array(
            draw(st.lists(VALUES[kind], min_size=count, max_size=count)), kind
        )
        for name, kind in schema.items()
    }
    body = b"".join(packed(pa.table(columns)))
    how = draw(st.integers(0, 11))
    cuts = {0: body[: draw(st.integers(0, 400))], 1: body + b"noise", 2: JSON[0]}
    return gzip.compress(body) if how == 3 else cuts.get(how, body)


@pytest.mark.spec("S4", "S8")
@pytest.mark.parametrize("name", ["csv", "ndjson", "csv ahead", "parquet"])
@tries(60)
@given(st.lists(bodies(), max_size=8))
def test_bodies_of_arrow_decoded_together_are_what_each_is_by_itself(name, some):
    settings = SETTINGS.get(name) or stream("parquet", time_unit="s", max_ahead_s=None)
    found = [
        Raw(payload=payload, arrival_us=10**9 + n) for n, payload in enumerate(some)
    ]
    parts = list(decode_all(found, settings))
    assert sum(part.segments for part in parts) == len(found)
    assert as_parts(parts, settings) == as_one(found, settings)


def test_small_bodies_of_arrow_are_decoded_by_one_call():
    rows = pa.table({"id": ["a"], "ts": [1], "x": [1.0], "y": [2.0]})
    found = [Raw(payload=b"".join(packed(rows)), arrival_us=0) for _ in range(50)]
    assert [one.segments for one in decode_all(found, SETTINGS["ndjson"])] == [50]
