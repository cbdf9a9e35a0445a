"""What operators remember from batch to batch, as tables that a state can deal out without knowing what they are about.

Each kind of table says in its layout whose numbers its columns hold, and whether its rows go with an object or with a
query. That is all that a state needs to store it, to tell what changed in it, and to cut it into shards:

    entries of windows:   target   object   ts   ...  group     value
    hold numbers of:      TARGETS  OBJECTS            PARTNERS
    go with:              the query of the target
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum, auto
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.operators.arrays.keys import MASK, SHIFT, packed
from st_common.operators.state.fixes import NEVER

NONE = -1
"""The number of nobody; it stays as it is when all others are numbered anew."""


class Numbers(Enum):
    """What a number in a column stands for: the row of an object, a query, a target or a partner in its own table."""

    OBJECTS = auto()
    QUERIES = auto()
    TARGETS = auto()
    PARTNERS = auto()


Renumbering = Mapping[Numbers, np.ndarray]
"""The new number of each old one (int64); what is not in it keeps its numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How the rows of a kind of component lie.

    `name` is that in stored states. `numbers` says of columns whose numbers they hold: one kind, or two that are packed
    into a key. Rows are sorted by the columns `order`. `identity` are the columns that tell a row from all others.
    `owner` says with whom a row goes when the state is dealt out: its object, or its query. `bit` is a column of 0 and
    1 that may change while the row stays, `wide` are columns with several values a row. `later` are columns of numbers
    that older states lack, with what stands there then.
    """

    name: str
    numbers: Mapping[str, tuple[Numbers, ...]]
    order: tuple[str, ...]
    identity: tuple[str, ...]
    owner: Numbers = Numbers.QUERIES
    bit: str | None = None
    wide: tuple[str, ...] = ()
    later: Mapping[str, float] = field(default_factory=dict)


class Component(ABC):
    """A frozen dataclass of columns of one length (NumPy or Arrow), whose defaults are columns without rows.

    `LAYOUT` says what the columns hold; bytes, deltas and cutting into shards follow from that.
    """

    __slots__ = ()
    LAYOUT: ClassVar[Layout]

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(one.name for one in fields(cls))  # type: ignore[arg-type]

    def __len__(self) -> int:
        count: int = len(getattr(self, self.LAYOUT.order[0]))
        return count

    def take(self, index: np.ndarray) -> Self:
        """Some of the rows: by place (int64) in that order, or by mask (bool[n])."""
        return type(self)(
            **{
                name: taken_values(getattr(self, name), index)
                for name in self.columns()
            }
        )

    def numbers(self, of: Numbers) -> np.ndarray:
        """All numbers of one kind in the rows, as often as they stand there; int64 without `NONE`."""
        numbers = [np.empty(0, np.int64)]
        for name, kinds in self.LAYOUT.numbers.items():
            parts = _unpacked(getattr(self, name), kinds)
            numbers += [
                part for kind, part in zip(kinds, parts, strict=True) if kind is of
            ]
        every = np.concatenate(numbers)
        return np.asarray(every[every != NONE])

    def has_numbers(self, of: Numbers) -> bool:
        """Whether a column holds numbers of this kind."""
        return any(of in kinds for kinds in self.LAYOUT.numbers.values())

    def numbers_of_rows(self, of: Numbers) -> np.ndarray:
        """The number of one kind in each row, int64[n]: of the first column that holds such; one must."""
        name, kinds = next(
            (name, kinds) for name, kinds in self.LAYOUT.numbers.items() if of in kinds
        )
        return _unpacked(getattr(self, name), kinds)[kinds.index(of)]

    def renumbered(self, new: Renumbering) -> Self:
        """The same rows with other numbers, sorted again.

        Args:
            new: by kind the new number of each old one; kinds that it lacks keep theirs, and `NONE` stays `NONE`.
        """
        columns = {name: getattr(self, name) for name in self.columns()}
        for name, kinds in self.LAYOUT.numbers.items():
            parts = [
                _renumbered(part, new.get(kind))
                for kind, part in zip(
                    kinds, _unpacked(columns[name], kinds), strict=True
                )
            ]
            columns[name] = packed(*parts) if len(kinds) > 1 else parts[0]
        return type(self)(**columns).in_order()

    def in_order(self) -> Self:
        """The rows in the order of their layout; those that are alike there stay as they follow each other."""
        columns = [getattr(self, name) for name in self.LAYOUT.order]
        order = np.lexsort(columns[::-1])
        return self if _is_sorted(order) else self.take(order)

    @abstractmethod
    def changed(self, change: "Change[Self]") -> Self:
        """These rows after a change."""

    @abstractmethod
    def change_to(self, after: Self) -> "Change[Self]":
        """What leads from these rows to others: `self.changed(self.change_to(after))` has the rows of `after`."""

    def to_arrays(self) -> dict[str, Any]:
        """The columns as flat arrays for a blob, by `name/column`; wide ones row after row."""
        columns = {name: getattr(self, name) for name in self.columns()}
        columns |= {name: np.ravel(columns[name]) for name in self.LAYOUT.wide}
        return {
            f"{self.LAYOUT.name}/{name}": values for name, values in columns.items()
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """What `to_arrays` gave."""
        names = {name: f"{cls.LAYOUT.name}/{name}" for name in cls.columns()}
        count = len(arrays[names[cls.columns()[0]]])
        later = {names[n]: np.full(count, v) for n, v in cls.LAYOUT.later.items()}
        columns = {name: ({**later, **arrays})[at] for name, at in names.items()}
        for name in cls.LAYOUT.wide:
            width = len(columns[name]) // count if count else 0
            columns[name] = columns[name].reshape((count, width))
        return cls(**columns)


C = TypeVar("C", bound=Component)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Generic[C]):
    """What becomes of a component in a run.

    `removed` rows go: of a `Keyed` one their keys, of a `Listed` one their places. Then `added` come. `flipped` are
    places of rows whose bit is the opposite afterwards. `after` are all rows after it where they are known already;
    bytes leave it out.
    """

    added: C
    removed: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    flipped: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    after: C | None = field(default=None, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.added) + len(self.removed) + len(self.flipped)

    def to_arrays(self) -> dict[str, Any]:
        """As arrays for a blob."""
        name = self.added.LAYOUT.name
        return self.added.to_arrays() | {
            f"{name}/-removed": self.removed,
            f"{name}/-flipped": self.flipped,
        }

    @staticmethod
    def from_arrays(kind: type[C], arrays: Mapping[str, Any]) -> "Change[C]":
        """What `to_arrays` gave of a change of this kind of component."""
        name = kind.LAYOUT.name
        return Change(
            added=kind.from_arrays(arrays),
            removed=arrays[f"{name}/-removed"],
            flipped=arrays[f"{name}/-flipped"],
        )


class Keyed(Component):
    """One row for each key, sorted by it: the one column of the layout's `order`.

    key:value    before  1:10 2:20 3:30    after  2:20 3:31 5:50    change  removed 1, 3, added 3:31 5:50
    """

    __slots__ = ()

    @property
    def keys(self) -> np.ndarray:
        """The keys of the rows; int64, ascending, each once."""
        keys: np.ndarray = getattr(self, self.LAYOUT.order[0])
        return keys

    def changed(self, change: Change[Self]) -> Self:
        """These rows without the keys `removed`, and with those added, which replace rows of the same key."""
        if change.after is not None:
            return change.after
        if not len(change):
            return self
        gone = np.concatenate([change.removed, change.added.keys])
        return joined([self.take(~np.isin(self.keys, gone)), change.added])

    def change_to(self, after: Self) -> Change[Self]:
        """The rows of keys that went, came, or have other values."""
        if after is self:
            return Change(added=self.take(np.empty(0, np.int64)))
        was = np.flatnonzero(np.isin(after.keys, self.keys))
        at = np.searchsorted(self.keys, after.keys[was])
        kept = was[_same_rows(self.take(at), after.take(was))]
        is_new = np.ones(len(after), bool)
        is_new[kept] = False
        return Change(
            removed=self.keys[~np.isin(self.keys, after.keys[kept])],
            added=after.take(is_new),
        )


class Listed(Component):
    """Rows of which several are alike in the layout's `order`: these stay as they came, and are named by their places.

    target, ts, bit    before  (1, 5, 1) (1, 6, 1) (2, 7, 0)    after  (1, 6, 0) (1, 8, 1) (2, 7, 0)
    change             removed 0, flipped 1, added (1, 8, 1)
    """

    __slots__ = ()

    def changed(self, change: Change[Self]) -> Self:
        """These rows without those at the places `removed`, and the added ones behind those that are alike."""
        if change.after is not None:
            return change.after
        if not len(change):
            return self
        columns = {name: getattr(self, name) for name in self.columns()}
        if self.LAYOUT.bit is not None and len(change.flipped):
            bit = columns[self.LAYOUT.bit].copy()
            bit[change.flipped] ^= 1
            columns[self.LAYOUT.bit] = bit
        kept = type(self)(**columns)
        if len(change.removed):
            keep = np.ones(len(self), bool)
            keep[change.removed] = False
            kept = kept.take(keep)
        return joined([kept, change.added])

    def change_to(self, after: Self) -> Change[Self]:
        """The rows that went and came, and those whose bit changed; all of them where that gives another order."""
        if after is self:
            return Change(added=self.take(np.empty(0, np.int64)))
        mine, theirs = _alike(self, after)
        flips = _differs_in_bit(self, after, mine, theirs)
        same = _same_rows(self.take(mine), after.take(theirs), but=self.LAYOUT.bit)
        gone, new = np.ones(len(self), bool), np.ones(len(after), bool)
        gone[mine[same]], new[theirs[same]] = False, False
        change = Change(
            removed=np.flatnonzero(gone),
            flipped=mine[same & flips],
            added=after.take(new),
        )
        # Only trying tells whether rows that are alike would stand in the same order.
        if are_same(self.changed(change), after):
            return change
        return Change(removed=np.arange(len(self)), added=after)


def joined(parts: Sequence[C]) -> C:
    """The rows of several components of one kind (at least one) as one, sorted; alike ones as the parts come."""
    some = [part for part in parts if len(part)]
    if len(some) < 2:
        return some[0] if some else parts[0]
    kind = type(some[0])
    wide = kind.LAYOUT.wide
    columns = {
        name: _concatenated([getattr(part, name) for part in some], name in wide)
        for name in kind.columns()
    }
    return kind(**columns).in_order()


def are_same(one: Component, other: Component) -> bool:
    """Whether two components of one kind have the same rows in one order, bit by bit (NaN is NaN, null null)."""
    return len(one) == len(other) and bool(_same_rows(one, other).all())


def taken_values(values: Any, index: np.ndarray) -> Any:
    """Some values of a column, NumPy or Arrow, by place or by mask."""
    if not isinstance(values, pa.Array):
        return values[index]
    rows = np.flatnonzero(index) if index.dtype == bool else index
    if values.null_count == len(values):  # nobody selects columns: nothing to copy
        return pa.nulls(len(rows), values.type)
    return values.take(pa.array(rows))


def _unpacked(values: np.ndarray, kinds: tuple[Numbers, ...]) -> tuple[np.ndarray, ...]:
    return (values,) if len(kinds) == 1 else (values >> SHIFT, values & MASK)


def _renumbered(numbers: np.ndarray, new: np.ndarray | None) -> np.ndarray:
    if new is None or not len(numbers):
        return numbers
    with_none = np.append(new, NONE)  # which is found at the number -1
    renumbered: np.ndarray = with_none[numbers]
    return renumbered


def _is_sorted(order: np.ndarray) -> bool:
    return bool((order[1:] > order[:-1]).all())


def _concatenated(parts: list[Any], is_wide: bool) -> Any:  # noqa: FBT001 - a fact about the column
    if isinstance(parts[0], pa.Array):
        return pa.concat_arrays(parts)
    if is_wide:
        width = max(part.shape[1] for part in parts)
        parts = [widened(part, width) for part in parts]
    return np.concatenate(parts)


def widened(values: np.ndarray, width: int) -> np.ndarray:
    """A wide column with room for so many values a row, at least for those that it has; `NEVER` where none is."""
    more = width - values.shape[1]
    if more <= 0:
        return values
    return np.concatenate([values, np.full((len(values), more), NEVER)], axis=1)


def _same_rows(one: C, other: C, *, but: str | None = None) -> np.ndarray:
    """For each row of two components of one length whether it is the same in both, bit by bit; bool[n]."""
    same = np.ones(len(one), bool)
    for name in one.columns():
        if name != but:
            same &= _same_values(getattr(one, name), getattr(other, name))
    return same


def _same_values(one: Any, other: Any) -> np.ndarray:
    if isinstance(one, pa.Array):
        if one.null_count == len(one) and other.null_count == len(other):
            return np.ones(len(one), bool)
        both_null = pc.and_(one.is_null(), other.is_null())
        equal = pc.or_(pc.fill_null(pc.equal(one, other), fill_value=False), both_null)
        return np.asarray(equal.to_numpy(zero_copy_only=False), bool)
    if one.ndim > 1:
        width = max(one.shape[1], other.shape[1])
        return np.asarray((widened(one, width) == widened(other, width)).all(axis=1))
    if one.dtype.kind == "f":  # not-a-numbers are the same as well
        one, other = (
            np.ascontiguousarray(values).view(np.int64) for values in (one, other)
        )
    return np.asarray(one == other)


def _alike(before: C, after: C) -> tuple[np.ndarray, np.ndarray]:
    """The places of rows of the same identity, before and after."""
    both = [
        np.concatenate([getattr(before, name), getattr(after, name)])
        for name in before.LAYOUT.identity
    ]
    place = np.r_[np.arange(len(before)), np.arange(len(after))]
    is_after = np.arange(len(place)) >= len(before)
    order = np.lexsort([is_after, *both[::-1]])
    follows = ~is_after[order][:-1] & is_after[order][1:]
    for values in both:
        follows &= values[order][1:] == values[order][:-1]
    first = order[:-1][follows]
    second = order[1:][follows]
    return place[first], place[second]


def _differs_in_bit(
    before: C, after: C, mine: np.ndarray, theirs: np.ndarray
) -> np.ndarray:
    bit = before.LAYOUT.bit
    if bit is None:
        return np.zeros(len(mine), bool)
    differs: np.ndarray = getattr(before, bit)[mine] != getattr(after, bit)[theirs]
    return differs
