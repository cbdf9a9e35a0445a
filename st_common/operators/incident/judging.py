"""What the fixes of a run do to incidents: which start, go on and end (SPEC X8, docs/adr/0024).

condition holds      no   yes  yes  yes  no            FOR 2 fixes
code                 OUT  IN   IN   IN   OUT
incident             -    -    yes  yes  -             it begins with the first IN of those in a row
"""

from dataclasses import dataclass

import numpy as np

from st_common.operators.arrays.keys import MASK, SHIFT, is_in, packed, unique
from st_common.operators.events.timeline import FIX, padded
from st_common.operators.fence.machine import (
    END,
    IN,
    NEAR,
    OUT,
    Course,
    Ran,
    Standing,
    run,
)
from st_common.operators.fence.specs import FOREVER
from st_common.operators.incident.incidents import Incidents
from st_common.operators.incident.rows import Rows, times_before, with_gaps
from st_common.operators.incident.specs import IncidentSet
from st_common.operators.incident.worst import values_at, worst_so_far
from st_common.operators.matching.match import Hits
from st_common.operators.state.component import Change
from st_common.operators.state.fixes import NEVER, LastFixes
from st_common.operators.turn.points import match_in, points_in
from st_common.operators.turn.turn import Turn
from st_common.runs import is_first, is_last, ranges, shifted


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What became of incidents in a run.

    `keys` are the machines (`object << 32 | target`), `rows` what happened to them, and `ran` what that did. `worst` is
    the worst value up to each row, `before_ts` when the fix before it was. `hits` counts what was looked up.
    """

    keys: np.ndarray
    rows: Rows
    ran: Ran
    worst: np.ndarray
    before_ts: np.ndarray
    after: Change[Incidents]
    hits: Hits

    @property
    def target(self) -> np.ndarray:
        """The target of each row."""
        return np.asarray(self.keys[self.rows.machine] & MASK)


def judge_incidents(known: Incidents, turn: Turn, fixes: LastFixes) -> Judged:
    """Judges the events of a run, given the incidents and the last fixes before it."""
    incidents = turn.known.of(IncidentSet)
    mine = np.flatnonzero(turn.own(turn.events.object))
    hits, inside = _inside(turn, incidents, mine)
    keys = _moved(turn, known, fixes, mine, inside)
    incident = incidents.place[turn.numbering.targets.query[keys & MASK]]
    last = _last_fixes(turn, fixes, keys)
    gap_us = incidents.max_gap_us[incident]
    rows = with_gaps(last, _rows(turn, mine, keys), gap_us, turn.clock)
    before = _standing(known, keys)
    course = Course(
        machine=rows.machine,
        code=_codes(turn, incidents, rows, keys, inside),
        ts=rows.ts,
    )
    ran = run(course, incidents.rules.take(incident), before.standing, since_first=True)
    value = _values(turn, incident, rows, ran.is_in | (course.code == IN))
    sense = incidents.sense[incident]
    worst = _worst(value, sense, course, ran, before)
    after = _after(known, keys, ran.after, worst[is_last(rows.machine)])
    before_ts = times_before(last, rows)
    return Judged(
        keys=keys,
        rows=rows,
        ran=ran,
        worst=worst,
        before_ts=before_ts,
        after=after,
        hits=hits,
    )


def _inside(
    turn: Turn, incidents: IncidentSet, mine: np.ndarray
) -> tuple[Hits, np.ndarray]:
    """What satisfies which condition, where it should: the hits, and sorted keys `event << 32 | target`."""
    fixes = mine[turn.events.kind[mine] == FIX]
    readings = turn.readings.take(fixes)
    points = points_in(turn, incidents.openings, readings)
    hits = match_in(turn, incidents.openings, points)
    return hits, np.sort(packed(fixes[hits.point], hits.target))


def _moved(
    turn: Turn,
    known: Incidents,
    fixes: LastFixes,
    mine: np.ndarray,
    inside: np.ndarray,
) -> np.ndarray:
    """The machines that the run moves: of objects that report, and those whose gap the clock ends; sorted."""
    incidents, objects = turn.known.of(IncidentSet), turn.events.object
    reports = np.zeros(len(turn.objects), bool)
    reports[objects[mine]] = True
    gap_us = incidents.max_gap_us[
        incidents.place[turn.numbering.targets.query[known.target]]
    ]
    has_gap = gap_us != FOREVER
    end = fixes.ts[known.object] + np.where(has_gap, gap_us, 0)
    is_silent = has_gap & (end < turn.clock.value[-1])
    new = packed(objects[inside >> SHIFT], inside & MASK)
    moved = known.key[reports[known.object] | is_silent]
    return unique(np.concatenate([moved, new]))


def _last_fixes(turn: Turn, fixes: LastFixes, keys: np.ndarray) -> Rows:
    """The last fix of each machine's object from before the run, as a row; without a time where there is none."""
    objects, count = keys >> SHIFT, len(keys)
    return Rows(
        machine=np.arange(count),
        kind=np.full(count, FIX),
        position=np.full(count, -1),
        ts=padded(fixes.ts, objects, NEVER).astype(np.int64),
        reading=len(turn.events) + objects,
    )


