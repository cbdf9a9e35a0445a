"""Files that are known and that no stream reads are named, with the command that makes fixes of them."""

import json
import re
import shlex
import subprocess
import sys

import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pytest

from st_common.detect.report import detect
from st_common.errors import ConfigError

pytestmark = pytest.mark.spec("B6")


@pytest.mark.parametrize(
    ("content", "what", "command"),
    [
        (b"PK\x03\x04\x14\0\x06\0\x08\0\0\0!\0" + b"\0" * 12 + b"\x13\0\0\0[Content_Types].xml", "Excel", "read_excel"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "old Excel", "read_excel"),
        (b"\x0e\x10\x43\x08\x30\0\0\0.FIT" + b"\0" * 60, "FIT", "gpsbabel -t -i garmin_fit"),
        (b'<?xml version="1.0"?>\n<TrainingCenterDatabase>', "TCX", "gpsbabel -t -i gtrnctr"),
        (b'<?xml version="1.0"?>\n<kml xmlns="..">', "KML", "fairway layer load"),
        (b"<!DOCTYPE html><html>", "HTML", "browser"),
        (b"SQLite format 3\0" + b"\0" * 90, "GeoPackage", "ogr2ogr"),
        (b"BZh91AY&SY" + b"\0" * 90, "bzip2", "bzip2 -dk"),
    ],
)  # fmt: skip
def test_a_known_file_is_named_with_its_command(tmp_path, content, what, command):
    path = tmp_path / "file.bin"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=what) as wrong:
        detect(str(path))
    assert command in str(wrong.value.hint)
    assert "no stream reads that" in wrong.value.message


@pytest.mark.parametrize("module", ["feather", "orc"])
def test_the_command_makes_a_file_that_is_read(tmp_path, module):
    path = tmp_path / f"fixes.{module}"
    table = pa.table({"id": ["a"], "t": [1_700_000_000], "lon": [10.0], "lat": [50.0]})
    write = {"feather": pa.feather.write_feather, "orc": pa.orc.write_table}[module]
    write(table, str(path))
    with pytest.raises(ConfigError, match="no stream reads that") as wrong:
        detect(str(path))
    _, *command = shlex.split(str(wrong.value.hint))
    subprocess.run([sys.executable, *command], check=True)
    assert detect(str(tmp_path / "fixes.parquet")).good == 1


def test_trips_with_all_their_points_in_one_column_are_refused(tmp_path):
    path = tmp_path / "trips.csv"
    path.write_text(
        "TRIP_ID,TIMESTAMP,POLYLINE\n"
        'T1,1372636858,"[[-8.618643,41.141412],[-8.618499,41.141376]]"\n'
    )
    with pytest.raises(ConfigError, match="POLYLINE holds the points of a whole trip") as wrong:  # fmt: skip
        detect(str(path))
    command = re.sub("(?s).*python -c ", "", str(wrong.value.hint))
    for name, column in (("[ID]", "['TRIP_ID']"), ("[TIME]", "['TIMESTAMP']"), ("FILE", str(path))):  # fmt: skip
        command = command.replace(name, column)
    (program,) = shlex.split(command)
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)  # fmt: skip
    fixes = tmp_path / "fixes.csv"
    fixes.write_bytes(done.stdout)
    seen = detect(str(fixes))
    assert (seen.good, seen.table["columns"]["x"]) == (2, "lon")


PAIRS = [[24.9, 60.1], [24.91, 60.11], [24.92, 60.12]]
SPOTS = [
    {"lat": y, "lng": x, "ts": 1_764_000_000 + n} for n, (x, y) in enumerate(PAIRS)
]


@pytest.mark.parametrize("as_array", [True, False], ids=["array", "lines"])
@pytest.mark.parametrize(
    ("inside", "path"),
    [
        ({"path": PAIRS}, "path"),
        ({"route": {"points": PAIRS}}, "route.points"),
        (
            {"geometry": {"type": "LineString", "coordinates": PAIRS}},
            "geometry.coordinates",
        ),
        ({"trip": {"track": SPOTS}}, "trip.track"),
    ],
    ids=["path", "deeper", "line", "objects"],
)
@pytest.mark.parametrize(
    "start", [1_764_000_000, "2025-11-24T16:00:00Z"], ids=["s", "iso"]
)
def test_records_with_a_list_of_points_are_named_with_the_command_that_makes_fixes(
    tmp_path, inside, path, start, as_array
):
    records = [
        {"vehicle": name, "start_time": start, **inside} for name in ("v1", "v2")
    ]
    file = tmp_path / "trips.json"
    lines = [json.dumps(one) for one in records]
    file.write_text(json.dumps(records) if as_array else "\n".join(lines))
    with pytest.raises(
        ConfigError, match=f": {path} holds the points of a whole trip"
    ) as wrong:
        detect(str(file))
    (program,) = shlex.split(re.sub("(?s).*python -c ", "", str(wrong.value.hint)))
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True
    )
    fixes = tmp_path / "fixes.csv"
    fixes.write_bytes(done.stdout)
    seen = detect(str(fixes))
    assert (seen.good, seen.table["columns"]["x"]) == (6, "lon")
    assert seen.fixes["x"].to_pylist()[:3] == [x for x, _ in PAIRS]
    assert seen.fixes["event_ts"][0].as_py() == 1_764_000_000_000_000


