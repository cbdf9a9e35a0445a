"""INSIDE and INTERSECTS on streams whose elements have an extent: as they are written, told and checked (SPEC B1)."""

import csv
import json

import numpy as np
import pyarrow as pa
import pytest
import shapely
from typer.testing import CliRunner

from st_common.cli import app
from st_common.errors import StateError
from st_common.geometry.elements import boxes_as_shapes
from st_common.geometry.space import GLOBE, PLANE
from st_common.operators.state.taken import Joined
from st_common.query.builder import around, query
from st_common.query.explain import explain, lines
from st_common.query.extents import with_extent
from st_common.query.plan import Aggregate, Plan
from st_common.query.plan_json import plan_from_json
from st_common.query.text import parse, to_text
from st_common.regions.registry import Box, ByExtent, Circle, Corridor, index_of
from tests.kit.by_hand import fix, gone, log, register
from tests.kit.by_hand import lines as told
from tests.kit.ran_home import ran_home
from tests.kit.telling import by_both

pytestmark = pytest.mark.spec("B1")
YARD = Box(minx=0, miny=0, maxx=10, maxy=10)


def region(part=YARD, how="intersects", extent="box"):
    return ByExtent(part=part, how=how, extent=extent)


def ship(name, time_s, minx, miny, maxx, maxy):
    """A box, whose place is its middle."""
    sides = {"lo1": minx, "hi1": maxx, "lo2": miny, "hi2": maxy}
    middle = (minx + maxx) / 2, (miny + maxy) / 2
    sides = {name: float(side) for name, side in sides.items()}
    return fix(name, time_s, *middle, **sides)


COURSE = [
    ship("a", 1, 12, 4, 16, 6),  # beside the yard
    ship("a", 2, 10, 4, 14, 6),  # touches it
    ship("a", 3, 7, 4, 11, 6),  # its middle is in, its bow is not
    ship("a", 4, 6, 4, 10, 6),  # lies in it, side by side
    gone("a", 5),
    fix("b", 6, 5, 5),  # a place alone
]


def play(plan):
    """The changes as the step and brute force tell them, without the query's name."""
    changes = told(by_both(log(register("q", plan), *COURSE)))
    return [line.replace(" q ", " ").partition(" {")[0] for line in changes]


def test_who_touches_a_region_meets_it():
    assert play(Plan(stream="s", inside=region())) == [
        "2 @2 +a enter",
        "5 @5 -a gone",
        "6 @6 +b enter",
    ]


def test_who_lies_in_a_region_may_touch_its_border_from_within():
    assert play(Plan(stream="s", inside=region(how="covered"))) == [
        "4 @4 +a enter",
        "5 @5 -a gone",
        "6 @6 +b enter",
    ]


@pytest.mark.parametrize("how", ["intersects", "covered"])
def test_a_geometry_counts_and_not_the_box_around_it(how):
    """A line from corner to corner of its box, beside a circle in the other corner; then one in the circle."""
    circle = Circle(x=0, y=8, radius_m=3)
    plan = Plan(stream="s", inside=region(circle, how, "shape"))
    rows = [
        fix("a", 1, 4, 4, geometry="LINESTRING (0 0, 8 8)"),
        fix("a", 2, 0, 8, geometry="LINESTRING (-2 8, 2 8)"),
    ]
    (line,) = told(by_both(log(register("q", plan), *rows)))
    assert line.startswith("2 @2 q +a")


def test_of_one_dimension_y_is_0():
    low = Box(minx=0, miny=0, maxx=10, maxy=0)
    plan = Plan(stream="s", inside=region(low, extent="interval"))
    changes = told(by_both(log(register("q", plan), *COURSE[:5])))
    assert [line.split()[2:4] for line in changes] == [["q", "+a"], ["q", "-a"]]


def test_attributes_that_no_fix_has_are_none_of_theirs():
    both = Joined({"load": pa.array([1])}, 1, {}, 2)
    assert "lo1" not in both
    assert both["load"].to_pylist() == [1, None, None]


