"""The conditions of many queries, tested where points and queries meet (SPEC P8, X13).

What indexes find are pairs of a point and a query. A simple condition (see `simple`) is tested for its pairs alone,
all conditions at once; the others are DuckDB's (see `general`). Some are simple by half: what that leaves of their
pairs goes to DuckDB.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.geometry.space import Space
from st_common.operators.arrays.keys import SHIFT, is_in, packed
from st_common.operators.expressions import shaped
from st_common.operators.expressions.general import (
    General,
    Source,
    schema_of,
    shapes_of,
)
from st_common.operators.expressions.readings import Points
from st_common.operators.expressions.shaped import Shaped
from st_common.operators.expressions.simple import Atom, is_whole, parts_of, values_of

_EXACT = 1 << 53  # from here on a double is not every whole number


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
        columns: the names of columns that atoms are about.
        column: int64[a], by atom its place among these; of the arrays below each has a value for every atom, too.
        low: float64, the range that a number must lie in, to `high`; infinite without an end.
        open_low: bool, the end is not of the range; `open_high` likewise.
        whole: bool, both ends are whole numbers.
        is_text: bool, it asks for texts.
        names: by column the different texts that are asked for.
        asked: int64, ascending, keys `atom << 32 | place` of texts among the names of its column.
    """

    texts: tuple[str, ...]
    simple: np.ndarray
    half: np.ndarray
    rests: tuple[str, ...]
    rounds: tuple[np.ndarray, ...]
    columns: tuple[str, ...]
    column: np.ndarray
    low: np.ndarray
    high: np.ndarray
    open_low: np.ndarray
    open_high: np.ndarray
    whole: np.ndarray
    is_text: np.ndarray
    names: tuple[pa.Array, ...]
    asked: np.ndarray


def compile_conditions(texts: Sequence[str]) -> Conditions:
    """Different conditions (canonical SQL, each once), with what they ask of columns; `Conditions` has an example."""
    atoms_of_each, rests = _parts(texts)
    ends = values_of(_ends(atoms_of_each))
    flat = [
        (number, atom) for number, atoms in enumerate(atoms_of_each) for atom in atoms
    ]
    columns = {
        name: place
        for place, name in enumerate(dict.fromkeys(atom.column for _, atom in flat))
    }
    column = np.array([columns[atom.column] for _, atom in flat], np.int64)
    names = [dict[str, int]() for _ in columns]
    asked = [
        (place << SHIFT) | names[at].setdefault(text, len(names[at]))
        for place, ((_, atom), at) in enumerate(zip(flat, column.tolist(), strict=True))
        for text in atom.texts
    ]
    return Conditions(
        texts=tuple(texts),
        simple=np.array([not rest for rest in rests], bool),
        half=np.array(
            [
                bool(atoms and rest)
                for atoms, rest in zip(atoms_of_each, rests, strict=True)
            ],
            bool,
        ),
        rests=rests,
        rounds=_rounds(atoms_of_each),
        columns=tuple(columns),
        column=column,
        low=np.array(
            [ends[atom.low] if atom.low else -np.inf for _, atom in flat], float
        ),
        high=np.array(
            [ends[atom.high] if atom.high else np.inf for _, atom in flat], float
        ),
        open_low=np.array([atom.open_low for _, atom in flat], bool),
        open_high=np.array([atom.open_high for _, atom in flat], bool),
        whole=np.array(
            [is_whole(atom.low) and is_whole(atom.high) for _, atom in flat], bool
        ),
        is_text=np.array([bool(atom.texts) for _, atom in flat], bool),
        names=tuple(pa.array(list(of), pa.string()) for of in names),
        asked=np.unique(np.array(asked, np.int64)),
    )


def _parts(texts: Sequence[str]) -> tuple[list[tuple[Atom, ...]], tuple[str, ...]]:
    """The atoms of conditions whose constants are all finite numbers, and what else each asks for."""
    parts_of_each = [parts_of(text) for text in texts]
    ends = values_of(_ends(atoms for atoms, _ in parts_of_each))
    # A condition with a constant that is no finite number is the database's as a whole.
    parts = [
        (atoms, rest)
        if all(ends[end] is not None for end in _ends([atoms]))
        else ((), text)
        for text, (atoms, rest) in zip(texts, parts_of_each, strict=True)
    ]
    return [atoms for atoms, _ in parts], tuple(rest for _, rest in parts)


def _ends(atoms_of_each: Iterable[tuple[Atom, ...]]) -> list[str]:
    """The constants at the ends of ranges."""
    return [
        end
        for atoms in atoms_of_each
        for atom in atoms
        for end in (atom.low, atom.high)
        if end
    ]


