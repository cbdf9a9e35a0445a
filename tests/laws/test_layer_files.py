"""Whatever a file of features holds: each feature is loaded or named, and what ends a load is an error for people."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.home import Home
from st_common.errors import FairwayError
from st_common.geometry.space import GLOBE, PLANE
from st_common.layers.faults import REJECTED, WORDS, told
from st_common.layers.kinds import Kinds
from st_common.layers.reading import Wanted, read_features
from st_common.layers.rows import layer_rows
from st_common.partitioning.store import current
from tests.kit.effort import tries

NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.floats(-200, 200),
    st.floats(),
    st.sampled_from(["1", None, True, 10**400, 1e308, -1e308, [], {}, ""]),
)
SOUND = st.lists(st.integers(-9, 9), min_size=2, max_size=3)
PLACES = st.one_of(SOUND, SOUND, SOUND, st.lists(NUMBERS, max_size=4), NUMBERS)
LINES = st.lists(PLACES, max_size=6)
CLOSED = st.lists(SOUND, min_size=3, max_size=6).map(lambda ring: [*ring, ring[0]])
RINGS = st.one_of(st.lists(CLOSED, max_size=3), st.lists(LINES, max_size=3))
AREAS = st.lists(RINGS, max_size=3)
TYPES = (
    "Point",
    "MultiPoint",
    "LineString",
    "MultiLineString",
    "Polygon",
    "MultiPolygon",
    "Circle",
    None,
)
OF_TYPE = st.one_of(
    *(
        st.fixed_dictionaries({"type": st.just(kind), "coordinates": coordinates})
        for kind, coordinates in (
            ("Point", PLACES),
            ("MultiPoint", LINES),
            ("LineString", LINES),
            ("MultiLineString", RINGS),
            ("Polygon", RINGS),
            ("MultiPolygon", AREAS),
        )
    ),
    st.fixed_dictionaries(
        {"type": st.sampled_from(TYPES), "coordinates": st.one_of(AREAS, NUMBERS)}
    ),
)
GEOMETRIES = st.one_of(
    OF_TYPE,
    OF_TYPE,
    st.fixed_dictionaries(
        {
            "type": st.just("GeometryCollection"),
            "geometries": st.lists(OF_TYPE, max_size=2),
        }
    ),
    NUMBERS,
)
TEXTS = st.one_of(
    st.text(max_size=4), st.sampled_from(["\ud800", "\0", "a\nb", "é", " "])
)
IDS = st.one_of(TEXTS, st.integers(0, 3), NUMBERS)
FEATURES = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("Feature"), "geometry": GEOMETRIES},
        optional={
            "id": IDS,
            "properties": st.one_of(
                st.dictionaries(TEXTS, st.one_of(TEXTS, NUMBERS), max_size=3), NUMBERS
            ),
        },
    ),
    GEOMETRIES,
)
GOOD = {
    "type": "Feature",
    "id": "good",
    "properties": {},
    "geometry": {"type": "Point", "coordinates": [1, 2]},
}
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le")


def written(file: Path, features: list, encoding: str, *, by_line: bool) -> Path:
    if by_line:
        text = "\r\n".join(map(json.dumps, features))
    else:
        text = json.dumps({"type": "FeatureCollection", "features": features})
    file.write_bytes(text.encode(encoding))
    return file


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("layers")


@tries(150)
@given(
    st.lists(FEATURES, max_size=5),
    st.sampled_from(ENCODINGS),
    st.booleans(),
    st.sampled_from([GLOBE, PLANE]),
)
def test_each_feature_of_geojson_is_loaded_or_named(
    place, features, encoding, by_line, space
):
    given_features = [GOOD, *features]
    file = written(place / "a.geojson", given_features, encoding, by_line=by_line)
    read = read_features(file, Wanted(Kinds(()), space=space))
    rejected = [one for one in read.faults if one.outcome == REJECTED]
    assert len(read.fids) + len(rejected) == read.wanted == len(given_features)
    assert len(rejected) == sum(read.rejected.values())
    assert "good" in read.fids
    assert len({one.where for one in rejected}) == len(rejected)
    assert all(one.where and one.reason in WORDS for one in read.faults)
    assert all(line.isprintable() for line in told(read.faults, most=None))
    layer_rows(read, current(Home(place), "default"))


CELLS = st.one_of(
    st.sampled_from(
        ["1", "2.5", "-7,5", "91", "x", "", " ", "NaN", "1e400", '"', '"a,b"', "é"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
)
SHAPES = st.sampled_from(
    [
        "POINT (1 2)",
        "SRID=4326;POINT (1 2)",
        "SRID=3857;POINT (1 2)",
        "POLYGON ((0 0, 1 1, 1 0, 0 1, 0 0))",
        "POLYGON EMPTY",
        "POINT (nan 1)",
        "LINESTRING (1 1)",
        "0101000000000000000000F03F0000000000000040",
        "",
        "oops",
    ]
)


@tries(150)
@given(
    st.lists(st.lists(CELLS, min_size=2, max_size=5), max_size=6),
    st.lists(SHAPES, max_size=6),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_each_line_of_csv_is_loaded_or_named_or_the_file_is_refused(
    place, rows, shapes, delimiter, encoding, line_end
):
    lines = [delimiter.join(row) for row in rows]
    lines += [f"s{n}{delimiter}{one}{delimiter}1" for n, one in enumerate(shapes)]
    header = delimiter.join(("name", "lat", "lon"))
    file = place / "a.csv"
    file.write_bytes(line_end.join([header, *lines, ""]).encode(encoding))
    try:
        read = read_features(file, Wanted(Kinds(())))
    except FairwayError:
        return
    rejected = [one for one in read.faults if one.outcome == REJECTED]
    assert len(read.fids) + len(rejected) == read.wanted
    assert all(one.where and one.reason in WORDS for one in read.faults)
    assert len(read.fids) == 0 or layer_rows(read, current(Home(place), "default"))
