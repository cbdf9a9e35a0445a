"""A SELECT about the rows of another one: what it asks of them, by their columns alone."""

from dataclasses import replace

from sqlglot import exp

from st_common.config.units import domain_of
from st_common.query.grammar.nodes import Refused, Rows, Span, span_of
from st_common.query.lowering.condition import conditions_of
from st_common.query.lowering.expression import Term, conjuncts
from st_common.query.lowering.gathered import Gathered
from st_common.query.lowering.having import of_rows
from st_common.query.lowering.quantity import duration, window_of
from st_common.query.lowering.scope import Scope
from st_common.query.lowering.select import Selected, selected_of
from st_common.query.plan import Aggregate, Outer, Window
from st_common.query.tree.growing import OF_FIXES

_WORDS = {
    "knn": "KNN",
    "compare": "COMPARE WITH",
    "lasting": "FOR",
    "options": "WITH",
}
"""Clauses that are not called as in the tree of a statement."""

_CLAUSES = ("where", "group", "select", "emit", "window", "lasting")


def outer_of(select: exp.Expr, gathered: Gathered) -> Outer | None:
    """What a SELECT asks of the rows of the one in parentheses behind its FROM; None where it cannot be read."""
    rows: Rows = select.args["from_"].this
    before = len(gathered.found)
    _refuse_clauses(select, gathered)
    label = rows.args["alias"].name if rows.args.get("alias") else "rows"
    scope = Scope(label=label, own=frozenset({label.casefold()}), joined="rows")
    selected = gathered.attempt(
        lambda: selected_of(select, scope, gathered), Selected()
    )
    where = select.args.get("where")
    parts = tuple(conjuncts(where.this)) if where is not None else ()
    condition = conditions_of(parts, scope, gathered).term
    for term in (*selected.terms, condition):
        gathered.attempt(lambda term=term: _refuse_units(term), None)  # type: ignore[misc]
    if selected.columns:
        message = "the rows of a query are told as they are"
        hint = "SELECT *, an aggregate, or DISTINCT; columns are selected in the parentheses"
        gathered.found.append(Refused(message, span_of(select.expressions[0]), hint))
    window = gathered.attempt(lambda: _window_of(select), None)
    lasting_s = gathered.attempt(lambda: _lasting_of(select), None)
    if len(gathered.found) > before:
        return None
    where_text = None if condition is None else condition.text
    aggregate = _chosen_by(select, selected.aggregate, scope, gathered)
    return Outer(
        where=where_text, aggregate=aggregate, window=window, lasting_s=lasting_s
    )


def _window_of(select: exp.Expr) -> Window | None:
    said = select.args.get("window")
    return None if said is None else window_of(said)


def _lasting_of(select: exp.Expr) -> float | None:
    """How long rows are there before they count, in seconds; None without FOR."""
    holding = select.args.get("lasting")
    if holding is None:
        return None
    amounts = holding.expressions
    if len(amounts) > 1 or domain_of(amounts[0].text("unit") or "s") != "time":
        message = "FOR above rows is a time: rows are not fixes that could be counted"
        raise Refused(message, span_of(holding), "FOR 5 min")
    return duration(amounts[0], "FOR")


def _chosen_by(
    select: exp.Expr, aggregate: Aggregate | None, scope: Scope, gathered: Gathered
) -> Aggregate | None:
    """The aggregate with what HAVING asks of its groups."""
    having = select.args.get("having")
    if having is None:
        return aggregate
    asked = asked_of_groups(having, aggregate, scope, gathered)
    if aggregate is None or asked is None:
        return aggregate
    if aggregate.top is None:
        message = "HAVING about rows needs values of groups"
        hint = "WHERE asks about the rows themselves"
        gathered.found.append(Refused(message, span_of(having.this), hint))
        return None
    return replace(aggregate, top=replace(aggregate.top, having=asked.where))


def asked_of_groups(
    having: exp.Expr, aggregate: Aggregate | None, scope: Scope, gathered: Gathered
) -> Outer | None:
    """What a HAVING asks of the groups of its query; None where it cannot be read."""
    before = len(gathered.found)
    tree = gathered.attempt(lambda: of_rows(having.this, aggregate, scope), None)
    if tree is None:
        return None
    label = Scope(label="rows", own=frozenset({"rows"}), joined="rows")
    condition = conditions_of(tuple(conjuncts(tree)), label, gathered).term
    gathered.attempt(lambda: _refuse_units(condition), None)
    is_wrong = condition is None or len(gathered.found) > before
    return None if is_wrong or condition is None else Outer(where=condition.text)


def spans_of(select: exp.Expr) -> dict[str, Span]:
    """Where the clauses of a SELECT about rows stand, each behind the word `outer`."""
    nodes = {clause: select.args.get(clause) for clause in _CLAUSES}
    nodes["select"] = select.expressions[0]
    return {
        f"outer {clause}": span_of(node)
        for clause, node in nodes.items()
        if node is not None
    }


def _refuse_clauses(select: exp.Expr, gathered: Gathered) -> None:
    """Clauses that ask for more than the columns of rows, and those that are about the query in parentheses."""
    for join in select.args.get("joins") or ():
        message = "rows of a query are joined with nothing: they have no place"
        gathered.found.append(
            Refused(message, span_of(join.this), "join in the parentheses")
        )
    for clause, node in select.args.items():
        of_rows = ("window", "lasting")
        if clause not in OF_FIXES or node is None or clause in of_rows:
            continue
        word = _WORDS.get(clause, clause.upper())
        message = f"{word} is about fixes, and not about the rows of a query"
        gathered.found.append(
            Refused(message, span_of(node), "put it into the parentheses")
        )
    emit = select.args.get("emit")
    if emit is not None and (emit.this.name == "every" or emit.args.get("valid_until")):
        message = "what is asked of the rows of a query is told by its changes"
        hint = "EMIT CHANGES; SELECT RSTREAM (..) tells what stays"
        gathered.found.append(Refused(message, span_of(emit), hint))


def _refuse_units(term: Term | None) -> None:
    """A column of rows has no unit that is known, so a number beside it has none."""
    if term is not None and term.measures:
        _, _, span = term.measures[0]
        hint = "a number alone; units stand in the parentheses"
        raise Refused("a column of rows has no unit", span, hint)
