"""The oracle at ticks of event time, against changes found by hand: moving regions, time, focal objects.

A line reads: position @second query +object cause. Rows stand at positions 0, 1, 2, ..; a tick is a second.
"""

import pytest

from st_common.query.plan import Plan
from st_common.regions.registry import Circle, MovingBox, MovingCircle
from tests.kit.by_hand import clock, drop, end, fix, gone, lines, log, register
from tests.kit.oracle import Rules, agree, answer, fold, judge
from tests.kit.telling import by_both

S = 1_000_000


def around(focal, side=4.0, **more):
    return Plan(
        stream="s", inside=MovingBox(focal=focal, width=side, height=side), **more
    )


def within(focal, radius_m, **more):
    return Plan(stream="s", inside=MovingCircle(focal=focal, radius_m=radius_m), **more)


def told(rows, **rules):
    found = by_both(rows, rules=Rules(**rules))
    assert agree(fold(found), answer(rows, rules=Rules(**rules)))
    return lines(found)


@pytest.mark.spec("G4", "X1")
def test_figure_3_of_gpac_a_query_moves_over_an_object_that_stands_outside():
    """The paper's basic algorithm never reports P, for P was stored nowhere when the query came to it.

    T0  [ F ]      P        T1        [ F  P ]       T2      [ F ]  P
    """
    rows = log(
        register("q", around("F")),
        fix("F", 1, 0, 0),
        fix("P", 1, 10, 0),
        clock(1.5),
        fix("F", 2, 9, 0),
        clock(2.5),
        fix("P", 3, 12, 0),
        clock(3.5),
    )
    assert told(rows) == ["5 @2 q +P enter", "7 @3 q -P leave"]


@pytest.mark.spec("X1")
def test_a_tick_is_told_at_the_first_row_after_which_the_clock_is_past_it():
    """a and F come within the second that ends at tick 2; the clock stands on 2, then passes it."""
    rows = log(
        register("q", around("F")),
        fix("F", 1.2, 0, 0),
        fix("a", 1.4, 1, 0),
        clock(2),
        fix("b", 2.0, 1, 1),
        fix("c", 2.000001, 1, 1),
        fix("d", 3.5, 50, 50),
    )
    assert told(rows) == ["5 @2 q +a enter", "5 @2 q +b enter", "6 @3 q +c enter"]


@pytest.mark.spec("X1")
def test_a_fix_behind_the_clock_counts_at_the_next_tick_not_at_a_past_one():
    rows = log(
        register("q", around("F")), fix("F", 5.5, 0, 0), fix("a", 1.0, 1, 1), clock(7)
    )
    found = by_both(rows)
    assert lines(found) == ["3 @6 q +a enter"]
    assert found[0].fix_us == 1 * S


@pytest.mark.spec("X1", "X2")
def test_an_end_mark_makes_every_pending_tick_due_the_last_one_at_the_last_fix():
    rows = log(
        register("q", around("F")), fix("F", 1.5, 0, 0), fix("a", 1.7, 1, 1), end()
    )
    assert told(rows) == ["3 @1.7 q +a enter"]
    held = log(*rows[:3], fix("F", 2.5, 9, 9), end())
    assert told(held, lateness_us=10 * S) == ["4 @2 q +a enter", "4 @2.5 q -a leave"]


@pytest.mark.spec("X2")
def test_with_lateness_a_tick_does_not_depend_on_the_order_of_arrival():
    """L = 2 s. The fixes of the ticks 1 and 2 come mixed; the clock passes both at once, at b's row."""
    fixes = [
        fix("F", 0.5, 0, 0),
        fix("a", 0.7, 1, 1),
        fix("F", 1.5, 9, 9),
        fix("a", 1.6, 8, 8),
        fix("a", 1.2, 50, 50),
    ]
    for order in ([0, 1, 2, 3, 4], [4, 2, 0, 3, 1], [1, 0, 3, 2, 4]):
        rows = log(
            register("q", around("F")),
            *(fixes[n] for n in order),
            fix("b", 4.5, 50, 50),
        )
        assert told(rows, lateness_us=2 * S) == [
            "6 @1 q +a enter"
        ]  # beside F again at tick 2, so nothing is told


def test_late_and_double_fixes_move_no_query():
    rows = log(
        register("q", around("F")),
        fix("F", 3, 0, 0),
        fix("a", 3, 1, 1),
        fix("F", 3, 9, 9),
        fix("F", 2, 9, 9),
        clock(4),
    )
    outcome = judge(rows)
    assert (outcome.late, outcome.double) == (1, 1)
    assert lines(outcome.changes) == ["5 @3 q +a enter"]


@pytest.mark.spec("G4")
def test_a_focal_object_is_a_target_of_others_but_never_of_its_own_query():
    """F and G stand beside each other, each with a query; a is beside both."""
    rows = log(
        register("f", around("F")),
        register("g", around("G")),
        fix("F", 0.5, 0, 0),
        fix("G", 0.5, 1, 0),
        fix("a", 0.5, 1, 1),
        end(),
    )
    assert told(rows) == [
        "5 @0.5 g +F enter",
        "5 @0.5 f +G enter",
        "5 @0.5 f +a enter",
        "5 @0.5 g +a enter",
    ]


