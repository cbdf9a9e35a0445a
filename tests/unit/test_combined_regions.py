"""AND, OR and NOT of regions, by examples on paper, through the step and by brute force (SPEC X12)."""

import json

import numpy as np
import pytest

from st_common.checks.sentences import asked
from st_common.errors import QueryError, StateError
from st_common.geometry.space import GLOBE, PLANE
from st_common.query.builder import all_of, any_of, circle, outside, query
from st_common.query.explain import explain, lines
from st_common.query.fence import Fence
from st_common.query.frame import Extent, Frame, Sliding
from st_common.query.plan import Aggregate, PairJoin, Plan
from st_common.query.plan_json import plan_from_json
from st_common.query.printed import to_text
from st_common.query.problem import TextError
from st_common.query.text import parse
from st_common.regions.registry import Box, borders_of, region_mask
from tests.kit.by_hand import end, fix, log, register
from tests.kit.by_hand import lines as told
from tests.kit.oracle_rows import Rules
from tests.kit.telling import by_both

pytestmark = pytest.mark.spec("X12")
YARD = Box(minx=0, miny=0, maxx=10, maxy=10)
SHED = Box(minx=4, miny=4, maxx=6, maxy=6)
FREE = all_of(YARD, outside(SHED))  # the yard around the shed


def play(plan, *rows, **rules):
    """The changes as the step and brute force tell them, without the query's name."""
    rows = log(register("q", plan), *rows)
    found = by_both(rows, rules=Rules(**rules) if rules else None)
    return [line.replace(" q ", " ").partition(" {")[0] for line in told(found)]


def drive(*places, name="a"):
    return [fix(name, n, x, y) for n, (x, y) in enumerate(places, 1)]


def mask(region, *places, space=PLANE):
    x, y = np.array(places, float).T
    return region_mask(region, x, y, space=space).tolist()


def test_borders_belong_to_regions_and_so_not_to_what_is_outside_of_them():
    """On the border of the yard, on that of the shed, in both, in none."""
    places = (0, 5), (4, 5), (5, 5), (11, 5)
    assert mask(FREE, *places) == [True, False, False, False]
    assert mask(outside(SHED), *places) == [True, False, False, True]
    assert mask(outside(outside(SHED)), *places) == [False, True, True, False]
    assert mask(any_of(SHED, outside(YARD)), *places) == [False, True, True, True]
    assert mask(all_of(outside(SHED), outside(YARD)), *places) == [False] * 3 + [True]


def test_who_drives_through_what_is_left_out_leaves_and_comes_again():
    plan = Plan(stream="cars", inside=FREE)
    ways = drive((-1, 5), (2, 5), (5, 5), (8, 5), (12, 5))
    assert play(plan, *ways) == [
        "2 @2 +a enter",
        "3 @3 -a leave",
        "4 @4 +a enter",
        "5 @5 -a leave",
    ]


def test_not_inside_is_all_but_a_region_wherever_that_is():
    plan = Plan(stream="cars", inside=outside(YARD))
    ways = drive((-1e6, 5), (2, 5), (1e7, -1e7))
    assert play(plan, *ways) == ["1 @1 +a enter", "2 @2 -a leave", "3 @3 +a enter"]


def test_a_place_that_is_none_lies_in_no_region():
    places = (np.nan, 5.0), (5.0, np.nan)
    for region in (FREE, outside(SHED), any_of(SHED, outside(YARD))):
        assert mask(region, *places) == [False, False]


def test_a_region_stands_twice_in_one():
    twice = any_of(all_of(YARD, SHED), all_of(YARD, outside(SHED)))
    assert mask(twice, (5, 5), (1, 1), (11, 5)) == [True, True, False]


def test_a_fence_around_it_tells_enter_exit_and_dwell():
    fence = Fence(events=("enter", "exit", "dwell"), dwell_s=2.0)
    plan = Plan(stream="cars", inside=FREE, fence=fence)
    ways = drive((-1, 5), (2, 5), (2, 6), (2, 7), (3, 7), (5, 5), (8, 5))
    assert play(plan, *ways, end()) == [
        "2 @2 +a enter",
        "5 @4 =a dwell =2",
        "6 @6 -a leave =4",
        "7 @7 +a enter",
    ]


def test_aggregates_pairs_and_windows_take_it_as_any_region():
    ways = [fix("a", 1, 1, 1), fix("b", 1, 2, 1), fix("b", 3, 5, 5), end()]
    count = Plan(stream="cars", inside=FREE, aggregate=Aggregate(function="count"))
    assert play(count, *ways)[-1].endswith("=1")
    pairs = Plan(stream="cars", inside=FREE, pairs=PairJoin(distance_m=2.0))
    assert len(play(pairs, fix("a", 1, 1, 1), fix("b", 1, 2, 1), end())) == 2
    rows = (Sliding(range=Extent(by="rows", amount=2.0)),)
    framed = Plan(stream="cars", frame=Frame(sliding=rows, regions=(FREE,)))
    assert [line for line in play(framed, *ways) if "+a" in line]


def test_on_the_globe_it_goes_on_across_180_degrees_and_around_poles():
    """A circle of 200 km around 180 degrees without a rectangle east of it; all but a circle around a pole."""
    (_, said) = parse(
        "CREATE AREA east AS (179.5, -1, -179, 1) CROSSING 180;"
        "REGISTER QUERY q AS SELECT * FROM s INSIDE (CIRCLE (180, 0, 200 km) AND NOT east)"
    )
    region = said.plan.inside
    places = (179.2, 0), (179.8, 0), (-179.8, 0), (-178.8, 0), (-178, 0)
    assert mask(region, *places, space=GLOBE) == [True, False, False, True, False]
    south = outside(circle(0, -90, "500 km"))
    places = (0, -90), (120, -89), (-120, -85)
    assert mask(south, *places, space=GLOBE) == [False, False, True]
    plan = Plan(stream="cars", inside=region)
    ways = drive((179.2, 0), (179.8, 0), (-179.8, 0), (-178.8, 0))
    assert play(plan, *ways, geographic=True) == [
        "1 @1 +a enter",
        "2 @2 -a leave",
        "4 @4 +a enter",
    ]


