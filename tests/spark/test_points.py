"""Points on Spark: sampled, counted and taken first, of logs, layers and files, beside the local engine (SPEC B4)."""

import json
from pathlib import Path

import numpy as np
import pytest
import shapely

from jobs import partition
from st_common import tables
from st_common.batch.prepartition import prepartition
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.contracts import load_contract
from st_common.layers.declared import create_table
from st_common.layers.features import Features
from st_common.layers.points import layer_points
from st_common.layers.rows import layer_rows
from st_common.layers.table_settings import TableSettings
from st_common.partitioning import sources
from st_common.partitioning.kdtree import median_split
from st_common.partitioning.regions import Regions, whole
from st_common.partitioning.sources import csv_points, log_points
from st_common.partitioning.splitting import LocalPoints
from st_common.query.table_rows import TableHome
from st_common.spark.points import SparkPoints
from tests.kit.log_writer import bare_log

pytestmark = [pytest.mark.spark, pytest.mark.spec("B4")]

LOCAL = LocalPoints()
CONF = Path(__file__).resolve().parents[2] / "conf"


def cars():
    columns = Columns(object="id", x="x", y="y")
    return StreamSettings(
        name="cars", format="csv", columns=columns, crs="planar", max_ahead_s=None
    )


def silent(*_):
    """Is told of stages."""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A log of 40 segments, of which each task reads a few; some records are none."""
    home = Home(tmp_path / "home")
    monkeypatch.setattr(sources, "_PART_BYTES", 2_000)
    log = bare_log(home.log("cars"))
    rng = np.random.default_rng(1)
    for _ in range(40):
        lines = [f"a,{x},{y}" for x, y in rng.normal(0, 9, (30, 2)).round(3)]
        text = "\n".join(["id,x,y", *lines, "b,east,3", ""])
        log.append(text.encode(), arrival_us=1)
    return home


@pytest.fixture
def regions(home):
    points = np.concatenate(list(log_points(home, [cars()]).read()))
    split = median_split(points, 7)
    return Regions(group="g", version=1, region_id=split.paths, bounds=split.bounds)


@pytest.mark.parametrize("skip", [0, 1, 29, 30, 500, 1_200, 9_999])
def test_what_lies_in_each_region_is_counted_alike(spark, home, regions, skip):
    source, engine = log_points(home, [cars()]), SparkPoints(lambda: spark)
    assert len(source.parts()) > 5
    told = engine.counted([source], regions, skip, silent)
    local = LOCAL.counted([source], regions, skip, silent)
    assert told[0].tolist() == local[0].tolist()
    assert int(told[0].sum()) == max(1_200 - skip, 0)


def test_the_first_elements_and_their_regions_are_those_of_the_local_engine(
    spark, home
):
    source, engine = log_points(home, [cars()]), SparkPoints(lambda: spark)
    for count in (1, 31, 700, 5_000):
        np.testing.assert_array_equal(
            engine.first(source, count), LOCAL.first(source, count)
        )
    for reader in (engine, LOCAL):
        prepartition(
            home,
            "cars",
            source,
            strategy="elements",
            elements=400,
            regions=9,
            engine=reader,
        )
    rows = tables.read(home.table("regions")).drop_columns("version")
    half = [rows.slice(start, 9).sort_by("region_id").to_pylist() for start in (0, 9)]
    assert half[0] == half[1]


def test_a_sample_repeats_and_a_larger_share_contains_a_smaller_one(spark, home):
    source, engine = log_points(home, [cars()]), SparkPoints(lambda: spark)
    few, total = engine.sampled(source, 0.2, 1)
    again, _ = engine.sampled(source, 0.2, 1)
    more, _ = engine.sampled(source, 0.5, 1)
    raised, _ = engine.sampled(source, 0.001, 333)
    assert total == 1_200
    assert 150 < len(few) < 330
    assert 500 < len(more) < 700
    assert len(raised) == 333
    assert sorted(few.tolist()) == sorted(again.tolist())
    assert set(map(tuple, few)) <= set(map(tuple, more))
    everything = set(map(tuple, np.concatenate(list(source.read()))))
    assert set(map(tuple, more)) <= everything


def test_what_a_file_has_that_is_no_point_is_told_from_a_task(spark, tmp_path):
    file = tmp_path / "a.csv"
    rows = "".join(f"{i},{i % 7}\n" for i in range(100))
    file.write_text(f"x,y\n{rows}east,2\n")
    done = prepartition(
        Home(tmp_path / "home"),
        "g",
        csv_points(file),
        strategy="sample",
        regions=4,
        engine=SparkPoints(lambda: spark),
    )
    assert (done.rows, done.tree) == (100, "sedona")
    assert done.left_out == (
        f"rejected: 1 row of {file} has no numbers in x and y: the first is row 101",
    )


def test_a_layer_is_read_by_delta_and_few_rows_are_split_at_medians(spark, tmp_path):
    home = Home(tmp_path)
    west = np.arange(50.0)
    parks = Features(
        fids=np.array([f"p{i:02}" for i in range(50)], object),
        kinds=np.array(["park"] * 50, object),
        tags=np.array([{}] * 50, object),
        geometries=shapely.box(west, 0, west + 1, 1),
        wanted=50,
    )
    rows = layer_rows(parks, whole("g"))
    tables.replace(home.table("layers", "parks"), rows, load_contract("layers"))
    source, engine = layer_points(home, "parks"), SparkPoints(lambda: spark)
    split = median_split(np.concatenate(list(source.read())), 4)
    made = Regions(group="g", version=1, region_id=split.paths, bounds=split.bounds)
    told, _ = engine.counted([source], made, 0, silent)
    assert told.tolist() == LOCAL.counted([source], made, 0, silent)[0].tolist()
    few = engine.split_sample([source], 0.01, 400, 40)
    assert (few.rows, few.tree) == (50, "median")
    assert few.note == "50 rows are too few for 40 regions of 20"


def point_of(car, place):
    shape = {"type": "Point", "coordinates": place}
    return {"type": "Feature", "geometry": shape, "properties": {"car": car}}


def test_rows_of_a_table_that_were_put_over_or_deleted_are_no_points(spark, tmp_path):
    home = Home(tmp_path)
    create_table(home, "cars", TableSettings(key="car", columns=["car"]))
    cars_table = TableHome(home=home, conf=CONF, streams=dict)

    def put(first, last, x):
        places = [
            (f"c{number}", [x + number / 100, 1]) for number in range(first, last)
        ]
        cars_table.put("cars", [point_of(car, place) for car, place in places])

    put(0, 30, 1)
    put(10, 20, 5)
    cars_table.delete("cars", ["c3", "c15"])
    source, engine = layer_points(home, "cars"), SparkPoints(lambda: spark)
    bounds = np.array([[-180.0, -90, 4, 90], [4, -90, 180, 90]])
    made = Regions(group="g", version=1, region_id=["0", "1"], bounds=bounds)
    told, _ = engine.counted([source], made, 0, silent)
    assert told.tolist() == LOCAL.counted([source], made, 0, silent)[0].tolist()
    assert told.tolist() == [19, 9]


def test_sources_count_as_much_as_each_other_whatever_their_sizes(spark, tmp_path):
    """A hundred places in the west, thirty in the east: half of the regions lie in the east."""
    files = []
    for count, west in ((100, 0), (30, 1_000)):
        rng = np.random.default_rng(count)
        rows = [f"{x + west},{y}" for x, y in rng.uniform(0, 10, (count, 2))]
        file = tmp_path / f"{west}.csv"
        file.write_text("\n".join(["x,y", *rows, ""]))
        files.append(csv_points(file))
    chosen = SparkPoints(lambda: spark).split_sample(files, 1.0, 1, 8)
    assert (chosen.rows, chosen.tree) == (200, "sedona")
    assert int((chosen.split.bounds[:, 0] > 500).sum()) in (3, 4, 5)


def test_the_job_splits_by_the_tree_that_is_asked_for(spark, tmp_path, capsys):
    file = tmp_path / "a.csv"
    rng = np.random.default_rng(2)
    rows = "".join(f"{x},{y}\n" for x, y in rng.normal(0, 9, (2_000, 2)))
    file.write_text(f"x,y\n{rows}")
    places = [f"--home={tmp_path}", f"--source={file}", "--regions=9"]
    for tree in ("sedona", "sedona quadtree", "median"):
        own = {
            "sedona": (),
            "sedona quadtree": ("--tree=quadtree",),
            "median": ("--engine=local",),
        }
        assert partition.main(["g", *places, *own[tree]]) == 0
        said = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert (said["tree"], said["regions"], said["rows"]) == (tree, 9, 2_000)