def _rounds(atoms_of_each: Sequence[tuple[Atom, ...]]) -> tuple[np.ndarray, ...]:
    """The places of the atoms of each condition among all, dealt into columns."""
    counts = np.array([len(atoms) for atoms in atoms_of_each], np.int64)
    start = np.cumsum(counts) - counts
    return tuple(
        np.where(counts > number, start + number, -1)
        for number in range(int(counts.max(initial=0)))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The columns of n points that conditions name, by their place among `Conditions.columns`.

    Attributes:
        numbers: float64[columns, n]; null is NaN, and what is no number is infinite, for DuckDB orders it so.
        texts: int64[columns, n], places among the names that conditions ask for, -1 for others and for null.
        fits: bool[atoms], whether the column has values that can be compared so.
    """

    numbers: np.ndarray
    texts: np.ndarray
    fits: np.ndarray


class Truth:
    """Which of some points satisfy which conditions; what is asked for is found then."""

    def __init__(
        self, conditions: Conditions, readings: Points, source: Source
    ) -> None:
        self._conditions, self._size = conditions, len(readings)
        self._seen = seen_of(conditions, readings, source.ids, space=source.space)
        self._tested = tested_of(
            conditions, self._seen.fits, readings, space=source.space
        )
        self._general = General(self._tested.texts, self._tested.shapes, source)
        self._general.evaluate(self._tested.everywhere)

    def of(self, number: int) -> np.ndarray:
        """The points that satisfy one condition (its number); bool[n]."""
        points = np.arange(self._size)
        return self.pairs(np.full(len(points), number), points)

    def pairs(self, number: np.ndarray, point: np.ndarray) -> np.ndarray:
        """Whether each point satisfies the condition beside it; bool[p].

        Args:
            number: int64[p], conditions; -1 is none, and holds.
            point: int64[p], places of points.
        """
        out = np.ones(len(number), bool)
        which = np.flatnonzero(np.append(self._tested.indexed, False)[number])
        out[which] = hold(self._conditions, self._seen, number[which], point[which])
        is_simple = np.append(self._tested.simple, True)[number]
        rest = np.flatnonzero(out & ~is_simple)
        out[rest] = self._general.pairs(number[rest], point[rest])
        return out

    def may_ask_points(self, number: np.ndarray, points: int) -> bool:
        """Whether conditions are the database's alone, and cost less at all points than over pairs with so many."""
        known = self._tested
        alone = (number >= 0) & ~known.indexed[number] & ~known.simple[number]
        return bool(alone.all()) and self._general.is_cheaper_over_points(
            number, points
        )

    def at_points(
        self, number: np.ndarray, points: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of one of some points and the place of a condition that it satisfies; see `may_ask_points`."""
        row, place = np.nonzero(self._general.at_points(number, points))
        return points[row], place

    @property
    def indexed(self) -> np.ndarray:
        """The conditions of which something is asked without the database, of columns as these points have; bool[c]."""
        return self._tested.indexed

    def column(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """The numbers and the texts of all points in one of the columns."""
        return self._seen.numbers[number], self._seen.texts[number]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """How different conditions are tested on fixes with certain columns; bool arrays have a value for each.

    The atoms of those `indexed` are asked of the columns; that is all of `simple` ones. `texts` is what of each is the
    database's, with `shapes` where it is asked of pairs.
    """

    simple: np.ndarray
    indexed: np.ndarray
    texts: tuple[str, ...]
    shapes: Shaped

    @property
    def everywhere(self) -> np.ndarray:
        """The numbers of those that are neither simple nor of a shape: the database is asked of all points."""
        return np.flatnonzero(~self.simple & (self.shapes.shape < 0))


def tested_of(
    conditions: Conditions, fits: np.ndarray, like: Points, *, space: Space
) -> Tested:
    """How conditions are tested on fixes `like` some; `fits` (bool per atom) says which of their columns do."""
    simple = conditions.simple & _fitting(conditions, fits)
    is_many = np.count_nonzero(~simple) >= shaped.FEW  # else nobody asks for columns
    schema = schema_of(like, space=space) if is_many else pa.schema([])
    return tested_on(conditions, fits.tobytes(), schema)


@lru_cache(maxsize=16)
def tested_on(conditions: Conditions, fits: bytes, fixes: pa.Schema) -> Tested:
    """How conditions are tested on fixes with certain columns; `fits` are the bytes of a bool array."""
    fit = _fitting(conditions, np.frombuffer(fits, bool))
    simple, half = conditions.simple & fit, conditions.half & fit
    texts = _texts(conditions, half)
    shapes = shapes_of(texts, ~simple, fixes)
    # Where the rest has no shape the database is asked of all points, and then of the whole condition.
    half &= shapes.shape >= 0
    return Tested(
        simple=simple,
        indexed=simple | half,
        texts=_texts(conditions, half),
        shapes=shapes,
    )


def _fitting(conditions: Conditions, fits: np.ndarray) -> np.ndarray:
    """bool[c]: the conditions all of whose atoms fit (bool per atom) their columns."""
    fit = np.ones(len(conditions.texts), bool)
    for atoms in conditions.rounds:
        fit &= (atoms < 0) | np.append(fits, True)[atoms]
    return fit


def _texts(conditions: Conditions, half: np.ndarray) -> tuple[str, ...]:
    """The whole conditions, of those that are simple by half the rest."""
    parts = zip(conditions.texts, conditions.rests, half.tolist(), strict=True)
    return tuple(rest if is_half else text for text, rest, is_half in parts)


def hold(
    conditions: Conditions, seen: Seen, number: np.ndarray, point: np.ndarray
) -> np.ndarray:
    """bool[p]: whether each point satisfies the simple condition beside it."""
    out = np.ones(len(number), bool)
    for atoms in conditions.rounds:
        atom = atoms[number]
        which = np.flatnonzero((atom >= 0) & out)
        if len(which):
            out[which] = _holds(conditions, seen, atom[which], point[which])
    return out


def _holds(
    known: Conditions, seen: Seen, atom: np.ndarray, point: np.ndarray
) -> np.ndarray:
    """Whether points lie in the ranges, or have the texts, that atoms ask for; bool[p]."""
    column, is_text = known.column[atom], known.is_text[atom]
    value, low, high = seen.numbers[column, point], known.low[atom], known.high[atom]
    keep = np.where(known.open_low[atom], value > low, value >= low)
    keep &= np.where(known.open_high[atom], value < high, value <= high)
    if is_text.any():
        code = seen.texts[column, point]
        keep = np.where(
            is_text, (code >= 0) & is_in(packed(atom, code), known.asked), keep
        )
    return np.asarray(keep)


def seen_of(
    conditions: Conditions, readings: Points, ids: pa.Array, *, space: Space
) -> Seen:
    """The columns of some points that conditions name."""
    columns = _columns_of(conditions, readings, ids, space=space)
    shape = (len(columns), len(readings))
    numbers, texts = np.full(shape, np.nan), np.full(shape, -1, np.int64)
    for place, values in enumerate(columns):
        if values is None:
            continue
        if pa.types.is_floating(values.type):
            numbers[place] = _decimals(values)
        elif pa.types.is_integer(values.type):
            numbers[place] = values.cast(pa.float64(), safe=False).to_numpy(
                zero_copy_only=False
            )
        elif pa.types.is_string(values.type):
            at = pc.index_in(values, value_set=conditions.names[place])
            texts[place] = at.fill_null(-1).to_numpy(zero_copy_only=False)
    return Seen(numbers=numbers, texts=texts, fits=_fits(conditions, columns))


def fits_of(
    conditions: Conditions, readings: Points, ids: pa.Array, *, space: Space
) -> np.ndarray:
    """Whether the columns of some points have values that can be compared so; bool[atoms].

    Whole numbers fit only beside whole constants, and while doubles tell them apart.

    Args:
        conditions: the conditions.
        readings: the points; there may be none, but for attributes.
        ids: string, the ids of all objects.
        space: by which distances and speeds are measured.
    """
    return _fits(conditions, _columns_of(conditions, readings, ids, space=space))


def _columns_of(
    conditions: Conditions, readings: Points, ids: pa.Array, *, space: Space
) -> list[pa.Array | None]:
    return [readings.column(name, ids, space=space) for name in conditions.columns]


def _fits(conditions: Conditions, columns: Sequence[pa.Array | None]) -> np.ndarray:
    kinds = np.zeros((3, len(columns)), bool)  # decimal numbers, whole numbers, texts
    for place, values in enumerate(columns):
        if values is not None:
            whole = pa.types.is_integer(values.type) and _are_exact(values)
            kinds[:, place] = (
                pa.types.is_floating(values.type),
                whole,
                pa.types.is_string(values.type),
            )
    decimal, whole, text = kinds[:, conditions.column]
    fits: np.ndarray = np.where(
        conditions.is_text, text, decimal | (whole & conditions.whole)
    )
    return fits


def _are_exact(values: pa.Array) -> bool:
    """Whether doubles tell these whole numbers from each other."""
    ends = pc.min_max(values).as_py()
    return all(end is None or -_EXACT < end < _EXACT for end in ends.values())


def _decimals(values: pa.Array) -> np.ndarray:
    """As doubles: NaN for null. What is no number is greater than every number, as DuckDB has it."""
    decimals: np.ndarray = (
        values.cast(pa.float64()).to_numpy(zero_copy_only=False).copy()
    )
    if values.null_count < np.count_nonzero(np.isnan(decimals)):
        decimals[
            np.isnan(decimals) & values.is_valid().to_numpy(zero_copy_only=False)
        ] = np.inf
    return decimals
