"""Elements that are lines and areas: their geometry is kept, and a point on it is their place."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.streams import stream_of_table
from st_common.decode import decode
from st_common.errors import ConfigError

pytestmark = pytest.mark.spec("B7")

LINE = "LINESTRING (0 0, 4 0, 4 6)"
HOLE = "POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0), (1 1, 8 1, 8 8, 1 8, 1 1))"
KINDS = {
    "point": "POINT (3 4)",
    "line": LINE,
    "hole": HOLE,
    "points": "MULTIPOINT ((1 1), (5 5))",
    "both": f"GEOMETRYCOLLECTION ({LINE}, POINT (9 9))",
}


def stream_of(**others):
    table = {
        "format": "csv",
        "delimiter": "|",
        "columns": {"object": "id", "event_ts": "t", "shape": "geom"},
        "attributes": {"kind": "string"},
        "crs": "planar",
        "time_unit": "s",
        "max_ahead_s": "off",
        **others,
    }
    table = {key: value for key, value in table.items() if value is not None}
    return stream_of_table("shapes", table, Path("streams.toml"))


def decoded(shapes, **others):
    lines = [f"{name}|1|{text}|k\n" for name, text in shapes.items()]
    payload = "id|t|geom|kind\n" + "".join(lines)
    return decode(payload.encode(), arrival_us=0, stream=stream_of(**others))


def check_kept(fixes, shapes):
    """Each geometry is the same, and its place lies on it."""
    assert [row["object"] for row in fixes] == list(shapes)
    for row in fixes:
        shape = shapely.from_wkt(shapes[row["object"]])
        kept = shapely.from_wkt(row["geometry"])
        assert shapely.equals_exact(kept, shape, tolerance=0)
        assert shapely.distance(shape, shapely.Point(row["x"], row["y"])) < 1e-9


def test_each_kind_of_geometry_stays_and_has_a_place_on_it():
    check_kept(decoded(KINDS).fixes.to_pylist(), KINDS)


def test_hexadecimal_wkb_and_geojson_are_as_good():
    forms = {
        "hex": shapely.to_wkb(shapely.from_wkt(LINE), hex=True),
        "json": shapely.to_geojson(shapely.from_wkt(HOLE)),
        "wkt": LINE,
    }
    told = decoded(forms, quote="'")
    check_kept(told.fixes.to_pylist(), {"hex": LINE, "json": HOLE, "wkt": LINE})


def test_what_is_no_geometry_or_an_invalid_one_is_a_reject():
    shapes = {
        "word": "here",
        "torn": "LINESTRING (0 0, 4",
        "bow": "POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))",
        "one": "LINESTRING (0 0)",
        "nan": "LINESTRING (0 0, nan 1)",
        "empty": "POLYGON EMPTY",
        "none": "",
        "fine": LINE,
    }
    told = decoded(shapes)
    assert told.rejects["reason"].to_pylist() == [
        *["no_shape"] * 5,
        *["missing_position"] * 2,
    ]
    assert told.fixes["object"].to_pylist() == ["fine"]


def test_other_systems_and_places_off_the_globe_are_rejects():
    shapes = {
        "own": f"SRID=4326;{LINE}",
        "other": f"SRID=3857;{LINE}",
        "wkb": shapely.to_wkb(
            shapely.set_srid(shapely.from_wkt(LINE), 3857), hex=True, include_srid=True
        ),
        "off": "LINESTRING (179 0, 181 0)",
    }
    told = decoded(shapes, crs="EPSG:4326")
    assert told.fixes["object"].to_pylist() == ["own"]
    assert told.rejects["reason"].to_pylist() == ["out_of_crs"] * 3


def test_features_of_geojson_keep_their_geometry():
    features = [
        {
            "type": "Feature",
            "id": name,
            "geometry": json.loads(shapely.to_geojson(shapely.from_wkt(text))),
            "properties": {"t": 1, "kind": "k"},
        }
        for name, text in KINDS.items()
    ]
    body = json.dumps({"type": "FeatureCollection", "features": features})
    columns = {"object": "id", "event_ts": "t", "shape": "geometry"}
    stream = stream_of(format="geojson", delimiter=None, columns=columns)
    told = decode(body.encode(), arrival_us=0, stream=stream)
    check_kept(told.fixes.to_pylist(), KINDS)
    with pytest.raises(ConfigError, match="the place of a feature is its geometry"):
        stream_of(format="geojson", delimiter=None)


def test_binary_columns_of_parquet_keep_their_geometry(tmp_path):
    shapes = shapely.to_wkb(shapely.from_wkt(list(KINDS.values())))
    rows = {"id": list(KINDS), "t": [1] * len(KINDS), "geom": list(shapes)}
    path = tmp_path / "shapes.parquet"
    pq.write_table(pa.table({**rows, "kind": ["k"] * len(KINDS)}), path)
    stream = stream_of(format="parquet", delimiter=None)
    told = decode(path.read_bytes(), arrival_us=0, stream=stream)
    check_kept(told.fixes.to_pylist(), KINDS)


coordinates = st.floats(-1e6, 1e6).map(lambda one: one + 0.0)
lines = st.lists(st.tuples(coordinates, coordinates), min_size=2, max_size=6).filter(
    lambda points: len(set(points)) > 1
)


@given(st.lists(lines, min_size=1, max_size=5))
def test_every_number_of_a_line_stays_as_it_was(drawn):
    shapes = {f"a{n}": shapely.LineString(one).wkt for n, one in enumerate(drawn)}
    exact = {
        name: shapely.to_wkt(shapely.LineString(one), rounding_precision=340)
        for (name, _), one in zip(shapes.items(), drawn, strict=True)
    }
    fixes = decoded(exact).fixes.to_pylist()
    for row, points in zip(fixes, drawn, strict=True):
        kept = shapely.get_coordinates(shapely.from_wkt(row["geometry"]))
        assert list(map(tuple, kept.tolist())) == points
