"""Comparisons of texts with numbers: DuckDB makes numbers of the texts, which fails for the first that is none (S3)."""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from st_common.query.binding import Columns, bound
from st_common.query.grammar.comparing import COMPARING
from st_common.query.grammar.nodes import Span
from st_common.query.grammar.statements import expression_of, text_of
from st_common.query.lowering.expression import Term


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixed:
    """A text beside numbers: its text as written in canonical form, where it stands, and the numbers in quotes."""

    text: str
    span: Span
    quoted: str


def mixed(term: Term, columns: Columns) -> Iterator[Mixed]:
    """The comparisons in a term of a text, which is no literal, with a number; its columns are known."""
    kinds = {name.casefold(): kind for name, kind in columns}
    if not any(kinds[name.casefold()] == "VARCHAR" for name, _ in term.columns):
        return
    for node in expression_of(term.text).find_all(*COMPARING):
        sides = [side.unnest() for side in node.iter_expressions()]
        named = [
            side
            for side in sides
            if not isinstance(side, exp.Literal | exp.Neg | exp.Null | exp.Boolean)
        ]
        types = {
            id(side): kind_of_side
            for side, kind_of_side in zip(
                named, bound([text_of(s) for s in named], columns), strict=True
            )
        }
        texts = [side for side in named if types[id(side)].kind == "text"]
        numbers = [
            side
            for side in sides
            if _is_number(side)
            or (types.get(id(side)) and types[id(side)].kind == "number")
        ]
        if texts and numbers:
            literals = [text_of(side) for side in numbers if _is_number(side)]
            yield Mixed(
                text=text_of(texts[0]),
                span=_span(texts[0], term),
                quoted=", ".join(f"'{one}'" for one in literals),
            )


def _is_number(node: exp.Expr) -> bool:
    bare = node.this if isinstance(node, exp.Neg) else node
    return isinstance(bare, exp.Literal) and not bare.args.get("is_string")


def _span(node: exp.Expr, term: Term) -> Span:
    """Where the first column in a part of a term stands; the whole term without one."""
    names = {column.name.casefold() for column in node.find_all(exp.Column)}
    return next(
        (span for name, span in term.columns if name.casefold() in names), term.span
    )