def test_those_who_meet_a_region_are_counted():
    plan = Plan(stream="s", inside=region(), aggregate=Aggregate(function="count"))
    changes = told(by_both(log(register("q", plan), *COURSE, fix("b", 9, 50, 50))))
    assert [line.split()[-1] for line in changes if "+*" in line] == [
        *("=0", "=1"),  # a touches the yard
        *("=0", "=1"),  # it is gone, and b comes
    ]


def test_boxes_without_width_or_height_are_lines_and_points():
    bounds = np.array([[0, 0, 2, 1], [0, 0, 2, 0], [1, 0, 1, 3], [4, 5, 4, 5.0]])
    shapes = boxes_as_shapes(bounds)
    kinds = [one.geom_type for one in shapes]
    assert kinds == ["Polygon", "LineString", "LineString", "Point"]
    assert shapely.is_valid(shapes).all()
    assert (shapely.bounds(shapes) == bounds).all()


@pytest.mark.parametrize(
    ("clause", "extent", "expected"),
    [
        ("INSIDE (0, 0, 10, 10)", "", YARD),
        ("INTERSECTS (0, 0, 10, 10)", "", YARD),
        ("INSIDE (0, 0, 10, 10)", "box", region(how="covered")),
        ("INTERSECTS (0, 0, 10, 10)", "box", region()),
        ("INTERSECTS (0, 0, 10, 10)", "shape", region(extent="shape")),
        (
            "INSIDE CIRCLE (3, 4, 5 m)",
            "interval",
            region(Circle(x=3, y=4, radius_m=5), "covered", "interval"),
        ),
    ],
)
def test_what_a_clause_means_depends_on_what_the_elements_are(clause, extent, expected):
    (one,) = parse(f"REGISTER QUERY q AS SELECT * FROM s {clause}")
    plan = with_extent(one.plan, extent)
    assert plan.inside == expected
    assert with_extent(plan, extent) == plan
    if extent:
        assert clause in to_text(plan, "q")
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan
    assert plan_from_json(json.dumps(plan.to_json())) == plan


@pytest.mark.spec("B14")
def test_text_and_builder_say_the_same():
    (one,) = parse("REGISTER QUERY q AS SELECT * FROM s INTERSECTS (0, 0, 10, 10)")
    assert query("s").intersects((0, 0, 10, 10)).build() == one.plan
    (one,) = parse("REGISTER QUERY q AS SELECT * FROM s INTERSECTS ('M', 'a', 5 m)")
    assert query("s").intersects(around("a", 5)).build() == one.plan


def test_what_moves_or_will_enter_asks_about_places():
    for clause in ("('M', 'a', 5 m)", "WILL ENTER (0, 0, 5, 5) WITHIN 5 s"):
        word = "" if clause.startswith("WILL") else "INSIDE "
        (one,) = parse(f"REGISTER QUERY q AS SELECT * FROM s {word}{clause}")
        assert with_extent(one.plan, "box") == one.plan


def test_explain_says_how_extents_count():
    plan = Plan(stream="s", inside=region(how="covered"))
    assert any(
        "lies wholly in box 0 0, 10 10" in one for one in lines(explain(plan, "q"))
    )
    assert plan.inside.holds() == "wholly inside the rectangle (0, 0) to (10, 10)"


def test_a_region_of_extents_answers_nothing_about_places():
    with pytest.raises(StateError, match="about places alone"):
        index_of([region()], space=PLANE)
    line = Corridor.along("LINESTRING (0 0, 1 1)", 5.0)
    with pytest.raises(StateError, match="a corridor is not held against"):
        ByExtent.elements([region(line)], space=GLOBE)


CONF = """
[streams.walks]
format = "csv"
crs = "{crs}"
engine = "local"
time_unit = "s"
tick_s = 10
max_ahead_s = "off"
attributes = {{ load = "double" }}
columns = {{ object = "id", event_ts = "t", shape = "way" }}
"""


