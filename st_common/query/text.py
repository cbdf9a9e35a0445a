"""The text of statements, and statements from text; what a query means stands in its plan."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from st_common.errors import ConfigError
from st_common.home import checked_name
from st_common.query.dialect import Fairway, Refused, Register
from st_common.query.lower import plan_of, span_of
from st_common.query.plan import LayerJoin, Plan
from st_common.query.problem import Problem, Source, TextError, underlined

Op = Literal["register", "replace", "drop"]
_NAME_LENGTH = 128
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement: what it does with the query `name`, the plan (None for a drop), and where it stands.

    `text` is the statement's own text without the semicolon; `line` and `column` count from 1. `spans` has the offsets
    in `text` of the words `name`, `stream` and `layer`.
    """

    op: Op
    name: str
    plan: Plan | None
    text: str
    line: int
    column: int
    file: str | None = field(default=None, compare=False)
    spans: Mapping[str, tuple[int, int]] = field(default_factory=dict, compare=False, repr=False)

    def problem(self, message: str, *, at: str = "name", hint: str = "") -> Problem:
        """A problem with one of the statement's words."""
        start, end = self.spans.get(at, (0, len(self.text)))
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


def to_text(plan: Plan, name: str) -> str:
    """The statement that registers `plan` as `name`, in one canonical form; `parse` gives an equal plan back."""
    stream, join = _quoted(plan.stream), plan.join
    parts = [f"REGISTER QUERY {_quoted(name)} AS SELECT * FROM {stream}"]  # noqa: S608 - our language, not SQL
    if join is not None:
        same = join.layer == plan.stream
        layer = "layer" if same and plan.stream != "layer" else "layer_" if same else _quoted(join.layer)
        parts.append(f"JOIN {_quoted(join.layer)} {layer}" if same else f"JOIN {layer}")
        parts.append(f"ON {_predicate(join, stream, layer)}")
        if join.kinds:
            parts.append(f"WHERE {layer}.kind {_choice(join.kinds)}")
    if plan.inside is not None:
        box = plan.inside
        parts.append(f"INSIDE ({', '.join(_number(value) for value in (box.minx, box.miny, box.maxx, box.maxy))})")
    if plan.emit == "every":
        parts.append("EMIT EVERY")
    return " ".join(parts)


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
    named = {"name": tree.this}
    plan = None
    if isinstance(tree, Register):
        plan = plan_of(tree.expression)
        named["stream"] = tree.expression.args["from_"].this.this
        if plan.join is not None:
            named["layer"] = tree.expression.args["joins"][0].this.this
    for what, node in named.items():
        _check_name(node.name, what, span_of(node))
    line, column = source.place(start)
    return Statement(
        op="drop" if plan is None else "replace" if tree.args.get("replace") else "register",
        name=tree.this.name,
        plan=plan,
        text=source.text[start:end],
        line=line,
        column=column,
        file=source.file,
        spans={what: _relative(span_of(node), start) for what, node in named.items()},
    )


def _relative(span: tuple[int, int], start: int) -> tuple[int, int]:
    return span[0] - start, span[1] - start


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


def _predicate(join: LayerJoin, stream: str, layer: str) -> str:
    if join.predicate == "intersects":
        return f"ST_Intersects({stream}, {layer})"
    return f"ST_DWithin({stream}, {layer}, {_number(join.distance_m)} m)"


def _choice(kinds: tuple[str, ...]) -> str:
    texts = ["'" + kind.replace("'", "''") + "'" for kind in kinds]
    return f"= {texts[0]}" if len(texts) == 1 else f"IN ({', '.join(texts)})"


def _number(value: float) -> str:
    return repr(float(value)).removesuffix(".0")


def _quoted(name: str) -> str:
    """The name as an identifier: plain where the tokenizer reads it as nothing else."""
    plain = _PLAIN.fullmatch(name) and name.upper() not in _keywords()
    return name if plain else '"' + name.replace('"', '""') + '"'


@cache
def _keywords() -> frozenset[str]:
    return frozenset(Fairway.Tokenizer.KEYWORDS)
