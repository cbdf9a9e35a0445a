"""The fixes behind a change, in the table of positions."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from st_common import tables
from st_common.config.home import Home
from st_common.config.stream_values import FILTER_COLUMNS
from st_common.contracts import load_contract
from st_common.history.snapshots import snapshots
from st_common.history.stored import FILTERED, fixes
from st_common.position import position_of, segment_of
from st_common.tables.pruning import Filters


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """One fix, and where it stands in the log.

    Attributes:
        object: the object's id.
        segment: the segment of the log.
        row: its row in there.
        event_ts: its time, UTC.
        x: longitude, or the first coordinate of the plane.
        y: latitude, or the second one.
        gone: it says that the object has left.
        attributes: by name, those that the stream declares; None where the record had none.
    """

    object: str
    segment: int
    row: int
    event_ts: datetime
    x: float
    y: float
    gone: bool
    attributes: dict[str, Any]

    @property
    def position(self) -> int:
        """Its position in the log."""
        return position_of(self.segment, self.row)


def fix_of(home: Home, stream: str, name: str, event_ts: datetime) -> Fix | None:
    """The fix of an object at an event time, among those that were not filtered.

    Args:
        home: where the tables lie.
        stream: the stream.
        name: the object's id.
        event_ts: its exact time.

    Returns:
        The first in the log when there are several; None when none is archived (yet).
    """
    fixes = _rows(home, stream, [("event_ts", "=", event_ts), ("object", "=", name)])
    return min(fixes, key=lambda fix: fix.position, default=None)


def fix_at(
    home: Home,
    stream: str,
    name: str,
    at: datetime,
    before: int,
    *,
    late_us: int | None = None,
) -> Fix | None:
    """The last fix that counted of an object at a tick.

    What stands before the newest snapshot is not read, unless the object said nothing since.

    Args:
        home: where the tables lie.
        stream: the stream.
        name: the object's id.
        at: the tick: event times up to then count.
        before: only fixes in the log before this position.
        late_us: a fix does not count that came when a fix before it in the log was newer by more: the stream's
            lateness, or without one its silence. None: each counts.

    Returns:
        Of several fixes of one time the first in the log; None when there was none, or none is archived (yet).
    """
    usable = [
        each
        for each in snapshots(home, stream)
        if each.position <= before and each.from_ts <= at
    ]
    # First what came after the newest snapshot; the whole log only when the object said nothing since.
    starts = [segment_of(usable[-1].position), 0] if usable else [0]
    for start in starts:
        bounds: Filters = [
            ("event_ts", "<=", at),
            ("object", "=", name),
            ("segment", ">=", start),
        ]
        rows = _rows(home, stream, [*bounds, ("segment", "<=", segment_of(before))])
        fixes = [fix for fix in rows if fix.position < before]
        # Newest first; of one time the first in the log.
        fixes.sort(key=lambda fix: fix.position)
        fixes.sort(key=lambda fix: fix.event_ts, reverse=True)
        for fix in fixes:
            if late_us is None or not _is_late(home, stream, fix, late_us):
                return fix
    return None


def _is_late(home: Home, stream: str, fix: Fix, late_us: int) -> bool:
    """Whether a fix before it in the log was newer by more than that."""
    passed = fix.event_ts + timedelta(microseconds=late_us)
    newer = ("event_ts", ">", passed)
    return len(fixes(home, stream, 0, fix.position, (), newer, accepted=False)) > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    """Fixes that a position filter took out (SPEC X11).

    Attributes:
        count: how many.
        fix: the newest of them.
        reason: why that one was filtered.
        value: what was too much or too little in it: metres, or metres per second.
    """

    count: int
    fix: Fix
    reason: str
    value: float


def filtered_since(
    home: Home, stream: str, name: str, *, after: datetime | None, at: datetime | None
) -> Filtered | None:
    """What a position filter took out of an object's fixes; None when nothing was.

    Args:
        home: where the tables lie.
        stream: the stream.
        name: the object's id.
        after: only fixes behind this event time; None: from the beginning.
        at: only fixes up to this event time; None: to the end.
    """
    bounds: Filters = [("object", "=", name)]
    bounds += [("event_ts", ">", after)] if after is not None else []
    bounds += [("event_ts", "<=", at)] if at is not None else []
    filtered = [one for one in _records(home, stream, bounds) if one.get(FILTERED)]
    if not filtered:
        return None
    newest = max(
        filtered, key=lambda one: (one["event_ts"], -one["segment"], -one["row"])
    )
    return Filtered(
        count=len(filtered),
        fix=_as_fix(newest),
        reason=newest[FILTERED],
        value=newest["filtered_value"],
    )


def _rows(home: Home, stream: str, filters: Filters) -> list[Fix]:
    """The fixes that were not filtered."""
    records = _records(home, stream, filters)
    return [_as_fix(record) for record in records if record.get(FILTERED) is None]


def _records(home: Home, stream: str, filters: Filters) -> list[dict[str, Any]]:
    path = home.table("positions", stream)
    if not tables.exists(path):
        return []
    records: list[dict[str, Any]] = tables.read(path, filters=filters).to_pylist()
    return records


def _as_fix(record: dict[str, Any]) -> Fix:
    own = {*load_contract("positions").arrow_schema().names, *FILTER_COLUMNS}
    known = ("object", "segment", "row", "event_ts", "x", "y", "gone")
    return Fix(
        **{key: record[key] for key in known},
        attributes={key: value for key, value in record.items() if key not in own},
    )
