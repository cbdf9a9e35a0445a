"""The oracle on windows, aggregates, distinct and valid until, against changes found by hand.

A line reads: position @second query +object cause =value. Rows stand at positions 0, 1, 2, ..; a tick is a second.
"""

import pytest
import shapely

from st_common.query.neighbours import Nearest, Place
from st_common.query.plan import Aggregate, LayerJoin, Plan, Window
from st_common.regions.registry import Area, Box, Circle, MovingBox, MovingCircle
from tests.kit.by_hand import (
    clock,
    drop,
    end,
    fix,
    gone,
    layer,
    lines,
    log,
    register,
)
from tests.kit.oracle import Feature, Rules, agree, answer, fold
from tests.kit.telling import by_both

S = 1_000_000
BOX = Box(minx=0, miny=0, maxx=4, maxy=4)


def count(function="count", argument=None, group=None, inside=BOX, **more):
    return Plan(
        stream="s",
        inside=inside,
        aggregate=Aggregate(function=function, argument=argument, group=group),
        **more,
    )


def told(rows, layers=None, **rules):
    found = by_both(rows, layers=layers, rules=Rules(**rules))
    assert agree(fold(found), answer(rows, layers=layers, rules=Rules(**rules)))
    return lines(found)


@pytest.mark.spec("P5", "P7")
def test_count_of_cars_in_a_region_now_is_there_from_registration_on_with_0():
    rows = log(
        fix("z", 0.5, 9, 9),
        register("q", count()),
        fix("a", 1.2, 1, 1),
        fix("b", 1.3, 4, 4),
        clock(2.5),
        fix("a", 2.6, 5, 5),
        gone("b", 2.7),
        clock(3.5),
        drop("q"),
    )
    found = by_both(rows)
    assert lines(found) == [
        "1 @0.5 q +* registered =0",
        "4 @2 q -* value =0",
        "4 @2 q +* value =2",
        "7 @3 q -* value =2",
        "7 @3 q +* value =0",
        "8 @3.5 q -* dropped =0",
    ]
    assert [change.fix_us / S for change in found] == [0.5, 2, 2, 3, 3, 3.5]


@pytest.mark.spec("G9")
def test_a_sum_that_stays_the_same_is_not_told():
    rows = log(
        register("q", count("sum", "load")),
        fix("a", 1, 1, 1, load=1.5),
        fix("b", 1, 1, 1, load=2.5),
        clock(1.5),
        fix("a", 2, 1, 1, load=2.5),
        fix("b", 2, 2, 2, load=1.5),
        end(),
    )
    assert told(rows) == ["3 @1 q +* enter =4"]


@pytest.mark.spec("G9")
@pytest.mark.parametrize(
    ("function", "before", "after"), [("min", 1, 2), ("max", 9, 7), ("avg", 4.75, 4.5)]
)
def test_after_the_extreme_has_left_the_next_one_is_told(function, before, after):
    """1, 2, 7, 9: both 1 and 9 leave."""
    loads = {"a": 1.0, "b": 2.0, "c": 7.0, "d": 9.0}
    rows = log(
        register("q", count(function, "load")),
        *(fix(name, 0.5, 1, 1, load=load) for name, load in loads.items()),
        clock(1.5),
        fix("a", 1.8, 5, 5),
        gone("d", 1.9),
        end(),
    )
    assert told(rows) == [
        f"5 @1 q +* enter ={before:g}",
        f"8 @1.9 q -* value ={before:g}",
        f"8 @1.9 q +* value ={after:g}",
    ]


