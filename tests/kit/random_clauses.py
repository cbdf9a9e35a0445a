"""Random clauses of plans: neighbours, conditions, joins, aggregates, windows along a way, steps of boxes."""

from dataclasses import replace
from random import Random
from typing import get_args

from st_common.query.comparing import Transform
from st_common.query.frame import Domain, Extent, Frame, Sliding
from st_common.query.neighbours import GroupNearest, Nearest, Neighbours, ReverseNearest
from st_common.query.plan import (
    AS_JSON,
    OF_WAYS,
    Aggregate,
    Emit,
    Function,
    LayerJoin,
    Predicate,
    Top,
    Value,
    ValueFunction,
)
from tests.kit.oracle_rows import (
    CONDITIONS,
    FEATURES_SHOWN,
    GROUPS,
    NUMBERS,
    OF_BOTH,
    OF_FEATURES,
    OF_NEAR,
    OF_OTHERS,
    OTHERS,
)
from tests.kit.random_grid import (
    AREAS,
    FOCALS,
    KEYS,
    LAYER,
    box,
    draw_key,
    draw_place,
    draw_still,
)

FUNCTIONS: tuple[Function, ...] = (
    "count",
    "count",
    "count_distinct",
    "sum",
    "avg",
    "min",
    "max",
    "distinct",
)
DOMAINS: tuple[Domain, ...] = ("space", "time", "rows")
FILTERED = (
    ("key", "a"),
    ("key", "c"),
    ("property", "kind:taxi"),
    ("property", "free:true"),
    ("property", "line:taxi"),
    ("property", "seats:2"),
    ("wkt", AREAS[1]),
    ("wkt", "LINESTRING (0 0, 8 4, 8 8)"),
    ("geojson", None),
    ("geojson", "kind:bus"),
    ("geojson", "size:3"),
    (
        "geojson",
        '{"type": "Polygon", "coordinates": [[[1, 1], [7, 2], [4, 7], [1, 1]]]}',
    ),
    (
        "geojson",
        '{"type": "Feature", "properties": {}, "geometry": {"type": "Point", "coordinates": [4, 4]}}',
    ),
)
"""Names of filters with custom values."""


def draw_neighbours(rng: Random) -> Neighbours:
    """At times k is larger than the number of objects."""
    k = rng.choice((1, 1, 2, 2, 3, 4, 7))
    match rng.randrange(4):
        case 0:
            return ReverseNearest(place=draw_place(rng))
        case 1:
            places = tuple(draw_place(rng) for _ in range(rng.randint(1, 3)))
            return GroupNearest(
                k=k, total=rng.choice(("sum", "max", "min")), places=places
            )
        case _:
            return Nearest(k=k, place=draw_place(rng))


def draw_where(rng: Random, share: float = 0.3) -> str | None:
    """A condition, in so many of all cases."""
    return rng.choice(sorted(CONDITIONS)) if rng.random() < share else None


def draw_where_of_pairs(rng: Random) -> str | None:
    """Conditions on the first object of a pair, on the other one and on both, each in some cases."""
    parts = [
        rng.choice(sorted(known))
        for known, share in ((CONDITIONS, 0.3), (OTHERS, 0.4), (OF_BOTH, 0.4))
        if rng.random() < share
    ]
    rng.shuffle(parts)
    # OR in one of several parts would be read otherwise than as a part.
    parts = [part for part in parts if " OR " not in part or len(parts) == 1]
    return " AND ".join(parts) or None


def draw_where_beside(rng: Random) -> str | None:
    """Conditions on a fix, and on it and a feature, each in some cases."""
    beside = rng.choice(sorted(OF_FEATURES)) if rng.random() < 0.4 else None
    own = draw_where(rng)
    parts = [part for part in (own, beside) if part is not None]
    return (
        " AND ".join(
            part
            for part in parts
            if part == beside or " OR " not in part or len(parts) == 1
        )
        or None
    )


def draw_columns_of_pairs(rng: Random) -> tuple[tuple[str, str], ...]:
    """None, one or two columns of the first object, of the other one or of both."""
    texts = rng.sample(("kind", *sorted(OF_OTHERS)), rng.choice((0, 0, 1, 2)))
    return tuple((f"c{number}", text) for number, text in enumerate(texts))


def draw_columns_of_features(rng: Random) -> tuple[tuple[str, str], ...]:
    """One or two columns of a fix, or of it and its feature."""
    texts = rng.sample(("kind", "load", *sorted(FEATURES_SHOWN)), rng.choice((1, 2)))
    return tuple((f"c{number}", text) for number, text in enumerate(texts))


def draw_columns_of_near(rng: Random) -> tuple[tuple[str, str], ...]:
    """None, one or two columns, of the fix or of which of the nearest it is."""
    texts = rng.sample(("kind", *sorted(OF_NEAR)), rng.choice((0, 0, 1, 2)))
    return tuple((f"c{number}", text) for number, text in enumerate(texts))


