"""Layers by both engines: a file read in one process, and by tasks of Spark, leave equal tables (SPEC C2, B2)."""

import json
import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import osmium
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio
import pyproj
import pytest
import shapely
from deltalake import DeltaTable
from shapely import Polygon, box

from st_common import tables
from st_common.batch.prepartition import LOCAL, regions_of
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.errors import LayerError
from st_common.layers.kinds import load_kinds
from st_common.layers.load import load, local
from st_common.layers.options import FileOptions
from st_common.layers.points import file_points
from st_common.layers.reading import Wanted, read_features, slices_of
from st_common.layers.stored_faults import stored_faults
from st_common.maintenance.maintain import maintain
from st_common.partitioning.kdtree import median_split
from st_common.partitioning.store import current, store
from st_common.spark import layers
from st_common.spark.layers import SparkLayers

pytestmark = [pytest.mark.spark, pytest.mark.spec("C2")]

RACES = int(os.environ.get("FAIRWAY_RACES", "1"))  # so many homes are raced for
CONF = Path(__file__).parents[2] / "conf"
EXTRACTS = (
    "osm-helsinki/Helsinki.osm.pbf",
    "osm-liechtenstein/liechtenstein-2022-07-24.osm.pbf",
    "osm-monaco/monaco-2021-04-21-lz4.osm.pbf",
    "osm-porto/porto-metro-roads-2015.osm.pbf",
    "malformed/osm/campo-grande-ways-missing-nodes.osm.gz",
    "polygons-naturalearth/ne_110m_admin_0_countries.geojson",
)
_STATISTICS = ("minx", "miny", "maxx", "maxy", "region_version", "fid", "kind")


def loaded(home, name, file, engine, **options):
    """What a load says, but for the layer's name, its rows and the statistics of its files by region."""
    given = {"engine": engine} if engine else {}
    report = load(home, name, file, group="default", conf=CONF, **given, **options)
    path, contract = home.table("layers", name), load_contract("layers")
    rows = tables.read(path, contract=contract)
    by_row = [("region_id", "ascending"), ("fid", "ascending")]
    said = {
        field: getattr(report, field)
        for field in type(report).__dataclass_fields__
        if field not in ("layer", "streams", "faults")
    }
    said["faults"] = sorted(map(str, stored_faults(home, name)))
    assert said["faults"] == sorted(map(str, report.faults))
    return said, rows.sort_by(by_row), statistics(path)


def statistics(path):
    """How many rows the files of each region have, and the least and greatest values that Delta keeps of them."""
    actions = pa.table(DeltaTable(path).get_add_actions(flatten=True))
    names = [f"{end}.{name}" for name in _STATISTICS for end in ("min", "max")]
    chosen = actions.select(["partition.region_id", "num_records", *names])
    return chosen.sort_by("partition.region_id").to_pylist()


def partitioned(home, file, regions):
    """Gives the group as many regions as are asked for, by the places of a file's features."""
    source = file_points(file, load_kinds(CONF))
    points = next(source.read())
    made = regions_of("default", median_split(points, regions))
    rows, _ = LOCAL.counted([source], made, 0, lambda *_: None)
    store(home, made, rows, "elements, median")


def require_equal(home, file, spark, **options):
    local = loaded(home, "local", file, None, **options)
    told = loaded(home, "spark", file, SparkLayers(spark), **options)
    assert told[0] == local[0]
    assert told[1].equals(local[1])
    assert told[2] == local[2]
    return told


@pytest.mark.parametrize("name", EXTRACTS)
def test_both_engines_leave_equal_tables(spark, shared, tmp_path, monkeypatch, name):
    monkeypatch.setattr(layers, "RUN_BYTES", 100_000)
    file, home = shared / "data" / name, Home(tmp_path)
    partitioned(home, file, 7)
    said, rows, files = require_equal(home, file, spark)
    assert said["features"] > 100
    assert len(files) == len(set(rows["region_id"].to_pylist())) == 7


