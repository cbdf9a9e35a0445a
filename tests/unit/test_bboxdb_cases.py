"""The 49 cases of BBoxDB's own tests: as there through the product, or a row of docs/coming-from.md says why not.

Numbers, inputs and results are those of its tests (1.0.0-rc5), put into the words of this product: an element is a
record of a stream, a stored tuple a feature of a layer, a put a line of a log.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyproj import Geod
from typer.testing import CliRunner

from st_common.answers.answers import answer
from st_common.answers.changes import stream_changes
from st_common.cli import app
from st_common.config.home import Home
from st_common.config.streams import stream_of_table
from st_common.decode import decode
from st_common.engine.run import run
from st_common.errors import QueryError
from st_common.geometry.enlarged import POINT
from st_common.geometry.space import GLOBE
from st_common.partitioning.kdtree import median_split
from st_common.query.plan_json import plan_from_json
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.log_writer import bare_log

ROOT = Path(__file__).resolve().parents[2]
BOXES = {
    "format": "csv",
    "crs": "planar",
    "time_unit": "s",
    "max_ahead_s": "off",
    "columns": {"object": "id", "event_ts": "t", "box": ["lo1", "hi1", "lo2", "hi2"]},
}
POINTS = {**BOXES, "columns": {"object": "id", "event_ts": "t", "x": "x", "y": "y"}}
SHOWN = re.compile(r"^\| (\d+(?:, \d+)*) \|", re.MULTILINE)
tested: set[int] = set()


def case(*numbers: int) -> Callable[[Any], Any]:
    """Marks a test of some cases."""
    tested.update(numbers)
    return (
        pytest.mark.spec("B11", "B12") if {12, 13, 23} & set(numbers) else lambda of: of
    )


class Here:
    """A home with one stream."""

    def __init__(self, folder: Path, table: dict[str, Any]) -> None:
        self.home = Home(folder)
        self.stream = stream_of_table("s", table, Path("streams.toml"))
        self.log = bare_log(self.home.log("s"))

    def register(self, select: str, name: str = "q") -> None:
        text = f"REGISTER QUERY {name} AS {select};"
        register(self.home, {"s": self.stream}, parse(text), owner="me")

    def put(self, *lines: str) -> None:
        self.log.append(("\n".join(lines) + "\n").encode(), arrival_us=9_000_000)
        run(self.home, self.stream, until_idle=True)

    def changes(self, query: str = "q") -> list[tuple[str, str | None, int]]:
        rows = stream_changes(self.home, "s", query).to_pylist()
        return [(row["object"], row["partner"], row["sign"]) for row in rows]

    def members(self, query: str = "q") -> list[Any]:
        return sorted(answer(self.home, query)["object"].to_pylist())


@pytest.fixture
def boxes(tmp_path):
    return Here(tmp_path, BOXES)


def fairway(home: Home, *words: str) -> list[Any]:
    """What a command writes, line by line of JSON where it writes that."""
    given = ("--home", str(home.root), *words)
    done = CliRunner().invoke(app, given, prog_name="fairway")
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def load_layer(home: Home, name: str, file: Path, *, crs: str) -> None:
    fairway(home, "layer", "load", name, str(file), "--crs", crs)


def features(folder, *given):
    """A file of features: id, GeoJSON geometry, properties."""
    path = folder / "features.geojson"
    listed = [
        {"type": "Feature", "id": fid, "geometry": shape, "properties": tags}
        for fid, shape, tags in given
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": listed}))
    return path


HEAD = "id,t,lo1,hi1,lo2,hi2"


@case(1)
def test_ten_versions_in_the_range_are_ten_results(boxes):
    boxes.register("SELECT * FROM s INTERSECTS (-1, -1, 2, 2) EMIT EVERY")
    boxes.put(HEAD, *(f"1,{t},0,1,0,1" for t in range(10)))
    assert [one for one, _, _ in boxes.changes()] == ["1"] * 10


@case(3)
def test_a_query_cannot_be_registered_twice(boxes):
    boxes.register("SELECT * FROM s INTERSECTS (-1, -1, 2, 2)")
    with pytest.raises(QueryError, match="'q'"):
        boxes.register("SELECT * FROM s INTERSECTS (-1, -1, 2, 2)")


@case(6)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "{{{",
        '{"abc": 2}',
        '{"v": 3, "stream": "s", "emit": 2}',
        '{"v": 3, "stream": "s", "transforms": [{"kind": "bbox-enlarge-by-nothing"}]}',
    ],
)
def test_plans_that_are_none_are_errors(text):
    with pytest.raises(QueryError):
        plan_from_json(text)


@case(9)
def test_partners_that_are_missed_leave(tmp_path):
    """A place at three times: in abc and def, in none, in both, in def alone."""
    here = Here(tmp_path, POINTS)
    square = [[[0, 0], [9, 0], [9, 9], [0, 9], [0, 0]]]
    half = [[[0, 0], [4, 0], [4, 9], [0, 9], [0, 0]]]
    file = features(
        tmp_path,
        ("abc", {"type": "Polygon", "coordinates": half}, {}),
        ("def", {"type": "Polygon", "coordinates": square}, {}),
    )
    load_layer(here.home, "l", file, crs="planar")
    here.register("SELECT * FROM s JOIN l ON ST_Intersects(s, l)")
    here.put(
        "id,t,x,y", "stream,1,1,1", "stream,2,50,1", "stream,3,1,1", "stream,4,8,1"
    )
    both = [("stream", "abc", 1), ("stream", "def", 1)]
    none = [("stream", "abc", -1), ("stream", "def", -1)]
    assert here.changes() == [*both, *none, *both, ("stream", "abc", -1)]


@case(12)
def test_two_keys_are_nobody(tmp_path):
    here = Here(tmp_path, POINTS)
    here.register("SELECT * FROM s USING key('1')")
    here.register("SELECT * FROM s USING key('1'), filter('key', '2')", "both")
    here.put("id,t,x,y", "1,1,0,0", "2,1,0,0")
    assert (here.members(), here.members("both")) == (["1"], [])


@case(13)
def test_a_property_that_nobody_has_lets_nobody_through(tmp_path):
    here = Here(tmp_path, POINTS)
    load_layer(
        here.home,
        "l",
        features(tmp_path, ("f", {"type": "Point", "coordinates": [0, 0]}, {})),
        crs="planar",
    )
    lanes = "USING filter('geojson', 'lanes:4')"
    here.register(f"SELECT * FROM s {lanes}")
    here.register(f"SELECT * FROM s JOIN l ON ST_Intersects(s, l) {lanes}", "pairs")
    here.put("id,t,x,y", "1,1,0,0")
    assert (here.members(), here.members("pairs")) == ([], [])


@case(19)
@pytest.mark.parametrize(
    ("region", "meets"),
    [
        ("(5, 0, 15, 9)", True),
        ("(10.1, 0, 20.1, 9)", False),
        ("(10, 0, 20, 9)", True),
        ("(-1e9, -1e9, 1e9, 1e9)", True),
    ],
)
def test_boxes_that_touch_intersect(boxes, region, meets):
    boxes.register(f"SELECT * FROM s INTERSECTS {region}")
    boxes.put(HEAD, "a,1,0,10,0,9")
    assert boxes.members() == ["a"] * meets


LINE = [[13.4287765, 52.5477669], [13.4297, 52.5475], [13.4301, 52.5469]]


@case(23)
def test_five_metres_from_a_street(tmp_path):
    here = Here(tmp_path, {**POINTS, "crs": "EPSG:4326"})
    file = features(tmp_path, ("way", {"type": "LineString", "coordinates": LINE}, {}))
    load_layer(here.home, "l", file, crs="EPSG:4326")
    near = "USING enlarge(200 m), filter('geojson_near')"
    here.register(f"SELECT * FROM s JOIN l ON ST_Intersects(s, l) {near}")
    here.register("SELECT * FROM s JOIN l ON ST_DWithin(s, l, 5 m)", "plain")
    here.put(
        "id,t,x,y",
        "A,1,13.428588,52.5481544",
        "B,1,13.4287765,52.5477669",
        "C,1,13.4287765000001,52.547766900003",
    )
    assert here.members() == here.members("plain") == ["B", "C"]
    far = Geod(ellps="WGS84").inv(13.428588, 52.5481544, *LINE[0])[2]
    assert 40 < far < 50


P1 = "30 10, 40 40, 20 40, 10 20, 30 10"
P2 = "300 100, 400 400, 200 400, 100 200, 300 100"
P3 = "25 10, 40 40, 20 40, 10 20, 25 10"


@case(24)
@pytest.mark.parametrize(
    ("one", "other", "meets"),
    [(P1, P1, True), (P1, P3, True), (P1, P2, False), (P3, P2, False)],
)
def test_polygons_meet_by_their_shapes(tmp_path, one, other, meets):
    columns = {"object": "id", "event_ts": "t", "shape": "shape"}
    here = Here(tmp_path, {**POINTS, "columns": columns, "delimiter": ";"})
    here.register(f"SELECT * FROM s INTERSECTS 'POLYGON (({other}))'")
    here.put("id;t;shape", f"p;1;POLYGON (({one}))")
    assert here.members() == ["p"] * meets


@case(25)
def test_a_text_that_holds_another(tmp_path):
    here = Here(tmp_path, {**POINTS, "attributes": {"value": "string"}})
    here.register("SELECT * FROM s WHERE value LIKE '%abc%'")
    here.put("id,t,x,y,value", "1,1,0,0,abc", "2,1,0,0,def")
    assert here.members() == ["1"]


@case(26)
def test_boxes_in_a_range_and_in_all_of_space(boxes):
    boxes.register("SELECT * FROM s INTERSECTS (-1, -1, 2, 2)")
    boxes.register("SELECT * FROM s", "all_of_them")
    sides = ("0,1,0,1", "0,.5,0,.5", ".5,1.5,.5,1.5", "-10,-9,-10,-9")
    lines = [f"{n},1,{side}" for n, side in enumerate((*sides, "1000,1001,1000,1001"))]
    boxes.put(HEAD, *lines)
    assert boxes.members() == ["0", "1", "2"]
    assert len(boxes.members("all_of_them")) == 5


def stored(home: Home, table: str, *boxes: tuple[float, float, float, float]) -> None:
    """A table of boxes, each given as from and to in x, then in y."""
    fairway(home, "table", "create", table, "--key", "k")
    for n, (lo1, hi1, lo2, hi2) in enumerate(boxes):
        ring = f"{lo1} {lo2}, {hi1} {lo2}, {hi1} {hi2}, {lo1} {hi2}, {lo1} {lo2}"
        shape = ("--geometry", f"POLYGON (({ring}))")
        fairway(home, "table", "put", table, f"k={n}", *shape)


@case(28, 29)
@pytest.mark.parametrize(
    ("left", "right", "box", "pairs"),
    [
        (
            [(1, 7, 1, 7), (1.5, 2.5, 1.5, 2.5)],
            [(0, 5, 0, 5)],
            "0,0,10,10",
            [("0", "0"), ("1", "0")],
        ),
        (
            [(1, 2, 1, 2), (4, 5, 4, 5)],
            [(1.5, 2.5, 1.5, 2.5), (2.5, 5.5, 2.5, 5.5)],
            "3,3,10,10",
            [("1", "1")],
        ),
    ],
)
def test_stored_boxes_that_meet_in_a_range_are_pairs(tmp_path, left, right, box, pairs):
    home = Home(tmp_path)
    stored(home, "t1", *left)
    stored(home, "t2", *right)
    found = fairway(home, "table", "join", "t1", "t2", f"--box={box}")
    assert sorted((one["left"], one["right"]) for one in found) == pairs


@case(32)
def test_as_many_versions_of_a_row_stay_as_its_table_says(tmp_path):
    """All five, the newest three, and none whose time has come."""
    home = Home(tmp_path)
    for table, limit in {
        "five": "--versions=5",
        "three": "--versions=3",
        "old": "--ttl=1 ms",
    }.items():
        fairway(home, "table", "create", table, "--key", "k", limit)
        for n in range(5):
            fairway(home, "table", "put", table, "k=a", "--geometry", f"POINT ({n} 0)")
    fairway(home, "maintain")
    told = {
        table: fairway(home, "table", "get", table, "a") for table in ("five", "three")
    }
    places = {
        table: [row["geometry"]["coordinates"][0] for row in rows]
        for table, rows in told.items()
    }
    assert places == {"five": [4, 3, 2, 1, 0], "three": [4, 3, 2]}
    assert fairway(home, "table", "rect", "old", "--box=-9,-9,9,9") == []


@case(30)
def test_the_same_key_and_version_again_is_a_double(boxes):
    boxes.register("SELECT * FROM s INTERSECTS (-1, -1, 2, 2) EMIT EVERY")
    boxes.put(HEAD, "key1,1,0,1,0,1", "key1,1,0,1,0,1", "key1,2,0,1,0,1")
    assert len(boxes.changes()) == 2


@case(33)
def test_what_has_too_few_dimensions_is_a_reject_and_an_unknown_stream_an_error(boxes):
    told = decode(f"{HEAD}\na,1,0,1\n".encode(), boxes.stream, arrival_us=0)
    assert (len(told.fixes), len(told.rejects)) == (0, 1)
    with pytest.raises(QueryError, match="unknown stream 'nowhere'"):
        boxes.register("SELECT * FROM nowhere")


@case(34)
def test_a_tree_splits_one_dimension_after_the_other():
    places = [*((0, y) for y in (0, 20, 50, 60)), *((10, y) for y in (1, 2, 3, 4))]
    split = median_split(np.array(places, float), 4)
    cells = dict(zip(split.paths, split.bounds.tolist(), strict=True))
    assert cells["00"][2:] == [10, 50]  # high in x, high in y


def decoded(table, text, *, arrival_us=0):
    stream = stream_of_table("s", {"max_ahead_s": "off", **table}, Path("streams.toml"))
    return decode(text.encode(), stream, arrival_us=arrival_us).fixes.to_pylist()


def us(row):
    return row["event_ts"]


def message(kind, values):
    stamp = "2020/01/30,16:36:34.000"
    return f"MSG,{kind},1,1,71B4,1,{stamp},{stamp},{values},,0,0,0,0\n"


ADSB = [
    message(1, "AW119KX,,,,,,"),
    message(3, ",6600,,,-34.003143,18.668631,"),
    message(4, ",,125.706009,297.992065,,,-64"),
]


@case(40, 41)
def test_an_aircraft_is_known_by_what_its_messages_say_together():
    """There once all is known, at the next type 4; here with each place, and what was heard by then."""
    table = {
        "format": "sbs1",
        "columns": {
            "object": "hex",
            "event_ts": "time",
            "x": "longitude",
            "y": "latitude",
        },
        "time_unit": "%Y/%m/%d %H:%M:%S",
        "attributes": {"callsign": "string", "altitude": "double"},
    }
    (fix,) = decoded(table, "".join(ADSB))
    assert (fix["object"], fix["y"], fix["x"]) == ("71B4", -34.003143, 18.668631)
    assert (fix["callsign"], fix["altitude"]) == ("AW119KX", 6600)
    assert us(fix) == 1_580_402_194_000_000
    assert len(decoded(table, ADSB[2] + ADSB[0])) == 0


@case(42)
def test_a_player_of_berlinmod():
    table = {
        "format": "csv",
        "header": False,
        "time_unit": "%d-%m-%Y %H:%M:%S",
        "columns": {"object": "2", "event_ts": "1", "x": "4", "y": "5"},
    }
    (fix,) = decoded(table, "28-05-2007 06:02:16,272,14773,13.2983,52.5722\n")
    assert (fix["object"], fix["x"], fix["y"]) == ("272", 13.2983, 52.5722)
    assert us(fix) == 1_180_332_136_000_000


@case(43)
def test_a_trip_of_berlinmod():
    table = {
        **BOXES,
        "header": False,
        "crs": "EPSG:4326",
        "time_unit": "iso",
        "columns": {"object": "1", "event_ts": "3", "box": ["5", "7", "6", "8"]},
    }
    line = (
        "2000,292882,2007-05-27,2007-05-28 09:00:34.446,13.327,52.4981,13.327,52.4981\n"
    )
    (fix,) = decoded(table, line)
    assert (fix["object"], fix["x"], fix["y"]) == ("2000", 13.327, 52.4981)
    assert us(fix) == 1_180_224_000_000_000


@case(44)
def test_a_point_of_geojson():
    table = {"format": "geojson", "columns": {"object": "id", "event_ts": "ts"}}
    point = {"type": "Point", "coordinates": [52.4688608, 13.3327994]}
    properties = {"ts": "2020-01-01T00:00:00Z"}
    one = {"type": "Feature", "id": "a", "geometry": point, "properties": properties}
    (fix,) = decoded(table, json.dumps(one) + "\n")
    assert (fix["x"], fix["y"]) == (52.4688608, 13.3327994)


@case(45)
def test_a_taxi_of_rome():
    table = {
        "format": "csv",
        "header": False,
        "delimiter": ";",
        "time_unit": "iso",
        "place_order": "lat lon",
        "columns": {"object": "1", "event_ts": "2", "place": "3"},
    }
    line = (
        "173;2014-01-04 00:00:07.028304+01;POINT(41.91924450823211 12.5027184734508)\n"
    )
    (fix,) = decoded(table, line)
    assert us(fix) // 1000 == 1_388_790_007_028
    assert sorted((fix["x"], fix["y"])) == [12.5027184734508, 41.91924450823211]


@case(47)
def test_a_rate_of_exchange():
    table = {
        **POINTS,
        "header": False,
        "time_unit": "%Y%m%d %H%M%S%f",
        "columns": {"object": "1", "event_ts": "1", "x": "2", "y": "4"},
    }
    (fix,) = decoded(table, "20151201 010000000,1.057520,1.057560,0\n")
    assert fix["x"] == 1.05752


@case(48)
def test_a_ship_of_nari():
    table = {
        "format": "csv",
        "header": False,
        "time_unit": "s",
        "columns": {"object": "1", "event_ts": "9", "x": "7", "y": "8"},
    }
    (fix,) = decoded(
        table, "245257000,0,0,0.1,13.1,36,-4.4657183,48.38249,1443650402\n"
    )
    assert (fix["x"], fix["y"]) == (-4.4657183, 48.38249)
    assert us(fix) == 1_443_650_402_000_000


def test_metres_differ_because_they_are_metres():
    """Cases 17 and 18: a hundred metres on each side of 52.52 N, where BBoxDB pads by 323 and 197."""
    x, y = 13.4111173, 52.5219814
    across, along = POINT.by_metres(200).half_sides(np.array([y]), space=GLOBE)
    geod = Geod(ellps="WGS84")
    ours = geod.inv(x, y, x + across[0], y)[2], geod.inv(x, y, x, y + along[0])[2]
    assert ours == pytest.approx((100, 100), rel=0.005)
    theirs = geod.inv(x, y, 13.414021805419305, y)[2]
    assert theirs > 190


def test_every_case_is_tested_or_differs_for_a_reason():
    page = (ROOT / "docs/coming-from.md").read_text(encoding="utf-8")
    _, _, section = page.partition("### Cases of BBoxDB's tests that differ")
    rows = [row for row in section.split("\n## ")[0].splitlines() if SHOWN.match(row)]
    differ = {int(n) for row in rows for n in re.findall(r"\d+", row.split("|")[1])}
    assert not tested & differ
    assert tested | differ == set(range(1, 50))
    assert all(len(row.split("|")[3].split()) > 4 for row in rows)
