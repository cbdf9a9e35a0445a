"""Whether the days of changes were judged to be good: where a delivery asks for it, no others go out (SPEC C8).

day          1 kept   2 broken   3 not judged yet
changes      a b      c d        e
delivered    a b      -> held, until day 2 keeps its promises after a mend, or is released by hand
"""

from datetime import UTC, date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.config.home import Home
from st_common.quality.finding import DAY_IS_CLOSED, data_label
from st_common.quality.record import release_label

_COLUMNS = ["date", "table", "rule", "passed", "severity"]


class Gate:
    """Knows which days of a stream may go; the table `quality` is read again when it has changed.

    Args:
        home: where the table lies.
        stream: whose days.
    """

    def __init__(self, home: Home, stream: str) -> None:
        self._path, self._stream = home.table("quality"), stream
        self._version: int | None = None
        self._good: set[date] = set()
        self._broken: set[date] = set()

    def open_rows(self, rows: pa.Table) -> int:
        """How many of the first rows may go: up to the first of a day that was not judged, or was broken.

        Args:
            rows: with `event_ts`, in the order in which they are delivered.
        """
        self._look()
        good = pa.array(sorted(self._good), pa.date32())
        may_go = pc.is_in(_days(rows), value_set=good).to_numpy(zero_copy_only=False)
        return len(rows) if may_go.all() else int(np.argmin(may_go))

    def why_held(self, rows: pa.Table) -> str:
        """Why the first of some rows is held, for people."""
        day = _days(rows.slice(0, 1))[0].as_py()
        if day in self._broken:
            way = f"fairway quality release {self._stream} --day {day}"
            return f"{day} breaks its contract; mend it, or `{way}`"
        return f"{day} was not judged yet, or is open"

    def _look(self) -> None:
        version = tables.version(self._path)
        if version is None or version == self._version:
            return
        rows = tables.read(self._path, columns=_COLUMNS)
        of_stream = pc.match_substring_regex(rows["table"], f"/{self._stream}$")
        rows = rows.filter(of_stream)
        closed = _dates(rows, _is_kept(rows, data_label(self._stream), DAY_IS_CLOSED))
        released = _dates(rows, pc.equal(rows["table"], release_label(self._stream)))
        is_breach = pc.and_(
            pc.invert(rows["passed"]), pc.equal(rows["severity"], "error")
        )
        self._broken = _dates(rows, is_breach) - released
        self._good = (closed | released) - self._broken
        self._version = version


def _is_kept(rows: pa.Table, table: str, rule: str) -> pa.ChunkedArray:
    is_rule = pc.and_(pc.equal(rows["table"], table), pc.equal(rows["rule"], rule))
    return pc.and_(is_rule, rows["passed"])


def _dates(rows: pa.Table, which: pa.ChunkedArray) -> set[date]:
    return set(rows["date"].filter(which).to_pylist())


def _days(rows: pa.Table) -> pa.Array:
    """The day (UTC) of each row."""
    days = rows["event_ts"].cast(pa.timestamp("us", str(UTC))).cast(pa.date32())
    return days.combine_chunks()