def _rows(turn: Turn, mine: np.ndarray, keys: np.ndarray) -> Rows:
    """The events of each machine's object, in the order of effect."""
    events, objects = turn.events, turn.events.object[mine]
    start = np.searchsorted(objects, keys >> SHIFT)
    count = np.searchsorted(objects, keys >> SHIFT, side="right") - start
    event = mine[ranges(start, count)]
    return Rows(
        machine=np.repeat(np.arange(len(keys)), count),
        kind=events.kind[event].astype(np.int64),
        position=events.position[event],
        ts=events.ts[event],
        reading=event,
    )


def _codes(
    turn: Turn,
    incidents: IncidentSet,
    rows: Rows,
    keys: np.ndarray,
    inside: np.ndarray,
) -> np.ndarray:
    """What each row says: `END` of a stay or at a gap; else the fix ends an incident (`OUT`), or may open one (`IN`).

    With UNTIL a fix that does neither is `NEAR`; one that does both is `OUT`.
    """
    target = keys[rows.machine] & MASK
    query = turn.numbering.targets.query[target]
    have_until = incidents.have_until[incidents.place[query]]
    is_fix = rows.kind == FIX
    code = np.where(is_fix, np.where(have_until, NEAR, OUT), END)
    at = np.flatnonzero(is_fix)
    code[at[is_in(packed(rows.reading[at], target[at]), inside)]] = IN
    asked = np.flatnonzero(is_fix & have_until)
    code[asked[_end(turn, incidents, query[asked], rows.reading[asked])]] = OUT
    return code


def _end(
    turn: Turn, incidents: IncidentSet, query: np.ndarray, event: np.ndarray
) -> np.ndarray:
    """Whether the condition of UNTIL is true of events (their places); bool[n]."""
    seen, point = np.unique(event, return_inverse=True)
    points = points_in(turn, incidents.endings, turn.readings.take(seen))
    if points.truth is None:
        return np.zeros(len(event), bool)
    predicate = incidents.endings.predicate[query]
    return np.asarray(points.truth.pairs(predicate, point), bool)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Before:
    """How machines stand before the run, and their worst values (NaN for none)."""

    standing: Standing
    worst: np.ndarray


def _standing(known: Incidents, keys: np.ndarray) -> _Before:
    """How machines stand before the run; those without a row have no incident, and no fix that speaks for one."""
    is_known = is_in(keys, known.key)
    at = np.searchsorted(known.key, keys[is_known])
    begun, fixes, since = (np.full(len(keys), filler) for filler in (NEVER, 0, NEVER))
    begun[is_known] = known.begun[at]
    fixes[is_known] = known.fixes[at]
    since[is_known] = known.since[at]
    worst = np.full(len(keys), np.nan)
    worst[is_known] = known.worst[at]
    standing = Standing(since=begun, against=fixes, against_since=since)
    return _Before(standing=standing, worst=worst)


def _values(
    turn: Turn, incident: np.ndarray, rows: Rows, counts: np.ndarray
) -> np.ndarray:
    """The value of each row that is a fix and `counts` (bool[n]), for its incident; NaN of all others."""
    values = np.full(len(rows), np.nan)
    at = np.flatnonzero(counts & (rows.kind == FIX))
    asked = incident[rows.machine[at]]
    values[at] = values_at(turn, asked, rows.reading[at])
    return values


def _worst(
    value: np.ndarray, sense: np.ndarray, course: Course, ran: Ran, before: _Before
) -> np.ndarray:
    """The worst value up to each row, of the stretch that it belongs to or ends; `sense` is that of each machine."""
    of, is_inside = course.machine, course.code == IN
    first, sense = is_first(of), sense[of]
    follows = np.where(
        first, before.standing.against[of] > 0, shifted(is_inside, first=False)
    )
    begins = is_inside & ~ran.was_in & ~follows
    worst = worst_so_far(value * sense, begins, first, before.worst[of] * sense)
    return np.asarray(worst * sense + 0.0)  # no -0.0


def _after(
    known: Incidents, keys: np.ndarray, after: Standing, worst: np.ndarray
) -> Change[Incidents]:
    """What the run changes: incidents that are open, and fixes in a row that may become one."""
    kept = after.is_in | (after.against > 0)
    moved = Incidents(
        key=keys,
        begun=after.since,
        fixes=after.against,
        since=after.against_since,
        worst=worst,
    ).take(kept)
    gone = keys[~kept]
    return Change(removed=gone[is_in(gone, known.key)], added=moved)
