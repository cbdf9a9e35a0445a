"""What several values of a group are called, and how they are written."""

from dataclasses import replace

from st_common.query.grammar.words import number
from st_common.query.having import having_called_anew, wrong_in_having
from st_common.query.pair_columns import plain_name
from st_common.query.plan import AS_JSON, MOST_TOLD, Aggregate, Top, Value


def name_of_value(
    function: str, argument: str | None, share: float | None = None
) -> str:
    """What a value is called where nobody said: `count(*)`, `quantile(speed, 0.9)`, `count(DISTINCT line)`."""
    if share is not None:
        return f"{function}({argument}, {number(share)})"
    if function == "count_distinct":
        return f"count(DISTINCT {argument or 'object'})"
    return f"{function}({argument or '*'})"


def text_of_value(
    function: str, argument: str | None, share: float | None = None
) -> str:
    """A value as it is written in a text."""
    name, bracket, rest = name_of_value(function, argument, share).partition("(")
    return f"{name.upper()}{bracket}{rest}"


def called_anew(aggregate: Aggregate, before: Aggregate) -> Aggregate:
    """The aggregate with values and keys called by their expressions, where those of the one before were."""
    values = tuple(
        _called_anew(*pair)
        for pair in zip(aggregate.values, before.values, strict=True)
    )
    pairs = zip(aggregate.keys, before.keys, strict=True)
    keys = tuple(
        (name_of_key(new[1]) if old[0] == name_of_key(old[1]) else new[0], new[1])
        for new, old in pairs
    )
    top = aggregate.top and _top_called_anew(aggregate.top, before, values, keys)
    return replace(aggregate, values=values, keys=keys, top=top)


def _top_called_anew(
    top: Top,
    before: Aggregate,
    values: tuple[Value, ...],
    keys: tuple[tuple[str, str], ...],
) -> Top:
    """The same groups, by the names that values and keys have now."""
    named = dict(zip((one.name for one in before.values), values, strict=True))
    keyed = dict(zip((name for name, _ in before.keys), keys, strict=True))
    per = None if top.per is None else keyed[top.per][0]
    names = {name: value.name for name, value in named.items()}
    names |= {name: key for name, (key, _) in keyed.items()}
    called = having_called_anew(top, names)
    value = None if top.value is None else named[top.value].name
    return replace(called, value=value, per=per)


def name_of_key(text: str) -> str:
    """What a key is called where nobody said: a column by its name, all else by its text."""
    is_quoted = len(text) > 1 and text[0] == text[-1] == '"'
    return plain_name(text[1:-1].replace('""', '"')) if is_quoted else text


def _called_anew(value: Value, before: Value) -> Value:
    if before.name != own_name(before):
        return value
    return replace(value, name=own_name(value))


def wrong_in_top(aggregate: Aggregate) -> str:
    """Why the greatest groups of an aggregate cannot be said; empty where they can, or are not asked for."""
    top = aggregate.top
    if top is None:
        return ""
    if top.limit is None:
        return _wrong_without_limit(aggregate, top)
    numbers = [one.name for one in aggregate.values if one.function not in AS_JSON]
    names = [name for name, _ in aggregate.keys]
    if not names:
        return "ORDER BY needs a GROUP BY"
    if top.value not in numbers:
        return f"{top.value!r} is none of the numbers of the groups"
    if not 1 <= top.limit <= MOST_TOLD:
        return f"LIMIT is a whole number from 1 to {MOST_TOLD}"
    if top.per is not None and (top.per not in names or len(names) == 1):
        return f"PER names one of several keys, and not {top.per!r}"
    return wrong_in_having(aggregate)


def _wrong_without_limit(aggregate: Aggregate, top: Top) -> str:
    """What is wrong with HAVING alone above rows: of no groups it would choose among nothing, which has a count."""
    if top.having is None or top != Top(having=top.having):
        return "ORDER BY needs a LIMIT"
    return (
        wrong_in_having(aggregate)
        if aggregate.keys
        else "HAVING above rows needs a GROUP BY"
    )


def own_name(value: Value) -> str:
    """What a value is called by itself."""
    return name_of_value(value.function, value.argument, value.share)
