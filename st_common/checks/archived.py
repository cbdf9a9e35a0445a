"""What the tables of a home bring to a check: the events of its objects, what was deleted of them, what was filtered.

Old days of `changes` or `positions` may be deleted; then some of it cannot be checked:

    changes of days      1    2    3 | 4    5    6        1 to 3 were deleted
    member since day 2   +           |                    nobody knows: not checked
    member since day 5               |      +             checked, and who left in vain

What the table says of filtered fixes is held against the rules (SPEC X11): if each fix is what the rules say of it
beside the last one before it that the table calls accepted, then, one after the other, all are right.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyproj import Geod

from st_common import tables
from st_common.checks.expressions import (
    ATTRIBUTE,
    Lookup,
    features_of,
    fixes_of,
    values_of_rows,
)
from st_common.checks.history import (
    FIX,
    Controls,
    Events,
    History,
    Recorded,
    Times,
    clock_of,
    events_of,
    happened_to,
    marks_of,
)
from st_common.config.home import Home
from st_common.config.position_filter import PositionFilter
from st_common.config.stream import StreamSettings
from st_common.controls.rows import Reading
from st_common.history.snapshots import members_of, snapshots
from st_common.history.stored import FILTERED, archived_end, has_filtered
from st_common.log.control import control_rows
from st_common.log.log import Log
from st_common.log.record_settings import record_of, with_reading
from st_common.position import position_of, row_of, segment_of
from st_common.reference.columns import Features
from st_common.reference.metric import Metric
from st_common.reference.position_filter import Judged, Limits, Moved, judged

_PLAIN = ["segment", "row", "event_ts", "object", "x", "y", "gone"]
_TYPES = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """A stream's history from the tables of its home: see `Source`.

    Attributes:
        home: where the tables lie.
        unit_m: how many metres a unit of the plane is.
    """

    home: Home
    unit_m: float

    def features(self, layer: str, version: int) -> Features:
        """See `Source.features`."""
        return features_of(self.home, layer, version)

    def of_rows(
        self, texts: Sequence[str], rows: Sequence[Mapping[str, Any]]
    ) -> Mapping[str, Sequence[Any]]:
        """See `Source.of_rows`."""
        return values_of_rows(texts, rows)


def controls_of(log: Log, end: int) -> Controls:
    """The control rows of a log before a position, each with its own, in their order."""
    rows = [
        (position_of(segment.number, number), row)
        for segment in log.control_segments(0, clocks=True)
        for number, row in enumerate(control_rows(log, segment))
    ]
    return [(position, row) for position, row in rows if position < end]


def archived_history(
    home: Home, stream: StreamSettings, controls: Controls, end: int
) -> tuple[History, pd.DataFrame]:
    """What the table `positions` and the control rows tell of a stream before the position `end`.

    With it the table of its events: a row for each with the columns of its fix and of what was before it.
    """
    rows = _fixes_before(home, stream, end)
    times, fixes = times_of(stream), recorded_of(rows)
    clock = clock_of(fixes, marks_of(controls), times)
    events = events_of(fixes, clock, times)
    frame = _frame_of(rows, events)
    lookup = Lookup(attributes=tuple(stream.attributes), space=stream.space)
    source = Archived(home=home, unit_m=stream.unit_m)
    history = History(
        events=events,
        fixes=fixes_of(frame, lookup),
        clock=clock,
        times=times,
        source=source,
    )
    return history, frame


def _fixes_before(home: Home, stream: StreamSettings, end: int) -> pd.DataFrame:
    """The archived fixes before a position in the order of the log, attributes with the prefix `ATTRIBUTE`."""
    path = home.table("positions", stream.name)
    knows_filtered = has_filtered(path)
    columns = [*_PLAIN, *stream.attributes, *([FILTERED] if knows_filtered else [])]
    stored = tables.read(path, columns=columns)
    event_us = stored["event_ts"].cast(pa.int64())
    plain = stored.select(_PLAIN).set_column(2, "ts", event_us).to_pandas()
    own = stored.select(list(stream.attributes)).to_pandas(types_mapper=_TYPES.get)
    fixes = plain.join(own.add_prefix(ATTRIBUTE))
    fixes["is_filtered"] = (
        stored[FILTERED].is_valid().to_numpy() if knows_filtered else False
    )
    fixes["position"] = position_of(
        fixes["segment"].to_numpy(np.int64), fixes["row"].to_numpy(np.int64)
    )
    before = fixes[fixes["position"] < end].astype({"gone": bool})
    ordered: pd.DataFrame = before.sort_values("position", kind="stable")
    return ordered.reset_index(drop=True)


def recorded_of(rows: pd.DataFrame) -> Recorded:
    """Rows of fixes in log order as columns of numbers."""
    return Recorded(
        position=rows["position"].to_numpy(np.int64),
        ts=rows["ts"].to_numpy(np.int64),
        ids=rows["object"].to_numpy(object),
        code=pd.factorize(rows["object"])[0].astype(np.int64),
        x=rows["x"].to_numpy(float),
        y=rows["y"].to_numpy(float),
        gone=rows["gone"].to_numpy(bool),
        filtered=rows["is_filtered"].to_numpy(bool),
    )


def _frame_of(rows: pd.DataFrame, events: Events) -> pd.DataFrame:
    """A row for each event: the columns of its fix, and the two fixes before it in the same stay; NaN without them.

    They are `before_x`, `before_y` and `elapsed_s`, and of the one before that `earlier_x`, `earlier_y` and
    `before_elapsed_s`, from it to the one before.
    """
    frame = rows.take(events.source).reset_index(drop=True)
    place = {name: frame[name].to_numpy(float) for name in "xy"}
    earlier = np.where(events.before >= 0, events.before[events.before], -1)
    elapsed_s = np.where(
        events.before >= 0, (events.ts - events.ts[events.before]) / 1e6, np.nan
    )
    found: pd.DataFrame = frame.assign(
        kind=events.kind,
        event=events.event,
        effect=events.effect,
        before_x=_or_nan(place["x"], events.before),
        before_y=_or_nan(place["y"], events.before),
        elapsed_s=elapsed_s,
        earlier_x=_or_nan(place["x"], earlier),
        earlier_y=_or_nan(place["y"], earlier),
        before_elapsed_s=np.where(earlier >= 0, elapsed_s[events.before], np.nan),
    )
    return found


def _or_nan(column: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """A column at some rows, NaN where a row is none (-1)."""
    return np.where(rows >= 0, column[rows], np.nan)


def times_of(stream: StreamSettings) -> Times:
    """A stream's settings of time."""
    return Times(
        lateness_us=round(stream.lateness_s * 1e6),
        tick_us=round(stream.tick_s * 1e6),
        space=stream.space,
        window_rows=stream.window_rows,
        silence_us=None if stream.silence_s is None else round(stream.silence_s * 1e6),
    )


