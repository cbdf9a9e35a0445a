"""OwnTracks, Traccar and readsb: values that are known by hand, any bytes, and any cut."""

import json
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.stream import StreamSettings
from st_common.config.streams import stream_of_table
from st_common.decode import Decoded, decode
from st_common.decode.batch import Raw, decode_all
from st_common.detect.report import detect
from st_common.replay.chunks import chunks
from st_common.sources.framing import of_document, of_message
from tests.kit.effort import tries

pytestmark = pytest.mark.spec("B7")

TABLES = {
    "owntracks": {
        "columns": {"object": "device_id", "event_ts": "tst"},
        "attributes": {"acc": "double m", "batt": "double", "vel": "double km/h"},
    },
    "traccar": {
        "columns": {
            "object": "deviceId",
            "event_ts": "fixTime",
            "ignition": "attributes.ignition",
        },
        "attributes": {"speed": "double knots", "ignition": "bool", "name": "string"},
    },
    "readsb": {
        "columns": {"object": "hex", "event_ts": "time"},
        "attributes": {
            "flight": "string",
            "alt_baro": "double ft",
            "on_ground": "bool",
            "gs": "double knots",
        },
    },
}


def stream_of(name: str) -> StreamSettings:
    table = {"format": name, "max_ahead_s": "off", **TABLES[name]}
    return stream_of_table("s", table, Path("streams.toml"))


STREAMS = {name: stream_of(name) for name in TABLES}


def decoded_of(records: object, name: str) -> Decoded:
    payload = records if isinstance(records, bytes) else json.dumps(records).encode()
    decoded = decode(payload, STREAMS[name], arrival_us=0)
    assert len(decoded.fixes) + len(decoded.rejects) == decoded.rows
    return decoded


def fixes(decoded: Decoded, *names: str) -> list[tuple]:
    """The fixes; times in seconds."""
    return [
        (
            row["object"],
            row["event_ts"] / 1e6,
            row["x"],
            row["y"],
            *(row[n] for n in names),
        )
        for row in decoded.fixes.to_pylist()
    ]


def reasons(decoded: Decoded) -> list[str]:
    return decoded.rejects["reason"].to_pylist()


PHONE = {
    "_type": "location",
    "topic": "owntracks/ana/phone",
    "tid": "ap",
    "tst": 1_700_000_000,
    "lat": 52.52,
    "lon": 13.4,
    "acc": 12,
    "batt": 81,
    "vel": 36,
}


def lines(*records: object) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def test_only_locations_of_owntracks_move_anyone():
    waypoint = {
        "_type": "waypoint",
        "tst": 1,
        "lat": 60.1,
        "lon": 24.9,
        "desc": "cabin",
    }
    transition = {
        **PHONE,
        "_type": "transition",
        "event": "enter",
        "tst": 1_700_000_060,
    }
    no_topic = {k: v for k, v in PHONE.items() if k != "topic"}
    beside = [{"_type": "lwt", "tst": 1}, {"_type": "encrypted", "data": "x"}, {}]
    decoded = decoded_of(
        lines(waypoint, PHONE, transition, no_topic, *beside), "owntracks"
    )
    place = (1_700_000_000, 13.4, 52.52, 12, 81, 36)
    assert fixes(decoded, "acc", "batt", "vel") == [
        ("owntracks/ana/phone", *place),
        ("ap", *place),
    ]
    assert reasons(decoded) == ["no_position"] * 5


def test_files_of_the_owntracks_recorder_are_read_by_their_json():
    text = json.dumps(PHONE)
    recorded = (
        f"2023-11-14T22:13:20Z\t*                 \t{text}\n"
        f"2023-11-14T22:13:30Z\twaypoint          \t{json.dumps({**PHONE, '_type': 'waypoint'})}\n"
        "2023-11-14T22:13:40Z\tlwt               \t{}\n"
        "nonsense\n"
    )
    decoded = decoded_of(recorded.encode(), "owntracks")
    assert fixes(decoded) == [("owntracks/ana/phone", 1_700_000_000, 13.4, 52.52)]
    assert reasons(decoded)[0] == "no_position"
    assert reasons(decoded)[-1] == "no_json_object"
    raw = decoded.rejects["raw"].to_pylist()
    assert raw == [line.encode() for line in recorded.splitlines()[1:]]


def test_what_the_owntracks_recorder_answers_is_a_list_in_a_document(tmp_path):
    answer = tmp_path / "locations.json"
    answer.write_text(
        json.dumps({"count": 2, "data": [PHONE, PHONE]}, indent=1), "utf-8"
    )
    seen = detect(str(answer))
    assert (seen.table["format"], seen.records, seen.good) == ("owntracks", 2, 2)


