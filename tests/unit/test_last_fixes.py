"""Last fixes of objects, with newer ones for some of them or for all."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from st_common.operators.state.fixes import FILLERS, LastFixes
from tests.kit.effort import tries


def fixes_of(values, **attributes):
    columns = {
        name: np.array(values).astype(np.asarray(filler).dtype)
        for name, filler in FILLERS.items()
    }
    return LastFixes(
        **columns, attributes={name: pa.array(of) for name, of in attributes.items()}
    )


def rows_of(fixes):
    columns = {name: of.tolist() for name, of in fixes.columns().items()}
    return columns, {name: of.to_pylist() for name, of in fixes.attributes.items()}


@tries(50)
@given(st.integers(1, 6), st.data())
def test_newer_fixes_of_all_are_those_of_one_part_and_then_of_the_other(count, data):
    kinds = st.lists(
        st.none() | st.sampled_from("ab"), min_size=count, max_size=count
    ).map(lambda of: pa.array(of, pa.string()))
    known = data.draw(st.integers(0, count))
    before = fixes_of(range(known), old=[f"o{n}" for n in range(known)])
    before = LastFixes(
        **before.columns(),
        attributes={"old": before.attributes["old"].cast(pa.string())},
    )
    every = np.arange(count)
    after = fixes_of(every + 10, kind=data.draw(kinds))
    if data.draw(st.booleans()):
        after = LastFixes(
            **after.columns(), attributes={**after.attributes, "old": data.draw(kinds)}
        )
    first = data.draw(st.integers(0, count))
    parts = every[:first], every[first:]
    stepwise = before
    for part in parts:
        stepwise = stepwise.with_rows(part, after.take(part), total=count)
    at_once = before.with_rows(every, after, total=count)
    assert rows_of(at_once) == rows_of(stepwise)
    for name, column in stepwise.columns().items():
        assert getattr(at_once, name).dtype == column.dtype


def test_some_objects_of_a_stream_without_attributes_are_taken_again_and_again():
    """As an engine does that forgets those that left, while others come."""
    fixes = fixes_of(range(4))
    for total in (6, 9):
        fixes = fixes.with_rows(np.array([0]), fixes_of([7]), total=total)
        fixes = fixes.take(np.arange(1, total))
        assert len(fixes) == total - 1
        assert dict(fixes.attributes) == {}
