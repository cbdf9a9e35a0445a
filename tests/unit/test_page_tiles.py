"""Layers as vector tiles, read by GDAL: features where they are, clipped, no more than a map can show."""

import json

import numpy as np
import pyogrio
import pytest
import shapely

from st_common.geometry.space import PLANE
from st_common.layers.load import load
from st_common.server.page import tiles
from tests.kit.server_http import served
from tests.kit.server_page import CSV, place_in, post

pytestmark = pytest.mark.spec("P10")


@pytest.fixture
def place(tmp_path):
    return place_in(tmp_path)


@pytest.fixture
def client(place):
    with served(place) as client:
        yield client


def feature(fid, shape, **tags):
    return {
        "type": "Feature",
        "id": fid,
        "geometry": json.loads(shapely.to_geojson(shape)),
        "properties": {"fid": fid, "kind": "park", **tags},
    }


def loaded(place, tmp_path, features, **how):
    file = tmp_path / "layer.geojson"
    file.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    load(place.home, "parks", file, **{"group": "default", **how})


def read(data, z, x, y, tmp_path):
    """The features of a tile as GDAL reads them: in degrees, shapes by fid."""
    folder = tmp_path / f"tiles/{z}/{x}"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{y}.pbf"
    file.write_bytes(data)
    where = {"X": x, "Y": y, "Z": z, "CLIP": "NO"}
    _, rows = pyogrio.read_arrow(file, layer="features", **where)
    shapes = shapely.from_wkb(rows["wkb_geometry"].to_pylist())
    lon_lat = shapely.transform(
        shapes,
        lambda p: np.stack(
            [
                np.degrees(p[:, 0] / 6378137),
                np.degrees(2 * np.arctan(np.exp(p[:, 1] / 6378137)) - np.pi / 2),
            ],
            axis=1,
        ),
    )
    return rows, lon_lat


def tile_at(lon, lat, z):
    x = (lon + 180) / 360
    y = (1 - np.arcsinh(np.tan(np.radians(lat))) / np.pi) / 2
    return z, int(x * 2**z), int(y * 2**z)


def get(client, z, x, y, **params):
    return client.get(f"/page/tiles/parks/{z}/{x}/{y}.mvt", params=params)


def test_features_lie_in_a_tile_where_they_lie_on_the_ground(place, client, tmp_path):
    hole = shapely.Polygon(
        [(10, 50), (10.2, 50), (10.2, 50.2), (10, 50.2)],
        [[(10.05, 50.05), (10.1, 50.05), (10.1, 50.1), (10.05, 50.1)]],
    )
    way = shapely.LineString([(10, 50.1), (10.1, 50.15), (10.2, 50.1)])
    spot = shapely.Point(10.11, 50.12)
    features = [
        feature("hole", hole, name="Green"),
        feature("way", way),
        feature("spot", spot),
    ]
    loaded(place, tmp_path, features)
    z, x, y = tile_at(10.1, 50.1, 9)
    told = get(client, z, x, y)
    assert (told.status_code, told.headers["content-type"]) == (
        200,
        "application/vnd.mapbox-vector-tile",
    )
    rows, shapes = read(told.content, z, x, y, tmp_path)
    by_fid = dict(zip(rows["fid"].to_pylist(), shapes, strict=True))
    assert set(by_fid) == {"hole", "way", "spot"}
    names = dict(zip(rows["fid"].to_pylist(), rows["name"].to_pylist(), strict=True))
    assert names == {"hole": "Green", "way": None, "spot": None}
    box = shapely.box(*tiles.tile_box(z, x, y))
    unit = 360 / 2**z / 4096
    for fid, known in (("hole", hole), ("way", way), ("spot", spot)):
        expected = shapely.intersection(known, box)
        apart = shapely.hausdorff_distance(by_fid[fid], expected)
        assert apart < 5 * unit, fid
    assert shapely.area(by_fid["hole"]) == pytest.approx(
        shapely.area(shapely.intersection(hole, box)), rel=0.02
    )


