"""CQL-S's windows as a run opens them: ways and bounds as the state left them, a row for each fix that qualifies."""

import numpy as np
import pyarrow as pa

from st_common.operators.aggregate import relational
from st_common.operators.arrays.keys import MASK, SHIFT, packed
from st_common.operators.events.agenda import ticks_of
from st_common.operators.events.timeline import FIX
from st_common.operators.expressions.readings import Readings
from st_common.operators.travelled.bounds import Bounds
from st_common.operators.travelled.rows import FrameRows, Tracks
from st_common.operators.travelled.slots import Slots, slots_of_events, slots_of_objects
from st_common.operators.travelled.specs import NONE, FrameSpecs
from st_common.operators.travelled.ways import Run, Ways, begins
from st_common.operators.turn.points import look_up
from st_common.operators.turn.present import Present
from st_common.operators.turn.shown import shown_fields
from st_common.operators.turn.turn import Turn
from st_common.regions.registry import region_mask


def run_of(turn: Turn) -> Run:
    """The events of a run, with the slots of the frames that look at their objects."""
    specs = turn.known.of(FrameSpecs)
    number = turn.objects.places_of(specs.ids)
    never = np.where(number < 0, -2, number)  # one that never reported: -1 means any
    about = np.append(never, -1)[specs.about]
    return Run(
        events=turn.events,
        objects=slots_of_objects(about, len(turn.objects)),
        among=slots_of_events(about, turn.events.object),
        space=turn.settings.space,
    )


def resumed(tracks: Tracks, slots: Slots, specs: FrameSpecs) -> tuple[Ways, Bounds]:
    """Ways and bounds of all slots, from the tracks that a state has; tracks of other queries are passed over.

    Args:
        tracks: those of the state.
        slots: pairs of a frame and an object.
        specs: the frames.

    Returns:
        New arrays by slot; slots without a track are not alive, and their windows have not moved.
    """
    ways, bounds = Ways.empty(slots.total), Bounds.unmoved(slots.total, specs.width)
    frame = specs.place[tracks.key >> SHIFT]
    tracks, frame = tracks.take(frame != NONE), frame[frame != NONE]
    slot = slots.of(frame, tracks.key & MASK)
    tracks, slot = tracks.take(slot >= 0), slot[slot >= 0]
    ways.alive[slot] = True
    for name in ("since", "n", "way", "x", "y"):
        getattr(ways, name)[slot] = getattr(tracks, name)
    # Then and now the frame with most windows may be another one.
    width = min(specs.width, tracks.high.shape[1])
    for name in Bounds.__dataclass_fields__:
        getattr(bounds, name)[slot, :width] = getattr(tracks, name)[:, :width]
    return ways, bounds


def opened(turn: Turn, present: Present, run: Run, now: Ways, after: Ways) -> FrameRows:
    """The rows that the fixes of a run make; each fix is judged at itself.

    Args:
        turn: the run.
        present: the last fixes before it.
        run: its events, and the slots of frames.
        now: the ways before the run, by the slots of objects.
        after: those after each event, by the slots among events.

    Returns:
        Rows sorted by query and object, those of one object as they came.
    """
    specs, events = turn.known.of(FrameSpecs), turn.events
    fixes = np.flatnonzero(events.kind == FIX)
    if specs.rows.empty or not len(fixes):
        return FrameRows()
    readings = turn.readings.take(fixes)
    point, target = _qualified(turn, readings)
    query, event = turn.numbering.targets.query[target], fixes[point]
    adds = relational.contributions(
        turn, present.sample_of_events(fixes), point, target, remembered=True
    )
    frame, ts = specs.place[query], events.ts[event]
    before, slot = turn.clock.before(events.position[event]), run.among.of(frame, event)
    fields = shown_fields(turn, query=query, reading=point, readings=readings)
    return FrameRows(
        key=packed(query, events.object[event]),
        ts=ts,
        x=readings.x[point],
        y=readings.y[point],
        n=after.n[slot],
        tick=ticks_of(np.maximum(ts, before), turn.settings.tick_us),
        way=after.way[slot],
        group=adds.group,
        text=adds.text,
        value=adds.value,
        held=np.zeros(len(event), np.int8),
        begins=begins(now, after, run, frame, event).astype(np.int8),
        fields=pa.nulls(len(event), pa.string()) if fields is None else fields,
    )


def _qualified(turn: Turn, readings: Readings) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of a reading and a target below frames, inside all of its regions; sorted by query, then reading."""
    specs = turn.known.of(FrameSpecs)
    hits = look_up(turn, specs.rows, readings)
    query = turn.numbering.targets.query[hits.target]
    x, y = readings.x[hits.point], readings.y[hits.point]
    inside = np.flatnonzero(_in_all_regions(turn, query, x, y))
    order = inside[np.lexsort((hits.point[inside], query[inside]))]
    return hits.point[order], hits.target[order]


def _in_all_regions(
    turn: Turn, query: np.ndarray, x: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """Whether places lie in what their query's frame asks for beside its first region; bool[n]."""
    specs, space = turn.known.of(FrameSpecs), turn.settings.space
    inside = np.ones(len(query), bool)
    for frame, regions in enumerate(specs.regions):
        mine = np.flatnonzero(query == specs.numbers[frame]) if regions else query[:0]
        for region in regions:
            inside[mine] &= region_mask(region, x[mine], y[mine], space=space)
    return inside
