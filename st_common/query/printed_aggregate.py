"""What a plan selects, counts and groups by, as text."""

from collections.abc import Iterator

from sqlglot import exp

from st_common.query.binding import PARTNER
from st_common.query.grammar import words
from st_common.query.grammar.statements import expression_of
from st_common.query.grammar.words import quoted
from st_common.query.pair_columns import names_pair
from st_common.query.plan import Aggregate, Top, Value
from st_common.query.printed_pair import written
from st_common.query.several import name_of_key, own_name, text_of_value


def column_text(name: str, text: str) -> str:
    """A selected column, with AS where it would be called otherwise without."""
    return text if _is_named(name, text) else f"{text} AS {quoted(name)}"


def _is_named(name: str, text: str) -> bool:
    """Whether a column without AS gets this name: a bare column its own, another expression its text."""
    return text == (quoted(name) if _is_name(text) else name)


def _is_name(text: str) -> bool:
    return words.is_plain(text) or isinstance(expression_of(text), exp.Column)


def aggregate_text(aggregate: Aggregate, label: str) -> str:
    """What stands after SELECT. `label` is what the layer that is joined is called, empty without one."""
    if aggregate.function == "several":
        return ", ".join(_items(aggregate, label))
    if aggregate.function == "distinct":
        return f"DISTINCT {_of_partner(aggregate.group or '', label)}"
    return text_of_value(aggregate.function, aggregate.argument)


def _items(aggregate: Aggregate, label: str) -> Iterator[str]:
    """Keys and values. Where one value without a name would be read as the only one, all are named."""
    for name, text in aggregate.keys:
        said = _of_partner(text, label)
        own = "fid" if text == PARTNER and label else name_of_key(text)
        yield said if name == own else f"{said} AS {quoted(name)}"
    is_only = len(aggregate.values) == 1 and len(aggregate.keys) < 2
    for value in aggregate.values:
        yield _value(value, is_only=is_only)


def _value(value: Value, *, is_only: bool) -> str:
    text = text_of_value(value.function, value.argument, value.share)
    own = own_name(value)
    return (
        text if value.name == own and not is_only else f"{text} AS {quoted(value.name)}"
    )


def group_by(aggregate: Aggregate | None, label: str) -> Iterator[str]:
    """The clause GROUP BY; nothing without one."""
    if aggregate is None or aggregate.function in ("distinct", "avgspd"):
        return
    keys = [_of_partner(text, label) for text in aggregate.grouped_by]
    if keys:
        yield f"GROUP BY {', '.join(keys)}"
    if aggregate.top is not None and aggregate.top.having is not None:
        yield f"HAVING {aggregate.top.having}"
    if aggregate.top is not None and aggregate.top.limit is not None:
        yield _top(aggregate, aggregate.top, label)


def _top(aggregate: Aggregate, top: Top, label: str) -> str:
    """ORDER BY, LIMIT and PER: a value as it is called, a key as it stands behind GROUP BY."""
    (value,) = (one for one in aggregate.values if one.name == top.value)
    is_own = value.name == own_name(value)
    said = (
        text_of_value(value.function, value.argument, value.share)
        if is_own
        else quoted(value.name)
    )
    order = f"ORDER BY {said}{' DESC' if top.descending else ''} LIMIT {top.limit}"
    if top.per is None:
        return order
    return f"{order} PER {_of_partner(dict(aggregate.keys)[top.per], label)}"


def _of_partner(group: str, label: str) -> str:
    """A group with `layer.fid` for the partner, and tags by their names."""
    if label and names_pair(group):
        return written(group, "", label)
    return f"{label}.fid" if group == PARTNER and label else group
