"""WILL ENTER: by examples on paper, through the step and by brute force, in plane and on the globe (SPEC G8, P8)."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from st_common.cli import app
from st_common.errors import QueryError
from st_common.geometry.space import GLOBE, PLANE
from st_common.operators.expressions.readings import Readings
from st_common.operators.matching.forecasts import compile_forecasts, will_enter
from st_common.operators.state.fixes import NEVER
from st_common.query.explain import explain, lines
from st_common.query.plan import Aggregate, Plan
from st_common.query.plan_json import plan_from_json
from st_common.query.problem import TextError
from st_common.query.text import parse, to_text
from st_common.reference.columns import Fixes
from st_common.reference.metric import Metric
from st_common.reference.ranges import inside
from st_common.regions.registry import (
    Area,
    Box,
    Circle,
    Corridor,
    Forecast,
    Intersection,
    Union,
)
from tests.kit.by_hand import end, fix, gone, log, register
from tests.kit.by_hand import lines as told
from tests.kit.effort import tries
from tests.kit.ran_home import ran_home
from tests.kit.telling import by_both

pytestmark = pytest.mark.spec("G8")
YARD = Box(minx=100, miny=0, maxx=110, maxy=10)


def forecast(part=YARD, within_s=10.0, by="heading"):
    return Forecast(part=part, within_s=within_s, by=by)


def play(plan, *rows):
    """The changes as the step and brute force tell them, without the query's name."""
    changes = told(by_both(log(register("q", plan), *rows)))
    return [line.replace(" q ", " ").partition(" {")[0] for line in changes]


def test_who_goes_on_straight_enters_until_he_turns_away_or_is_in():
    plan = Plan(stream="s", inside=forecast())
    rows = [
        fix("a", 1, 0, 5),  # no velocity yet
        fix("a", 2, 7, 5),  # 7 a second: 77 in 10 s
        fix("a", 3, 31, 5),  # 24 a second: 271
        fix("a", 4, 32, 30),  # to the north
        fix("a", 5, 60, 29),
        fix("a", 6, 101, 5),  # is in
        fix("a", 7, 120, 5),  # goes away
    ]
    assert play(plan, *rows) == ["3 @3 +a enter", "4 @4 -a leave"]


def test_of_or_of_regions_either_is_entered():
    other = Circle(x=32, y=100, radius_m=5)
    plan = Plan(stream="s", inside=forecast(Union(parts=(YARD, other))))
    rows = [
        fix("a", 1, 0, 5),
        fix("a", 2, 20, 5),  # to the yard
        fix("a", 3, 32, 5),
        fix("a", 4, 32, 20),  # to the circle
        fix("a", 5, 32, 97),  # is in it
        fix("a", 6, 32, 120),
    ]
    assert play(plan, *rows) == ["2 @2 +a enter", "5 @5 -a leave"]


def test_by_speed_any_direction_counts():
    plan = Plan(stream="s", inside=forecast(by="speed"))
    rows = [
        fix("a", 1, 0, 5),
        fix("a", 2, 7, 5),  # 93 away, 70 in time
        fix("a", 3, 31, 5),  # 69 away, 240 in time
        fix("a", 4, 32, 30),
        fix("a", 5, 101, 5),
        fix("a", 6, 111, 5),  # 1 away, to where it came from
    ]
    assert play(plan, *rows) == ["3 @3 +a enter", "5 @5 -a leave", "6 @6 +a enter"]


def test_who_stands_still_comes_back_or_is_gone_enters_nothing():
    plan = Plan(stream="s", inside=forecast())
    rows = [
        fix("a", 1, 50, 5),
        fix("a", 2, 70, 5),
        fix("a", 3, 70, 5),
        fix("b", 3, 50, 5),
        fix("b", 4, 70, 5),
        gone("b", 5),
        fix("b", 6, 90, 5),  # a stay of its own: no velocity
    ]
    assert play(plan, *rows) == [
        "2 @2 +a enter",
        "3 @3 -a leave",
        "5 @4 +b enter",
        "6 @5 -b gone",
    ]


def test_those_who_will_enter_are_counted():
    plan = Plan(
        stream="s",
        inside=forecast(),
        where="object <> 'a'",
        aggregate=Aggregate(function="count"),
    )
    rows = [fix(name, 1, 40, y) for name, y in (("a", 5), ("b", 5), ("c", 50))]
    rows += [fix(name, 2, 60, y) for name, y in (("a", 5), ("b", 5), ("c", 50))]
    (line,) = [one for one in play(plan, *rows, end()) if "+" in one and "=1" in one]
    assert "@" in line


