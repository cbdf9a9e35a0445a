"""Whether what a stream has stored fits together: log, tables, folds, and a part of it done once more (SPEC S2)."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyproj import Geod

from st_common import tables
from st_common.checks.archived import controls_of, recorded_of, times_of
from st_common.checks.history import FIX, Controls, clock_of, happened_to
from st_common.config.home import Home
from st_common.config.position_filter import PositionFilter
from st_common.config.stream import StreamSettings
from st_common.contracts import load_contract
from st_common.controls.rows import Reading
from st_common.engine.committing import APP
from st_common.engine.local import layers_of
from st_common.engine.packets import packets_of, step_settings
from st_common.engine.states import States
from st_common.engine.topology import frozen, topology_of
from st_common.errors import FairwayError
from st_common.history.snapshots import members_of, snapshots
from st_common.history.stored import FILTERED, archived_end, has_filtered
from st_common.log.checked import check_bytes
from st_common.log.log import Log
from st_common.log.record_settings import record_of, with_reading
from st_common.operators.runtime.stages import step
from st_common.operators.state.state import State
from st_common.operators.turn.changes import settled
from st_common.position import position_of, row_of, segment_of
from st_common.reference.metric import Metric
from st_common.reference.position_filter import Judged, Limits, Moved, judged

REPLAY_BYTES = 64 << 20  # of the log: so much is done once more
_STEP_BYTES = 16 << 20
_KEY = ("query", "query_version", "object", "partner")
_GEOD = Geod(ellps="WGS84")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one check of an audit found.

    Attributes:
        what: what was looked at, for people.
        problem: what is wrong with it; None: nothing.
        unchecked: what was not looked at; "": nothing.
    """

    what: str
    problem: str | None
    unchecked: str = ""


def audit(home: Home, stream: StreamSettings, *, since: int = 0) -> Iterator[Finding]:
    """Looks through everything that a stream has stored, check by check.

    The log's numbers, checksums and control rows; the files of its tables; that folding its changes gives 0 or 1 at
    every place; filtered fixes, judged again; that the newest part of the log, done once more from an older state,
    gives the very rows that the tables hold.

    Args:
        home: the home folder; nothing in it is changed.
        stream: the settings of the stream.
        since: the log is looked at from the segment of this position on; it is done once more from there, too, or from
            the last state before.

    Yields:
        A finding per check, as soon as it is done.

    Raises:
        StateError: the stream was begun with other settings.
    """
    log = Log(home.log(stream.name))
    yield _log(log, segment_of(since))
    for name in ("changes", "positions"):
        yield _files(home, stream, name)
    if not tables.exists(home.table("changes", stream.name)):
        return
    contract = load_contract("changes")
    changes = tables.read(home.table("changes", stream.name), contract=contract)
    yield _order(changes)
    yield _folds(_from_kept(home, stream.name, changes))
    topology = topology_of(home, stream.name)
    if topology is None:
        yield Finding(what="topology", problem="there is none, but there are changes")
        return
    stream = frozen(home, stream, engine=topology.engine, shards=topology.shards)
    yield from _filters(home, stream)
    yield from _replay(home, stream, log, changes, segment_of(since))


def _log(log: Log, start: int) -> Finding:
    try:
        checked = check_bytes(log, start)
    except FairwayError as error:
        return Finding(what="log", problem=error.message)
    bare = checked.bare
    skipped = [f"segment {number} ({why})" for number, why in log.skipped().items()]
    purged = log.purged_before()
    gone = [f"records before segment {purged}, which were purged"] if purged else []
    gone += [f"segments before {start}"] if start else []
    lost = [f"what is passed over: {', '.join(skipped)}"] if skipped else []
    lost += (
        [f"raw bytes of {bare} packet{'s' * (bare > 1)}, which are gone"]
        if bare
        else []
    )
    return Finding(
        what=f"log: {checked.segments} segments, their numbers, checksums and control rows",
        problem=None,
        unchecked="; ".join(gone + lost),
    )


