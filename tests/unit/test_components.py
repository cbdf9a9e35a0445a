"""Components of a state: what is stored, told as a change, numbered anew and joined, whatever they are about."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import st_common.operators
from st_common.errors import StateError
from st_common.operators.runtime.stored import KINDS
from st_common.operators.state.component import (
    Change,
    Component,
    Keyed,
    Layout,
    Numbers,
    are_same,
    joined,
)
from st_common.operators.state.memories import (
    Memories,
    changes_from_arrays,
    changes_to_arrays,
    kinds_named,
    memories_from_arrays,
    memories_to_arrays,
)

SMALL = st.integers(0, 5)


@st.composite
def rows_of(draw, kind, most=6):
    """Some rows of a kind of component, in its order; keys of keyed ones each once."""
    count = draw(st.integers(0, most))
    columns = {}
    for name in kind.columns():
        empty = getattr(kind(), name)
        if isinstance(empty, pa.Array):
            texts = st.none() | st.sampled_from(["a", "b"])
            values = draw(st.lists(texts, min_size=count, max_size=count))
            columns[name] = pa.array(values, pa.string())
        elif name in {kind.LAYOUT.bit, "dwelt"}:
            bits = st.lists(st.integers(0, 1), min_size=count, max_size=count)
            columns[name] = np.array(draw(bits), np.int8)
        elif name in kind.LAYOUT.wide:
            width = 2 if count else 0
            columns[name] = np.array(
                [[draw(SMALL) for _ in range(width)] for _ in range(count)], np.int64
            ).reshape(count, width)
        elif empty.dtype.kind == "f":
            floats = st.sampled_from([0.0, -0.0, 1.5, float("nan")])
            values = draw(st.lists(floats, min_size=count, max_size=count))
            columns[name] = np.array(values, float)
        else:
            values = draw(st.lists(SMALL, min_size=count, max_size=count))
            is_pair = len(kind.LAYOUT.numbers.get(name, ())) == 2
            numbers = np.array(values, np.int64)
            columns[name] = (numbers << 32) | numbers[::-1] if is_pair else numbers
    rows = kind(**columns).in_order()
    if not issubclass(kind, Keyed):
        return rows
    return rows.take(np.unique(rows.keys, return_index=True)[1])


def kinds():
    return pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.LAYOUT.name)


@kinds()
@given(data=st.data())
def test_a_change_leads_from_one_to_the_other_also_through_bytes(kind, data):
    before, after = data.draw(rows_of(kind)), data.draw(rows_of(kind))
    change = before.change_to(after)
    assert are_same(before.changed(change), after)
    arrays = changes_to_arrays({kind: change})
    again = changes_from_arrays([kind], arrays)
    assert are_same(before.changed(again[kind]), after)
    assert not len(before.change_to(before))


@kinds()
@given(data=st.data())
def test_rows_that_stay_are_not_told(kind, data):
    before = data.draw(rows_of(kind))
    kept = np.arange(len(before)) % 2 == 0
    change = before.change_to(before.take(kept))
    assert len(change.added) <= len(before)  # all of them where two rows are alike
    assert are_same(before.changed(change), before.take(kept))


@kinds()
@given(data=st.data())
def test_what_is_dealt_out_is_the_same_when_it_is_joined(kind, data):
    whole = data.draw(rows_of(kind))
    mine = np.array(
        data.draw(st.lists(st.booleans(), min_size=len(whole), max_size=len(whole))),
        bool,
    )
    again = joined([whole.take(mine), whole.take(~mine)])
    assert len(again) == len(whole)
    assert sorted(map(repr, lines(again))) == sorted(map(repr, lines(whole)))


@kinds()
@given(data=st.data())
def test_numbers_become_others_and_back(kind, data):
    rows = data.draw(rows_of(kind))
    new = np.array([3, 1, 0, 5, 2, 4])
    back = np.argsort(new)
    there = rows.renumbered(dict.fromkeys(Numbers, new))
    for of in Numbers:
        assert sorted(there.numbers(of).tolist()) == sorted(
            new[rows.numbers(of)].tolist()
        )
    again = there.renumbered(dict.fromkeys(Numbers, back))
    assert sorted(map(repr, lines(again))) == sorted(map(repr, lines(rows)))


@given(data=st.data())
def test_all_of_them_go_through_bytes(data):
    memories = Memories({kind: data.draw(rows_of(kind)) for kind in KINDS})
    again = memories_from_arrays(list(memories), memories_to_arrays(memories))
    assert all(are_same(again[kind], memories[kind]) for kind in KINDS)


def test_a_component_that_this_version_does_not_know_is_named():
    with pytest.raises(StateError, match="'tides', which this version does not know"):
        kinds_named(["groups", "tides"], KINDS)


def descendants(kind: type) -> Iterator[type[Any]]:
    """The classes below one, at any depth: a component may be another one with a layout of its own."""
    for below in kind.__subclasses__():
        yield below
        yield from descendants(below)


def test_a_component_that_says_nothing_of_changes_is_not_made():
    with pytest.raises(TypeError, match=r"abstract methods? '?change"):
        Component()


def test_every_component_of_an_operator_can_be_stored():
    operators = Path(st_common.operators.__file__).parent
    for path in operators.rglob("*.py"):
        name = ".".join(path.relative_to(operators.parents[1]).with_suffix("").parts)
        import_module(name)
    names = {
        kind.LAYOUT.name
        for kind in descendants(Component)
        if kind.__module__.startswith("st_common.operators.")
        and hasattr(kind, "LAYOUT")
    }
    assert names == {kind.LAYOUT.name for kind in KINDS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lone(Keyed):
    LAYOUT: ClassVar[Layout] = Layout(
        name="lone",
        numbers={"object": (Numbers.OBJECTS,)},
        order=("object",),
        identity=("object",),
    )
    object: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    size: np.ndarray = field(default_factory=lambda: np.empty(0))


def test_a_row_that_is_added_takes_the_place_of_the_one_with_its_key():
    before = Lone(object=np.array([1, 4]), size=np.array([1.0, 4.0]))
    added = Lone(object=np.array([2, 4]), size=np.array([2.0, 5.0]))
    after = before.changed(Change(removed=np.array([1]), added=added))
    assert (after.object.tolist(), after.size.tolist()) == ([2, 4], [2.0, 5.0])


def lines(rows: Component):
    columns = [
        values.to_pylist() if isinstance(values, pa.Array) else values.tolist()
        for values in (getattr(rows, name) for name in rows.columns())
    ]
    return list(zip(*columns, strict=True))
