"""The text of statements, and statements from text; what a query means stands in its plan."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter

from sqlglot import exp

from st_common.config.home import checked_name
from st_common.errors import ConfigError
from st_common.layers.table_settings import TableSettings
from st_common.query.areas import Areas
from st_common.query.grammar.nodes import (
    Ask,
    CreateArea,
    CreateStream,
    CreateTable,
    DropArea,
    DropStream,
    DropTable,
    Explain,
    Op,
    Refused,
    Register,
    Show,
    Span,
    Unregister,
    span_of,
)
from st_common.query.grammar.reading import tree_of
from st_common.query.grammar.statements import statement_of
from st_common.query.grammar.tokens import Token, chunks_of
from st_common.query.learning import learn, template_of
from st_common.query.lowering.expression import Term, shifted
from st_common.query.lowering.gathered import Gathered
from st_common.query.lowering.known import KnownAreas
from st_common.query.lowering.lower import Lowered, lowered
from st_common.query.lowering.past import beginning_of, past_of
from st_common.query.lowering.space import region_of
from st_common.query.lowering.table import table_of
from st_common.query.lowering.two_streams import TwoStreams, over_two
from st_common.query.parameter_table import ParameterTable
from st_common.query.parameters import BoundSource
from st_common.query.past import Beginning, Past
from st_common.query.pieces import CutError, Piece, cut
from st_common.query.plan import Plan
from st_common.query.printed import to_text
from st_common.query.problem import Problem, Source, TextError, underlined
from st_common.query.template import Spans
from st_common.query.tokens import check_encoding, odd_in, tokens_of
from st_common.regions.registry import Region
from st_common.uncollected import uncollected

__all__ = ["Statement", "parse", "select_of", "to_text"]

_NAME_LENGTH = 128
NAME_HINT = f"1 to {_NAME_LENGTH} printable characters, no blank at either end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement: what it does (`op`), with which query, area or stream (`name`), and where it stands.

    `plan` is what a query means: of a registration, a replacement, and a SELECT alone or behind EXPLAIN, which have no
    name; `past` is when a SELECT alone asks about, None: the last time that is known; `beginning` from where on a
    registration knows the log before it, None: it begins with the last fixes. `region` is of CREATE AREA, `table` of
    CREATE TABLE, `what` of SHOW: "queries", "areas", "streams" or "tables", `analyze` of EXPLAIN ANALYZE. `areas` are
    the names by which it calls some. `text` is its own text without the semicolon; `line` and `column` count from 1.
    `terms` are the expressions in it, which only who knows the stream can check. `spans` has the offsets in `text` of
    the words `name`, `stream` and `layer`, and of the clauses. `conditional` is IF EXISTS or IF NOT EXISTS. `bound` is
    the text with values of parameters that it stands in, at `start`; None: it had none.
    """

    op: Op
    name: str
    plan: Plan | None
    text: str
    line: int
    column: int
    region: Region | None = None
    table: TableSettings | None = None
    what: str | None = None
    areas: tuple[str, ...] = ()
    file: str | None = field(default=None, compare=False)
    past: Past | None = None
    beginning: Beginning | None = None
    terms: tuple[Term, ...] = field(default=(), compare=False, repr=False)
    spans: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)
    conditional: bool = False
    analyze: bool = False
    two: TwoStreams | None = None
    bound: BoundSource | None = field(default=None, compare=False, repr=False)
    start: int = field(default=0, compare=False, repr=False)

    @property
    def said_in(self) -> str:
        """Where it stands, in words: its line, or its row of a table of parameters."""
        row = None if self.bound is None else self.bound.row_name(self.start)
        return row or f"line {self.line}"

    def problem(
        self, message: str, *, at: str | Span = "name", hint: str = ""
    ) -> Problem:
        """A problem with one of the statement's words or clauses, or with what stands at these offsets in `text`."""
        start, end = (
            self.spans.get(at, (0, len(self.text))) if isinstance(at, str) else at
        )
        if self.bound is not None:
            place = self.start + start, self.start + end
            return self.bound.misfit(message, place, hint)
        before = self.text[:start]
        row = before.count("\n")
        column = start - (before.rfind("\n") + 1)
        snippet = underlined(self.text.split("\n")[row], column, end - start)
        first = self.column - 1 if row == 0 else 0
        return Problem(
            message=message,
            hint=hint,
            file=self.file,
            line=self.line + row,
            column=first + column + 1,
            snippet=snippet,
        )

    def written(self, span: Span) -> str:
        """What stands at these offsets, which are those of a term."""
        return self.text[slice(*span)]