def _files(home: Home, stream: StreamSettings, name: str) -> Finding:
    path = home.table(name, stream.name)
    if not tables.exists(path):
        return Finding(what=f"table {name}", problem=None, unchecked="there is none")
    said = tables.damage(path)
    problem = f"{said[0]}, and {len(said) - 1} others" if said else None
    return Finding(what=f"table {name}: its files", problem=problem)


def _filters(home: Home, stream: StreamSettings) -> Iterator[Finding]:
    """Nothing of a stream whose fixes were never filtered."""
    path = home.table("positions", stream.name)
    if not tables.exists(path) or not has_filtered(path):
        return
    if tables.purged_before(path):
        what = "position filter: fixes judged again"
        yield Finding(what=what, problem=None, unchecked="the first were purged")
        return
    count, wrong = wrongly_filtered(home, stream)
    problem = f"{wrong[0]}, and {len(wrong) - 1} others" if wrong else None
    yield Finding(what=f"position filter: {count} fixes judged again", problem=problem)


def _order(changes: pa.Table) -> Finding:
    """Each position has the rows 0, 1, 2 .. once: what is written twice, or lost in part, shows here."""
    position, seq = changes["position"].to_numpy(), changes["seq"].to_numpy()
    order = np.lexsort((seq, position))
    position, seq = position[order], seq[order]
    starts = (
        np.flatnonzero(np.r_[True, position[1:] != position[:-1]])
        if len(position)
        else position
    )
    expected = np.arange(len(position)) - np.repeat(
        starts, np.diff(np.r_[starts, len(position)])
    )
    wrong = np.flatnonzero(seq != expected)
    problem = None
    if len(wrong):
        first = wrong[0]
        problem = f"{len(wrong)} rows, the first at position {position[first]}: seq {seq[first]}, not {expected[first]}"
    return Finding(what=f"changes: {len(position)} rows, each once", problem=problem)


def _member_numbers(changes: pa.Table) -> np.ndarray:
    """One number per member of an answer; int64[n]."""
    key = np.zeros(len(changes), np.int64)
    # Renumbered after each column so that products stay small.
    for name in _KEY:
        column = changes[name].combine_chunks().dictionary_encode()
        codes = column.indices.fill_null(-1).to_numpy() + 1
        width = int(codes.max(initial=0)) + 1
        _, key = np.unique(key * width + codes, return_inverse=True)
    return key


def _folds(changes: pa.Table) -> Finding:
    """Nobody enters twice, or leaves without having entered: so answers are sets at every place."""
    moves = changes.filter(pc.not_equal(changes["sign"], 0))
    key = _member_numbers(moves)
    order = np.lexsort((moves["seq"].to_numpy(), moves["position"].to_numpy(), key))
    key, sign = key[order], moves["sign"].to_numpy()[order].astype(np.int64)
    total = np.cumsum(sign)
    starts = np.flatnonzero(np.r_[True, key[1:] != key[:-1]]) if len(key) else key
    # What the members in front came to is taken off, so that each one's sum begins at 0.
    before = np.r_[0, total][starts]
    fold = total - np.repeat(before, np.diff(np.r_[starts, len(key)]))
    wrong = np.flatnonzero((fold < 0) | (fold > 1))
    if not len(wrong):
        return Finding(
            what=f"folds of {len(starts)} members: 0 or 1 at every place", problem=None
        )
    row = moves.slice(int(order[wrong[0]]), 1).to_pylist()[0]
    problem = (
        f"{len(wrong)} places; at position {row['position']} object {row['object']!r} stands {fold[wrong[0]]} times in"
        f" the answer of {row['query']!r}"
    )
    return Finding(what="folds", problem=problem)


def _from_kept(home: Home, stream: str, changes: pa.Table) -> pa.Table:
    """The changes of a stream, with all who were in where they begin: where some were purged a snapshot says who.

    These are rows with the columns that name a member, and position, seq and sign.
    """
    purged = tables.purged_before(home.table("changes", stream))
    if not purged:
        return changes
    taken = snapshots(home, stream)
    base = next((each for each in taken if each.position == purged), None)
    members = members_of(home, stream, base)
    at_first = {"seq": pa.scalar(0, pa.int32()), "sign": pa.scalar(1, pa.int8())}
    for name, value in at_first.items():
        members = members.append_column(name, pa.repeat(value, len(members)))
    kept = changes.filter(pc.greater_equal(changes["position"], purged))
    parts = [
        members.select([*_KEY, "position", "seq", "sign"]),
        kept.select([*_KEY, "position", "seq", "sign"]),
    ]
    return pa.concat_tables(parts, promote_options="permissive")


