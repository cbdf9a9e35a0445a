"""How a query is carried out: its operators from the fixes up to the changes, and what they are expected to pass on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from st_common.config.stream import StreamSettings
from st_common.query.explain_actual import (
    Actual,
    Passed,
    actual_lines,
    in_words,
    passed,
)
from st_common.query.explain_nodes import steps_of
from st_common.query.explain_steps import Step, frame_in_words
from st_common.query.neighbours import (
    GroupNearest,
    Nearest,
    Neighbours,
    Place,
    ReverseNearest,
)
from st_common.query.order import Chosen, choose
from st_common.query.plan import Plan
from st_common.query.printed import number, to_text
from st_common.query.sides import alone
from st_common.query.tree.growing import tree_of
from st_common.query.tree.node import Node, walk
from st_common.query.tree.relational import Select
from st_common.query.tree.rows import Rows
from st_common.query.tree.spatial import Inside, Near
from st_common.query.tree.words import columns_in_words, rows_in_words
from st_common.query.tree.words import in_words as columns_as_text
from st_common.regions.region import MovingRegion

__all__ = [
    "Estimates",
    "Explanation",
    "Running",
    "Step",
    "explain",
    "kind_in_words",
    "lines",
    "with_actual",
]

_NO_NAME = "q"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """What is known of a stream's last fixes: how many `objects`, and the shares of them that satisfy a condition.

    None is unknown. `where` is the selection's share, `space` that of the region of INSIDE.
    """

    objects: int | None = None
    where: float | None = None
    space: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """How a plan is carried out; `steps` from the bottom to the top, `caches` what those of its kind cost so far.

    `rows` says what a row of the answer is, `columns` what of it is selected or counted, with types and units.
    `tables` are the stream and the layer with their groups. `actual` is what was counted, and `flows` what of it went
    through each step; without it there are none.
    """

    text: str
    judged: str
    kind: str
    rows: str
    columns: str
    focals: tuple[str, ...]
    order: Chosen | None
    why: str
    steps: tuple[Step, ...]
    caches: str | None = None
    actual: Actual | None = None
    flows: tuple[Passed, ...] = ()
    tables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """The order in which an engine runs a query now, and the shares of `readings` fixes by which it chose that.

    `alike` queries have this selection, the query itself among them; they share what it costs.
    """

    order: Chosen
    where: float
    space: float
    readings: int
    alike: int = 1


def explain(
    plan: Plan,
    name: str,
    *,
    tick_s: float = 1.0,
    estimates: Estimates | None = None,
    running: Running | None = None,
    caches: str | None = None,
    stream: StreamSettings | None = None,
) -> Explanation:
    """How `plan` is carried out on a stream with this `tick_s`; `order` is None where there is nothing to choose.

    `name` is that of its query, empty for a SELECT that has none. What an engine says of the query that it is `running`
    stands above what the estimates suggest. `caches` says what the caches of queries of its kind cost so far.
    """
    known = estimates or Estimates()
    order, why = _order(plan, known, running)
    tree = tree_of(plan, stream)
    return Explanation(
        text=to_text(plan, name)
        if name
        else to_text(plan, _NO_NAME).removeprefix(f"REGISTER QUERY {_NO_NAME} AS "),
        judged=_judged(plan, tick_s),
        kind=kind_in_words(plan),
        rows=rows_in_words(tree),
        columns=_columns(plan, tree),
        focals=plan.focals,
        order=order,
        why=why,
        steps=tuple(_steps(tree, plan, order, known)),
        caches=caches,
    )


def with_actual(explanation: Explanation, plan: Plan, actual: Actual) -> Explanation:
    """The explanation of a plan with what was counted when it ran, beside what was expected."""
    flows = passed(explanation.steps, plan, explanation.order, actual)
    return replace(explanation, actual=actual, flows=tuple(flows))


def _columns(plan: Plan, tree: Node) -> str:
    """The columns that are selected or counted, and what is known of incidents."""
    if plan.columns or plan.aggregate:
        return columns_in_words(tree)
    events = (column for node in walk(tree) for column in node.event_columns())
    return columns_as_text(events)


def _judged(plan: Plan, tick_s: float) -> str:
    judged = f"at ticks of {number(tick_s)} s of event time"
    judged = judged if plan.by_ticks else "fix by fix"
    if plan.fence is not None and plan.fence.dwell_s is not None:
        return f"{judged}, DWELL by the watermark"
    has_gap = plan.incident is not None and plan.incident.max_gap_s is not None
    return f"{judged}, gaps by the watermark" if has_gap else judged


def lines(explanation: Explanation) -> list[str]:
    """The explanation for people; the tree with the changes at the top and the fixes at the bottom."""
    shown = [f"query     {explanation.text}"]
    if explanation.tables:
        shown.append(f"tables    {', '.join(explanation.tables)}")
    shown += [
        f"judged    {explanation.judged}",
        f"kind      {explanation.kind}",
        f"rows      {explanation.rows}",
    ]
    if explanation.columns:
        shown.append(f"columns   {explanation.columns}")
    if explanation.focals:
        shown.append(f"goes with {', '.join(explanation.focals)}")
    if explanation.order is not None:
        shown.append(f"order     {explanation.order}: {explanation.why}")
    if explanation.caches is not None:
        shown.append(f"caches    {explanation.caches}")
    if explanation.actual is not None:
        shown += actual_lines(explanation.actual)
    return [*shown, "", *_tree(explanation.steps, explanation.flows)]


def _tree(steps: Sequence[Step], flows: Sequence[Passed]) -> Iterator[str]:
    texts = [
        f"{'  ' * depth}{step.operator} {step.detail}".rstrip()
        for depth, step in enumerate(reversed(steps))
    ]
    width = max(len(text) for text in texts)
    tuples = [_tuples(step) for step in reversed(steps)]
    if flows:
        wide = max(map(len, tuples))
        actual = [in_words(flow) for flow in reversed(flows)]
        tuples = [f"{one:<{wide}}  {a}" for one, a in zip(tuples, actual, strict=True)]
    for text, step, said in zip(texts, reversed(steps), tuples, strict=True):
        yield f"{step.stage:<9} {text:<{width}}  {said}".rstrip()


def _tuples(step: Step) -> str:
    if step.tuples_out is None:
        return ""
    if step.tuples_in is None:
        return f"{_count(step.tuples_out)} objects"
    return f"{_count(step.tuples_in)} in, {_count(step.tuples_out)} out"


def _count(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def _order(
    plan: Plan, known: Estimates, running: Running | None
) -> tuple[Chosen | None, str]:
    if plan.where is None or plan.inside is None or plan.inside.asks_beyond_place:
        # Of ways ahead and of extents nothing is estimated: they are looked up first.
        return None, ""
    if plan.frame is not None or plan.fence is not None:
        # Of a frame the condition is on its fixes and the region on the objects; of a fence it belongs to the region.
        return None, ""
    is_moving = isinstance(plan.inside, MovingRegion)
    if is_moving or plan.neighbours is not None or plan.pairs is not None:
        why = "a query of this kind looks only at objects that satisfy its condition"
        return "select_first", why
    if plan.order != "auto":
        return plan.order, "as the query says"
    if plan.join is not None:
        return "space_first", "below a join"
    if running is not None:
        return running.order, _running_by(running)
    chosen = choose(known.where, known.space)
    if known.where is None or known.space is None:
        return chosen, "the selectivities are unknown"
    shares = _shares(known.where, known.space)
    return chosen, f"cheaper by the estimates ({shares})"


def _running_by(running: Running) -> str:
    """Why the engine runs a query in its order."""
    shares = _shares(running.where, running.space)
    if running.alike > 1:
        shares += f"; {running.alike:,} queries share the selection"
    return f"as the engine runs it, by {running.readings:,} fixes ({shares})"


def _shares(where: float, space: float) -> str:
    return f"the selection keeps {where:.1%}, the region {space:.1%}"


def _steps(
    tree: Node, plan: Plan, order: Chosen | None, known: Estimates
) -> Iterator[Step]:
    """The steps of a tree from the bottom up; those of a condition and a region stand in the order chosen."""
    source, *nodes = walk(tree)
    if isinstance(source, Rows):
        yield from _steps(source.input.input, plan, order, known)
        yield from _about_rows([source, *nodes], plan)
        return
    of_fixes = Step(stage="LOCATE", operator="fixes", detail=_source(plan))
    yield replace(of_fixes, tuples_out=known.objects)
    below = list(_below(plan, order, known))
    waiting = iter(below)
    for node in (node for node in nodes if node != source):
        if isinstance(node, Select | Inside):
            yield from waiting
        elif isinstance(node, Near):
            candidates = below[-1].tuples_out if below else known.objects
            yield _near(node.neighbours, candidates)
        else:
            yield from steps_of(node, plan)


def _about_rows(nodes: list[Node], plan: Plan) -> Iterator[Step]:
    """The steps of operators above the rows of a query, from the bottom up."""
    for node in nodes:
        if isinstance(node, Select):
            yield Step(stage="EVALUATE", operator="select", detail=node.where)
        else:
            yield from steps_of(node, plan)


def _source(plan: Plan) -> str:
    of_all = not plan.by_ticks or plan.window is not None or plan.frame is not None
    return f"of {plan.stream}: {'every fix that is not late' if of_all else 'the last fix of every object'}"


def _below(plan: Plan, order: Chosen | None, known: Estimates) -> Iterator[Step]:
    """Selection and region, the lower one first, each with the tuples that the one below it lets through."""
    operators: list[tuple[str, str, float | None]] = []
    if plan.inside is not None:
        operators.append(("inside", plan.inside.words(), known.space))
    where = alone(plan)
    if where is not None and plan.frame is None:
        operators.append(("select", where, known.where))
    tuples: float | None = known.objects
    for operator, detail, share in (
        operators[::-1] if order == "select_first" else operators
    ):
        out = None if tuples is None or share is None else tuples * share
        yield Step(
            stage="EVALUATE",
            operator=operator,
            detail=detail,
            tuples_in=tuples,
            tuples_out=out,
        )
        tuples = out


def _near(neighbours: Neighbours, candidates: float | None) -> Step:
    k = neighbours.k if isinstance(neighbours, Nearest | GroupNearest) else None
    if isinstance(neighbours, Nearest):
        operator, detail = "knn", f"the {k} nearest to {_place(neighbours.place)}"
    elif isinstance(neighbours, GroupNearest):
        places = " and ".join(_place(place) for place in neighbours.places)
        operator, detail = (
            "group knn",
            f"the {k} with the least {neighbours.total} of distances to {places}",
        )
    else:
        operator, detail = (
            "reverse knn",
            f"those to which nothing is nearer than {_place(neighbours.place)}",
        )
    out = None if k is None or candidates is None else min(float(k), candidates)
    into = candidates if out is not None else None
    return Step(
        stage="EVALUATE",
        operator=operator,
        detail=detail,
        tuples_in=into,
        tuples_out=out,
    )


def _place(place: Place) -> str:
    return (
        place.focal
        if place.focal is not None
        else f"{number(place.x)} {number(place.y)}"
    )


def kind_in_words(plan: Plan) -> str:
    """What a query is judged by, in words: box, moving circle, k nearest, layer join, window over space, ..."""
    if plan.fence is not None:
        border = replace(plan, fence=None)
        return f"fence at: {kind_in_words(border)}"
    if plan.incident is not None:
        return f"incidents of: {kind_in_words(replace(plan, incident=None))}"
    if plan.frame is None:
        return _objects_in_words(plan)
    kind = frame_in_words(plan.frame)
    counting = (
        plan.inside or plan.neighbours or plan.join or plan.transforms or plan.compare
    )
    return (
        f"{kind}, of objects that count by: {_objects_in_words(plan)}"
        if counting
        else kind
    )


_PAIRED = {
    "inner": "pairs of objects",
    "semi": "objects with another one",
    "anti": "objects without another one",
    "left": "pairs of objects, and objects without another one",
}


def _objects_in_words(plan: Plan) -> str:
    """Which objects a query is about."""
    if plan.neighbours is not None:
        names = {
            Nearest: "k nearest",
            GroupNearest: "k nearest to a group",
            ReverseNearest: "reverse nearest",
        }
        return names[type(plan.neighbours)] + (
            " among those inside" if plan.inside is not None else ""
        )
    if plan.pairs is not None:
        return _PAIRED[plan.pairs.how]
    if plan.join is not None and not plan.join.chooses:
        return "layer join" + (" inside of a region" if plan.inside is not None else "")
    words = [plan.inside.noun] if plan.inside is not None else []
    if plan.compare is not None:
        words.append(
            "negative comparison with a box"
            if plan.compare.negative
            else "comparison with a box"
        )
    elif plan.transforms:
        words.append("transformation")
    if plan.chosen_by is not None:
        words.append("exists" if plan.chosen_by.how == "semi" else "not exists")
    return ", then ".join(words) or "all objects"
