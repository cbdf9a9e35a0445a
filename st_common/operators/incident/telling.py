"""Rows of changes about incidents: STARTED is +, ENDED is -, ONGOING has the sign 0 (SPEC X8, docs/adr/0024)."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from st_common.operators.arrays.keys import SHIFT
from st_common.operators.events.timeline import FIX
from st_common.operators.expressions.fields import STARTED, WORST, fields_of
from st_common.operators.fence.telling import Told, changes_of, together
from st_common.operators.incident.judging import Judged
from st_common.operators.incident.specs import IncidentSet
from st_common.operators.state.fixes import LastFixes
from st_common.operators.turn.changes import CAUSE, TICK_RANK
from st_common.operators.turn.last_known import readings_of
from st_common.operators.turn.turn import Turn

# By kind of row: FIX, GONE, EXPIRED, GAP. A gap has the time of a fix, which is told before it.
_ENDED = np.array([CAUSE[name] for name in ("ended", "gone", "expired", "gap")])
_RANK = np.array([1, 1, 0, TICK_RANK])


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Lines to be told, and of each when its incident began, and the worst value so far (NaN for none)."""

    told: Told
    begun: np.ndarray
    worst: np.ndarray


def tell_incidents(judged: Judged, turn: Turn, fixes: LastFixes) -> pa.Table:
    """The rows of changes of a run about incidents; `fixes` are the last ones before it."""
    ran, kind = judged.ran, judged.rows.kind
    starts, ends = np.flatnonzero(ran.enters), np.flatnonzero(ran.exits)
    goes_on = np.flatnonzero(_goes_on(judged, turn))
    rows = np.concatenate([starts, goes_on, ends])
    told = together(
        [
            _told(judged, starts, 1, np.full(len(starts), CAUSE["started"])),
            _told(judged, goes_on, 0, np.full(len(goes_on), CAUSE["ongoing"])),
            _told(judged, ends, -1, _ENDED[kind[ends]]),
        ]
    )
    lines = Lines(told=told, begun=ran.since[rows], worst=judged.worst[rows])
    return rows_of(lines, turn, fixes)


def _goes_on(judged: Judged, turn: Turn) -> np.ndarray:
    """The rows at which it is told that an incident goes on; bool[n].

    With an interval these are the first fixes after each of its multiples, from the beginning on:

        interval 60 s     fixes at   0   40   70   90   190
        told                                  x         x
    """
    ran, rows = judged.ran, judged.rows
    incidents = turn.known.of(IncidentSet)
    incident = incidents.place[turn.numbering.targets.query[judged.target]]
    stays = ran.was_in & ran.is_in & (rows.kind == FIX) & incidents.goes_on[incident]
    at = np.flatnonzero(stays)
    every_us = incidents.every_us[incident[at]]
    step_us = np.maximum(every_us, 1)
    since = ran.since[at]
    is_next = (rows.ts[at] - since) // step_us > (
        judged.before_ts[at] - since
    ) // step_us
    stays[at] = is_next | (every_us == 0)
    return np.asarray(stays)


def _told(judged: Judged, at: np.ndarray, sign: int, cause: np.ndarray) -> Told:
    rows = judged.rows.take(at)
    return Told(
        position=rows.position,
        event_ts=rows.ts,
        rank=_RANK[rows.kind].astype(np.int8),
        object=judged.keys[rows.machine] >> SHIFT,
        target=judged.target[at],
        sign=np.full(len(at), sign),
        cause=cause,
        value=(rows.ts - judged.ran.since[at]) / 1e6,
        reading=rows.reading,
    )


def rows_of(lines: Lines, turn: Turn, fixes: LastFixes) -> pa.Table:
    """Rows of changes of some lines."""
    told = lines.told
    query = turn.numbering.targets.query[told.target]
    shown, reading = readings_of(told.reading, turn, fixes)
    fields = fields_of(
        turn.queries,
        turn.objects,
        query=query,
        reading=reading,
        wanted=np.ones(len(query), bool),
        readings=shown,
        space=turn.settings.space,
        beside={
            STARTED: pa.array(lines.begun).cast(pa.timestamp("us")),
            WORST: pa.array(lines.worst, from_pandas=True),
        },
    )
    return changes_of(told, turn, shown, reading, fields)
