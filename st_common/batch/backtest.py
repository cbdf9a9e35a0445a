"""What queries would have told on days that are closed: counts for each day, examples, and two versions side by side.

queries        v1 of `depot`   v2 of `depot`        both run at once, so the fixes are read once
1st            40 visits       38 visits            38 the same, 2 of v1 alone
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import date, timedelta
from time import monotonic

import duckdb
import pyarrow as pa

from st_common.asking import opened
from st_common.batch.cores import ahead, fold_on
from st_common.batch.days import check_closed
from st_common.batch.folding import Fold
from st_common.batch.ordered import count_fixes
from st_common.batch.reprocess import BatchArm
from st_common.batch.trial import Trial
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.errors import ConfigError, QueryError
from st_common.history.purged import kept_snapshot
from st_common.history.told import begin_of
from st_common.history.visits import MEMBERS, fold_visits, members_at_end
from st_common.operations.days import open_since
from st_common.operations.history import days_of
from st_common.query.plan import Plan

_DAY = timedelta(days=1)
_NEW, _OLD = "new/", "old/"  # begin the names of queries while they run
_EXAMPLES = 5  # of each query, and of each kind of difference

_SCHEMA = """
SET TimeZone = 'UTC';
CREATE TABLE daily (event_date DATE, query VARCHAR, is_new BOOLEAN, told BIGINT, visits BIGINT, objects BIGINT,
    hours DOUBLE);
CREATE TABLE seen (query VARCHAR, is_new BOOLEAN, object VARCHAR, UNIQUE (query, is_new, object));
CREATE TABLE compared (event_date DATE, query VARCHAR, same BIGINT, only_new BIGINT, only_old BIGINT);
CREATE TABLE examples (query VARCHAR, kind VARCHAR, object VARCHAR, partner VARCHAR, from_ts TIMESTAMPTZ,
    to_ts TIMESTAMPTZ, cause_in VARCHAR, cause_out VARCHAR);
"""
# Whoever is in when a day begins has come before it, and is no visit more.
_DAILY = """
INSERT INTO daily
SELECT $day, substr(query, 5), query LIKE 'new/%', coalesce(any_value(told), 0),
    count(object) FILTER (cause_in <> 'day'), count(DISTINCT object),
    coalesce(sum(epoch(to_ts) - epoch(from_ts)) / 3600, 0)
FROM asked LEFT JOIN (SELECT query, count(*) AS told FROM changes GROUP BY query) USING (query)
LEFT JOIN visits USING (query) GROUP BY query"""
_SEEN = "INSERT OR IGNORE INTO seen SELECT DISTINCT substr(query, 5), query LIKE 'new/%', object FROM visits"
_BOTH = """
CREATE OR REPLACE TEMP TABLE beside AS
WITH counted AS (
    SELECT substr(query, 5) AS query, object, partner, from_ts, to_ts, cause_in, cause_out,
        count(*) FILTER (query LIKE 'new/%') AS new, count(*) FILTER (query LIKE 'old/%') AS old
    FROM visits GROUP BY ALL
)
SELECT * FROM counted WHERE query IN (SELECT query FROM pairs)"""
_COMPARED = """
INSERT INTO compared
SELECT $day, query, coalesce(sum(least(new, old)), 0), coalesce(sum(greatest(new - old, 0)), 0),
    coalesce(sum(greatest(old - new, 0)), 0)
FROM pairs LEFT JOIN beside USING (query) GROUP BY query"""
_EXAMPLES_OF_DAY = """
INSERT INTO examples
WITH told AS (
    SELECT substr(query, 5) AS query, 'told' AS kind, object, partner, from_ts, to_ts, cause_in, cause_out
    FROM visits WHERE query LIKE 'new/%'
    UNION ALL SELECT query, CASE WHEN new > old THEN 'only new' ELSE 'only old' END, object, partner, from_ts, to_ts,
        cause_in, cause_out FROM beside WHERE new <> old
), placed AS (
    SELECT *, row_number() OVER (PARTITION BY query, kind ORDER BY from_ts, object, partner, to_ts) AS place FROM told
)
SELECT * EXCLUDE (place, had) FROM placed
LEFT JOIN (SELECT query, kind, count(*) AS had FROM examples GROUP BY ALL) USING (query, kind)
WHERE place + coalesce(had, 0) <= $most"""

_TOTALS = """
WITH totals AS (
    SELECT query, sum(told) FILTER (is_new) AS told, sum(visits) FILTER (is_new) AS visits,
        sum(hours) FILTER (is_new) AS hours, sum(visits) FILTER (NOT is_new) AS visits_old FROM daily GROUP BY query
), objects AS (
    SELECT query, count(*) FILTER (is_new) AS objects, count(*) FILTER (NOT is_new) AS objects_old
    FROM seen GROUP BY query
), differences AS (
    SELECT query, sum(same) AS same, sum(only_new) AS only_new, sum(only_old) AS only_old FROM compared GROUP BY query
)
SELECT query, told::BIGINT AS told, visits::BIGINT AS visits,
    CASE WHEN visits IS NOT NULL THEN coalesce(objects, 0) END AS objects, hours, visits_old::BIGINT AS visits_old,
    CASE WHEN visits_old IS NOT NULL THEN coalesce(objects_old, 0) END AS objects_old, same::BIGINT AS same,
    only_new::BIGINT AS only_new, only_old::BIGINT AS only_old
FROM totals LEFT JOIN objects USING (query) LEFT JOIN differences USING (query) ORDER BY query"""
_DAYS = """
SELECT event_date, query, max(told) FILTER (is_new) AS told, max(visits) FILTER (is_new) AS visits,
    max(objects) FILTER (is_new) AS objects, max(hours) FILTER (is_new) AS hours,
    max(visits) FILTER (NOT is_new) AS visits_old, any_value(same) AS same, any_value(only_new) AS only_new,
    any_value(only_old) AS only_old
