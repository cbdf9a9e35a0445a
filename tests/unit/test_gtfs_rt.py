"""GTFS-realtime: entities against the bindings of Google, and the real feeds with their known counts."""

import math
from collections import Counter
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from google.transit import gtfs_realtime_pb2 as pb
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.decode import Decoded, decode
from st_common.errors import ConfigError
from st_common.formats.registry import format_of
from st_common.log.log import Log
from st_common.rejects.mended import mended_in, named
from st_common.replay.chunks import chunks
from st_common.replay.files import replay
from st_common.replay.readable import refuse_unreadable

BUSES = StreamSettings(
    name="buses",
    format="gtfs-rt",
    columns=Columns(
        object="vehicle_id", event_ts="timestamp", x="longitude", y="latitude"
    ),
    attributes={
        "id": "string",
        "trip_id": "string",
        "route_id": "string",
        "direction_id": "long",
        "bearing": "double",
        "odometer": "double",
        "speed": "double",
        "label": "string",
        "stop_id": "string",
        "current_stop_sequence": "long",
        "current_status": "string",
        "occupancy_status": "string",
        "is_deleted": "bool",
    },
    max_ahead_s=None,
)


def decoded_of(payload: bytes, stream: StreamSettings = BUSES) -> Decoded:
    return decode(payload, stream, arrival_us=0)


def reasons(decoded: Decoded) -> Counter:
    return Counter(decoded.rejects["reason"].to_pylist())


def expected_of(message: pb.FeedMessage) -> list[tuple | str]:
    """By the bindings: the fix of each entity, or why it is none."""
    return [one_expected(entity, message) for entity in message.entity]


def one_expected(entity: pb.FeedEntity, message: pb.FeedMessage) -> tuple | str:
    vehicle = entity.vehicle
    seconds = vehicle.timestamp or message.header.timestamp
    place = vehicle.position
    x, y = place.longitude, place.latitude
    checks = {
        "no_position": not entity.HasField("vehicle"),
        "missing_object": not vehicle.vehicle.id.strip(),
        "missing_time": not seconds,
        "bad_time": seconds >= 7_258_118_400,
        "missing_position": math.isnan(x + y)
        or x == y == 0
        or not (place.HasField("longitude") and place.HasField("latitude")),
        "bad_number": math.isinf(x) or math.isinf(y),
        "out_of_crs": abs(x) > 180 or abs(y) > 90,
    }
    for reason, holds in checks.items():
        if holds:
            return reason
    return (vehicle.vehicle.id, seconds * 1_000_000, x, y, *said_of(entity))


def said_of(entity: pb.FeedEntity) -> tuple:
    vehicle = entity.vehicle
    trip, place = vehicle.trip, vehicle.position
    held = {
        "direction_id": trip,
        "bearing": place,
        "odometer": place,
        "speed": place,
        "current_stop_sequence": vehicle,
    }
    numbers = {
        name: getattr(of, name) if of.HasField(name) else None
        for name, of in held.items()
    }
    for name in ("bearing", "odometer", "speed"):
        value = numbers[name]
        if value is not None and not math.isfinite(value):
            numbers[name] = None
    if numbers["bearing"] is not None and not 0 <= numbers["bearing"] <= 360:
        numbers["bearing"] = None
    status = pb.VehiclePosition.VehicleStopStatus.Name(vehicle.current_status)
    fullness = pb.VehiclePosition.OccupancyStatus.Name(vehicle.occupancy_status)
    return (
        entity.id or None,
        trip.trip_id or None,
        trip.route_id or None,
        *numbers.values(),
        status if vehicle.HasField("current_status") else None,
        fullness if vehicle.HasField("occupancy_status") else None,
        vehicle.vehicle.label or None,
        vehicle.stop_id or None,
        entity.is_deleted if entity.HasField("is_deleted") else None,
    )


def found_of(decoded: Decoded) -> list[tuple | str]:
    order = [
        *("object", "event_ts", "x", "y", "id", "trip_id", "route_id", "direction_id"),
        *("bearing", "odometer", "speed", "current_stop_sequence", "current_status"),
        *("occupancy_status", "label", "stop_id", "is_deleted"),
    ]
    found = {
        row["row"]: tuple(row[name] for name in order)
        for row in decoded.fixes.to_pylist()
    }
    found |= {row["row"]: row["reason"] for row in decoded.rejects.to_pylist()}
    assert sorted(found) == list(range(decoded.rows))
    return [found[row] for row in range(decoded.rows)]


