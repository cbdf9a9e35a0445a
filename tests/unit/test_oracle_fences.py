"""Fences by brute force and through the step: both say what the decision and the page of the language say."""

import re
from pathlib import Path

import pytest
import shapely

from st_common.query.fence import Debounce, Fence
from st_common.query.plan import LayerJoin, Plan
from st_common.query.text import parse
from st_common.regions.registry import Area, Box, Circle
from tests.kit.by_hand import clock, fix, gone, layer, log, register
from tests.kit.oracle_rows import Feature, Rules
from tests.kit.telling import by_both

PAGE = Path(__file__).resolve().parents[2] / "docs" / "query-language.md"
BOX = Box(minx=0, miny=0, maxx=10, maxy=10)
SIGNS = {1: "+", -1: "-", 0: "0"}


def fence(
    *events, name="f", version=1, op="register", inside=BOX, where=None, **options
):
    asked = Fence(events=events, **options)
    plan = Plan(stream="cars", inside=inside, where=where, fence=asked)
    return register(name, plan, version=version, op=op)


def joined(*events, predicate="intersects", distance_m=0.0, **options):
    asked = Fence(events=events, **options)
    by = LayerJoin(layer="woods", predicate=predicate, distance_m=distance_m)
    plan = Plan(stream="cars", join=by, fence=asked)
    return register("f", plan, layer_version=0)


def lines(*rows, layers=None, **rules):
    """The changes as `row @second sign object cause =value`, as the reference and the step tell them."""
    found = by_both(log(*rows), layers=layers, rules=Rules(**rules))
    told = []
    for change in found:
        who = change.object if change.partner is None else change.partner
        value = "" if change.value is None else f" ={change.value:g}"
        at = f"{change.position} @{change.event_us / 1e6:g}"
        told.append(f"{at} {SIGNS[change.sign]}{who} {change.cause}{value}")
    return told


def drive(*places, name="a", start=1):
    return [fix(name, start + n, x, 5.0) for n, x in enumerate(places)]


def woods(**shapes):
    return [
        Feature(fid=fid, kind="wood", geometry=shapely.from_wkt(wkt))
        for fid, wkt in shapes.items()
    ]


LEFT = "POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0))"
RIGHT = "POLYGON ((20 0, 30 0, 30 10, 20 10, 20 0))"


def seconds(clock_time):
    hours, minutes, rest = (int(part) for part in clock_time.split(":"))
    return (hours * 60 + minutes) * 60 + rest


@pytest.mark.spec("X3", "P4")
def test_the_example_of_the_page_is_what_is_told():
    page = PAGE.read_text(encoding="utf-8")
    text = re.search(r"REGISTER QUERY depot.*?;", page, re.DOTALL)[0]
    (statement,) = parse(text)
    asked = statement.plan.fence
    circle = Circle(x=0, y=0, radius_m=statement.plan.inside.radius_m)
    plan = Plan(stream="trucks", inside=circle, fence=asked)
    table = re.findall(
        r"^\| (10:\d\d:\d\d) \| (\d+) \| [^|]*? \| ([^|]*?) ?\|$", page, re.MULTILINE
    )
    assert len(table) == 9
    rows = [fix("truck", seconds(at), float(far)) for at, far, _ in table]
    told = by_both(log(register("depot", plan), *rows))
    said = [""] * len(table)
    for change in told:
        text = f"`{SIGNS[change.sign]} {change.cause}`"
        late = change.event_us / 1e6 - seconds(table[change.position - 1][0])
        own = "" if not late else " of 10:06:30"
        assert late in (0, -90)
        value = "" if change.value is None else f", value {change.value:g}"
        said[change.position - 1] = text + own + value
    assert said == [cell for _, _, cell in table]


@pytest.mark.spec("X3")
def test_who_leaves_at_the_very_moment_has_not_stayed():
    asked = fence("enter", "exit", "dwell", dwell_s=3)
    rows = [asked, *drive(5), fix("b", 3, 50), fix("a", 4, 15, 5), fix("b", 9, 50)]
    assert lines(*rows) == ["1 @1 +a enter", "3 @4 -a leave =3"]
    rows = [asked, *drive(5), fix("b", 3, 50), fix("b", 4.1, 50), fix("a", 4, 15, 5)]
    assert lines(*rows) == ["1 @1 +a enter", "3 @4 0a dwell =3", "4 @4 -a leave =3"]


@pytest.mark.spec("X3")
def test_who_falls_silent_at_the_very_moment_has_not_stayed():
    asked = fence("enter", "exit", "dwell", dwell_s=3)
    rows = [asked, *drive(5), clock(20)]
    ends = ["1 @1 +a enter", "2 @4 -a expired =3"]
    assert lines(*rows, silence_us=3_000_000) == ends
    assert lines(*rows, silence_us=4_000_000)[1:] == [
        "2 @4 0a dwell =3",
        "2 @5 -a expired =4",
    ]


@pytest.mark.spec("X3")
def test_a_visit_that_is_told_late_dwells_at_once():
    asked = fence("enter", "dwell", dwell_s=3)
    rows = [asked, fix("b", 20, 50), *drive(5, start=1), *drive(5, start=2)]
    assert lines(*rows) == ["2 @1 0a enter", "2 @4 0a dwell =3"]


@pytest.mark.spec("X3")
def test_near_fixes_end_a_row_on_either_side():
    options = {
        "enter_after": Debounce(fixes=2),
        "exit_after": Debounce(fixes=2),
        "hysteresis_m": 2.0,
    }
    rows = [fence("enter", "exit", **options)]
    rows += drive(5, 12, 5, 5, 13, 12, 13, 13)
    assert lines(*rows) == ["4 @4 +a enter", "8 @8 -a leave =4"]


