"""Named areas and features of layers: stored once, found in any case, all or none with the rest of a text."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
import shapely

from st_common import tables
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.contracts import load_contract
from st_common.errors import LogError
from st_common.log.log import Log
from st_common.query import commit
from st_common.query.area_store import FILE, HomeAreas, areas
from st_common.query.lookup import queries
from st_common.query.problem import TextError
from st_common.query.registry import carry_out, check
from st_common.query.text import parse
from st_common.regions.registry import Area, Box, Circle, MovingBox, MovingCircle

STREAMS = {
    name: StreamSettings(
        name=name, format="csv", columns=Columns(object="id", x="x", y="y")
    )
    for name in ("taxis", "ships")
}
pytestmark = pytest.mark.spec("P4")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def do(home: Home, text: str, now_us: int = 7):
    return carry_out(
        home, STREAMS, parse(text, areas=HomeAreas(home)), owner="ada", now_us=now_us
    )


def regions(home: Home) -> dict[str, object]:
    return {area.name: area.region for area in areas(home)}


def insides(home: Home) -> dict[str, object]:
    return {row.name: row.plan.inside for row in queries(home) if row.plan}


def test_areas_of_every_kind_are_stored_with_who_and_when(home: Home):
    done = do(
        home,
        "CREATE AREA MyArea AS (0.2, 0.8, 0.4, 0.6); CREATE AREA around AS ('M', 'car7', 500 m);"
        "CREATE AREA Near AS CIRCLE (1, 2, 3 km); CREATE AREA box AS ('M', 'car7', 2, 1);"
        "CREATE AREA wood AS 'POLYGON((0 0, 1 0, 1 1, 0 0))'",
    )
    assert done.created == ("MyArea", "around", "Near", "box", "wood")
    assert done.rows == ()
    assert regions(home) == {
        "around": MovingCircle(focal="car7", radius_m=500.0),
        "box": MovingBox(focal="car7", width=2.0, height=1.0),
        "MyArea": Box(minx=0.2, miny=0.6, maxx=0.4, maxy=0.8),
        "Near": Circle(x=1.0, y=2.0, radius_m=3000.0),
        "wood": Area(wkt="POLYGON ((0 0, 1 1, 1 0, 0 0))"),
    }
    assert {(area.owner, area.created_us) for area in areas(home)} == {("ada", 7)}
    lines = (home.root / "registry" / FILE).read_text().splitlines()
    assert [json.loads(line)["name"] for line in lines] == [
        "around",
        "box",
        "MyArea",
        "Near",
        "wood",
    ]
    assert not any((home.root / "streams").glob("*"))


def test_an_area_is_found_in_any_case_and_a_query_keeps_the_region_that_it_had(
    home: Home,
):
    do(
        home,
        "CREATE AREA MyArea AS (0, 0, 1, 1); REGISTER QUERY a AS SELECT * FROM taxis GPAC-IN MYAREA",
    )
    do(home, "REGISTER QUERY b AS SELECT * FROM taxis INSIDE myarea")
    done = do(
        home,
        "DROP AREA myAREA; CREATE AREA myarea AS (5, 5, 6, 6); REGISTER QUERY c AS SELECT * FROM taxis INSIDE MyArea",
    )
    assert (done.removed, done.created) == (("MyArea",), ("myarea",))
    old, new = (
        Box(minx=0.0, miny=0.0, maxx=1.0, maxy=1.0),
        Box(minx=5.0, miny=5.0, maxx=6.0, maxy=6.0),
    )
    assert insides(home) == {"a": old, "b": old, "c": new}
    assert regions(home) == {"myarea": new}


@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        (
            "CREATE AREA MYAREA AS (0, 0, 1, 1)",
            "MYAREA",
            "area 'MyArea' exists already (CREATE OR REPLACE AREA MyArea: queries that name it follow",
        ),
        (
            "CREATE AREA b AS (0, 0, 1, 1); CREATE AREA B AS (0, 0, 2, 2)",
            "B AS (0, 0, 2",
            "area 'b' exists already",
        ),
        ("DROP AREA Mine", "Mine", "unknown area 'Mine'"),
        ("DROP AREA MyAreas", "MyAreas", "did you mean MyArea?"),
        ("DROP AREA MyArea; DROP AREA MyArea", "MyArea", "unknown area 'MyArea'"),
        (
            "REGISTER QUERY q AS SELECT * FROM taxis INSIDE MyAria",
            "MyAria",
            "did you mean MyArea?",
        ),
        ("CREATE AREA c AS 'POLYGON((0 0, 1 1))'", "'POLYGON", "this is no WKT"),
        (
            "CREATE AREA c AS 'POINT(0 0)'",
            "'POINT",
            "expected a polygon or multipolygon, not a Point",
        ),
        (
            "CREATE AREA c AS (50, 50, 51, 51); REGISTER QUERY q AS SELECT * FROM taxi INSIDE c",
            "taxi",
            "mean taxis?",
        ),
        (
            "CREATE AREA c AS (12, 95, 13, 96); REGISTER QUERY q AS SELECT * FROM taxis INSIDE c",
            "INSIDE",
            "off the",
        ),
    ],
)
def test_one_wrong_statement_changes_nothing_and_is_pointed_at(
    home: Home, text: str, at: str, says: str
):
    do(home, "CREATE AREA MyArea AS (0, 0, 1, 1)")
    before = (home.root / "registry" / FILE).read_bytes()
    whole = f"REGISTER QUERY good AS SELECT * FROM ships INSIDE MyArea;\nCREATE AREA good AS (1, 1, 2, 2);\n{text}"
    for act in (
        do,
        lambda home, text: check(home, STREAMS, parse(text, areas=HomeAreas(home))),
    ):
        with pytest.raises(TextError) as caught:
            act(home, whole)
        assert says in str(caught.value)
        start = whole.rindex(at)
        place = whole[:start].count("\n") + 1, start - whole.rfind("\n", 0, start)
        assert (caught.value.line, caught.value.column) == place
    assert (home.root / "registry" / FILE).read_bytes() == before
    assert queries(home) == []


@pytest.mark.parametrize("number", [1, 2])
def test_a_writer_that_dies_leaves_areas_and_queries_or_neither(
    home: Home, monkeypatch: pytest.MonkeyPatch, number: int
):
    calls = 0
    real = Log.append

    def append(self: Log, payload: bytes, **options: object) -> object:
        nonlocal calls
        calls += 1
        if calls == number:
            raise KeyboardInterrupt
        return real(self, payload, **options)

    text = (
        "CREATE AREA a AS (0, 0, 1, 1); REGISTER QUERY q AS SELECT * FROM taxis INSIDE a;"
        "REGISTER QUERY r AS SELECT * FROM ships INSIDE a"
    )
    with monkeypatch.context() as dying:
        dying.setattr(Log, "append", append)
        with pytest.raises(KeyboardInterrupt):
            do(home, text)
    assert list(regions(home)) == ["a"]
    assert list(insides(home)) == ["q", "r"]
    assert not commit.unfinished(home)


def test_a_writer_that_dies_before_anything_leaves_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(commit, "_write", fail)
        with pytest.raises(KeyboardInterrupt):
            do(
                home,
                "CREATE AREA a AS (0, 0, 1, 1); REGISTER QUERY q AS SELECT * FROM taxis INSIDE a",
            )
    assert (regions(home), insides(home)) == ({}, {})


def test_a_broken_line_is_named(home: Home):
    do(home, "CREATE AREA a AS (0, 0, 1, 1)")
    path = home.root / "registry" / FILE
    path.write_bytes(path.read_bytes() + b'{"name": "b"}\n')
    with pytest.raises(LogError, match="line 2 is no area"):
        areas(home)


def load(home: Home, layer: str, shapes: dict[str, str]) -> None:
    """A layer with these features, as its next version."""
    rows = [
        {
            "region_id": "0",
            "minx": 0.0,
            "miny": 0.0,
            "maxx": 1.0,
            "maxy": 1.0,
            "home": True,
            "fid": fid,
            "kind": "area",
            "tags": [],
            "geometry": shapely.to_wkb(shapely.from_wkt(wkt)),
        }
        for fid, wkt in shapes.items()
    ]
    contract = load_contract("layers")
    tables.replace(
        home.table("layers", layer),
        pa.Table.from_pylist(rows, contract.arrow_schema()),
        contract,
    )


def test_a_feature_is_its_surface_in_the_newest_version_of_the_layer(home: Home):
    load(home, "parks", {"w1": "POLYGON((0 0, 1 0, 1 1, 0 0))"})
    load(
        home,
        "parks",
        {
            "w1": "POLYGON((0 0, 2 0, 2 2, 0 0))",
            "r2": "MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)))",
        },
    )
    do(
        home,
        "REGISTER QUERY a AS SELECT * FROM taxis INSIDE FEATURE (Parks, 'w1'); "
        "CREATE AREA two AS FEATURE (parks, 'r2')",
    )
    load(home, "parks", {"w1": "POLYGON((0 0, 9 0, 9 9, 0 0))"})
    w1 = Area(wkt="POLYGON ((0 0, 2 2, 2 0, 0 0))", layer="parks", fid="w1")
    assert insides(home) == {"a": w1}
    wkt = "MULTIPOLYGON (((0 0, 1 1, 1 0, 0 0)))"
    assert regions(home) == {"two": Area(wkt=wkt, layer="parks", fid="r2")}


@pytest.mark.parametrize(
    ("region", "at", "says"),
    [
        ("FEATURE (park, 'w1')", "park,", "unknown layer 'park' (did you mean parks?)"),
        ("FEATURE (parks, 'w9')", "'w9'", "layer parks has no feature 'w9'"),
        ("FEATURE (parks, 'road')", "'road'", "no feature 'road' that covers anything"),
        ("FEATURE (parks, 'tree')", "'tree'", "no feature 'tree' that covers anything"),
    ],
)
def test_what_is_no_surface_is_refused_at_its_place(
    home: Home, region: str, at: str, says: str
):
    load(
        home,
        "parks",
        {
            "w1": "POLYGON((0 0, 1 0, 1 1, 0 0))",
            "road": "LINESTRING(0 0, 1 1)",
            "tree": "POINT(0 0)",
        },
    )
    text = f"REGISTER QUERY a AS\n SELECT * FROM taxis INSIDE {region}"
    with pytest.raises(TextError) as caught:
        do(home, text)
    assert says in str(caught.value)
    assert (caught.value.line, caught.value.column) == (
        2,
        text.rindex(at) - text.index("\n"),
    )