WORDS = st.sampled_from(["", "7", "tram \u0101", " "])
SECONDS = st.sampled_from([0, 1_700_000_000, 1_700_000_000_000, 2**63, 2**64 - 1])
DEGREES = st.floats(-200, 200, width=32) | st.sampled_from([0.0, math.nan, math.inf])


@st.composite
def entities(draw: st.DrawFn) -> pb.FeedEntity:
    entity = pb.FeedEntity(id=draw(WORDS))
    if draw(st.booleans()):
        entity.trip_update.trip.trip_id = draw(WORDS)
    if draw(st.integers(0, 9)) == 0:
        entity.is_deleted = draw(st.booleans())
        return entity
    vehicle = entity.vehicle
    setters = [
        lambda: setattr(vehicle.trip, "trip_id", draw(WORDS)),
        lambda: setattr(vehicle.trip, "direction_id", draw(st.integers(0, 300))),
        lambda: setattr(vehicle.trip, "route_id", draw(WORDS)),
        lambda: setattr(vehicle.position, "bearing", draw(DEGREES)),
        lambda: setattr(vehicle.position, "odometer", draw(st.floats())),
        lambda: setattr(vehicle.position, "speed", draw(DEGREES)),
        lambda: setattr(vehicle, "current_stop_sequence", draw(st.integers(0, 99))),
        lambda: setattr(vehicle, "current_status", draw(st.integers(0, 2))),
        lambda: setattr(vehicle, "stop_id", draw(WORDS)),
        lambda: setattr(vehicle, "timestamp", draw(SECONDS)),
        lambda: setattr(vehicle.vehicle, "label", draw(WORDS)),
        lambda: setattr(vehicle, "occupancy_status", draw(st.integers(0, 8))),
        lambda: vehicle.multi_carriage_details.add(id=draw(WORDS)),
    ]
    for setter in draw(st.lists(st.sampled_from(setters))):
        setter()
    for part in draw(st.sets(st.sampled_from(["latitude", "longitude"]), min_size=1)):
        setattr(vehicle.position, part, draw(DEGREES))
    vehicle.vehicle.id = draw(WORDS)
    vehicle.SetInParent()
    return entity


@st.composite
def messages(draw: st.DrawFn) -> pb.FeedMessage:
    message = pb.FeedMessage()
    message.header.gtfs_realtime_version = "2.0"
    message.header.timestamp = draw(SECONDS)
    message.entity.extend(draw(st.lists(entities(), max_size=5)))
    return message


@pytest.mark.spec("B7")
@given(st.lists(messages(), min_size=1, max_size=3))
def test_entities_are_what_the_bindings_read(several):
    payload = b"".join(message.SerializePartialToString() for message in several)
    expected = [each for message in several for each in expected_of(message)]
    assert found_of(decoded_of(payload)) == expected


@given(st.lists(messages(), min_size=1, max_size=3), st.data())
def test_a_source_that_is_cut_between_entities_gives_the_same(several, data):
    """Wherever a segment begins it has the header that holds for its entities; what breaks is one record."""
    payload = b"".join(message.SerializePartialToString() for message in several)
    payload += data.draw(st.sampled_from([b"", b"\x0b", b"\x12\x7fabc", b"\xff" * 12]))
    whole = found_of(decoded_of(payload))
    parted = []
    for chunk in chunks(BytesIO(payload), BUSES, size=0):
        count = len(chunk.spans)
        at = data.draw(st.integers(0, count))
        for start, stop in ((0, at), (at, count)):
            if start < stop:
                decoded = decoded_of(chunk.payload(start, stop))
                assert decoded.rows == stop - start
                parted += found_of(decoded)
                texts = chunk.spans.texts(4096).to_pylist()[start:stop]
                for row in decoded.rejects.to_pylist():
                    assert row["raw"] == texts[row["row"]]
    assert parted == whole


@given(st.binary(max_size=80), st.none() | messages(), st.data())
def test_any_bytes_are_fixes_or_rejects(noise, message, data):
    start = b"" if message is None else message.SerializePartialToString()
    at = data.draw(st.integers(0, len(start)))
    payload = start[:at] + noise + start[at:]
    decoded = decoded_of(payload)
    assert len(decoded.fixes) + len(decoded.rejects) == decoded.rows
    if payload.startswith(b"\x1f\x8b"):
        return  # packed
    rows = sum(len(chunk.spans) for chunk in chunks(BytesIO(payload), BUSES, size=0))
    assert rows == (decoded.rows if payload else 0)