@pytest.mark.spec("G9")
def test_nulls_are_not_counted_and_a_group_of_nulls_has_no_sum():
    rows = log(
        register("n", count("count", "load", "kind")),
        register("s", count("sum", "load", "kind")),
        fix("a", 0.5, 1, 1, kind="bus"),
        fix("b", 0.5, 1, 1, kind="taxi", load=2.0),
        fix("c", 0.5, 1, 1, load=3.0),
        clock(1.5),
        fix("a", 1.6, 1, 1, kind="bus", load=1.0),
        fix("b", 1.6, 9, 9),
        end(),
    )
    assert told(rows) == [
        "5 @1 n +NULL enter =1",
        "5 @1 s +NULL enter =3",
        "5 @1 n +bus enter =0",
        "5 @1 n +taxi enter =1",
        "5 @1 s +taxi enter =2",
        "8 @1.6 n -bus value =0",
        "8 @1.6 n +bus value =1",
        "8 @1.6 s +bus enter =1",
        "8 @1.6 n -taxi leave =1",
        "8 @1.6 s -taxi leave =2",
    ]


@pytest.mark.spec("G9")
def test_what_has_no_value_and_the_text_null_are_two_groups():
    kinds = {"a": None, "b": "NULL", "c": "'NULL'", "d": "it's", "e": "null"}
    rows = log(
        register("n", count("count", None, "kind")),
        *(fix(name, 0.5, 1, 1, kind=kind) for name, kind in kinds.items()),
        end(),
    )
    expected = ["'''NULL'''", "'NULL'", "NULL", "it's", "null"]
    assert told(rows) == [f"6 @0.5 n +{name} enter =1" for name in expected]


@pytest.mark.spec("G9")
def test_distinct_takes_back_a_value_only_when_its_last_copy_goes():
    plan = count("distinct", group="kind")
    rows = log(
        register("q", plan),
        fix("a", 0.5, 1, 1, kind="bus"),
        fix("b", 0.5, 1, 1, kind="bus"),
        clock(1.5),
        fix("a", 1.6, 9, 9),
        clock(2.5),
        fix("b", 2.6, 1, 1, kind="taxi"),
        clock(3.5),
        gone("b", 3.6),
        end(),
    )
    assert told(rows) == [
        "3 @1 q +bus enter",
        "7 @3 q -bus leave",
        "7 @3 q +taxi enter",
        "9 @3.6 q -taxi leave",
    ]


@pytest.mark.spec("G9")
def test_groups_are_texts_of_numbers_and_truths():
    rows = log(
        fix("a", 0.5, 1, 1, seats=3, free=True),
        register("seats", count(group="seats % 2")),
        register("free", count(group="free")),
        register("place", count(group="floor(x / 4)")),
    )
    assert told(rows) == [
        "1 @0.5 seats +1 registered =1",
        "2 @0.5 free +true registered =1",
        "3 @0.5 place +0.0 registered =1",
    ]


@pytest.mark.spec("G9")
def test_count_of_distinct_values_and_of_distinct_objects():
    """Above a layer join an object is a member once per feature, and counts once."""
    parks = [
        Feature("w1", "park", shapely.box(0, 0, 4, 4)),
        Feature("w2", "park", shapely.box(3, 0, 9, 4)),
    ]
    join = LayerJoin(layer="parks", predicate="intersects")
    rows = log(
        register("pairs", count(inside=None, join=join), layer_version=1),
        register(
            "objects", count("count_distinct", inside=None, join=join), layer_version=1
        ),
        register(
            "kinds",
            count("count_distinct", "kind", inside=None, join=join),
            layer_version=1,
        ),
        register(
            "parks", count(group="partner", inside=None, join=join), layer_version=1
        ),
        fix("a", 0.5, 3.5, 1, kind="bus"),
        fix("b", 0.6, 5, 1, kind="bus"),
        clock(1.5),
        layer("parks", 2),
    )
    assert told(rows, {("parks", 1): parks, ("parks", 2): parks[1:]}) == [
        "6 @1 pairs +* enter =3",
        "6 @1 objects +* enter =2",
        "6 @1 kinds +* enter =1",
        "6 @1 parks +w1 enter =1",
        "6 @1 parks +w2 enter =2",
        "7 @1.5 pairs -* layer =3",
        "7 @1.5 pairs +* layer =2",
        "7 @1.5 parks -w1 layer =1",
    ]


