"""Which queries can feed another stream, and what of a record is there for the stream's settings (SPEC W6).

A record of a fed stream is a fix, so it needs a place: x and y among what a row of the query has.

    query                                       x and y                    records
    SELECT ISTREAM (..), DSTREAM, RSTREAM       of the fix, by themselves  + or -, or + and 0
    .. DETECT .., .. FOR ..                     of the fix, by themselves  all events
    SELECT x, y, .. , also with EMIT EVERY      as columns                 +, - and 0
    SELECT AVG(x) AS x, AVG(y) AS y, COUNT(*)   as values                  what is told of groups
"""

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from st_common.config.stream import StreamSettings
from st_common.config.units import TIME_UNIT_US
from st_common.errors import ConfigError, QueryError
from st_common.formats.format_settings import named_columns
from st_common.formats.registry import format_of
from st_common.operators.expressions.fields import shown_columns
from st_common.query.plan import Plan
from st_common.query.problem import did_you_mean

OF_CHANGES = (
    "object",
    "event_ts",
    "fix_ts",
    "partner",
    "sign",
    "cause",
    "value",
    "query_version",
    "query",
    "position",
    "seq",
)
"""What every record has, of the change that it is made of."""
OWN = (*OF_CHANGES, "row", "gone", "stream")
"""What every record has: also the name of its row, whether that has left (`gone`), and the stream of its query."""
"""Microseconds of a unit of time in which a record can say its times, beside ISO 8601."""
_PLACE = ("x", "y")


def beside(change: Mapping[str, Any]) -> dict[str, Any]:
    """What a record has beside its change: the name of the row, which is that of pairs too, and whether it has left.

    {"object": "a", "partner": None, "sign": 1}       {"row": "a", "gone": False}
    {"object": "a", "partner": "p1", "sign": -1}      {"row": '["a","p1"]', "gone": True}
    """
    name, partner = change["object"], change["partner"]
    if partner is not None:
        name = json.dumps([name, partner], ensure_ascii=False, separators=(",", ":"))
    return {"row": name, "gone": change["sign"] < 0}


def fed_of(changes: pa.Table) -> pa.Table:
    """The changes that become records, in their order: all, but a `-` whose row comes again at once.

    A new value is two changes of one time. The record of the `+` takes the place of what was there; the one of the `-`
    would be a second fix of its object at that time.

        changes of group `bus`      12:00  +  n=1    12:05  -  n=1    12:05  +  n=2    12:09  -  n=2
        records                     12:00  n=1                        12:05  n=2       12:09  gone
    """
    rows = _rows_in_time(changes)
    come = rows.filter(pc.greater(changes["sign"], 0))
    again = pc.and_(pc.less(changes["sign"], 0), pc.is_in(rows, value_set=come))
    return changes.filter(pc.invert(again))


def _rows_in_time(changes: pa.Table) -> pa.ChunkedArray:
    """Which row each change is of, at which time and by which row of the log, as one text."""
    parts = [
        pc.binary_length(changes["object"]).cast(pa.string()),
        changes["object"],
        changes["partner"],
        changes["event_ts"].cast(pa.int64()).cast(pa.string()),
        changes["position"].cast(pa.string()),
    ]
    options = pc.JoinOptions(null_handling="replace", null_replacement="")
    return pc.binary_join_element_wise(*parts, "\0", options=options)


def columns_of(plan: Plan) -> tuple[str, ...]:
    """The names of the columns that a query's changes show beside what every change has."""
    outer = plan.outer
    regrouped = None if outer is None else outer.aggregate
    counted = regrouped or plan.aggregate
    if counted is not None:
        keys = (name for name, _ in counted.keys)
        return (*keys, *(value.name for value in counted.values))
    # What stands behind the columns for the query above is not told.
    shown = shown_columns(plan) if outer is None else plan.columns
    return tuple(name for name, _ in shown)


def check_feeds(query: str, plan: Plan) -> None:
    """Nothing, when the rows of a query have a place.

    Raises:
        QueryError: they have none, with what would give them one.
    """
    missing = [name for name in _PLACE if name not in columns_of(plan)]
    if not missing:
        return
    is_grouped = plan.aggregate is not None or (
        plan.outer is not None and plan.outer.aggregate is not None
    )
    hint = (
        "values have one by name: AVG(x) AS x, AVG(y) AS y, or LAST(x) AS x, LAST(y) AS y"
        if is_grouped
        else "select x and y; SELECT ISTREAM (..), DSTREAM and RSTREAM have them by themselves"
    )
    message = f"the rows of query {query!r} have no place: there is no {missing[0]}"
    raise QueryError(message, hint=hint)


def check_target(plan: Plan, target: StreamSettings) -> None:
    """Nothing, when a stream can read the records of a query.

    Raises:
        ConfigError: its format, its unit of time, or a column that no record has.
    """
    if not format_of(target.format).takes_objects:
        raise ConfigError(
            f"stream {target.name!r} is {target.format}",
            hint='a query feeds a stream of format "ndjson"',
        )
    if target.columns.event_ts is not None and target.time_unit not in (
        *TIME_UNIT_US,
        "iso",
    ):
        raise ConfigError(
            f"stream {target.name!r} has the time_unit {target.time_unit!r}",
            hint="iso, s, ms or us",
        )
    if (target.encoding, target.coordinates) != ("utf-8", "degrees"):
        raise ConfigError(
            f"stream {target.name!r} reads records in another form than queries write them",
            hint="leave out encoding and coordinates in its settings",
        )
    known = [*OWN, *columns_of(plan)]
    for key, name in named_columns(target):
        if name not in known:
            hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
            raise ConfigError(
                f"stream {target.name!r}: {key} = {name!r} is no part of the query's records",
                hint=hint,
            )