KNOWN = {
    "gtfsrt-caltrain/ct-vehicle-positions.pb": (14, {}),
    "gtfsrt-caltrain/ct-trip-updates.pb": (0, {"no_position": 19}),
    "gtfsrt-kingcounty/king-county-metro-1.pb": (627, {}),
    "gtfsrt-kingcounty/king-county-metro-2.pb": (569, {"missing_position": 1}),
    "gtfsrt-kingcounty/king-county-metro-3.pb": (509, {"missing_position": 13}),
    "malformed/gtfsrt-jar/01-no-timestamps.pb": (0, {"no_position": 1}),
    "malformed/gtfsrt-jar/03-invalid-utf8.pb": (0, {"no_position": 1}),
    "malformed/gtfsrt-jar/04-combined-feed.pb": (1, {"no_position": 1}),
    "malformed/gtfsrt-jar/06-truncated.pb": (0, {"unreadable": 1}),
    "malformed/gtfsrt-jar/07-empty.pb": (0, {"unreadable": 1}),
}


@pytest.mark.spec("B7")
def test_real_feeds_have_their_known_counts(shared):
    for name, (fixes, rejects) in KNOWN.items():
        decoded = decoded_of((shared / "data" / name).read_bytes())
        assert (len(decoded.fixes), reasons(decoded)) == (fixes, rejects), name
    for kind, count in (("bus", 3768), ("tram", 845)):
        files = sorted((shared / "data/gtfsrt-krakow").glob(f"{kind}-*.pb"))
        together = decoded_of(b"".join(file.read_bytes() for file in files))
        assert (len(together.fixes), together.rows) == (count, count)


@pytest.mark.spec("B7")
def test_each_entity_of_files_that_are_meant_to_fail_is_accounted_for(shared):
    total, unreadable = Counter(), 0
    for path in sorted((shared / "data/malformed").glob("gtfsrt-*/**/*.pb")):
        message, payload = pb.FeedMessage(), path.read_bytes()
        decoded = decoded_of(payload)
        total += reasons(decoded)
        if total["unreadable"] > unreadable:
            unreadable += 1
            assert decoded.rows == 1
            continue
        message.ParseFromString(payload)
        assert found_of(decoded) == expected_of(message), path
    assert unreadable == 4
    assert total["out_of_crs"] == 1  # latitude 100; the bearing of 400 is null


@pytest.mark.parametrize(
    ("payload", "message", "hint"),
    [
        (b"", "is empty", "fetch it again"),
        (b"<html>", "mostly unreadable", "is no GTFS-realtime"),
        (None, "mostly no_position", "take that of vehicle positions"),
    ],
)
def test_a_file_of_something_else_is_refused_with_its_mend(
    tmp_path: Path, payload, message, hint
):
    other = pb.FeedMessage()
    other.header.gtfs_realtime_version = "2.0"
    other.entity.add(id="1").alert.SetInParent()
    path = tmp_path / "feed.pb"
    path.write_bytes(other.SerializeToString() if payload is None else payload)
    with pytest.raises(ConfigError, match=message) as refused:
        refuse_unreadable(path, BUSES)
    assert hint in (refused.value.hint or "")


def test_what_is_deleted_is_gone_where_the_settings_say_so():
    message = pb.FeedMessage()
    message.header.timestamp = 7
    message.entity.add(id="bus 1", is_deleted=True)
    columns = replace(BUSES.columns, object="id", gone="is_deleted")
    decoded = decoded_of(
        message.SerializePartialToString(), replace(BUSES, columns=columns)
    )
    (row,) = decoded.fixes.to_pylist()
    assert (row["object"], row["event_ts"], row["gone"]) == ("bus 1", 7_000_000, True)
    assert np.isnan(row["x"])


def test_rejected_entities_stand_alone_when_other_settings_can_read_them(tmp_path):
    """Of a log: they keep their header, and nothing comes between them, such as a line end."""
    message = pb.FeedMessage()
    message.header.timestamp = 7
    for name in ("", "7", ""):
        vehicle = message.entity.add(id=f"bus {name}").vehicle
        vehicle.position.latitude = vehicle.position.longitude = 1
        vehicle.vehicle.id = name
    path = tmp_path / "feed.pb"
    path.write_bytes(message.SerializePartialToString())
    log = Log(tmp_path / "log")
    replay(log, path, BUSES)
    segment = log.segment(0)
    rejects = decoded_of(log.read(segment)).rejects
    assert reasons(decoded_of(log.read(segment))) == {"missing_object": 2}
    numbers = pa.array([0] * len(rejects))
    wanted = named(rejects.append_column("segment", numbers))
    by_entity = replace(BUSES, columns=replace(BUSES.columns, object="id"))
    (mended,) = mended_in(log, segment, wanted, by_entity)
    decoded = decoded_of(mended.payload, by_entity)
    assert decoded.fixes["object"].to_pylist() == ["bus ", "bus "]
    assert decoded.fixes["event_ts"].to_pylist() == [7_000_000] * 2


