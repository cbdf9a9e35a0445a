"""Layers of GIS files: the same features as GeoJSON gives, in the system of the streams, and all accounted for."""

import contextlib
import gzip
import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio
import pyproj
import pytest
import shapely
from typer.testing import CliRunner

from st_common import tables
from st_common.cli import app
from st_common.config.home import Home
from st_common.errors import ConfigError, LayerError
from st_common.layers.kinds import Kinds, load_kinds
from st_common.layers.options import FileOptions
from st_common.layers.reading import Wanted, read_features

NONE = Kinds(())
WRITTEN_BY = {
    "layer.shp": "ESRI Shapefile",
    "layer.gpkg": "GPKG",
    "layer.fgb": "FlatGeobuf",
}
SQUARE = shapely.box(10, 50, 11, 51)
UTM = "EPSG:25832"


def write(file: Path, geometries, *, crs: str | None = "EPSG:4326", **columns) -> Path:
    """A file of GDAL or a GeoParquet file, written by other code than reads it here."""
    wkb = [None if one is None else shapely.to_wkb(one) for one in geometries]
    if file.suffix == ".parquet":
        about = {"encoding": "WKB", "geometry_types": []}
        if crs is not None:
            about["crs"] = pyproj.CRS(crs).to_json_dict()
        geo = {"version": "1.1.0", "primary_column": "geom", "columns": {"geom": about}}
        rows = pa.table({**columns, "geom": pa.array(wkb, pa.binary())})
        pq.write_table(rows.replace_schema_metadata({"geo": json.dumps(geo)}), file)
        return file
    kinds = {one.geom_type for one in geometries if one is not None}
    pyogrio.raw.write(
        file,
        np.array(wkb, dtype=object),
        [np.array(values) for values in columns.values()],
        list(columns),
        geometry_type=kinds.pop() if len(kinds) == 1 else "Unknown",
        driver=WRITTEN_BY[f"layer{file.suffix}"],
        crs=crs,
    )
    return file


def natural_earth(shared: Path, name: str) -> Path:
    return shared / "data" / "polygons-naturalearth" / f"{name}.geojson"


def as_file(source: Path, file: Path) -> Path:
    """The features of a GeoJSON file in another format, in the same order."""
    document = json.loads(source.read_text(encoding="utf-8"))["features"]
    geometries = [shapely.from_geojson(json.dumps(one["geometry"])) for one in document]
    ranks = [one["properties"]["scalerank"] for one in document]
    return write(file, geometries, scalerank=ranks)


def shapes(geometries) -> list[str]:
    """Geometries as texts that do not depend on their order, or where a ring begins."""
    return sorted(one.normalize().wkt for one in geometries)


@pytest.mark.spec("B7")
@pytest.mark.parametrize(
    ("name", "features", "repaired"),
    [
        ("ne_110m_admin_0_countries", 177, 1),
        ("ne_10m_ports", 1081, 0),
        ("ne_10m_reefs", 1043, 0),
    ],
)
def test_each_format_gives_the_features_that_the_geojson_file_has(
    shared, tmp_path, name, features, repaired
):
    source = natural_earth(shared, name)
    expected = read_features(source, Wanted(NONE))
    assert (expected.wanted, expected.repaired) == (features, repaired)
    for end in ("shp", "gpkg", "fgb", "parquet"):
        got = read_features(as_file(source, tmp_path / f"world.{end}"), Wanted(NONE))
        assert (got.wanted, got.repaired, got.rejected) == (
            features,
            repaired,
            expected.rejected,
        )
        assert len(got.fids) == features - sum(got.rejected.values())
        assert shapes(got.geometries) == shapes(expected.geometries)
        assert all(one["scalerank"].isdigit() for one in got.tags)


@pytest.mark.parametrize("end", ["shp", "gpkg", "fgb", "parquet"])
def test_coordinates_come_in_the_system_that_is_asked_for(tmp_path, end):
    there = pyproj.Transformer.from_crs("EPSG:4326", UTM, always_xy=True)
    corner = there.transform(10, 50)
    planar = write(
        tmp_path / f"plan.{end}",
        [shapely.box(*corner, corner[0] + 1000, corner[1] + 1000)],
        crs=UTM,
        kind=["park"],
    )
    as_it_is = read_features(planar, Wanted(NONE, crs=UTM))
    assert as_it_is.geometries[0].bounds[:2] == pytest.approx(corner, abs=1e-6)
    degrees = read_features(planar, Wanted(NONE))
    assert degrees.kinds.tolist() == ["park"]
    assert degrees.geometries[0].bounds[2] == pytest.approx(10.0141, abs=1e-4)
    assert read_features(planar, Wanted(NONE, crs="planar")).geometries[0].area == (
        pytest.approx(1e6)
    )