FROM daily LEFT JOIN compared USING (event_date, query) GROUP BY event_date, query ORDER BY event_date, query"""
_EXAMPLES_SHOWN = (
    "SELECT * FROM examples ORDER BY query, kind, from_ts, object, partner, to_ts"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtest:
    """What queries would have told.

    Attributes:
        stream: the name of the stream.
        since: the first day (UTC).
        until: the day behind the last.
        fixes: how many there are of these days.
        seconds: how long it took.
        totals: a row for each query, by name: `told` (changes), `visits` (stays that began), `objects`, `hours` (of all
            stays together); of the older version `visits_old`, `objects_old`; of both, piece by piece as days cut
            stays, `same`, `only_new`, `only_old`. What there is no version of is null.
        days: the same for each day and query, but for `objects_old`.
        examples: the first visits of each query (`kind` told), and of those that only one version has (`only new`,
            `only old`): `query`, `kind`, `object`, `partner`, `from_ts`, `to_ts`, `cause_in`, `cause_out`.
    """

    stream: str
    since: date
    until: date
    fixes: int
    seconds: float
    totals: pa.Table
    days: pa.Table
    examples: pa.Table

    @property
    def is_compared(self) -> bool:
        """Whether there is an older version of anything."""
        return bool(self.totals["visits_old"].null_count < len(self.totals))


def backtest(
    home: Home,
    stream: StreamSettings,
    queries: Mapping[str, Plan],
    *,
    days: int,
    against: Mapping[str, Plan] | None = None,
    cores: int = 1,
    folding: AbstractContextManager[Fold] | None = None,
) -> Backtest:
    """What queries would have told on the last days that are closed, had they been registered when these began.

    Fixes count in the order of their event times, also those that came too late for the engine. What was before
    the first of the days is not known to the queries: who has not reported since is not in. Nothing is written or
    delivered.

    Args:
        home: where log and tables lie.
        stream: the settings of the stream.
        queries: plans by name.
        days: how many days; fewer where the stream is younger.
        against: plans of older versions by name; None: none.
        cores: so many processes fold; 1: this one. What comes of it is the same.
        folding: gives what folds in the place of these processes, as Spark.

    Raises:
        ConfigError: the stream never ran, no day is closed, or there is no day to be looked at.
        QueryError: a query cannot be judged on the fixes.
        FairwayError: fixes of these days were purged.
        LogError: a segment is missing or damaged.
    """
    started_s = monotonic()
    old = against or {}
    plans = {_NEW + name: plan for name, plan in queries.items()}
    plans |= {_OLD + name: plan for name, plan in old.items()}
    arm = BatchArm.of(home, stream, Trial(name="backtest", queries=plans))
    since, until = _days_of(home, stream.name, days)
    fixes = count_fixes(home, stream.name, since, until - _DAY)
    is_here = folding is None and cores == 1
    with opened() as counted, folding or fold_on(cores) as fold:
        counted.execute(_SCHEMA)
        asked = pa.table({"query": list(plans)})
        pairs = pa.table({"query": pa.array([*(queries.keys() & old)], pa.string())})
        counted.register("asked", asked).register("pairs", pairs)
        told = _told(replace(arm, fold=fold), since, until)
        for day in told if is_here else ahead(told):
            _count(counted, day)
        return Backtest(
            stream=stream.name,
            since=since,
            until=until,
            fixes=fixes,
            seconds=round(monotonic() - started_s, 3),
            totals=counted.sql(_TOTALS).to_arrow_table(),
            days=counted.sql(_DAYS).to_arrow_table(),
            examples=counted.sql(_EXAMPLES_SHOWN).to_arrow_table(),
        )


def _days_of(home: Home, stream: str, count: int) -> tuple[date, date]:
    """The last closed days, as far back as there are fixes; the day behind the last."""
    until, known = open_since(home, stream), days_of(home.table("positions", stream))
    if until is None or not known:
        raise ConfigError(
            f"stream {stream!r} has no closed day yet",
            hint="engine and archive must have come past the end of a day",
        )
    since = max(until - count * _DAY, known[0])
    check_closed(home, stream, since, until)
    before = begin_of(since) - timedelta(microseconds=1)
    kept_snapshot(home, stream, "positions", before)
    return since, until


@dataclass(frozen=True, slots=True, kw_only=True)
class _Day:
    """What the queries tell of a day: its changes, and the visits that these come to."""

    day: date
    changes: pa.Table
    visits: pa.Table


def _told(arm: BatchArm, since: date, until: date) -> Iterator[_Day]:
    days = (until - since).days
    edges = [begin_of(since + day * _DAY) for day in range(days + 1)]
    members = MEMBERS.empty_table()
    for told in arm.told(arm.border_at(since), edges):
        for failure in told.failures:
            name = failure.query.partition("/")[2]
            raise QueryError(f"query {name!r} cannot be judged: {failure.why}")
        begin, end = told.since, told.until
        visits = fold_visits(told.changes, members, since=begin, until=end)
        yield _Day(day=begin.date(), changes=told.changes, visits=visits)
        members = members_at_end(visits, end)


def _count(counted: duckdb.DuckDBPyConnection, told: _Day) -> None:
    counted.register("changes", told.changes.select(["query"]))
    counted.register("visits", told.visits)
    counted.execute(_DAILY, {"day": told.day})
    counted.execute(_SEEN)
    counted.execute(_BOTH)
    counted.execute(_COMPARED, {"day": told.day})
    counted.execute(_EXAMPLES_OF_DAY, {"most": _EXAMPLES})
