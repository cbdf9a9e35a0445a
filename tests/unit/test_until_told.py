"""VALID UNTIL is told again when it is another time, and only then."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.query.plan import Plan
from st_common.regions.registry import Box, MovingCircle
from tests.kit import oracle
from tests.kit.by_hand import drop, end, fix, gone, log, register
from tests.kit.effort import tries
from tests.kit.laws import holds, run_steps, told, told_by_oracle
from tests.kit.oracle import Rules
from tests.kit.strategies import Case, Segmentation, cases, courses

BOX = Plan(stream="s", inside=Box(minx=0, miny=0, maxx=10, maxy=10), valid_until=True)
AROUND = Plan(
    stream="s", inside=MovingCircle(focal="f", radius_m=5.0), valid_until=True
)
EVERY = Plan(
    stream="s",
    inside=Box(minx=0, miny=0, maxx=10, maxy=10),
    valid_until=True,
    emit="every",
)


def said(*rows, shards=1):
    """(second, object, sign, value) of the changes, by the step with a restart at every batch; the oracle agrees."""
    case = Case(rows=tuple(log(*rows)), layers={}, rules=Rules())
    cut = Segmentation(
        cuts=tuple(range(1, len(case.rows))), batches=(1,) * len(case.rows)
    )
    table, _, order = run_steps(case, cut, shards=shards, through_bytes=True)
    assert told(table, order) == told_by_oracle(
        oracle.judge(case.rows, rules=case.rules).changes
    )
    columns = ("event_ts", "object", "sign", "value")
    return [
        (row[0].timestamp(), *row[1:])
        for row in zip(*(table[name].to_pylist() for name in columns), strict=True)
    ]


@pytest.mark.spec("G8")
def test_who_goes_on_as_before_is_told_once():
    fixes = [fix("a", second, 1.0 + 0.7 * second, 5) for second in range(1, 9)]
    found = said(
        register("q", BOX), *fixes, fix("a", 9, 7, 5), fix("a", 10, 7.7, 5), end()
    )
    signs = [(second, sign) for second, _, sign, _ in found]
    # at 2 the velocity is known, at 9 it is slower, at 10 as before, but from further back
    assert signs == [(1, 1), (2, 0), (9, 0), (10, 0)]
    assert found[1][3] == pytest.approx(2 + (10 - 2.4) / 0.7)
    assert found[2][3] != pytest.approx(found[1][3], abs=0.01)


@pytest.mark.spec("G8")
def test_who_comes_back_and_whose_query_comes_back_is_told_anew():
    steps = [
        fix("a", 1, 1, 5),
        fix("a", 2, 2, 5),
        fix("a", 3, 3, 5),
        gone("a", 4),
        fix("a", 5, 1, 5),
        fix("a", 6, 2, 5),
    ]
    again = [
        drop("q"),
        register("q", BOX, version=2),
        fix("a", 7, 3, 5),
        fix("a", 8, 4, 5),
        end(),
    ]
    found = said(register("q", BOX), *steps, *again, shards=2)
    assert [(second, sign) for second, _, sign, _ in found] == [
        (1, 1),
        (2, 0),
        (4, -1),
        (5, 1),
        (6, -1),
        (6, 1),
    ]


@pytest.mark.spec("G8")
def test_a_focal_object_that_reports_changes_nothing_while_both_go_on():
    """`a` and `f` go side by side, then `f` turns."""
    both = [
        fix(name, second, second + at, 0)
        for second in range(1, 6)
        for name, at in (("f", 0), ("a", 2))
    ]
    found = said(register("q", AROUND), *both, fix("f", 6, 5, 0), end())
    assert [(second, sign) for second, _, sign, _ in found] == [(1, 1), (2, 0), (6, 0)]
    assert found[1][3] == float("inf")


@pytest.mark.spec("G8")
def test_with_every_fix_all_are_told():
    fixes = [fix("a", second, 1.0 + second, 5) for second in range(1, 6)]
    assert [sign for _, _, sign, _ in said(register("q", EVERY), *fixes, end())] == [
        1,
        0,
        0,
        0,
        0,
    ]


@pytest.mark.spec("G8", "X1")
@tries(30)
@given(data=st.data())
def test_whatever_batches_shards_and_restarts_the_same_times_are_told(data):
    case = data.draw(cases(kind="until", rows=40))
    holds(case, data.draw(courses(len(case.rows))))
