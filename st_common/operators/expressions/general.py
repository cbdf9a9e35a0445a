"""Conditions that only the database can say, of pairs of a point and a condition or of all points (SPEC X13).

Both ways say the same; which is taken is a question of cost alone. Over pairs: one statement for each shape, over the
pairs that ask for it, with the literals of each pair's condition beside its point. Over points: every condition that is
asked for, at every point, kept as bits.

    condition               shape, literals         pairs asked for   over pairs   over points
    0 ABS(load - 3) > 9     ABS(load - $0) > $1     (a, 0) (b, 1)     2 rows       2 conditions x 3 points
    1 ABS(load - 4) > 8     the same; 4, 8
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from st_common.geometry.space import Space
from st_common.operators.arrays.bits import answers_of, asked_together, bit_of
from st_common.operators.expressions import evaluation as expressions
from st_common.operators.expressions.readings import Points
from st_common.operators.expressions.shaped import Shape, Shaped, shaped

Dense = Callable[[Sequence[str]], np.ndarray]

STATEMENT_US, _CONDITION_US = 1_000.0, 200.0  # of a statement, of each condition in it
PAIR_US, _POINT_US = 0.04, 0.01  # of a row with literals beside it, of one without
MOST_PAIRS = 1 << 18
"""Pairs in one statement."""
_NOBODY = pa.array([], pa.string())


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Points, by number from 0 to before `size`.

    Attributes:
        readings: gives the readings of some of them (int64, numbers).
        ids: string, the ids of all objects.
        space: by which distances and speeds are measured.
        size: how many there are.
        dense: gives bool[e, size], where expressions are true of all of them.
        spent_us: what statements over pairs have cost by shape; points that remember what is true of them share it,
            others have their own.
    """

    readings: Callable[[np.ndarray], Points]
    ids: pa.Array
    space: Space
    size: int
    dense: Dense
    spent_us: dict[str, float]


def schema_of(like: Points, *, space: Space) -> pa.Schema:
    """The columns that conditions may use, of readings like some; no row is looked at."""
    nobody = like.take(np.empty(0, np.int64))
    return nobody.table(_NOBODY, space=space).schema


def shapes_of(texts: Sequence[str], which: np.ndarray, fixes: pa.Schema) -> Shaped:
    """The shapes of some of different conditions.

    Args:
        texts: c conditions as canonical SQL.
        which: bool[c], which of them are meant; the others have no shape.
        fixes: the columns that they are asked of.
    """
    numbers = np.flatnonzero(which)
    general = shaped([texts[number] for number in numbers.tolist()], fixes)
    shape, row = np.full(len(texts), -1), np.full(len(texts), -1)
    shape[numbers], row[numbers] = general.shape, general.row
    return Shaped(shapes=general.shapes, shape=shape, row=row)


class General:
    """Conditions that only the database can say, of some points.

    What cannot be evaluated at all has no shape: whoever uses these conditions evaluates those without one at all
    points, so that what fails is noted (see `failures`) wherever there is a point.

    Args:
        texts: the conditions; several may be alike.
        shaped: the shapes of those that have one.
        source: the points.
    """

    def __init__(self, texts: Sequence[str], shaped: Shaped, source: Source) -> None:
        self._texts, self._shaped, self._source = texts, shaped, source
        self._row = np.full(len(texts), -1)
        self._bits = np.zeros((source.size, 0), np.uint8)

    def evaluate(self, numbers: np.ndarray) -> None:
        """Evaluates conditions (int64, numbers) at all points, as far as that was not done yet."""
        new = numbers[self._row[numbers] < 0]
        if not len(new):
            return
        asked = [self._texts[number] for number in new.tolist()]
        # Conditions that are alike share a bit.
        place = {text: at for at, text in enumerate(dict.fromkeys(asked))}
        texts = list(place)
        bits = asked_together(
            len(texts),
            self._source.size,
            lambda start, end: self._source.dense(texts[start:end]),
        )
        first = 8 * self._bits.shape[1]
        self._row[new] = [first + place[text] for text in asked]
        self._bits = np.concatenate([self._bits, bits], axis=1)

    def pairs(self, number: np.ndarray, point: np.ndarray) -> np.ndarray:
        """Whether each point satisfies the condition beside it; bool[p].

        Args:
            number: int64[p], conditions.
            point: int64[p], points.
        """
        out = np.zeros(len(number), bool)
        left = [np.flatnonzero(self._row[number] >= 0)]
        for shape, which in self._by_shape(number):
            holds = self._over_pairs(shape, number[which], point[which])
            if holds is None:
                left.append(which)
            else:
                out[which] = holds
        rest = np.concatenate(left)
        self.evaluate(np.unique(number[rest]))
        out[rest] = bit_of(self._bits, point[rest], self._row[number[rest]])
        return out

    def is_cheaper_over_points(self, numbers: np.ndarray, points: int) -> bool:
        """Whether conditions cost less at all points than over pairs, by what statements and rows cost.

        Args:
            numbers: int64, the conditions.
            points: with how many points each would be paired.
        """
        over_points_us = len(numbers) * (_CONDITION_US + _POINT_US * self._source.size)
        return over_points_us <= STATEMENT_US + PAIR_US * points * len(numbers)

    def at_points(self, numbers: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Which of some points (int64[p]) satisfy which conditions (int64[c]); bool[p, c]."""
        self.evaluate(np.unique(numbers))
        return answers_of(self._bits[points], self._row[numbers])

    def _by_shape(self, number: np.ndarray) -> Iterator[tuple[Shape, np.ndarray]]:
        """The shapes of conditions that were not evaluated yet, and the pairs that ask for them."""
        waiting = np.flatnonzero(self._row[number] < 0)
        shape = self._shaped.shape[number[waiting]]
        order = np.argsort(shape, kind="stable")
        used, start = np.unique(shape[order], return_index=True)
        for place, part in zip(
            used.tolist(), np.split(waiting[order], start[1:]), strict=False
        ):
            yield self._shaped.shapes[place], part

    def _over_pairs(
        self, shape: Shape, number: np.ndarray, point: np.ndarray
    ) -> np.ndarray | None:
        """bool[p], or None where it is cheaper over points: what that costs once is compared with all spent here."""
        different = np.count_nonzero(np.bincount(number))
        once_us = different * (_CONDITION_US + _POINT_US * self._source.size)
        spent_us = (
            self._source.spent_us.get(shape.text, 0.0)
            + STATEMENT_US
            + PAIR_US * len(number)
        )
        if spent_us > once_us:
            return None
        self._source.spent_us[shape.text] = spent_us
        row, out = self._shaped.row[number], list[np.ndarray]()
        for start in range(0, len(number), MOST_PAIRS):
            part = slice(start, start + MOST_PAIRS)
            mask = expressions.mask_of(
                shape.text, self._table(shape, row[part], point[part])
            )
            if mask is None:
                return None
            out.append(mask)
        return np.concatenate(out)

    def _table(self, shape: Shape, row: np.ndarray, point: np.ndarray) -> pa.Table:
        """The columns of points, each with the literals of a condition beside it."""
        wanted = np.zeros(self._source.size, bool)
        wanted[point] = True
        who, at = np.flatnonzero(wanted), pa.array(np.cumsum(wanted)[point] - 1)
        columns = self._source.readings(who).columns(
            shape.columns, self._source.ids, space=self._source.space
        )
        table = {name: values.take(at) for name, values in columns.items()}
        rows = pa.array(row)
        for name in shape.literals.column_names:
            table[name] = shape.literals[name].combine_chunks().take(rows)
        return pa.table(table)
