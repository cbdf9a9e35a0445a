"""The join of stored fixes with a layer, region by region, is that of all fixes with all features (SPEC B2)."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from st_common import tables
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.engine.region_join import (
    cells_of,
    join_of,
    joined,
    joined_in,
    regions_read,
)
from st_common.errors import LayerError, QueryError
from st_common.layers.rows import layer_rows
from st_common.layers.stored import load_index
from st_common.partitioning.kdtree import median_split
from st_common.partitioning.regions import Regions
from st_common.partitioning.store import store
from tests.kit.archived import archive, stream_of_places
from tests.kit.effort import tries
from tests.kit.layer_tables import features_of
from tests.kit.oracle import Feature
from tests.kit.porto import taxis_and_map

pytestmark = pytest.mark.spec("B2")

SIZE = 12  # of the grid on which everything lies, so that much lies on borders of regions and features
SPACES = {"planar": 1.0, "EPSG:4326": 1e5}
"""The systems of coordinates, and how many of their units of length a step of the grid is, about."""
STEPS = [None, 0.0, np.pi / 3, np.e * 2]
"""Distances in steps of the grid; no two places of it are one of the latter two apart."""


def regions_of(points, count, version=0, group="g"):
    split = median_split(points, count)
    return Regions(
        group=group, version=version, region_id=split.paths, bounds=split.bounds
    )


def shapes_of(rng, count, shift):
    """Points, ways and areas with corners on the grid, some across most of it."""
    for number in range(count):
        x, y = rng.integers(0, SIZE, 2) + np.array([shift, 0])
        dx, dy = rng.integers(1, rng.choice([2, 4, SIZE]) + 1, 2)
        corners = [(x, y), (x + dx, y), (x + dx, y + dy)]
        shape = [
            shapely.Point(x, y),
            shapely.LineString([(x, y), (x + dx, y - dy), (x - dx, y)]),
            shapely.Polygon(corners),
        ][number % 3]
        yield Feature(f"f{number:02d}", f"k{number % 2}", shape, {})


class Place:
    """A home with fixes that were archived by two versions of regions, and a layer that lies by the second one."""

    def __init__(self, folder, *, crs, seed, counts, shift=0, only_home=False):
        rng = np.random.default_rng(seed)
        self.home = Home(folder)
        self.stream = stream_of_places("cars", group="g", crs=crs)
        self.points = rng.integers(-1, SIZE + 2, (60, 2)) + np.array([shift, 0.0])
        self.features = list(shapes_of(rng, 30, shift))
        for part, count in zip(np.split(self.points, 2), counts, strict=True):
            regions = regions_of(self.points, count)
            held = np.zeros(len(regions.region_id), np.int64)
            regions = store(self.home, regions, held, "by hand")
            archive(self.home, self.stream, *part.T.copy())
        rows = layer_rows(features_of(self.features), regions)
        rows = rows.filter(rows["home"]) if only_home else rows
        contract = load_contract("layers")
        tables.replace(self.home.table("layers", "places"), rows, contract)

    def join(self, **asked):
        return join_of(self.home, self.stream, "places", **asked)

    def pairs(self, **asked):
        return pairs_of(pa.concat_tables(joined(self.join(**asked))))

    def stored(self):
        return tables.read(self.home.table("positions", "cars"))


def pairs_of(rows):
    keys = zip(rows["segment"].to_pylist(), rows["row"].to_pylist(), strict=True)
    return sorted(zip(keys, rows["fid"].to_pylist(), strict=True))


def brute(place, distance):
    """The pairs in the plane, by shapely alone."""
    rows = place.stored()
    points = shapely.points(rows["x"].to_numpy(), rows["y"].to_numpy())
    shapes = np.array([one.geometry for one in place.features], object)
    far = shapely.distance(points[:, None], shapes)
    at, feature = np.nonzero(far <= (distance or 0.0))
    fids = pa.array([place.features[number].fid for number in feature])
    return pairs_of(rows.take(pa.array(at)).append_column("fid", fids))


def of_whole(place, **asked):
    """The pairs of all fixes with one index of all features."""
    rows, join = place.stored(), place.join()
    index = load_index(place.home, "places", join.version, space=join.space)
    at, feature = index.match(rows["x"].to_numpy(), rows["y"].to_numpy(), **asked)
    fids = pa.array(index.fids[feature], pa.string())
    return pairs_of(rows.take(pa.array(at)).append_column("fid", fids))


@tries(15)
@given(
    seed=st.integers(0, 2**32 - 1),
    counts=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    steps=st.sampled_from(STEPS),
)
def test_pairs_by_region_are_those_of_shapely_in_the_plane(seed, counts, steps):
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder), crs="planar", seed=seed, counts=counts)
        assert place.pairs(distance_m=steps) == brute(place, steps)


@tries(10)
@given(
    seed=st.integers(0, 2**32 - 1),
    counts=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    steps=st.sampled_from(STEPS),
    shift=st.sampled_from([0, 180 - SIZE - 1]),
    kinds=st.sampled_from([(), ("k1",)]),
)
def test_pairs_by_region_are_those_of_one_index_on_the_globe(
    seed, counts, steps, shift, kinds
):
    asked = {"distance_m": None if steps is None else steps * 1e5, "kinds": kinds}
    with tempfile.TemporaryDirectory() as folder:
        place = Place(
            Path(folder), crs="EPSG:4326", seed=seed, counts=counts, shift=shift
        )
        assert place.pairs(**asked) == of_whole(place, **asked)


def test_a_feature_that_stood_in_one_region_alone_would_be_missed(tmp_path):
    """The fault that the laws above are there for: it is seen."""
    case = {"crs": "planar", "seed": 5, "counts": (4, 7)}
    broken = Place(tmp_path / "broken", only_home=True, **case)
    right = Place(tmp_path / "right", **case)
    missed = set(brute(broken, None)) - set(broken.pairs())
    assert missed
    assert right.pairs() == brute(right, None)


def test_each_pair_is_found_once_where_a_feature_stands_in_all_regions(tmp_path):
    place = Place(tmp_path, crs="planar", seed=1, counts=(1, 8))
    pairs = place.pairs(distance_m=float(SIZE))
    assert len(pairs) == len(set(pairs)) == len(brute(place, float(SIZE)))


@pytest.mark.parametrize("steps", STEPS)
def test_fixes_of_the_layers_regions_look_into_their_own_alone(tmp_path, steps):
    """For a distance into those near by, too, and into no others."""
    place = Place(tmp_path, crs="planar", seed=2, counts=(3, 9))
    join = place.join(distance_m=steps)
    newest = [cell for cell in cells_of(join) if cell.version == 2]
    assert len(newest) == 9
    for cell in newest:
        rows = joined_in(join, cell)
        assert set(rows["region_id"].to_pylist()) <= {cell.region_id}
        number = join.regions.region_id.index(cell.region_id)
        cut = place.stored().filter(
            (pc.field("region_id") == cell.region_id)
            & (pc.field("region_version") == 2)
        )
        read = regions_read(join, number, cut["x"].to_numpy(), cut["y"].to_numpy())
        if steps is None:
            assert read == [cell.region_id]
        else:
            assert cell.region_id in read
            assert steps > 1 or len(read) < 9


def test_a_region_is_joined_without_the_files_of_the_others(tmp_path):
    """What a task of one region needs of the layer is that region's: the files of all others may be gone."""
    place = Place(tmp_path, crs="planar", seed=3, counts=(3, 6))
    join = place.join()
    cells = [cell for cell in cells_of(join) if cell.version == 2]
    whole = {cell: joined_in(join, cell) for cell in cells}
    assert sum(map(len, whole.values()))
    files = [
        path
        for path in place.home.table("layers", "places").rglob("*.parquet")
        if "_delta_log" not in path.parts
    ]
    for cell in cells:
        others = [
            one for one in files if one.parent.name != f"region_id={cell.region_id}"
        ]
        assert len(others) < len(files) or not len(whole[cell])
        for one in others:
            one.rename(one.with_suffix(".away"))
        assert joined_in(join, cell).equals(whole[cell])
        for one in others:
            one.with_suffix(".away").rename(one)


