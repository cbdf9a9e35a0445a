"""Which points satisfy which conditions, tested where points and queries meet (SPEC P8, X13).

What indexes find are pairs of a point and a query. A simple condition (see `simple`) is tested for its pairs alone,
all conditions at once; the others are DuckDB's (see `general`). Some are simple by half: what that leaves of their
pairs goes to DuckDB.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from st_common.geometry.space import Space
from st_common.operators.arrays.keys import is_in, packed
from st_common.operators.expressions import evaluation as expressions
from st_common.operators.expressions import shaped
from st_common.operators.expressions.conditions import Conditions
from st_common.operators.expressions.feature_readings import FeatureReadings
from st_common.operators.expressions.general import (
    General,
    Source,
    schema_of,
    shapes_of,
)
from st_common.operators.expressions.pair_readings import PairReadings
from st_common.operators.expressions.readings import Points
from st_common.operators.expressions.seen import Seen, seen_of
from st_common.operators.expressions.shaped import Shaped

PairPoints = PairReadings | FeatureReadings


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

    def parts(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """The points, ascending, that have parts in a column of whose texts these are looked for, and which parts."""
        none = np.empty(0, np.int64)
        return self._seen.parts.get(number, (none, none))


def truth_of(
    conditions: Conditions,
    points: PairPoints,
    ids: pa.Array,
    *,
    space: Space,
) -> Truth:
    """Which of some pairs satisfy which conditions on both of each; nothing of it is remembered.

    Args:
        conditions: one at least.
        points: the pairs.
        ids: string, the ids of all objects.
        space: by which distances and directions are measured.
    """
    source = Source(
        readings=points.take,
        ids=ids,
        space=space,
        size=len(points),
        dense=lambda texts: expressions.masks(
            texts, points.table(ids, space=space, texts=texts)
        ),
        spent_us={},
    )
    return Truth(conditions, points, source)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """How different conditions are tested on fixes with certain columns; bool arrays have a value for each.

    The atoms of those `indexed` are asked of the columns, or find who may satisfy them; that is all of `simple` ones.
    `texts` is what of each is the database's, with `shapes` where it is asked of pairs.
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
    is_either = np.zeros(len(fit), bool)
    for atoms in conditions.either:
        is_either |= atoms >= 0
    return Tested(
        simple=simple,
        indexed=simple | half | (is_either & fit & (shapes.shape >= 0)),
        texts=_texts(conditions, half),
        shapes=shapes,
    )


def _fitting(conditions: Conditions, fits: np.ndarray) -> np.ndarray:
    """bool[c]: the conditions all of whose atoms fit (bool per atom) their columns."""
    fit = np.ones(len(conditions.texts), bool)
    for atoms in (*conditions.rounds, *conditions.either):
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
    if known.or_unknown.any():
        keep |= known.or_unknown[atom] & np.isnan(value)
    if is_text.any():
        code = seen.texts[column, point]
        keep = np.where(
            is_text, (code >= 0) & is_in(packed(atom, code), known.asked), keep
        )
    if known.parts:
        # Whoever was found by a part has it, and whoever was found otherwise is asked the whole condition.
        keep |= np.isin(column, list(known.parts))
    return np.asarray(keep)