def _replay(
    home: Home, stream: StreamSettings, log: Log, changes: pa.Table, since: int
) -> Iterator[Finding]:
    committed = tables.committed(home.table("changes", stream.name), APP)
    end = 0 if committed is None else segment_of(committed + 1)
    state = _start(home, stream, log, end, since)
    start = state.next_segment
    if start < log.purged_before():
        why = "no older state stands behind the records that were purged"
        yield Finding(what="changes made once more", problem=None, unchecked=why)
        return
    again = _again(home, stream, log, state, end)
    columns = [
        name
        for name in load_contract("changes").arrow_schema().names
        if name != "event_date"
    ]
    purged = tables.purged_before(home.table("changes", stream.name))
    first = max(position_of(start, 0), purged)
    stored = _from(changes, first).select(columns)
    made = _from(again.changes, first).select(columns).cast(stored.schema)
    expected = _without_early_places(made, _first_place(changes))
    order = [("position", "ascending"), ("seq", "ascending")]
    yield Finding(
        what=f"changes: {len(expected)} rows of segments {start} to {end - 1}, made once more",
        problem=_difference(stored.sort_by(order), expected.sort_by(order)),
        unchecked=f"segments before {segment_of(first)}" if first else "",
    )
    yield _records(home, stream, again, start, end)


def _first_place(changes: pa.Table) -> int:
    """The first position of a change that has a place; those before it were told when none was stored."""
    first = pc.min(changes.filter(changes["x"].is_valid())["position"]).as_py()
    return sys.maxsize if first is None else int(first)


def _without_early_places(changes: pa.Table, position: int) -> pa.Table:
    """Changes without the places of those in front of a position."""
    is_early = pc.less(changes["position"], position)
    for name in ("x", "y"):
        at = changes.schema.get_field_index(name)
        places = pc.if_else(is_early, pa.scalar(None, pa.float64()), changes[name])
        changes = changes.set_column(at, name, places)
    return changes


def _from(changes: pa.Table, position: int) -> pa.Table:
    """The changes at a place in the log and behind it."""
    return changes.filter(pc.greater_equal(changes["position"], position))


def _records(
    home: Home, stream: StreamSettings, again: "_Again", start: int, end: int
) -> Finding:
    """Every record of the log is a fix in `positions` or stands in `rejects`."""
    what = f"positions and rejects: {again.fixes + again.rejects} records of segments {start} to {end - 1}"
    if archived_end(home, stream.name) < position_of(end, 0):
        return Finding(
            what=what, problem=None, unchecked="the archive is not that far yet"
        )
    purged = tables.purged_before(home.table("positions", stream.name))
    if purged > position_of(start, 0) or tables.purged_before(home.table("rejects")):
        return Finding(what=what, problem=None, unchecked="some of them were purged")
    bounds = [("segment", ">=", start), ("segment", "<", end)]
    fixes = tables.read(
        home.table("positions", stream.name), columns=["segment"], filters=bounds
    )
    rejects = tables.read(
        home.table("rejects"),
        columns=["segment"],
        filters=[*bounds, ("stream", "=", stream.name)],
    )
    stored = (len(fixes), len(rejects))
    expected = (again.fixes, again.rejects)
    problem = None
    if stored != expected:
        problem = f"{stored[0]} fixes and {stored[1]} rejects instead of {expected[0]} and {expected[1]}"
    return Finding(what=what, problem=problem)