@pytest.mark.parametrize("crs", ["EPSG:3857", "planar"])
def test_both_engines_convert_alike_and_take_the_kinds_that_are_asked_for(
    spark, shared, tmp_path, crs
):
    file = shared / "data" / "osm-monaco" / "monaco-2023-12-26.osm.pbf"
    options = {"crs": crs, "kinds": ["building", "park"]}
    said, *_ = require_equal(Home(tmp_path), file, spark, **options)
    assert set(said["by_kind"]) == {"building", "park"}


def some_osm(seed, folder):
    """A random .osm.pbf of several blobs: ways that share nodes or lack them, rings, relations of ways far apart."""
    rng, things = random.Random(seed), osmium.osm.mutable
    tags = (
        {"highway": "path"},
        {"building": "yes"},
        {"landuse": "forest"},
        {},
        {"a b,=": "%@ é"},
    )
    nodes = list(range(1, 400))
    ways = list(range(1, 200))
    pieces = []
    for number, sort in enumerate("nnwwrr"):
        path = folder / f"{number}.osm.pbf"
        with osmium.SimpleWriter(str(path)) as out:
            half = slice(None, None)
            own = nodes if sort == "n" else ways if sort == "w" else list(range(1, 60))
            half = own[: len(own) // 2] if number % 2 == 0 else own[len(own) // 2 :]
            for one in half:
                given = dict(rng.choice(tags))
                if sort == "n":
                    if rng.random() < 0.05:
                        continue  # what lies beyond the border of an extract
                    at = (
                        None
                        if rng.random() < 0.02
                        else (one % 20 / 100, one // 20 / 100)
                    )
                    stop = {"highway": "bus_stop"} if rng.random() < 0.1 else given
                    out.add_node(things.Node(id=one, location=at, tags=stop, version=1))
                elif sort == "w":
                    refs = [rng.choice(nodes) for _ in range(rng.randint(1, 7))]
                    if rng.random() < 0.6:
                        corner = rng.choice(nodes[:-25])
                        refs = [corner, corner + 1, corner + 21, corner + 20, corner]
                    out.add_way(things.Way(id=one, nodes=refs, tags=given, version=1))
                else:
                    kind = rng.choice(["multipolygon", "boundary", "route"])
                    members = [
                        (
                            rng.choice("wwwn"),
                            rng.choice(ways),
                            rng.choice(["outer", "inner", "", "a,w5@b"]),
                        )
                        for _ in range(rng.randint(1, 3))
                    ]
                    out.add_relation(
                        things.Relation(
                            id=one,
                            members=members,
                            tags={"type": kind, **given},
                            version=1,
                        )
                    )
        pieces.append(path)
    return joined(pieces, folder / f"some-{seed}.osm.pbf")


def joined(pieces, file):
    """One file of the blobs of several."""
    from st_common.layers.osm_blobs import runs_of

    with file.open("wb") as out:
        for number, piece in enumerate(pieces):
            header, _ = runs_of(piece, 1)
            out.write(piece.read_bytes()[0 if number == 0 else header.length :])
    return file


@pytest.mark.parametrize("seed", range(4))
def test_both_engines_read_random_files_alike(spark, tmp_path, monkeypatch, seed):
    monkeypatch.setattr(layers, "RUN_BYTES", 1)
    monkeypatch.setattr(layers, "_BLOCK", 8)
    file, home = some_osm(seed, tmp_path), Home(tmp_path / "home")
    partitioned(home, file, 5)
    said, *_ = require_equal(home, file, spark)
    assert said["features"] > 50
    assert {"no_area", "missing_nodes"} <= set(said["rejected"])


WRITERS = {
    "gpkg": "GPKG",
    "shp": "ESRI Shapefile",
    "fgb": "FlatGeobuf",
}


def some_table(seed, count=300):
    """Random features with ids that repeat, and geometries that are missing, broken, without area or out of degrees."""
    rng = random.Random(seed)

    def shape():
        x, y = rng.uniform(-9, 9), rng.uniform(41, 43)
        ring = [(x, y), (x + 0.1, y), (x + 0.1, y + 0.1), (x, y + 0.1)]
        odd = rng.random()
        if odd < 0.05:
            return None
        if odd < 0.1:
            return Polygon([ring[0], ring[2], ring[1], ring[3]])  # a bow tie
        if odd < 0.15:
            return Polygon([ring[0], ring[1], ring[0]])
        if odd < 0.2:
            return Polygon([(x, y + 90) for x, y in ring])
        hole = [(x + 0.02, y + 0.02), (x + 0.04, y + 0.02), (x + 0.04, y + 0.04)]
        return Polygon(ring, [hole] if odd < 0.4 else [])

    ids = [f"r{rng.randrange(count)}" for _ in range(count)]
    columns = {
        "ref": pa.array([None if rng.random() < 0.02 else one for one in ids]),
        "kind": pa.array([rng.choice(["park", "yard", None]) for _ in range(count)]),
        "n": pa.array(range(count)),
        "len": pa.array([round(rng.random(), 3) for _ in range(count)]),
    }
    return pa.table(columns), [shape() for _ in range(count)]


def written(folder, suffix, rows, shapes, crs="EPSG:4326"):
    """A file of a format, with the shapes of rows."""
    file = folder / f"some.{suffix}"
    wkb = pa.array([one and shapely.to_wkb(one) for one in shapes], pa.binary())
    rows = rows.append_column("geometry", wkb)
    if suffix == "parquet":
        said = pyproj.CRS(crs).to_json_dict()
        column = {"encoding": "WKB", "geometry_types": [], "crs": said}
        about = {"primary_column": "geometry", "columns": {"geometry": column}}
        rows = rows.replace_schema_metadata({"geo": json.dumps(about)})
        pq.write_table(rows, file, row_group_size=17)
    else:
        index = (
            {"SPATIAL_INDEX": "NO"} if suffix == "fgb" else {}
        )  # else no shape is missing
        given = {"geometry_name": "geometry", "geometry_type": "Polygon", "crs": crs}
        pyogrio.write_arrow(rows, file, driver=WRITERS[suffix], **given, **index)
    return file


@pytest.mark.spec("S13")
@pytest.mark.parametrize("suffix", [*WRITERS, "parquet"])
def test_files_that_are_read_in_slices_are_read_alike(
    spark, tmp_path, monkeypatch, suffix
):
    monkeypatch.setattr(layers, "SLICE_BYTES", 3000)
    rows, shapes = some_table(WRITERS.get(suffix, suffix))
    file, home = written(tmp_path, suffix, rows, shapes), Home(tmp_path / "home")
    rules = Wanted(load_kinds(CONF))
    assert len(slices_of(file, rules, 3000)) > 3
    partitioned(home, file, 4)
    said, *_ = require_equal(home, file, spark)
    assert said["features"] > 200
    assert {"no_geometry", "out_of_crs"} <= set(said["rejected"])
    by_ref = {"options": FileOptions(ids="ref"), "kinds": ["park"]}
    said, found, _ = require_equal(home, file, spark, **by_ref)
    assert {"bad_id", "duplicate_fid"} <= set(said["rejected"])
    assert set(found["kind"].to_pylist()) == {"park"}


def test_a_system_that_the_file_names_and_axes_in_doubt_are_told_alike(
    spark, tmp_path, monkeypatch
):
    monkeypatch.setattr(layers, "SLICE_BYTES", 3000)
    rows, _ = some_table(1)
    home = Home(tmp_path / "home")
    meters = [box(5e5 + n, 5e6, 5e5 + n + 9, 5e6 + 9) for n in range(len(rows))]
    file = written(tmp_path, "gpkg", rows, meters, crs="EPSG:32632")
    said, found, _ = require_equal(home, file, spark)
    assert said["features"] == len(rows)
    assert 8 < found["minx"].to_pylist()[0] < 10
    swapped = [box(120, n % 50, 121, n % 50 + 1) for n in range(len(rows))]
    swapped = [shapely.transform(one, lambda at: at[:, ::-1]) for one in swapped]
    file = written(tmp_path, "parquet", rows, [*swapped[1:], box(1, 1, 2, 2)])
    said, *_ = require_equal(home, file, spark)
    assert any("--lat-lon" in note for note in said["notes"])
    assert (said["features"], said["rejected"]) == (1, {"out_of_crs": 299})


def test_a_shapefile_of_which_features_were_deleted_is_read_as_a_whole(
    spark, tmp_path, monkeypatch
):
    monkeypatch.setattr(layers, "SLICE_BYTES", 3000)
    rows, _ = some_table(2)
    file = written(
        tmp_path, "shp", rows, [box(n / 9, 1, n / 9 + 1, 2) for n in range(300)]
    )
    header = int.from_bytes(file.with_suffix(".dbf").read_bytes()[8:10], "little")
    with file.with_suffix(".dbf").open("r+b") as table:
        table.seek(header)
        table.write(b"*")  # as editors delete the first record
    assert slices_of(file, Wanted(load_kinds(CONF)), 3000) == []
    said, *_ = require_equal(Home(tmp_path / "home"), file, spark)
    assert said["features"] == 299


def test_a_file_that_is_not_sorted_is_refused_and_the_layer_stays(
    spark, tmp_path, monkeypatch
):
    monkeypatch.setattr(layers, "RUN_BYTES", 1)
    good, home = some_osm(1, tmp_path), Home(tmp_path / "home")
    loaded(home, "map", good, SparkLayers(spark))
    pieces = [tmp_path / f"{number}.osm.pbf" for number in (0, 1, 3, 2, 4, 5)]
    late = [tmp_path / f"{number}.osm.pbf" for number in (2, 3, 0, 1, 4, 5)]
    twice = [tmp_path / f"{number}.osm.pbf" for number in (0, 1, 2, 2, 4)]
    kept = spark.sparkContext._jsc.getPersistentRDDs
    before = kept().size()
    for name, order in (("ways", pieces), ("twice", twice), ("nodes", late)):
        file = joined(order, tmp_path / f"{name}.osm.pbf")
        with pytest.raises(LayerError, match=r"out of order.*sort it first"):
            load(
                home, "map", file, group="default", conf=CONF, engine=SparkLayers(spark)
            )
    assert tables.version(home.table("layers", "map")) == 1
    assert kept().size() <= before, "a session that goes on keeps nothing of them"


@pytest.mark.parametrize(
    "name", ["bitflip-middle", "empty", "truncated-after-header", "truncated-mid-blob"]
)
def test_a_damaged_file_is_refused_in_a_line_by_both(spark, shared, tmp_path, name):
    file = shared / "data" / "malformed" / "osm-derived" / f"{name}.osm.pbf"
    home = Home(tmp_path)
    for given in ({}, {"engine": SparkLayers(spark)}):
        with pytest.raises(LayerError) as refused:
            load(home, "map", file, group="default", conf=CONF, **given)
        assert "\n" not in str(refused.value)
    assert not tables.exists(home.table("layers", "map"))


def test_a_load_is_one_commit_by_delta_spark_that_names_itself(spark, shared, tmp_path):
    file = shared / "data" / "osm-monaco" / "monaco-2023-12-26.osm.pbf"
    home = Home(tmp_path)
    kept = spark.sparkContext._jsc.getPersistentRDDs
    before = kept().size()
    for version in (1, 2):
        said, rows, _ = loaded(home, "map", file, SparkLayers(spark))
        assert said["version"] == version
    assert kept().size() <= before, "a session that goes on keeps nothing of them"
    table = DeltaTable(home.table("layers", "map"))
    assert [one["operation"] for one in table.history()] == [
        "WRITE",
        "WRITE",
        "CREATE TABLE",
    ]
    assert "Delta-Lake" in table.history(1)[0]["engineInfo"]
    assert table.transaction_version("load map") == 2
    by_spark = spark.read.format("delta").load(str(home.table("layers", "map")))
    assert by_spark.count() == len(rows)
    assert not list(home.root.rglob("*.crc"))
    contract = load_contract("layers")
    assert table.metadata().configuration == dict(contract.properties)
    assert table.metadata().partition_columns == list(contract.partition_by)


@pytest.mark.spec("B2", "B3")
def test_a_group_without_regions_gets_them_by_sedonas_tree_over_the_features(
    spark, shared, tmp_path
):
    file = shared / "data" / "osm-monaco" / "monaco-2023-12-26.osm.pbf"
    home = Home(tmp_path)
    said, rows, files = loaded(
        home, "map", file, SparkLayers(spark, makes_regions=True)
    )
    assert said["region_version"] == 1
    regions = current(home, "default")
    assert len(files) == len(regions.region_id) == said["features"] // 300
    by_region = rows.filter(rows["home"])["region_id"].value_counts()
    counts = [one["counts"] for one in by_region.to_pylist()]
    assert max(counts) < 3 * sum(counts) / len(counts)
    strategies = set(tables.read(home.table("regions"))["strategy"].to_pylist())
    assert strategies == {"sample, sedona"}
    local = loaded(home, "local", file, None)
    assert local[1].equals(rows)
    again, *_ = loaded(home, "map", file, SparkLayers(spark, makes_regions=True))
    assert again["region_version"] == 1, "they stay"


def test_features_do_not_pass_through_the_driver(spark, shared, tmp_path, monkeypatch):
    """Rows that are collected are counts, and what a file has wrong."""
    from pyspark.sql.classic.dataframe import DataFrame

    collected = []
    collect = DataFrame.collect

    def noted(frame):
        rows = collect(frame)
        collected.append((frame.columns, len(rows)))
        return rows

    monkeypatch.setattr(DataFrame, "collect", noted)
    for name in ("toArrow", "toPandas", "toLocalIterator", "take"):
        monkeypatch.delattr(DataFrame, name)
    file = shared / "data" / "osm-monaco" / "monaco-2023-12-26.osm.pbf"
    said, *_ = loaded(Home(tmp_path), "map", file, SparkLayers(spark))
    faults = len(said["faults"])
    assert all(count <= max(20, faults) for _, count in collected)
    assert not any("geometry" in columns for columns, _ in collected)


def test_options_of_the_file_count_on_spark_too(spark, tmp_path):
    file = tmp_path / "places.csv"
    file.write_text("code;name;x;y\na;A;7,5;47,5\nb;B;8,5;47,5\nb;B;9;9\n")
    options = {"options": FileOptions(ids="code"), "attribution": "© me"}
    said, rows, _ = require_equal(Home(tmp_path / "home"), file, spark, **options)
    assert rows["fid"].to_pylist() == ["a", "b"]
    assert said["notes"]
    assert said["rejected"] == {"duplicate_fid": 1}


@pytest.mark.spec("S7")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("race", range(RACES))
def test_loads_by_both_engines_and_maintenance_in_a_race_lose_no_commit(
    spark, tmp_path, race
):
    """Each commit is a version, and each version holds every feature once, whoever reads it and when."""
    home, file = Home(tmp_path / "home"), some_osm(2 + race, tmp_path)
    partitioned(home, file, 4)
    committed, seen, ended = [], [], threading.Event()
    fids = set(read_features(file, Wanted(load_kinds(CONF))).fids)

    def loads(engine, times):
        for _ in range(times):
            report = load(home, "map", file, group="default", conf=CONF, engine=engine)
            committed.append(report.version)

    def maintains():
        while not ended.is_set():
            list(maintain(home, today=date(2024, 1, 1)))
            ended.wait(0.2)  # nobody is next in turn for a lock

    def reads():
        path, contract = home.table("layers", "map"), load_contract("layers")
        while not ended.is_set():
            version = tables.version(path)
            if version:
                rows = tables.read(path, version=version, contract=contract)
                seen.append(rows.filter(rows["home"])["fid"].to_pylist())
            ended.wait(0.05)

    with ThreadPoolExecutor(4) as pool:
        beside = [pool.submit(maintains), pool.submit(reads)]
        racing = [
            pool.submit(loads, SparkLayers(spark), 4),
            pool.submit(loads, local, 40),
        ]
        try:
            for one in racing:
                one.result(timeout=600)
        finally:
            ended.set()
        for one in beside:
            one.result(timeout=60)
    assert sorted(committed) == list(range(1, 44 + 1))
    assert tables.version(home.table("layers", "map")) == 44
    assert len(seen) > 10
    for rows in seen:
        assert len(rows) == len(fids)
        assert set(rows) == fids
