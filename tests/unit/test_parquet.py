"""Parquet as records: the same fixes as from text, by types; whatever breaks is a reject or a refusal."""

import gzip
import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pyproj
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.stream import StreamSettings
from st_common.config.streams import stream_of_table
from st_common.decode import decode
from st_common.detect.report import detect
from st_common.errors import ConfigError
from st_common.log.log import Log
from st_common.replay.chunks import chunks
from st_common.replay.files import replay
from st_common.replay.readable import refuse_unreadable
from tests.kit.effort import tries

NOW = 1_800_000_000_000_000


def stream(**table) -> StreamSettings:
    columns = table.pop(
        "columns", {"object": "id", "event_ts": "t", "x": "x", "y": "y"}
    )
    said = {"format": "parquet", "max_ahead_s": "off", **table, "columns": columns}
    return stream_of_table("s", said, Path("streams.toml"))


CARS = stream(
    attributes={"speed": "double m/s", "n": "long", "on": "bool", "who": "string"}
)


def written(rows: pa.Table, **options) -> bytes:
    sink = io.BytesIO()
    pq.write_table(rows, sink, **options)
    return sink.getvalue()


def replayed(
    content: bytes,
    settings: StreamSettings,
    *,
    apart: int = 1 << 30,
    size: int = 1 << 20,
):
    """The fixes, row by row without their places, and the reasons of all segments of a file."""
    fixes, reasons = [], []
    for chunk in chunks(io.BytesIO(content), settings, size=size):
        for start in range(0, len(chunk.spans), apart):
            stop = min(start + apart, len(chunk.spans))
            decoded = decode(chunk.payload(start, stop), settings, arrival_us=NOW)
            assert len(decoded.fixes) + len(decoded.rejects) == decoded.rows
            assert decoded.rows == stop - start
            fixes += decoded.fixes.drop_columns(["row"]).to_pylist()
            reasons += decoded.rejects["reason"].to_pylist()
    return fixes, reasons


@pytest.mark.spec("B7")
def test_people_of_beijing_are_the_same_as_text_as_columns_and_as_geoparquet(
    shared, tmp_path
):
    file = shared / "data" / "gps-geolife-beijing" / "geolife_sample.txt.gz"
    content = gzip.decompress(file.read_bytes())
    names = {"object": "uid", "event_ts": "datetime", "x": "lng", "y": "lat"}
    csv = stream(format="csv", columns=names)
    texts = decode(content, csv, arrival_us=NOW)
    assert len(texts.fixes) == 217_653
    keep_ids = arrow_csv.ConvertOptions(column_types={"uid": pa.string()})
    rows = arrow_csv.read_csv(io.BytesIO(content), convert_options=keep_ids)
    assert pa.types.is_timestamp(rows["datetime"].type)
    points = shapely.points(rows["lng"].to_numpy(), rows["lat"].to_numpy())
    geo = {"primary_column": "geometry", "columns": {"geometry": {"encoding": "WKB"}}}
    placed = pa.table(
        {
            "uid": rows["uid"],
            "datetime": rows["datetime"],
            "geometry": pa.array(shapely.to_wkb(points), pa.binary()),
        }
    ).replace_schema_metadata({"geo": json.dumps(geo)})
    of_places = {"object": "uid", "event_ts": "datetime", "place": "geometry"}
    for number, (table, settings) in enumerate(
        [(rows, stream(columns=names)), (placed, stream(columns=of_places))]
    ):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(table, path)
        refuse_unreadable(path, settings)
        log = Log(tmp_path / f"log{number}")
        report = replay(
            log,
            path,
            settings,
            as_they_stand=True,
            end_mark=False,
            segment_bytes=1 << 20,
        )
        assert report.records == 217_653
        assert report.segments > 3
        parts = [
            decode(log.read(segment), settings, arrival_us=NOW).fixes
            for segment in log.segments(0)
            if not segment.control
        ]
        found = pa.concat_tables(parts)
        for name in ("event_ts", "x", "y"):
            assert found[name].equals(texts.fixes[name])
        assert found["object"].to_pylist() == texts.fixes["object"].to_pylist()


