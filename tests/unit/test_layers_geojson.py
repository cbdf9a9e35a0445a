"""GeoJSON files: good ones are read whole, bad features are counted by reason, broken files are one error."""

import contextlib
import gzip
import json
from pathlib import Path

import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from st_common.errors import LayerError
from st_common.geometry.space import GLOBE, PLANE
from st_common.layers.features import checked
from st_common.layers.geojson import read_geojson
from st_common.layers.kinds import load_kinds
from st_common.layers.reading import Wanted, read_features

KINDS = load_kinds(Path(__file__).resolve().parents[2] / "conf")
POINT = {"type": "Point", "coordinates": [1.0, 2.0]}
SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]}


def feature(geometry=POINT, **more):
    return {"type": "Feature", "properties": {}, "geometry": geometry, **more}


def read(tmp_path, content, *, space=GLOBE):
    file = tmp_path / "layer.geojson"
    file.write_bytes(
        content if isinstance(content, bytes) else json.dumps(content).encode()
    )
    return checked(read_geojson(file, KINDS)[0], space=space)


def collection(*features):
    return {"type": "FeatureCollection", "features": list(features)}


def test_properties_decide_the_kind_and_become_tags(tmp_path):
    features = read(
        tmp_path,
        collection(
            feature(
                SQUARE,
                id="a",
                properties={
                    "natural": "wood",
                    "area": 12.5,
                    "none": None,
                    "names": ["x", "ö"],
                },
            ),
            feature(POINT, id=7, properties={"natural": "wood"}),
            feature(POINT, properties={"kind": "hospital", "highway": "bus_stop"}),
            feature(POINT, properties={"highway": "bus_stop"}),
            feature(
                {"type": "GeometryCollection", "geometries": [POINT]}, properties=None
            ),
        ),
    )
    kinds = dict(zip(features.fids, features.kinds, strict=True))
    assert kinds == {
        "a": "forest",
        "7": "other",
        "#3": "hospital",
        "#4": "stop",
        "#5": "other",
    }
    assert features.tags[features.fids.tolist().index("a")] == {
        "natural": "wood",
        "area": "12.5",
        "names": '["x", "ö"]',
    }


@pytest.mark.parametrize(
    "content",
    [
        b"\n".join(json.dumps(feature(id=i)).encode() for i in range(3)),
        b",\r\n".join(json.dumps(feature(id=i)).encode() for i in range(3)) + b",\n\n",
        b"".join(
            b"\x1e" + json.dumps(feature(id=i), indent=1).encode() + b"\n"
            for i in range(3)
        ),
        b"\xef\xbb\xbf"
        + json.dumps(collection(*(feature(id=i) for i in range(3)))).encode(),
        gzip.compress(
            json.dumps(collection(*(feature(id=i) for i in range(3)))).encode()
        ),
    ],
    ids=["lines", "lines with commas", "RFC 8142", "byte order mark", "gzip"],
)
def test_every_way_to_write_a_list_of_features_is_read(tmp_path, content):
    features = read(tmp_path, content)
    assert features.fids.tolist() == ["0", "1", "2"]
    assert features.rejected == {}