def parse(
    text: str,
    *,
    file: str | None = None,
    areas: Areas | None = None,
    params: ParameterTable | None = None,
) -> list[Statement]:
    """The statements of a text, separated by semicolons, in order; none for a text of blanks and comments.

    `areas` are what a region may name, beside the areas that the text itself creates before. With `params` the text has
    parameters, `$1` or `$name`: a statement with some becomes one for each row of the table, in its order.

    Raises:
        TextError: with all that is wrong in all statements (a QueryError), and with those that could be read; `file` is
            named in it, or the cell of the table.
    """
    source = Source(text, file)
    check_encoding(source)
    if params is not None:
        source = BoundSource(source, params)
        text = source.text
        check_encoding(source)
    try:
        with uncollected():
            return _all(_Reader(source, KnownAreas(areas)), cut(text))
    except CutError:  # something is not closed, and nothing else is told
        whole = Piece(0, text, tuple(tokens_of(source)))
        return _all(_Reader(source, KnownAreas(areas)), [whole])


def select_of(
    text: str, *, file: str | None = None, areas: Areas | None = None
) -> Statement:
    """A SELECT that stands alone, as an `explain` without a name.

    Raises:
        TextError: it is something else, or wrong.
    """
    source = Source(text, file)
    chunks = list(chunks_of(tokens_of(source)))
    if len(chunks) != 1:
        place = chunks[1][0].start_pos if chunks else 0
        raise TextError(
            [
                source.problem(
                    "expected one SELECT", (place, place), "SELECT * FROM stream"
                )
            ]
        )
    reader = _Reader(source, KnownAreas(areas), start="explained")
    (statement,) = _all(reader, [Piece(0, text, tuple(chunks[0]))])
    return statement


@dataclass(frozen=True, slots=True)
class _Reader:
    """Where tokens come from, what areas are known, and the rule of the grammar that a statement begins with."""

    source: Source
    known: KnownAreas
    start: str = "statement"

    @property
    def bound(self) -> BoundSource | None:
        """The source, where it has values of parameters."""
        return self.source if isinstance(self.source, BoundSource) else None


def _all(reader: _Reader, pieces: Iterable[Piece]) -> list[Statement]:
    statements: list[Statement] = []
    problems: list[Problem] = []
    for piece in pieces:
        quick = _filled(reader, piece) if piece.tokens is None else None
        if quick is not None:
            statements.append(quick)
            continue
        for chunk in chunks_of(piece.tokens_of(reader.source.text)):
            statement, refused = _understood(reader, chunk)
            problems += refused
            if statement is None or refused:
                continue
            statements.append(statement)
            may_recur = statement.beginning is None and statement.two is None
            if (
                piece.tokens is None
                and may_recur
                and statement.op in ("register", "replace")
            ):
                again = partial(tree_of, chunk, reader.start)
                learn(piece, statement, chunk, again, reader.known)
    if problems:
        raise TextError(problems, understood=statements)
    return statements


def _understood(
    reader: _Reader, chunk: list[Token]
) -> tuple[Statement | None, list[Problem]]:
    """The statement of a chunk, or what is wrong with it."""
    gathered = Gathered()
    attempted = _attempted(reader, chunk, gathered)
    whole = chunk[0].start_pos, chunk[-1].end_pos
    placed = [(each.span if each.span[1] else whole, each) for each in gathered.found]
    placed.sort(key=itemgetter(0))
    return attempted, [
        reader.source.problem(each.message, span, each.hint) for span, each in placed
    ]


def _filled(reader: _Reader, piece: Piece) -> Statement | None:
    """The statement of a piece that has the shape of an earlier one; None: it has to be parsed."""
    alike = template_of(piece.text)
    if alike is None:
        return None
    template, literals = alike
    reader.known.take_called()
    filled = template.filled(literals, reader.known)
    if filled is None:
        return None
    name, plan, terms = filled
    if not is_name(name) or any("." in focal for focal in plan.focals):
        return None  # an object may be of another stream: see `two_streams`
    text = piece.text[: len(piece.text) - template.behind]
    line, column = reader.source.place(piece.start)
    return Statement(
        op=template.statement.op,
        name=name,
        plan=plan,
        text=text,
        line=line,
        column=column,
        areas=reader.known.take_called(),
        file=reader.source.file,
        terms=terms,
        spans=Spans(template, text),
        conditional=template.statement.conditional,
        bound=reader.bound,
        start=piece.start,
    )


def _attempted(
    reader: _Reader, chunk: list[Token], gathered: Gathered
) -> Statement | None:
    """The statement of a chunk; None when it cannot be read, which was gathered then."""
    odd = next(filter(None, map(odd_in, chunk)), None)
    if odd is not None:
        gathered.found.append(odd)
        return None
    try:
        return gathered.attempt(lambda: _read(reader, chunk, gathered), None)
    except RecursionError:
        whole = chunk[0].start_pos, chunk[-1].end_pos
        gathered.found.append(Refused("nested too deeply", whole))
        return None


