"""What becomes of incidents when queries start or stop, or see another version of a layer (SPEC X8, X4)."""

import numpy as np

from st_common.operators.arrays.keys import MASK, SHIFT, is_in, packed, unique
from st_common.operators.expressions import readings
from st_common.operators.fence.telling import Told
from st_common.operators.incident.incidents import Incidents
from st_common.operators.incident.specs import IncidentSet
from st_common.operators.incident.telling import Lines, rows_of
from st_common.operators.state.component import Change
from st_common.operators.turn.changes import CAUSE
from st_common.operators.turn.part import Counters, Part
from st_common.operators.turn.points import look_up
from st_common.operators.turn.swapping import Swapping


def swap_incidents(swapping: Swapping) -> Part:
    """The part of a swap about incidents.

    With a query that stops its incidents end. One that starts knows no fix yet, so it has none. With another version of
    a layer, or another area, those end whose last fix does not satisfy the condition there any more; with UNTIL none.
    """
    known, turn = swapping.state.memories[Incidents], swapping.turn
    if not len(known):
        return Part()
    is_mine = np.zeros(len(turn.queries), bool)
    is_mine[swapping.change.before] = True
    stops = is_mine[turn.numbering.targets.query[known.target]]
    if swapping.change.keeps:
        stops &= known.is_open
        swapping = swapping.also(known.object[stops & (known.fixes > 0)])
        stops &= swapping.judges(known.object) & ~_goes_on(swapping, known)
    gone = known.take(stops)
    ended = gone.take(gone.is_open)
    return Part(
        changes=(rows_of(_lines(swapping, ended), turn, swapping.state.fixes),),
        memories={Incidents: Change(removed=gone.key, added=Incidents())},
        counters=Counters(leaves=len(ended)),
    )


def _goes_on(swapping: Swapping, known: Incidents) -> np.ndarray:
    """Which incidents go on where their last fix lies now; bool[n]."""
    state, turn = swapping.state, swapping.turn
    incidents = turn.known.of(IncidentSet)
    incident = incidents.place[turn.numbering.targets.query[known.target]]
    alive = swapping.own_alive()
    hits = look_up(turn, incidents.openings, readings.of_objects(state.fixes, alive))
    inside = unique(packed(alive[hits.point], hits.target))
    have_until = np.append(incidents.have_until, False)  # which stands for no incident
    return np.asarray(is_in(known.key, inside) | have_until[incident])


def _lines(swapping: Swapping, ended: Incidents) -> Lines:
    """Incidents that end at the row of a swap, by its cause."""
    at, query = swapping.at, swapping.turn.numbering.targets.query[ended.key & MASK]
    count = len(ended)
    told = Told(
        position=at.rows(query),
        event_ts=np.full(count, at.tick),
        rank=np.ones(count, np.int8),
        object=ended.key >> SHIFT,
        target=ended.key & MASK,
        sign=np.full(count, -1),
        cause=np.full(count, CAUSE[swapping.change.minus]),
        value=(at.tick - ended.begun) / 1e6,
        reading=ended.key >> SHIFT,
    )
    return Lines(told=told, begun=ended.begun, worst=ended.worst)
