"""One query that fails changes nothing for the others (SPEC S3)."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.operators.filters import FILTERS
from st_common.query.comparing import Transform
from st_common.query.plan import Plan
from st_common.testing import oracle
from st_common.testing.laws import run_steps, told, told_by_oracle
from st_common.testing.oracle_rows import Control
from st_common.testing.random_grid import STREAM
from st_common.testing.strategies import cases, segmentations

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
    row = {
        "op": "register",
        "query": BAD,
        "version": 1,
        "plan": plan.to_json(),
        "text": "",
        "owner": "test",
    }
    rows = [*case.rows[:place], Control(position=place, row=row), *case.rows[place:]]
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
