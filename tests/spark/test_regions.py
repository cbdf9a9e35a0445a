"""Regions by Sedona's KDB tree."""

import statistics

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.csv import write_csv

from st_common import tables
from st_common.config.home import Home
from st_common.partitioning.balance import rows_per_region
from st_common.partitioning.regions import Regions
from st_common.partitioning.store import current

pytestmark = pytest.mark.spark


def clustered(count):
    random = np.random.default_rng(3)
    centres = random.uniform(-8.7, -8.5, (6, 1)), random.uniform(41.1, 41.2, (6, 1))
    which = random.integers(0, 6, count)
    return np.column_stack(
        [centre[which, 0] + random.normal(0, 0.01, count) for centre in centres]
    )


def frame(spark, points):
    return spark.createDataFrame(points.tolist(), "x double, y double")


@pytest.mark.spec("B3", "B4")
@pytest.mark.parametrize(
    ("tree", "wanted"),
    [("kdtree", 2), ("kdtree", 5), ("kdtree", 40), ("quadtree", 5), ("quadtree", 40)],
)
def test_sedona_gives_as_many_regions_as_wanted_that_tile_the_plane_evenly(
    spark, tree, wanted
):
    from st_common.spark.regions import sedona_split

    points = clustered(2_000)
    split = sedona_split(spark, frame(spark, points[:1_000]), wanted, tree)
    assert not isinstance(split, str), split
    assert len(split.paths) == wanted
    assert sum(2.0 ** -len(path) for path in split.paths) == 1.0
    regions = Regions(group="g", version=1, region_id=split.paths, bounds=split.bounds)
    far = np.array([[-1e9, 1e9], [1e9, -1e9], [0, 0]])
    # raises when the regions do not tile
    rows = rows_per_region(regions, np.concatenate([points, far]))
    assert rows.sum() == 2_003
    assert rows.max() < 5 * 2_003 / wanted


@pytest.mark.spec("B3")
def test_the_same_sample_gives_the_same_regions_in_any_order(spark):
    from st_common.spark.regions import sedona_split

    points = clustered(500)
    first, second = (
        sedona_split(spark, frame(spark, points), 10),
        sedona_split(spark, frame(spark, points[::-1]), 10),
    )
    assert first.paths == second.paths
    np.testing.assert_array_equal(first.bounds, second.bounds)


def test_a_sample_all_in_one_place_is_left_to_the_own_split(spark):
    from st_common.spark.regions import sedona_split

    same = sedona_split(spark, frame(spark, np.full((100, 2), 3.0)), 4)
    assert isinstance(same, str) or same.paths == ["0"]


@pytest.mark.spec("B4")
def test_a_share_of_a_file_makes_regions_as_in_the_paper_and_both_deviations_are_told(
    spark, tmp_path
):
    """0.2 % of the data and 40 regions, beside the first 20,000 elements: figure 26 of BBoxDB Streams."""
    from st_common.batch.prepartition import prepartition, source_of
    from st_common.spark.points import SparkPoints

    file, nodes = tmp_path / "fixes.csv", 5
    x, y = clustered(500_000).T
    write_csv(pa.table({"x": x, "y": y}), file)
    home = Home(tmp_path / "home")
    source = source_of(home, tmp_path, [], str(file), group="cars")
    engine = SparkPoints(lambda: spark)
    by_sample = prepartition(
        home,
        "cars",
        source,
        strategy="sample",
        share=0.002,
        regions=40,
        workers=nodes,
        engine=engine,
    )
    assert (by_sample.tree, by_sample.regions, by_sample.rows, by_sample.note) == (
        "sedona",
        40,
        500_000,
        "",
    )
    assert 900 < by_sample.chosen < 1_100
    by_elements = prepartition(
        home,
        "cars",
        source,
        strategy="elements",
        elements=20_000,
        regions=40,
        workers=nodes,
        engine=engine,
    )
    assert (by_elements.tree, by_elements.regions, by_elements.rows) == (
        "median",
        40,
        480_000,
    )
    assert (by_sample.version, by_elements.version, current(home, "cars").version) == (
        1,
        2,
        2,
    )
    for made, start in ((by_sample, 0), (by_elements, 20_000)):
        rows = counted(home, made.version, x[start:], y[start:])
        assert made.std_deviation == pytest.approx(statistics.pstdev(rows))
        dealt = [sum(rows[node::nodes]) for node in range(nodes)]
        assert made.std_deviation_workers == pytest.approx(statistics.pstdev(dealt))
    assert by_sample.std_deviation < 500_000 / 40


def counted(home, version, x, y):
    """How many points lie in each stored region, in the order of their ids."""
    cells = tables.read(home.table("regions"), filters=[("version", "=", version)])
    inside = (
        (x >= cell["minx"])
        & (x < cell["maxx"])
        & (y >= cell["miny"])
        & (y < cell["maxy"])
        for cell in cells.sort_by("region_id").to_pylist()
    )
    return [int(np.count_nonzero(one)) for one in inside]
