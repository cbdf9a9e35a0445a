"""The drawings by which folders of operators begin: the step does what they show."""

import pytest

from st_common.query.plan import Aggregate, Plan, Window
from st_common.regions.registry import Box
from tests.kit.by_hand import end, fix, log, register
from tests.kit.oracle import Rules
from tests.kit.telling import by_brute_force, by_steps

EVERYWHERE = Box(minx=0, miny=-1, maxx=99, maxy=1)
COUNT = Aggregate(function="count")


@pytest.fixture(params=(by_brute_force, by_steps), ids=("oracle", "step"))
def told(request):
    def rows_of(plan, *fixes, **rules):
        changes = request.param(
            log(register("q", plan), *fixes, end()), Rules(**rules), None
        )
        return [
            (c.event_us / 1e6, c.sign, c.partner or c.object, c.value) for c in changes
        ]

    return rows_of


def test_what_waits_for_the_clock_takes_effect_in_order_of_time(told):
    times = {"a": 10, "b": 22, "c": 15, "d": 11, "e": 40}
    fixes = [fix(name, time, 5) for name, time in times.items()]
    rows = told(Plan(stream="s", inside=EVERYWHERE), *fixes, lateness_us=10_000_000)
    assert [(time, name) for time, _, name, _ in rows] == [
        (10, "a"),
        (15, "c"),
        (22, "b"),
        (40, "e"),  # the end mark
    ]


def test_a_window_of_time(told):
    plan = Plan(stream="s", inside=EVERYWHERE, window=Window(seconds=10))
    fixes = [fix("a", 1, 5), fix("a", 7, 5), fix("b", 30, 500)]
    assert told(plan, *fixes) == [(1, 1, "a", None), (18, -1, "a", None)]


def test_a_count_over_it(told):
    plan = Plan(
        stream="s", inside=EVERYWHERE, window=Window(seconds=10), aggregate=COUNT
    )
    fixes = [fix("a", 1, 5), fix("a", 7, 5), fix("b", 30, 500)]
    values = {time: value for time, sign, _, value in told(plan, *fixes) if sign > 0}
    assert values == {1: 1, 7: 2, 12: 1, 18: 0}


def test_groups_are_told_when_their_value_becomes_another_one(told):
    plan = Plan(
        stream="s",
        inside=EVERYWHERE,
        aggregate=Aggregate(function="count", group="kind"),
    )
    fixes = [
        fix("a", 1, 5, kind="n"),
        fix("b", 2, 5, kind="n"),
        fix("a", 3, 5, kind="s"),
    ]
    assert told(plan, *fixes) == [
        (1, 1, "n", 1),
        (2, -1, "n", 1),
        (2, 1, "n", 2),
        (3, -1, "n", 2),
        (3, 1, "n", 1),
        (3, 1, "s", 1),
    ]
