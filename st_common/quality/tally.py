"""What happened to the records of one day of a stream, from its tables: all that arrived is accounted for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.asking import asking
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.history.stored import FILTERED, TOO_LATE
from st_common.operations.history import days_of
from st_common.quality.engines import LOCAL, Engine
from st_common.rejects.replay import rejects_of

_COLUMNS = ["event_date", "segment", "row", "event_ts", "object"]

_BY_OBJECT = """
    SELECT count(*) FILTER (late), count(*) FILTER (NOT late AND event_ts = before)
    FROM (SELECT *, coalesce(too_late, event_ts < before, false) AS late
          FROM (SELECT *, max(event_ts) OVER (PARTITION BY object ORDER BY segment, row
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM fixes))
    WHERE event_date = $day"""
_BY_CLOCK = """
    SELECT count(*) FILTER (late), count(*) FILTER (NOT late) - count(DISTINCT (object, event_ts)) FILTER (NOT late)
    FROM (SELECT event_date, object, event_ts, coalesce(too_late, event_ts < max(event_ts) OVER (ORDER BY segment, row
              ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) - to_microseconds($lateness_us), false) AS late
          FROM fixes)
    WHERE event_date = $day"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The records of one day (UTC) of one stream.

    A reject has no event time that could be believed: it counts to the day on which it came, by the wall clock.

    Attributes:
        fixes: those with an event time in the day, the late, double and filtered ones included.
        objects: how many objects they are of.
        late: stored, but too late to change an answer (`too_late`).
        double: stored, but with the time of an earlier fix of their object.
        rejects: by reason.
        changes: rows of `changes` with an event time in the day.
        filtered: by reason, stored fixes that a position filter took out.
    """

    fixes: int
    objects: int
    late: int
    double: int
    rejects: Mapping[str, int]
    changes: int
    filtered: Mapping[str, int] = field(default_factory=dict)


UNCOUNTED = Tally(fixes=0, objects=0, late=0, double=0, rejects={}, changes=0)
"""Of a day whose tables cannot be read."""


def _later(path: Path, own: pa.Table, day: date) -> pa.Table:
    """Fixes of later days that came before the last of a day: only they can have made one of its own late.

    Where each of its fixes says whether it was late, nobody asks: no rows.
    """
    if not own[TOO_LATE].null_count:
        return own.slice(0, 0)
    last = pc.max(own["segment"]).as_py()
    rows = tables.read(
        path,
        columns=_COLUMNS,
        filters=[("event_date", ">", day), ("segment", "<=", last)],
    )
    return _with_marks(rows)


def _with_marks(fixes: pa.Table) -> pa.Table:
    """Fixes with `too_late`, which those of before contract 2.1.0 lack."""
    if TOO_LATE in fixes.column_names:
        return fixes
    return fixes.append_column(TOO_LATE, pa.nulls(len(fixes), pa.bool_()))


def tally(
    home: Home, stream: StreamSettings, day: date, engine: Engine = LOCAL
) -> Tally:
    """Counts one day of a stream.

    Late are the fixes that their engine found so. Those that were stored before contract 2.1.0 do not say it, and are
    judged against the order of the log: without lateness against the earlier ones of their object, with lateness
    against the clock. (Clock rows, which capture writes while a feed is idle, are not in the tables; a fix of then that
    only such a row made late counts as on time here.)

    Args:
        home: where the tables lie.
        stream: the settings; its lateness counts here.
        day: the day (UTC).
        engine: reads and counts the fixes.
    """
    rejects = rejects_of(home, stream.name, columns=["reason"], day=day)
    counts: dict[str, Any] = {
        "rejects": _counted(rejects["reason"]),
        "changes": _changes(home, stream.name, day),
    }
    path = home.table("positions", stream.name)
    if day not in days_of(path):
        return Tally(fixes=0, objects=0, late=0, double=0, **counts)
    names = tables.dataset(path).schema.names
    columns = [*_COLUMNS, *(name for name in (TOO_LATE, FILTERED) if name in names)]
    (of_fixes,) = engine.each_part(
        path,
        columns,
        [("event_date", "=", day)],
        partial(_of_fixes, path, day, round(stream.lateness_s * 1e6)),
        label=f"positions/{stream.name}",
        whole=True,
    )
    return Tally(**of_fixes, **counts)


def _of_fixes(path: Path, day: date, lateness_us: int, own: pa.Table) -> dict[str, Any]:
    """What a tally says of the fixes of a day."""
    own = _with_marks(own)
    columns = [*_COLUMNS, TOO_LATE]
    together = pa.concat_tables(
        [own.select(columns), _later(path, own, day).select(columns)]
    )
    late, double = _late_and_double(together, day, lateness_us)
    return {
        "fixes": len(own),
        "objects": pc.count_distinct(own["object"]).as_py(),
        "late": late,
        "double": double,
        "filtered": _counted(
            own[FILTERED].drop_null() if FILTERED in own.column_names else None
        ),
    }


def _counted(reasons: pa.ChunkedArray | None) -> dict[str, int]:
    """How many there are of each reason, by name."""
    value_counts = reasons.value_counts().to_pylist() if reasons is not None else []
    value_counts.sort(key=lambda each: str(each["values"]))
    return {each["values"]: each["counts"] for each in value_counts}


def _late_and_double(fixes: pa.Table, day: date, lateness_us: int) -> tuple[int, int]:
    with asking() as connection:
        connection.register("fixes", fixes)
        given = {"day": day} | ({"lateness_us": lateness_us} if lateness_us else {})
        row = connection.execute(
            _BY_CLOCK if lateness_us else _BY_OBJECT, given
        ).fetchone()
    return (int(row[0]), int(row[1])) if row else (0, 0)


def _changes(home: Home, stream: str, day: date) -> int:
    path = home.table("changes", stream)
    if not tables.exists(path):
        return 0
    of_day = pc.field("event_date") == day
    return int(tables.dataset(path).count_rows(filter=of_day))