def test_days_that_are_not_asked_for_are_left_out(tmp_path):
    from datetime import date

    place = Place(tmp_path, crs="planar", seed=4, counts=(2, 2))
    day = date(1970, 1, 1)
    assert place.pairs(since=day, until=date(1970, 1, 2)) == place.pairs()
    assert not cells_of(place.join(until=day))
    assert not cells_of(place.join(since=date(1970, 1, 2)))


def test_what_cannot_be_joined_says_why(tmp_path):
    place = Place(tmp_path, crs="planar", seed=4, counts=(2, 2))
    with pytest.raises(LayerError, match="there is no layer 'roads'"):
        join_of(place.home, place.stream, "roads")
    other = stream_of_places("buses", group="g", crs="planar")
    with pytest.raises(QueryError, match="nothing of stream 'buses' is archived yet"):
        cells_of(join_of(place.home, other, "places"))
    path, contract = place.home.table("layers", "places"), load_contract("layers")
    rows = tables.read(path)
    at = rows.schema.get_field_index("region_group")
    rows = rows.set_column(at, "region_group", pa.nulls(len(rows), pa.string()))
    tables.replace(path, rows, contract)
    with pytest.raises(LayerError, match="does not say by which regions"):
        place.join()


@pytest.fixture(scope="module")
def porto(shared, tmp_path_factory):
    home = Home(tmp_path_factory.mktemp("porto"))
    return home, taxis_and_map(shared / "data", home, 12)


@pytest.mark.parametrize(
    ("kind", "distance_m", "pairs"),
    [("road", 5.0, None), ("building", None, 1_510), ("building", 5.0, 6_196)],
)
def test_taxis_of_porto_meet_by_region_what_they_meet_in_one_index(
    porto, kind, distance_m, pairs
):
    """The numbers of pairs with buildings are those of `tests/unit/test_layers_index.py`."""
    home, stream = porto
    asked = {"distance_m": distance_m, "kinds": (kind,)}
    join = join_of(home, stream, "map", **asked)
    cells = cells_of(join)
    assert len(cells) == 12
    by_region = pairs_of(pa.concat_tables([joined_in(join, cell) for cell in cells]))
    rows = tables.read(home.table("positions", "taxis"))
    assert len(rows) == 47_328
    index = load_index(home, "map", join.version, space=join.space)
    at, feature = index.match(rows["x"].to_numpy(), rows["y"].to_numpy(), **asked)
    fids = pa.array(index.fids[feature], pa.string())
    assert by_region == pairs_of(rows.take(pa.array(at)).append_column("fid", fids))
    assert pairs in (None, len(by_region))
    assert len(set(by_region)) == len(by_region) > 1_000
