"""What gone, silence, end marks and ties do to each kind of answer: the table of docs/query-language.md, cell by cell.

Told by brute force and by the step. Ticks are seconds; `a` is the object that ends at 3 or falls silent after 2.
"""

import json
from dataclasses import replace

import pytest
import shapely

from st_common.query.frame import Extent, Frame, Sliding
from st_common.query.neighbours import Nearest, Place
from st_common.query.plan import Aggregate, LayerJoin, PairJoin, Plan, Window
from st_common.regions.registry import Box, MovingCircle
from tests.kit.by_hand import clock, drop, end, fix, gone, layer, log, register
from tests.kit.oracle import Feature, Rules
from tests.kit.telling import by_brute_force, by_steps

HERE = Box(minx=-9, miny=-9, maxx=9, maxy=9)
S = 1_000_000


@pytest.fixture(params=(by_brute_force, by_steps), ids=("oracle", "step"))
def tell(request):
    zones = {("zones", 1): (Feature("z", "park", shapely.box(-9, -9, 9, 9)),)}
    return lambda rows, **rules: request.param(
        log(layer("zones", 1), *rows), Rules(**rules), zones
    )


def extent(text):
    amount, by = text.split()
    return Extent(by=by, amount=float(amount))


def framed(*windows, **more):
    slides = [window.split(" / ") for window in windows]
    sliding = tuple(
        Sliding(range=extent(s[0]), slide=extent(s[1]) if len(s) > 1 else None)
        for s in slides
    )
    return Plan(stream="s", frame=Frame(sliding=sliding, **more))


PRESENT = {
    "region": Plan(stream="s", inside=HERE),
    "condition": Plan(stream="s", where="x + y < 8"),
    "layer": Plan(stream="s", join=LayerJoin(layer="zones", predicate="intersects")),
    "moving": Plan(stream="s", inside=MovingCircle(focal="b", radius_m=9.0)),
    "nearest": Plan(stream="s", neighbours=Nearest(k=1, place=Place(x=0.0, y=0.0))),
    "pairs": Plan(stream="s", pairs=PairJoin(distance_m=9.0)),
}
PAST = {
    "window 60 s": Plan(stream="s", inside=HERE, window=Window(seconds=60.0)),
    "window 9 tuples": Plan(stream="s", inside=HERE, window=Window(tuples=9)),
    "range 60 s": framed("60 time"),
    "range 60 s by 5 s": framed("60 time / 1 time"),
    "rows 5": framed("5 rows"),
    "rows 5 in 60 s": framed("5 rows", "60 time"),
    "60 s by rows": framed("60 time / 1 rows"),
}
SPACE = {
    "way": framed("1000 space"),
    "way by time": framed("1000 space / 1 time"),
    "way in time": framed("1000 space", "60 time"),
    "region window": framed(regions=(HERE,)),
    "region window in time": framed("60 time", regions=(HERE,)),
}
LASTING = (
    "window 60 s",
    "range 60 s",
    "range 60 s by 5 s",
    "rows 5 in 60 s",
    "60 s by rows",
)


def trip(plan, *after):
    return [register("q", plan), fix("a", 1), fix("b", 1, 1), fix("a", 2), *after]


def minuses(found, name="a"):
    return [(c.event_us / S, c.cause) for c in found if c.sign < 0 and c.object == name]


@pytest.mark.spec("P1", "G7")
@pytest.mark.parametrize("plan", (PRESENT | SPACE).values(), ids=PRESENT | SPACE)
def test_what_is_about_the_present_or_a_way_ends_with_its_object(tell, plan):
    ends = tell(trip(plan, gone("a", 3), fix("b", 4, 1), clock(20)))
    assert set(minuses(ends)) == {(3, "gone")}
    silent = tell(
        trip(plan, fix("b", 4, 1), fix("b", 11, 1), fix("b", 20, 1)), silence_us=10 * S
    )
    assert set(minuses(silent)) == {(12, "expired")}


@pytest.mark.spec("P1", "P5", "W5", "G7")
@pytest.mark.parametrize("plan", PAST.values(), ids=PAST)
def test_windows_of_time_and_of_count_keep_who_is_gone_or_silent(tell, plan):
    assert minuses(tell(trip(plan, gone("a", 3), fix("b", 4, 1), clock(20)))) == []
    assert (
        minuses(tell(trip(plan, fix("b", 4, 1), fix("b", 20, 1)), silence_us=10 * S))
        == []
    )


@pytest.mark.spec("P1", "P5", "W5")
@pytest.mark.parametrize("name", [name for name in LASTING if name != "60 s by rows"])
def test_they_let_go_of_what_is_too_old_though_its_object_ended(tell, name):
    found = tell(trip(PAST[name], gone("a", 3), clock(61.5), clock(62.5), clock(70)))
    left = minuses(found)
    assert {cause for _, cause in left} == {"aged"}
    assert (
        max(at for at, _ in left) == 63
    )  # the last fix was at 2 and is in for 60 s, the bound too