@pytest.mark.spec("G9", "P7")
def test_an_aggregate_over_the_nearest():
    """The sum of the loads of the two that are nearest to F."""
    plan = Plan(
        stream="s",
        neighbours=Nearest(k=2, place=Place(focal="F")),
        aggregate=Aggregate(function="sum", argument="load"),
    )
    rows = log(
        register("q", plan),
        fix("F", 0.5, 0, 0, load=100.0),
        fix("a", 0.5, 1, 0, load=1.0),
        fix("b", 0.5, 2, 0, load=2.0),
        fix("c", 0.5, 3, 0, load=4.0),
        clock(1.5),
        gone("a", 1.6),
        clock(2.5),
        gone("F", 2.6),
        end(),
    )
    assert told(rows) == [
        "5 @1 q +* enter =3",
        "7 @2 q -* value =3",
        "7 @2 q +* value =6",
        "9 @2.6 q -* leave =6",
    ]


@pytest.mark.spec("P5")
def test_cars_that_passed_by_leave_a_window_by_age_alone():
    """3 s. a passes at 1.5 and goes, b passes at 2 and is gone; 4.5 and 5 are the last seconds that count."""
    plan = Plan(stream="s", inside=BOX, window=Window(seconds=3))
    rows = log(
        register("q", plan),
        fix("a", 1.5, 1, 1),
        fix("a", 1.9, 9, 9),
        fix("b", 2.0, 4, 4),
        gone("b", 2.2),
        clock(4.1),
        clock(5),
        clock(5.1),
        clock(7),
    )
    assert told(rows) == [
        "4 @2 q +a enter",
        "4 @2 q +b enter",
        "7 @5 q -a aged",
        "8 @6 q -b aged",
    ]


@pytest.mark.spec("P5")
def test_a_window_starts_empty_and_counts_each_fix_but_each_object_once():
    window = Window(seconds=2)
    rows = log(
        fix("a", 0.5, 1, 1),
        register("fixes", count(window=window)),
        register("objects", count("count_distinct", window=window)),
        register("who", Plan(stream="s", window=window)),
        fix("a", 1.5, 1, 1),
        fix("a", 1.7, 2, 2),
        fix("b", 1.8, 1, 1),
        clock(2.5),
        clock(3.8),
        clock(9),
    )
    assert told(rows) == [
        "1 @0.5 fixes +* registered =0",
        "2 @0.5 objects +* registered =0",
        "7 @2 fixes -* value =0",
        "7 @2 objects -* value =0",
        "7 @2 fixes +* value =3",
        "7 @2 objects +* value =2",
        "7 @2 who +a enter",
        "7 @2 who +b enter",
        "9 @4 fixes -* value =3",
        "9 @4 objects -* value =2",
        "9 @4 fixes +* value =0",
        "9 @4 objects +* value =0",
        "9 @4 who -a aged",
        "9 @4 who -b aged",
    ]


@pytest.mark.spec("P5")
def test_a_window_of_tuples_holds_the_newest_by_event_time():
    """The last two fixes; d comes last but is older than b and c."""
    plan = Plan(stream="s", window=Window(tuples=2))
    rows = log(
        register("q", plan),
        fix("a", 1, 1, 1),
        clock(1.5),
        fix("b", 1.6, 1, 1),
        fix("c", 1.7, 1, 1),
        fix("d", 1.2, 1, 1),
        clock(2.5),
        fix("c", 2.6, 1, 1),
        clock(3.5),
    )
    assert told(rows) == [
        "2 @1 q +a enter",
        "6 @2 q -a aged",
        "6 @2 q +b enter",
        "6 @2 q +c enter",
        "8 @3 q -b aged",
    ]