def _read(reader: _Reader, chunk: list[Token], gathered: Gathered) -> Statement | None:
    tree, refusals = statement_of(chunk, reader.start)
    gathered.found.extend(refusals)
    if tree is None:
        return None
    known = reader.known
    known.take_called()
    select = (
        tree.args.get("expression")
        if isinstance(tree, Register | Explain | Ask)
        else None
    )
    two, meaning = None, None
    if select is not None:
        two = gathered.attempt(lambda: over_two(select, known), None)
        meaning = lowered(select, known, gathered)
    region = _area(tree, known, gathered)
    table = None
    if isinstance(tree, CreateTable):
        table = gathered.attempt(partial(table_of, tree), None)
    _check_names(tree, meaning, gathered)
    if select is not None and meaning is None:
        return None
    said = replace(_statement(reader, tree, chunk, meaning, region), table=table)
    past = gathered.attempt(partial(past_of, tree.args.get("past")), None)
    begins = gathered.attempt(partial(beginning_of, tree.args.get("beginning")), None)
    called = known.take_called()
    return replace(said, areas=called, past=past, beginning=begins, two=two)


def _check_names(tree: exp.Expr, meaning: Lowered | None, gathered: Gathered) -> None:
    """Gathers the names that a statement gives or uses, and that cannot be names."""
    named: list[tuple[str, str, tuple[int, int]]] = []
    if tree.this is not None and not isinstance(tree, Show):
        what = "table" if isinstance(tree, CreateTable | DropTable) else "name"
        named.append((what, tree.name, span_of(tree.this)))
    if meaning is not None:
        plan, spans = meaning.plan, meaning.spans
        named.append(("stream", plan.stream, spans["stream"]))
        if plan.join is not None:
            named.append(("layer", plan.join.layer, spans["layer"]))
    for what, name, span in named:
        gathered.attempt(partial(_check_name, name, what, span), None)


def _area(tree: exp.Expr, known: KnownAreas, gathered: Gathered) -> Region | None:
    """The region that a statement names; what stands after it knows the name."""
    if isinstance(tree, DropArea):
        known.drop(tree.name)
    if not isinstance(tree, CreateArea):
        return None
    region = gathered.attempt(lambda: region_of(tree.expression, known), None)
    if not (tree.args["conditional"] and known.has(tree.name)):
        known.create(tree.name, region)
    return region


def _statement(
    reader: _Reader,
    tree: exp.Expr,
    chunk: list[Token],
    meaning: Lowered | None,
    region: Region | None,
) -> Statement:
    start, end = chunk[0].start_pos, chunk[-1].end_pos
    source = reader.source
    line, column = source.place(start)
    shown = isinstance(tree, Show)
    spans = dict(meaning.spans) if meaning else {}
    if tree.this is not None:
        spans["name"] = span_of(tree.this)
    if region is not None:
        spans["region"] = span_of(tree.expression)
    return Statement(
        op=_op(tree),
        name="" if shown else tree.name,
        plan=meaning.plan if meaning else None,
        text=source.text[start:end],
        line=line,
        column=column,
        region=region,
        what=tree.name if shown else None,
        file=source.file,
        terms=tuple(shifted(term, -start) for term in meaning.terms) if meaning else (),
        spans={
            what: (span[0] - start, span[1] - start) for what, span in spans.items()
        },
        conditional=bool(tree.args.get("conditional")),
        analyze=bool(tree.args.get("analyze")),
        bound=reader.bound,
        start=start,
    )


def _op(tree: exp.Expr) -> Op:
    if tree.args.get("replaces"):
        return "replace_area"
    return "replace" if tree.args.get("replace") else _OPS[type(tree)]


_OPS: dict[type[exp.Expr], Op] = {
    Register: "register",
    Unregister: "drop",
    Show: "show",
    Explain: "explain",
    Ask: "ask",
    CreateArea: "create_area",
    DropArea: "drop_area",
    CreateStream: "create_stream",
    DropStream: "drop_stream",
    CreateTable: "create_table",
    DropTable: "drop_table",
}


def _check_name(name: str, what: str, span: tuple[int, int]) -> None:
    """Streams and layers are folders, so their names are narrow; a query's name is any short printable text."""
    if what != "name":
        try:
            *group, table = name.lower().rsplit(".", 1)  # names are found in any case
            for part in group:
                checked_name(part, "group")
            checked_name(table, what)
        except ConfigError as error:
            raise Refused(error.message, span, error.hint) from None
    elif not is_name(name):
        message = f"{name[:_NAME_LENGTH]!r} is no name for a query or an area"
        raise Refused(message, span, NAME_HINT)


def is_name(name: str) -> bool:
    """Whether a query or an area may be called so."""
    return 0 < len(name) <= _NAME_LENGTH and name.isprintable() and name == name.strip()