@dataclass(frozen=True)
class _Said:
    """What expressions say of fixes whose way before is known."""

    columns: dict

    def values(self, text, rows):
        return self.columns[text][rows]


def readings_of(x, y, before_x, before_y, seconds):
    ts = np.full(len(x), 1_000_000_000, np.int64)
    return Readings(
        object=np.arange(len(x)),
        ts=ts,
        x=x,
        y=y,
        before_ts=np.where(seconds > 0, ts - (seconds * 1e6).astype(np.int64), NEVER),
        before_x=before_x,
        before_y=before_y,
        earlier_ts=np.full(len(x), NEVER),
        earlier_x=np.full(len(x), np.nan),
        earlier_y=np.full(len(x), np.nan),
        attributes={},
    )


def fixes_of(readings, space):
    known = readings.before_ts != NEVER
    of = {
        "speed_mps": np.where(known, readings.speed_mps(space=space), np.nan),
        "heading_deg": readings.heading_deg(space=space),
    }
    n = len(readings)
    ids = np.array([f"o{number}" for number in range(n)], object)
    return Fixes(
        ids=ids,
        x=readings.x,
        y=readings.y,
        metric=Metric(is_flat=space.is_flat, doubts=True),
        of=_Said(of),
        rows=np.arange(n),
    )


def regions_at(x, y, unit):
    """One of each kind about a place."""
    line = shapely.LineString([(x - unit, y), (x, y + unit), (x + unit, y)])
    polygon = (
        shapely.Point(x, y)
        .buffer(unit)
        .difference(shapely.box(x, y, x + 2 * unit, y + 2 * unit))
    )
    metres = unit if unit > 1 else unit * 60_000.0
    box = Box(minx=x - unit, miny=y - unit, maxx=x + unit, maxy=y + unit / 2)
    there = Circle(x=x, y=y + 3 * unit, radius_m=metres)
    return [
        box,
        Circle(x=x, y=y, radius_m=metres),
        Area.of_wkt(polygon.wkt),
        Corridor.along(line.wkt, metres / 4),
        Union(parts=(box, there)),
    ]


@pytest.mark.spec("P8")
@pytest.mark.parametrize("space", [PLANE, GLOBE])
@tries(20)
@given(seed=st.integers(0, 1 << 30), by=st.sampled_from(["heading", "speed"]))
def test_all_queries_at_once_are_what_brute_force_says_of_each(space, seed, by):
    rng = np.random.default_rng(seed)
    unit, lon, lat = (10.0, 0.0, 0.0) if space.is_flat else (0.02, 8.0, 46.0)
    if not space.is_flat and seed % 3 == 0:
        lon = 180.0  # the other side of the edge is near
    count = 40
    x, y = rng.uniform(-8 * unit, 8 * unit, (2, count))
    step = rng.normal(0, unit / 4, (2, count))
    seconds = np.where(rng.random(count) < 0.1, 0.0, rng.uniform(0.5, 3.0, count))
    x, y = lon + x, lat + y
    before_x = x - step[0]
    if not space.is_flat:
        x, before_x = ((one + 180.0) % 360.0 - 180.0 for one in (x, before_x))
    readings = readings_of(x, y, before_x, y - step[1], seconds)
    asked = [
        forecast(part, within_s, by)
        for within_s in (2.0, 3.5, 15.0)
        for at in rng.uniform(-6 * unit, 0, (3, 2))
        for part in regions_at(lon + at[0] - (lon == 180) * 2 * unit, lat + at[1], unit)
    ]
    groups = compile_forecasts(range(len(asked)), asked, space=space)
    assert len(groups) == 10  # kinds of regions, and doublings of times
    pairs = np.zeros((len(asked), count), bool)
    for group in groups:
        point, query = will_enter(group, readings, space=space)
        assert not pairs[query, point].any()
        pairs[query, point] = True
    fixes = fixes_of(readings, space)
    for number, one in enumerate(asked):
        meets = inside(one, fixes)
        assert not (meets.sure & ~pairs[number]).any(), one
        assert not (pairs[number] & ~meets.maybe).any(), one


