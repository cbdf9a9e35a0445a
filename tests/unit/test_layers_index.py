"""Matching points with features of several regions: against shapely on every pair, and known answers on real data."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from st_common.geometry.borders import Segments
from st_common.geometry.enlarged import POINT, Growth
from st_common.geometry.space import GLOBE, PLANE
from st_common.layers.features import checked
from st_common.layers.geojson import read_geojson
from st_common.layers.index import LayerIndex
from st_common.layers.kinds import Kinds, load_kinds
from st_common.layers.reading import Wanted, read_features
from st_common.layers.rows import layer_rows
from st_common.partitioning.kdtree import median_split
from st_common.partitioning.regions import Regions, assign, touching
from tests.kit.effort import tries

CONF = Path(__file__).resolve().parents[2] / "conf"
REGIONS = Regions(
    group="g",
    version=1,
    region_id=["00", "01", "1"],
    bounds=np.array(
        [
            [-np.inf, -np.inf, 2, 3],
            [-np.inf, 3, 2, np.inf],
            [2, -np.inf, np.inf, np.inf],
        ]
    ),
)


class Reader:
    """Gives the geometries of a region, and remembers for which regions it was asked."""

    def __init__(self, rows):
        self.rows, self.asked = rows, []

    def __call__(self, region_id):
        self.asked.append(region_id)
        chosen = self.rows.filter(pa.compute.equal(self.rows["region_id"], region_id))
        return chosen.filter(chosen["home"]).sort_by("fid")["geometry"]


def index_of(features, regions=REGIONS, **settings):
    rows = layer_rows(features, regions)
    reader = Reader(rows)
    return (
        LayerIndex(rows.drop_columns(["geometry", "tags"]), reader, **settings),
        reader,
        rows,
    )


def features_of(tmp_path, geometries, kinds=None):
    records = [
        {
            "type": "Feature",
            "id": f"f{i:03d}",
            "properties": {"kind": kinds[i] if kinds else "any"},
            "geometry": json.loads(shapely.to_geojson(geometry)),
        }
        for i, geometry in enumerate(geometries)
    ]
    file = tmp_path / "some.geojson"
    file.write_text(json.dumps({"type": "FeatureCollection", "features": records}))
    return checked(read_geojson(file, Kinds(()))[0], space=PLANE)


PLACE = st.integers(-6, 10).map(float)
SHAPES = st.one_of(
    st.tuples(PLACE, PLACE).map(shapely.Point),
    st.lists(st.tuples(PLACE, PLACE), min_size=2, max_size=6).map(shapely.LineString),
    st.tuples(PLACE, PLACE, st.integers(1, 5), st.integers(1, 5)).map(
        lambda b: shapely.box(b[0], b[1], b[0] + b[2], b[1] + b[3])
    ),
    st.tuples(PLACE, PLACE, st.integers(3, 6)).map(
        lambda b: shapely.box(b[0], b[1], b[0] + b[2], b[1] + b[2]).difference(
            shapely.box(b[0] + 1, b[1] + 1, b[0] + 2, b[1] + 2)
        )
    ),
)


def every_pair(geometries, points, near):
    return [
        (i, j)
        for i, p in enumerate(points)
        for j, g in enumerate(geometries)
        if near(shapely.Point(p), g)
    ]


@pytest.mark.spec("B3")
@given(
    st.lists(SHAPES, min_size=1, max_size=8),
    st.lists(st.tuples(PLACE, PLACE), max_size=12),
    st.sampled_from([None, 0.0, 1.0, 2.5]),
)
def test_match_gives_every_true_pair_once_and_in_order(
    tmp_path_factory, geometries, points, distance_m
):
    geometries = [shape for shape in geometries if shape.is_valid]
    features = features_of(tmp_path_factory.mktemp("some"), geometries)
    index, _, _ = (
        index_of(features, space=PLANE) if len(features.fids) else (None, None, None)
    )
    if index is None:
        return
    x, y = np.array(points, float).reshape(-1, 2).T
    if distance_m is None:
        wanted = every_pair(features.geometries, points, shapely.intersects)
    else:
        wanted = every_pair(
            features.geometries,
            points,
            lambda p, g: p.distance(g) <= distance_m + 1e-12,
        )
    point, feature = index.match(x.copy(), y.copy(), distance_m=distance_m)
    assert point.dtype == feature.dtype == np.int64
    assert list(zip(point.tolist(), feature.tolist(), strict=True)) == wanted
    assert index.fids.tolist() == features.fids.tolist()


WAYS = st.tuples(PLACE, PLACE, PLACE, PLACE)


@pytest.mark.spec("X3")
@tries(200)
@given(
    st.lists(SHAPES, min_size=1, max_size=8),
    st.lists(WAYS, min_size=4, max_size=12),
    st.sampled_from([None, 0.0, 0.77, 1.31, 2.73]),
)
def test_ways_cross_every_feature_that_they_meet_or_come_near_to(
    tmp_path_factory, geometries, ways, distance_m
):
    geometries = [shape for shape in geometries if shape.is_valid]
    features = features_of(tmp_path_factory.mktemp("some"), geometries)
    if not len(features.fids):
        return
    index, _, _ = index_of(features, space=PLANE)
    lines = [shapely.LineString([way[:2], way[2:]]) for way in ways]
    wanted = [
        (i, j)
        for i, line in enumerate(lines)
        for j, shape in enumerate(features.geometries)
        if line.distance(shape) <= (distance_m or 0.0)
    ]
    ax, ay, bx, by = np.array(ways, float).reshape(-1, 4).T
    way, feature = index.crossed(
        Segments(ax=ax, ay=ay, bx=bx, by=by), distance_m=distance_m
    )
    assert way.dtype == feature.dtype == np.int64
    assert list(zip(way.tolist(), feature.tolist(), strict=True)) == wanted


@pytest.mark.spec("X3")
@pytest.mark.parametrize("at", [(5, 1), (5, -1), (1, 5), (-1, 5)])
def test_a_way_as_far_away_as_the_limit_is_near(tmp_path, at):
    """Along an axis, through the origin: no distance is rounded."""
    features = features_of(tmp_path, [shapely.Point(at)])
    index, _, _ = index_of(features, space=PLANE)
    ends = np.array([0.0, 0.0, 10.0, 0.0])[[0, 1, 2, 3] if at[0] == 5 else [1, 0, 3, 2]]
    ax, ay, bx, by = ends.reshape(4, 1)
    ways = Segments(ax=ax, ay=ay, bx=bx, by=by)
    met = [len(index.crossed(ways, distance_m=reach)[0]) for reach in (0.999, 1.0)]
    assert met == [0, 1]


@pytest.mark.spec("X3", "G5")
@pytest.mark.parametrize("turn", [1, -1])
@pytest.mark.parametrize(
    ("way", "gap_m"),
    [
        ((179.998, 60.0, 179.997, 60.0), 111.6),  # its first end is nearest
        ((179.997, 60.0, 179.998, 60.0), 111.6),  # its last end
        ((179.99, 60.001, -179.99, 60.001), 111.4),  # over 180 degrees: a corner
        ((-179.998, 59.99, -179.998, 60.01), 111.6),  # the line's end beyond 180
        ((-179.99, 59.99, -179.998, 60.0), 111.6),  # its last end, from beyond 180
    ],
)
def test_ways_come_near_to_a_line_on_the_globe_also_beyond_180_degrees(
    tmp_path, way, gap_m, turn
):
    line = shapely.LineString([(turn * 180, 60), (turn * 180, 59.9999)])
    features = features_of(tmp_path, [line])
    index, _, _ = index_of(features, space=GLOBE)
    ax, ay, bx, by = (np.array([part]) for part in way)
    ways = Segments(ax=ax * turn, ay=ay, bx=bx * turn, by=by)
    met = [
        len(index.crossed(ways, distance_m=reach)[0])
        for reach in (gap_m * 0.995, gap_m * 1.005)
    ]
    assert met == [0, 1]


@pytest.mark.spec("B9", "B10")
@given(
    st.lists(SHAPES, min_size=1, max_size=8),
    st.lists(st.tuples(PLACE, PLACE), max_size=12),
    st.sampled_from([POINT, Growth(value=1.0), Growth(value=1.0, metres=3.0)]),
    st.booleans(),
)
def test_boxes_around_points_meet_or_lie_within_features(
    tmp_path_factory, geometries, points, growth, within
):
    geometries = [shape for shape in geometries if shape.is_valid]
    features = features_of(tmp_path_factory.mktemp("some"), geometries)
    if not len(features.fids):
        return
    index, _, _ = index_of(features, space=PLANE)
    half, test = (
        (growth.value + growth.metres) / 2,
        shapely.within if within else shapely.intersects,
    )
    around = lambda p: (
        shapely.box(p.x - half, p.y - half, p.x + half, p.y + half) if half else p
    )
    x, y = np.array(points, float).reshape(-1, 2).T
    point, feature = index.match(x.copy(), y.copy(), growth=growth, within=within)
    wanted = every_pair(features.geometries, points, lambda p, g: test(around(p), g))
    assert list(zip(point.tolist(), feature.tolist(), strict=True)) == wanted


@pytest.mark.spec("B9")
def test_tags_choose_features(tmp_path):
    box = shapely.box(0, 0, 1, 1)
    tags = {"bridge": ["yes", None, "yes"], "lanes": ["2", "2", None]}
    features = features_of(tmp_path, [box, box, box], ["road", "road", "lake"])
    index, _, _ = index_of(
        features,
        read_tag=lambda name: pa.array(tags.get(name, [None] * 3), pa.string()),
    )
    x, y = np.array([0.5]), np.array([0.5])
    assert index.match(x, y, tags=[("bridge", "yes")])[1].tolist() == [0, 2]
    assert index.match(x, y, tags=[("bridge", "yes"), ("lanes", "2")])[1].tolist() == [
        0
    ]
    assert index.match(x, y, tags=[("bridge", "yes")], kinds=["lake"])[1].tolist() == [
        2
    ]
    assert index.match(x, y, tags=[("bridge", "no")])[1].tolist() == []
    assert index.match(x, y, tags=[("height", "3")])[1].tolist() == []
    assert index.keyed(pa.array(["2"]), "lanes", tags=[("bridge", "yes")])[
        1
    ].tolist() == [0]
    assert index.values("kind").to_pylist() == ["road", "road", "lake"]


@pytest.mark.spec("B3")
@given(st.lists(SHAPES, min_size=1, max_size=12))
def test_a_feature_stands_in_every_region_that_it_touches_and_is_home_in_one(
    tmp_path_factory, geometries
):
    features = features_of(tmp_path_factory.mktemp("some"), geometries)
    if not len(features.fids):
        return
    rows = layer_rows(features, REGIONS)
    cells = dict(
        zip(
            REGIONS.region_id,
            shapely.box(*np.clip(REGIONS.bounds, -99, 99).T),
            strict=True,
        )
    )
    placed = {(row["fid"], row["region_id"]): row["home"] for row in rows.to_pylist()}
    for fid, geometry in zip(features.fids, features.geometries, strict=True):
        expected = {
            region for region, cell in cells.items() if cell.intersects(geometry)
        }
        assert {region for name, region in placed if name == fid} == expected
        assert sum(placed[fid, region] for region in expected) == 1


def test_kinds_choose_features_and_none_means_all(tmp_path):
    box = shapely.box(0, 0, 1, 1)
    index, _, _ = index_of(
        features_of(tmp_path, [box, box, box], ["park", "lake", "park"])
    )
    x, y = np.array([0.5]), np.array([0.5])
    assert index.match(x, y)[1].tolist() == [0, 1, 2]
    assert index.match(x, y, kinds=["park"])[1].tolist() == [0, 2]
    assert index.match(x, y, kinds=("lake", "sea"))[1].tolist() == [1]
    assert index.match(x, y, kinds=["sea"])[1].tolist() == []


def test_geometries_are_read_by_region_and_only_where_points_are(tmp_path):
    shapes = [
        shapely.box(-5, 0, -4, 1),
        shapely.box(5, 0, 6, 1),
        shapely.box(1, 5, 3, 6),
    ]
    index, reader, rows = index_of(features_of(tmp_path, shapes))
    assert len(rows) == 4  # the last one touches two regions
    index.match(np.array([-4.5, np.nan, 50.0]), np.array([0.5, np.nan, 50.0]))
    assert reader.asked == ["00"]
    index.match(np.array([-4.5]), np.array([0.5]))
    assert reader.asked == ["00"]
    index.match(np.array([5.5]), np.array([0.5]))
    assert index.cached_regions == ("00", "1")


def test_a_point_finds_a_feature_beyond_the_border_of_its_region(tmp_path):
    index, reader, _ = index_of(
        features_of(tmp_path, [shapely.box(2.5, 0, 3, 1)]), space=PLANE
    )
    point, feature = index.match(np.array([1.9]), np.array([0.5]), distance_m=0.6000001)
    assert (point.tolist(), feature.tolist()) == ([0], [0])
    assert reader.asked == [
        "1"
    ]  # where the feature is home; the point lies in region 00


def test_the_cache_of_geometries_keeps_to_its_limit_and_answers_stay_right(tmp_path):
    shapes = [shapely.Point(x, y).buffer(1, 64) for x, y in [(-3, 0), (0, 6), (6, 0)]]
    index, reader, _ = index_of(features_of(tmp_path, shapes), cache_bytes=1)
    x, y = np.array([-3.0, 0.0, 6.0]), np.array([0.0, 6.0, 0.0])
    for _ in range(2):
        assert index.match(x, y)[1].tolist() == [0, 1, 2]
        assert index.cached_regions == ("1",)
    assert reader.asked == ["00", "01", "1"] * 2


@pytest.fixture(scope="session")
def taxi(shared):
    places = []
    with (shared / "data" / "taxi-porto" / "train-1000.csv").open() as source:
        for record in csv.DictReader(source):
            places += json.loads(record["POLYLINE"])
    x, y = np.array(places).T
    assert len(x) == 47_328
    return np.ascontiguousarray(x), np.ascontiguousarray(y)


@pytest.fixture(scope="session")
def porto(shared):
    features = read_features(
        shared / "data" / "osm-porto" / "porto-centre-2020-07-20.osm.pbf",
        Wanted(load_kinds(CONF)),
    )
    bounds = shapely.bounds(features.geometries)
    split = median_split((bounds[:, :2] + bounds[:, 2:]) / 2, 11)
    regions = Regions(group="g", version=1, region_id=split.paths, bounds=split.bounds)
    return index_of(features, regions)[0]


@pytest.mark.spec("P3")
@pytest.mark.parametrize(
    ("kind", "distance_m", "pairs"),
    [
        ("park", None, 106),
        ("building", None, 1_510),
        ("park", 5.0, 599),
        ("building", 5.0, 6_196),
    ],
)
def test_taxis_of_porto_meet_the_known_number_of_features(
    taxi, porto, kind, distance_m, pairs
):
    assert len(porto.match(*taxi, kinds=[kind], distance_m=distance_m)[0]) == pairs


def test_taxis_near_roads_are_as_many_as_with_planar_buffers_to_half_a_percent(
    taxi, porto
):
    assert len(porto.match(*taxi, kinds=["road"], distance_m=5.0)[0]) == pytest.approx(
        17_170, rel=0.005
    )


@pytest.mark.slow
@pytest.mark.spec("P3")
def test_aircraft_over_the_forests_of_liechtenstein(shared):
    import gzip

    with gzip.open(
        shared / "data" / "adsb-switzerland" / "switzerland.json.gz", "rt"
    ) as source:
        places = [
            (record["longitude"], record["latitude"]) for record in json.load(source)
        ]
    file = shared / "data" / "osm-liechtenstein" / "liechtenstein-2022-07-24.osm.pbf"
    index, _, _ = index_of(
        read_features(file, Wanted(load_kinds(CONF), kinds=["forest"]))
    )
    x, y = np.array(places, float).T
    assert len(index.fids) == 567
    assert len(index.match(x.copy(), y.copy())[0]) == 111


def test_touching_and_assign_agree_for_points_inside_cells():
    x, y = np.random.default_rng(2).uniform(-5, 9, (2, 200))
    box, region = touching(REGIONS, np.column_stack([x, y, x, y]))
    assert box.tolist() == list(range(200))
    assert region.tolist() == assign(REGIONS, np.column_stack([x, y])).tolist()


# --- at 180 degrees ---

METRES_PER_DEGREE = 111_319.49  # of longitude at the equator
EDGES = st.sampled_from(
    (-180.0, -179.9995, -179.99, -179.5, 179.5, 179.99, 179.9995, 180.0, 0.0)
)


@pytest.mark.spec("B9")
@given(
    st.lists(
        st.tuples(EDGES, st.sampled_from((-0.001, 0.0, 0.002))),
        min_size=1,
        max_size=6,
        unique=True,
    ),
    st.lists(st.tuples(EDGES, st.sampled_from((0.0, 0.001))), min_size=1, max_size=8),
    st.sampled_from((40.0, 1_000.0, 30_000.0, 90_000.0)),
)
def test_distances_and_enlarged_boxes_go_on_across_180_degrees(
    tmp_path_factory, places, points, distance_m
):
    features = features_of(
        tmp_path_factory.mktemp("layer"), [shapely.Point(place) for place in places]
    )
    index, _, _ = index_of(features)
    x, y = np.array(points).T
    turn = np.abs(x[:, None] - np.array(places)[:, 0])
    east = np.minimum(turn, 360 - turn) * METRES_PER_DEGREE
    north = np.abs(y[:, None] - np.array(places)[:, 1]) * 110_574.0
    near = {
        (int(p), int(f))
        for p, f in zip(*np.nonzero(np.hypot(east, north) <= distance_m), strict=True)
    }
    met = {
        (int(p), int(f))
        for p, f in zip(
            *np.nonzero((east <= distance_m) & (north <= distance_m)), strict=True
        )
    }
    found = index.match(x, y, distance_m=distance_m)
    assert list(zip(*map(np.ndarray.tolist, found), strict=True)) == sorted(near)
    found = index.match(x, y, growth=Growth(metres=2 * distance_m))
    assert list(zip(*map(np.ndarray.tolist, found), strict=True)) == sorted(met)


def test_features_with_a_side_of_two_readings_are_rejected_and_the_others_counted(
    tmp_path,
):
    fiji = {
        "type": "Polygon",
        "coordinates": [[[177, -18], [-178, -18], [-178, -16], [177, -16], [177, -18]]],
    }
    route = {"type": "LineString", "coordinates": [[170, 0], [-170, 0]]}
    split = json.loads(
        shapely.to_geojson(
            shapely.MultiPolygon(
                [shapely.box(177, -18, 180, -16), shapely.box(-180, -18, -178, -16)]
            )
        )
    )
    pole = json.loads(shapely.to_geojson(shapely.box(-180, -90, 180, -70)))
    records = [
        {"type": "Feature", "id": str(n), "properties": {}, "geometry": one}
        for n, one in enumerate((fiji, route, split, pole))
    ]
    file = tmp_path / "some.geojson"
    file.write_text(json.dumps({"type": "FeatureCollection", "features": records}))
    found = read_features(file, Wanted(Kinds(())))
    assert found.rejected == {"crosses_180": 2}
    assert found.fids.tolist() == ["2", "3"]
    assert len(read_features(file, Wanted(Kinds(()), space=PLANE)).fids) == 4