def records(start, count, scale=1.0):
    """Lines and triangles around the middle of a square."""
    rng = np.random.default_rng(start)
    rows = []
    for n in range(count):
        corners = rng.uniform(0, 100, 2) + rng.uniform(-15, 15, (3, 2))
        corners = (corners * scale).round(5)
        text = ", ".join(f"{x} {y}" for x, y in corners)
        closed = f"{text}, {corners[0][0]} {corners[0][1]}"
        way = f"LINESTRING ({text})" if n % 2 else f"POLYGON (({closed}))"
        rows.append(f'c{n % 40},{start + n},{n % 7},"{way}"')
    return "\n".join(["id,t,load,way", *rows, ""])


def commands_in(home):
    def fairway(*words):
        done = CliRunner().invoke(app, ["--home", str(home.root), *words])
        return done.exit_code, done.output

    return fairway


@pytest.mark.spec("X4", "G4")
@pytest.mark.parametrize(("crs", "scale"), [("planar", 1.0), ("EPSG:4326", 0.001)])
def test_verify_finds_anew_what_is_told_of_extents(tmp_path, crs, scale):
    conf = CONF.format(crs=crs)
    home = ran_home(tmp_path, conf, "walks", records(0, 80, scale))
    fairway = commands_in(home)
    yard = ", ".join(f"{side * scale:g}" for side in (20, 20, 70, 70))
    bent = ", ".join(
        f"{x * scale:g} {y * scale:g}"
        for x, y in ((10, 10), (90, 20), (60, 80), (10, 10))
    )
    metres = 25 * scale * (1 if crs == "planar" else 110_000)
    circle = f"CIRCLE ({50 * scale:g}, {50 * scale:g}, {metres:g} m)"
    texts = [
        f"CREATE AREA yard AS ({yard})",
        "REGISTER QUERY meets AS SELECT * FROM walks INTERSECTS yard",
        "REGISTER QUERY lies AS SELECT * FROM walks INSIDE yard WHERE load > 2",
        f"REGISTER QUERY bent AS SELECT object, load FROM walks INTERSECTS 'POLYGON (({bent}))'",
        f"REGISTER QUERY round AS SELECT * FROM walks INTERSECTS {circle}",
        f"REGISTER QUERY in_round AS SELECT * FROM walks INSIDE {circle}",
        "REGISTER QUERY many AS SELECT COUNT(*) FROM walks INTERSECTS yard",
        "REGISTER QUERY visits AS SELECT * FROM walks INTERSECTS yard DETECT ENTER, EXIT",
    ]
    assert fairway("query", "register", "--text", "; ".join(texts))[0] == 0
    for start, side in ((100, 60), (300, 80)):
        corner = side * scale
        area = f"(0, 0, {corner:g}, {corner:g})"
        fairway("query", "register", "--text", f"CREATE OR REPLACE AREA yard AS {area}")
        (tmp_path / "more.csv").write_text(records(start, 120, scale))
        assert (
            fairway("replay", "walks", str(tmp_path / "more.csv"), "--no-end")[0] == 0
        )
        assert fairway("run", "walks", "--until-idle")[0] == 0
        for text in texts[1:]:
            name = text.split()[2]
            code, shown = fairway("verify", name)
            assert (code, "holds" in shown) == (0, True), shown
    member = json.loads(fairway("answer", "lies", "--json")[1].splitlines()[0])
    assert "wholly inside" in fairway("why", "lies", member["object"])[1]


@pytest.mark.spec("B8")
@pytest.mark.parametrize("how", ["INSIDE", "INTERSECTS"])
def test_the_past_and_a_trial_look_at_extents_too(tmp_path, how):
    table = records(0, 80)
    rows = [(row["id"], row["way"]) for row in csv.DictReader(table.splitlines())]
    holds = shapely.intersects if how == "INTERSECTS" else shapely.covers
    asked = shapely.box(20, 20, 70, 70)
    ever = {name for name, way in rows if holds(asked, shapely.from_wkt(way))}
    last = {n for n, way in dict(rows).items() if holds(asked, shapely.from_wkt(way))}
    assert 2 < len(last) < len(ever) < 40

    later = "z,200000,0,POINT (500 500)\n"  # closes the day
    home = ran_home(tmp_path, CONF.format(crs="planar"), "walks", table + later)
    fairway = commands_in(home)
    text = f"SELECT object FROM walks {how} (20, 20, 70, 70)"
    past = f"{text} AS OF '1970-01-01T00:01:19Z'"
    code, shown = fairway("query", "run", "--json", "--text", past)
    assert code == 0, shown
    assert {json.loads(one)["object"] for one in shown.splitlines()} == last

    trial = tmp_path / "trial.sql"
    trial.write_text(f"REGISTER QUERY q AS {text};")
    code, shown = fairway("backtest", str(trial), "--stream", "walks", "--json")
    assert code == 0, shown
    first = next(line for line in shown.splitlines() if line.startswith("{"))
    assert json.loads(first)["objects"] == len(ever)