@pytest.mark.parametrize(
    "clause",
    [
        "WILL ENTER (0, 0, 5, 5) WITHIN 600 s",
        "WILL ENTER CIRCLE (3, 4, 500 m) WITHIN 30 s BY SPEED",
        "WILL ENTER ((0, 0, 5, 5) OR CIRCLE (3, 4, 500 m)) WITHIN 30 s",
    ],
)
def test_text_and_json_say_the_same(clause):
    (one,) = parse(f"REGISTER QUERY q AS SELECT * FROM s {clause}")
    assert clause in to_text(one.plan, "q")
    (again,) = parse(to_text(one.plan, "q"))
    assert again.plan == one.plan
    assert Plan.from_json(json.loads(json.dumps(one.plan.to_json()))) == one.plan
    assert plan_from_json(json.dumps(one.plan.to_json())) == one.plan
    assert any("what enters" in line for line in lines(explain(one.plan, "q")))


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("WILL ENTER (0, 0, 5, 5) WITHIN 5", "expected a unit such as min"),
        ("WILL ENTER (0, 0, 5, 5) WITHIN 5 m", "m"),
        ("WILL ENTER (0, 0, 5, 5) WITHIN 5 s BY luck", "expected HEADING or SPEED"),
        ("WILL ENTER ((0, 0, 5, 5) AND (1, 1, 2, 2)) WITHIN 5 s", "AND, NOT of"),
        ("WILL ENTER ('M', 'a', 5) WITHIN 5 s", "goes with an object"),
        ("WILL ENTER (0, 0, 5, 5) WITHIN 5 s INSIDE (0, 0, 9, 9)", "multiple"),
    ],
)
def test_what_cannot_be_foretold_is_refused(clause, message):
    with pytest.raises(TextError, match=message):
        parse(f"REGISTER QUERY q AS SELECT * FROM s {clause}")


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"neighbours": {"kind": "nearest", "k": 1, "place": {"x": 1, "y": 1}}}, "KNN"),
        ({"window": {"seconds": 5.0}}, "WINDOW"),
    ],
)
def test_what_asks_of_places_alone_is_refused_beside_it(more, name):
    said = Plan(stream="s", inside=forecast()).to_json() | more
    with pytest.raises(QueryError, match=name):
        plan_from_json(json.dumps(said))


@pytest.mark.parametrize(
    "region",
    [
        Intersection(parts=(YARD, forecast())),
        forecast(Intersection(parts=(YARD, Circle(x=1, y=1, radius_m=1)))),
    ],
)
def test_a_forecast_is_of_one_region_and_stands_alone_in_json_too(region):
    with pytest.raises(QueryError, match="WILL ENTER and AND,"):
        plan_from_json(json.dumps(Plan(stream="s", inside=region).to_json()))


CONF = """
[streams.cars]
format = "csv"
crs = "planar"
engine = "local"
time_unit = "s"
tick_s = 10
max_ahead_s = "off"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
"""


def _records(start, count):
    rng = np.random.default_rng(start)
    places = rng.uniform(0, 100, (count, 2)).round(3).tolist()
    rows = [f"c{n % 40},{start + n},{x},{y}" for n, (x, y) in enumerate(places)]
    return "\n".join(["id,t,x,y", *rows, ""])


@pytest.mark.spec("G8", "X4")
def test_forecasts_follow_their_area_and_hold_what_verify_says(tmp_path):
    home = ran_home(tmp_path, CONF, "cars", _records(0, 80))

    def fairway(*words):
        done = CliRunner().invoke(app, ["--home", str(home.root), *words])
        assert done.exit_code == 0, done.output
        return done.stdout

    texts = [
        "CREATE AREA yard AS (40, 40, 60, 60)",
        "REGISTER QUERY straight AS SELECT * FROM cars WILL ENTER yard WITHIN 90 s",
        "REGISTER QUERY near AS SELECT * FROM cars WILL ENTER yard WITHIN 9 s BY SPEED",
        "REGISTER QUERY many AS SELECT COUNT(*) FROM cars WILL ENTER yard WITHIN 50 s",
    ]
    fairway("query", "register", "--text", "; ".join(texts))
    for start, area in ((100, "(10, 10, 60, 60)"), (300, "CIRCLE (50, 50, 20 m)")):
        fairway("query", "register", "--text", f"CREATE OR REPLACE AREA yard AS {area}")
        (tmp_path / "more.csv").write_text(_records(start, 120))
        fairway("replay", "cars", str(tmp_path / "more.csv"), "--no-end")
        fairway("run", "cars", "--until-idle")
        for name in ("straight", "near", "many"):
            shown = fairway("verify", name)
            assert "holds" in shown
            assert not shown.startswith(f"{name}: 0 members")
