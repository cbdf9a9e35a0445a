"""A parsed SELECT as operators, which are fused into a plan, with what is still to be checked and where it stands."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from st_common.query.areas import Areas
from st_common.query.grammar.nodes import (
    INCOMPLETE,
    Emit,
    Refused,
    Rows,
    Span,
    span_of,
)
from st_common.query.incident import Incident
from st_common.query.lowering.comparing import compare_of, transforms_of
from st_common.query.lowering.exists import Choice, Said, choice_of, said_of
from st_common.query.lowering.expression import Term
from st_common.query.lowering.fence import fence_of
from st_common.query.lowering.frame import frame_of, refuse_windows
from st_common.query.lowering.gathered import Gathered
from st_common.query.lowering.incident import (
    ending_of,
    incident_of,
    with_expressions,
)
from st_common.query.lowering.join import layer_join_of, pair_join_of
from st_common.query.lowering.near_place import with_circle
from st_common.query.lowering.options import options_of
from st_common.query.lowering.outer import asked_of_groups, outer_of, spans_of
from st_common.query.lowering.own_region import with_own_region
from st_common.query.lowering.quantity import window_of
from st_common.query.lowering.rows_below import with_rows_below
from st_common.query.lowering.scope import Scope, stream_of, with_labels
from st_common.query.lowering.select import Selected, selected_of
from st_common.query.lowering.space import neighbours_of, region_of
from st_common.query.plan import (
    Aggregate,
    LayerJoin,
    Outer,
    PairJoin,
    Plan,
)
from st_common.query.plan import Emit as EmitMode
from st_common.query.tree.fusing import plan_of
from st_common.query.tree.growing import grown
from st_common.query.tree.relational import Source, emit_in_words

_CLAUSES = (
    "where",
    "group",
    "inside",
    "knn",
    "detect",
    "window",
    "compare",
    "using",
    "emit",
    "options",
    "lasting",
    "until",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowered:
    """A plan, the expressions in it, and the offsets of its clauses in the text."""

    plan: Plan
    terms: tuple[Term, ...]
    spans: Mapping[str, Span]


def lowered(select: exp.Expr, areas: Areas, gathered: Gathered) -> Lowered | None:
    """The plan of a parsed SELECT; None when something was refused, all of which is gathered."""
    with_labels(select)
    if not isinstance(select.args["from_"].this, Rows):
        select = with_rows_below(select, areas)
    source = select.args["from_"].this
    if isinstance(source, Rows):
        return _above_rows(select, source, areas, gathered)
    gathered.attempt(lambda: with_own_region(select), None)
    gathered.attempt(lambda: with_circle(select), None)
    fields = _alone(select, source, areas, gathered)
    choice = choice_of(select, gathered)
    if select.meta.get(INCOMPLETE):
        return None  # what is left leans on what was refused
    scope = gathered.attempt(lambda: choice.around(source), None)
    related = (
        _related(select, choice, scope, fields["incident"], gathered)
        if scope is not None
        else None
    )
    outer = None
    if scope is not None and related is not None:
        outer = _asked_of_groups(select, related[0]["aggregate"], scope, gathered)
    if gathered.found or related is None:
        return None
    more, terms = related
    more, outer = _chosen_first(more, outer)
    tree = grown(Source(stream=stream_of(source, choice.join)), {**fields, **more})
    plan = replace(plan_of(tree), outer=outer)
    return Lowered(plan=plan, terms=terms, spans=_spans(select, source, choice.join))


def _asked_of_groups(
    select: exp.Expr, aggregate: Aggregate | None, scope: Scope, gathered: Gathered
) -> Outer | None:
    """What HAVING asks of the groups; None without it, and where it cannot be read."""
    having = select.args.get("having")
    if having is None:
        return None
    return asked_of_groups(having, aggregate, scope, gathered)


def _chosen_first(
    said: dict[str, Any], outer: Outer | None
) -> tuple[dict[str, Any], Outer | None]:
    """Beside LIMIT what HAVING asks stands in the aggregate, for it comes before; else as it was given."""
    counted: Aggregate | None = said["aggregate"]
    if counted is None or counted.top is None or outer is None:
        return said, outer
    top = replace(counted.top, having=outer.where)
    return {**said, "aggregate": replace(counted, top=top)}, None


def _above_rows(
    select: exp.Expr, rows: Rows, areas: Areas, gathered: Gathered
) -> Lowered | None:
    """The plan of a SELECT about the rows of another one: that one's, and what is asked of its rows."""
    if isinstance(rows.this.args["from_"].this, Rows):
        span = span_of(rows.this.args["from_"].this)
        gathered.found.append(Refused(_TWICE, span, _STREAM_BETWEEN))
        return None
    inner = lowered(rows.this, areas, gathered)
    # Beside LIMIT a HAVING stands in the aggregate, and nothing is asked of rows yet.
    if inner is not None and inner.plan.outer is not None:
        gathered.found.append(_asked_already(rows.this))
        return None
    outer = outer_of(select, gathered)
    if inner is None or outer is None or select.meta.get(INCOMPLETE):
        return None
    if inner.plan.emit != "changes":
        told = rows.this.args.get("kind") or rows.this.args.get("emit")
        message = (
            f"{emit_in_words(inner.plan.emit)} and FROM (SELECT ..) exclude each other"
        )
        hint = "what stands in parentheses is not told: say it of the query around it"
        gathered.found.append(Refused(message, span_of(told), hint))
        return None
    kind = select.args.get("kind")
    emit: EmitMode = gathered.attempt(lambda: _mode(kind, None), "changes")
    return Lowered(
        plan=replace(inner.plan, outer=outer, emit=emit),
        terms=inner.terms,
        spans={**inner.spans, **spans_of(select)},
    )


