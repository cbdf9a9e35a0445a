"""What statements would do to the registered queries: the control rows that they make, and what is wrong with them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from st_common.query.checks import complaints
from st_common.query.control import QueryRow
from st_common.query.plan import Plan
from st_common.query.problem import Problem, did_you_mean
from st_common.query.terms import Types, problems_of, types_of

if TYPE_CHECKING:
    from st_common.query.text import Statement
    from st_common.settings import StreamSettings

_HINTED = 5  # problems: a hint compares a name with all others


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The statements carried out on paper, in their order.

    `latest` is the newest control row of every name, before and then after the statements. Rows that are only drafted
    have position -1 and no version of their layer.
    """

    streams: "Mapping[str, StreamSettings]"
    layers: Collection[str]
    latest: dict[str, QueryRow]
    owner: str
    arrival_us: int
    rows: list[QueryRow] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    types: Types = field(default_factory=dict)


def draft_all(draft: Draft, statements: "Sequence[Statement]") -> None:
    """Carries out each statement on the draft; what cannot be done becomes a problem and does nothing."""
    draft.types.update(types_of(statements, draft.streams))
    for statement in statements:
        if not _refused(draft, statement):
            _carry_out(draft, statement)


def check_plans(draft: Draft, statements: "Sequence[Statement]") -> None:
    """Looks at the plans of statements alone; what does not fit its stream becomes a problem."""
    draft.types.update(types_of(statements, draft.streams))
    for statement in statements:
        if statement.plan is not None:
            _check_plan(draft, statement, statement.plan)


def _carry_out(draft: Draft, statement: "Statement") -> None:
    before = draft.latest.get(statement.name)
    version = before.version if before else 0
    row = QueryRow(
        name=statement.name,
        version=version if statement.plan is None else version + 1,
        op=statement.op,
        stream=statement.plan.stream if statement.plan else before.stream if before else "",
        position=-1,
        arrival_us=draft.arrival_us,
        plan=statement.plan,
        text=statement.text if statement.plan else None,
        owner=draft.owner if statement.plan else None,
    )
    draft.latest[statement.name] = row
    draft.places[statement.name] = statement.line
    draft.rows.append(row)


def _refused(draft: Draft, statement: "Statement") -> bool:
    """Whether something is wrong with a statement; it was added to the problems then."""
    count = len(draft.problems)
    _check_name(draft, statement)
    if statement.plan is not None:
        _check_plan(draft, statement, statement.plan)
    return len(draft.problems) > count


def _check_name(draft: Draft, statement: "Statement") -> None:
    before = draft.latest.get(statement.name)
    live = before is not None and before.live
    if statement.op == "register" and live:
        line = draft.places.get(statement.name)
        here = f" in line {line}" if line else ""
        hint = "give each its own name" if line else f"REPLACE QUERY {statement.name}, or drop it first"
        draft.problems.append(statement.problem(f"query {statement.name!r} is registered already{here}", hint=hint))
    elif statement.op != "register" and not live:
        dropped = f"query {statement.name!r} was dropped" if before else f"unknown query {statement.name!r}"
        names = [name for name, row in draft.latest.items() if row.live]
        draft.problems.append(statement.problem(dropped, hint=_near(draft, statement.name, names)))
    elif statement.op == "replace" and before and statement.plan and before.stream != statement.plan.stream:
        message = f"query {statement.name!r} is on stream {before.stream!r}"
        draft.problems.append(statement.problem(message, at="stream", hint="drop it, then register it there"))


def _check_plan(draft: Draft, statement: "Statement", plan: Plan) -> None:
    stream = draft.streams.get(plan.stream)
    if stream is None:
        hint = _near(draft, plan.stream, draft.streams) or f"known streams: {', '.join(draft.streams) or 'none'}"
        draft.problems.append(statement.problem(f"unknown stream {plan.stream!r}", at="stream", hint=hint))
    else:
        for each in complaints(plan, stream):
            draft.problems.append(statement.problem(each.message, at=each.at, hint=each.hint))
        draft.problems.extend(problems_of(statement, stream, draft.types))
    if plan.join is not None and plan.join.layer not in draft.layers:
        is_stream = (
            "it is a stream; a query joins layers, or its own stream" if plan.join.layer in draft.streams else ""
        )
        hint = is_stream or _near(draft, plan.join.layer, draft.layers) or "fairway layer load brings a layer in"
        draft.problems.append(statement.problem(f"unknown layer {plan.join.layer!r}", at="layer", hint=hint))


def _near(draft: Draft, name: str, known: Iterable[str]) -> str:
    return did_you_mean(name, known) if len(draft.problems) < _HINTED else ""
