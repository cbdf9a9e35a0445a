"""The rejected records of a stream, for people: the first of each reason, and how many there are."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc

from st_common.config.home import Home
from st_common.rejects.replay import checked_reasons, rejects_of

COLUMNS = ("segment", "row", "line", "reason", "raw", "arrival_ts")
_NTH = """
    SELECT * EXCLUDE nth FROM (
        SELECT *, row_number() OVER (PARTITION BY reason ORDER BY segment, "row") AS nth FROM rejected)
    WHERE nth <= $most ORDER BY segment, "row"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Rejected records.

    Attributes:
        records: `COLUMNS`, in the order of the log.
        counts: how many there are by reason, those with most first; also those that are not among the records.
    """

    records: pa.Table
    counts: dict[str, int]


def listed(
    home: Home,
    stream: str,
    *,
    reasons: Sequence[str] = (),
    day: date | None = None,
    most: int | None = None,
) -> Listed:
    """The rejected records of a stream.

    Args:
        home: where the table lies.
        stream: the stream.
        reasons: only these; all, when there is none.
        day: only those that came on this day (UTC).
        most: so many of each reason, the first ones; None: all.

    Raises:
        ConfigError: there is no such reason.
    """
    checked_reasons(reasons)
    rows = rejects_of(home, stream, columns=COLUMNS, reasons=reasons, day=day)
    counts = {
        str(each["values"]): int(each["counts"])
        for each in pc.value_counts(rows["reason"]).to_pylist()
    }
    by_count = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    rows = rows.sort_by([("segment", "ascending"), ("row", "ascending")])
    if most is not None:
        rows = _first_of_each(rows, most)
    return Listed(records=rows, counts=dict(by_count))


def _first_of_each(rows: pa.Table, most: int) -> pa.Table:
    from st_common.asking import asking

    with asking() as connection:
        connection.register("rejected", rows)
        return connection.sql(_NTH, params={"most": most}).to_arrow_table()