def _start(home: Home, stream: StreamSettings, log: Log, end: int, since: int) -> State:
    """The oldest state behind which at most REPLAY_BYTES of the log lie; the newest if there is none such.

    With `since` the last one that is not behind that segment, if less lies behind it.
    """
    first = log.first()
    sizes = np.array([segment.size for segment in log.segments(first, end=end)])
    # Bytes of the log from each segment on, to the end.
    behind = np.r_[np.cumsum(sizes[::-1])[::-1], 0]
    states = States.of(home, stream.name)
    places = [0, *(place for place in states.places() if place < end)]
    places = [place for place in places if place >= log.purged_before()] or [0]
    near = [place for place in places if behind[max(place - first, 0)] <= REPLAY_BYTES]
    lately = [place for place in places if place <= since]
    upto = max(min(near, default=places[-1]), max(lately, default=0))
    return states.newest(upto=position_of(upto, 0) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Again:
    """What a part of the log says when it is read once more."""

    changes: pa.Table
    fixes: int
    rejects: int


def _again(
    home: Home, stream: StreamSettings, log: Log, state: State, end: int
) -> _Again:
    settled_parts, fixes, rejects = [settled([])], 0, 0
    settings, layer_of = step_settings(stream), layers_of(home, stream)
    while state.next_segment < end:
        segments = log.segments(state.next_segment, max_bytes=_STEP_BYTES, end=end)
        read = [shards[0] for shards in packets_of(log, segments, stream, shards=1)]
        done = step(state, read, settings, layer_of)
        settled_parts.append(settled([done.changes]))
        state = done.state
        fixes += sum(len(packet.ts) for packet in read)
        rejects += sum(packet.rejects for packet in read)
    return _Again(changes=pa.concat_tables(settled_parts), fixes=fixes, rejects=rejects)


def _difference(stored: pa.Table, expected: pa.Table) -> str | None:
    if stored.equals(expected):
        return None
    if len(stored) != len(expected):
        return f"the table has {len(stored)} rows there"
    wrong = np.zeros(len(stored), bool)
    for name in stored.column_names:
        mine, theirs = stored[name].combine_chunks(), expected[name].combine_chunks()
        same = pc.equal(mine, theirs).fill_null(fill_value=False)
        wrong |= ~(
            pc.or_(same, pc.and_(mine.is_null(), theirs.is_null())).to_numpy(
                zero_copy_only=False
            )
        )
    first = int(np.flatnonzero(wrong)[0]) if wrong.any() else 0
    return f"{int(wrong.sum())} rows differ, the first at position {stored['position'][first]}"


# -- position filters (SPEC X11): if each fix is what the rules say of it beside the last one before it that the table
# calls accepted, then, one after the other, all are right


def wrongly_filtered(home: Home, stream: StreamSettings) -> tuple[int, list[str]]:
    """How many fixes were looked at, and those of which the table says something else than the rules, in words.

    Fixes that are so near to a limit that two ways to measure a distance may differ are not among them.
    """
    path, end = home.table("positions", stream.name), archived_end(home, stream.name)
    if not end or not has_filtered(path):
        return 0, []
    log = Log(home.log(stream.name))
    controls = controls_of(log, end)
    spans = _spans(log, stream, controls)
    times = times_of(stream)
    fixes = _fixes_said(home, stream, spans)
    recorded = recorded_of(fixes.assign(is_filtered=False))
    clock = clock_of(recorded.position, recorded.ts, controls, times)
    found = happened_to(recorded, clock, times)
    events = fixes.take(found.source).assign(stay=found.stays)
    events = events[found.kind == FIX].reset_index(drop=True)
    said = _said(events, spans, stream)
    is_other = said.reason != events["said"].to_numpy(object)
    wrong = events.assign(should=said.reason)[is_other & ~said.is_doubtful]
    return len(events), [_in_words(row) for row in wrong.itertuples()]


def _in_words(row: Any) -> str:
    told, should = row.said or "accepted", row.should or "accepted"
    return f"segment {segment_of(row.position)}, row {row_of(row.position)}: {told}, not {should}"


def _spans(
    log: Log, stream: StreamSettings, controls: Controls
) -> list[tuple[int, StreamSettings]]:
    """From which place in the log on which settings filter: as `capture.reading` says it of a whole log."""
    record = record_of(log)
    base = stream
    if record.base is not None:
        base = with_reading(stream, record.base, where="how the log is read")
    rows = [
        (at, with_reading(stream, row.reading, where=log.place(segment_of(at))))
        for at, row in controls
        if isinstance(row, Reading) and segment_of(at) >= record.upto
    ]
    return [(0, base), *rows]


def _fixes_said(
    home: Home, stream: StreamSettings, spans: list[tuple[int, StreamSettings]]
) -> pd.DataFrame:
    """All archived fixes in log order with what the table says of them, and their accuracy by each span."""
    path = home.table("positions", stream.name)
    stored = tables.read(path)
    columns = {name: stored[name].to_pandas() for name in ("object", "x", "y")}
    fixes = pd.DataFrame(columns).assign(
        ts=stored["event_ts"].cast(pa.int64()).to_numpy(),
        gone=stored["gone"].to_numpy(),
        said=stored[FILTERED].fill_null("").to_pandas(),
        position=position_of(
            stored["segment"].to_numpy(), stored["row"].to_numpy().astype(np.int64)
        ),
    )
    for number, (_, settings) in enumerate(spans):
        fixes[f"accuracy_{number}"] = _accuracy(stored, settings)
    return fixes.sort_values("position", kind="stable").reset_index(drop=True)


def _accuracy(stored: pa.Table, settings: StreamSettings) -> np.ndarray:
    """Metres; 0 where nothing is known, or what is said makes no sense."""
    name = settings.position_filter.accuracy if settings.position_filter else None
    if name is None or name not in stored.column_names:
        return np.zeros(len(stored))
    values = stored[name].cast(pa.float64()).to_numpy() * settings.accuracy_unit_m
    return np.where(values >= 0, values, 0.0)


def _said(
    events: pd.DataFrame,
    spans: list[tuple[int, StreamSettings]],
    stream: StreamSettings,
) -> Judged:
    """What the rules say of each fix, and where a distance is too near to a limit to tell."""
    starts = np.array([at for at, _ in spans])
    span = np.searchsorted(starts, events["position"].to_numpy(), side="right") - 1
    rules = [one.position_filter or PositionFilter() for _, one in spans]
    accuracy = events[[f"accuracy_{n}" for n in range(len(spans))]].to_numpy()
    before, number = _last_accepted(events), np.arange(len(events))
    limits = Limits(
        max_accuracy_m=_limits([one.max_accuracy_m for one in rules])[span],
        max_speed_mps=_limits([one.max_speed_mps for one in rules])[span],
        min_distance_m=_limits([one.min_distance_m for one in rules], 0.0)[span],
        accept_after_s=_limits([one.accept_after_s for one in rules])[span],
        beyond_accuracy=np.array([one.beyond_accuracy for one in rules])[span],
    )
    ts = events["ts"].to_numpy(np.int64)
    moved = Moved(
        own_m=accuracy[number, span],
        has_before=before >= 0,
        metres=_metres(events, before, stream),
        seconds=(ts - ts[before]) / 1e6,
        before_m=accuracy[before, span],
    )
    is_flat = stream.space.is_flat
    return judged(limits, moved, Metric(is_flat=is_flat, doubts=not is_flat))


def _limits(values: list[float | None], off: float = np.inf) -> np.ndarray:
    return np.array([off if value is None else value for value in values])


def _last_accepted(events: pd.DataFrame) -> np.ndarray:
    """The place of the last fix before each in the same stay that the table calls accepted; -1 without one."""
    number, stay = np.arange(len(events)), events["stay"].to_numpy()
    own = np.where(events["said"].to_numpy() == "", number, -1)
    before = np.r_[-1, np.maximum.accumulate(own)[:-1]] if len(own) else own
    return np.where((before >= 0) & (stay[before] == stay), before, -1)


def _metres(
    events: pd.DataFrame, before: np.ndarray, stream: StreamSettings
) -> np.ndarray:
    x, y = events["x"].to_numpy(), events["y"].to_numpy()
    if not stream.space.is_flat:
        return np.asarray(_GEOD.inv(x[before], y[before], x, y)[2])
    moved: np.ndarray = np.hypot(x - x[before], y - y[before]) * stream.unit_m
    return moved
