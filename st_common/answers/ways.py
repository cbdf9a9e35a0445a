"""The way of one object: its fixes between two times, from the archive and what the log has behind it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.answers.live_places import LivePlaces, fixes_of
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.history.stored import archived_end
from st_common.history.stored import fixes as stored_fixes
from st_common.log.log import Log
from st_common.log.reader import pieces
from st_common.position import segment_of

_COLUMNS = ("event_ts", "x", "y", "gone")
_TAIL_BYTES = 64 << 20
"""So much of the log is read behind the archive, which is half a minute behind when all is well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Fixes of one object, by event time; arrays of one length n.

    Attributes:
        event_us: int64[n], us UTC.
        x: float64[n], NaN where the object was gone.
        y: likewise.
        count: how many there are; of more than were asked for some are left out, evenly.
    """

    event_us: npt.NDArray[np.int64]
    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]
    count: int


def way_of(
    home: Home,
    stream: StreamSettings,
    live: LivePlaces,
    name: str,
    *,
    since: datetime,
    until: datetime,
    most: int,
) -> Way:
    """The way of an object, without what a position filter took out.

    Behind the archive it is what `live` keeps; where that is not enough, what the log has, and of a stream with a
    filter nothing.

    Args:
        home: where tables and log lie.
        stream: the settings of the stream.
        live: who reads the stream.
        name: the object.
        since: the first time, with a time zone.
        until: the last time.
        most: so many fixes; the first and the last are among them.

    Raises:
        LogError: a segment is missing or damaged.
    """
    parts = [_archived(home, stream.name, name, since, until)]
    behind = _behind(home, stream, live, name)
    parts += [_between(rows, since, until) for rows in behind]
    rows = pa.concat_tables(parts).sort_by([("event_ts", "ascending")])
    which = np.unique(np.linspace(0, max(len(rows) - 1, 0), most).astype(np.int64))
    shown = rows.take(pa.array(which)) if len(rows) else rows
    x, y = (shown[one].to_numpy(zero_copy_only=False) for one in "xy")
    is_gone = shown["gone"].to_numpy(zero_copy_only=False).astype(bool)
    return Way(
        event_us=shown["event_ts"].to_numpy(),
        x=np.where(is_gone, np.nan, x.astype(np.float64)),
        y=np.where(is_gone, np.nan, y.astype(np.float64)),
        count=len(rows),
    )


def _archived(
    home: Home, stream: str, name: str, since: datetime, until: datetime
) -> pa.Table:
    path = home.table("positions", stream)
    if not tables.exists(path):
        return _EMPTY
    wanted = [
        ("object", "=", name),
        ("event_ts", ">=", since),
        ("event_ts", "<=", until),
    ]
    end = archived_end(home, stream)
    rows = stored_fixes(home, stream, 0, end, _COLUMNS, *wanted)
    return rows.select(_COLUMNS).cast(_EMPTY.schema) if len(rows) else _EMPTY


def _behind(
    home: Home, stream: StreamSettings, live: LivePlaces, name: str
) -> Iterator[pa.Table]:
    """The fixes behind the archive: as somebody has just read them, or from the log."""
    end = archived_end(home, stream.name)
    kept = live.behind(end, name)
    if kept is not None:
        yield kept
    elif stream.position_filter is None:
        log = Log(home.log(stream.name))
        segments = log.segments(segment_of(end), max_bytes=_TAIL_BYTES)
        for piece in pieces(log, segments, stream):
            if piece.part is not None:
                rows = fixes_of(piece)
                yield rows.filter(pc.equal(rows["object"], name))


def _between(rows: pa.Table, since: datetime, until: datetime) -> pa.Table:
    since_us, until_us = (round(one.timestamp() * 1e6) for one in (since, until))
    when = pc.field("event_ts")
    is_in = (when >= since_us) & (when <= until_us)
    return rows.filter(is_in).select(_COLUMNS).cast(_EMPTY.schema)


_EMPTY = pa.schema(
    [
        ("event_ts", pa.int64()),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("gone", pa.bool_()),
    ]
).empty_table()
