"""Many conditions as shapes with a row of literals each, for the columns that a stream has (SPEC X13).

A literal becomes a column only where its type is known to make no difference: the type of what stands beside it says
which type DuckDB turns the literal into, and the column has that type. All other literals stay in the text.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from st_common.operators.expressions import evaluation as expressions
from st_common.operators.expressions.constants import types_of, values_of
from st_common.operators.expressions.shapes import (
    Draft,
    Slot,
    cut,
    filled,
    flat,
)

FEW = 8
"""Fewer conditions than these of one shape are evaluated one by one: that costs no more."""
_PREFIX = "literal "  # of the names of columns with literals
_NUMBERS = frozenset({"INTEGER", "BIGINT", "HUGEINT", "DOUBLE"})
_WHOLE = frozenset({"INTEGER", "BIGINT"})
_ARROW = {
    "DOUBLE": pa.float64(),
    "BIGINT": pa.int64(),
    "VARCHAR": pa.string(),
    "TIMESTAMP": pa.timestamp("us"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What conditions have in common.

    Attributes:
        text: SQL over the columns of fixes and those of literals, as `ABS(load - "literal 0") > "literal 1"`.
        columns: the columns of fixes that it names.
        literals: a row for each condition, columns by `literal_name`.
    """

    text: str
    columns: tuple[str, ...]
    literals: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaped:
    """Conditions by their shape; c of them.

    Attributes:
        shapes: the different shapes.
        shape: int64[c], the place of each one's shape, -1 without.
        row: int64[c], the row of its literals there.
    """

    shapes: tuple[Shape, ...]
    shape: np.ndarray
    row: np.ndarray


@dataclass(frozen=True, slots=True)
class _Read:
    """A condition that was read: its number, its draft and its literals."""

    number: int
    draft: Draft
    literals: tuple[str, ...]

    def constants(self) -> list[str]:
        return [filled(slot.constant, self.literals) for slot in self.draft.slots]  # type: ignore[arg-type]


def literal_name(number: int) -> str:
    """The name of the column with the values of a parameter: "literal 0" for the first."""
    return f"{_PREFIX}{number}"


def unshaped(conditions: int) -> Shaped:
    """So many conditions without a shape."""
    none = np.full(conditions, -1)
    return Shaped(shapes=(), shape=none, row=none)


def shaped(texts: Sequence[str], fixes: pa.Schema) -> Shaped:
    """The shapes of different conditions on fixes with certain columns.

    A condition has a shape only if it can be evaluated over such fixes: that shows without a row.

    Args:
        texts: c conditions as canonical SQL.
        fixes: the columns.

    Returns:
        Shapes of those that at least `FEW` conditions share; none where two columns differ in case alone.
    """
    names = [name.casefold() for name in fixes.names]
    if (
        len(texts) < FEW
        or len({*names}) < len(names)
        or any(name.startswith(_PREFIX) for name in names)
    ):
        return unshaped(len(texts))
    shape, row, shapes = np.full(len(texts), -1), np.full(len(texts), -1), list[Shape]()
    empty = fixes.empty_table()
    for members in _alike(texts):
        for made, numbers in _shapes_of(members, empty):
            shape[numbers], row[numbers] = len(shapes), np.arange(len(numbers))
            shapes.append(made)
    return Shaped(shapes=tuple(shapes), shape=shape, row=row)


def _alike(texts: Sequence[str]) -> Iterable[list[_Read]]:
    """Conditions that are read alike and whose constants have the same types: at least `FEW` of them."""
    from st_common.operators.expressions.drafts import draft_of  # it reads trees

    by_key = defaultdict[str, list[tuple[int, tuple[str, ...]]]](list)
    for number, text in enumerate(texts):
        key, literals = cut(text)
        by_key[key].append((number, tuple(literals)))
    for key, members in by_key.items():
        draft = draft_of(key) if len(members) >= FEW else None
        if draft is None:
            continue
        read = [_Read(number, draft, literals) for number, literals in members]
        types = types_of([text for one in read for text in one.constants()])
        groups = defaultdict[tuple[str | None, ...], list[_Read]](list)
        for one in read:
            # Constants of other types make another shape: DuckDB may bind them otherwise.
            groups[tuple(types[text] for text in one.constants())].append(one)
        yield from (group for group in groups.values() if len(group) >= FEW)


