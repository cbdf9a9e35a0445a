"""From when to when each row of a query counted as what, over the instants of a run."""

from dataclasses import dataclass

import numpy as np

from st_common.operators.outer.asking import Asked
from st_common.operators.outer.remembered import OuterRows, behind
from st_common.operators.outer.signed import Signed
from st_common.operators.turn.course import BEFORE
from st_common.runs import is_last

NONE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """Rows that counted, sorted by key and time; n of them.

        instant              0      1      2      3
        told of a key        + 5           + 7    -
        versions                    5      5 until 2, 7 until 3

    Attributes:
        rows: what they counted as.
        start: int64[n], the place of the instant from which on; `BEFORE` where it was so before the run.
        until: int64[n], the place of the instant before which; as many as there are instants where it stays so.
        begins: int64[n], the place of the row with a sign that made it so, `NONE` where it was so before.
        ends: int64[n], the place of that by which it ended, `NONE` where it stays so.
    """

    rows: OuterRows
    start: np.ndarray
    until: np.ndarray
    begins: np.ndarray
    ends: np.ndarray

    def take(self, index: np.ndarray) -> "Versions":
        """Some of them: by place (int64) or by mask (bool[n])."""
        return Versions(
            rows=self.rows.take(index),
            start=self.start[index],
            until=self.until[index],
            begins=self.begins[index],
            ends=self.ends[index],
        )


def versions_of(before: OuterRows, signed: Signed, asked: Asked) -> Versions:
    """The versions of all rows of some queries.

    Args:
        before: those that counted before.
        signed: what was told of them, one row for each key and instant.
        asked: which of these count from their instant on, and as what; all others count no more.
    """
    known, told = len(before), len(signed.target)
    row = np.full(known + told, NONE)
    row[:known] = np.arange(known)
    row[known + asked.place] = known + np.arange(len(asked.place))
    target = np.concatenate([before.target, signed.target])
    start = np.concatenate([np.full(known, BEFORE), signed.at])
    sign = np.concatenate([np.full(known, NONE), np.arange(told)])
    order = np.lexsort((start, target))
    ends = is_last(target[order])
    following = np.append(order[1:], 0)[: len(order)]
    counts = row[order] != NONE
    # Both parts are sorted by key for themselves, and stand one behind the other as `row` numbers them.
    every = behind([before, asked.rows])
    return Versions(
        rows=every.take(row[order][counts]),
        start=start[order][counts],
        until=np.where(ends, len(signed.tick), start[following])[counts],
        begins=sign[order][counts],
        ends=np.where(ends, NONE, sign[following])[counts],
    )