@pytest.mark.spec("X3")
def test_a_row_ends_with_its_object():
    rows = [fence("enter", "exit", enter_after=Debounce(fixes=2)), *drive(5)]
    rows += [gone("a", 2), *drive(5, 5, start=3)]
    assert lines(*rows) == ["4 @4 +a enter"]


@pytest.mark.spec("X3")
def test_nobody_crosses_after_being_gone_or_over_a_gap():
    asked = fence("cross", max_gap_s=1.5)
    rows = [
        asked,
        *drive(-5),
        gone("a", 2),
        *drive(15, -5, start=3),
        fix("a", 7, 15, 5),
    ]
    assert lines(*rows) == ["4 @4 0a cross"]


@pytest.mark.spec("X3")
def test_a_way_that_touches_the_border_crosses():
    rows = [fence("cross"), fix("a", 1, -5, 5), fix("a", 2, 5, -5), fix("a", 3, 6, -5)]
    assert lines(*rows) == ["2 @2 0a cross"]


@pytest.mark.spec("X3")
@pytest.mark.parametrize("inside", [Circle(x=5, y=5, radius_m=5), Area(wkt=LEFT)])
def test_there_is_no_way_through_for_a_fix_that_does_not_satisfy(inside):
    rows = [fence("cross", inside=inside, where="kind = 'taxi'")]
    rows += [fix("a", 1, -5, 5), fix("a", 2, 15, 5, kind="bus")]
    rows += [fix("a", 3, -5, 5, kind="taxi"), fix("a", 4, 5, 5, kind="bus")]
    assert lines(*rows) == ["3 @3 0a cross"]


@pytest.mark.spec("X3", "X4")
def test_registration_asks_for_no_row_of_fixes():
    options = {"enter_after": Debounce(fixes=3), "exit_after": Debounce(fixes=2)}
    rows = [*drive(5), fence("enter", "exit", **options), *drive(15, 15, start=2)]
    assert lines(*rows) == ["1 @1 +a registered", "3 @3 -a leave =2"]


@pytest.mark.spec("X3", "X4")
def test_without_an_answer_registering_and_dropping_are_no_events():
    again = {"op": "replace", "version": 2}
    rows = [*drive(5), fence("exit", "dwell", dwell_s=1)]
    rows += [fence("exit", "inside", **again), *drive(5, 15, start=2)]
    assert lines(*rows) == [
        "2 @1 0a registered",
        "3 @2 0a inside",
        "4 @3 0a leave =2",
    ]


@pytest.mark.spec("X3", "X4")
def test_another_version_of_a_layer_ends_visits_and_begins_others():
    layers = {
        ("woods", 0): woods(left=LEFT, right=RIGHT),
        ("woods", 1): woods(right=RIGHT, wide="POLYGON ((3 0, 9 0, 9 9, 3 9, 3 0))"),
    }
    asked = joined("enter", "exit", "dwell", dwell_s=3)
    rows = [asked, fix("a", 1, 5, 5), fix("b", 2, 25, 5), layer("woods", 1)]
    rows += [fix("b", 6, 25, 5)]
    assert lines(*rows, layers=layers) == [
        "1 @1 +left enter",
        "2 @2 +right enter",
        "3 @2 -left layer =1",
        "3 @2 +wide layer",
        "4 @5 0wide dwell =3",
        "4 @5 0right dwell =3",
    ]


@pytest.mark.spec("X3")
def test_near_to_a_feature_is_as_far_as_the_join_and_the_hysteresis_reach():
    layers = {("woods", 0): woods(left=LEFT)}
    asked = joined(
        "enter", "exit", predicate="dwithin", distance_m=2.0, hysteresis_m=3.0
    )
    rows = [asked, *drive(13, 12, 15, 15.5)]
    assert lines(*rows, layers=layers) == ["2 @2 +left enter", "4 @4 -left leave =2"]
    within = joined("enter", "exit", predicate="within", hysteresis_m=1.0)
    rows = [within, *drive(10, 9, 10, 11, 12)]
    assert lines(*rows, layers=layers) == ["2 @2 +left enter", "5 @5 -left leave =3"]


@pytest.mark.spec("X3")
def test_a_way_crosses_what_is_near_to_a_feature_though_it_misses_the_feature():
    layers = {("woods", 0): woods(left=LEFT, right=RIGHT)}
    asked = joined("enter", "exit", "cross", predicate="dwithin", distance_m=2.0)
    past = [fix("a", n, *at) for n, at in enumerate([(-5, 12), (15, 12), (15, 13)], 1)]
    assert lines(asked, *past, layers=layers) == ["2 @2 0left cross"]
    corner = [fix("a", 1, 9, 13), fix("a", 2, 13, 9)]
    assert lines(asked, *corner, layers=layers) == ["2 @2 0left cross"]
    farther = [fix("a", 1, 9, 13.9), fix("a", 2, 13.9, 9)]
    assert lines(asked, *farther, layers=layers) == []


@pytest.mark.spec("X3")
@pytest.mark.parametrize(
    "inside",
    [Box(minx=5, miny=5, maxx=5, maxy=5), Box(minx=5, miny=2, maxx=5, maxy=8)],
)
def test_a_rectangle_without_extent_has_a_border_too(inside):
    asked = fence("enter", "exit", "cross", inside=inside, hysteresis_m=1.0)
    rows = [asked, *drive(4, 6, 5, 6, 6.5)]
    assert lines(*rows) == ["2 @2 0a cross", "3 @3 +a enter", "5 @5 -a leave =2"]


@pytest.mark.spec("X4")
def test_a_layer_is_loaded_where_no_query_is_known():
    layers = {("woods", 1): woods(left=LEFT)}
    assert lines(layer("woods", 1), *drive(5), layers=layers) == []
