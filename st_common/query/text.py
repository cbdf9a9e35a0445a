"""The text of statements, and statements from text; what a query means stands in its plan."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from st_common.errors import ConfigError
from st_common.home import checked_name
from st_common.query.grammar.dialect import Fairway
from st_common.query.grammar.nodes import Refused, Register, Span, span_of
from st_common.query.lowering.expression import Term
from st_common.query.lowering.lower import lowered
from st_common.query.plan import Plan
from st_common.query.printed import to_text
from st_common.query.problem import Problem, Source, TextError, underlined

__all__ = ["Statement", "parse", "to_text"]

Op = Literal["register", "replace", "drop"]
_NAME_LENGTH = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement: what it does with the query `name`, the plan (None for a drop), and where it stands.

    `text` is the statement's own text without the semicolon; `line` and `column` count from 1. `terms` are the
    expressions in it, which only who knows the stream can check. `spans` has the offsets in `text` of the words `name`,
    `stream` and `layer`, and of the clauses.
    """

    op: Op
    name: str
    plan: Plan | None
    text: str
    line: int
    column: int
    file: str | None = field(default=None, compare=False)
    terms: tuple[Term, ...] = field(default=(), compare=False, repr=False)
    spans: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)

    def problem(self, message: str, *, at: str | Span = "name", hint: str = "") -> Problem:
        """A problem with one of the statement's words or clauses, or with what stands at these offsets in `text`."""
        start, end = self.spans.get(at, (0, len(self.text))) if isinstance(at, str) else at
        before = self.text[:start]
        row = before.count("\n")
        column = start - (before.rfind("\n") + 1)
        snippet = underlined(self.text.split("\n")[row], column, end - start)
        first = self.column - 1 if row == 0 else 0
        return Problem(
            message=message, hint=hint, file=self.file, line=self.line + row, column=first + column + 1, snippet=snippet
        )


def parse(text: str, *, file: str | None = None) -> list[Statement]:
    """The statements of a text, separated by semicolons, in order; none for a text of blanks and comments.

    Raises:
        TextError: with every statement that is wrong (a QueryError); `file` is named in it.
    """
    source = Source(text, file)
    parser = Fairway().parser()
    statements: list[Statement] = []
    problems: list[Problem] = []
    for chunk in _chunks(_tokens(source)):
        try:
            statements.append(_statement(source, parser.parse(chunk, text)[0], chunk))
        except Refused as refused:
            span = refused.span if refused.span[1] else (chunk[0].start, chunk[-1].end + 1)
            problems.append(source.problem(refused.message, span, refused.hint))
        except (ParseError, RecursionError) as error:
            message = "nested too deeply" if isinstance(error, RecursionError) else "cannot be understood"
            problems.append(source.problem(message, (chunk[0].start, chunk[-1].end + 1)))
    if problems:
        raise TextError(problems)
    return statements


def _tokens(source: Source) -> list[Token]:
    try:
        source.text.encode()
    except UnicodeEncodeError as error:
        raise TextError([source.problem("the text is not valid UTF-8", (error.start, error.end))]) from None
    try:
        return Fairway().tokenize(source.text)
    except TokenError as error:
        found = re.match(r"(Missing .+) from \d+:(\d+)$", str(error.__cause__), re.DOTALL)
        start = int(found[2]) if found else max(source.text.rfind(mark) for mark in ("/*", "{#"))
        message = f"{found[1].removeprefix('Missing ')} is not closed" if found else "a comment is not closed"
        raise TextError([source.problem(message, (max(start, 0), start + 1))]) from None


def _chunks(tokens: list[Token]) -> Iterator[list[Token]]:
    """The tokens of each statement."""
    chunk: list[Token] = []
    for token in tokens:
        if token.token_type != TokenType.SEMICOLON:
            chunk.append(token)
        elif chunk:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _statement(source: Source, tree: exp.Expr | None, chunk: list[Token]) -> Statement:
    start, end = chunk[0].start, chunk[-1].end + 1
    assert tree is not None  # noqa: S101 - the dialect refuses what is no statement
    found = lowered(tree.expression) if isinstance(tree, Register) else None
    _check_name(tree.name, "name", span_of(tree.this))
    if found is not None:
        _check_name(found.plan.stream, "stream", found.spans["stream"])
    if found is not None and found.plan.join is not None:
        _check_name(found.plan.join.layer, "layer", found.spans["layer"])
    line, column = source.place(start)
    spans = {"name": span_of(tree.this), **(found.spans if found else {})}
    return Statement(
        op="drop" if found is None else "replace" if tree.args.get("replace") else "register",
        name=tree.name,
        plan=found.plan if found else None,
        text=source.text[start:end],
        line=line,
        column=column,
        file=source.file,
        terms=tuple(_relative(term, start) for term in found.terms) if found else (),
        spans={what: (span[0] - start, span[1] - start) for what, span in spans.items()},
    )


def _relative(term: Term, start: int) -> Term:
    columns = tuple((name, (span[0] - start, span[1] - start)) for name, span in term.columns)
    return replace(term, span=(term.span[0] - start, term.span[1] - start), columns=columns)


def _check_name(name: str, what: str, span: tuple[int, int]) -> None:
    """Streams and layers are folders, so their names are narrow; a query's name is any short printable text."""
    if what != "name":
        try:
            checked_name(name, what)
        except ConfigError as error:
            raise Refused(error.message, span, error.hint) from None
    elif not 0 < len(name) <= _NAME_LENGTH or not name.isprintable() or name != name.strip():
        message = f"{name[:_NAME_LENGTH]!r} is no name for a query"
        raise Refused(message, span, f"1 to {_NAME_LENGTH} printable characters, no blank at either end")