def test_a_tile_where_nothing_lies_is_empty_and_one_that_there_is_not_is_told(
    place, client, tmp_path
):
    assert get(client, 1, 0, 0).status_code == 404
    loaded(place, tmp_path, [feature("a", shapely.box(10, 50, 10.1, 50.1))])
    assert (get(client, 9, 0, 0).status_code, get(client, 9, 0, 0).content) == (
        204,
        b"",
    )
    digits = "1" * 5000
    long = ((digits, 0, 0), (1, digits, 0), (1, 0, digits), (1, 0, "²"))
    for wrong in ((23, 0, 0), (2, 4, 0), (2, 0, 4), ("a", 0, 0), (1, -1, 0), *long):
        assert get(client, *wrong).status_code == 400, wrong
    assert client.get("/page/tiles/none/1/0/0.mvt").status_code == 404


def test_a_new_version_of_a_layer_has_new_tiles(place, client, tmp_path):
    loaded(place, tmp_path, [feature("a", shapely.box(10, 50, 10.1, 50.1))])
    version = client.get("/page/state").json()["layers"][0]["version"]
    z, x, y = tile_at(10.05, 50.05, 10)
    first = get(client, z, x, y, v=version)
    assert "max-age=86400" in first.headers["cache-control"]
    assert read(first.content, z, x, y, tmp_path)[0]["fid"].to_pylist() == ["a"]
    loaded(place, tmp_path, [feature("b", shapely.box(10, 50, 10.1, 50.1))])
    assert get(client, z, x, y, v=version).status_code == 404
    again = get(client, z, x, y)
    assert again.headers["cache-control"] == "private, no-cache"
    assert read(again.content, z, x, y, tmp_path)[0]["fid"].to_pylist() == ["b"]


def test_a_tile_has_no_more_than_can_be_seen_and_the_largest_of_that(
    place, client, tmp_path, monkeypatch
):
    monkeypatch.setattr(tiles, "MOST_FEATURES", 10)
    many = [
        feature(f"f{n}", shapely.box(n / 50, 0, n / 50 + 0.002 + n / 10_000, 0.001))
        for n in range(40)
    ]
    dust = [feature("dust", shapely.box(0.5, 0.5, 0.500001, 0.500001))]
    loaded(place, tmp_path, many + dust)
    z, x, y = tile_at(0.4, 0.1, 8)
    rows, _ = read(get(client, z, x, y).content, z, x, y, tmp_path)
    assert set(rows["fid"].to_pylist()) == {f"f{n}" for n in range(30, 40)}
    monkeypatch.setattr(tiles, "MOST_FEATURES", 1000)
    z, x, y = tile_at(0.5, 0.5, 7)
    rows, _ = read(get(client, z, x, y).content, z, x, y, tmp_path)
    assert "dust" not in rows["fid"].to_pylist()


def test_a_coast_with_very_many_corners_stays_a_small_tile(place, client, tmp_path):
    angle = np.linspace(0, 2 * np.pi, 200_000, endpoint=False)
    far = 1 + 0.01 * np.sin(angle * 5000)
    coast = shapely.Polygon(np.stack([far * np.cos(angle), far * np.sin(angle)], 1))
    loaded(place, tmp_path, [feature("coast", coast)])
    z, x, y = tile_at(0.1, 0.1, 3)
    told = get(client, z, x, y)
    assert len(told.content) < 20_000
    _, (seen, *more) = read(told.content, z, x, y, tmp_path)
    part = shapely.intersection(coast, shapely.box(*tiles.tile_box(z, x, y)))
    area = shapely.area([seen, *more]).sum()
    assert area == pytest.approx(shapely.area(part), rel=0.05)


def test_features_of_planes_lie_at_the_place_of_their_streams(place, client, tmp_path):
    post(client, "cars", "id,t,x,y\na,1,0,0\nb,1,4000,4000\n", CSV)
    client.get("/page/live/cars")
    square = shapely.box(1000, 1000, 3000, 3000)
    loaded(place, tmp_path, [feature("sq", square)], group="town", space=PLANE)
    (layer,) = client.get("/page/state").json()["layers"]
    space = layer["space"]
    assert space["kind"] == "plane"
    west, south, east, north = layer["extent"]
    assert west / space["s"] + space["x0"] == pytest.approx(1000)
    z, x, y = tile_at((west + east) / 2 + 1e-9, (south + north) / 2 + 1e-9, 8)
    rows, (shape, *_) = read(get(client, z, x, y).content, z, x, y, tmp_path)
    assert rows["fid"].to_pylist()[0] == "sq"
    assert shapely.bounds(shape)[2:] == pytest.approx([east, north], abs=0.002)