ROWS = pa.table(
    {
        "id": pa.array([1, 2, None, 4, 5, 6], pa.int16()),
        "t": pa.array([1, 2, 3, None, 9_999_999_999, 6], pa.timestamp("s", "UTC")),
        "x": pa.array([1.5, np.nan, 3, 4, 5, 6], pa.float32()),
        "y": pa.array([1, 2, 3, 4, 5, 91], pa.uint8()),
        "speed": pa.array(["1.50", None, "2", "3", "4", "5"]).cast(pa.decimal128(5, 2)),
        "n": pa.array([2**63, 1, 2, 3, 4, 5], pa.uint64()),
        "on": pa.array([True, None, False, True, True, True]),
        "who": pa.array(["a", "b", None, "c", "d", "e"]).dictionary_encode(),
        "other": pa.array([[1], [], None, [2], [3], [4]]),
    }
)
FIX = {
    "object": "1",
    "event_ts": 1_000_000,
    "x": 1.5,
    "y": 1.0,
    "gone": False,
    "speed": 1.5,
    "n": None,
    "on": True,
    "who": "a",
}
REASONS = [
    "missing_position",
    "missing_object",
    "missing_time",
    "bad_time",
    "out_of_crs",
]


@pytest.mark.spec("B7")
@pytest.mark.parametrize("apart", [1, 2, 100])
def test_columns_of_any_type_are_a_fix_or_a_reject_with_its_reason(apart):
    assert replayed(written(ROWS), CARS, apart=apart) == ([FIX], REASONS)
    assert replayed(written(ROWS), CARS, size=1) == ([FIX], REASONS)


def test_a_whole_file_may_be_a_payload_and_what_rejects_held_is_kept():
    decoded = decode(written(ROWS, compression="zstd"), CARS, arrival_us=NOW)
    assert decoded.rejects["reason"].to_pylist() == REASONS
    assert json.loads(decoded.rejects["raw"][0].as_py())["who"] == "b"
    assert decoded.nulled == {"n": 1}


def test_columns_are_named_by_path_and_dates_may_stand_beside_times():
    rows = pa.table(
        {
            "car": [{"id": "a", "at": {"x": 1.0, "y": 2.0}}],
            "day": pa.array([1], pa.date32()),
            "time": pa.array([3_600_000], pa.time32("ms")),
        }
    )
    settings = stream(
        columns={
            "object": "car.id",
            "event_ts": ["day", "time"],
            "x": "car.at.x",
            "y": "car.at.y",
        }
    )
    fixes, reasons = replayed(written(rows), settings)
    assert reasons == []
    assert fixes[0]["event_ts"] == (86_400 + 3_600) * 1_000_000


def test_rows_that_lack_a_column_are_rejects_of_it():
    settings = stream(columns={"object": "id", "x": "lon", "y": "y"})
    assert replayed(written(ROWS), settings) == ([], ["missing_column"] * 6)


def test_a_geometry_that_is_no_point_is_a_reject():
    shapes = [shapely.Point(1, 2), shapely.LineString([(1, 2), (3, 4)]), None]
    wkb = [None if one is None else shapely.to_wkb(one) for one in shapes]
    rows = pa.table({"id": [*"abc"], "geom": pa.array(wkb, pa.binary())})
    settings = stream(columns={"object": "id", "place": "geom"}, nulls=["NA"])
    fixes, reasons = replayed(written(rows), settings)
    assert [(one["x"], one["y"]) for one in fixes] == [(1.0, 2.0)]
    assert reasons == ["no_point", "missing_position"]


def test_points_that_say_another_system_are_refused():
    about = {"encoding": "WKB", "crs": {"id": {"authority": "EPSG", "code": 25832}}}
    geo = {"primary_column": "geom", "columns": {"geom": about}}
    rows = pa.table({"id": ["a"], "geom": [shapely.to_wkb(shapely.Point(5e5, 5e6))]})
    content = written(rows.replace_schema_metadata({"geo": json.dumps(geo)}))
    columns = {"object": "id", "place": "geom"}
    with pytest.raises(ConfigError, match="in EPSG:25832, the stream's in EPSG:4326"):
        replayed(content, stream(columns=columns))
    fixes, _ = replayed(content, stream(columns=columns, crs="EPSG:25832"))
    assert fixes[0]["x"] == 5e5


