"""Whether the expressions of statements fit their streams: columns that exist, values of the type that is needed."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from st_common.query.binding import Bound, Columns, bound, columns_of
from st_common.query.lowering.expression import Term
from st_common.query.names import beside_speed
from st_common.query.problem import Problem, did_you_mean

if TYPE_CHECKING:
    from st_common.query.text import Statement
    from st_common.settings import StreamSettings

Types = dict[tuple[Columns, str], Bound]
_WANTED = {
    "boolean": ("WHERE needs a condition", "such as speed > 3"),
    "number": ("an aggregate needs a number", "COUNT takes anything; CAST(... AS DOUBLE) makes a number of a text"),
    "text": ("a key of a layer is a text", "CAST(... AS VARCHAR)"),
}


def types_of(statements: "Iterable[Statement]", streams: "Mapping[str, StreamSettings]") -> Types:
    """The types of all expressions of statements whose columns are known, bound many at once."""
    texts: dict[Columns, dict[str, None]] = defaultdict(dict)
    for statement in statements:
        stream = streams.get(statement.plan.stream) if statement.plan else None
        for term in statement.terms if stream else ():
            columns = _columns(term, stream)
            if not any(_unknown(term, columns)):
                texts[columns][term.text] = None
    return {
        (columns, text): type_
        for columns, chosen in texts.items()
        for text, type_ in zip(chosen, bound(list(chosen), columns), strict=True)
    }


def problems_of(statement: "Statement", stream: "StreamSettings", types: Types) -> Iterator[Problem]:
    """What is wrong with the expressions of a statement on this stream."""
    for term in beside_speed(statement):
        if any(known and name != "object" for name, known in _found(term, _columns(term, stream))):
            hint = "SELECT object, AVGSPD(*)"
            yield statement.problem("beside AVGSPD stand literals and the object alone", at=term.span, hint=hint)
    for term in statement.terms:
        columns = _columns(term, stream)
        unknown = list(_unknown(term, columns))
        for name, span in unknown:
            names = [known for known, _ in columns]
            hint = did_you_mean(name, names) or f"known columns: {', '.join(sorted(names))}"
            yield statement.problem(f"unknown column {name!r}", at=span, hint=hint)
        if unknown:
            continue
        found = types[columns, term.text]
        if found.error:
            yield statement.problem(found.error, at=term.span, hint="CAST(... AS ...) turns one type into another")
        elif term.needs not in ("any", found.kind):
            message, hint = _WANTED[term.needs]
            yield statement.problem(f"{message}, not a value of type {found.type}", at=term.span, hint=hint)


def _columns(term: Term, stream: "StreamSettings | None") -> Columns:
    return columns_of(stream.attributes if stream else {}, partner=term.partner)


def _found(term: Term, columns: Columns) -> Iterator[tuple[str, bool]]:
    known = {name for name, _ in columns}
    return ((name, name in known) for name, _ in term.columns)


def _unknown(term: Term, columns: Columns) -> Iterator[tuple[str, tuple[int, int]]]:
    known = {name.casefold() for name, _ in columns}
    return ((name, span) for name, span in term.columns if name.casefold() not in known)
