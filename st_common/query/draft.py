"""What statements would do to a home: the control rows and areas that they make, and what is wrong with them."""

from collections.abc import (
    Callable,
    Sequence,
)
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from st_common.config.stream import StreamSettings
from st_common.config.streams import broken_of
from st_common.query.area_drafting import (
    check_area,
    check_replaced_area,
    create_area,
    drop_area,
    replace_area,
)
from st_common.query.checks import all_complaints
from st_common.query.control import QueryRow
from st_common.query.drafted import Draft
from st_common.query.extents import with_extent
from st_common.query.group_names import Tables, found_table, split_name, why_unknown
from st_common.query.joint_drafting import create_joint, with_joint
from st_common.query.layer_change import (
    GoneError,
    newest_of,
    with_newest,
)
from st_common.query.moot import why_moot
from st_common.query.names import resolved, stream_tables
from st_common.query.plain import is_plain
from st_common.query.plan import Plan
from st_common.query.plan_expressions import expressions_of
from st_common.query.problem import Problem
from st_common.query.relations import tags_before
from st_common.query.shown import (
    Asked,
    Explained,
    ShownAreas,
    ShownQueries,
    ShownStreams,
    ShownTables,
    ToShow,
)
from st_common.query.stream_drafting import (
    check_created,
    check_dropped,
    check_rows,
    create_stream,
    declare,
    drop_stream,
    with_its_place,
)
from st_common.query.systems import problems_of_systems
from st_common.query.table_drafting import (
    check_created_table,
    check_dropped_table,
    create_table,
    declare_tables,
    drop_table,
)
from st_common.query.terms import notices_of, problems_of, types_of

if TYPE_CHECKING:
    from st_common.query.text import Statement


def draft_all(draft: Draft, statements: "Sequence[Statement]") -> "list[Statement]":
    """Carries out each statement on the draft; what cannot be done becomes a problem and does nothing.

    Returns:
        The statements with their names resolved.
    """
    known = _resolved(draft, statements)
    for statement in known:
        count = len(draft.problems)
        _, before = draft.known(statement.name)
        moot = why_moot(statement, before, draft.areas, draft.tables, draft.layers)
        if moot is None:
            _CHECKS[statement.op](draft, statement)
        if statement.plan is not None:
            _check_plan(draft, statement, statement.plan)
        if moot is not None:
            draft.notices.append(moot)
        elif len(draft.problems) == count:
            _ACTIONS[statement.op](draft, statement)
    return known


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
    declare_tables(draft, statements)
    layers = draft.layers | draft.declared.keys()
    named = filter(None, map(partial(_with_name, draft), statements))
    for statement in filter(None, map(partial(with_joint, draft), named)):
        _declare_layer(draft, statement)
        done = resolved(statement, draft.streams, layers, draft.tags_of, draft.group_of)
        whole = _with_extent(draft, _with_surfaces(draft, done.statement))
        if statement.op == "create_stream":
            whole = with_its_place(draft, whole)
            declare(draft, whole)
        known.append(whole)
        draft.notices.extend(done.notices)
        draft.problems.extend(done.problems)
    draft.types.update(types_of(known, draft.streams))
    return known


def _declare_layer(draft: Draft, statement: "Statement") -> None:
    """Makes the stream of its features of a layer that FROM names, with the tags that the statement names.

    A stream of the same name is what is meant.
    """
    plan = statement.plan
    if plan is None:
        return
    name = found_table(plan.stream, stream_tables(draft.streams))
    stream = draft.streams.get(name)
    if stream is None:
        layers = Tables(what="layer", names=draft.layers, group_of=draft.group_of)
        name = found_table(plan.stream, layers)
    if name not in draft.layers if stream is None else stream.layer is None:
        return
    before = draft.layer_tables.get(name) or draft.tables.get(name, {})
    texts = [text for _, text in expressions_of(plan)]
    table, settings = draft.layer_stream(name, texts, tags_before(before))
    draft.layer_tables[name], draft.streams[name] = table, settings


def _with_name(draft: Draft, statement: "Statement") -> "Statement | None":
    """DROP STREAM with the name of the stream alone, where it stands behind its group; None: it is in another one."""
    if statement.op != "drop_stream" or not split_name(statement.name)[0]:
        return statement
    known = stream_tables(draft.streams)
    name = found_table(statement.name, known)
    if name not in draft.streams:
        message, hint = why_unknown(statement.name, known)
        draft.problems.append(statement.problem(message, hint=hint))
        return None
    return replace(statement, name=name)


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


def _with_extent(draft: Draft, statement: "Statement") -> "Statement":
    """The statement with a region that is asked about what the elements of its stream are."""
    plan = statement.plan
    stream = draft.streams.get(plan.stream) if plan is not None else None
    if plan is None or not isinstance(stream, StreamSettings):
        return statement  # an unknown stream is a problem of its own
    asked = with_extent(plan, stream.columns.extent)
    return statement if asked is plan else replace(statement, plan=asked)


