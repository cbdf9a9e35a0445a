"""GTFS-realtime in JSON: the same fixes as from Protocol Buffers, with names of either kind, however it is cut."""

import json
from dataclasses import replace
from io import BytesIO

import pytest
from google.protobuf import json_format
from google.transit import gtfs_realtime_pb2 as pb
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.decode import Decoded, decode
from st_common.replay.chunks import chunks
from st_common.sources.framing import of_document
from tests.kit.effort import tries

pytestmark = pytest.mark.spec("B7")

BUSES = StreamSettings(
    name="buses",
    format="gtfs-rt",
    columns=Columns(
        object="vehicle_id", event_ts="timestamp", x="longitude", y="latitude"
    ),
    attributes={
        "id": "string",
        "trip_id": "string",
        "direction_id": "long",
        "bearing": "double",
        "speed": "double",
        "license_plate": "string",
        "current_stop_sequence": "long",
        "current_status": "string",
        "is_deleted": "bool",
    },
    max_ahead_s=None,
)


def told(*decoded: Decoded) -> list[tuple]:
    """Fixes and reasons in the order of their records, without the bytes."""
    rows = []
    for one in decoded:
        some = {row.pop("row"): row for row in one.fixes.to_pylist()}
        some |= {row["row"]: row["reason"] for row in one.rejects.to_pylist()}
        assert sorted(some) == list(range(one.rows))
        rows += [some[row] for row in range(one.rows)]
    return rows


def decoded_of(payload: bytes, stream: StreamSettings = BUSES) -> Decoded:
    return decode(payload, stream, arrival_us=0)


def cut(payload: bytes, draw) -> list[Decoded]:
    parts = []
    for chunk in chunks(BytesIO(payload), BUSES, size=0):
        count = len(chunk.spans)
        at = draw(count)
        parts += [
            decoded_of(chunk.payload(start, stop))
            for start, stop in ((0, at), (at, count))
            if start < stop
        ]
    return parts


WORDS = st.sampled_from(["", "7", 'tram "\u0101"', "\\1"])
DEGREES = st.integers(-800, 800).filter(bool).map(lambda quarters: quarters / 4)


@st.composite
def entities(draw: st.DrawFn) -> pb.FeedEntity:
    entity = pb.FeedEntity(id=draw(WORDS))
    if draw(st.integers(0, 5)) == 0:
        entity.is_deleted = draw(st.booleans())
        return entity
    vehicle = entity.vehicle
    vehicle.position.latitude, vehicle.position.longitude = draw(DEGREES), draw(DEGREES)
    vehicle.position.bearing = draw(DEGREES)
    vehicle.vehicle.id, vehicle.vehicle.license_plate = draw(WORDS), draw(WORDS)
    if draw(st.booleans()):
        vehicle.timestamp = draw(st.sampled_from([0, 1_700_000_000, 2**63]))
        vehicle.trip.trip_id, vehicle.trip.direction_id = draw(WORDS), 1
        vehicle.current_stop_sequence = 3
        vehicle.current_status = draw(st.integers(0, 2))
    return entity


@st.composite
def messages(draw: st.DrawFn) -> pb.FeedMessage:
    message = pb.FeedMessage()
    message.header.gtfs_realtime_version = "2.0"
    message.header.timestamp = draw(st.sampled_from([0, 1_700_000_009]))
    message.entity.extend(draw(st.lists(entities(), max_size=4)))
    return message


def as_json(message: pb.FeedMessage, *, snake: bool, indent: int | None) -> bytes:
    mapped = json_format.MessageToDict(message, preserving_proto_field_name=snake)
    return json.dumps(mapped, indent=indent).encode()


