"""What a tick tells of frames: rows that enter and leave results, and groups over them (CQL-S, SPEC W2, W6, W7)."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.operators import relational
from st_common.operators.changes import CAUSE, SHARD_SCHEMA, TICK_RANK, Names, change_rows
from st_common.operators.frames import Frames, Judged
from st_common.operators.groups import Groups
from st_common.operators.intern import Interner
from st_common.operators.relational import At, Regrouped
from st_common.operators.targets import Targets
from st_common.operators.telling import Lines
from st_common.operators.turn import Turn

_OF_END = np.array([CAUSE["leave"], CAUSE["gone"], CAUSE["expired"]])


def frame_lines(turn: Turn, frames: Frames, judged: Judged, at: At) -> Lines | None:
    """The fixes that left and entered results, and on request (RSTREAM) those that stay, of queries that do not count.

    `target` and `place` are the places of the rows of frames.
    """
    told = judged.stays[judged.moved]
    told = told[turn.known.retelling[frames.rows.queries(told)]]
    sign = np.repeat([-1, 1, 0], [len(judged.minus), len(judged.plus), len(told)])
    index = np.concatenate([judged.minus, judged.plus, told])
    plain = ~turn.known.grouped[frames.rows.queries(index)]
    if not plain.any():
        return None
    cause = np.concatenate([
        _leaving(judged, at), np.full(len(judged.plus), CAUSE[at.plus or "enter"]),
        np.full(len(told), CAUSE["inside"]),
    ])  # fmt: skip
    index, sign, cause = index[plain], sign[plain], cause[plain]
    return Lines(
        position=at.rows(frames.rows.queries(index)), event_ts=np.full(len(index), at.tick),
        fix_ts=frames.rows.ts[index], rank=np.full(len(index), TICK_RANK if at.plus is None else 1),
        objects=frames.rows.objects(index), target=index, sign=sign, cause=cause,
        value=np.full(len(index), np.nan), place=index,
    )  # fmt: skip


def tell_rows(turn: Turn, frames: Frames, lines: Lines | None) -> pa.Table:
    """Rows of changes for fixes in frames; the partner is the fix's event time."""
    if lines is None:
        return SHARD_SCHEMA.empty_table()
    times, code = np.unique(lines.fix_ts, return_inverse=True)
    names = Names(
        queries=turn.queries, targets=Targets(frames.rows.queries(lines.target), code), objects=turn.objects,
        partners=Interner(times_as_text(times), np.zeros(len(times), np.uint64)),
    )  # fmt: skip
    fields = frames.rows.fields.take(pa.array(lines.place))
    columns = {name: getattr(lines, name) for name in Lines.__dataclass_fields__ if name not in ("target", "place")}
    return change_rows(names, **columns, target=np.arange(len(lines)), fields=fields)


def times_as_text(ts: np.ndarray) -> pa.Array:
    """Times in microseconds since 1970 as `2026-11-22T07:30:50.000000Z`."""
    text = pc.strftime(pa.array(ts).cast(pa.timestamp("us")), format="%Y-%m-%dT%H:%M:%S")
    return pc.binary_join_element_wise(text, pa.scalar("Z"), "")


def _leaving(judged: Judged, at: At) -> np.ndarray:
    if at.minus is not None:
        return np.full(len(judged.minus), CAUSE[at.minus])
    plain = np.where(judged.uncounted, CAUSE["leave"], CAUSE["aged"])
    return np.where(judged.ended > 0, _OF_END[judged.ended], plain)


def regroup(turn: Turn, frames: Frames, judged: Judged, before: Groups) -> tuple[Regrouped, Groups]:
    """What changes among the groups over frames, and those that are told again without a change (RSTREAM)."""
    index = _grouped(turn, frames, np.concatenate([judged.minus, judged.plus]))
    again = _grouped(turn, frames, judged.stays[judged.moved])
    if not len(index) and not len(again):
        return Regrouped(removed=index, added=Groups.empty()), Groups.empty()
    by_object = frames.specs.by_object[frames.specs.place[frames.rows.queries(index)]]
    slots, whole = frames.slots_of(index[by_object]), np.unique(frames.rows.queries(index[~by_object]))
    rows, _ = frames.rows_of(slots)
    rows = np.concatenate([rows[frames.held[rows]], frames.held_of(frames.specs.place[whole])])
    fresh = _reduced(turn, frames, rows)
    fresh = relational.joined(fresh, relational.zeros(turn, whole, fresh))
    is_whole = np.zeros(len(turn.queries), bool)
    is_whole[whole] = True
    targets = np.union1d(
        _targets(turn, frames, index), before.target[is_whole[turn.numbering.targets.query[before.target]]]
    )
    changed = relational.regrouped_targets(before, targets, fresh)
    again = np.concatenate([index, again])
    again = _targets(turn, frames, again[turn.known.retelling[frames.rows.queries(again)]])
    return changed, before.among(np.setdiff1d(again, np.concatenate([changed.removed, changed.added.target])))


def _grouped(turn: Turn, frames: Frames, index: np.ndarray) -> np.ndarray:
    """Those of some rows whose query counts."""
    grouped: np.ndarray = index[turn.known.grouped[frames.rows.queries(index)]]
    return grouped


def _targets(turn: Turn, frames: Frames, index: np.ndarray) -> np.ndarray:
    """The targets (query and group) of some rows, each once."""
    query, group = frames.rows.queries(index), frames.rows.group[index]
    return np.unique(turn.numbering.targets_of(query, group))


def _reduced(turn: Turn, frames: Frames, index: np.ndarray) -> Groups:
    """One value per query and group over some rows; average speeds here, all others as over members."""
    query = frames.rows.queries(index)
    is_speed = turn.known.function[query] == "avgspd"
    plain, speeds = index[~is_speed], index[is_speed]
    found = relational.reduced(turn, frames.rows.queries(plain), frames.rows.group[plain], frames.rows.value[plain])
    return relational.joined(found, _speeds(turn, frames, np.sort(speeds)))


def _speeds(turn: Turn, frames: Frames, index: np.ndarray) -> Groups:
    """The average speed of each object: its way over the legs in the result by their time, or by the whole window's.

    A leg counts when both its ends are in the result and follow each other in one stay; without one the speed is null
    (SPEC W7).
    """
    if not len(index):
        return Groups.empty()
    rows, key = frames.rows, frames.rows.key[index]
    starts = np.flatnonzero(np.r_[True, key[1:] != key[:-1]])
    follows = np.r_[False, (key[1:] == key[:-1]) & (np.diff(rows.n[index]) == 1)] & (rows.begins[index] == 0)
    way = np.add.reduceat(np.where(follows, np.diff(rows.way[index], prepend=0), 0), starts)
    time_us = np.add.reduceat(np.where(follows, np.diff(rows.ts[index], prepend=0), 0), starts)
    legs = np.add.reduceat(follows.astype(np.int64), starts)
    window_s = frames.specs.seconds[frames.specs.place[rows.queries(index[starts])]]
    seconds = np.where(np.isnan(window_s), time_us / 1e6, window_s)
    with np.errstate(divide="ignore", invalid="ignore"):
        speed = np.where((legs > 0) & (seconds > 0), (way / 1e6) / seconds, np.nan) * turn.settings.unit_m
    target = turn.numbering.targets_of(rows.queries(index[starts]), rows.group[index[starts]])
    order = np.argsort(target)
    return Groups(target=target[order], value=speed[order])