SAID = "((0, 0, 10, 10) AND NOT (4, 4, 6, 6))"


@pytest.mark.parametrize(
    ("text", "means"),
    [
        (f"INSIDE {SAID}", FREE),
        ("INSIDE (0, 0, 10, 10) AND NOT INSIDE (4, 4, 6, 6)", FREE),
        ("NOT INSIDE (4, 4, 6, 6) AND INSIDE YARD", all_of(outside(SHED), YARD)),
        ("INSIDE (NOT shed AND yard)", all_of(outside(SHED), YARD)),
        ("INSIDE yard", YARD),
        ("INSIDE (yard)", YARD),
        ("INSIDE ((yard))", YARD),
        ("NOT INSIDE (4, 4, 6, 6)", outside(SHED)),
        ("NOT INSIDE (NOT shed)", outside(outside(SHED))),
        ("INSIDE (yard OR shed AND yard)", any_of(YARD, all_of(SHED, YARD))),
        ("INSIDE ((yard OR shed) AND yard)", all_of(any_of(YARD, SHED), YARD)),
        (
            "INSIDE yard OR INSIDE shed AND NOT INSIDE shed",
            any_of(YARD, all_of(SHED, outside(SHED))),
        ),
    ],
)
def test_text_says_what_the_builder_and_json_say(text, means):
    areas = "CREATE AREA yard AS (0, 0, 10, 10); CREATE AREA shed AS (4, 4, 6, 6)"
    whole = f"{areas}; REGISTER QUERY q AS SELECT * FROM cars WHERE a > 1 {text}"
    *_, said = parse(whole)
    built = query("cars").where("a > 1").inside(means).build()
    assert said.plan == built
    assert parse(to_text(built, "q"))[0].plan == built
    assert plan_from_json(json.dumps(built.to_json())) == built


def test_explain_and_why_have_words_for_it():
    region = any_of(FREE, circle(3, 4, 5))
    text = "\n".join(lines(explain(query("cars").inside(region).build(), "q")))
    means = "(box 0 0, 10 10 and not box 4 4, 6 6) or circle of 5 m around 3 4"
    assert means in text
    assert asked(Plan(stream="cars", inside=FREE)) == (
        "inside the rectangle (0, 0) to (10, 10) and not inside the rectangle (4, 4) to (6, 6)"
    )


@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        ("INSIDE (yrd OR (0, 0, 1, 1))", "yrd", "unknown area 'yrd'"),
        ("INSIDE ((0, 0, 1, 1) AND NOT (1, 2, 3))", "1, 2, 3", "expected 4 numbers"),
        ("INSIDE (0, 0, 1, 1) AND (2, 2, 3, 3)", "(2, 2", "INSIDE or NOT INSIDE"),
        ("INSIDE (0, 0, 1, 1) AND speed > 3", "speed", "INSIDE or NOT INSIDE"),
        ("INSIDE ((0, 0, 1, 1) AND ) EMIT EVERY", ") EMIT", "or another region"),
        ("INSIDE (0, 0, 1, 1) INSIDE (2, 2, 3, 3)", "INSIDE (2", "is one clause"),
        (
            f"INSIDE {'(NOT ' * 40}(0, 0, 1, 1){')' * 40}",
            "INSIDE (NOT",
            "nested too deeply",
        ),
    ],
)
def test_what_is_no_region_is_pointed_at(text, at, says):
    whole = f"REGISTER QUERY q AS SELECT * FROM cars {text}"
    with pytest.raises(TextError, match=says) as caught:
        parse(whole)
    (problem, *_) = caught.value.problems
    assert whole[problem.column - 1 :].startswith(at)


def test_clauses_behind_a_region_that_is_wrong_are_read_all_the_same():
    text = "INSIDE (0, 0, 1, 1) AND NOT INSIDE * EMIT EVRY"
    with pytest.raises(TextError) as caught:
        parse(f"REGISTER QUERY q AS SELECT * FROM cars {text}")
    assert len(caught.value.problems) == 2


def test_builders_refuse_less_than_two():
    with pytest.raises(QueryError, match="region of OR is of two regions at least"):
        any_of(YARD)


def test_until_when_one_stays_in_it_is_not_said():
    with pytest.raises(QueryError, match="UNTIL and AND, OR, NOT of regions exclude"):
        query("cars").inside(FREE).valid_until()


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("DETECT ENTER WITH (hysteresis = 5 m)", "hysteresis and AND, NOT of regions"),
        ("DETECT CROSS, EXIT", "CROSS and AND, NOT of regions exclude"),
    ],
)
def test_what_needs_its_border_is_refused_by_name(option, says):
    (said,) = parse(f"REGISTER QUERY q AS SELECT * FROM cars INSIDE {SAID} {option}")
    with pytest.raises(QueryError, match=says):
        plan_from_json(json.dumps(said.plan.to_json()))


def test_a_border_that_is_asked_for_all_the_same_is_an_error():
    with pytest.raises(StateError, match="a border and AND, OR, NOT"):
        borders_of([FREE], space=PLANE)
