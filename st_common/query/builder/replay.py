"""A plan as the calls of a builder: so a plan from elsewhere is checked, and brought to its canonical form."""

from collections.abc import Callable
from functools import partial

from st_common.errors import QueryError
from st_common.query.builder import Joining, QueryBuilder, query
from st_common.query.builder.fencing import InARow
from st_common.query.comparing import Transform
from st_common.query.fence import Debounce
from st_common.query.frame import Extent
from st_common.query.grammar.words import quoted
from st_common.query.neighbours import GroupNearest, Place, ReverseNearest
from st_common.query.plan import Aggregate, How, Plan
from st_common.query.several import text_of_value

_UNITS = {"space": "m", "time": "s", "rows": "rows"}


def rebuilt(plan: Plan) -> QueryBuilder:
    """The builder whose calls say what the plan says; `build` gives an equal plan when it was canonical.

    Raises:
        QueryError: the plan could not be registered; the error names the part of its JSON form first.
    """
    builder = _at("stream", lambda: query(plan.stream))
    for part, replay in _REPLAYS.items():
        if getattr(plan, part) != getattr(builder.plan, part):
            builder = _at(part, partial(replay, builder, plan))
    return builder


def _at(part: str, build: Callable[[], QueryBuilder]) -> QueryBuilder:
    try:
        return build()
    except QueryError as error:
        raise QueryError(f"$.{part}: {error.message}", hint=error.hint) from None


def _inside(builder: QueryBuilder, plan: Plan) -> QueryBuilder:
    return builder.inside(plan.inside) if plan.inside is not None else builder


def _neighbours(builder: QueryBuilder, plan: Plan) -> QueryBuilder:
    neighbours = plan.neighbours
    if isinstance(neighbours, GroupNearest):
        places = [place.focal or (place.x, place.y) for place in neighbours.places]
        return builder.group_nearest(neighbours.k, neighbours.total, places)
    if isinstance(neighbours, ReverseNearest):
        x, y, focal = _place(neighbours.place)
        return builder.reverse_nearest(x, y, to=focal)
    if neighbours is None:
        return builder
    x, y, focal = _place(neighbours.place)
    return builder.nearest(neighbours.k, x, y, to=focal)


def _place(place: Place) -> tuple[float | None, float | None, str | None]:
    return (
        (place.x, place.y, None) if place.focal is None else (None, None, place.focal)
    )


def _join(builder: QueryBuilder, plan: Plan) -> QueryBuilder:
    join = plan.join
    if join is None:
        return builder
    joining = _JOINS[join.how](builder, join.layer)
    if join.predicate == "equals":
        builder = joining.on_equal(join.left or "", join.right or "")
    elif join.predicate == "dwithin":
        builder = joining.on_dwithin(join.distance_m)
    elif join.predicate == "nearest":
        builder = joining.on_nearest(join.nearest or 1)
    else:
        builder = (
            joining.on_within()
            if join.predicate == "within"
            else joining.on_intersects()
        )
    if join.left is not None and join.predicate != "equals":
        builder = builder.and_equal(join.left, join.right)
    if join.nearest is not None and join.predicate != "nearest":
        builder = builder.and_nearest(join.nearest)
    for name, value in join.tags:
        builder = builder.fid(value) if name == "fid" else builder.tag(name, value)
    return builder.kinds(*join.kinds) if join.kinds else builder


_JOINS: dict[How, Callable[[QueryBuilder, str], Joining[QueryBuilder]]] = {
    "inner": QueryBuilder.join_layer,
    "semi": QueryBuilder.exists,
    "anti": QueryBuilder.not_exists,
    "left": QueryBuilder.left_join,
}


def _pairs(builder: QueryBuilder, plan: Plan) -> QueryBuilder:
    if plan.pairs is None:
        return builder
    joining, keys = _PAIRS[plan.pairs.how](builder), plan.pairs.keys
    if plan.pairs.distance_m is None and not keys and plan.pairs.nearest is not None:
        return joining.on_nearest(plan.pairs.nearest)
    if plan.pairs.distance_m is not None:
        builder = joining.on_dwithin(plan.pairs.distance_m)
    else:
        builder, keys = joining.on_equal(keys[0] if keys else ""), keys[1:]
    for key in keys:
        builder = builder.and_equal(key)
    nearest = plan.pairs.nearest
    return builder if nearest is None else builder.and_nearest(nearest)


_PAIRS: dict[How, Callable[[QueryBuilder], Joining[QueryBuilder]]] = {
    "inner": lambda builder: builder.join(builder.plan.stream),
    "semi": QueryBuilder.exists_other,
    "anti": QueryBuilder.not_exists_other,
    "left": QueryBuilder.left_join_others,
}


def _frame(builder: QueryBuilder, plan: Plan) -> QueryBuilder:
    frame = plan.frame
    if frame is None:
        return builder
    for window in frame.sliding:
        builder = builder.last(
            _extent(window.range), every=_extent(window.slide) if window.slide else None
        )
    if frame.session_s is not None:
        builder = builder.session(frame.session_s)
    for region in frame.regions:
        builder = builder.fixes_in(region)
    return (
        builder.full_windows(frame.full)
        .min_step(frame.min_step_m)
        .origin(frame.origin_s)
    )


def _extent(extent: Extent) -> str:
    amount = float(extent.amount)
    return f"{int(amount) if extent.by == 'rows' and amount.is_integer() else repr(amount)} {_UNITS[extent.by]}"