@pytest.mark.spec("G4")
def test_two_queries_on_one_focal_object_go_with_it_each_by_its_own_size():
    rows = log(
        register("small", around("F", 2)),
        register("big", around("F", 10)),
        fix("F", 0.5, 0, 0),
        fix("a", 0.5, 4, 0),
        clock(1.5),
        fix("F", 1.6, 4, 1),
        clock(3),
        fix("F", 3.5, 40, 0),
        clock(5),
    )
    assert told(rows) == [
        "4 @1 big +a enter",
        "6 @2 small +a enter",
        "8 @4 small -a leave",
        "8 @4 big -a leave",
    ]


@pytest.mark.spec("G4", "X4")
def test_a_query_is_registered_while_its_focal_object_is_known():
    rows = log(
        fix("F", 1, 0, 0),
        fix("a", 1.2, 1, 1),
        fix("b", 1.3, 9, 9),
        register("q", around("F")),
    )
    found = by_both(rows)
    assert lines(found) == ["3 @1.3 q +a registered"]
    assert found[0].fix_us == 1_200_000


@pytest.mark.spec("G4", "X4")
def test_a_query_is_registered_while_its_focal_object_is_unknown():
    rows = log(
        fix("a", 1.2, 1, 1),
        register("q", around("F")),
        clock(3),
        fix("F", 3.4, 0, 0),
        clock(4.5),
    )
    assert told(rows) == ["4 @4 q +a enter"]


@pytest.mark.spec("G7", "X4")
def test_a_query_is_registered_while_its_focal_object_is_silent():
    """T = 5 s: F was seen at 1 and is silent after 6; it comes back at 9."""
    rows = log(
        fix("F", 1, 0, 0),
        fix("a", 7, 1, 1),
        register("q", around("F")),
        fix("F", 9.5, 0, 0),
        clock(11),
    )
    assert told(rows, silence_us=5 * S) == ["4 @10 q +a enter"]


@pytest.mark.spec("G7", "P1")
def test_a_focal_object_that_is_gone_empties_the_answer_and_fills_it_again():
    rows = log(
        register("q", around("F")),
        fix("F", 0.5, 0, 0),
        fix("a", 0.6, 1, 1),
        clock(1.5),
        gone("F", 1.8),
        clock(2.5),
        fix("F", 3, 0, 0),
        clock(4),
    )
    assert told(rows) == ["3 @1 q +a enter", "5 @2 q -a gone", "7 @3 q +a enter"]


@pytest.mark.spec("G7")
def test_a_silent_focal_object_empties_the_answer_with_cause_expired_also_by_clock_rows():
    """T = 5 s: F was last seen at 0.5, a goes on; at 5.5 F expires, which counts at tick 6."""
    rows = log(
        register("q", around("F")),
        fix("F", 0.5, 0, 0),
        fix("a", 1.0, 1, 1),
        fix("a", 4.0, 1, 0),
        clock(5.6),
        clock(6.1),
    )
    found = by_both(rows, rules=Rules(silence_us=5 * S))
    assert lines(found) == ["3 @1 q +a enter", "5 @6 q -a expired"]
    assert found[1].fix_us == 4 * S


@pytest.mark.spec("G7")
def test_a_member_that_is_gone_or_expired_leaves_with_that_cause_though_the_focal_ended_too():
    """T = 5 s: b says that it is gone; a expires together with F."""
    rows = log(
        register("q", around("F")),
        fix("F", 0.5, 0, 0),
        fix("a", 0.6, 1, 1),
        fix("b", 0.7, 1, 1),
        clock(1.5),
        gone("b", 2),
        fix("z", 9, 50, 50),
    )
    assert told(rows, silence_us=5 * S) == [
        "4 @1 q +a enter",
        "4 @1 q +b enter",
        "6 @2 q -b gone",
        "6 @6 q -a expired",
    ]


def test_a_focal_object_that_ends_and_comes_back_between_two_ticks_changes_nothing():
    rows = log(
        register("q", around("F")),
        fix("F", 0.5, 0, 0),
        fix("a", 0.6, 1, 1),
        clock(1.5),
        gone("F", 1.6),
        fix("F", 1.8, 0.5, 0.5),
        clock(2.5),
    )
    assert told(rows) == ["3 @1 q +a enter"]


def test_a_moving_query_and_its_objects_move_together():
    """Focal and a go ten to the right at once: a stays. b goes where the query was: it leaves."""
    rows = log(
        register("q", around("F", emit="every")),
        fix("F", 0.5, 0, 0),
        fix("a", 0.5, 1, 1),
        fix("b", 0.5, -1, 1),
        clock(1.5),
        fix("F", 1.6, 10, 0),
        fix("b", 1.6, 0, 0),
        fix("a", 1.6, 11, 1),
        end(),
    )
    assert told(rows) == [
        "4 @1 q +a enter",
        "4 @1 q +b enter",
        "8 @1.6 q =a inside",
        "8 @1.6 q -b leave",
    ]


