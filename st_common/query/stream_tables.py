"""The settings of a stream whose fixes are the rows of a query, as `conf/streams.toml` would have them (SPEC W6)."""

from dataclasses import asdict
from typing import Any

from st_common.config.spark import SparkSettings
from st_common.config.stream import StreamSettings
from st_common.config.stream_values import can_be_attribute
from st_common.errors import ConfigError
from st_common.query.plan import Plan
from st_common.query.tree.growing import tree_of
from st_common.query.with_place import PLACE

_TYPES = {
    "VARCHAR": "string",
    "BOOLEAN": "bool",
    **dict.fromkeys(("DOUBLE", "FLOAT", "DECIMAL", "HUGEINT"), "double"),
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), "long"),
}
"""By DuckDB's type that of an attribute; all else is its text."""
_OF_FIXES = ("object", "event_ts", *PLACE)
_OF_CHANGES = {"partner": "string", "cause": "string"}
"""What every record says of its change, beside its row, time and place."""
_TAKEN = frozenset(
    (
        "sign",
        "query",
        "query_version",
        "position",
        "seq",
        "fix_ts",
        "stream",
        "row",
        "gone",
    )
)
"""Names of other parts of a record."""
_KEPT = ("crs", "engine", "shards", "moving", "tick_s", "running")
"""What a stream has as the stream of its query does."""


def table_of(name: str, plan: Plan, source: StreamSettings) -> dict[str, Any]:
    """The settings of the stream of a query's rows, in the terms of a table.

    Args:
        name: of the query and of the stream.
        plan: of the query; its rows say where they are.
        source: the stream that the query is about.

    Raises:
        ConfigError: the rows have no place, or the name of a column is taken.
    """
    columns = {"object": "object", "event_ts": "event_ts", "x": "x", "y": "y"}
    if plan.emit in ("changes", "every"):
        columns |= {"object": "row", "gone": "gone"}
    elif plan.pairs is not None or plan.join is not None:
        columns |= {"object": "row"}
    table = {
        "format": "ndjson",
        "query": name,
        "columns": columns,
        "time_unit": "us",
        "attributes": _attributes(plan, source),
        "max_ahead_s": "off",
        "max_jump_s": "off",
        # What the query was about was judged already.
        "drop_null_island": False,
        **{key: getattr(source, key) for key in _KEPT},
    }
    if source.engine == "spark":
        table["spark"] = _spark(source.spark)
    return table


def _spark(settings: SparkSettings) -> dict[str, Any]:
    """The table of where Spark runs."""
    of_clusters = ("rest", "executor_memory")
    return {
        key: value
        for key, value in asdict(settings).items()
        if value is not None and not (settings.is_local and key in of_clusters)
    }


def _attributes(plan: Plan, source: StreamSettings) -> dict[str, str]:
    """The attributes of fixes that are rows of a query: what it shows, and is no part of a fix by itself."""
    columns = tree_of(plan, source).columns()
    _check_place(plan, {one.name.casefold() for one in columns})
    for one in columns:
        if one.name.casefold() in _TAKEN:
            raise ConfigError(
                f"the record of a row has {one.name!r} already",
                hint=f"select it by another name: {one.name} AS its_{one.name}",
            )
        if not can_be_attribute(one.name):
            raise ConfigError(
                f"{one.name!r} cannot be an attribute of a stream",
                hint="name it by AS: letters, digits and _",
            )
    return _OF_CHANGES | {
        one.name: _TYPES.get(one.type.partition("(")[0], "string")
        for one in columns
        if one.name.casefold() not in _OF_FIXES
    }


def _check_place(plan: Plan, names: set[str]) -> None:
    """Raises a ConfigError where rows with columns of these names are nowhere."""
    missing = [axis for axis in PLACE if axis not in names]
    if missing:
        counts = plan.outer.aggregate if plan.outer is not None else plan.aggregate
        hint = (
            "values have one by name: AVG(x) AS x, AVG(y) AS y, or LAST(x) AS x, LAST(y) AS y"
            if counts is not None
            else "select x and y in the parentheses"
        )
        raise ConfigError(
            f"the rows of the query have no place: there is no {missing[0]}", hint=hint
        )
