"""One query that fails changes nothing for the others (SPEC S3)."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.operators.expressions.filters import FILTERS
from st_common.operators.runtime.stages import step
from st_common.operators.state.state import State
from st_common.query.comparing import Transform
from st_common.query.neighbours import Nearest, Place
from st_common.query.plan import Aggregate, PairJoin, Plan
from st_common.regions.registry import Box, MovingCircle
from tests.kit import oracle
from tests.kit.asked_by import WAYS, asked_by
from tests.kit.by_hand import end, log, register
from tests.kit.effort import tries
from tests.kit.laws import (
    batched,
    packets_of,
    run_steps,
    settings_of,
    told,
    told_by_oracle,
)
from tests.kit.random_grid import STREAM
from tests.kit.strategies import cases, segmentations

BAD = "poison"
UNKNOWN = Plan(stream=STREAM, where="no_such_attribute > 3")
GROUPED = Plan(stream=STREAM, columns=(("a", "no_such_attribute"), ("b", "x")))
OVERFLOWS = Plan(stream=STREAM, where="CAST(object AS INT) IN (1, 2)")
RAISES = Plan(
    stream=STREAM, transforms=(Transform(kind="filter", name="raises", text="odd"),)
)


class Raises:
    """A filter that knows no fix to the right of 4."""

    def filter_fixes(self, fixes, _value):
        if (fixes.readings.x > 4).any():
            raise ValueError("too far")
        return fixes.readings.x >= 0

    def filter_pairs(self, fixes, _features, value):
        return self.filter_fixes(fixes, value)


@st.composite
def poisoned(draw):
    """A case, the same with a poisonous query that is registered somewhere, how both are cut, and its plan."""
    case = draw(cases(layers=False))
    plan = draw(st.sampled_from([UNKNOWN, GROUPED, OVERFLOWS, RAISES]))
    place = draw(st.integers(0, len(case.rows) - 1))
    rows = [*case.rows[:place], register(BAD, plan), *case.rows[place:]]
    numbered = tuple(
        replace(row, position=position) for position, row in enumerate(rows)
    )
    return case, replace(case, rows=numbered), draw(segmentations(len(rows))), place


@pytest.mark.spec("S3", "X1")
@given(poisoned(), st.integers(1, 3))
def test_all_other_queries_tell_the_same_as_without_it(drawn, shards):
    case, with_poison, cut, place = drawn
    FILTERS["raises"] = Raises()
    try:
        changes, _, order = run_steps(with_poison, cut, shards=shards)
    finally:
        del FILTERS["raises"]
    others = [
        (row[0] - (row[0] > place), *row[1:])
        for row in told(changes, order)
        if row[1] != BAD
    ]
    expected = oracle.judge(case.rows, layers=case.layers, rules=case.rules)
    assert sorted(others, key=repr) == told_by_oracle(expected.changes)


FAR = Box(minx=500.0, miny=500.0, maxx=501.0, maxy=501.0)
NEAR = Box(minx=-100.0, miny=-100.0, maxx=100.0, maxy=100.0)
ALIKE = (
    "abs(load - {}) > 2",
    "abs(lode - {}) > 2",
    "kind LIKE '{}%' OR load > 1",
    "kind + {} > 2",
    "strftime(event_ts, kind) = '{}' OR load > {}",
    "CAST(kind AS INT) > {} OR load > 3",
    "load > {} AND no_such_attribute",
    "kind = 'taxi' AND abs(load - {}) > 1",
    "no_such_attribute > {} AND abs(load - {}) > 1",
    "load > {} AND kind",
)
NEVER = (ALIKE[1], ALIKE[3], ALIKE[4], ALIKE[6], ALIKE[8])
"""These cannot be evaluated at all."""
FORMS = (
    lambda box: {"inside": box},
    lambda box: {"inside": box, "aggregate": Aggregate(function="count")},
    lambda _: {"inside": MovingCircle(focal="nobody", radius_m=1.0)},
    lambda _: {"neighbours": Nearest(k=1, place=Place(focal="nobody"))},
    lambda box: {"inside": box, "pairs": PairJoin(distance_m=1.0)},
)


def failures(case, cut, shards):
    """All queries that any shard says cannot be judged any more, and why."""
    segments, _ = packets_of(case, cut, shards)
    states, found = [State() for _ in range(shards)], set()
    for batch in batched(segments, cut.batches):
        for shard in range(shards):
            settings = settings_of(case.rules, shard=shard, shards=shards)
            read = [packets[shard] for packets in batch]
            done = step(states[shard], read, settings, lambda *_: None)
            states[shard] = done.state
            found.update(done.failures)
    return found


@pytest.mark.spec("S3", "X1", "X13")
@tries(12)
@given(
    cases(kind="fixes", layers=False),
    st.lists(st.sampled_from(ALIKE), min_size=1, max_size=3, unique=True),
    st.sampled_from(FORMS),
    st.data(),
)
def test_who_fails_depends_neither_on_what_is_near_nor_on_the_way(
    case, texts, form, data
):
    """Of the cut of the log and the shards who fails is known by the end."""

    def failed(box, *, way, shards):
        queries = [
            register(
                f"{n} {text}", Plan(stream=STREAM, where=text.format(n, n), **form(box))
            )
            for text in texts
            for n in range(3)
        ]
        rows = log(*queries, *case.rows, end())
        cut = data.draw(segmentations(len(rows)))
        with asked_by(way):
            return failures(replace(case, rows=tuple(rows)), cut, shards=shards)

    shards = st.integers(1, 3)
    found = failed(FAR, way="pairs", shards=data.draw(shards))
    assert {one.query.partition(" ")[2] for one in found} <= set(NEVER)
    way = data.draw(st.sampled_from(WAYS))
    assert found == failed(NEAR, way=way, shards=1)
    assert found == failed(FAR, way="whole", shards=data.draw(shards))
