"""What a SELECT may name: the views of the home, and functions that follow from what they are given.

A text is read by DuckDB's own parser and looked through before it is planned. What is not on the list is refused: so
nothing reaches files, settings, secrets or the environment by what a later version of DuckDB has and nobody here knows.
"""

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb

from st_common.answers.sql_places import PLACES
from st_common.asking import opened
from st_common.errors import QueryError
from st_common.query.cells import CELLS
from st_common.query.problem import did_you_mean

MOST_CHARACTERS = 200_000
MOST_DEPTH = 100
"""Brackets in brackets: the parser takes a second for 400, and ten for 800."""
_TABLE_FUNCTIONS = frozenset(
    ("generate_series", "json_each", "json_tree", "range", "repeat", "unnest")
)
_IMPURE = frozenset(
    [
        "current_catalog",
        "current_date",
        "current_localtime",
        "current_localtimestamp",
        "current_schema",
        "current_user",
        "gen_random_uuid",
        "get_current_time",
        "get_current_timestamp",
        "now",
        "random",
        "session_user",
        "today",
        "transaction_timestamp",
        "user",
        "uuid",
        "uuidv4",
        "uuidv7",
    ]
)
"""What differs from one time to the next, and says nothing of the machine."""
_SYNTAX = frozenset(
    [
        "coalesce",
        "construct_array",
        "grouping",
        "grouping_id",
        "ifnull",
        "try",
        "unlist",
        "unnest",
    ]
)
"""What the parser makes of words that are no functions."""
_MACROS = frozenset(
    [
        "ago",
        "date_add",
        "days_in_month",
        "fdiv",
        "fmod",
        "generate_subscripts",
        "geomean",
        "geometric_mean",
        "if",
        "json",
        "json_group_array",
        "json_group_object",
        "json_group_structure",
        "map_contains_entry",
        "map_contains_value",
        "md5_number_lower",
        "md5_number_upper",
        "nullif",
        "pg_size_pretty",
        "pg_typeof",
        "regexp_split_to_table",
        "split_part",
        "variant_group_array",
        "wavg",
        "weighted_avg",
    ]
)
_NEVER = frozenset(
    [
        "combine",
        "create_sort_key",
        "finalize",
        "invoke",
        "json_deserialize_sql",
        "json_serialize_plan",
        "json_serialize_sql",
        "parse_duckdb_log_message",
        "to_aggregate_state",
        "version",
    ]
)
"""What DuckDB calls consistent all the same."""
_CATALOG = frozenset(
    f"information_schema.{name}" for name in ("columns", "schemata", "tables")
)
_SOURCES = frozenset(
    [
        "BASE_TABLE",
        "COLUMN_DATA",
        "CTE",
        "EMPTY",
        "EXPRESSION_LIST",
        "JOIN",
        "PIVOT",
        "SHOW_REF",
        "SUBQUERY",
        "TABLE_FUNCTION",
    ]
)
_SHOWS = ("DESCRIBE", "SUMMARY")
_TOKENS = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$(\w*)\$.*?\$\1\$|--[^\n]*|/\*.*?\*/"
    r"|(?P<open>[(\[{])|(?P<close>[)\]}])",
    re.DOTALL,
)
_EXPLAIN = re.compile(r"\s*EXPLAIN(?:\s+ANALYZE)?\s+", re.IGNORECASE)
_HINT = "a SELECT reads the views of the home, and nothing else"


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What a text names.

    Attributes:
        tables: each as its schemas, if any, and its name, as they are written.
        functions: that are called for a value, in small letters.
        table_functions: that are called in place of a table, in small letters.
        own: the names of its WITH, in small letters.
    """

    tables: frozenset[tuple[str, ...]]
    functions: frozenset[str]
    table_functions: frozenset[str]
    own: frozenset[str]


def require_small(text: str) -> None:
    """Refuses a text that the parser would take long for.

    Raises:
        QueryError: it is too long, or brackets stand too deep in brackets.
    """
    if len(text) > MOST_CHARACTERS:
        raise QueryError(
            f"the text has {len(text):,} characters, more than {MOST_CHARACTERS:,}"
        )
    depth = 0
    for token in _TOKENS.finditer(text):
        depth += 1 if token["open"] else -1 if token["close"] else 0
        if depth > MOST_DEPTH:
            raise _too_deep()


def named_in(connection: duckdb.DuckDBPyConnection, text: str) -> Named:
    """What one SELECT, or EXPLAIN of one, names.

    Raises:
        QueryError: it is something else, or cannot be read.
    """
    select = _EXPLAIN.sub("", text, count=1)
    (found,) = connection.execute("SELECT json_serialize_sql(?)", [select]).fetchall()
    try:
        read = json.loads(found[0])
    except RecursionError:
        raise _too_deep() from None
    if read["error"] and read["error_type"] == "parser":
        raise duckdb.ParserException(read["error_message"])
    if read["error"] or len(read["statements"]) != 1:
        raise QueryError(
            "expected one SELECT", hint="tables are written by jobs, not by SQL"
        )
    return _named(read["statements"])


def require_allowed(named: Named, views: Collection[str]) -> None:
    """Refuses a text that names something else than views and functions that may be named.

    Args:
        named: what it names.
        views: the names of all views; those of a group as `group.name`.

    Raises:
        QueryError: a view or a function is unknown, or may not be named.
    """
    known = {name.casefold() for name in views}
    allowed, others, catalog = _of_duckdb()
    for name in sorted(named.own & catalog - known):
        raise QueryError(f"WITH {name} AS cannot be written here", hint="another name")
    for table in sorted(named.tables):
        name = ".".join(table)
        folded = name.casefold().removeprefix("main.")
        if folded in known | _CATALOG | named.own:
            continue
        plain = [view for view in views if "." not in view and " " not in view]
        hint = did_you_mean(table[-1], plain) or f"views: {', '.join(plain)}"
        raise QueryError(f"there is no view {name!r}", hint=hint)
    for name in sorted(named.functions | named.table_functions):
        may = name in (_TABLE_FUNCTIONS if name in named.table_functions else allowed)
        if may:
            continue
        if name in others or name in allowed:
            raise QueryError(f"{name}() cannot be used here", hint=_HINT)
        hint = did_you_mean(name, allowed) or _HINT
        raise QueryError(f"there is no function {name!r}", hint=hint)


def _too_deep() -> QueryError:
    return QueryError("the text is too deep: brackets in brackets", hint="write WITH")


@cache
def _of_duckdb() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """The functions that may be called for a value, all others that DuckDB has, and its own views."""
    with opened() as connection:
        rows = connection.execute(
            "SELECT DISTINCT lower(function_name), function_type, stability FROM duckdb_functions()"
        ).fetchall()
        views = connection.execute(
            "SELECT DISTINCT lower(view_name) FROM duckdb_views() WHERE internal"
        ).fetchall()
    pure = {
        name
        for name, kind, stability in rows
        if (stability == "CONSISTENT" or name.startswith(("list_", "array_")))
        and kind in ("scalar", "aggregate", "window", "macro")
        and not name.startswith("__internal")
    }
    allowed = frozenset(pure - _NEVER | _IMPURE | _SYNTAX | _MACROS | {*CELLS, *PLACES})
    others = frozenset(name for name, _, _ in rows) - allowed
    return allowed, others, frozenset(name for (name,) in views)


def _named(tree: Any) -> Named:
    """What the nodes of a statement name.

    Raises:
        QueryError: a source of rows is of a kind that is not known.
    """
    tables, functions, own = set(), set(), set()
    in_place_of_tables = set()
    for node in _nodes(tree):
        if "from_table" in node:
            _require_source(node["from_table"])
        tables |= _tables(node)
        if node.get("type") == "TABLE_FUNCTION":
            in_place_of_tables.add(node["function"]["function_name"].casefold())
        elif isinstance(name := node.get("function_name"), str):
            functions.add(name.casefold())
        own |= {one["key"].casefold() for one in node.get("cte_map", {}).get("map", ())}
    return Named(
        tables=frozenset(tables),
        functions=frozenset(functions) - in_place_of_tables,
        table_functions=frozenset(in_place_of_tables),
        own=frozenset(own),
    )


def _tables(node: dict[str, Any]) -> set[tuple[str, ...]]:
    """The table that a node names, if any."""
    if node.get("type") == "BASE_TABLE":
        return {tuple(node["qualified_name"]["path"])}
    if node.get("type") != "SHOW_REF":
        return set()
    if node["show_type"] not in _SHOWS:
        raise QueryError("expected one SELECT", hint="SHOW TABLES lists views")
    return {(node["table_name"].strip('"'),)} if node["table_name"] else set()


def _require_source(node: Any) -> None:
    """Refuses what rows are read from, where its kind is not known."""
    if node["type"] not in _SOURCES:
        raise QueryError(f"{node['type']} cannot be read here", hint=_HINT)


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """All objects of a JSON value, from the outermost on."""
    waiting = [tree]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield value
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
