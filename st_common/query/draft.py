"""What statements would do to a home: the control rows and areas that they make, and what is wrong with them."""

from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Mapping,
    MutableMapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from st_common.query.area_change import following
from st_common.query.area_store import NamedArea
from st_common.query.checks import all_complaints, complaints_of_area
from st_common.query.control import QueryRow
from st_common.query.layer_change import (
    FeatureOf,
    GoneError,
    newest_of,
    with_newest,
)
from st_common.query.moot import why_moot
from st_common.query.names import LayerTags, found, resolved
from st_common.query.plain import is_plain
from st_common.query.plan import Plan
from st_common.query.problem import Problem, did_you_mean
from st_common.query.shown import (
    Asked,
    Explained,
    ShownAreas,
    ShownQueries,
    ShownStreams,
    ToShow,
)
from st_common.query.terms import Types, notices_of, problems_of, types_of
from st_common.settings import broken_of

if TYPE_CHECKING:
    from st_common.query.text import Statement
    from st_common.settings import StreamSettings

_HINTED = 5  # problems: a hint compares a name with all others


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The statements carried out on paper, in their order.

    `latest` is the newest control row of every name, and `areas` the named areas by their names in small letters,
    before and then after the statements. Rows that are only drafted have position -1 and no version of their layer.
    `created`, `replaced` and `removed` are names of areas; `shown` is what SHOW and EXPLAIN ask for, each at its place.
    """

    streams: "Mapping[str, StreamSettings]"
    layers: Collection[str]
    latest: MutableMapping[str, QueryRow]
    owner: str
    arrival_us: int
    tags_of: LayerTags
    feature_of: FeatureOf
    areas: dict[str, NamedArea] = field(default_factory=dict)
    rows: list[QueryRow] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    shown: list[ToShow] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notices: list[Problem] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)
    types: Types = field(default_factory=dict)
    _folded: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._folded.update({name.casefold(): name for name in self.latest})

    def known(self, name: str) -> tuple[str, QueryRow | None]:
        """The name of a query as it was first registered, whatever the case, with its newest row; or a new name."""
        called = self._folded.get(name.casefold())
        if called is None:
            return name, None
        called = name if name in self.latest else called
        return called, self.latest[called]

    def add(self, row: QueryRow) -> None:
        """Takes a row for carried out."""
        self.latest[row.name] = row
        self._folded.setdefault(row.name.casefold(), row.name)
        self.rows.append(row)


def draft_all(draft: Draft, statements: "Sequence[Statement]") -> None:
    """Carries out each statement on the draft; what cannot be done becomes a problem and does nothing."""
    for statement in _resolved(draft, statements):
        count = len(draft.problems)
        _, before = draft.known(statement.name)
        moot = why_moot(statement, before, draft.areas)
        if moot is None:
            _CHECKS[statement.op](draft, statement)
        if statement.plan is not None:
            _check_plan(draft, statement, statement.plan)
        if moot is not None:
            draft.notices.append(moot)
        elif len(draft.problems) == count:
            _ACTIONS[statement.op](draft, statement)


def check_plans(draft: Draft, statements: "Sequence[Statement]") -> "list[Statement]":
    """The statements with their names resolved; what does not fit its stream becomes a problem.

    What is registered by the names of queries is not looked at.
    """
    known = _resolved(draft, statements)
    for statement in known:
        if statement.plan is not None:
            _check_plan(draft, statement, statement.plan)
    return known


def _resolved(draft: Draft, statements: "Sequence[Statement]") -> "list[Statement]":
    known: list[Statement] = []
    for statement in statements:
        done = resolved(statement, draft.streams, draft.layers, draft.tags_of)
        known.append(_with_surfaces(draft, done.statement))
        draft.notices.extend(done.notices)
        draft.problems.extend(done.problems)
    draft.types.update(types_of(known, draft.streams))
    return known


def _with_surfaces(draft: Draft, statement: "Statement") -> "Statement":
    """The statement with the surfaces that features have now: a layer may have been loaded since it was read."""
    plan, region = statement.plan, statement.region
    if plan is not None and is_plain(plan):
        return (
            statement  # a rectangle is no feature; most of a million queries have one
        )
    try:
        if plan is not None:
            plan = with_newest(plan, draft.feature_of)
        if region is not None:
            region = newest_of(region, draft.feature_of)
    except GoneError as gone:
        place = "region" if plan is None else "inside"
        hint = "its layer was loaded anew without it"
        draft.problems.append(statement.problem(str(gone), at=place, hint=hint))
        return statement
    return replace(statement, plan=plan, region=region)


def _carry_out(draft: Draft, statement: "Statement") -> None:
    name, before = draft.known(statement.name)
    version = before.version if before else 0
    row = QueryRow(
        name=name,
        version=version if statement.plan is None else version + 1,
        op="drop"
        if statement.plan is None
        else "replace"
        if statement.op == "replace"
        else "register",
        stream=statement.plan.stream
        if statement.plan
        else before.stream
        if before
        else "",
        position=-1,
        arrival_us=draft.arrival_us,
        plan=statement.plan,
        text=statement.text if statement.plan else None,
        owner=draft.owner if statement.plan else None,
        areas=statement.areas if statement.plan else (),
        beginning=statement.beginning,
    )
    draft.places[name] = statement.said_in
    draft.add(row)


def _create_area(draft: Draft, statement: "Statement") -> None:
    if statement.region is None:
        return
    before = draft.areas.get(statement.name.casefold())
    area = NamedArea(
        name=statement.name if before is None else before.name,
        region=statement.region,
        owner=draft.owner,
        created_us=draft.arrival_us,
    )
    draft.areas[statement.name.casefold()] = area
    (draft.created if before is None else draft.replaced).append(area.name)


def _replace_area(draft: Draft, statement: "Statement") -> None:
    """The area is another one from here on, and queries that have its region by its name follow."""
    for row in _following(draft, statement):
        draft.add(row)
    _create_area(draft, statement)


def _following(draft: Draft, statement: "Statement") -> list[QueryRow]:
    old = draft.areas.get(statement.name.casefold())
    if old is None or statement.region is None:
        return []
    rows = following(draft.latest.values(), old, statement.region)
    return [replace(row, arrival_us=draft.arrival_us) for row in rows]


def _drop_area(draft: Draft, statement: "Statement") -> None:
    draft.removed.append(draft.areas.pop(statement.name.casefold()).name)


def _show(draft: Draft, statement: "Statement") -> None:
    live = sorted(
        (row for row in draft.latest.values() if row.live), key=lambda row: row.name
    )
    shown: dict[str, ToShow] = {
        "queries": ShownQueries(rows=tuple(live)),
        "areas": ShownAreas(
            areas=tuple(draft.areas[name] for name in sorted(draft.areas))
        ),
        "streams": ShownStreams(streams=tuple(draft.streams.values())),
    }
    draft.shown.append(shown[statement.what or ""])


def _explain(draft: Draft, statement: "Statement") -> None:
    name, plan = statement.name, statement.plan
    if plan is None:
        _, row = draft.known(name)
        name, plan = (name, None) if row is None else (row.name, row.plan)
    if plan is not None:
        draft.shown.append(Explained(name=name, plan=plan, analyze=statement.analyze))


def _ask(draft: Draft, statement: "Statement") -> None:
    if statement.plan is not None:
        draft.shown.append(Asked(plan=statement.plan, past=statement.past))


def _registered_already(draft: Draft, statement: "Statement", name: str) -> Problem:
    place = draft.places.get(name)
    if place:
        message = f"query {name!r} is registered already in {place}"
        return statement.problem(message, hint="give each its own name")
    message = f"query {name!r} is registered already"
    return statement.problem(message, hint=f"REPLACE QUERY {name}, or drop it first")


def _check_query(draft: Draft, statement: "Statement") -> None:
    """Whether the name is free for REGISTER, and stands for a live query for all others."""
    if statement.op == "explain" and statement.plan is not None:
        return
    name, before = draft.known(statement.name)
    live = before is not None and before.live
    if statement.op == "register" and live:
        draft.problems.append(_registered_already(draft, statement, name))
    elif statement.op != "register" and not live:
        dropped = f"query {name!r} was dropped" if before else f"unknown query {name!r}"
        names = [name for name, row in draft.latest.items() if row.live]
        draft.problems.append(
            statement.problem(dropped, hint=_near(draft, statement.name, names))
        )
    elif (
        statement.op == "replace"
        and before
        and statement.plan
        and before.stream != statement.plan.stream
    ):
        message = f"query {name!r} is on stream {before.stream!r}"
        draft.problems.append(
            statement.problem(
                message, at="stream", hint="drop it, then register it there"
            )
        )


def _check_area(draft: Draft, statement: "Statement") -> None:
    before = draft.areas.get(statement.name.casefold())
    if statement.op == "create_area" and before is not None:
        hint = f"CREATE OR REPLACE AREA {before.name}: queries that name it follow"
        draft.problems.append(
            statement.problem(f"area {before.name!r} exists already", hint=hint)
        )
    elif statement.op == "drop_area" and before is None:
        hint = _near(
            draft, statement.name, [area.name for area in draft.areas.values()]
        )
        draft.problems.append(
            statement.problem(
                f"unknown area {statement.name!r}", hint=hint or "see SHOW AREAS"
            )
        )
    for each in (
        complaints_of_area(statement.region) if statement.region is not None else ()
    ):
        draft.problems.append(
            statement.problem(each.message, at=each.at, hint=each.hint)
        )


def _check_replaced_area(draft: Draft, statement: "Statement") -> None:
    """Whether the region is right for itself, and for each query that would follow."""
    _check_area(draft, statement)
    for row in _following(draft, statement):
        stream = draft.streams.get(row.stream)
        if stream is None or row.plan is None:
            message = f"query {row.name!r} is on stream {row.stream!r}, which has no right settings"
            draft.problems.append(statement.problem(message, at="region"))
            continue
        for each in all_complaints(row.plan, stream):
            message = f"query {row.name!r} cannot follow: {each.message}"
            draft.problems.append(
                statement.problem(message, at="region", hint=each.hint)
            )


def _check_nothing(draft: Draft, statement: "Statement") -> None:
    """SHOW has nothing that could be wrong, and a SELECT alone nothing but its plan."""


def _check_plan(draft: Draft, statement: "Statement", plan: Plan) -> None:
    stream = draft.streams.get(plan.stream)
    wrong = broken_of(draft.streams).get(plan.stream)
    if wrong is not None:
        message = f"stream {plan.stream!r} has wrong settings"
        draft.problems.append(statement.problem(message, at="stream", hint=str(wrong)))
    elif stream is None:
        hint = (
            _near(draft, plan.stream, draft.streams)
            or f"known streams: {', '.join(draft.streams) or 'none'}"
        )
        draft.problems.append(
            statement.problem(f"unknown stream {plan.stream!r}", at="stream", hint=hint)
        )
    else:
        for each in all_complaints(plan, stream):
            draft.problems.append(
                statement.problem(each.message, at=each.at, hint=each.hint)
            )
        problems = (
            list(problems_of(statement, stream, draft.types)) if statement.terms else []
        )
        draft.problems.extend(problems)
        draft.notices.extend(
            ()
            if problems or not statement.terms
            else notices_of(statement, stream, draft.types)
        )
    if plan.join is not None and plan.join.layer not in draft.layers:
        _unknown_layer(draft, statement, plan.join.layer)


def _unknown_layer(draft: Draft, statement: "Statement", layer: str) -> None:
    is_stream = found(layer, draft.streams) in draft.streams
    hint = (
        "it is a stream; a query joins layers, or its own stream" if is_stream else ""
    )
    hint = (
        hint
        or _near(draft, layer, draft.layers)
        or "fairway layer load brings a layer in"
    )
    draft.problems.append(
        statement.problem(f"unknown layer {layer!r}", at="layer", hint=hint)
    )


def _near(draft: Draft, name: str, known: Iterable[str]) -> str:
    return did_you_mean(name, known) if len(draft.problems) < _HINTED else ""


_Step = Callable[[Draft, "Statement"], None]
_CHECKS: dict[str, _Step] = {
    "register": _check_query,
    "replace": _check_query,
    "drop": _check_query,
    "explain": _check_query,
    "create_area": _check_area,
    "replace_area": _check_replaced_area,
    "drop_area": _check_area,
    "show": _check_nothing,
    "ask": _check_nothing,
}
_ACTIONS: dict[str, _Step] = {
    "register": _carry_out,
    "replace": _carry_out,
    "drop": _carry_out,
    "explain": _explain,
    "create_area": _create_area,
    "replace_area": _replace_area,
    "drop_area": _drop_area,
    "show": _show,
    "ask": _ask,
}