def test_a_file_that_is_cut_is_refused_before_any_of_it_is_in_the_log(tmp_path):
    content = written(ROWS)
    path = tmp_path / "a.parquet"
    for cut in (0, 3, 50, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:cut])
        with pytest.raises(ConfigError, match="no whole Parquet file"):
            refuse_unreadable(path, CARS)
    packed = tmp_path / "b.parquet"
    packed.write_bytes(gzip.compress(content))
    with pytest.raises(ConfigError, match="5 of the 6 records"):
        refuse_unreadable(packed, CARS)


@pytest.mark.spec("B7")
@given(st.data())
@tries(60)
def test_whatever_the_bytes_are_all_of_them_are_accounted_for(data):
    segment = next(chunks(io.BytesIO(written(ROWS)), CARS, size=1 << 20)).payload(0, 6)
    whole = data.draw(st.sampled_from([written(ROWS), segment]))
    broken = bytearray(whole[: data.draw(st.integers(0, len(whole)))])
    for _ in range(data.draw(st.integers(0, 3))):
        if broken:
            place = data.draw(st.integers(0, len(broken) - 1))
            broken[place] = data.draw(st.integers(0, 255))
    decoded = decode(bytes(broken), CARS, arrival_us=NOW)
    assert len(decoded.fixes) + len(decoded.rejects) == decoded.rows
    assert (decoded.rows > 0) == bool(broken.strip(b"\xef\xbb\xbf \t\r\n"))
    noise = data.draw(st.binary(max_size=100))
    assert decode(noise, CARS, arrival_us=NOW).rows <= 1


def geo_file(path: Path, crs: object, x: float, y: float) -> Path:
    """A file with one geometry, in the system that its metadata say; `absent` says nothing."""
    about = {"encoding": "WKB", "geometry_types": ["Point"]}
    about |= {} if crs == "absent" else {"crs": crs}
    geo = {"version": "1.0.0", "primary_column": "pos", "columns": {"pos": about}}
    rows = pa.table(
        {
            "id": ["a", "b"],
            "t": pa.array([1_714_550_400_000_000] * 2, pa.timestamp("us", "UTC")),
            "pos": [shapely.to_wkb(shapely.Point(x, y))] * 2,
        }
    )
    pq.write_table(rows.replace_schema_metadata({"geo": json.dumps(geo)}), path)
    return path


TM35 = pyproj.CRS.from_epsg(3067).to_json_dict()
CRS84 = pyproj.CRS.from_string("OGC:CRS84").to_json_dict()


@pytest.mark.spec("B7")
@pytest.mark.parametrize(
    ("crs", "x", "y", "system"),
    [
        (TM35, 385_000.5, 6_672_000.5, "EPSG:3067"),
        (
            {k: v for k, v in TM35.items() if k != "id"},
            385_000.5,
            6_672_000.5,
            "EPSG:3067",
        ),
        (CRS84, 24.9, 60.1, None),
        (None, 24.9, 60.1, None),
        ("absent", 24.9, 60.1, None),
    ],
)
def test_check_takes_the_primary_geometry_and_its_system(tmp_path, crs, x, y, system):
    seen = detect(str(geo_file(tmp_path / "a.parquet", crs, x, y)))
    assert seen.table["columns"]["place"] == "pos"
    assert seen.table.get("crs") == system
    assert (seen.good, seen.fixes["x"][0].as_py(), seen.fixes["y"][0].as_py()) == (
        2,
        x,
        y,
    )


@pytest.mark.spec("B7")
@pytest.mark.parametrize("crs", [CRS84, "absent"])
def test_degrees_are_refused_by_a_stream_of_metres_also_where_the_file_does_not_say_them(
    tmp_path, crs
):
    path = geo_file(tmp_path / "a.parquet", crs, 24.9, 60.1)
    settings = stream(
        crs="EPSG:3067", columns={"object": "id", "event_ts": "t", "place": "pos"}
    )
    with path.open("rb") as file, pytest.raises(ConfigError) as error:
        list(chunks(file, settings, size=1 << 20))
    assert "are in EPSG:4326, the stream's in EPSG:3067" in error.value.message
