"""The conditions of many queries, as what they ask of columns (SPEC P8, X13).

Most are simple (see `simple`): ranges of numbers and sets of texts, their atoms. What else there is, is DuckDB's.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa

from st_common.operators.arrays.keys import SHIFT
from st_common.operators.arrays.numbered import numbered
from st_common.operators.expressions.atom import Atom
from st_common.operators.expressions.found_by import shared_by
from st_common.operators.expressions.simple import (
    Parts,
    is_whole,
    parts_of,
    values_of,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Conditions:
    """Different conditions, as what they ask of columns.

        speed > 5 AND kind IN ('taxi', 'bus')      atoms 0 (speed from 5, open) and 1 (kind: two texts)      simple
        speed <= 9                                 atom 2 (speed up to 9)                                    simple
        ABS(x) > 1                                 no atom                                                   DuckDB's
        rounds                                     [0, 2, -1] and [1, -1, -1]

    Attributes:
        texts: c conditions as canonical SQL.
        simple: bool[c], of atoms alone.
        half: bool[c], of atoms and a rest.
        rests: what is left of each beside its atoms, "" of a simple one.
        rounds: int64[c] each: places of atoms, at most one of each condition, -1 without.
        either: int64[c] each, likewise: of conditions without such atoms those of which one holds at least.
        columns: the names of columns that atoms are about, and expressions.
        computed: the places of these expressions among them.
        parts: the places of those of whose texts parts are looked for.
        column: int64[a], by atom its place among these; of the arrays below each has a value for every atom, too.
        low: float64, the range that a number must lie in, to `high`; infinite without an end.
        open_low: bool, the end is not of the range; `open_high` likewise.
        whole: bool, both ends are whole numbers.
        loose: bool, the range is wider than what the rest of its condition asks.
        is_text: bool, it asks for texts.
        or_unknown: bool, it holds, too, where its column has no value.
        names: by column the different texts that are asked for.
        asked: int64, ascending, keys `atom << 32 | place` of texts among the names of its column.
    """

    texts: tuple[str, ...]
    simple: np.ndarray
    half: np.ndarray
    rests: tuple[str, ...]
    rounds: tuple[np.ndarray, ...]
    either: tuple[np.ndarray, ...]
    columns: tuple[str, ...]
    computed: frozenset[int]
    parts: frozenset[int]
    column: np.ndarray
    low: np.ndarray
    high: np.ndarray
    open_low: np.ndarray
    open_high: np.ndarray
    whole: np.ndarray
    loose: np.ndarray
    is_text: np.ndarray
    or_unknown: np.ndarray
    names: tuple[pa.Array, ...]
    asked: np.ndarray


def compile_conditions(
    texts: Sequence[str], finding: Collection[str] = ()
) -> Conditions:
    """Different conditions with what they ask of columns; `Conditions` has an example.

    Args:
        texts: canonical SQL, each once.
        finding: those of queries that nothing but their condition can find: for these expressions are computed, and
            alternatives looked for.
    """
    parts, either = _parts(texts, finding)
    atoms_of_each = [one.atoms for one in parts]
    rests = tuple(" AND ".join(one.rest) for one in parts)
    flat = list(chain.from_iterable((*atoms_of_each, *either)))
    columns = numbered(map(_column_of, flat))
    column = np.array([columns[_column_of(atom)] for atom in flat], np.int64)
    names, asked = _asked_texts(flat, column, count=len(columns))
    both = [
        bool(atoms and rest) for atoms, rest in zip(atoms_of_each, rests, strict=True)
    ]
    return Conditions(
        texts=tuple(texts),
        simple=np.array([not rest for rest in rests], bool),
        half=np.array(both, bool),
        rests=rests,
        rounds=_rounds(atoms_of_each),
        either=_rounds(either, first=sum(map(len, atoms_of_each))),
        columns=tuple(name for name, _, _ in columns),
        computed=frozenset(
            at for at, (_, is_computed, _) in enumerate(columns) if is_computed
        ),
        parts=frozenset(at for at, (_, _, is_parts) in enumerate(columns) if is_parts),
        column=column,
        is_text=np.array([bool(atom.texts) for atom in flat], bool),
        or_unknown=np.array([atom.or_unknown for atom in flat], bool),
        names=names,
        asked=asked,
        **_ranges(flat),
    )


def _column_of(atom: Atom) -> tuple[str, bool, bool]:
    """What an atom is about: a column or an expression, and whether it is about the parts of its text."""
    return atom.column, atom.is_computed, atom.is_parts


def _asked_texts(
    atoms: Sequence[Atom], column: np.ndarray, *, count: int
) -> tuple[tuple[pa.Array, ...], np.ndarray]:
    """The different texts that atoms compare each column with, and which of them each atom asks for.

    Args:
        atoms: all atoms, by their places.
        column: int64[atoms], the column of each.
        count: how many columns there are.

    Returns:
        For each column its texts, and keys `atom << 32 | text`, ascending.
    """
    texts = [dict[str, int]() for _ in range(count)]
    asked = [
        (place << SHIFT) | texts[at].setdefault(text, len(texts[at]))
        for place, (atom, at) in enumerate(zip(atoms, column.tolist(), strict=True))
        for text in atom.texts
    ]
    names = tuple(pa.array(list(of), pa.string()) for of in texts)
    return names, np.unique(np.array(asked, np.int64))


def _ranges(atoms: Sequence[Atom]) -> dict[str, np.ndarray]:
    """The ranges that atoms allow, and whether their ends belong to them; [atoms] each."""
    ends = values_of(_ends(atoms))
    low = [ends[atom.low] if atom.low else -np.inf for atom in atoms]
    high = [ends[atom.high] if atom.high else np.inf for atom in atoms]
    whole = [is_whole(atom.low) and is_whole(atom.high) for atom in atoms]
    return {
        "low": np.array(low, float),
        "high": np.array(high, float),
        "open_low": np.array([atom.open_low for atom in atoms], bool),
        "open_high": np.array([atom.open_high for atom in atoms], bool),
        "whole": np.array(whole, bool),
        "loose": np.array([atom.loose for atom in atoms], bool),
    }


def _parts(
    texts: Sequence[str], finding: Collection[str]
) -> tuple[list[Parts], list[tuple[Atom, ...]]]:
    """The atoms of conditions whose constants are all finite numbers, and what else each asks for; and alternatives."""
    shared = shared_by(text for text in texts if text in finding)
    cut = [
        shared.parts_with(parts_of(text)) if text in finding else parts_of(text)
        for text in texts
    ]
    values = values_of(_ends(chain.from_iterable(one.atoms for one in cut)))
    # A condition with a constant that is no finite number is the database's as a whole.
    parts = [
        one
        if all(values[end] is not None for end in _ends(one.atoms))
        else Parts((), (text,))
        for text, one in zip(texts, cut, strict=True)
    ]
    either = [
        _finite(shared.alternatives(text)) if text in finding and not one.atoms else ()
        for text, one in zip(texts, parts, strict=True)
    ]
    return parts, either


def _finite(atoms: tuple[Atom, ...]) -> tuple[Atom, ...]:
    """The atoms, if all their constants are finite numbers."""
    ends = _ends(atoms)
    values = values_of(ends)
    return atoms if all(values[end] is not None for end in ends) else ()


def _ends(atoms: Iterable[Atom]) -> list[str]:
    """The constants at the ends of ranges."""
    return [end for atom in atoms for end in (atom.low, atom.high) if end]


def _rounds(
    atoms_of_each: Sequence[tuple[Atom, ...]], *, first: int = 0
) -> tuple[np.ndarray, ...]:
    """The places of the atoms of each condition among all, dealt into columns; these begin with the `first`."""
    counts = np.array([len(atoms) for atoms in atoms_of_each], np.int64)
    start = first + np.cumsum(counts) - counts
    return tuple(
        np.where(counts > number, start + number, -1)
        for number in range(int(counts.max(initial=0)))
    )
