"""What was told of a day beside what all its fixes say: in what they differ, and why.

told      a in `depot`  10:00 - 12:00
batch     a in `depot`  10:00 - 11:30        a fix of 11:30 came at 12:05, later than the lateness
differences: the first as `told`, the second as `batch`, both because of `late`
"""

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.asking import asking
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.engine.statements import first_segment, time_of, us_of
from st_common.history.stored import archived_end, fixes
from st_common.position import start_of

_KEYS = "query, query_version, object, partner, from_ts, to_ts, cause_in, cause_out"
# Numbers with a fraction are the same to a billionth, also in fields. All else of these is the same, or is not: two
# long whole numbers are no further apart than that, and may be names.
_ALIKE = """
CREATE TEMP MACRO is_near(a, b) AS isfinite(a) AND isfinite(b) AND abs(a - b) <= 1e-9 * greatest(abs(a), abs(b));
CREATE TEMP MACRO is_alike(a, b) AS a IS NOT DISTINCT FROM b OR (
    (json_type(a) = 'DOUBLE' OR json_type(b) = 'DOUBLE')
    AND coalesce(is_near(TRY_CAST(a AS DOUBLE), TRY_CAST(b AS DOUBLE)), false));
CREATE TEMP MACRO columns_of(fields) AS CAST(fields::JSON AS MAP(VARCHAR, JSON));
CREATE TEMP MACRO are_alike(a, b) AS a = b OR (
    map_keys(columns_of(a)) = map_keys(columns_of(b)) AND list_bool_and(list_transform(
        list_zip(map_values(columns_of(a)), map_values(columns_of(b))), lambda two: is_alike(two[1], two[2]))));
"""
# Visits that are alike in all but what they say are numbered, so that each has one at most in the other arm.
_DIFFERENCES = f"""
WITH visits AS (
    SELECT 'told' AS arm, * FROM told UNION ALL SELECT 'batch' AS arm, * FROM batch
), numbered AS (
    SELECT *, row_number() OVER (PARTITION BY arm, {_KEYS} ORDER BY value, fields) AS twin FROM visits
), compared AS (
    SELECT *, count(*) OVER both_arms AS arms, count(value) OVER both_arms AS valued,
           min(value) OVER both_arms AS least, max(value) OVER both_arms AS most,
           most - least AS apart, max(abs(value)) OVER both_arms AS size, count(fields) OVER both_arms AS shown,
           min(fields) OVER both_arms AS one_shown, max(fields) OVER both_arms AS other_shown
    FROM numbered WINDOW both_arms AS (PARTITION BY {_KEYS}, twin)
)
SELECT *, CASE WHEN object IN (SELECT object FROM late) OR partner IN (SELECT object FROM late) THEN 'late'
               WHEN $is_late THEN 'late_elsewhere' ELSE 'unexplained' END AS why
FROM compared
WHERE arms < 2 OR valued = 1 OR (least <> most AND (NOT isfinite(size) OR apart > 1e-9 * size))
    OR shown = 1 OR (shown = 2 AND NOT are_alike(one_shown, other_shown))
ORDER BY {_KEYS}, arm, value, fields"""  # noqa: S608


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """The fixes of an interval that came later than the lateness: an older one than the clock at their place.

    Attributes:
        count: how many.
        objects: string, of which objects, each once.
    """

    count: int
    objects: pa.Array


def late_fixes(
    home: Home, stream: str, since: datetime, until: datetime, lateness_us: int
) -> Late:
    """Which fixes of an interval of event time came too late for answers to be independent of their order (SPEC X2).

        log (lateness 2 s)   10:00:00   10:00:05   10:00:04   10:00:01
                                                   in time    late, for the clock was at 10:00:03

    Args:
        home: where the table of positions lies.
        stream: the name of the stream.
        since: the beginning of the interval.
        until: its end; the archive has come past it by the lateness.
        lateness_us: the stream's.
    """
    beyond_us = us_of(until) + lateness_us
    bounds = [("event_ts", ">=", since), ("event_ts", "<", time_of(beyond_us))]
    end = archived_end(home, stream)
    rows = fixes(home, stream, 0, end, ("event_ts", "object"), *bounds, accepted=False)
    if not len(rows):
        return Late(count=0, objects=pa.array([], pa.string()))
    rows = rows.sort_by("position")
    event_us = rows["event_ts"].cast(pa.int64()).to_numpy()
    # Behind the first fix of a later time the clock is past the interval, whatever else stands there.
    passed = rows["position"].to_numpy() > _first_position(home, stream, beyond_us)
    highest = np.maximum.accumulate(np.where(passed, beyond_us, event_us))
    is_late = (event_us < highest - lateness_us) & (event_us < us_of(until))
    objects = rows["object"].filter(pa.array(is_late)).unique()
    return Late(count=int(is_late.sum()), objects=pa.array(objects, pa.string()))


def _first_position(home: Home, stream: str, since_us: int) -> int:
    """The place in the log of the first fix of this time or a later one, or where the archive has come to."""
    segment = first_segment(home, stream, since_us)
    start, end = start_of(segment), start_of(segment + 1)
    later = fixes(
        home,
        stream,
        start,
        end,
        (),
        ("event_ts", ">=", time_of(since_us)),
        accepted=False,
    )
    return int(pc.min(later["position"]).as_py()) if len(later) else start


def differences(
    told: pa.Table, batch: pa.Table, late: Late, *, is_late: bool, run: str
) -> pa.Table:
    """The visits that only one arm has, or has with another value or other fields: rows of `differences`.

    Args:
        told: visits of a day, as they were told.
        batch: as all fixes say.
        late: the fixes of the day that came too late.
        is_late: whether any fix of the day or of a day before came too late.
        run: the batch run.
    """
    schema = load_contract("differences").arrow_schema()
    with asking() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(_ALIKE)
        connection.register("told", told)
        connection.register("batch", batch)
        connection.register("late", pa.table({"object": late.objects}))
        rows = connection.sql(
            _DIFFERENCES, params={"is_late": is_late}
        ).to_arrow_table()
    rows = rows.drop_columns(["run"]).append_column(
        "run", pa.repeat(pa.scalar(run), len(rows))
    )
    return rows.select(schema.names).cast(schema)