@tries(60)
@given(
    st.lists(messages(), min_size=1, max_size=3),
    st.booleans(),
    st.sampled_from([None, 2]),
    st.data(),
)
def test_the_json_of_messages_gives_what_their_bytes_give(several, snake, indent, data):
    binary = b"".join(message.SerializePartialToString() for message in several)
    texts = [as_json(message, snake=snake, indent=indent) for message in several]
    payload = b"\n".join(texts)
    expected = told(decoded_of(binary))
    assert told(decoded_of(payload)) == expected
    assert told(*cut(payload, lambda n: data.draw(st.integers(0, n)))) == expected
    arrivals = of_document(payload, BUSES)
    parts = [decoded_of(one.header + one.body) for one in arrivals]
    assert told(*parts) == expected


VEHICLE = {
    "trip": {"tripId": "t0"},
    "position": {"latitude": 53.4, "longitude": -2.9, "speed": 8.5},
    "timestamp": "1714550390",
    "vehicle": {"id": "bus0"},
}


def test_an_object_is_the_vehicle_and_times_are_texts_or_numbers():
    lacking = {key: value for key, value in VEHICLE.items() if key != "timestamp"}
    document = {
        "entity": [
            {"id": "1", "vehicle": VEHICLE},
            {"id": "2", "vehicle": {**VEHICLE, "timestamp": 1714550391}},
            {"id": "3", "vehicle": lacking},
            {"id": "4", "vehicle": {**VEHICLE, "timestamp": "noon"}},
            {"id": "5", "vehicle": {**VEHICLE, "vehicle": {}}},
            {"id": "6", "tripUpdate": {"trip": {"tripId": "t0"}}},
            {},
        ],
        "header": {"gtfsRealtimeVersion": "2.0", "timestamp": "1714550400"},
    }
    decoded = decoded_of(json.dumps(document).encode())
    assert decoded.fixes["object"].to_pylist() == ["bus0"] * 3
    seconds = [us // 1_000_000 for us in decoded.fixes["event_ts"].to_pylist()]
    assert seconds == [1714550390, 1714550391, 1714550400]
    assert decoded.fixes["speed"].to_pylist() == [8.5] * 3
    assert decoded.rejects["reason"].to_pylist() == [
        *("bad_time", "missing_object"),
        *("no_position", "no_position"),
    ]


@pytest.mark.parametrize(
    "feed",
    [
        b'{"header":{"gtfsRealtimeVersion":"2.0","timestamp":"1"}}',
        b'{"header":{"gtfsRealtimeVersion":"2.0"},"entity":[]}\n',
        b'{"header":{"timestamp":1}}\n{"header":{"timestamp":2}}\n',
        b'{\n  "header": {\n    "timestamp": "1"\n  }\n}\n',
    ],
)
def test_a_feed_with_a_header_alone_has_no_records(feed):
    assert decoded_of(feed).rows == 0
    assert list(chunks(BytesIO(feed), BUSES, size=0)) == []


def test_what_is_deleted_is_gone_where_the_settings_say_so():
    columns = replace(BUSES.columns, object="id", gone="is_deleted")
    feed = {"header": {}, "entity": [{"id": "7", "isDeleted": True}, {"id": "8"}]}
    header = {"timestamp": 1714550400}
    payload = json.dumps({**feed, "header": header}).encode()
    decoded = decoded_of(payload, replace(BUSES, columns=columns))
    assert decoded.fixes["gone"].to_pylist() == [True]
    assert decoded.rejects["reason"].to_pylist() == ["no_position"]


@given(st.binary(max_size=40), st.none() | messages(), st.data())
def test_any_bytes_are_fixes_or_rejects(noise, message, data):
    start = b"{" if message is None else as_json(message, snake=False, indent=None)
    at = data.draw(st.integers(0, len(start)))
    payload = start[:at] + noise + start[at:]
    decoded = decoded_of(payload)
    assert len(decoded.fixes) + len(decoded.rejects) == decoded.rows
    if payload.startswith(b"\x1f\x8b") or not payload:
        return
    assert told(*cut(payload, lambda n: n // 2)) == told(decoded)