def draw_columns(rng: Random) -> tuple[tuple[str, str], ...]:
    """None, one or two columns that are computed."""
    texts = rng.sample(("kind", "load", "x * 2"), rng.choice((0, 0, 0, 1, 2)))
    return tuple((f"c{number}", text) for number, text in enumerate(texts))


def draw_emit(rng: Random) -> Emit:
    """What may be written of kinds that are judged fix by fix, or at ticks."""
    return rng.choice(("changes", "changes", "every", "every", draw_stream(rng)))


def draw_stream(rng: Random) -> Emit:
    """What may be written of every kind: changes, or one of CQL's streams."""
    return rng.choice(
        ("changes", "changes", "istream", "dstream", "rstream", "rstream")
    )


def draw_aggregate(rng: Random, *, joined: bool) -> Aggregate:
    """Every function, with and without argument and group, or several values; above a join also by partner."""
    if rng.random() < 0.3:
        groups = [*sorted(GROUPS), *(["partner"] * 3 if joined else [])]
        return draw_several(rng, sorted(NUMBERS), groups)
    function = rng.choice(FUNCTIONS)
    group = rng.choice([*sorted(GROUPS), *(["partner"] * 3 if joined else [])])
    if function == "distinct":
        return Aggregate(function=function, group=group)
    without = function.startswith("count") and rng.random() < 0.5
    argument = None if without else rng.choice(sorted(NUMBERS))
    return Aggregate(
        function=function,
        argument=argument,
        group=group if rng.random() < 0.5 else None,
    )


def draw_several(
    rng: Random, numbers: list[str], groups: list[str], *, of_fixes: bool = True
) -> Aggregate:
    """One to three values `c0`, `c1` .. of numbers, by none to two keys `k0`, `k1` among groups: expressions.

    Rows of queries, which are not `of_fixes`, have no first one and no last.
    """
    values = []
    functions = [
        name
        for name in get_args(ValueFunction)
        if name not in OF_WAYS and (of_fixes or name not in AS_JSON)
    ]
    texts = [text for text in groups if text != "partner"]
    for place in range(rng.randint(1, 3)):
        function: ValueFunction = rng.choice(functions)
        has_none = function == "count" and (not numbers or rng.random() < 0.5)
        among = texts if function in AS_JSON and rng.random() < 0.5 else numbers
        argument = None if has_none else rng.choice(among or groups)
        share = rng.choice((0.0, 0.25, 0.9, 1.0)) if function == "quantile" else None
        value = Value(
            name=f"c{place}", function=function, argument=argument, share=share
        )
        values.append(value)
    keys = rng.sample(groups, min(rng.choice((0, 1, 1, 2, 2)), len(set(groups))))
    named = tuple((f"k{place}", text) for place, text in enumerate(dict.fromkeys(keys)))
    made = Aggregate(function="several", values=tuple(values), keys=named)
    return replace(made, top=_draw_top(rng, made, above_fixes=of_fixes))


def draw_speed(rng: Random) -> Aggregate:
    """The average speed of each object, alone or beside other values; perhaps of the fastest or slowest alone."""
    if rng.random() < 0.5:
        return Aggregate(function="avgspd")
    beside = draw_several(rng, sorted(NUMBERS), sorted(GROUPS))
    top = Top(value="speed", limit=1, descending=rng.random() < 0.5)
    of_ways = (
        Value(name="speed", function="avgspd"),
        Value(name="way_m", function="travelled"),
        Value(name="odometer_m", function="odometer"),
    )
    return replace(
        beside,
        values=(*beside.values, *of_ways),
        keys=(("k0", "object"),),
        top=top if rng.random() < 0.3 else None,
    )


def _draw_top(rng: Random, aggregate: Aggregate, *, above_fixes: bool) -> Top | None:
    """The greatest groups or the least, by values that are the same however they are found.

    In some cases among those that HAVING chooses; above rows it may stand alone.
    """
    numbers = [one.name for one in aggregate.values if one.function in _EXACT]
    names = [name for name, _ in aggregate.keys]
    if not numbers or not names or rng.random() < 0.5:
        return None
    having = _draw_having(rng, numbers, names)
    if having is not None and not above_fixes and rng.random() < 0.5:
        return Top(having=having)
    return Top(
        value=rng.choice(numbers),
        limit=rng.randint(1, 2),
        descending=rng.random() < 0.5,
        per=rng.choice(names) if len(names) > 1 and rng.random() < 0.6 else None,
        having=having,
    )


def _draw_having(rng: Random, numbers: list[str], keys: list[str]) -> str | None:
    """A condition on a number or a key of groups, or none."""
    if rng.random() < 0.5:
        return None
    number, key = rng.choice(numbers), rng.choice(keys)
    return rng.choice((f"{number} > 1", f"{number} <= 4", f"{key} <> 'a'"))


_EXACT = ("count", "count_distinct", "sum", "avg", "min", "max", "median")