_TWICE = "a query is about the rows of another one once"
_STREAM_BETWEEN = "CREATE STREAM x AS SELECT .. tells these rows to queries about x"


def _asked_already(select: exp.Expr) -> Refused:
    """Why what stands in parentheses cannot: its own clauses ask about rows already (see `rows_below`)."""
    having = select.args.get("having")
    if having is not None:
        message = "HAVING and FROM (SELECT ..) exclude each other"
        hint = "ask in the WHERE of the query around it"
        return Refused(message, span_of(having), hint)
    lasts = select.args.get("window") or select.args.get("lasting")
    span = span_of(lasts or select.expressions[0])
    message = f"{_TWICE}, and this is about rows already"
    return Refused(message, span, _STREAM_BETWEEN)


def _alone(
    select: exp.Expr, source: exp.Expr, areas: Areas, gathered: Gathered
) -> dict[str, Any]:
    """What is said without names of columns, by the parts of a plan; each clause is read by itself."""
    inside, knn, _, window, compare, using, emit, options = (
        select.args.get(key) for key in _CLAUSES[2:10]
    )
    attempt = gathered.attempt
    chosen = options_of(options, gathered)
    return {
        "inside": attempt(lambda: region_of(inside, areas), None) if inside else None,
        "neighbours": attempt(lambda: neighbours_of(knn), None) if knn else None,
        "window": attempt(lambda: window_of(window), None) if window else None,
        "frame": frame_of(source.args.get("windows") or (), chosen, areas, gathered),
        "fence": fence_of(select, chosen, gathered),
        "incident": incident_of(select, chosen, gathered),
        "transforms": transforms_of(using, gathered) if using else (),
        "compare": attempt(lambda: compare_of(compare), None) if compare else None,
        "valid_until": bool(emit and emit.args.get("valid_until")),
        "order": chosen.order,
        "emit": attempt(lambda: _mode(select.args.get("kind"), emit), "changes"),
    }


def _related(
    select: exp.Expr,
    choice: Choice,
    scope: Scope,
    incident: Incident | None,
    gathered: Gathered,
) -> tuple[dict[str, Any], tuple[Term, ...]] | None:
    """What is said with names, by the parts of a plan, and the expressions; None when they cannot be read."""
    source, join = select.args["from_"].this, choice.join
    joined_scope = gathered.attempt(lambda: choice.scope(source), scope)
    is_layer = joined_scope.joined == "layer"
    if join is not None:
        gathered.attempt(lambda: refuse_windows(join.this, layer=is_layer), None)
    selected = gathered.attempt(
        lambda: selected_of(select, scope, gathered), Selected()
    )
    said = gathered.attempt(lambda: said_of(select, choice, source, gathered), None)
    if said is None:
        return None
    chosen = said.conditions
    ending = ending_of(select, scope, gathered)
    fields: dict[str, Any] = {
        "incident": with_expressions(incident, ending, selected.worst),
        "aggregate": selected.aggregate,
        "columns": selected.columns,
    }
    keys: tuple[Term, ...] = ()
    if join is not None:
        part, joined, keys = gathered.attempt(
            lambda: _joined(choice, said, joined_scope), ("join", None, ())
        )
        fields[part] = joined
    fields["where"] = chosen.term.text if chosen.term else None
    terms = (chosen.term, *keys, *selected.terms, ending)
    return fields, tuple(term for term in terms if term is not None)


def _joined(
    choice: Choice, said: Said, scope: Scope
) -> tuple[str, LayerJoin | PairJoin | None, tuple[Term, ...]]:
    """The part of a plan that a join is, the join, and the expressions that are its keys."""
    assert choice.join is not None  # noqa: S101 - for the type
    if scope.joined == "layer":
        name = choice.join.this.name
        join, keys = layer_join_of(name, said.joining, scope, said.conditions)
        return "join", replace(join, how=choice.how), keys
    pairs, keys = pair_join_of(said.joining, scope)
    return "pairs", replace(pairs, how=choice.how), keys


def _spans(
    select: exp.Expr, source: exp.Expr, join: exp.Expr | None
) -> dict[str, Span]:
    spans = {"stream": span_of(source.this), "select": span_of(select.expressions[0])}
    if join is not None:
        spans["layer"] = span_of(join.this.this)
    windows = source.args.get("windows")
    if windows:
        spans["frame"] = span_of(windows[0])[0], span_of(windows[-1])[1]
    nodes = {clause: select.args.get(clause) for clause in _CLAUSES}
    nodes["emit"] = nodes["emit"] or select.args.get("kind")
    nodes["outer where"] = select.args.get("having")
    return spans | {
        clause: span_of(node) for clause, node in nodes.items() if node is not None
    }


def _mode(told: exp.Expr | None, emit: Emit | None) -> EmitMode:
    """What EMIT says, or ISTREAM, DSTREAM and RSTREAM after SELECT."""
    every = emit is not None and emit.this.name == "every"
    if told is None:
        return "every" if every else "changes"
    if every:
        raise Refused(
            f"{told.name.upper()} and EMIT EVERY exclude each other", span_of(emit)
        )
    streams: dict[str, EmitMode] = {
        "istream": "istream",
        "dstream": "dstream",
        "rstream": "rstream",
    }
    return streams[told.name]
