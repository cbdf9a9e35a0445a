"""Visits: changes as stays, from when to when each member was in an answer, cut where days meet.

changes of truck1 in `depot`         visits
+ 1st, 22:00  enter                  1st  22:00 - 24:00  enter .. day
- 3rd, 01:00  leave                  2nd  00:00 - 24:00  day   .. day
                                     3rd  00:00 - 01:00  day   .. leave
"""

from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from st_common.asking import asking
from st_common.contracts import load_contract

DAY = "day"
"""The cause of a row that begins or ends only because the day does."""

TOLD = "told"
"""The run of visits that are folded from what engines told."""

MEMBERS = pa.schema(
    [
        ("query", pa.string()),
        ("query_version", pa.int32()),
        ("object", pa.string()),
        ("partner", pa.string()),
        ("value", pa.float64()),
        ("fields", pa.string()),
    ]
)
"""Who is in at a time, with its last value and fields."""

ORDER = (
    "query",
    "query_version",
    "object",
    "partner",
    "from_ts",
    "to_ts",
    "cause_in",
    "cause_out",
    "value",
    "fields",
)
"""The columns by which visits are sorted."""

# A stay is named by the place of the change that brought it in. What changes tell of a member while it is in goes into
# `said`, day by day; a stay has a piece for each day that it touches, and what was said goes on from piece to piece.
_VISITS = """
WITH placed AS (
    SELECT *, row_number() OVER (ORDER BY position, seq) AS place FROM {changes}
), told AS (
    SELECT *, max(place) FILTER (sign > 0) OVER pair AS stay, max(place) FILTER (sign < 0) OVER pair AS ended
    FROM placed WINDOW pair AS (PARTITION BY query, query_version, object, partner ORDER BY place)
), ends AS (
    SELECT stay, arg_min(cause, place) AS cause_left, arg_min(event_ts, place) AS left_ts,
           arg_min_null(x, place) AS left_x, arg_min_null(y, place) AS left_y
    FROM told WHERE sign < 0 AND stay IS NOT NULL GROUP BY stay
), stays AS (
    SELECT p.place AS stay, p.query, p.query_version, p.object, p.partner, p.cause, p.event_ts AS came_ts,
           p.x AS came_x, p.y AS came_y, e.left_x, e.left_y,
           CASE WHEN e.left_ts < p.event_ts THEN p.event_ts ELSE e.left_ts END AS left_ts, e.cause_left
    FROM placed p LEFT JOIN ends e ON e.stay = p.place WHERE p.sign > 0
), pieces AS (
    SELECT *, begins + INTERVAL 1 DAY AS ends, date_trunc('day', left_ts) = begins AS is_last
    FROM (SELECT *, unnest(generate_series(date_trunc('day', came_ts),
                    coalesce(left_ts, {until} - INTERVAL 1 MICROSECOND), INTERVAL 1 DAY)) AS begins FROM stays)
), said AS (
    SELECT stay, date_trunc('day', greatest(t.event_ts, s.came_ts)) AS begins,
           arg_max(t.value, t.place) FILTER (t.value IS NOT NULL) AS value,
           arg_max(t.fields, t.place) FILTER (t.fields IS NOT NULL) AS fields
    FROM told t JOIN stays s USING (stay)
    WHERE (t.value IS NOT NULL OR t.fields IS NOT NULL) AND (t.ended IS NULL OR t.ended < stay) GROUP BY ALL
)
SELECT begins::DATE AS event_date, query_version, greatest(came_ts, begins) AS from_ts,
       CASE WHEN is_last THEN left_ts WHEN left_ts IS NOT NULL OR ends <= {until} THEN ends END AS to_ts,
       last_value(value IGNORE NULLS) OVER so_far AS value, query, object, partner,
       CASE WHEN begins <= came_ts THEN cause ELSE 'day' END AS cause_in,
       CASE WHEN is_last THEN cause_left WHEN left_ts IS NOT NULL OR ends <= {until} THEN 'day' END AS cause_out,
       last_value(fields IGNORE NULLS) OVER so_far AS fields,
       CASE WHEN begins <= came_ts THEN came_x END AS from_x, CASE WHEN begins <= came_ts THEN came_y END AS from_y,
       CASE WHEN is_last THEN left_x END AS to_x, CASE WHEN is_last THEN left_y END AS to_y
FROM pieces LEFT JOIN said USING (stay, begins) WINDOW so_far AS (PARTITION BY stay ORDER BY begins)"""


