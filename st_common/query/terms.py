"""Whether the expressions of statements fit their streams: columns that exist, values of the type that is needed."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from st_common.formats.format_settings import named_columns
from st_common.formats.registry import format_of
from st_common.query.binding import Bound, Columns, bound, columns_of
from st_common.query.grammar.nodes import Span
from st_common.query.grammar.words import always_quoted, quoted
from st_common.query.lowering.expression import Term
from st_common.query.mixed import Mixed, mixed
from st_common.query.names import beside_speed
from st_common.query.pair_columns import OTHER, is_other_column, own_name
from st_common.query.problem import Problem, did_you_mean
from st_common.query.trying import Tried, tried
from st_common.query.wrong_times import wrong_times, zones_in
from st_common.query.zone_rules import other_rules

if TYPE_CHECKING:
    from st_common.config.stream import StreamSettings
    from st_common.query.text import Statement

Types = dict[tuple[Columns, str], tuple[Bound, Tried]]
_WANTED = {
    "boolean": ("WHERE needs a condition", "such as speed > 3"),
    "number": (
        "an aggregate needs a number",
        "COUNT takes anything; CAST(... AS DOUBLE) makes a number of a text",
    ),
    "text": ("a key of a layer is a text", "CAST(... AS VARCHAR)"),
    "plain": (
        "FIRST, LAST and COLLECT need a number, a text or a truth value",
        "CAST(... AS VARCHAR)",
    ),
}


def types_of(
    statements: "Iterable[Statement]", streams: "Mapping[str, StreamSettings]"
) -> Types:
    """The types of all expressions of statements whose columns are known, and how they went over made-up fixes.

    Many are bound and tried at once.
    """
    texts: dict[Columns, dict[str, None]] = defaultdict(dict)
    for statement in statements:
        stream = streams.get(statement.plan.stream) if statement.plan else None
        for term in statement.terms if stream else ():
            columns = _columns(term, stream)
            if not any(_unknown(term, columns)):
                texts[columns][term.text] = None
    types_by_text: Types = {}
    for columns, chosen in texts.items():
        types = dict(zip(chosen, bound(list(chosen), columns), strict=True))
        fit = [text for text, type_ in types.items() if not type_.error]
        tries = dict(zip(fit, tried(fit, columns), strict=True))
        types_by_text |= {
            (columns, text): (type_, tries.get(text, Tried()))
            for text, type_ in types.items()
        }
    return types_by_text


def problems_of(
    statement: "Statement",
    stream: "StreamSettings",
    types: Types,
    tags: Callable[[], Collection[str]] = tuple,
) -> Iterator[Problem]:
    """What is wrong with the expressions of a statement on this stream.

    Args:
        statement: its names are as they are declared.
        stream: the settings of what it is about.
        types: of the expressions.
        tags: gives those of a layer, of which one may have been meant; asked where a column is unknown.
    """
    for term in beside_speed(statement):
        if any(
            known and name != "object"
            for name, known in _found(term, _columns(term, stream))
        ):
            hint = "SELECT object, AVGSPD(*)"
            yield statement.problem(
                "beside AVGSPD stand literals and the object alone",
                at=term.span,
                hint=hint,
            )
    yield from _without_other(statement)
    for term in statement.terms:
        columns = _columns(term, stream)
        unknown = list(_unknown(term, columns))
        for name, span in unknown:
            known = (*columns, *((tag, "VARCHAR") for tag in tags()))
            yield _unknown_column(statement, name, span, known, stream)
        if unknown:
            continue
        mixes = [_compared(statement, term, one) for one in mixed(term, columns)]
        mixes += [
            statement.problem(message, at=term.span, hint=hint)
            for message, hint in wrong_times(term.text, columns)
        ]
        yield from mixes or _wrong_types(statement, term, *types[columns, term.text])


def _without_other(statement: "Statement") -> Iterator[Problem]:
    """Terms about an object or a feature that the plan has not: a builder may join anew after it was given them."""
    plan = statement.plan
    if plan is None:
        return
    for term in statement.terms:
        if term.of_objects and plan.pairs is None:
            message = (
                "columns of another object need a stream that is joined with itself"
            )
            hint = "JOIN the stream's own name, and say this behind it"
            yield statement.problem(message, at=term.span, hint=hint)
        if term.tags and plan.join is None:
            message = "tags need a layer that the stream is joined with"
            hint = "JOIN the layer, and say this behind it"
            yield statement.problem(message, at=term.span, hint=hint)


def _wrong_types(
    statement: "Statement", term: Term, bound: Bound, result: Tried
) -> Iterator[Problem]:
    """What is wrong with a term whose columns are known; one thing at most."""
    if bound.error:
        yield statement.problem(
            _as_written(statement, term, bound.error),
            at=term.span,
            hint="CAST(... AS ...) turns one type into another",
        )
    elif not bound.fits(term.needs):
        message, hint = _WANTED[term.needs]
        yield statement.problem(
            f"{message}, not a value of type {bound.type}", at=term.span, hint=hint
        )
    elif result.error:
        yield statement.problem(
            f"this fails for every fix: {result.error}", at=term.span
        )


def _unknown_column(
    statement: "Statement",
    name: str,
    span: Span,
    columns: Columns,
    stream: "StreamSettings",
) -> Problem:
    """A name that is no column, as it is written; an object has the columns that every other one has."""
    own = own_name(name)
    kept = _of_records(own or name, stream)
    if kept is not None:
        message, hint = kept
        return statement.problem(message, at=span, hint=hint)
    label = "" if own is None else f"{_owner(statement.written(span))}."
    names = [known for known, _ in columns if not is_other_column(known)]
    names += format_of(stream.format).known
    near = did_you_mean(own or name, names).replace("mean ", f"mean {label}")
    shown = sorted(set(names) - format_of(stream.format).known.keys())
    known = ", ".join(f"{label}{each}" for each in shown)
    message = f"unknown column {label + (own or name)!r}"
    return statement.problem(message, at=span, hint=near or f"known columns: {known}")


def _of_records(name: str, stream: "StreamSettings") -> tuple[str, str] | None:
    """What is said of a name that is a column of the records, and no column of the stream; None for any other one."""
    for key, column in named_columns(stream):
        if column.casefold() == name.casefold() and key != "where":
            own = key.removeprefix("attribute ")
            return f"stream {stream.name!r} reads {column!r} as {own}", f"ask {own}"
    offered = format_of(stream.format).attribute(name)
    if offered is None:
        return None
    column, kind = offered
    key = column if column.isidentifier() else always_quoted(column)
    return (
        f"stream {stream.name!r} does not keep {column!r}, which {stream.format} has",
        f'attributes = {{ {key} = "{kind}" }} in the settings of the stream keeps it from then on',
    )


def _owner(written: str) -> str:
    """What stands before the dot of a column; in a plan the name is quoted with its dot: `"other.load"`."""
    said = written[1:-1] if written.startswith(f'"{OTHER}') else written
    return said.partition(".")[0]


def _as_written(statement: "Statement", term: Term, text: str) -> str:
    """A part of a term with what plans call otherwise as it is written: `b.state` in place of `"other.state"`."""
    for name, span in term.columns:
        if is_other_column(name):
            text = text.replace(always_quoted(name), statement.written(span))
    return text


def _compared(statement: "Statement", term: Term, one: Mixed) -> Problem:
    said = _as_written(statement, term, one.text)
    hint = (
        f"put the number in quotes: {one.quoted}"
        if one.quoted
        else "CAST(... AS VARCHAR) makes a text of it"
    )
    hint += f"; for the value of a text TRY_CAST({said} AS DOUBLE)"
    message = f"{said} is a text, which is compared with a number"
    return statement.problem(message, at=one.span, hint=hint)


def notices_of(
    statement: "Statement", stream: "StreamSettings", types: Types
) -> Iterator[Problem]:
    """Which expressions of a statement without problems have no value for quite usual fixes."""
    for term in statement.terms:
        for message, hint in filter(None, map(other_rules, zones_in(term.text))):
            yield statement.problem(message, at=term.span, hint=hint)
        _, result = types[_columns(term, stream), term.text]
        if result.some:
            names = {name.casefold() for name, _ in term.columns}
            values = ", ".join(
                f"{_as_written(statement, term, quoted(name))} is {value!r}"
                for name, value in result.row
                if name.casefold() in names
            )
            said = _as_written(statement, term, term.text)
            message = f"{said} has no value where {values}: {result.some}"
            yield statement.problem(
                message,
                at=term.span,
                hint="NULL stands for it; TRY_CAST says so in the text",
            )


def _columns(term: Term, stream: "StreamSettings | None") -> Columns:
    return columns_of(
        stream.attributes if stream else {},
        partner=term.partner,
        pair=term.of_objects,
        tags=term.tags,
        near=term.of_near,
    )


def _found(term: Term, columns: Columns) -> Iterator[tuple[str, bool]]:
    known = {name for name, _ in columns}
    return ((name, name in known) for name, _ in term.columns)


def _unknown(term: Term, columns: Columns) -> Iterator[tuple[str, tuple[int, int]]]:
    known = {name.casefold() for name, _ in columns}
    return ((name, span) for name, span in term.columns if name.casefold() not in known)
