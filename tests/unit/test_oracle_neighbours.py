"""The oracle on nearest neighbours, pairs and regions that stand still, against changes found by hand.

A line reads: position @second query +object|partner cause. Rows stand at positions 0, 1, 2, ..; a tick is a second.
"""

import pytest
import shapely

from st_common.query.neighbours import GroupNearest, Nearest, Place, ReverseNearest
from st_common.query.plan import LayerJoin, PairJoin, Plan
from st_common.regions.registry import Area, Box, Circle, MovingBox
from tests.kit.by_hand import clock, end, fix, gone, layer, lines, log, register
from tests.kit.oracle import Feature, Rules, agree, answer, fold
from tests.kit.telling import by_both

S = 1_000_000
ORIGIN = Place(x=0, y=0)


def nearest(k, place=ORIGIN, **more):
    return Plan(stream="s", neighbours=Nearest(k=k, place=place), **more)


def told(rows, layers=None, **rules):
    found = by_both(rows, layers=layers, rules=Rules(**rules))
    assert agree(fold(found), answer(rows, layers=layers, rules=Rules(**rules)))
    return lines(found)


@pytest.mark.spec("G5", "X1")
def test_figure_4_of_gpac_a_neighbour_moves_far_away_and_the_true_next_one_takes_its_place():
    """k = 2. The paper's basic algorithm would keep P1, for it never stored P2, which then leaves as well.

    T0   Q P1 P3  P2            T1   Q  P3  P2 .. P1        T2   Q  P3 .. P1 .. P2
    """
    rows = log(
        register("q", nearest(2)),
        fix("P1", 1, 1, 0),
        fix("P3", 1, 2, 0),
        fix("P2", 1, 3, 0),
        clock(1.5),
        fix("P1", 2, 10, 0),
        clock(2.5),
        fix("P2", 3, 20, 0),
        clock(3.5),
    )
    assert told(rows) == [
        "4 @1 q +P1 enter",
        "4 @1 q +P3 enter",
        "6 @2 q -P1 leave",
        "6 @2 q +P2 enter",
        "8 @3 q +P1 enter",
        "8 @3 q -P2 leave",
    ]


@pytest.mark.spec("G5", "G7", "P1")
def test_a_neighbour_that_is_gone_or_expired_is_replaced_by_the_next_and_fewer_than_k_is_fine():
    """k = 2, T = 5 s; a is gone at 2, b is silent after 6.5; then only c is left."""
    rows = log(
        register("q", nearest(2)),
        fix("a", 1, 1, 0),
        fix("b", 1.5, 2, 0),
        fix("c", 1.5, 3, 0),
        clock(2),
        gone("a", 2.2),
        clock(3.5),
        fix("c", 5.5, 3, 0),
        clock(8),
    )
    assert told(rows, silence_us=5 * S) == [
        "2 @1 q +a enter",
        "5 @2 q +b enter",
        "6 @3 q -a gone",
        "6 @3 q +c enter",
        "8 @7 q -b expired",
    ]


@pytest.mark.spec("G5")
def test_k_larger_than_the_number_of_objects():
    rows = log(
        register("q", nearest(9)), fix("b", 0.5, 1, 1), fix("a", 0.5, 5, 5), end()
    )
    assert told(rows) == ["3 @0.5 q +a enter", "3 @0.5 q +b enter"]


@pytest.mark.spec("G5")
def test_ties_at_k_go_to_the_id_that_comes_first_as_text():
    """Four at distance 5; "B" is before "a", "a10" before "a9"."""
    rows = log(
        register("q", nearest(2)),
        fix("a9", 0.5, 5, 0),
        fix("a10", 0.5, 3, 4),
        fix("b", 0.5, -4, 3),
        fix("B", 0.5, 0, -5),
        end(),
    )
    assert told(rows) == ["5 @0.5 q +B enter", "5 @0.5 q +a10 enter"]


