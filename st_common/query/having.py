"""What the greatest groups are chosen among: HAVING beside ORDER BY .. LIMIT (SPEC G9).

SELECT line, COUNT(*) AS n, AVG(v) AS v .. GROUP BY line HAVING v > 3 ORDER BY n DESC LIMIT 2

the condition is over        line VARCHAR, n BIGINT, v DOUBLE
"""

from collections.abc import Mapping
from dataclasses import replace

from st_common.query.binding import Columns, bound
from st_common.query.grammar.words import is_plain
from st_common.query.plan import AS_JSON, COUNTS, Aggregate, Top, has_value


def columns_of_groups(aggregate: Aggregate) -> Columns:
    """The keys and numbers of groups with their types in DuckDB; `value` is a number that is the only one."""
    keys = [(name, "VARCHAR") for name, _ in aggregate.keys]
    numbers = [
        (one.name, "BIGINT" if one.function in COUNTS else "DOUBLE")
        for one in aggregate.values
        if one.function not in AS_JSON
    ]
    named = {name.casefold() for name, _ in (*keys, *numbers)}
    is_missing = has_value(aggregate) and "value" not in named
    return (*keys, *numbers, *((("value", "DOUBLE"),) if is_missing else ()))


def wrong_in_having(aggregate: Aggregate) -> str:
    """Why groups cannot be chosen by the condition of an aggregate; empty where they can, or all are."""
    having = aggregate.top.having if aggregate.top is not None else None
    if having is None:
        return ""
    if twice := _read_in_two_ways(aggregate):
        return f"HAVING beside LIMIT cannot ask about {twice!r}: it is called as a key is written"
    columns = columns_of_groups(aggregate)
    (read,) = bound([having], columns)
    if read.error:
        names = ", ".join(name for name, _ in columns)
        return f"HAVING beside LIMIT asks about {names}: {read.error}"
    if read.fits("boolean"):
        return ""
    return f"HAVING expected a condition, not a value of type {read.type}"


def _read_in_two_ways(aggregate: Aggregate) -> str:
    """The name of a key or value that is the text of another key; empty where there is none."""
    keys = {text.casefold(): name for name, text in aggregate.keys}
    names = [name for name, _ in aggregate.keys]
    names += [one.name for one in aggregate.values]
    return next(
        (one for one in names if keys.get(one.casefold(), one) != one),
        "",
    )


def having_called_anew(top: Top, names: Mapping[str, str]) -> Top:
    """The same groups, chosen by the names that keys and values have now; `names` has those of before."""
    if top.having is None:
        return top
    from sqlglot import exp  # slow to import, and hardly any groups are chosen so

    from st_common.query.grammar.statements import expression_of, text_of

    tree = expression_of(top.having)
    now = {before.casefold(): name for before, name in names.items()}
    for column in tree.find_all(exp.Column):
        name = now.get(column.name.casefold(), column.name)
        column.set("this", exp.to_identifier(name, quoted=not is_plain(name)))
    return replace(top, having=text_of(tree))