def visits_select(changes: str, until: str) -> str:
    """The SELECT of DuckDB that folds changes to visits: the columns of the contract `visits` but for `run`.

    Args:
        changes: the name of a view with the columns of `changes`, as SQL.
        until: an SQL expression for the time before which all changes are known: members stay in up to then.
    """
    return _VISITS.format(changes=changes, until=until)


def fold_visits(
    changes: pa.Table,
    members: pa.Table | None = None,
    *,
    since: datetime,
    until: datetime,
    run: str = TOLD,
) -> pa.Table:
    """The visits that the changes of an interval come to.

    One who comes and goes at the same time has a visit without length. Where a change that takes a member out has an
    earlier event time than the one that brought it in (fixes out of order, without lateness), so has its visit.

    Args:
        changes: those with event times from `since` to before `until`, with the columns of the contract `changes`, in
            any order: (position, seq) orders them.
        members: who was in when the interval began, with the columns of `MEMBERS`; None: nobody. They came in at
            `since`, with the cause `day`.
        since: the beginning of a day, UTC.
        until: the beginning of a later day: who is still in then went out there, with the cause `day`.
        run: goes into each row.

    Returns:
        Rows of the contract `visits`, sorted by `ORDER`, so that the same changes give the same table.
    """
    rows = needed(changes)
    if members is not None:
        rows = pa.concat_tables([came_in(members, since), rows])
    with asking() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("changes", rows)
        connection.execute("SET VARIABLE until = ?", [until])
        select = visits_select("changes", "getvariable('until')")
        folded = connection.sql(select).to_arrow_table()
    folded = folded.append_column("run", pa.repeat(pa.scalar(run), len(folded)))
    return sorted_visits(folded)


def sorted_visits(visits: pa.Table) -> pa.Table:
    """Rows with the columns of the contract `visits` in their one order, which is by `ORDER`."""
    schema = load_contract("visits").arrow_schema()
    order = [(name, "ascending") for name in ORDER]
    return visits.select(schema.names).cast(schema).sort_by(order).combine_chunks()


def members_at_end(visits: pa.Table, until: datetime) -> pa.Table:
    """Who is still in at the end of an interval, as rows of `MEMBERS`.

    Args:
        visits: of the interval, as `fold_visits` gives them.
        until: its end.
    """
    stays = pc.and_(
        pc.equal(visits["cause_out"], DAY), pc.equal(visits["to_ts"], until)
    )
    return visits.filter(stays).select(MEMBERS.names).cast(MEMBERS)


NEEDED = (
    "query",
    "query_version",
    "object",
    "partner",
    "position",
    "seq",
    "sign",
    "event_ts",
    "value",
    "cause",
    "fields",
    "x",
    "y",
)
"""What visits need of changes."""


def needed(changes: pa.Table) -> pa.Table:
    """The columns of changes that `visits_select` needs, `NEEDED`."""
    schema = load_contract("changes").arrow_schema()
    return pa.table(
        {name: changes[name].cast(schema.field(name).type) for name in NEEDED}
    )


def came_in(members: pa.Table, since: datetime | None = None) -> pa.Table:
    """Members as changes before all others, by which they came in.

    Args:
        members: with the columns of `MEMBERS`, and `since_ts` where `since` is not given.
        since: when they came in; None: each at its `since_ts`.

    Returns:
        What `visits_select` needs of changes; the cause is `day`. Where members were at `since` nobody has told.
    """
    schema = load_contract("changes").arrow_schema()
    same = {"position": -1, "seq": 0, "sign": 1, "cause": DAY}
    if since is None:
        members = members.drop_columns("position").rename_columns(
            {"since_ts": "event_ts"}
        )
    else:
        same |= {"event_ts": since, "x": None, "y": None}
    columns = {
        name: pa.repeat(pa.scalar(same[name], schema.field(name).type), len(members))
        if name in same
        else members[name].cast(schema.field(name).type)
        for name in NEEDED
    }
    return pa.table(columns)
