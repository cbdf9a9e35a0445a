"""COUNT, SUM, AVG, MIN, MAX, DISTINCT by group: from what is counted, found anew (SPEC P5, P7).

object  kind       COUNT(*) GROUP BY kind      taxi: 2, bus: 1, NULL: 1
a       taxi
b       taxi       COUNT(kind)                 *: 3
c       bus
d       null       DISTINCT kind               taxi, bus, NULL
"""

from st_common.query.plan import Aggregate
from st_common.reference.columns import Fixes
from st_common.reference.metric import Ints, Objects


def groups(
    aggregate: Aggregate, fixes: Fixes, rows: Ints, partners: Objects
) -> dict[str, float | None]:
    """The value of every group that has one, by the text of the group: `*` without groups, None for DISTINCT.

    What is counted are rows of `fixes`, one for each partner. Nulls count nowhere but in COUNT(*). Sums go by the order
    of the rows.
    """
    parts: dict[str, list[object]] = {}
    if aggregate.group is None and aggregate.function in ("count", "count_distinct"):
        parts["*"] = []
    names = group_names(aggregate, fixes, rows, partners)
    values = fixes.ids[rows]
    if aggregate.argument is not None:
        values = fixes.of.values(aggregate.argument, fixes.rows[rows], partners)
    for name, value in zip(names, values, strict=True):
        part = parts.setdefault(name, [])
        if value is not None:
            part.append(value)
    if aggregate.function == "distinct":
        return dict.fromkeys(parts)
    value_by_group = {
        name: value_of(aggregate.function, part) for name, part in parts.items()
    }
    return {name: value for name, value in value_by_group.items() if value is not None}


def group_names(
    aggregate: Aggregate, fixes: Fixes, rows: Ints, partners: Objects
) -> list[str]:
    """The group that each row is in: NULL without a value; quoted where a text looks like that, or as if it were."""
    if aggregate.function == "avgspd":
        return list(fixes.ids[rows])
    if aggregate.group is None:
        return ["*"] * len(rows)
    texts = fixes.of.texts(aggregate.group, fixes.rows[rows], partners)
    if aggregate.group == "partner":
        return ["NULL" if text is None else str(text) for text in texts]
    return [name_of(text) for text in texts]


def name_of(text: str | None) -> str:
    """The name of a group: NULL without a value; in quotes where a text looks like that, or as if it were."""
    if text is None:
        return "NULL"
    is_odd = text == "NULL" or text.startswith("'")
    return "'" + text.replace("'", "''") + "'" if is_odd else text


def value_of(function: str, values: list[object]) -> float | None:
    """The value of a group whose arguments that are not null are these; None for none."""
    if function == "count":
        return float(len(values))
    if function == "count_distinct":
        return float(len(set(values)))
    if not values:
        return None
    numbers = [float(value) for value in values]  # type: ignore[arg-type] # they are checked at registration
    if function == "avg":
        return sum(numbers) / len(numbers)
    if function == "sum":
        return float(sum(numbers))
    return min(numbers) if function == "min" else max(numbers)