@pytest.mark.spec("P5", "X4")
def test_what_is_in_a_window_stays_there_when_the_layer_changes():
    parks = [
        Feature("w1", "park", shapely.box(0, 0, 4, 4)),
        Feature("w2", "park", shapely.box(0, 0, 4, 4)),
    ]
    plan = Plan(
        stream="s",
        join=LayerJoin(layer="parks", predicate="intersects"),
        window=Window(seconds=5),
    )
    rows = log(
        register("q", plan, layer_version=1),
        fix("a", 1, 1, 1),
        clock(1.5),
        layer("parks", 2),
        fix("b", 2, 1, 1),
        clock(7.5),
        clock(8.5),
    )
    assert told(rows, {("parks", 1): parks[:1], ("parks", 2): parks[1:]}) == [
        "2 @1 q +a|w1 enter",
        "5 @2 q +b|w2 enter",
        "5 @7 q -a|w1 aged",
        "6 @8 q -b|w2 aged",
    ]


@pytest.mark.spec("P5")
def test_minimum_in_a_window_after_the_least_has_aged():
    plan = count("min", "load", window=Window(seconds=2))
    rows = log(
        register("q", plan),
        fix("a", 1, 1, 1, load=1.0),
        fix("a", 2, 1, 1, load=5.0),
        clock(3.5),
        clock(4.5),
        clock(6),
    )
    assert told(rows) == [
        "2 @1 q +* enter =1",
        "4 @4 q -* value =1",
        "4 @4 q +* value =5",
        "5 @5 q -* leave =5",
    ]


@pytest.mark.spec("G8")
@pytest.mark.parametrize(
    ("region", "until"),
    [
        (
            Box(minx=0, miny=-1, maxx=10, maxy=1),
            10,
        ),  # at tick 2 at x = 2, one a second: 8 more
        (Circle(x=0, y=0, radius_m=5), 5),
        (Area(wkt="POLYGON ((0 -1, 6 -1, 6 1, 0 1, 0 -1))"), 6),
        (
            MovingBox(focal="F", width=8, height=8),
            3,
        ),  # F at 0 goes to the left as fast: 4 apart after one more
        (MovingCircle(focal="F", radius_m=6), 4),
        (MovingBox(focal="G", width=8, height=8), float("inf")),  # G goes along
    ],
)
def test_a_member_that_keeps_its_velocity_stays_until(region, until):
    plan = Plan(stream="s", inside=region, valid_until=True)
    rows = log(
        fix("a", 1, 1, 0),
        fix("F", 1, 1, 0),
        fix("G", 1, 0, 0),
        register("q", plan),
        fix("a", 2, 2, 0),
        fix("F", 2, 0, 0),
        fix("G", 2, 1, 0),
        register("q", plan, op="replace", version=2),
    )
    found = [
        (change.cause, change.value)
        for change in by_both(rows)
        if change.object == "a" and change.sign > 0
    ]
    assert found == [("registered", None), ("registered", until)]


@pytest.mark.spec("G8")
def test_until_is_told_anew_when_the_member_or_the_focal_object_reports():
    plan = Plan(stream="s", inside=BOX, valid_until=True)
    rows = log(
        register("q", plan),
        fix("a", 1, 1, 1),
        clock(1.5),
        fix("a", 2, 2, 1),
        clock(2.5),
        fix("a", 3, 5, 1),
        clock(3.5),
        fix("a", 4, 4, 1),
        end(),
    )
    assert told(rows) == [
        "2 @1 q +a enter",
        "4 @2 q =a inside =4",
        "6 @3 q -a leave",
        "8 @4 q +a enter =8",
    ]
    goes = Plan(
        stream="s", inside=MovingCircle(focal="f", radius_m=5.0), valid_until=True
    )
    focal = log(
        register("q", goes),
        fix("f", 0.5, 0, 0),
        fix("a", 0.5, 0, 0),
        clock(1.5),
        fix("f", 1.9, 0, 0),
        fix("a", 1.9, 1.4, 0),
        clock(2.5),
        fix("f", 2.9, 1, 0),
        clock(3.5),
        fix("b", 3.9, 90, 0),
        end(),
    )
    assert [line.split(" =")[0] for line in told(focal)] == [
        "3 @1 q +a enter",
        "6 @2 q",
        "8 @3 q",
    ]
    assert (
        sum(change.sign == 0 for change in by_both(focal)) == 2
    )  # not at 4, when somebody else reported