@pytest.mark.parametrize(
    ("clauses", "message"),
    [
        ("INTERSECTS CORRIDOR ('LINESTRING (0 0, 1 1)', 5 m)", "only a rectangle"),
        ("INSIDE ((0, 0, 9, 9) OR (1, 1, 2, 2))", "only a rectangle"),
        ("NOT INSIDE (0, 0, 9, 9)", "only a rectangle"),
        ("INTERSECTS ('M', 'c1', 5 m)", "only a rectangle"),
        ("INSIDE (0, 0, 9, 9) DETECT ENTER, CROSS", "CROSS and extents"),
        (
            "INSIDE (0, 0, 9, 9) DETECT ENTER WITH (hysteresis = 5 m)",
            "hysteresis and extents",
        ),
        (
            "INSIDE (0, 0, 9, 9) EMIT CHANGES WITH VALID UNTIL",
            "VALID UNTIL and extents",
        ),
        ("INSIDE (0, 0, 9, 9) USING enlarge(5 m)", "USING and a region that looks"),
        ("INTERSECTS (0, 0, 9, 9) INSIDE (0, 0, 1, 1)", "multiple"),
    ],
)
def test_what_is_not_known_of_extents_is_refused(tmp_path, clauses, message):
    home = ran_home(tmp_path, CONF.format(crs="planar"), "walks", records(0, 3))
    text = f"REGISTER QUERY q AS SELECT * FROM walks {clauses}"
    code, shown = commands_in(home)("query", "register", "--text", text)
    assert code == 2
    assert message in shown


@pytest.mark.spec("B17")
def test_the_price_of_a_stock_above_100(tmp_path):
    """A stream of one dimension, a key filter and a range: BBoxDB 5.5.1."""
    conf = CONF.format(crs="planar").replace('shape = "way"', 'box = ["low", "high"]')
    prices = "id,t,load,low,high\nApple,1,0,97,99\nShell,2,0,101,104\n"
    home = ran_home(tmp_path, conf, "walks", prices)
    fairway = commands_in(home)
    text = (
        "REGISTER QUERY q AS SELECT * FROM walks INTERSECTS (100, 0, 9999, 0) USING key('Apple');"
        "REGISTER QUERY every AS SELECT * FROM walks INTERSECTS (100, 0, 9999, 0)"
    )
    assert fairway("query", "register", "--text", text)[0] == 0
    (tmp_path / "more.csv").write_text("id,t,load,low,high\nApple,3,0,98,100\n")
    assert fairway("replay", "walks", str(tmp_path / "more.csv"))[0] == 0
    assert fairway("run", "walks", "--until-idle")[0] == 0
    for query_, expected in (("q", {"Apple"}), ("every", {"Apple", "Shell"})):
        assert fairway("verify", query_)[0] == 0
        shown = fairway("answer", query_, "--json")[1].splitlines()
        assert {json.loads(one)["object"] for one in shown} == expected


def test_a_region_of_extents_stands_in_no_other_region():
    said = {"kind": "complement", "part": {"kind": "by_extent", "how": "intersects"}}
    said["part"]["part"] = {"kind": "circle", "x": 1, "y": 1, "radius_m": 1}
    plan = json.dumps({"v": 3, "stream": "s", "inside": said})
    with pytest.raises(Exception, match="INTERSECTS and AND, OR, NOT"):
        plan_from_json(plan)