@pytest.mark.parametrize(
    ("begin", "end"), [("from", "to"), ("origin", "destination"), ("pickup", "dropoff")]
)
def test_objects_with_two_places_inside_are_refused(tmp_path, begin, end):
    file = tmp_path / "trips.json"
    one = {"id": "a", "started_at": "2025-11-24T08:00:00Z"}
    spot = {"lat": 60.1, "lng": 24.9}
    file.write_text(
        "\n".join(json.dumps({**one, begin: spot, end: spot}) for _ in range(3))
    )
    with pytest.raises(ConfigError, match="each record has two places"):
        detect(str(file))


def test_a_record_with_a_place_and_the_way_there_is_a_fix(tmp_path):
    file = tmp_path / "fixes.json"
    one = {
        "id": "a",
        "time": "2025-11-24T08:00:00Z",
        "lat": 60.1,
        "lon": 24.9,
        "path": PAIRS,
    }
    file.write_text("\n".join(json.dumps({**one, "id": name}) for name in "aba"))
    assert detect(str(file)).good == 3


@pytest.mark.parametrize(
    "table",
    [
        {"a": {"t": 1_764_000_000, "lon": 24.9, "lat": 60.1}, "b": {"t": 1_764_000_001, "lon": 24.8, "lat": 60.2}},
        {"id": ["a", "b"], "t": [1_764_000_000, 1_764_000_001], "lon": [24.9, 24.8], "lat": [60.1, 60.2]},
        {"columns": ["id", "t", "lon", "lat"], "index": [0, 1],
         "data": [["a", 1_764_000_000, 24.9, 60.1], ["b", 1_764_000_001, 24.8, 60.2]]},
    ],
    ids=["objects by id", "columns", "split"],
)  # fmt: skip
def test_a_table_in_a_json_document_is_named_with_the_command_that_makes_records(
    tmp_path, table, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "table.json"
    file.write_text(json.dumps(table))
    with pytest.raises(ConfigError, match="and no list of records") as wrong:
        detect("table.json")
    _, *command = shlex.split(str(wrong.value.hint))
    subprocess.run([sys.executable, *command], check=True)
    seen = detect("table.ndjson")
    assert (seen.good, seen.fixes["object"].to_pylist()) == (2, ["a", "b"])


def test_a_stream_of_arrow_is_named_with_its_command(tmp_path):
    path = tmp_path / "fixes.arrows"
    table = pa.table({"id": ["a"], "t": [1_764_000_000], "lon": [10.0], "lat": [50.0]})
    with (
        pa.OSFile(str(path), "wb") as file,
        pa.ipc.new_stream(file, table.schema) as writer,
    ):
        writer.write_table(table)
    with pytest.raises(ConfigError, match="a stream of Arrow") as wrong:
        detect(str(path))
    _, *command = shlex.split(str(wrong.value.hint))
    subprocess.run([sys.executable, *command], check=True)
    assert detect(str(tmp_path / "fixes.parquet")).good == 1


@pytest.mark.parametrize("quoted", [True, False], ids=["quoted", "plain"])
def test_a_huge_field_is_no_end_of_check(tmp_path, quoted):
    path = tmp_path / "fixes.csv"
    rows = [f"v{n % 2},2025-11-24T08:00:0{n}Z,24.{n},60.1,x" for n in range(8)]
    note = "y" * 200_000
    rows[3] = rows[3][:-1] + (f'"{note}"' if quoted else note)
    path.write_text("\n".join(["id,time,lon,lat,note", *rows]))
    assert detect(str(path)).good == 8


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000], ids=["lists", "objects"]
)
def test_json_that_is_deep_beyond_reason_is_refused_in_a_line(tmp_path, text):
    path = tmp_path / "deep.json"
    path.write_text(text)
    with pytest.raises(ConfigError):
        detect(str(path))