def test_an_id_that_is_no_utf8_costs_its_own_entity():
    good, bad = pb.FeedMessage(), pb.FeedMessage()
    for message, name in ((good, "bus"), (bad, "b?s")):
        message.header.timestamp = 7
        entity = message.entity.add(id="1")
        entity.vehicle.position.latitude = entity.vehicle.position.longitude = 1
        entity.vehicle.vehicle.id = name
    payload = bad.SerializePartialToString().replace(b"b?s", b"b\xfcs")
    decoded = decoded_of(payload + good.SerializePartialToString())
    assert decoded.fixes["object"].to_pylist() == ["bus"]
    assert reasons(decoded) == {"bad_utf8": 1}


@pytest.mark.parametrize(
    "inside",
    [
        b"\x2a\x02\x0a\x7f",  # an alert whose period is longer than it
        b"\x1a\x01\x08",  # a trip update that ends in a tag
        b"\x22\x02\x0a\x7f",  # a trip that is longer than its vehicle
        b"\x22" + b"\xff" * 10,  # a size that never ends
        b"\x73" * 200 + b"\x74" * 200,  # groups in each other
        b"\x7a\x80\x80\x40" + bytes(1 << 20),  # more than 1 MiB
    ],
)
def test_an_entity_that_breaks_costs_itself_alone_and_keeps_its_bytes(inside):
    vehicle = pb.VehiclePosition()
    vehicle.position.latitude = vehicle.position.longitude = 1
    vehicle.vehicle.id, vehicle.timestamp = "bus", 7
    good = framed(0x12, framed(0x22, vehicle.SerializePartialToString()))
    bad = framed(0x12, inside)
    decoded = decoded_of(good + bad + good)
    assert decoded.fixes["row"].to_pylist() == [0, 2]
    assert decoded.rejects.select(["row", "reason", "raw"]).to_pylist() == [
        {"row": 1, "reason": "unreadable", "raw": bad[:4096]}
    ]


def framed(tag: int, body: bytes) -> bytes:
    size, left = b"", len(body)
    while left >= 0x80:
        size, left = size + bytes([left & 0x7F | 0x80]), left >> 7
    return bytes([tag]) + size + bytes([left]) + body


def test_a_message_that_comes_in_two_pieces_is_put_together():
    """As the specification of Protocol Buffers has it; an enumeration's unknown value leaves the one in front."""
    place, name, status = (pb.FeedEntity() for _ in range(3))
    place.id, place.vehicle.timestamp = "1", 7
    place.vehicle.position.latitude = place.vehicle.position.longitude = 1
    name.vehicle.vehicle.id = "bus"
    status.vehicle.current_status = 1
    pieces = [each.SerializePartialToString() for each in (place, name, status)]
    entity = b"".join(pieces) + b"\x22\x02\x20\x63"
    (fix,) = decoded_of(framed(0x12, entity)).fixes.to_pylist()
    assert (fix["object"], fix["x"], fix["current_status"]) == ("bus", 1, "STOPPED_AT")


def test_a_latitude_that_is_a_signalling_nan_is_missing():
    message = pb.FeedMessage()
    message.header.timestamp = 7
    vehicle = message.entity.add(id="1").vehicle
    vehicle.vehicle.id, vehicle.position.longitude = "bus", 1
    vehicle.position.latitude = 1.5
    payload = message.SerializePartialToString()
    payload = payload.replace(b"\x00\x00\xc0\x3f", b"\x01\x00\x80\x7f")
    assert reasons(decoded_of(payload)) == {"missing_position": 1}


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"x": "lon"}, "'lon'"),
        ({"event_ts": "time"}, "'time'"),
        ({"object": "vehicle"}, "'vehicle' is no column"),
    ],
)
def test_columns_that_no_entity_has_are_refused(columns, named):
    stream = replace(BUSES, columns=replace(BUSES.columns, **columns))
    wrong, _ = format_of("gtfs-rt").wrong_in(stream)
    assert named in wrong
    assert format_of("gtfs-rt").wrong_in(BUSES) is None