@pytest.mark.spec("G5")
def test_everybody_at_one_place_the_focal_too():
    rows = log(
        register("q", nearest(2, Place(focal="b"))),
        *(fix(name, 0.5, 7, 7) for name in "dcba"),
        end(),
    )
    assert told(rows) == ["5 @0.5 q +a enter", "5 @0.5 q +c enter"]


@pytest.mark.spec("G5")
def test_the_place_moves_with_an_object():
    rows = log(
        register("q", nearest(1, Place(focal="F"))),
        fix("F", 0.5, 0, 0),
        fix("a", 0.5, 1, 0),
        fix("b", 0.5, 9, 0),
        clock(1.5),
        fix("F", 1.8, 8, 0),
        clock(3),
        gone("F", 3.5),
        end(),
    )
    assert told(rows) == [
        "4 @1 q +a enter",
        "6 @2 q -a leave",
        "6 @2 q +b enter",
        "8 @3.5 q -b gone",
    ]


@pytest.mark.spec("G5", "P7")
def test_the_nearest_free_taxis_are_not_the_free_ones_among_the_nearest():
    rows = log(
        register("q", nearest(1, where="free")),
        fix("a", 0.5, 1, 0, free=False),
        fix("b", 0.5, 2, 0, free=True),
        fix("c", 0.5, 0.5, 0),
        clock(1.5),
        fix("a", 2, 1, 0, free=True),
        end(),
    )
    assert told(rows) == ["4 @1 q +b enter", "6 @2 q +a enter", "6 @2 q -b leave"]


@pytest.mark.spec("P7")
def test_inside_and_nearest_together_are_the_nearest_among_those_inside():
    box = Box(minx=2, miny=-1, maxx=9, maxy=1)
    rows = log(
        register("q", nearest(1, inside=box)),
        fix("a", 0.5, 1, 0),
        fix("b", 0.5, 3, 0),
        fix("c", 0.5, 4, 0),
        clock(1.5),
        fix("b", 1.8, 3, 5),
        end(),
    )
    assert told(rows) == ["4 @1 q +b enter", "6 @1.8 q -b leave", "6 @1.8 q +c enter"]


@pytest.mark.spec("P7")
def test_nearest_to_a_place_inside_a_box_that_moves_with_somebody_else():
    """The box goes with F, the place is where G is; neither is ever a member."""
    inside = MovingBox(focal="F", width=4, height=4)
    rows = log(
        register("q", nearest(1, Place(focal="G"), inside=inside)),
        fix("F", 0.5, 0, 0),
        fix("G", 0.5, 1, 0),
        fix("a", 0.5, 2, 2),
        fix("b", 0.5, 1, 2.5),
        clock(1.5),
        gone("F", 1.8),
        end(),
    )
    assert told(rows) == ["5 @1 q +a enter", "7 @1.8 q -a gone"]


@pytest.mark.spec("G5")
def test_on_degrees_nearest_is_by_metres_also_across_the_antimeridian():
    """At 60 N a degree of longitude is half as long as one of latitude."""
    rows = log(
        register("q", nearest(1, Place(x=179.9, y=60))),
        fix("north", 0.5, 179.9, 60.15),
        fix("east", 0.5, -179.85, 60),
        end(),
    )
    assert told(rows, geographic=True) == ["3 @0.5 q +east enter"]


@pytest.mark.spec("G8")
def test_reverse_nearest_are_those_to_whom_nobody_is_nearer_than_the_place():
    """Distances: a-F 2, a-b 1, so F is not a's nearest; c-F 3, c-b 6; d-F 4 and d-e 4: a tie counts.

    e ---4--- d ---4--- F ..  and on the other side   F -2- a -1- b ; c stands 3 above F
    """
    plan = Plan(stream="s", neighbours=ReverseNearest(place=Place(focal="F")))
    rows = log(
        register("q", plan),
        fix("F", 0.5, 0, 0),
        fix("a", 0.5, 2, 0),
        fix("b", 0.5, 3, 0),
        fix("c", 0.5, 0, 3),
        fix("d", 0.5, -4, 0),
        fix("e", 0.5, -8, 0),
        clock(1.5),
        gone("b", 1.8),
        end(),
    )
    assert told(rows) == ["7 @1 q +c enter", "7 @1 q +d enter", "9 @1.8 q +a enter"]