VAN = {
    "id": 11,
    "deviceId": 7,
    "fixTime": "2026-05-01T08:00:00.000+00:00",
    "serverTime": "2026-05-01T08:00:01.000+00:00",
    "latitude": 52.5,
    "longitude": 13.4,
    "valid": True,
    "outdated": False,
    "speed": 10.5,
    "attributes": {"ignition": True},
}
EIGHT = 1_777_622_400


def test_positions_of_traccar_are_fixes_that_its_devices_call_valid():
    later = {**VAN, "fixTime": "2026-05-01T10:00:10Z", "attributes": {}}
    invalid = {**VAN, "valid": False, "latitude": 0.0, "longitude": 0.0}
    decoded = decoded_of([VAN, later, invalid, {**VAN, "outdated": True}], "traccar")
    assert fixes(decoded, "speed", "ignition") == [
        ("7", EIGHT, 13.4, 52.5, 10.5, True),
        ("7", EIGHT + 7210, 13.4, 52.5, 10.5, None),
    ]
    assert reasons(decoded) == ["no_position"] * 2


@pytest.mark.parametrize(
    "records",
    [
        [VAN],
        {"positions": [VAN]},
        {"position": VAN, "device": {"id": 7, "name": "Van 7"}},
        {
            "position": {**VAN, "fixTime": EIGHT * 1000},
            "device": {"id": 7, "name": "Van 7"},
        },
    ],
)
def test_traccar_gives_the_same_fix_however_it_says_it(records):
    decoded = decoded_of(records, "traccar")
    assert fixes(decoded, "speed", "ignition") == [("7", EIGHT, 13.4, 52.5, 10.5, True)]
    name = "Van 7" if "device" in records else None
    assert decoded.fixes["name"].to_pylist() == [name]


def test_what_traccar_says_beside_positions_is_no_position():
    decoded = decoded_of(
        lines({"devices": [{"id": 7}]}, {"event": {"deviceId": 7}}), "traccar"
    )
    assert reasons(decoded) == ["no_position"] * 2


PLANE = {
    "hex": "3c0001",
    "flight": "TST101  ",
    "alt_baro": 37000,
    "lat": 41.98,
    "lon": -71.98,
}
PARKED = {"hex": "3c0002", "alt_baro": "ground", "lat": 41.72, "lon": -71.43}


@pytest.mark.parametrize(
    "document",
    [
        {"now": 1753571941.0, "aircraft": "LIST"},
        {"now": 1753571941000, "ac": "LIST", "total": 2},
        {"aircraft": "LIST", "messages": 1, "now": 1753571941.0},
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_the_time_of_an_aircraft_is_that_of_the_document_less_its_age(document, indent):
    aircraft = [{**PLANE, "seen_pos": 6.0}, {**PARKED, "seen_pos": 53.2}, {"hex": "4b"}]
    text = json.dumps(
        {
            key: aircraft if value == "LIST" else value
            for key, value in document.items()
        },
        indent=indent,
    )
    decoded = decoded_of(text.encode(), "readsb")
    assert fixes(decoded, "flight", "alt_baro", "on_ground") == [
        ("3c0001", 1753571935.0, -71.98, 41.98, "TST101", 37000.0, False),
        ("3c0002", 1753571887.8, -71.43, 41.72, None, None, True),
    ]
    assert reasons(decoded) == ["no_position"]


def test_a_trace_of_one_aircraft_is_read_row_by_row():
    rows = [
        [
            0.0,
            47.1,
            8.2,
            "ground",
            12.0,
            90.0,
            0,
            None,
            {"flight": "SWR12   "},
            "adsb_icao",
        ],
        [6.5, 47.2, 8.3, 1200, 140.5, 91.0, 0, 640, None, "adsb_icao"],
        [7.5, None, None, 1300, 141.5, 91.0, 0, 640, None, "adsb_icao"],
    ]
    trace = {
        "icao": "3c0001",
        "r": "D-ABCD",
        "timestamp": 1663259853.016,
        "trace": rows,
    }
    decoded = decoded_of(trace, "readsb")
    assert fixes(decoded, "flight", "alt_baro", "on_ground", "gs") == [
        ("3c0001", 1663259853.016, 8.2, 47.1, "SWR12", None, True, 12.0),
        ("3c0001", 1663259859.516, 8.3, 47.2, None, 1200.0, False, 140.5),
    ]
    assert reasons(decoded) == ["no_position"]


def test_an_aircraft_of_a_document_without_a_time_has_none():
    decoded = decoded_of({"aircraft": [PLANE], "now": None}, "readsb")
    assert reasons(decoded) == ["missing_time"]


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("readsb", b'{"now":1753571941.0,"messages":0,"aircraft":[]}'),
        ("readsb", b'{"now":1753571941.0,"ac":null}'),
        ("traccar", b"[]"),
        ("traccar", b'{"positions":[]}'),
        ("owntracks", b'{"count":0,"data":[]}'),
    ],
)
def test_a_document_without_records_has_none(name, document):
    assert list(chunks(BytesIO(document), STREAMS[name], size=0)) == []