def _fence(builder: QueryBuilder, plan: Plan) -> QueryBuilder:
    fence = plan.fence
    if fence is None:
        return builder
    return builder.detect(
        *[event for event in fence.events if event != "dwell"],
        dwell=fence.dwell_s,
        enter_after=_in_a_row(fence.enter_after),
        exit_after=_in_a_row(fence.exit_after),
        hysteresis=fence.hysteresis_m,
        max_gap=fence.max_gap_s,
        restart=fence.restart,
    )


def _incident(builder: QueryBuilder, plan: Plan) -> QueryBuilder:
    incident = plan.incident
    if incident is None:
        return builder
    worst = incident.worst
    return builder.lasting(
        _in_a_row(incident.lasting),
        until=incident.until,
        max_gap=incident.max_gap_s,
        every=incident.every_s,
        worst=(worst.function, worst.argument, worst.name) if worst else None,
    )


def _in_a_row(debounce: Debounce) -> InARow:
    return (debounce.fixes, debounce.seconds) if debounce.seconds else debounce.fixes


def _window(builder: QueryBuilder, plan: Plan) -> QueryBuilder:
    if plan.window is None:
        return builder
    seconds, tuples = plan.window.seconds, plan.window.tuples
    return builder.window(f"{tuples} tuples" if seconds is None else seconds)


def _where(builder: QueryBuilder, plan: Plan) -> QueryBuilder:
    return builder.where(plan.where or "")


def _transforms(builder: QueryBuilder, plan: Plan) -> QueryBuilder:
    for step in plan.transforms:
        builder = _transform(builder, step)
    return builder


def _transform(builder: QueryBuilder, step: Transform) -> QueryBuilder:
    match step.kind:
        case "factor":
            return builder.enlarge_factor(step.amount)
        case "value":
            return builder.enlarge_value(step.amount)
        case "metres":
            return builder.enlarge_metres(step.amount)
        case "key":
            return builder.filter_key(step.text or "")
        case "filter":
            within = step.amount or None
            return builder.filter(step.name or "", step.text, metres=within)
    return builder.filter_box(step.box if step.box is not None else ())  # type: ignore[arg-type]


def _compare(builder: QueryBuilder, plan: Plan) -> QueryBuilder:
    if plan.compare is None:
        return builder
    compared = builder.compare_with(plan.compare.box)
    return compared.negative_matches() if plan.compare.negative else compared


def _aggregate(builder: QueryBuilder, plan: Plan) -> QueryBuilder:
    return _aggregated(builder, plan.aggregate)


def _aggregated(builder: QueryBuilder, aggregate: Aggregate | None) -> QueryBuilder:
    if aggregate is None:
        return builder
    if aggregate.function == "several":
        return _several(builder, aggregate)
    if aggregate.function == "distinct":
        return builder.distinct(_group(builder, aggregate.group or ""))
    counted = _function(builder, aggregate)
    return (
        counted
        if aggregate.group is None
        else counted.group_by(_group(builder, aggregate.group))
    )


def _several(builder: QueryBuilder, aggregate: Aggregate) -> QueryBuilder:
    values = [
        (value.name, text_of_value(value.function, value.argument, value.share))
        for value in aggregate.values
    ]
    keys = [(name, _group(builder, text)) for name, text in aggregate.keys]
    counted = builder.aggregate(*values)
    grouped = counted.group_by(*keys) if keys else counted
    top = aggregate.top
    if top is None:
        return grouped
    if top.limit is None or top.value is None:
        return grouped.having(top.having or "")
    least = not top.descending
    per, having = top.per or "", top.having or ""
    return grouped.top(top.limit, top.value, per=per, least=least, having=having)


def _function(builder: QueryBuilder, aggregate: Aggregate) -> QueryBuilder:
    match aggregate.function:
        case "count":
            return builder.count(aggregate.argument)
        case "count_distinct":
            return builder.count_distinct(aggregate.argument)
        case "avgspd":
            return builder.average_speed()
        case "sum" | "avg" | "min" | "max":
            call: Callable[[str], QueryBuilder] = getattr(builder, aggregate.function)
            return call(aggregate.argument or "")
    raise QueryError(f"unknown function {aggregate.function!r}")


def _group(builder: QueryBuilder, group: str) -> str:
    of_fixes = (
        builder.plan.join is not None
        and builder.plan.gives_pairs
        and builder.plan.outer is None
    )
    is_partner = group == "partner" and of_fixes
    return f"{quoted(builder.alias)}.fid" if is_partner else group


def _emit(builder: QueryBuilder, plan: Plan) -> QueryBuilder:
    if plan.emit == "every":
        return builder.emit_every()
    return (
        builder.emit_changes()
        if plan.emit == "changes"
        else builder.as_stream(plan.emit)
    )


def _outer(builder: QueryBuilder, plan: Plan) -> QueryBuilder:
    outer = plan.outer
    if outer is None:
        return builder
    asked = builder.rows()
    if outer.where is not None:
        asked = asked.where(outer.where)
    if outer.lasting_s is not None:
        asked = asked.lasting(f"{outer.lasting_s!r} s")
    if outer.window is not None:
        asked = asked.window(outer.window.seconds or 0.0)
    return _aggregated(asked, outer.aggregate)


_REPLAYS: dict[str, Callable[[QueryBuilder, Plan], QueryBuilder]] = {
    "inside": _inside,
    "neighbours": _neighbours,
    "join": _join,
    "pairs": _pairs,
    "where": _where,
    "frame": _frame,
    "fence": _fence,
    "incident": _incident,
    "window": _window,
    "transforms": _transforms,
    "compare": _compare,
    "columns": lambda builder, plan: builder.select(*plan.columns),
    "aggregate": _aggregate,
    "valid_until": lambda builder, plan: builder.valid_until(plan.valid_until),
    "order": lambda builder, plan: builder.plan_order(plan.order),
    "outer": _outer,
    "emit": _emit,
}