@pytest.mark.spec("G8")
def test_reverse_nearest_of_one_object_alone_and_of_a_place_where_everybody_stands():
    plan = Plan(stream="s", neighbours=ReverseNearest(place=Place(x=100, y=100)))
    assert told(log(register("q", plan), fix("a", 0.5), end())) == ["2 @0.5 q +a enter"]
    both = log(
        register("q", plan), fix("a", 0.5, 100, 100), fix("b", 0.5, 100, 100), end()
    )
    assert told(both) == ["3 @0.5 q +a enter", "3 @0.5 q +b enter"]


@pytest.mark.spec("G8")
@pytest.mark.parametrize(
    ("total", "member"), [("sum", "b"), ("max", "b"), ("min", "a")]
)
def test_group_nearest_by_sum_maximum_and_minimum(total, member):
    """Focal objects F at 0 and G at 10: a stands on F's other side (1, 11), b in the middle (5, 5)."""
    places = (Place(focal="F"), Place(focal="G"))
    plan = Plan(stream="s", neighbours=GroupNearest(k=1, total=total, places=places))
    rows = log(
        register("q", plan),
        fix("F", 0.5, 0, 0),
        fix("G", 0.5, 10, 0),
        fix("a", 0.5, -1, 0),
        fix("b", 0.5, 5, 0),
        clock(1.5),
        gone("G", 1.8),
        end(),
    )
    assert told(rows) == [f"5 @1 q +{member} enter", f"7 @1.8 q -{member} gone"]


@pytest.mark.spec("G9")
def test_pairs_within_a_distance_in_both_orders_and_closed():
    plan = Plan(stream="s", pairs=PairJoin(distance_m=5))
    rows = log(
        register("q", plan),
        fix("a", 0.5, 0, 0),
        fix("b", 0.5, 3, 4),
        fix("c", 0.5, 3, 9.000001),
        clock(1.5),
        gone("b", 1.8),
        end(),
    )
    assert told(rows) == [
        "4 @1 q +a|b enter",
        "4 @1 q +b|a enter",
        "6 @1.8 q -a|b gone",
        "6 @1.8 q -b|a gone",
    ]


@pytest.mark.spec("G9")
def test_pairs_by_keys_and_a_null_equals_nothing():
    """Same kind and same parity of seats; `where` is about the first of a pair alone."""
    plan = Plan(stream="s", pairs=PairJoin(keys=("kind", "seats % 2")), where="free")
    rows = log(
        register("q", plan),
        fix("a", 0.5, kind="bus", seats=2, free=True),
        fix("b", 0.5, 9, kind="bus", seats=4),
        fix("c", 0.5, kind="bus", seats=3, free=True),
        fix("d", 0.5, seats=2, free=True),
        fix("e", 0.5, seats=2),
        clock(1.5),
        fix("b", 1.6, 9, kind="taxi", seats=4),
        end(),
    )
    assert told(rows) == ["6 @1 q +a|b enter", "8 @1.6 q -a|b leave"]


@pytest.mark.spec("G9", "P7")
def test_where_is_true_or_false_fix_by_fix_and_null_is_false():
    plan = Plan(
        stream="s",
        inside=Circle(x=0, y=0, radius_m=5),
        where="load > 2",
        columns=(("l", "load"),),
    )
    rows = log(
        register("q", plan),
        fix("a", 1, 3, 4, load=3.0),
        fix("a", 2, 3, 4),
        fix("a", 3, 3, 4, load=2.5),
        fix("a", 4, 3, 4.5, load=9.0),
        fix("b", 5, 0, 0, load=2.0),
    )
    assert told(rows) == [
        '1 @1 q +a enter {"l": 3.0}',
        '2 @2 q -a leave {"l": null}',
        '3 @3 q +a enter {"l": 2.5}',
        '4 @4 q -a leave {"l": 9.0}',
    ]