def beside(rng: Random) -> Random:
    """A generator for what is drawn only now: what others draw from the first one stays as it was, by its seed."""
    return Random(repr(rng.getstate()[1][-3:]))


def draw_join(rng: Random) -> LayerJoin:
    """By place and by key."""
    kinds = rng.choice(((), ("park",), ("park", "road")))
    left, right = draw_key(rng)
    aside = beside(rng)
    if aside.random() < 0.25:
        return _draw_nearest(aside, kinds)
    match rng.choice(("intersects", "dwithin", "equals")):
        case "intersects":
            return LayerJoin(
                layer=LAYER, predicate="intersects", kinds=kinds, left=left, right=right
            )
        case "dwithin":
            return LayerJoin(
                layer=LAYER,
                predicate="dwithin",
                distance_m=rng.choice((0.5, 1.0, 2.5)),
                kinds=kinds,
                left=left,
                right=right,
            )
        case _:
            left, right = rng.choice(KEYS)
            return LayerJoin(
                layer=LAYER, predicate="equals", kinds=kinds, left=left, right=right
            )


def _draw_nearest(rng: Random, kinds: tuple[str, ...]) -> LayerJoin:
    """The nearest of all features, of those within a distance, or of those with a key."""
    left, right = draw_key(rng)
    predicate: Predicate = rng.choice(("nearest", "dwithin", "equals"))
    if predicate == "equals":
        left, right = rng.choice(KEYS)
    if predicate == "nearest":
        left = right = None
    return LayerJoin(
        layer=LAYER,
        predicate=predicate,
        distance_m=rng.choice((0.5, 1.0, 2.5)) if predicate == "dwithin" else 0.0,
        kinds=kinds,
        left=left,
        right=right,
        nearest=rng.choice((1, 1, 2, 3)),
    )


def _extent(rng: Random, by: Domain) -> Extent:
    """Short enough for objects of a small grid to come that far."""
    if by == "rows":
        return Extent(by=by, amount=rng.randint(1, 4))
    amounts = (
        (0.5, 1.0, 2.5, 4.0, 6.0) if by == "space" else (0.5, 1.0, 2.0, 3.0, 3.5, 10.0)
    )
    return Extent(by=by, amount=rng.choice(amounts))


def _sliding(rng: Random) -> Sliding:
    """Of one domain or of two, with a slide or without. Time moves on by itself, so there is much of it."""
    by = rng.choice((*DOMAINS, "time"))
    if rng.random() < 0.3:
        return Sliding(range=_extent(rng, by))
    other = rng.choice((*DOMAINS, "time"))
    return Sliding(
        range=_extent(rng, by), slide=_extent(rng, by if rng.random() < 0.4 else other)
    )


def draw_frame(rng: Random) -> Frame:
    """Windows along a way, regions of fixes, or both; or what an object did since it paused."""
    if rng.random() < 0.2:
        return _draw_session(rng)
    windows = rng.choice((0, 1, 1, 1, 1, 2, 2, 3))
    regions = rng.choice((0, 0, 0, 1, 2)) if windows else rng.choice((1, 1, 2))
    return Frame(
        sliding=tuple(_sliding(rng) for _ in range(windows)),
        regions=tuple(draw_still(rng) for _ in range(regions)),
        full=rng.random() < 0.2,
        min_step_m=rng.choice((0.0, 0.0, 0.0, 1.0, 2.5)),
        origin_s=rng.choice((0.0, 0.0, 0.25, 1_699_999_981.5, 2_000_000_000.0)),
    )


def _draw_session(rng: Random) -> Frame:
    regions = rng.choice((0, 0, 1, 2))
    return Frame(
        session_s=rng.choice((0.5, 1.0, 2.0, 3.0, 3.5, 6.0)),
        regions=tuple(draw_still(rng) for _ in range(regions)),
        min_step_m=rng.choice((0.0, 0.0, 0.0, 1.0, 2.5)),
    )


def draw_transform(rng: Random) -> Transform:
    """Amounts are such that no extent is rounded."""
    match rng.choice(
        ("factor", "value", "value", "metres", "metres", "key", "box", "filter")
    ):
        case "factor":
            return Transform(kind="factor", amount=rng.choice((1.0, 0.5, -0.5)))
        case "value":
            return Transform(kind="value", amount=rng.choice((0.5, 1.0, 2.0)))
        case "metres":
            return Transform(kind="metres", amount=rng.choice((1.0, 2.5, 4.0)))
        case "key":
            return Transform(kind="key", text=rng.choice(FOCALS))
        case "box":
            return Transform(kind="box", box=box(rng))
        case _:
            name, text = rng.choice(FILTERED)
            return Transform(kind="filter", name=name, text=text)


def sometimes_left(rng: Random, join: LayerJoin | None) -> LayerJoin | None:
    """A join, of which some leave no object out."""
    if join is None or rng.random() < 0.8:
        return join
    return replace(join, how="left")
