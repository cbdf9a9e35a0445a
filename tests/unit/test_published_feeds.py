"""Feeds of sharing systems and phones, as they are published: found by check, and read by the settings of the docs."""

import json
import re
from pathlib import Path

import pytest

from st_common.config.stream import StreamSettings
from st_common.config.streams import load_streams
from st_common.decode import decode
from st_common.detect.report import detect
from st_common.replay.chunks import chunks

pytestmark = pytest.mark.spec("X15")

PAGE = Path(__file__).parents[2] / "docs" / "file-formats.md"
MS = 1_714_550_300_000
BIKES = [
    {"bike_id": "b1", "lat": 60.17, "lon": 24.94, "is_reserved": False},
    {"bike_id": "b2", "lat": 60.18, "lon": 24.95, "is_reserved": True},
]
SCOOTERS = [
    {
        "device_id": f"d{number}",
        "provider_id": "p",
        "current_location": {"lat": 60.17, "lng": 24.94 + number / 100},
        "last_event_time": MS + 1000 * number,
        "last_vehicle_state": "available",
    }
    for number in range(2)
]


def feature(clock: str, place: list[float], device: str) -> dict:
    return {
        "type": "Feature",
        "geometry": {"type": "Point", "coordinates": place},
        "properties": {"timestamp": clock, "device_id": device, "speed": 4},
    }


FEEDS = {
    "bikes": {
        "last_updated": 1714550400,
        "ttl": 60,
        "data": {"bikes": [{**one, "last_reported": 1714550300} for one in BIKES]},
    },
    "bikes_of_the_feed": {"last_updated": 1714550400, "data": {"bikes": BIKES}},
    "vehicles": {
        "last_updated": "2024-05-01T08:00:00Z",
        "version": "3.0",
        "data": {
            "vehicles": [
                {
                    "vehicle_id": one["bike_id"],
                    "lat": one["lat"],
                    "lon": one["lon"],
                    "last_reported": "2024-05-01T09:58:20+02:00",
                }
                for one in BIKES
            ]
        },
    },
    "scooters": {
        "version": "2.0.0",
        "last_updated": MS,
        "ttl": 1,
        "vehicles": SCOOTERS,
    },
    "telemetry": {
        "version": "2.0.0",
        "telemetry": [
            {
                "device_id": "d1",
                "telemetry_id": f"t{number}",
                "timestamp": MS,
                "location": {"lat": 60.17, "lng": 24.94},
            }
            for number in range(2)
        ],
    },
    "phone": {
        "locations": [
            feature("2024-05-01T00:58:20-0700", [24.94, 60.17], "phone1"),
            feature("2024-05-01T00:58:30-0700", [24.95, 60.18], "phone1"),
        ],
        "current": feature("2024-05-01T00:58:40-0700", [1, 2], "phone1"),
        "trip": {"start": "2024-05-01T00:00:00-0700"},
    },
}


def settings(tmp_path: Path) -> dict[str, StreamSettings]:
    """The streams of the section on such feeds."""
    page = PAGE.read_text(encoding="utf-8")
    section = page.partition("### Feeds of bicycles, scooters and phones")[2].partition(
        "\n### "
    )[0]
    path = tmp_path / "streams.toml"
    path.write_text(
        "".join(re.findall(r"```toml\n(.*?)```", section, re.DOTALL)), "utf-8"
    )
    streams = load_streams(path)
    assert streams.broken == {}
    return dict(streams.items())


@pytest.mark.parametrize("name", list(FEEDS))
@pytest.mark.parametrize("indent", [None, 2])
def test_the_settings_of_the_docs_read_the_feed(name, indent, tmp_path):
    stream = settings(tmp_path)[name]
    path = tmp_path / "feed.json"
    path.write_text(json.dumps(FEEDS[name], indent=indent), "utf-8")
    with path.open("rb") as file:
        (chunk,) = chunks(file, stream, size=0)
    decoded = decode(chunk.payload(0, len(chunk.spans)), stream, arrival_us=MS * 2000)
    assert (len(decoded.fixes), len(decoded.rejects)) == (2, 0)
    first = decoded.fixes.to_pylist()[0]
    seconds = 1714550400 if name == "bikes_of_the_feed" else 1714550300
    assert (first["x"], first["y"], first["event_ts"]) == (
        24.94,
        60.17,
        seconds * 1_000_000,
    )
    assert first["object"] in ("b1", "d0", "d1", "phone1")


@pytest.mark.parametrize(
    "name", [name for name in FEEDS if name != "bikes_of_the_feed"]
)
@pytest.mark.parametrize("indent", [None, 2])
def test_check_finds_the_columns_of_the_feed(name, indent, tmp_path):
    stream = settings(tmp_path)[name]
    path = tmp_path / "feed.json"
    path.write_text(json.dumps(FEEDS[name], indent=indent), "utf-8")
    seen = detect(str(path))
    assert (seen.records, seen.good) == (2, 2)
    assert seen.table["format"] == stream.format
    assert seen.table.get("records") == stream.records
    columns = seen.table["columns"]
    assert columns["object"] == stream.columns.object
    assert columns["event_ts"] == stream.columns.event_ts


def test_an_overland_batch_without_locations_has_no_records(tmp_path):
    stream = settings(tmp_path)["phone"]
    path = tmp_path / "feed.json"
    path.write_text('{"locations": []}', "utf-8")
    with path.open("rb") as file:
        assert list(chunks(file, stream, size=0)) == []
