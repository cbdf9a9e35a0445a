"""The rules that a contract's schema and its `quality` blocks promise."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from operator import itemgetter
from typing import Any

from st_common.asking import asking
from st_common.contracts.rules import TABLE, Rule, RuleKind

# Which options of ODCS's logicalTypeOptions become a rule; `format` only describes.
OPTIONS: dict[RuleKind, tuple[str, ...]] = {
    "between": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    "length": ("minLength", "maxLength"),
    "pattern": ("pattern",),
}


def column_rules(column: dict[str, Any]) -> list[Rule]:
    """The rules of one column, in this order: required, unique, those of `logicalTypeOptions`, its quality block.

    Args:
        column: a property of a contract as ODCS has it, already validated.
    """
    name, columns = column["name"], (column["name"],)
    rules = (
        [Rule(name=f"{name}_is_there", kind="not_null", columns=columns)]
        if column["required"]
        else []
    )
    if column.get("unique"):
        rules.append(Rule(name=f"{name}_is_unique", kind="unique", columns=columns))
    options = column.get("logicalTypeOptions", {})
    for kind, keys in OPTIONS.items():
        arguments = {key: options[key] for key in keys if key in options}
        if arguments:
            rules.append(
                Rule(
                    name=f"{name}_{kind}",
                    kind=kind,
                    columns=columns,
                    arguments=arguments,
                )
            )
    return rules + [_written(each, columns) for each in column.get("quality", [])]


def table_rules(table: Mapping[str, Any]) -> list[Rule]:
    """The rules over several columns: the primary key, then the table's own quality block.

    Args:
        table: the table of a contract as ODCS has it, already validated.
    """
    keys = sorted(
        (each for each in table["properties"] if each.get("primaryKey")),
        key=lambda each: each["primaryKeyPosition"],
    )
    columns = tuple(each["name"] for each in keys)
    rules = [Rule(name="key_is_unique", kind="unique", columns=columns)] if keys else []
    return rules + [_written(each, ()) for each in table.get("quality", [])]


def _written(value: dict[str, Any], columns: tuple[str, ...]) -> Rule:
    kind: RuleKind
    arguments: dict[str, Any] = {}
    if value.get("type") == "sql":
        kind, arguments = "sql", {"query": " ".join(value["query"].split())}
        columns = columns or sql_columns(value["query"])
    elif value["metric"] == "invalidValues":
        kind, arguments = (
            "valid_values",
            {"values": tuple(value["arguments"]["validValues"])},
        )
    elif value["metric"] == "duplicateValues":
        kind, columns = "unique", columns or tuple(value["arguments"]["properties"])
    else:
        kind = "not_null"
    return Rule(
        name=value["name"],
        kind=kind,
        columns=columns,
        arguments=arguments,
        severity=value["severity"],
        description=value.get("description", ""),
    )


@cache
def sql_columns(query: str) -> tuple[str, ...]:
    """The columns that a rule's SQL names, in order of the first time, without those that it makes itself.

        SELECT count(*) FROM ${table} WHERE minx > maxx   ->   minx, maxx

    Args:
        query: one SELECT, in which `${table}` stands for the table.

    Raises:
        ValueError: DuckDB, which carries rules out, sees no query in it; the message says why.
    """
    text = query.replace(TABLE, "the_table")
    with asking() as connection:
        asked = connection.execute("SELECT json_serialize_sql(?)", [text])
        (answer,) = asked.fetchall()
    tree = json.loads(answer[0])
    if tree["error"]:
        raise ValueError(tree["error_message"])
    expressions = [node for node in _nodes(tree) if "class" in node]
    # Names that the query gives itself are no columns of the table.
    made = {node["alias"] for node in expressions}
    named = [node for node in expressions if node["class"] == "COLUMN_REF"]
    named.sort(key=itemgetter("query_location"))
    names = dict.fromkeys(node["column_names"][-1] for node in named)
    return tuple(name for name in names if name not in made)


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every mapping in a JSON value."""
    if isinstance(tree, dict):
        yield tree
        tree = list(tree.values())
    for part in tree if isinstance(tree, list) else ():
        yield from _nodes(part)
