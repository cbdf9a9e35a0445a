"""Who was in an answer at a time of a day that was processed again: from `visits`, with what was told of them.

told      a since 10:00, value 3      b since 10:20                 at 11:00
visits    a 10:00 - 12:00             b 10:10 - 10:40  (late)
answer    a since 10:00, value 3
"""

from datetime import UTC, datetime

import pyarrow as pa

from st_common import tables
from st_common.asking import asking
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.history.fold import MEMBERS
from st_common.history.told import days_again

# Pieces of one stay follow each other without a gap, and all but the first have the cause `day`. A stay that both arms
# have alike is shown with what was told last of it up to the time; of any other nobody told what it had in between.
_MEMBERS = """
WITH pieces AS (
    SELECT *, cause_in <> 'day' OR from_ts IS DISTINCT FROM lag(to_ts) OVER pair AS begins FROM visits
    WINDOW pair AS (PARTITION BY query_version, object, partner ORDER BY from_ts, to_ts)
), stays AS (
    SELECT *, count(*) FILTER (begins) OVER (PARTITION BY query_version, object, partner ORDER BY from_ts, to_ts
                                             ROWS UNBOUNDED PRECEDING) AS stay FROM pieces
), inside AS (
    SELECT *, min(from_ts) OVER (PARTITION BY query_version, object, partner, stay) AS since_ts FROM stays
), present AS (
    SELECT * FROM inside WHERE from_ts <= $at AND (to_ts > $at OR to_ts IS NULL) AND event_date = $day
)
SELECT p.query, p.object, p.partner, p.query_version, t.position, coalesce(t.since_ts, p.since_ts) AS since_ts,
       CASE WHEN t.object IS NULL THEN p.value ELSE t.value END AS value,
       CASE WHEN t.object IS NULL THEN p.fields ELSE t.fields END AS fields,
       CASE WHEN t.object IS NULL THEN p.from_x ELSE t.x END AS x,
       CASE WHEN t.object IS NULL THEN p.from_y ELSE t.y END AS y
FROM present p LEFT JOIN told t ON t.query_version = p.query_version AND t.object = p.object
    AND t.partner IS NOT DISTINCT FROM p.partner
    AND CASE WHEN p.cause_in = 'day' THEN t.since_ts < p.from_ts ELSE t.since_ts = p.from_ts END
    AND NOT EXISTS (
        SELECT 1 FROM disputed d WHERE d.query_version = p.query_version AND d.object = p.object
        AND d.partner IS NOT DISTINCT FROM p.partner
        AND d.from_ts = p.from_ts AND d.to_ts IS NOT DISTINCT FROM p.to_ts)"""


def corrected(
    home: Home, stream: str, query: str, at: datetime, told: pa.Table
) -> pa.Table | None:
    """Who was in the answer of a query at a time, late fixes too, on a day that was processed again.

    Args:
        home: where the tables lie.
        stream: the name of the stream.
        query: by its registered name.
        at: the time, with a time zone.
        told: the answer of then as it was told, as rows of `MEMBERS`.

    Returns:
        Rows of `MEMBERS`, in no order. A member whose stay was told otherwise, or not at all, has the last `value` and
        `fields` of its day, and no `position`; its `since_ts` is the earliest time since which days that were processed
        again have it in without a gap. None for a day that was not processed again.
    """
    day = at.astimezone(UTC).date()
    if day not in days_again(home, stream):
        return None
    of_query = [("query", "=", query), ("event_date", "<=", day)]
    disputed = [("query", "=", query), ("event_date", "=", day), ("arm", "=", "batch")]
    with asking() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("told", told)
        connection.register("visits", _rows(home, stream, "visits", of_query))
        connection.register("disputed", _rows(home, stream, "differences", disputed))
        given = {"at": at, "day": day}
        return connection.sql(_MEMBERS, params=given).to_arrow_table().cast(MEMBERS)


def _rows(
    home: Home, stream: str, table: str, filters: list[tuple[str, str, object]]
) -> pa.Table:
    path, contract = home.table(table, stream), load_contract(table)
    if not tables.exists(path):
        return contract.empty_table()
    return tables.read(path, filters=filters, contract=contract)