def _carry_out(draft: Draft, statement: "Statement") -> None:
    create_joint(draft, statement)
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
    layer = draft.layer_tables.get(row.stream)
    if layer is not None and statement.plan and draft.tables.get(row.stream) != layer:
        draft.tables[row.stream] = layer
        draft.layers_declared.append(row.stream)
    draft.add(row)


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
        "tables": ShownTables(names=tuple(sorted(draft.layers))),
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
    if statement.op in _REGISTERS and live:
        draft.problems.append(_registered_already(draft, statement, name))
    elif statement.op not in _REGISTERS and not live:
        dropped = f"query {name!r} was dropped" if before else f"unknown query {name!r}"
        names = [name for name, row in draft.latest.items() if row.live]
        draft.problems.append(
            statement.problem(dropped, hint=draft.near(statement.name, names))
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


def _check_stream(draft: Draft, statement: "Statement") -> None:
    """Whether the name is free for a query and for a stream, and the rows of the query can be one."""
    count = len(draft.problems)
    check_created(draft, statement)
    if len(draft.problems) == count:
        _check_query(draft, statement)
    check_rows(draft, statement)


def _create_stream(draft: Draft, statement: "Statement") -> None:
    _carry_out(draft, statement)
    create_stream(draft, statement)


def _drop_stream(draft: Draft, statement: "Statement") -> None:
    """The stream goes, and so does the query whose rows it had, if it is there still."""
    _, before = draft.known(statement.name)
    if before is not None and before.live:
        _carry_out(draft, statement)
    drop_stream(draft, statement)


def _check_nothing(draft: Draft, statement: "Statement") -> None:
    """SHOW has nothing that could be wrong, and a SELECT alone nothing but its plan."""


def _check_plan(draft: Draft, statement: "Statement", plan: Plan) -> None:
    stream = draft.streams.get(plan.stream)
    group, name = split_name(plan.stream)
    wrong = broken_of(draft.streams).get(name)
    if wrong is not None:
        message = f"stream {name!r} has wrong settings"
        draft.problems.append(statement.problem(message, at="stream", hint=str(wrong)))
    elif stream is None and group:
        message, hint = why_unknown(plan.stream, stream_tables(draft.streams))
        draft.problems.append(statement.problem(message, at="stream", hint=hint))
    elif stream is None:
        message = f"unknown stream {plan.stream!r}"
        hint = _hint_of_stream(draft, plan.stream)
        draft.problems.append(statement.problem(message, at="stream", hint=hint))
    else:
        for each in all_complaints(plan, stream):
            draft.problems.append(
                statement.problem(each.message, at=each.at, hint=each.hint)
            )
        _check_focals(draft, statement, plan)
        draft.problems.extend(problems_of_systems(statement, stream.epsg))
        tags = partial(draft.tags_of, stream.layer) if stream.layer else tuple
        problems = (
            list(problems_of(statement, stream, draft.types, tags))
            if statement.terms
            else []
        )
        draft.problems.extend(problems)
        draft.notices.extend(
            ()
            if problems or not statement.terms
            else notices_of(statement, stream, draft.types)
        )
    layers = draft.layers | draft.declared.keys()
    if plan.join is not None and plan.join.layer not in layers:
        _unknown_layer(draft, statement, plan.join.layer)


def _check_focals(draft: Draft, statement: "Statement", plan: Plan) -> None:
    """That no region goes with an object of another stream, written as `stream.object`: it would never have members."""
    known = {name.casefold(): name for name in draft.streams}
    for focal in plan.focals:
        stream, dot, _ = focal.partition(".")
        other = known.get(stream.casefold())
        if dot and other is not None and other != plan.stream:
            message = f"the object {focal!r} is of stream {other!r}, and the query of stream {plan.stream!r}"
            hint = f"a named region goes with objects of the query's stream: write ('M', '{focal}', ..) itself"
            draft.problems.append(statement.problem(message, at="inside", hint=hint))


def _hint_of_stream(draft: Draft, name: str) -> str:
    """What to do about a stream that is none: it may be a query, whose rows are no stream yet."""
    query, row = draft.known(name)
    if row is not None and row.live:
        return f"{query} is a query; CREATE STREAM makes a stream of the rows of one"
    known = f"known streams: {', '.join(draft.streams) or 'none'}"
    return draft.near(name, draft.streams) or known


def _unknown_layer(draft: Draft, statement: "Statement", layer: str) -> None:
    if split_name(layer)[0] and not _is_stream(draft, layer):
        layers = Tables(what="layer", names=draft.layers, group_of=draft.group_of)
        message, hint = why_unknown(layer, layers)
        draft.problems.append(statement.problem(message, at="layer", hint=hint))
        return
    query, row = draft.known(layer)
    if _is_stream(draft, layer):
        hint = "it is a stream; a query joins layers, or its own stream"
    elif row is not None and row.live:
        hint = f"{query} is a query; a query joins layers, or its own stream"
    else:
        loads = "fairway layer load brings a layer in"
        hint = draft.near(layer, draft.layers) or loads
    draft.problems.append(
        statement.problem(f"unknown layer {layer!r}", at="layer", hint=hint)
    )


def _is_stream(draft: Draft, name: str) -> bool:
    return found_table(name, stream_tables(draft.streams)) in draft.streams


_REGISTERS = ("register", "create_stream")
_Step = Callable[[Draft, "Statement"], None]
_CHECKS: dict[str, _Step] = {
    "register": _check_query,
    "replace": _check_query,
    "drop": _check_query,
    "explain": _check_query,
    "create_area": check_area,
    "replace_area": check_replaced_area,
    "drop_area": check_area,
    "create_stream": _check_stream,
    "drop_stream": check_dropped,
    "create_table": check_created_table,
    "drop_table": check_dropped_table,
    "show": _check_nothing,
    "ask": _check_nothing,
}
_ACTIONS: dict[str, _Step] = {
    "register": _carry_out,
    "replace": _carry_out,
    "drop": _carry_out,
    "explain": _explain,
    "create_area": create_area,
    "replace_area": replace_area,
    "drop_area": drop_area,
    "create_stream": _create_stream,
    "drop_stream": _drop_stream,
    "create_table": create_table,
    "drop_table": drop_table,
    "show": _show,
    "ask": _ask,
}