SOME = {
    "owntracks": [
        PHONE,
        {**PHONE, "_type": "waypoint"},
        {"_type": "lwt"},
        {"_type": "location"},
    ],
    "traccar": [VAN, {**VAN, "valid": False}, {"position": VAN}, {}],
    "readsb": [{**PLANE, "seen_pos": 1.5}, PARKED, {"hex": "x{]"}, {}],
}


def document_of(name: str, some: list, wrapped: int) -> bytes:
    """Records as lines, an array, or documents."""
    if wrapped == 0:
        return lines(*some)
    if wrapped == 1:
        return json.dumps(some).encode()
    key = {"owntracks": "data", "traccar": "positions", "readsb": "aircraft"}[name]
    one = json.dumps(
        {"now": 1753571941.5, key: some}, indent=2 if wrapped == 3 else None
    )
    return f"{one}\n{one}".encode()


def told(parts: list[Decoded]) -> list:
    rows = []
    for part in parts:
        known = {row.pop("row"): row for row in part.fixes.to_pylist()}
        known |= {
            row["row"]: (row["reason"], row["raw"]) for row in part.rejects.to_pylist()
        }
        rows += [known[row] for row in range(part.rows)]
    return rows


@tries(60)
@given(st.sampled_from(list(SOME)), st.integers(0, 3), st.data())
def test_chunks_of_any_size_and_messages_joined_give_the_same(name, wrapped, data):
    some = data.draw(st.lists(st.sampled_from(SOME[name]), max_size=8))
    document, stream = document_of(name, some, wrapped), STREAMS[name]
    payloads = []
    for chunk in chunks(BytesIO(document), stream, size=0):
        count = len(chunk.spans)
        at = data.draw(st.integers(0, count))
        borders = ((0, at), (at, count))
        payloads += [chunk.payload(a, b) for a, b in borders if a < b]
    parts = [decode(payload, stream, arrival_us=0) for payload in payloads]
    one_by_one = [one.header + one.body for one in of_document(document, stream)]
    assert told(parts) == told([decode(p, stream, arrival_us=0) for p in one_by_one])
    joined = decode_all([Raw(payload=p, arrival_us=0) for p in payloads], stream)
    assert sum(len(part.decoded.fixes) for part in joined) == sum(
        len(part.fixes) for part in parts
    )
    copies = 2 if wrapped > 1 else 1
    assert sum(part.rows for part in parts) == copies * len(some)


@tries(100)
@given(
    st.sampled_from(list(SOME)), st.integers(0, 3), st.binary(max_size=20), st.data()
)
def test_any_bytes_are_fixes_or_rejects(name, wrapped, noise, data):
    start, stream = document_of(name, SOME[name], wrapped), STREAMS[name]
    at = data.draw(st.integers(0, len(start)))
    payload = start[:at] + noise + start[data.draw(st.integers(at, len(start))) :]
    if payload.startswith(b"\x1f\x8b"):
        return
    whole = decode(payload, stream, arrival_us=0)
    assert len(whole.fixes) + len(whole.rejects) == whole.rows
    parts = [
        decode(chunk.payload(0, len(chunk.spans)), stream, arrival_us=0)
        for chunk in chunks(BytesIO(payload), stream, size=0)
    ]
    assert sum(part.rows for part in parts) == sum(
        one.records for one in of_document(payload, stream)
    )
    for one in of_message(payload, stream):
        decode(one.header + one.body, stream, arrival_us=0)


@pytest.mark.parametrize("wrapped", [0, 1, 2, 3])
@pytest.mark.parametrize("name", list(SOME))
def test_check_names_the_format_whatever_stands_around_the_records(
    name, wrapped, tmp_path
):
    path = tmp_path / "feed.json"
    path.write_bytes(document_of(name, SOME[name], wrapped))
    if name == "readsb" and wrapped < 2:
        return  # an aircraft alone has no time
    seen = detect(str(path))
    assert seen.table["format"] == name
    assert seen.good > 0