_FOLDED = [
    "query",
    "query_version",
    "object",
    "partner",
    "position",
    "seq",
    "sign",
]
_DAY_US = 86_400_000_000
_END = 1 << 62  # after all rows, and all times


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What is left of `changes` after rows were deleted: from which row of the log, and from which day on."""

    position: int
    day_us: int

    def has(self, position: int, event_us: int) -> bool:
        """Whether a change of this row and time would still be there."""
        return position >= self.position and event_us >= self.day_us


def kept_of(home: Home, stream: str, changes: pd.DataFrame) -> Kept | None:
    """What is left of the changes of a stream; None where none were ever deleted."""
    if not tables.has_deletions(home.table("changes", stream)):
        return None
    if not len(changes):
        return Kept(position=_END, day_us=_END)
    event_us = changes["event_ts"].dt.as_unit("us").astype(np.int64)
    day_us = int(event_us.min()) // _DAY_US * _DAY_US
    return Kept(position=int(changes["position"].min()), day_us=day_us)


def from_kept(home: Home, stream: str, changes: pa.Table) -> pa.Table:
    """The changes of a stream, with all who were in where they begin: where some were purged a snapshot says who.

    Args:
        home: where the tables lie.
        stream: the stream.
        changes: all that its table holds.

    Returns:
        Rows with the columns that name a member, and position, seq and sign; as they are where none were purged.
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
    parts = [members.select(_FOLDED), kept.select(_FOLDED)]
    return pa.concat_tables(parts, promote_options="permissive")


def untold(
    expected: Collection[tuple[Hashable, ...]],
    before: Collection[tuple[Hashable, ...]] | None,
    told: pd.DataFrame,
    *,
    by: int,
) -> int:
    """How many members, or groups with their value, no change that is left speaks of; `by` parts name each.

    Those that were not there `before` (None: all may have been) must have been told of since.
    """
    columns = ["object", "partner"][:by]
    known = set(told[columns].itertuples(index=False, name=None))
    rest = [one for one in expected if before is None or one in before]
    return sum(one[:by] not in known for one in rest)


def in_words(count: int, what: str) -> str:
    """What could not be checked; nothing of none."""
    if not count:
        return ""
    ending = "s" if count > 1 else ""
    return f"{count} {what}{ending} of days of which the changes were deleted"


_GEOD = Geod(ellps="WGS84")


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
    clock = clock_of(recorded, marks_of(controls), times)
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
    """From which place in the log on which settings filter: as `log.record_settings` says it of a whole log."""
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