def _shapes_of(
    members: list[_Read], empty: pa.Table
) -> Iterable[tuple[Shape, list[int]]]:
    """The shapes of conditions that are read alike, with the numbers of the conditions of each."""
    kinds = _kinds(members[0], empty)
    groups = defaultdict[str, list[_Read]](list)
    for one in members if kinds is not None else ():
        groups[_text_of(one, kinds or [])].append(one)
    for text, group in groups.items():
        made = _shape(text, group, kinds or [], empty) if len(group) >= FEW else None
        if made is not None:
            yield made


def _kinds(one: _Read, empty: pa.Table) -> list[str | None] | None:
    """The type of the column that each constant becomes, None where it stays; None for all if nothing can be said."""
    slots, own = one.draft.slots, types_of(one.constants())
    sides = [
        filled(tuple(flat(side)), one.literals)
        for slot in slots
        for side in slot.beside
    ]
    types = expressions.types_of(sides, empty)
    if types is None:
        return None
    waiting = iter(types)
    return [
        _kind(slot, [next(waiting) for _ in slot.beside], own[text])
        for slot, text in zip(slots, one.constants(), strict=True)
    ]


def _kind(slot: Slot, beside: Sequence[str], own: str | None) -> str | None:
    """The type that DuckDB gives to a constant of its `own` type beside others; None where that is not certain."""
    if own is None or len(set(beside)) != 1:
        return None
    is_number = own in _NUMBERS or own.startswith("DECIMAL")
    wider: dict[str, str | None] = {
        "VARCHAR": own if own == "VARCHAR" and slot.operator != "arithmetic" else None,
        "TIMESTAMP": "TIMESTAMP"
        if own in ("TIMESTAMP", "VARCHAR") and slot.operator == "comparison"
        else None,
        "DOUBLE": "DOUBLE" if is_number else None,
        "BIGINT": ("BIGINT" if own in _WHOLE else own)
        if is_number and own != "HUGEINT"
        else None,
    }
    return (
        None
        if slot.operator == "text" and beside[0] != "VARCHAR"
        else wider.get(beside[0])
    )


def _text_of(one: _Read, kinds: Sequence[str | None]) -> str:
    """The text of the shape: the condition with columns for constants that have a type."""
    names = iter(
        [
            None if kind is None else literal_name(place)
            for place, kind in enumerate(kinds)
        ]
    )
    parts = list[str]()
    for piece in one.draft.pieces:
        name = next(names) if isinstance(piece, Slot) else None
        whole = flat((piece,)) if name is None else (f'"{name}"',)
        parts.append(filled(tuple(whole), one.literals))
    return "".join(parts)


def _shape(
    text: str, group: list[_Read], kinds: Sequence[str | None], empty: pa.Table
) -> tuple[Shape, list[int]] | None:
    """A shape with the literals of its conditions that all have values; None if it is not what its conditions are."""
    constants = [one.constants() for one in group]
    columns = {
        place: values_of([of[place] for of in constants], kind)
        for place, kind in enumerate(kinds)
        if kind is not None
    }
    # A condition one of whose constants has no value of the type stays by itself.
    kept = [
        row
        for row in range(len(group))
        if all(values[row] is not None for values in columns.values())
    ]
    if len(kept) < FEW:
        return None
    literals = pa.table(
        {
            literal_name(place): pa.array(
                [values[row] for row in kept], _arrow(kinds[place])
            )
            for place, values in columns.items()
        }
    )
    made = Shape(text=text, columns=group[0].draft.columns, literals=literals)
    if not _is_same(made, group[kept[0]], empty):
        return None
    return made, [group[row].number for row in kept]


def _is_same(made: Shape, one: _Read, empty: pa.Table) -> bool:
    """Whether a shape and a condition of it can both be bound, as conditions."""
    both = {name: empty[name] for name in empty.column_names} | {
        name: made.literals[name][:0] for name in made.literals.column_names
    }
    original = filled(tuple(flat(one.draft.pieces)), one.literals)
    types = expressions.types_of([original, made.text], pa.table(both))
    return types == ["BOOLEAN", "BOOLEAN"]


def _arrow(kind: str | None) -> Any:
    """The type of a column of literals in Arrow."""
    decimal = re.fullmatch(r"DECIMAL\(([0-9]+),([0-9]+)\)", kind or "")
    if decimal is not None:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    return _ARROW[kind or ""]
