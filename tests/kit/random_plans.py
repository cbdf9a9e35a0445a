"""Random plans on a small grid: every kind of query, with what may stand below and above it.

Everything comes from a seeded `random.Random`, so that a case is as good as its seed.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from st_common.query.comparing import Compare
from st_common.query.neighbours import Nearest
from st_common.query.plan import (
    Emit,
    How,
    LayerJoin,
    Order,
    PairJoin,
    Plan,
    Window,
)
from st_common.reference.pair_join import cut
from st_common.regions.region import MovingRegion
from st_common.regions.registry import Area
from tests.kit.oracle_rows import GROUPS, NUMBERS
from tests.kit.random_clauses import (
    beside,
    draw_aggregate,
    draw_columns,
    draw_columns_of_features,
    draw_columns_of_near,
    draw_columns_of_pairs,
    draw_emit,
    draw_frame,
    draw_join,
    draw_neighbours,
    draw_several,
    draw_speed,
    draw_stream,
    draw_transform,
    draw_where,
    draw_where_beside,
    draw_where_of_pairs,
    sometimes_left,
)
from tests.kit.random_fences import (
    draw_border,
    draw_fence,
    draw_join_by_place,
    draw_moving_border,
    draw_moving_fence,
)
from tests.kit.random_grid import (
    CLEAR_AREA,
    LAYER,
    RADII,
    STREAM,
    box,
    draw_moving,
    draw_still,
)
from tests.kit.random_incidents import draw_incident
from tests.kit.random_outer import draw_outer

_HOW: tuple[How, ...] = ("inner", "inner", "semi", "anti", "left")
ORDERS: tuple[Order, ...] = ("auto", "space_first", "select_first")


def plan_of(rng: Random, kind: str | None = None, *, layers: bool = False) -> Plan:
    """A plan of one of the `KINDS`, None for any; with `layers` it may join the layer `shapes`."""
    return _MAKE[kind or rng.choice(KINDS)](rng, layers)


def elsewhere(rng: Random, plan: Plan) -> Plan | None:
    """The plan with another region in the place of its own, as an area that changes brings it about.

    None where it has none, or where a region is told of with more than members: such queries begin anew.
    """
    if plan.inside is None or plan.valid_until:
        return None
    is_moving = isinstance(plan.inside, MovingRegion)
    if plan.fence is not None:
        draw = draw_moving_border if is_moving else draw_border
        inside = draw(rng)
        while plan.fence.asks_for_border and inside.no_border:
            inside = draw(rng)
        return replace(plan, inside=inside)
    if plan.incident is not None:
        return replace(plan, inside=draw_border(rng))
    return replace(plan, inside=(draw_moving if is_moving else draw_still)(rng))


def _fixes(rng: Random, layers: bool) -> Plan:
    """Judged fix by fix."""
    join = draw_join(rng) if layers and rng.random() < 0.7 else None
    join = sometimes_left(rng, join)
    inside = draw_still(rng) if join is None or rng.random() < 0.4 else None
    order = rng.choice(ORDERS)
    return Plan(
        stream=STREAM,
        inside=inside,
        join=join,
        emit=draw_emit(rng),
        where=draw_where(rng) if join is None else draw_where_beside(rng),
        columns=draw_columns(rng),
        order=order,
    )


def _moves(rng: Random, _layers: bool) -> Plan:
    return Plan(
        stream=STREAM,
        inside=draw_moving(rng),
        where=draw_where(rng),
        columns=draw_columns(rng),
        emit=draw_emit(rng),
    )


def _until(rng: Random, _layers: bool) -> Plan:
    inside = draw_still(rng) if rng.random() < 0.5 else draw_moving(rng)
    while inside.no_until:
        inside = draw_still(rng)
    if isinstance(inside, Area):
        inside = Area(wkt=CLEAR_AREA)
    return Plan(stream=STREAM, inside=inside, where=draw_where(rng), valid_until=True)


def _near(rng: Random, layers: bool) -> Plan:
    """Some among those inside a region, some with a condition, some joined with a layer."""
    inside = rng.choice((None, None, draw_still(rng), draw_moving(rng)))
    neighbours = draw_neighbours(rng)
    aside = beside(rng)
    join = draw_join(aside) if layers and aside.random() < 0.3 else None
    has_ranks = isinstance(neighbours, Nearest) and join is None
    return Plan(
        stream=STREAM,
        neighbours=neighbours,
        join=join,
        inside=inside,
        where=draw_where(rng),
        columns=draw_columns_of_near(rng) if has_ranks else draw_columns(rng),
        emit=draw_emit(rng),
    )


def _pairs(rng: Random, _layers: bool) -> Plan:
    """Pairs of two objects; or the objects that have a partner, or none, about which a region may go, too."""
    keys = tuple(rng.sample(("kind", "free", "seats % 2"), rng.choice((0, 0, 1, 2))))
    distance_m = None if keys and rng.random() < 0.5 else rng.choice(RADII)
    how = rng.choice(_HOW)
    inside = rng.choice((draw_still, draw_moving))(rng) if rng.random() < 0.4 else None
    where, chooses = draw_where_of_pairs(rng), how in ("semi", "anti")
    is_ranked = not chooses and not isinstance(inside, MovingRegion)
    nearest = rng.randint(1, 3) if is_ranked and rng.random() < 0.4 else None
    aside = beside(rng)
    if nearest is not None and aside.random() < 0.4:
        distance_m, keys = None, ()
    neighbours = None if chooses or aside.random() < 0.8 else draw_neighbours(aside)
    return Plan(
        stream=STREAM,
        pairs=PairJoin(distance_m=distance_m, keys=keys, how=how, nearest=nearest),
        inside=inside,
        neighbours=neighbours,
        where=where if how == "inner" else _first_before_both(where),
        columns=draw_columns(rng) if chooses else draw_columns_of_pairs(rng),
        emit=draw_emit(rng),
    )


def _first_before_both(where: str | None) -> str | None:
    """A condition with what it asks of the object alone before what stands in EXISTS, as texts have it."""
    own, both = ((), ()) if where is None else cut(where)
    return " AND ".join([*own, *both]) or None


def _windows(rng: Random, layers: bool) -> Plan:
    """Over fixes that are inside, satisfy a condition or join a layer; some count."""
    join = draw_join(rng) if layers and rng.random() < 0.4 else None
    join = sometimes_left(rng, join)
    seconds = join is not None or rng.random() < 0.6
    window = (
        Window(seconds=rng.choice((0.5, 1.0, 2.0, 3.5, 10.0)))
        if seconds
        else Window(tuples=rng.randint(1, 4))
    )
    return Plan(
        stream=STREAM,
        inside=rng.choice((None, draw_still(rng))),
        where=draw_where(rng) if join is None else draw_where_beside(rng),
        join=join,
        window=window,
        aggregate=draw_aggregate(rng, joined=join is not None)
        if rng.random() < 0.6
        else None,
        emit=draw_stream(rng),
    )


def _counts(rng: Random, layers: bool) -> Plan:
    """Over what is inside now: regions that stand still or move, neighbours, joins, pairs."""
    below = rng.choice((_fixes, _fixes, _moves, _near, _pairs))(rng, layers)
    return Plan(
        stream=STREAM,
        inside=below.inside,
        neighbours=below.neighbours,
        join=below.join,
        pairs=below.pairs,
        where=below.where,
        aggregate=draw_aggregate(rng, joined=below.join is not None),
        emit=draw_stream(rng),
    )


def _frames(rng: Random, layers: bool) -> Plan:
    """The rows of all objects, or of those that are inside, near or joined now; some count, some ask for a speed."""
    below = rng.choice((None, None, _fixes, _moves, _near))
    now = Plan(stream=STREAM) if below is None else below(rng, layers)
    if now.join is not None:
        now = replace(now, join=replace(now.join, how="inner"))
    aggregate = None
    if rng.random() < 0.5:
        aggregate = (
            draw_speed(rng) if rng.random() < 0.5 else draw_aggregate(rng, joined=False)
        )
    return Plan(
        stream=STREAM,
        frame=draw_frame(rng),
        inside=now.inside,
        neighbours=now.neighbours,
        join=now.join,
        where=draw_where(rng, 0.5),
        aggregate=aggregate,
        columns=draw_columns(rng) if aggregate is None else (),
        emit=draw_stream(rng),
    )


def _fences(rng: Random, layers: bool) -> Plan:
    """Events at the border of a region, or of the features of a layer."""
    join = draw_join_by_place(rng) if layers and rng.random() < 0.5 else None
    inside = draw_border(rng) if join is None else None
    return Plan(
        stream=STREAM,
        inside=inside,
        join=join,
        fence=draw_fence(rng, inside, join),
        where=draw_where(rng),
        columns=draw_columns(rng),
    )


def _moving_fences(rng: Random, _layers: bool) -> Plan:
    """Events at the border of a region that goes with an object."""
    inside = draw_moving_border(rng)
    return Plan(
        stream=STREAM,
        inside=inside,
        fence=draw_moving_fence(rng, inside),
        where=draw_where(rng),
        columns=draw_columns(rng),
    )


def _incidents(rng: Random, layers: bool) -> Plan:
    """A condition, mostly, in a region or at the features of a layer, that holds for some time."""
    join = draw_join(rng) if layers and rng.random() < 0.5 else None
    inside = draw_border(rng) if rng.random() < 0.5 else None
    is_bare = join is None and inside is None
    emit: Emit = rng.choice(("changes", "every", "every"))
    return Plan(
        stream=STREAM,
        inside=inside,
        join=join,
        where=draw_where(rng, 1.0 if is_bare else 0.6),
        incident=draw_incident(rng, every=emit == "every"),
        columns=draw_columns(rng),
        emit=emit,
    )


def _comparing(rng: Random, layers: bool) -> Plan:
    """Boxes of fixes that are enlarged, filtered and compared, fix by fix or as a condition of other kinds."""
    below = rng.choice(
        (_fixes, _fixes, _fixes, _moves, _near, _pairs, _windows, _counts, _frames)
    )(rng, layers)
    steps = tuple(draw_transform(rng) for _ in range(rng.choice((0, 1, 1, 2, 3))))
    compare = (
        Compare(box=box(rng), negative=rng.random() < 0.4)
        if not steps or rng.random() < 0.8
        else None
    )
    inside = below.inside if rng.random() < 0.6 or below.focals else None
    join = None if below.join is None else replace(below.join, how="inner")
    if join is not None and (join.predicate != "equals" or join.nearest):
        tags = rng.choice(
            (
                (),
                (),
                (("line", "taxi"),),
                (("size", "3"), ("line", "bus")),
                (("kind", "park"),),
                (("fid", "w0"),),
                (("fid", "w1"), ("line", "taxi")),
            )
        )
        join = LayerJoin(
            layer=LAYER,
            predicate=rng.choice(("intersects", "within")),
            kinds=join.kinds,
            tags=tags,
        )
    return replace(below, transforms=steps, compare=compare, inside=inside, join=join)


def _choosing(rng: Random, layers: bool) -> Plan:
    """Of objects that are joined with a feature, or with none: in regions, near, in windows, counted, for some time."""
    make = rng.choice(
        (_fixes, _fixes, _moves, _near, _near, _windows, _counts, _frames, _incidents)
    )
    below = make(rng, False)
    while below.pairs is not None:
        below = make(rng, False)
    if not layers:
        return below
    own = below.frame is not None or below.incident is not None
    return replace(
        below,
        join=replace(draw_join(rng), how=rng.choice(("semi", "anti"))),
        where=below.where if own else draw_where_beside(rng),
    )


def _nested(rng: Random, layers: bool) -> Plan:
    """Asked about by another query: members, pairs, windows, frames and groups."""
    make = rng.choice(
        (_fixes, _moves, _near, _pairs, _windows, _counts, _frames, _choosing)
    )
    if layers and rng.random() < 0.25:
        make = _joined
    below = make(rng, layers)
    while below.tells_events:
        below = make(rng, layers)
    below = replace(below, emit="changes", order="auto")
    if below.window is not None:
        below = replace(below, columns=())
    elif below.aggregate is None and not below.columns:
        below = replace(below, columns=_columns_of_rows(rng, below))
    outer = draw_outer(rng, below)
    return replace(below, outer=outer, emit=draw_stream(rng))


def _joined(rng: Random, layers: bool) -> Plan:
    """Objects and the features that they are at."""
    plan = _fixes(rng, layers)
    while not plan.gives_pairs:
        plan = _fixes(rng, layers)
    return plan


def _columns_of_rows(rng: Random, plan: Plan) -> tuple[tuple[str, str], ...]:
    """Columns of rows; of pairs with features also about these, where nothing keeps them without."""
    if plan.join is None or not plan.gives_pairs or plan.frame is not None:
        return draw_columns(rng)
    return rng.choice((draw_columns, draw_columns_of_features))(rng)


def _several(rng: Random, layers: bool) -> Plan:
    """Several values of groups by several keys, over members, windows and frames; some are asked about."""
    below = rng.choice((_windows, _counts, _counts, _frames))(rng, layers)
    has_partners = below.join is not None and below.frame is None
    groups = [*GROUPS, *(["partner"] * 3 if has_partners else [])]
    asks_speed = below.frame is not None and rng.random() < 0.4
    counted = (
        draw_speed(rng) if asks_speed else draw_several(rng, sorted(NUMBERS), groups)
    )
    plan = replace(below, aggregate=counted, columns=())
    if rng.random() < 0.7:
        return plan
    plan = replace(plan, emit="changes", order="auto")
    outer = draw_outer(rng, plan)
    return replace(plan, outer=outer, emit=draw_stream(rng))


_MAKE: dict[str, Callable[[Random, bool], Plan]] = {
    "fixes": _fixes,
    "moving": _moves,
    "until": _until,
    "neighbours": _near,
    "pairs": _pairs,
    "windows": _windows,
    "counting": _counts,
    "frames": _frames,
    "fences": _fences,
    "moving fences": _moving_fences,
    "incidents": _incidents,
    "comparing": _comparing,
    "choosing": _choosing,
    "nested": _nested,
    "several": _several,
}

KINDS = tuple(_MAKE)
"""The kinds of plans: `fixes`, `fences` and `incidents` are judged fix by fix, most others at ticks."""
