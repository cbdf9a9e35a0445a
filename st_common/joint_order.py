"""The order of several logs as one, as a sequencer is to write it (docs/adr/0036): planned, nothing writes it yet.

    log `ais`     0  1  2  3            joint rows: (ais, 0, 2), (adsb, 0, 1), (ais, 2, 4), (adsb, 1, 3)
    log `adsb`    0  1  2
    joint order   ais 0   ais 1   adsb 0   ais 2   ais 3   adsb 1   adsb 2
    number           0       1        2       3       4        5        6

A step that reads segments in this order, with their numbers in it as segments of positions, is the step of one log: so
all that holds for one log holds for several.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from st_common.errors import LogError
from st_common.position import Position, position_of, row_of, segment_of


@dataclass(frozen=True, slots=True, kw_only=True)
class JointRow:
    """That some segments of a log come next in the joint order.

    Attributes:
        log: the name of the log.
        first: the first of its segments.
        end: the segment to stop before.
    """

    log: str
    first: int
    end: int


class JointOrder:
    """Numbers of the segments of several logs, dense and in the order of the rows; each log's stay in their order.

    Args:
        rows: each continues its log where the last row of that log ended, the first at 0.

    Raises:
        LogError: a row has no segment, or leaves out or repeats some of its log.
    """

    def __init__(self, rows: Sequence[JointRow]) -> None:
        reached: dict[str, int] = {}
        for number, row in enumerate(rows):
            expected = reached.get(row.log, 0)
            if row.first != expected or row.end <= row.first:
                raise LogError(
                    f"joint row {number}: segments {row.first} to {row.end} of {row.log!r}, expected from {expected}",
                    hint="the rows of each log follow each other without a gap",
                )
            reached[row.log] = row.end
        self._rows = tuple(rows)
        counts = [row.end - row.first for row in rows]
        self._starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def source_of(self, number: int) -> tuple[str, int]:
        """The log and the segment in it that have a number; ("ais", 3) for number 4 in the module's example.

        Raises:
            LogError: nothing has it yet.
        """
        if not 0 <= number < len(self):
            raise LogError(
                f"the joint order has {len(self)} segments, none of the number {number}",
                hint="wait until the sequencer has written it",
            )
        # The last row that begins at this number or before it.
        at = int(np.searchsorted(self._starts, number, side="right")) - 1
        row = self._rows[at]
        return row.log, row.first + number - int(self._starts[at])

    def number_of(self, log: str, segment: int) -> int:
        """The number of a segment of a log; 5 for segment 1 of `adsb` in the module's example.

        Raises:
            LogError: the order does not have it yet.
        """
        for row, start in zip(self._rows, self._starts.tolist(), strict=False):
            if row.log == log and row.first <= segment < row.end:
                return int(start + segment - row.first)
        raise LogError(
            f"the joint order does not have segment {segment} of {log!r} yet",
            hint="wait until the sequencer has written it",
        )

    def position_in(self, log: str, position: int) -> Position:
        """The joint position of a place in a log: rows keep their numbers, segments have those of the joint order.

        Args:
            log: the name of the log.
            position: in that log.

        Raises:
            LogError: the order does not have its segment yet.
        """
        return position_of(self.number_of(log, segment_of(position)), row_of(position))
