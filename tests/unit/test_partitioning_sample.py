"""Samples that repeat, trees found again from their leaves, sources of points, and stored versions of regions."""

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common import tables
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.errors import ConfigError
from st_common.layers.points import file_points
from st_common.partitioning.kdtree import median_split, refined
from st_common.partitioning.regions import Regions, whole
from st_common.partitioning.sample import PointSource, after, first, sampled, shortage
from st_common.partitioning.sources import csv_points, log_points
from st_common.partitioning.store import current, store
from st_common.partitioning.tree import split_of
from tests.kit.log_writer import bare_log


def source_of(points, batch):
    starts = range(0, len(points), batch)
    return PointSource(
        name="points",
        dimensions=points.shape[1],
        read=lambda: (points[start : start + batch] for start in starts),
    )


def numbered(count):
    return np.column_stack([np.arange(count), np.zeros(count)]).astype(float)


@given(
    st.integers(0, 300),
    st.integers(1, 100),
    st.integers(1, 100),
    st.floats(0.01, 1),
    st.integers(0, 50),
)
def test_a_sample_does_not_depend_on_batches_and_grows_with_the_share(
    count, one, other, share, at_least
):
    points = numbered(count)
    chosen, total = sampled(source_of(points, one), share=share, at_least=at_least)
    again, _ = sampled(source_of(points, other), share=share, at_least=at_least)
    larger, _ = sampled(
        source_of(points, one), share=min(1.0, share * 1.5), at_least=at_least
    )
    np.testing.assert_array_equal(chosen, again)
    assert total == count
    assert len(chosen) >= min(at_least, count)
    assert set(map(tuple, chosen)) <= set(map(tuple, larger))


def test_a_share_is_a_share_and_the_whole_is_everything():
    points = numbered(100_000)
    assert len(
        sampled(source_of(points, 7_000), share=0.01, at_least=0)[0]
    ) == pytest.approx(1_000, rel=0.1)
    assert len(sampled(source_of(points, 7_000), share=1.0, at_least=0)[0]) == 100_000
    assert shortage(99, 5) == "99 rows are too few for 5 regions of 20"
    assert shortage(100, 5) == ""


@given(st.integers(0, 60), st.integers(1, 20), st.integers(0, 70))
def test_the_first_elements_and_the_rest_are_the_whole_stream(count, batch, taken):
    points = numbered(count)
    rest = after(source_of(points, batch), taken)
    np.testing.assert_array_equal(
        np.concatenate([first(source_of(points, batch), taken), *rest]), points
    )


@pytest.mark.spec("B3")
@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_a_tree_is_found_again_from_its_leaves(seed, wanted):
    points = np.random.default_rng(seed).uniform(0, 1, (400, 2))
    bounds = np.clip(median_split(points, wanted).bounds, -1, 2)
    shuffled = np.random.default_rng(seed).permutation(bounds)
    found = split_of(shuffled)
    assert len(found.paths) == wanted
    assert wanted == 1 or sum(2.0 ** -len(path) for path in found.paths) == 1.0
    assert set(map(tuple, np.clip(found.bounds, -1, 2))) == set(map(tuple, bounds))
    assert np.isinf(
        found.bounds[np.isclose(np.clip(found.bounds, -1, 2), [-1, -1, 2, 2])]
    ).all()


SQUARES = np.array([[0, 0, 1, 1], [1, 0, 2, 1], [0, 1, 1, 2], [1, 1, 2, 2.0]])


@pytest.mark.parametrize(
    "boxes",
    [
        SQUARES[:3],
        np.concatenate([SQUARES[:3], [[1, 1, 2, 2.5]]]),
        np.concatenate([SQUARES, SQUARES[:1]]),
        np.array(
            [[0, 0, 2, 1], [2, 0, 3, 2], [1, 2, 3, 3], [0, 1, 1, 3], [1, 1, 2, 2.0]]
        ),
        np.array([[0, 0, np.inf, 1]]),
        np.empty((0, 4)),
    ],
    ids=["a gap", "one too tall", "one twice", "a pinwheel", "infinite", "none"],
)
def test_boxes_that_are_no_tree_that_tiles_are_refused(boxes):
    assert split_of(boxes) is None


