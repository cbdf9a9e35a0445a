"""What ticks tell of frames: rows that enter and leave results, and groups over them (CQL-S, SPEC W2, W6, W7)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.operators.aggregate import relational, several
from st_common.operators.aggregate.lines import Lines
from st_common.operators.aggregate.reducing import Reduced, reduced_cells
from st_common.operators.aggregate.regrouping import Parts, holders_of
from st_common.operators.aggregate.stretch import Stretch
from st_common.operators.arrays.keys import packed, unique
from st_common.operators.state.intern import Interner
from st_common.operators.state.targets import Targets
from st_common.operators.travelled.frames import Frames
from st_common.operators.travelled.spells import Held
from st_common.operators.turn.changes import (
    CAUSE,
    SHARD_SCHEMA,
    TICK_RANK,
    Names,
    change_rows,
)
from st_common.operators.turn.course import BEFORE
from st_common.operators.turn.spells import Spells
from st_common.operators.turn.turn import Turn
from st_common.query.plan import OF_WAYS
from st_common.runs import firsts


def frame_lines(
    turn: Turn, frames: Frames, held: Held, tick: np.ndarray, position: np.ndarray
) -> Lines | None:
    """What is told of fixes in windows, of queries that do not count.

    Args:
        turn: the run.
        frames: the frames with their rows.
        held: what results hold over the ticks.
        tick: int64[ticks], the event times of the ticks; `position` likewise their rows of the log.
        position: see `tick`.

    Returns:
        A line for each fix that left (-) or entered (+) a result, and on request (RSTREAM) that stays (0); `target`
        and `place` are the place of its row. None where nothing is told.
    """
    left, came = np.flatnonzero(~held.stays), np.flatnonzero(held.start > BEFORE)
    index = np.concatenate([held.row[left], held.row[came], held.again])
    plain = np.flatnonzero(~turn.known.grouped[frames.rows.queries(index)])
    if not len(plain):
        return None
    counts = [len(left), len(came), len(held.again)]
    at = np.concatenate([held.until[left], held.start[came], held.again_at])[plain]
    sign = np.repeat([-1, 1, 0], counts)[plain]
    cause = np.concatenate(
        [held.cause[left], np.repeat([CAUSE["enter"], CAUSE["inside"]], counts[1:])]
    )[plain]
    index = index[plain]
    return Lines(
        position=position[at],
        event_ts=tick[at],
        fix_ts=frames.rows.ts[index],
        x=frames.rows.x[index],
        y=frames.rows.y[index],
        rank=np.full(len(at), TICK_RANK),
        objects=frames.rows.objects(index),
        target=index,
        sign=sign,
        cause=cause,
        value=np.full(len(at), np.nan),
        place=index,
    )


def tell_rows(turn: Turn, frames: Frames, lines: Lines | None) -> pa.Table:
    """Rows of changes for fixes in frames; the partner is the fix's event time as text.

    Args:
        turn: the run.
        frames: the frames with their rows.
        lines: as `frame_lines` gives them; None: no rows.
    """
    if lines is None:
        return SHARD_SCHEMA.empty_table()
    times, code = np.unique(lines.fix_ts, return_inverse=True)
    names = Names(
        queries=turn.queries,
        # For these rows alone: nobody looks for the time of a fix, so it gets no number for ever.
        targets=Targets(frames.rows.queries(lines.target), code),
        objects=turn.objects,
        partners=Interner(times_as_text(times), np.zeros(len(times), np.uint64)),
    )
    fields = frames.rows.fields.take(pa.array(lines.place))
    columns = {**lines.columns, "target": np.arange(len(lines))}
    return change_rows(names, **columns, fields=fields)


def times_as_text(ts: np.ndarray) -> pa.Array:
    """Times as texts such as `2026-11-23T07:30:50.000000Z`; string[n], which sort as the times do.

    Args:
        ts: int64[n], microseconds since 1970, UTC.
    """
    text = pc.strftime(
        pa.array(ts).cast(pa.timestamp("us")), format="%Y-%m-%dT%H:%M:%S"
    )
    return pc.binary_join_element_wise(text, pa.scalar("Z"), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameParts(Parts):
    """What rows of frames count for while they are held: the place of each, and the frames."""

    row: np.ndarray
    frames: Frames

    def reduced(
        self, turn: Turn, query: np.ndarray, cell: np.ndarray, spell: np.ndarray
    ) -> Reduced:
        """What each cell and group has: as over members, with the speed of its object as what each row adds.

        Args:
            turn: the run.
            query: int64[n], the query of each row.
            cell: int64[n], a query at a tick.
            spell: int64[n], the place of the row among the spells.
        """
        amounts = self.amounts[spell]
        for function, place, mine in _asking_ways(turn, query):
            of_ways = _of_ways(self.frames, function, cell[mine], self.row[spell[mine]])
            amounts[mine, place] = of_ways
        return reduced_cells(turn, query, cell, self.group[spell], amounts)


def _asking_ways(
    turn: Turn, query: np.ndarray
) -> Iterator[tuple[str, int, np.ndarray]]:
    """Functions of ways, their places among values, and the places of the rows (int64[n], their queries) that ask."""
    yield "avgspd", 0, np.flatnonzero(turn.known.function[query] == "avgspd")
    for spec, mine in several.by_aggregate(turn, query):
        for place, value in enumerate(spec.values):
            if value.function in OF_WAYS:
                yield value.function, place, mine


def parts_of_frames(stretch: Stretch, frames: Frames, held: Held) -> FrameParts | None:
    """What counts in the groups over frames at some ticks; None where nothing can change.

    Args:
        stretch: the ticks.
        frames: the frames with their rows.
        held: what results hold over the ticks.
    """
    turn, rows = stretch.turn, frames.rows
    mine = np.flatnonzero(turn.known.grouped[rows.queries(held.row)])
    again = np.flatnonzero(turn.known.grouped[rows.queries(held.again)])
    if not len(mine) and not len(again):
        return None
    row, start, until = held.row[mine], held.start[mine], held.until[mine]
    # A group is found anew from all of its rows, also from those that were not looked at.
    others = _unseen(turn, frames, held, rows.queries(row))
    row = np.concatenate([row, others])
    start = np.concatenate([start, np.full(len(others), BEFORE)])
    until = np.concatenate([until, np.full(len(others), held.ticks)])
    holder = holders_of(
        turn, turn.numbering.targets_of(rows.queries(row), rows.group[row])
    )
    order = np.lexsort((start, holder))
    row = row[order]
    return FrameParts(
        spells=Spells(holder[order], start[order], until[order], held.ticks),
        group=rows.group[row],
        amounts=relational.amounts_of(
            turn, rows.queries(row), rows.objects(row), rows.take(row)
        ),
        again=_again(turn, frames, held),
        row=row,
        frames=frames,
    )


def _unseen(turn: Turn, frames: Frames, held: Held, queries: np.ndarray) -> np.ndarray:
    """The rows in results that were not looked at, of those queries whose groups are not of one object each."""
    is_whole = np.zeros(len(turn.queries), bool)
    is_whole[queries] = True
    is_whole[frames.specs.numbers[frames.specs.by_object]] = False
    if not is_whole.any():
        return queries[:0]
    is_unseen = frames.held & is_whole[frames.rows.query]
    is_unseen[held.looked] = False
    return np.flatnonzero(is_unseen)


def _again(turn: Turn, frames: Frames, held: Held) -> np.ndarray:
    """Targets and ticks, packed, at which a row of them came, left or stays: they are told again, changed or not."""
    left, came = np.flatnonzero(~held.stays), np.flatnonzero(held.start > BEFORE)
    row = np.concatenate([held.row[left], held.row[came], held.again])
    at = np.concatenate([held.until[left], held.start[came], held.again_at])
    query = frames.rows.queries(row)
    mine = np.flatnonzero((turn.known.retelling & turn.known.grouped)[query])
    return unique(
        packed(
            turn.numbering.targets_of(query[mine], frames.rows.group[row[mine]]),
            at[mine],
        )
    )


def _of_ways(
    frames: Frames, function: str, cell: np.ndarray, row: np.ndarray
) -> np.ndarray:
    """How far each row's object came in its cell, over the legs in the result, or how fast: by the time of these.

    Its odometer is how far it had come at the newest of its rows there, since the query knows it.

    A speed in a window of time is by the whole window's. A leg counts when both its ends are in the result and follow
    each other in one stay; without one the speed is null, and the way 0 (SPEC W7).

    Args:
        frames: the frames with their rows.
        function: `travelled`, `odometer`, or `avgspd`.
        cell: int64[n], a query, or a group of it, at a tick.
        row: int64[n], the place of a row that is held there.

    Returns:
        float64[n], metres, or metres per second with NaN for null.
    """
    if not len(row):
        return np.empty(0)
    # Rows of one object stand as they came: legs lie between neighbours.
    order = np.lexsort((row, cell))
    cell, row = cell[order], row[order]
    rows = frames.rows
    starts = firsts(cell, rows.key[row])
    follows = (np.diff(rows.n[row], prepend=0) == 1) & (rows.begins[row] == 0)
    follows[starts] = False
    lengths = np.diff(starts, append=len(row))
    way = (
        rows.way[row[starts + lengths - 1]]
        if function == "odometer"
        else np.add.reduceat(
            np.where(follows, np.diff(rows.way[row], prepend=0), 0), starts
        )
    )
    value = way / 1e6
    if function == "avgspd":
        value = _by_time(frames, value, row, starts, follows)
    values = np.empty(len(row))
    values[order] = np.repeat(value * frames.turn.settings.unit_m, lengths)
    return values


def _by_time(
    frames: Frames,
    way: np.ndarray,
    row: np.ndarray,
    starts: np.ndarray,
    follows: np.ndarray,
) -> np.ndarray:
    """Ways by the time of their legs, or of the window where it is one of time; NaN without a leg."""
    rows = frames.rows
    time_us = np.add.reduceat(
        np.where(follows, np.diff(rows.ts[row], prepend=0), 0), starts
    )
    legs = np.add.reduceat(follows.astype(np.int64), starts)
    window_s = frames.specs.seconds[frames.specs.place[rows.queries(row[starts])]]
    seconds = np.where(np.isnan(window_s), time_us / 1e6, window_s)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((legs > 0) & (seconds > 0), way / seconds, np.nan)