def test_what_enters_and_leaves_within_one_tick_is_told_by_rectangles_alone():
    still = Plan(stream="s", inside=Circle(x=0, y=0, radius_m=2))
    rows = log(
        register("still", still),
        register("moving", within("F", 2)),
        fix("F", 0.1, 0, 0),
        fix("a", 0.3, 1, 1),
        fix("a", 0.6, 5, 5),
        end(),
    )
    assert told(rows) == [
        "2 @0.1 still +F enter",
        "3 @0.3 still +a enter",
        "4 @0.6 still -a leave",
    ]


@pytest.mark.spec("G4")
@pytest.mark.parametrize(
    ("plan", "x", "y", "inside"),
    [
        (around("F", 4), 12, 12, True),  # a corner
        (around("F", 4), 8, 11, True),  # a side
        (around("F", 4), 12.000001, 10, False),
        (around("F", 0), 10, 10, True),  # no extent: the same place
        (around("F", 0), 10, 10.5, False),
        (within("F", 5), 13, 14, True),  # 3, 4, 5
        (within("F", 5), 13, 14.000001, False),
        (within("F", 0), 10, 10, True),
    ],
)
def test_borders_and_corners_of_moving_regions_belong_to_them(plan, x, y, inside):
    rows = log(register("q", plan), fix("F", 0.5, 10, 10), fix("a", 0.5, x, y), end())
    assert bool(by_both(rows)) is inside


@pytest.mark.spec("G4")
def test_metres_across_the_antimeridian_and_at_a_pole():
    """At 60 N, 0.01 degree of longitude is 558 m; two places 0.01 degree from the pole are 2.2 km apart at most."""
    rows = log(
        register("q", within("F", 1200)),
        register("n", within("N", 2300)),
        register(
            "b",
            Plan(
                stream="s",
                inside=MovingBox(focal="G", width=600, height=600, metres=True),
            ),
        ),
        fix("F", 0.5, 179.99, 60),
        fix("a", 0.5, -179.99, 60),
        fix("b", 0.5, -179.98, 60),
        fix("N", 0.5, 10, 89.99),
        fix("c", 0.5, -170, 89.99),
        fix("G", 0.5, 25, 60),
        fix("d", 0.5, 25.005, 60),
        fix("e", 0.5, 25.0055, 60),
        end(),
    )
    assert told(rows, geographic=True) == [
        "11 @0.5 q +a enter",
        "11 @0.5 n +c enter",
        "11 @0.5 b +d enter",
    ]


@pytest.mark.spec("X4")
def test_drop_and_replace_take_back_what_a_moving_query_held():
    rows = log(
        register("q", around("F")),
        fix("F", 0.5, 0, 0),
        fix("a", 0.6, 1, 1),
        fix("b", 0.6, 4, 4),
        clock(1.5),
        register("q", around("F", 8), op="replace", version=2),
        drop("q"),
        register("q", around("F"), version=3),
        end(),
    )
    assert told(rows) == [
        "4 @1 q +a enter",
        "5 @1.5 q -a replaced",
        "5 @1.5 q +a registered",
        "5 @1.5 q +b registered",
        "6 @1.5 q -a dropped",
        "6 @1.5 q -b dropped",
        "7 @1.5 q +a registered",
    ]
    assert [change.query_version for change in by_both(rows)] == [1, 1, 2, 2, 2, 2, 3]


def test_a_query_registered_within_a_tick_is_judged_at_once_and_told_only_what_changes_then():
    """a's fix is known at the registration though its tick comes later; b's comes after it."""
    rows = log(
        fix("F", 1.1, 0, 0),
        fix("a", 1.2, 1, 1),
        register("q", around("F")),
        fix("b", 1.3, 1, 1),
        end(),
    )
    assert told(rows) == ["2 @1.2 q +a registered", "4 @1.3 q +b enter"]


def test_everybody_at_one_place():
    rows = log(
        register("q", around("F", 0)), *(fix(name, 0.5, 3, 3) for name in "cFab"), end()
    )
    assert told(rows) == ["5 @0.5 q +a enter", "5 @0.5 q +b enter", "5 @0.5 q +c enter"]


def test_ticks_can_be_longer_and_shorter_than_a_second():
    rows = log(
        register("q", around("F")),
        fix("F", 0.3, 0, 0),
        fix("a", 0.7, 1, 1),
        fix("b", 12, 0, 0),
        clock(31),
    )
    assert told(rows, tick_us=10 * S) == ["3 @10 q +a enter", "4 @20 q +b enter"]
    assert told(rows, tick_us=250_000) == ["3 @0.75 q +a enter", "4 @12 q +b enter"]