@pytest.mark.spec("P5")
def test_elapsed_time_and_speed_are_against_the_reading_before_of_the_same_stay():
    """T = 5 s. Speed 2 at once, then 0.5; after silence and after `gone` there is no reading before."""
    rows = log(
        register("fast", Plan(stream="s", where="speed_mps > 1")),
        register("first", Plan(stream="s", where="elapsed_s IS NULL")),
        fix("a", 1, 0, 0),
        fix("a", 2, 0, 2),
        fix("a", 4, 0, 3),
        fix("a", 10, 0, 99),
        gone("a", 11),
        fix("a", 12),
    )
    assert told(rows, silence_us=5 * S) == [
        "2 @1 first +a enter",
        "3 @2 first -a leave",
        "3 @2 fast +a enter",
        "4 @4 fast -a leave",
        "5 @10 first +a enter",
        "6 @11 first -a gone",
        "7 @12 first +a enter",
    ]


@pytest.mark.spec("G4")
@pytest.mark.parametrize(
    ("x", "y", "inside"),
    [
        (0, 0, True),
        (2, 2, True),
        (4, 1, True),
        (2, 2.000001, False),
        (1, 0.5, True),
        (0, 4, False),
    ],
)
def test_the_border_of_a_polygon_belongs_to_it(x, y, inside):
    plan = Plan(stream="s", inside=Area(wkt="POLYGON ((0 0, 4 0, 2 2, 0 0))"))
    plan = (
        Plan(stream="s", inside=Area(wkt="POLYGON ((0 0, 4 0, 4 2, 2 2, 0 0))"))
        if (x, y) == (4, 1)
        else plan
    )
    assert bool(told(log(register("q", plan), fix("a", 1, x, y)))) is inside


@pytest.mark.spec("G9")
def test_a_join_with_a_table_on_a_key():
    """Key by tag, by kind and by fid; a number equals its text, null equals nothing."""
    shops = [
        Feature("7", "bus", shapely.Point(0, 0), {"size": "4"}),
        Feature("8", "taxi", shapely.Point(0, 0)),
    ]
    layers = {("shops", 1): shops, ("shops", 2): shops[1:]}

    def keyed(left, right):
        return Plan(
            stream="s",
            join=LayerJoin(layer="shops", predicate="equals", left=left, right=right),
        )

    rows = log(
        register("size", keyed("seats", "size"), layer_version=1),
        register("kind", keyed("kind", "kind"), layer_version=1),
        register("fid", keyed("load", "fid"), layer_version=1),
        fix("a", 1, seats=4, kind="taxi", load=8.0),
        fix("b", 2),
        fix("a", 3, kind="bus", seats=5),
        layer("shops", 2),
    )
    assert told(rows, layers) == [
        "3 @1 size +a|7 enter",
        "3 @1 kind +a|8 enter",
        "5 @3 size -a|7 leave",
        "5 @3 kind -a|8 leave",
        "5 @3 kind +a|7 enter",
        "6 @3 kind -a|7 layer",
    ]


@pytest.mark.spec("G4", "P3")
def test_a_layer_is_joined_above_a_region_that_moves():
    parks = [
        Feature("w1", "park", shapely.box(0, 0, 4, 4)),
        Feature("w2", "park", shapely.box(3, 0, 9, 4)),
    ]
    plan = Plan(
        stream="s",
        inside=MovingBox(focal="F", width=4, height=4),
        join=LayerJoin(layer="parks", predicate="intersects"),
    )
    rows = log(
        register("q", plan, layer_version=1),
        fix("F", 0.5, 4, 4),
        fix("a", 0.5, 3.5, 4),
        fix("b", 0.5, 1, 1),
        clock(1.5),
        layer("parks", 2),
        fix("F", 1.8, 1, 1),
        end(),
    )
    layers = {("parks", 1): parks, ("parks", 2): parks[1:]}
    assert told(rows, layers) == [
        "4 @1 q +a|w1 enter",
        "4 @1 q +a|w2 enter",
        "5 @1.5 q -a|w1 layer",
        "7 @1.8 q -a|w2 leave",
    ]