def test_degrees_of_geojson_become_metres_of_the_streams(tmp_path):
    file = tmp_path / "a.geojson"
    file.write_text('{"type": "Point", "coordinates": [9, 0]}')
    point = read_features(file, Wanted(NONE, crs=UTM)).geometries[0]
    assert (point.x, point.y) == pytest.approx((500_000, 0), abs=1e-6)


def test_degrees_of_openstreetmap_become_metres_of_the_streams(tmp_path):
    file = tmp_path / "a.osm"
    nodes = "".join(
        f'<node id="{number}" lon="{lon}" lat="{lat}"/>'
        for number, (lon, lat) in enumerate([(9, 0), (9, 1), (10, 1)], start=1)
    )
    line = "".join(f'<nd ref="{number}"/>' for number in (1, 2))
    area = "".join(f'<nd ref="{number}"/>' for number in (1, 2, 3, 1))
    file.write_text(
        f'<osm version="0.6">{nodes}'
        f'<way id="1">{line}<tag k="highway" v="path"/></way>'
        f'<way id="2">{area}<tag k="leisure" v="park"/></way></osm>'
    )
    rules = load_kinds(Path(__file__).resolve().parents[2] / "conf")
    features = read_features(file, Wanted(rules, crs=UTM))
    assert features.fids.tolist() == ["way/1", "way/2/area"]
    for geometry in features.geometries:
        assert geometry.bounds[:2] == pytest.approx((500_000, 0), abs=1e-6)


def test_what_has_no_place_in_the_new_system_is_rejected(tmp_path):
    points = [shapely.Point(500_000, 5e6), shapely.Point(9e99, 0), shapely.Point()]
    file = write(tmp_path / "a.parquet", [*points, None], crs=UTM, name=[*"abcd"])
    features = read_features(file, Wanted(NONE, options=FileOptions(ids="name")))
    assert features.fids.tolist() == ["a"]
    assert features.rejected == {"degenerate": 1, "no_geometry": 1, "out_of_crs": 1}
    beyond = write(tmp_path / "b.gpkg", [shapely.Point(0, 91), shapely.Point(1, 1)])
    assert read_features(beyond, Wanted(NONE)).rejected == {"out_of_crs": 1}


def test_a_file_that_does_not_say_its_system_needs_to_be_told(tmp_path):
    file = write(tmp_path / "a.shp", [SQUARE], name=["a"])
    file.with_suffix(".prj").unlink()
    with pytest.raises(LayerError, match="does not say in which system") as raised:
        read_features(file, Wanted(NONE))
    assert "--source-crs" in str(raised.value.hint)
    told = FileOptions(crs="EPSG:4326")
    assert read_features(file, Wanted(NONE, options=told)).geometries[0].equals(SQUARE)
    with pytest.raises(ConfigError, match="no system of coordinates"):
        read_features(file, Wanted(NONE, crs="EPSG:99", options=told))
    with pytest.raises(LayerError, match="its system of coordinates is not known"):
        read_features(file, Wanted(NONE, options=FileOptions(crs="EPSG:99")))


def test_a_column_names_features_and_its_gaps_and_repeats_are_rejected(tmp_path):
    squares = [shapely.box(n, 0, n + 1, 1) for n in range(4)]
    file = write(tmp_path / "a.gpkg", squares, code=["b", "a", "", "a"])
    features = read_features(file, Wanted(NONE, options=FileOptions(ids="code")))
    assert features.fids.tolist() == ["a", "b"]
    assert features.rejected == {"bad_id": 1, "duplicate_fid": 1}
    with pytest.raises(LayerError, match="no column 'name' of ids"):
        read_features(file, Wanted(NONE, options=FileOptions(ids="name")))


def test_of_several_tables_one_is_named(tmp_path):
    file = write(tmp_path / "a.gpkg", [SQUARE], name=["a"])
    pyogrio.raw.write(
        file,
        np.array([shapely.to_wkb(shapely.Point(1, 2))], dtype=object),
        [np.array(["b"])],
        ["name"],
        geometry_type="Point",
        driver="GPKG",
        crs="EPSG:4326",
        layer="stops",
        append=True,
    )
    with pytest.raises(LayerError, match="several tables: a, stops"):
        read_features(file, Wanted(NONE))
    with pytest.raises(LayerError, match="no table 'b'"):
        read_features(file, Wanted(NONE, options=FileOptions(table="b")))
    stops = read_features(file, Wanted(NONE, options=FileOptions(table="stops")))
    assert stops.geometries[0].wkt == "POINT (1 2)"


