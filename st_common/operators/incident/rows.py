"""Rows of machines of incidents: the events of their objects, and the gaps between fixes that are too long (SPEC X8).

object reports at     0 s   10 s                 80 s   90 s         max_gap = 30 s
rows                  FIX   FIX   GAP at 10 s    FIX    FIX          told where the clock passes 40 s
"""

from dataclasses import dataclass, fields

import numpy as np

from st_common.operators.events.timeline import EXPIRED, FIX, GONE, LAST, Clock
from st_common.operators.fence.specs import FOREVER
from st_common.operators.state.fixes import NEVER
from st_common.runs import firsts, shifted

GAP = max(FIX, GONE, EXPIRED) + 1
"""The kind of a row that says: the next fix comes too late, or not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows of machines, those of one together and in the order of effect.

    `machine` (ascending) says whose row it is, `kind` what happened, at which `position` of the log and `ts`.
    `reading` is what is shown of it: the place of an event, or behind all events the number of an object, for its last
    fix from before the run.
    """

    machine: np.ndarray
    kind: np.ndarray
    position: np.ndarray
    ts: np.ndarray
    reading: np.ndarray

    def __len__(self) -> int:
        return len(self.machine)

    def take(self, index: np.ndarray) -> "Rows":
        """Some of the rows, by place or by mask."""
        return Rows(
            **{field.name: getattr(self, field.name)[index] for field in fields(self)}
        )


def joined(one: Rows, other: Rows) -> Rows:
    """The rows of both, those of the second behind the first."""
    return Rows(
        **{
            field.name: np.concatenate(
                [getattr(one, field.name), getattr(other, field.name)]
            )
            for field in fields(Rows)
        }
    )


def with_gaps(last: Rows, rows: Rows, max_gap_us: np.ndarray, clock: Clock) -> Rows:
    """The rows of machines, and between them those at which a gap is too long.

    Args:
        last: the last fix of each machine's object from before the run, in their order; `ts` is `NEVER` for none.
        rows: what happened in the run.
        max_gap_us: of each machine, `FOREVER` where no gap is too long.
        clock: by which a gap is too long though no fix comes.

    Returns:
        The rows without `last`; a gap has the time of the fix before it, and the row of the log at which the clock
        passes its end.
    """
    both = joined(last, rows)
    order = np.argsort(both.machine, kind="stable")
    both = both.take(order)
    gaps = _gaps(both, max_gap_us[both.machine], clock)
    is_new = order >= len(last)
    place = np.concatenate([np.flatnonzero(is_new) * 2, gaps.place * 2 + 1])
    return joined(both.take(is_new), gaps.rows).take(np.argsort(place))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gaps:
    """Rows of gaps, and the place of the fix before each."""

    place: np.ndarray
    rows: Rows


def _gaps(rows: Rows, gap_us: np.ndarray, clock: Clock) -> _Gaps:
    """The gaps behind fixes: the next event is too far away, or comes after the clock has passed the end."""
    at = np.flatnonzero((rows.kind == FIX) & (rows.ts != NEVER) & (gap_us != FOREVER))
    next_ts, next_at = _following(rows)
    end = rows.ts[at] + gap_us[at]
    position = np.maximum(clock.first_past(end), rows.position[at])
    is_late = (next_ts[at] > end) | (next_at[at] > position)
    place = at[(position != LAST) & is_late]
    before = rows.take(place)
    gaps = Rows(
        machine=before.machine,
        kind=np.full(len(place), GAP),
        position=position[(position != LAST) & is_late],
        ts=before.ts,
        reading=before.reading,
    )
    return _Gaps(place=place, rows=gaps)


def _following(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """When the next row of the same machine is, and at which row of the log; `LAST` where there is none."""
    ts, position = np.append(rows.ts[1:], LAST), np.append(rows.position[1:], LAST)
    ends = firsts(rows.machine)[1:] - 1
    ts[ends], position[ends] = LAST, LAST
    return ts[: len(rows)], position[: len(rows)]


def times_before(last: Rows, rows: Rows) -> np.ndarray:
    """When the row before each one of the same machine was, or the last fix before the run; int64[n]."""
    before = shifted(rows.ts, NEVER)
    first = firsts(rows.machine)
    before[first] = last.ts[rows.machine[first]]
    return before