@given(
    st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 20), st.integers(1, 4)
)
def test_refining_halves_the_fullest_cells_and_leaves_the_others(
    seed, before, wanted, dimensions
):
    points = np.random.default_rng(seed).uniform(0, 1, (200, dimensions))
    split = median_split(points, before)
    finer = refined(split, points, wanted)
    assert len(finer.paths) == max(before, wanted)
    assert (
        len(finer.paths) == 1 or sum(2.0 ** -len(path) for path in finer.paths) == 1.0
    )
    old, new = (
        dict(zip(s.paths, map(tuple, s.bounds), strict=True)) for s in (split, finer)
    )
    assert all(old[path] == new[path] for path in old.keys() & new.keys() if before > 1)
    inside = (
        (points[:, None] >= finer.bounds[:, :dimensions])
        & (points[:, None] < finer.bounds[:, dimensions:])
    ).all(axis=2)
    assert (inside.sum(axis=1) == 1).all()


def test_refining_stops_where_all_points_are_the_same():
    same = np.full((30, 2), 5.0)
    assert (
        len(refined(median_split(np.array([[0.0, 0], [9, 9]]), 2), same, 8).paths) == 2
    )


CARS = StreamSettings(
    name="cars",
    format="csv",
    columns=Columns(object="id", x="x", y="y"),
    max_ahead_s=None,
)


def test_fixes_of_a_log_are_points_without_control_rows_rejects_and_objects_that_left(
    tmp_path,
):
    home = Home(tmp_path)
    log = bare_log(home.log("cars"))
    log.append(b"id,x,y\na,1,2\nb,oops,3\n", arrival_us=1)
    log.append(b'{"op":"clock","ts":5}\n', arrival_us=2, control=True)
    log.append(b"id,x,y\nc,3,4\n", arrival_us=3)
    source = log_points(home, [CARS])
    assert [part.tolist() for part in source.read()] == [[[1.0, 2.0]], [[3.0, 4.0]]]
    assert len(list(source.read())) == 2  # it can be read again
    assert list(log_points(home, []).read()) == []


def test_a_csv_gives_its_numbers_and_passes_over_what_is_none(tmp_path):
    file = tmp_path / "points.csv"
    file.write_text(
        "name,y,x\na,2,1\nb,nan,1\nc,,1\nd,x,1\ne, 4 ,+3e0\nf,.5,-2.\ng,1,0x1\n"
    )
    source = csv_points(file)
    for _ in range(2):  # it can be read again, and counts anew
        points = np.concatenate(list(source.read()))
        assert points.tolist() == [[1.0, 2.0], [3.0, 4.0], [-2.0, 0.5]]
        (line,) = source.left_out()
        assert line.startswith("rejected: 4 rows of")
        assert line.endswith("no numbers in x and y: the first is row 2")
    with pytest.raises(ConfigError, match="columns lon and lat"):
        list(csv_points(file, x="lon", y="lat").read())
    with pytest.raises(ConfigError, match="cannot be read"):
        list(csv_points(tmp_path / "none.csv").read())


def test_features_of_a_file_are_the_middles_of_their_boxes(tmp_path):
    from st_common.layers.kinds import Kinds

    file = tmp_path / "line.geojson"
    file.write_text('{"type": "LineString", "coordinates": [[0, 0], [2, 4]]}')
    parts = file_points(file, Kinds(())).read()
    assert [part.tolist() for part in parts] == [[[1.0, 2.0]]]


@pytest.mark.spec("B2")
def test_regions_are_stored_as_versions_of_their_group(tmp_path):
    home = Home(tmp_path)
    assert current(home, "cars").region_id == ["0"]
    split = median_split(np.random.default_rng(1).normal(size=(100, 2)), 5)
    regions = Regions(
        group="cars", version=0, region_id=split.paths, bounds=split.bounds
    )
    stored = store(home, regions, np.array([20, 20, 20, 20, 30]), "sample, median")
    assert (stored.version, stored.region_id) == (1, sorted(split.paths))
    assert np.isinf(stored.bounds).any()
    assert current(home, "other").region_id == ["0"]
    store(home, whole("other"), np.array([7]), "elements, median")
    assert store(home, whole("cars"), np.array([110]), "elements, median").version == 2
    assert current(home, "other").version == 1
    rows = tables.read(
        home.table("regions"), filters=[("group", "=", "cars"), ("version", "=", 1)]
    )
    assert rows["std_deviation"].to_pylist() == [4.0] * 5
    assert pc.sum(rows["rows"]).as_py() == 110