@pytest.mark.spec("W5")
def test_what_slides_with_its_objects_fixes_waits_for_the_next_one(tell):
    found = tell(
        trip(PAST["60 s by rows"], gone("a", 3), clock(100), fix("a", 120), end())
    )
    assert minuses(found) == [(120, "aged")] * 2


@pytest.mark.spec("P5", "W4")
def test_windows_of_count_let_go_when_newer_ones_came_also_after_the_object_was_away(
    tell,
):
    rows = framed("3 rows")
    back = [gone("a", 3), fix("a", 50), fix("a", 51), clock(60)]
    assert minuses(tell(trip(rows, *back))) == [
        (51, "aged")
    ]  # 1 makes room for 51; 2, 50 and 51 are three
    tuples = Plan(stream="s", window=Window(tuples=3))
    assert minuses(
        tell(
            trip(
                tuples,
                gone("a", 3),
                *(fix("b", second, 1) for second in (4, 5, 6)),
                clock(9),
            )
        )
    ) == [(6, "aged")]


@pytest.mark.spec("P1", "W2")
@pytest.mark.parametrize(
    "ended",
    [(gone("a", 3), clock(20)), (fix("b", 20, 1), clock(21))],
    ids=("gone", "silent"),
)
def test_a_clause_about_now_beside_a_window_of_the_past_ends_with_its_object(
    tell, ended
):
    plan = Plan(stream="s", frame=PAST["range 60 s"].frame, inside=HERE)
    cause = "gone" if ended[0].gone else "expired"
    found = tell(trip(plan, *ended), silence_us=10 * S)
    assert {c for _, c in minuses(found)} == {cause}


@pytest.mark.spec("P1", "W7")
def test_no_way_leads_over_the_time_in_which_an_object_was_away(tell):
    plan = Plan(
        stream="s", frame=PAST["rows 5"].frame, aggregate=Aggregate(function="avgspd")
    )
    rows = [
        register("q", plan),
        fix("a", 0),
        fix("a", 1, 10),
        gone("a", 2),
        fix("a", 3, 500),
        fix("a", 4, 530),
        end(),
    ]
    values = [c.value for c in tell(rows) if c.sign > 0]
    assert values[-1] == 20.0  # 10 m in 1 s and 30 m in 1 s, nothing between


@pytest.mark.spec("P1")
@pytest.mark.parametrize(
    "plan", (PRESENT | PAST | SPACE).values(), ids=PRESENT | PAST | SPACE
)
def test_an_end_mark_lets_no_time_pass(tell, plan):
    found = tell(trip(plan, end()), silence_us=10 * S)
    assert minuses(found) == []
    assert [c.object for c in found if c.sign > 0]


@pytest.mark.spec("P1", "G7")
@pytest.mark.parametrize("plan", PRESENT.values(), ids=PRESENT)
def test_a_fix_exactly_at_the_end_of_the_silence_keeps_its_object(tell, plan):
    rows = trip(plan, fix("b", 9, 1), fix("a", 12), fix("b", 15, 1), clock(16))
    assert minuses(tell(rows, silence_us=10 * S)) == []


@pytest.mark.spec("P5")
def test_of_one_time_the_later_row_is_newer_and_of_one_row_the_later_id(tell):
    plan = Plan(stream="s", window=Window(tuples=1))
    here = [register("q", plan), fix("b", 5), fix("a", 5), clock(7)]
    assert [c.object for c in tell(here) if c.sign > 0] == ["a"]
    held = tell(here, lateness_us=S)
    assert [c.object for c in held if c.sign > 0] == ["b"]


@pytest.mark.spec("W6", "P6")
@pytest.mark.parametrize(
    "plan", (PRESENT | PAST | SPACE).values(), ids=PRESENT | PAST | SPACE
)
@pytest.mark.parametrize(
    "ended",
    [
        (gone("a", 3), clock(99)),
        (fix("b", 20, 1), clock(99)),
        (fix("a", 3, 50, load=7.0), clock(99)),
        (drop("q"),),
    ],
    ids=("gone", "silent", "left", "dropped"),
)
def test_whoever_leaves_leaves_with_its_place_and_its_columns(tell, plan, ended):
    shown = replace(plan, emit="dstream", columns=(("load", "load"),))
    rows = [
        register("q", shown),
        *(fix(name, second, x, load=second + x) for name, second, x in _FIXES),
    ]
    minus = [
        json.loads(c.fields)
        for c in tell([*rows, *ended], silence_us=10 * S)
        if c.sign < 0 and c.object == "a"
    ]
    for fields in minus:
        assert (fields["load"], fields["x"], fields["y"]) in {
            (3.0, 1.0, 0.0),
            (4.5, 2.0, 0.0),
            (7.0, 50.0, 0.0),
        }
    if len(ended) == 1 or (ended[0].event_us != 3 * S and plan in PRESENT.values()):
        assert minus


_FIXES = [("a", 2, 1), ("b", 2, 1), ("a", 2.5, 2)]