@pytest.mark.parametrize("end", ["shp", "gpkg", "fgb", "parquet"])
def test_files_may_be_packed(tmp_path, end):
    file = write(tmp_path / f"a.{end}", [SQUARE], name=["a"])
    archive = tmp_path / "packed.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for part in tmp_path.glob("a.*"):
            packed.write(part, f"folder/{part.name}")
    assert read_features(archive, Wanted(NONE)).geometries[0].equals(SQUARE)
    if end == "shp":  # is several files
        return
    packed_file = tmp_path / f"b.{end}.gz"
    packed_file.write_bytes(gzip.compress(file.read_bytes()))
    assert read_features(packed_file, Wanted(NONE)).geometries[0].equals(SQUARE)


def test_of_an_archive_of_several_files_one_is_named(shared, tmp_path):
    ports, reefs = (
        natural_earth(shared, f"ne_10m_{name}") for name in ("ports", "reefs")
    )
    archive = tmp_path / "sea.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.write(ports, ports.name)
        packed.write(reefs, reefs.name)
    with pytest.raises(LayerError, match=r"several layer files: ne_10m_ports\.geojson"):
        read_features(archive, Wanted(NONE))
    chosen = FileOptions(table="ne_10m_ports")
    assert read_features(archive, Wanted(NONE, options=chosen)).wanted == 1081
    empty = tmp_path / "empty.zip"
    zipfile.ZipFile(empty, "w").close()
    with pytest.raises(LayerError, match="holds no layer file"):
        read_features(empty, Wanted(NONE))


@pytest.mark.parametrize(
    "name", ["a.shp", "a.gpkg", "a.fgb", "a.parquet", "a.zip", "b.gpkg.gz"]
)
def test_a_file_that_was_cut_is_refused_or_read_whole(tmp_path, name):
    whole = tmp_path / "whole"
    whole.mkdir()
    inner = "a.gpkg" if name.endswith((".zip", ".gz")) else name
    source = write(whole / inner, [SQUARE] * 50, name=["a"] * 50)
    if name.endswith(".zip"):
        with zipfile.ZipFile(whole / name, "w") as packed:
            packed.write(source, inner)
    if name.endswith(".gz"):
        (whole / name).write_bytes(gzip.compress(source.read_bytes()))
    content = (whole / name).read_bytes()
    cuts = {0, 1, 50, len(content) // 2, len(content) - 1}
    for number, cut in enumerate(sorted(cuts)):
        folder = tmp_path / str(number)
        shutil.copytree(whole, folder)
        (folder / name).write_bytes(content[:cut])
        with contextlib.suppress(LayerError):
            features = read_features(folder / name, Wanted(NONE))
            rejected = sum(features.rejected.values())
            assert features.wanted == len(features.fids) + rejected == 50


def test_parquet_without_geometries_is_refused(tmp_path):
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": [1.0]}), file)
    with pytest.raises(LayerError, match="is no GeoParquet"):
        read_features(file, Wanted(NONE))


STREAM = """
[streams.cars]
format = "csv"
columns = { object = "id", x = "x", y = "y" }
crs = "EPSG:25832"
"""


@pytest.mark.spec("B7")
def test_the_command_loads_a_layer_into_the_system_of_the_streams(tmp_path):
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "streams.toml").write_text(STREAM)
    (conf / "layers.toml").write_text(
        '[kinds.park]\ngeometry = "area"\ntags = ["leisure=park"]\n'
    )
    file = write(
        tmp_path / "parks.gpkg", [SQUARE, None], leisure=["park", "park"], name=[*"ab"]
    )
    home = ["--home", str(tmp_path / "home"), "--conf", str(conf)]
    command = ["layer", "load", "parks", str(file), "--id", "name", *home]
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "1 of 2 features in 1 rows (1 park)" in done.output
    assert "repaired 0; rejected 1: 1 no_geometry" in done.output
    row = tables.read(Home(tmp_path / "home").table("layers", "parks")).to_pylist()[0]
    assert row["fid"] == "a"
    assert 500_000 < row["minx"] < row["maxx"] < 700_000
    wrong = CliRunner().invoke(app, [*command, "--crs", "utm 32"])
    assert wrong.exit_code == 2
    assert "crs is 'utm 32' (planar, or a system such as EPSG:25832)" in wrong.output
