"""Fences on regions that move as a part of the ticks of a run: gathered tick by tick, run as one (SPEC X3)."""

from dataclasses import dataclass, replace

import numpy as np

from st_common.operators.aggregate.lines import Lines, joined_lines
from st_common.operators.aggregate.stretch import Stretch
from st_common.operators.arrays.keys import MASK, SHIFT, packed, unique
from st_common.operators.fence.dwelling import Dwells, Effects, find_dwells
from st_common.operators.fence.machine import Course, Ran, run
from st_common.operators.fence.moving_specs import MovingFences
from st_common.operators.fence.standing import standing_of, visits_after
from st_common.operators.fence.ticking import Sightings, keys_of, sighted
from st_common.operators.fence.visits import MovingVisits
from st_common.operators.state.component import Change
from st_common.operators.state.fixes import ALIVE, SILENT
from st_common.operators.turn.changes import CAUSE, TICK_RANK
from st_common.operators.turn.places import places_of
from st_common.operators.turn.present import Present
from st_common.operators.turn.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Fenced:
    """What fences tell of the ticks of a run, and what becomes of their visits."""

    lines: Lines
    visits: Change[MovingVisits]


class FencesAtTicks:
    """What the ticks of one run say of visits; they are judged when all ticks are known: DWELL asks who has left.

    Args:
        visits: those from before the run.
        turn: the run.
        fixes: the last fixes at its ticks.
    """

    def __init__(self, visits: MovingVisits, turn: Turn, fixes: Present) -> None:
        self._visits, self._turn, self._fixes = visits, turn, fixes
        self._keys = visits.key
        self._sightings: list[Sightings] = []

    def take(self, stretch: Stretch, answer: np.ndarray) -> None:
        """Takes some ticks; `answer` are the sorted keys `target << 32 | object` before them."""
        self._keys = keys_of(stretch, answer, self._keys)
        if len(self._keys):
            self._sightings.append(sighted(stretch, answer, self._keys))

    def judged(self) -> Fenced:
        """What all ticks together make of the visits."""
        turn, seen = self._turn, _in_order(self._sightings)
        fences = turn.known.of(MovingFences)
        keys = unique(seen.key)
        machine = np.searchsorted(keys, seen.key)
        fence = fences.place[turn.numbering.targets.query[keys & MASK]]
        course = Course(machine=machine, code=seen.code, ts=seen.tick)
        ran = run(course, fences.rules.take(fence), standing_of(self._visits, keys))
        effects = Effects(machine=machine, position=seen.position, ts=seen.tick)
        dwells, dwelt = find_dwells(
            turn,
            fences,
            self._visits,
            keys,
            effects,
            ran,
            tick_us=turn.settings.tick_us,
        )
        place = _places_at(seen, machine, keys, dwells)
        lines = [*_lines(turn, seen, ran), _dwell_lines(self._fixes, dwells, place)]
        return Fenced(
            lines=joined_lines(lines),
            visits=visits_after(self._visits, keys, ran.after, dwelt),
        )


def _in_order(parts: list[Sightings]) -> Sightings:
    """All of them, those of one machine together and tick after tick."""
    none = np.empty(0, np.int64)
    columns = {
        name: np.concatenate([none, *(getattr(part, name) for part in parts)])
        for name in Sightings.__dataclass_fields__
    }
    order = np.lexsort((columns["tick"], columns["key"]))
    return Sightings(**{name: column[order] for name, column in columns.items()})


def _lines(turn: Turn, seen: Sightings, ran: Ran) -> list[Lines]:
    """Those that enter, exit and stay: with signs where both ends are told, else those that are asked for."""
    fences = turn.known.of(MovingFences)
    fence = fences.place[turn.numbering.targets.query[seen.key & MASK]]
    stays = ran.was_in & ran.is_in & seen.is_new.astype(bool)
    enters, exits, stays = (
        np.flatnonzero(which & fences.wanting(event)[fence])
        for which, event in (
            (ran.enters, "enter"),
            (ran.exits, "exit"),
            (stays, "inside"),
        )
    )
    signs = fences.has_answer[fence].astype(np.int64)
    lasted_s = (seen.tick - ran.since)[exits] / 1e6
    left = replace(_line(seen, exits, -signs[exits]), cause=_ends(seen.status[exits]))
    return [
        replace(_line(seen, enters, signs[enters]), cause=_causes("enter", enters)),
        replace(left, value=lasted_s),
        replace(
            _line(seen, stays, np.zeros(len(stays), np.int64)),
            cause=_causes("inside", stays),
        ),
    ]


def _line(seen: Sightings, rows: np.ndarray, sign: np.ndarray) -> Lines:
    return Lines(
        position=seen.position[rows],
        event_ts=seen.tick[rows],
        fix_ts=seen.fix_ts[rows],
        x=seen.x[rows],
        y=seen.y[rows],
        rank=np.full(len(rows), TICK_RANK),
        objects=seen.key[rows] >> SHIFT,
        target=seen.key[rows] & MASK,
        sign=sign,
        cause=rows,
        value=np.full(len(rows), np.nan),
        place=seen.place[rows],
    )


def _causes(event: str, rows: np.ndarray) -> np.ndarray:
    return np.full(len(rows), CAUSE[event])


def _ends(status: np.ndarray) -> np.ndarray:
    """Why visits end: what ended the object, or the focal one; else the object left the region."""
    ended = np.where(status == SILENT, CAUSE["expired"], CAUSE["gone"])
    return np.where(status == ALIVE, CAUSE["leave"], ended)


def _places_at(
    seen: Sightings, machine: np.ndarray, keys: np.ndarray, dwells: Dwells
) -> np.ndarray:
    """Where the fix of each visit's object stands that counted at the tick of its DWELL.

    Without a sighting by then it is the last fix from before the run: what is pending counts by then.
    """
    if not len(seen.key):
        return dwells.key >> SHIFT
    ticks = unique(seen.tick)
    rows = packed(machine, np.searchsorted(ticks, seen.tick) + 1)
    mine = np.searchsorted(keys, dwells.key)
    until = np.searchsorted(ticks, dwells.ts, side="right")
    last = np.searchsorted(rows, packed(mine, until), side="right") - 1
    is_mine = seen.key[last] == dwells.key
    return np.where((last >= 0) & is_mine, seen.place[last], dwells.key >> SHIFT)


def _dwell_lines(fixes: Present, dwells: Dwells, place: np.ndarray) -> Lines:
    """Visits that have lasted long enough at a tick: they show the fix that counted there."""
    count = len(dwells.key)
    shown = fixes.values.readings(place)
    return Lines(
        position=dwells.position,
        event_ts=dwells.ts,
        fix_ts=shown.ts,
        **places_of(shown, np.arange(count)),
        rank=np.full(count, TICK_RANK),
        objects=dwells.key >> SHIFT,
        target=dwells.key & MASK,
        sign=np.zeros(count, np.int64),
        cause=_causes("dwell", place),
        value=(dwells.ts - dwells.since) / 1e6,
        place=place,
    )
