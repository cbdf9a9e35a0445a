"""What each operator of a tree does, in words: a line here for each, and an operator without one is an error.

Of a region and a condition on last fixes, and of neighbours, `explain` says it: with the tuples that they let through.
"""

from collections.abc import Callable, Iterator
from typing import Any

from st_common.query.explain_fence import fence_step, signs_told
from st_common.query.explain_incident import incident_step, signs_of_incidents
from st_common.query.explain_steps import (
    STREAMS,
    Step,
    aggregate_step,
    compare_step,
    frame_steps,
    layer_in_words,
    pairs_in_words,
    transform_in_words,
)
from st_common.query.plan import Plan, Window
from st_common.query.printed import number, said
from st_common.query.sides import sides_of
from st_common.query.tree.boxes import Compared, Transformed
from st_common.query.tree.detected import Detected
from st_common.query.tree.holding import Holding
from st_common.query.tree.node import Node
from st_common.query.tree.relational import Group, Project, Told
from st_common.query.tree.rows import Lasting, Rows, Settled
from st_common.query.tree.spatial import Until, WithLayer, WithObjects
from st_common.query.tree.windows import Counting, Recent, Travelled


def steps_of(node: Node, plan: Plan) -> Iterator[Step]:
    """The steps that a node of the tree of a plan is carried out by; none where its inputs are all of it.

    Raises:
        KeyError: nobody has said what this operator does.
    """
    return WORDS[type(node)](node, plan)


def _evaluated(operator: str, detail: str) -> Iterator[Step]:
    yield Step(stage="EVALUATE", operator=operator, detail=detail)


def _transformed(node: Transformed, _plan: Plan) -> Iterator[Step]:
    for step in node.transforms:
        yield from _evaluated("transform", transform_in_words(step))


def _counting(_node: Counting, _plan: Plan) -> Iterator[Step]:
    """Windows and who counts have steps of their own."""
    return iter(())


def _recent(node: Recent, _plan: Plan) -> Iterator[Step]:
    return _evaluated("window", f"of fixes that qualified, {_window(node.window)}")


def _window(window: Window) -> str:
    if window.tuples is not None:
        return f"the last {window.tuples}"
    return f"for {number(window.seconds or 0.0)} s"


def _with_layer(node: WithLayer, plan: Plan) -> Iterator[Step]:
    """What is asked of features stands above the join."""
    yield from _evaluated(_JOINED[node.join.how], layer_in_words(node.join))
    beside = sides_of(plan.where).beside
    if beside is not None:
        yield from _evaluated("select", f"of both: {said(beside, plan)}")


_JOINED = {
    "inner": "join",
    "semi": "exists",
    "anti": "not exists",
    "left": "left join",
}


def _pairs(node: WithObjects, plan: Plan) -> Iterator[Step]:
    """What is asked of the other alone stands below the pairs, what is asked of both above them."""
    sides = sides_of(plan.where)
    if sides.other is not None:
        yield from _evaluated("select", f"of the other object: {sides.other}")
    operator = "pairs" if node.join.how == "inner" else _JOINED[node.join.how]
    yield from _evaluated(operator, pairs_in_words(node.join))
    if sides.both is not None:
        both = said(sides.both, plan, qualified=node.join.chooses)
        yield from _evaluated("select", f"of both: {both}")


def _group(node: Group, plan: Plan) -> Iterator[Step]:
    yield aggregate_step(node.aggregate, framed=plan.frame is not None)


def _until(_node: Until, _plan: Plan) -> Iterator[Step]:
    return _evaluated("valid until", "from the velocity of member and region")


def _told(node: Told, plan: Plan) -> Iterator[Step]:
    signs = signs_told(plan) if plan.incident is None else signs_of_incidents(plan)
    detail = f"of all shards in one order: {signs}"
    yield Step(stage="SETTLE", operator="changes", detail=detail)
    if node.emit in STREAMS:
        yield Step(stage="SETTLE", operator=node.emit, detail=STREAMS[node.emit])


WORDS: dict[type[Node], Callable[[Any, Plan], Iterator[Step]]] = {
    Travelled: lambda node, plan: frame_steps(node.frame, plan.where),
    Counting: _counting,
    Transformed: _transformed,
    Compared: lambda node, _: iter((compare_step(node.compare),)),
    WithLayer: _with_layer,
    WithObjects: _pairs,
    Detected: lambda node, plan: iter(
        (fence_step(node.fence, by_ticks=plan.by_ticks),)
    ),
    Holding: lambda node, plan: iter(
        (incident_step(node.incident, goes_on=plan.emit == "every"),)
    ),
    Recent: _recent,
    Group: _group,
    Project: lambda node, _: _evaluated(
        "columns", ", ".join(name for name, _ in node.selected)
    ),
    Until: _until,
    Told: _told,
    Lasting: lambda node, _: _evaluated(
        "window", f"of rows that have left, {_window(node.window)}"
    ),
    Settled: lambda node, _: _evaluated(
        "for", f"rows that were there for {node.lasting_s:g} s"
    ),
    Rows: lambda _node, _plan: _evaluated(
        "rows", "of the query below, as they are at one time"
    ),
}
"""What says the steps of an operator, by its class."""