BAD = [
    ("bad_id", feature(id={})),
    ("bad_id", feature(id=True)),
    ("bad_properties", feature(properties=[])),
    ("no_geometry", feature(None)),
    ("not_a_feature", None),
    ("not_a_feature", [1]),
    ("bad_geometry", feature([1, 2])),
    ("bad_geometry", feature({"type": "GeometryCollection", "geometries": [False]})),
    ("unknown_type", feature({"type": "Circle", "coordinates": [1, 2]})),
    ("unknown_type", {"type": "Featre"}),
    ("unknown_type", {"type": {}}),
    ("bad_coordinates", feature({"type": "Point"})),
    ("bad_coordinates", feature({"type": "Point", "coordinates": [1]})),
    ("bad_coordinates", feature({"type": "Point", "coordinates": ["1", 2]})),
    ("bad_coordinates", feature({"type": "Point", "coordinates": [True, 2]})),
    ("bad_coordinates", feature({"type": "Point", "coordinates": [float("nan"), 2]})),
    ("bad_coordinates", feature({"type": "Point", "coordinates": [10**400, 2]})),
    ("bad_coordinates", feature({"type": "MultiPolygon", "coordinates": [[[1]]]})),
    ("too_few_points", feature({"type": "LineString", "coordinates": [[1, 1]]})),
    (
        "too_few_points",
        feature({"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [0, 0]]]}),
    ),
    (
        "ring_not_closed",
        feature({"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1]]]}),
    ),
    ("out_of_crs", feature({"type": "Point", "coordinates": [181, 2]})),
    ("out_of_crs", feature({"type": "Point", "coordinates": [1, -91]})),
    (
        "degenerate",
        feature({"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [2, 2], [0, 0]]]}),
    ),
    ("degenerate", feature({"type": "LineString", "coordinates": [[1, 1], [1, 1]]})),
    ("too_few_points", feature({"type": "MultiPoint", "coordinates": []})),
    ("duplicate_fid", feature(id="good")),
]


@pytest.mark.parametrize(
    ("reason", "bad"), BAD, ids=[f"{i} {reason}" for i, (reason, _) in enumerate(BAD)]
)
def test_a_bad_feature_is_left_out_with_its_reason_and_the_others_stay(
    tmp_path, reason, bad
):
    features = read(tmp_path, collection(feature(id="good"), bad))
    assert features.fids.tolist() == ["good"]
    assert features.rejected == {reason: 1}


def test_deeply_nested_collections_are_left_out(tmp_path):
    geometry = POINT
    for _ in range(20):
        geometry = {"type": "GeometryCollection", "geometries": [geometry]}
    assert read(tmp_path, collection(feature(), feature(geometry))).rejected == {
        "bad_geometry": 1
    }


def test_a_ring_that_crosses_itself_is_repaired_and_counted(tmp_path):
    bow = {"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [1, 0], [0, 1], [0, 0]]]}
    features = read(tmp_path, collection(feature(bow), feature(SQUARE)))
    assert features.repaired == 1
    assert shapely.is_valid(features.geometries).all()
    assert features.geometries[0].area == pytest.approx(0.5)


def test_heights_are_dropped_and_planar_coordinates_are_taken_when_asked_for(tmp_path):
    far = {
        "type": "LineString",
        "coordinates": [[500000, 4649776, 3], [500001, 4649777]],
    }
    assert (
        read(tmp_path, feature(far), space=PLANE).geometries[0].wkt
        == "LINESTRING (500000 4649776, 500001 4649777)"
    )


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"[1]",
        b"not json",
        b'{"type": "FeatureCollection"}',
        b"\xff\xfe\x00",
        b"\x1f\x8bbroken",
        b"[" * 10**6,
    ],
)
def test_a_file_that_holds_no_geojson_is_one_error_line(tmp_path, content):
    with pytest.raises(LayerError) as raised:
        read(tmp_path, content)
    assert "\n" not in str(raised.value)


def test_a_bad_line_among_good_ones_is_counted(tmp_path):
    content = json.dumps(feature()).encode() + b"\n{oops\n\xff\xfe\n17\n"
    assert read(tmp_path, content).rejected == {"bad_json": 2, "not_a_feature": 1}


@given(st.binary(max_size=300))
def test_no_bytes_make_the_reader_fail_in_another_way(tmp_path_factory, content):
    file = tmp_path_factory.mktemp("any") / "any.geojson"
    file.write_bytes(content)
    with contextlib.suppress(LayerError):
        checked(read_geojson(file, KINDS)[0])


JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.floats(),
        st.integers(),
        st.sampled_from(["Point", "Polygon", "Feature", ""]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(
                ["type", "coordinates", "geometry", "properties", "id", "features"]
            ),
            inner,
        ),
    ),
)


@given(JSON, JSON, JSON)
def test_no_json_makes_the_reader_fail_in_another_way(
    tmp_path_factory, geometry, properties, identity
):
    file = tmp_path_factory.mktemp("any") / "any.geojson"
    file.write_text(
        json.dumps(
            collection(feature(geometry, properties=properties, id=identity), geometry)
        )
    )
    features = checked(read_geojson(file, KINDS)[0])
    assert len(features.fids) + sum(features.rejected.values()) == features.wanted == 2


def test_good_files_of_others_are_read_and_bad_ones_never_fail_in_another_way(shared):
    folder = shared / "data" / "malformed"
    outcomes = {}
    for file in [
        *folder.glob("geojsonhint-*/*.geojson"),
        *folder.glob("sedona/*.json"),
        *folder.glob("r5py/*.geojson"),
    ]:
        try:
            features = read_features(file, Wanted(KINDS))
        except LayerError as error:
            outcomes[file.stem] = str(error)
        else:
            outcomes[file.stem] = (
                len(features.fids),
                features.repaired,
                features.rejected,
            )
    good = {
        name: outcome for name, outcome in outcomes.items() if name.startswith("good-")
    }
    assert all(outcome[0] >= 1 and outcome[2] == {} for outcome in good.values())
    assert outcomes["badcoordtype"] == (0, 0, {"bad_coordinates": 1})
    assert outcomes["multiple_problems"][2] == {"bad_id": 1, "unknown_type": 2}
    assert outcomes["invalidSyntaxGeometriesJson"] == (
        1,
        0,
        {"ring_not_closed": 1, "too_few_points": 1},
    )
    assert outcomes["testInvalidPolygon"] == (3, 1, {})
    assert outcomes["featurecollection"].endswith(
        "a FeatureCollection without a list of features"
    )
    assert sum(isinstance(outcome, str) for outcome in outcomes.values()) == 4


def test_kinds_choose_among_features_and_rules(tmp_path):
    file = tmp_path / "some.geojson"
    features = [
        feature(id=i, properties=p)
        for i, p in enumerate([{"kind": "hospital"}, {"highway": "bus_stop"}, {}])
    ]
    file.write_text(json.dumps(collection(*features)))
    hospitals = read_features(file, Wanted(KINDS, kinds=["hospital"]))
    assert (hospitals.fids.tolist(), hospitals.wanted) == (["0"], 1)
    assert read_features(file, Wanted(KINDS, kinds=["stop"])).fids.tolist() == ["1"]
    assert read_features(file, Wanted(KINDS, kinds=["other"])).fids.tolist() == [
        "1",
        "2",
    ]
