"""Tokens as a statement, as much of it as can be read; a text as an expression.

Where a clause is wrong, what is wrong is kept, the clause is left out, and the statement is read again without it:

    SELECT * FROM s INSDE (1, 2) WHERE a = EMIT EVERY        refused: INSDE
    SELECT * FROM s              WHERE a = EMIT EVERY        refused: EMIT, behind `a =`
    SELECT * FROM s                        EMIT EVERY        is what is read
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from st_common.query.grammar.automaton import END
from st_common.query.grammar.language import table
from st_common.query.grammar.nodes import (
    FIRST,
    INCOMPLETE,
    REFUSED,
    TWICE,
    Refused,
    Rows,
)
from st_common.query.grammar.reading import UnexpectedError, tree_of
from st_common.query.grammar.refusing import (
    STATEMENTS,
    refusal,
    refused_aliases,
)
from st_common.query.grammar.terminals import tokens_in
from st_common.query.grammar.tokens import Token, UnclosedError

_MOST = 20  # problems of one statement
_DUCKDB = DuckDB()
_CLAUSES = frozenset(
    (
        *(
            "WHERE",
            "INSIDE",
            "NOT_INSIDE",
            "GPAC_IN",
            "KNN",
            "GPAC_KNN",
            "REVERSE_KNN",
            "GROUP_KNN",
        ),
        *(
            "DETECT",
            "GROUP_BY",
            "HAVING",
            "ORDER_BY",
            "WINDOW",
            "COMPARE_WITH",
            "USING",
            "EMIT",
            "WITH",
        ),
    )
)
_LEANT_ON = frozenset(("WHERE", "GROUP_BY", "JOIN", "INNER"))  # by other clauses


class Reading(NamedTuple):
    """What was read of a statement, None when nothing was, and what was refused of it."""

    tree: exp.Expr | None
    refusals: Sequence[Refused]


class _Cut(NamedTuple):
    """Tokens without those that cannot be read, and the first of these."""

    tokens: list[Token]
    first: Token | None


def statement_of(tokens: Sequence[Token], start: str = "statement") -> Reading:
    """The statement that tokens say; clauses that are wrong are left out of it."""
    refusals: list[Refused] = []
    cuts: list[_Cut] = []
    left = list(tokens)
    while len(refusals) < _MOST:
        try:
            tree: exp.Expr = tree_of(left, start)
        except UnexpectedError as error:
            said, place = refusal(error)
            refusals.append(said)
            cut = _without(place)
            if cut is None:
                return Reading(None, refusals)
            cuts.append(cut)
            left = cut.tokens
        else:
            unused = () if cuts else refused_aliases(left, start)
            return Reading(tree, [*refusals, *_refused_in(tree, cuts), *unused])
    return Reading(None, refusals)


def expression_of(text: str) -> exp.Expr:
    """The tree of an expression.

    Raises:
        Refused: the text is no expression.
    """
    try:
        tree: exp.Expr = tree_of(tokens_in(text), "expression")
    except UnexpectedError as error:
        raise refusal(error).said from None
    except UnclosedError as error:
        message = f"{error.mark} is not closed"
        raise Refused(message, (error.start, error.start + 1)) from None
    return tree


def text_of(node: exp.Expr) -> str:
    """The text of an expression's tree, which may be changed by this."""
    return _DUCKDB.generate(node, comments=False, copy=False)


def _refused_in(tree: exp.Expr, cuts: Sequence[_Cut]) -> Sequence[Refused]:
    """Marks a SELECT from which something was cut; what is refused for standing there twice."""
    selects = list(_selects(tree))
    for select in selects if cuts else ():
        _mark(select, cuts)
    return [one for select in selects for one in select.meta.get(TWICE, ())]


def _selects(tree: exp.Expr) -> Iterator[exp.Select]:
    """The SELECT of a statement, and those behind FROM, from the outside in: nowhere else stands one."""
    select = tree.args.get("expression")
    while isinstance(select, exp.Select):
        yield select
        source = select.args["from_"].this
        select = source.this if isinstance(source, Rows) else None


def _mark(select: exp.Expr, cuts: Sequence[_Cut]) -> None:
    """Says of a SELECT what was cut from it, or from one around it or in it."""
    for _, first in cuts:
        if first is not None:
            select.meta.setdefault(REFUSED, set()).add(first.upper())
        if first is None or first.type in _LEANT_ON or first.type not in _CLAUSES:
            select.meta[INCOMPLETE] = True


def _without(error: UnexpectedError) -> _Cut | None:
    """The tokens without the clause that an error stands in; None when what is wrong is no clause."""
    tokens, index = list(error.tokens), error.index
    values: list[Any] = error.stack.values
    if index and error.stack.takes(END):
        return _cut(error, index)
    before = _before_clause(error)
    if before is not None:
        word = _first_word(values[before])
        first = next(at for at, each in enumerate(tokens) if each is word)
        return _cut(error, first)
    return _without_items(error)


def _before_clause(error: UnexpectedError) -> int | None:
    """Which of the parser's values is the first word of the clause that an error stands in."""
    actions, stack = table().actions, error.stack
    for at in range(len(stack.values) - 1, -1, -1):
        if "clause" in actions[stack.states[at]]:
            return at if _first_word(stack.values[at]) is not None else None
    return None


def _first_word(value: Any) -> Token | None:
    """The token that a clause begins with, of its first value: that itself, or the one of the first region."""
    return value if isinstance(value, Token) else getattr(value, "meta", {}).get(FIRST)


def _cut(error: UnexpectedError, first: int) -> _Cut:
    """Cuts from a token to where the next clause begins behind the error; all, where a statement begins there."""
    tokens, index = list(error.tokens), error.index
    behind = max(index, first + 1)
    if index < len(tokens) and tokens[index].type in STATEMENTS:
        behind = len(tokens)
    depth = sum((each == "(") - (each == ")") for each in tokens[first:behind])
    while behind < len(tokens) and not _begins_clause(tokens, behind):
        depth += (tokens[behind] == "(") - (tokens[behind] == ")")
        if depth < 0:
            break  # the parenthesis closes the query that the clause is of
        behind += 1
    return _Cut([*tokens[:first], *tokens[behind:]], tokens[first])


def _begins_clause(tokens: Sequence[Token], at: int) -> bool:
    token = tokens[at]
    word = token.kind if token.kind != "NAME" else token.upper()
    is_options = word != "WITH" or tokens[at + 1 : at + 2] == ["("]
    return word in _CLAUSES and is_options


def _without_items(error: UnexpectedError) -> _Cut | None:
    """The tokens with * for the items that an error stands in, when FROM stands behind them."""
    values, tokens = error.stack.values, list(error.tokens)
    select = next((at for at, each in enumerate(values) if _is(each, "SELECT")), None)
    if select is None or any(_is(each, "FROM") for each in values[select + 2 :][:1]):
        return None
    first = next(at for at, each in enumerate(tokens) if each is values[select]) + 1
    depth = 0
    for at in range(first, len(tokens)):
        depth += (tokens[at] == "(") - (tokens[at] == ")")
        if depth <= 0 and tokens[at].upper() == "FROM":
            everything = tokens_in("*")
            everything[0].start_pos, everything[0].end_pos = tokens[first].span
            return _Cut([*tokens[:first], *everything, *tokens[at:]], None)
    return None


def _is(value: object, terminal: str) -> bool:
    return isinstance(value, Token) and value.type == terminal
