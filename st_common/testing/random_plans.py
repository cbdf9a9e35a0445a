"""Random plans on a small grid: every kind of query, with what may stand below and above it.

Everything comes from a seeded `random.Random`, so that a case is as good as its seed.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from st_common.query.comparing import Compare, Transform
from st_common.query.frame import Domain, Extent, Frame, Sliding
from st_common.query.neighbours import GroupNearest, Nearest, Neighbours, Place, ReverseNearest
from st_common.query.plan import Aggregate, Emit, Function, LayerJoin, Order, PairJoin, Plan, Window
from st_common.query.region import Area, Box, Circle, MovingBox, MovingCircle, Region
from st_common.testing.oracle_expressions import CONDITIONS, GROUPS, NUMBERS

STREAM = "grid"
LAYER = "shapes"
SIZE = 8  # coordinates are 0, 0.5, .. 8
OBJECTS = ("a", "b", "c", "d", "é 1")
FOCALS = (*OBJECTS, *OBJECTS, "nobody")
SIDES = (0.0, 1.0, 4.0, 7.0, 7.0, 16.0)
RADII = (0.0, 0.5, 1.0, 2.5, 2.5, 5.0, 5.0, 10.0)  # 2.5 meets 1.5 and 2, 5 meets 3 and 4
FUNCTIONS: tuple[Function, ...] = ("count", "count", "count_distinct", "sum", "avg", "min", "max", "distinct")
DOMAINS: tuple[Domain, ...] = ("space", "time", "rows")
ORDERS: tuple[Order, ...] = ("auto", "space_first", "select_first")
AREAS = (
    "POLYGON ((0 0, 6 0, 6 6, 0 6, 0 0))",
    "POLYGON ((0 0, 8 0, 4 4, 0 0))",
    "POLYGON ((0 0, 8 0, 8 8, 0 8, 0 0), (2 2, 6 2, 6 6, 2 6, 2 2))",
    "MULTIPOLYGON (((0 0, 2 0, 2 8, 0 8, 0 0)), ((4 0, 8 0, 8 3, 4 0)))",
)
CLEAR_AREA = "POLYGON ((0.25 0.25, 7.75 0.25, 4.25 4.5, 0.25 0.25))"
"""No point of the grid lies on its border, so none moves along it: there, rounding decides when it leaves."""


FILTERED = (
    ("key", "a"), ("key", "c"), ("property", "kind:taxi"), ("property", "free:true"), ("property", "line:taxi"),
    ("property", "seats:2"), ("wkt", AREAS[1]), ("wkt", "LINESTRING (0 0, 8 4, 8 8)"), ("geojson", None),
    ("geojson", "kind:bus"), ("geojson", "size:3"),
    ("geojson", '{"type": "Polygon", "coordinates": [[[1, 1], [7, 2], [4, 7], [1, 1]]]}'),
    ("geojson", '{"type": "Feature", "properties": {}, "geometry": {"type": "Point", "coordinates": [4, 4]}}'),
)  # fmt: skip
"""Names of filters with custom values."""


def plan_of(rng: Random, kind: str | None = None, *, layers: bool = False) -> Plan:
    """A plan of one of the `KINDS`, None for any; with `layers` it may join the layer `shapes`."""
    return _MAKE[kind or rng.choice(KINDS)](rng, layers)


def coordinate(rng: Random) -> float:
    """Halves from 0 to 8: few enough to meet borders and each other."""
    return rng.randint(0, 2 * SIZE) / 2


def box(rng: Random) -> Box:
    """A rectangle on the grid; some are lines or points."""
    corners = [coordinate(rng) for _ in range(4)]
    if rng.random() < 0.5:
        corners = [corners[0] / 4, corners[1] / 4, SIZE - corners[2] / 4, SIZE - corners[3] / 4]
    return Box.of_corners(*corners)


def _still(rng: Random) -> Region:
    match rng.randrange(3):
        case 0:
            return box(rng)
        case 1:
            return Circle(x=coordinate(rng), y=coordinate(rng), radius_m=rng.choice(RADII))
        case _:
            return Area(wkt=rng.choice(AREAS))


def _moving(rng: Random) -> Region:
    focal = rng.choice(FOCALS)
    if rng.random() < 0.5:
        return MovingCircle(focal=focal, radius_m=rng.choice(RADII))
    metres = rng.random() < 0.3  # the same as coordinates in a plane
    return MovingBox(focal=focal, width=rng.choice(SIDES), height=rng.choice(SIDES), metres=metres)


def _place(rng: Random) -> Place:
    if rng.random() < 0.4:
        return Place(x=coordinate(rng), y=coordinate(rng))
    return Place(focal=rng.choice(FOCALS))


def _neighbours(rng: Random) -> Neighbours:
    """At times k is larger than the number of objects."""
    k = rng.choice((1, 1, 2, 2, 3, 4, 7))
    match rng.randrange(4):
        case 0:
            return ReverseNearest(place=_place(rng))
        case 1:
            places = tuple(_place(rng) for _ in range(rng.randint(1, 3)))
            return GroupNearest(k=k, total=rng.choice(("sum", "max", "min")), places=places)
        case _:
            return Nearest(k=k, place=_place(rng))


def _where(rng: Random, share: float = 0.3) -> str | None:
    return rng.choice(sorted(CONDITIONS)) if rng.random() < share else None


def _columns(rng: Random) -> tuple[tuple[str, str], ...]:
    texts = rng.sample(("kind", "load", "x * 2"), rng.choice((0, 0, 0, 1, 2)))
    return tuple((f"c{number}", text) for number, text in enumerate(texts))


def _emit(rng: Random) -> Emit:
    return rng.choice(("changes", "changes", "every", "every", _stream(rng)))


def _stream(rng: Random) -> Emit:
    """What may be written of every kind: changes, or one of CQL's streams."""
    return rng.choice(("changes", "changes", "istream", "dstream", "rstream", "rstream"))


def _aggregate(rng: Random, *, joined: bool) -> Aggregate:
    """Every function, with and without argument and group; above a join also by partner."""
    function = rng.choice(FUNCTIONS)
    group = rng.choice([*sorted(GROUPS), *(["partner"] * 3 if joined else [])])
    if function == "distinct":
        return Aggregate(function=function, group=group)
    without = function.startswith("count") and rng.random() < 0.5
    argument = None if without else rng.choice(sorted(NUMBERS))
    return Aggregate(function=function, argument=argument, group=group if rng.random() < 0.5 else None)


def _join(rng: Random) -> LayerJoin:
    """By place and by key."""
    kinds = rng.choice(((), ("park",), ("park", "road")))
    match rng.choice(("intersects", "dwithin", "equals")):
        case "intersects":
            return LayerJoin(layer=LAYER, predicate="intersects", kinds=kinds)
        case "dwithin":
            return LayerJoin(layer=LAYER, predicate="dwithin", distance_m=rng.choice((0.5, 1.0, 2.5)), kinds=kinds)
        case _:
            left, right = rng.choice((("kind", "kind"), ("seats", "size"), ("kind", "line"), ("object", "fid")))
            return LayerJoin(layer=LAYER, predicate="equals", kinds=kinds, left=left, right=right)


def _fixes(rng: Random, layers: bool) -> Plan:  # noqa: FBT001 - one signature for all kinds
    """Judged fix by fix."""
    join = _join(rng) if layers and rng.random() < 0.7 else None
    inside = _still(rng) if join is None or rng.random() < 0.4 else None
    order = rng.choice(ORDERS)
    return Plan(
        stream=STREAM, inside=inside, join=join, emit=_emit(rng), where=_where(rng), columns=_columns(rng), order=order
    )


def _moves(rng: Random, _layers: bool) -> Plan:  # noqa: FBT001
    return Plan(stream=STREAM, inside=_moving(rng), where=_where(rng), columns=_columns(rng), emit=_emit(rng))


def _until(rng: Random, _layers: bool) -> Plan:  # noqa: FBT001
    inside = _still(rng) if rng.random() < 0.5 else _moving(rng)
    if isinstance(inside, Area):
        inside = Area(wkt=CLEAR_AREA)
    return Plan(stream=STREAM, inside=inside, where=_where(rng), valid_until=True)


def _near(rng: Random, _layers: bool) -> Plan:  # noqa: FBT001
    """Some among those inside a region, some with a condition."""
    inside = rng.choice((None, None, _still(rng), _moving(rng)))
    return Plan(
        stream=STREAM, neighbours=_neighbours(rng), inside=inside, where=_where(rng), columns=_columns(rng),
        emit=_emit(rng),
    )  # fmt: skip


def _pairs(rng: Random, _layers: bool) -> Plan:  # noqa: FBT001
    keys = tuple(rng.sample(("kind", "free", "seats % 2"), rng.choice((0, 0, 1, 2))))
    distance_m = None if keys and rng.random() < 0.5 else rng.choice(RADII)
    inside = _still(rng) if rng.random() < 0.3 else None
    return Plan(
        stream=STREAM, pairs=PairJoin(distance_m=distance_m, keys=keys), inside=inside, where=_where(rng),
        emit=_emit(rng),
    )  # fmt: skip


def _windows(rng: Random, layers: bool) -> Plan:  # noqa: FBT001
    """Over fixes that are inside, satisfy a condition or join a layer; some count."""
    join = _join(rng) if layers and rng.random() < 0.4 else None
    seconds = join is not None or rng.random() < 0.6
    window = Window(seconds=rng.choice((0.5, 1.0, 2.0, 3.5, 10.0))) if seconds else Window(tuples=rng.randint(1, 4))
    return Plan(
        stream=STREAM, inside=rng.choice((None, _still(rng))), where=_where(rng), join=join, window=window,
        aggregate=_aggregate(rng, joined=join is not None) if rng.random() < 0.6 else None, emit=_stream(rng),
    )  # fmt: skip


def _counts(rng: Random, layers: bool) -> Plan:  # noqa: FBT001
    """Over what is inside now: regions that stand still or move, neighbours, joins, pairs."""
    below = rng.choice((_fixes, _fixes, _moves, _near, _pairs))(rng, layers)
    return Plan(
        stream=STREAM, inside=below.inside, neighbours=below.neighbours, join=below.join, pairs=below.pairs,
        where=below.where, aggregate=_aggregate(rng, joined=below.join is not None), emit=_stream(rng),
    )  # fmt: skip


def _extent(rng: Random, by: Domain) -> Extent:
    """Short enough for objects of a small grid to come that far."""
    if by == "rows":
        return Extent(by=by, amount=rng.randint(1, 4))
    amounts = (0.5, 1.0, 2.5, 4.0, 6.0) if by == "space" else (0.5, 1.0, 2.0, 3.0, 3.5, 10.0)
    return Extent(by=by, amount=rng.choice(amounts))


def _sliding(rng: Random) -> Sliding:
    """Of one domain or of two, with a slide or without. Time moves on by itself, so there is much of it."""
    by = rng.choice((*DOMAINS, "time"))
    if rng.random() < 0.3:
        return Sliding(range=_extent(rng, by))
    other = rng.choice((*DOMAINS, "time"))
    return Sliding(range=_extent(rng, by), slide=_extent(rng, by if rng.random() < 0.4 else other))


def _frame(rng: Random) -> Frame:
    windows = rng.choice((0, 1, 1, 1, 1, 2, 2, 3))
    regions = rng.choice((0, 0, 0, 1, 2)) if windows else rng.choice((1, 1, 2))
    return Frame(
        sliding=tuple(_sliding(rng) for _ in range(windows)), regions=tuple(_still(rng) for _ in range(regions)),
        full=rng.random() < 0.2, min_step_m=rng.choice((0.0, 0.0, 0.0, 1.0, 2.5)),
        origin_s=rng.choice((0.0, 0.0, 0.25, 1_699_999_981.5, 2_000_000_000.0)),
    )  # fmt: skip


def _frames(rng: Random, layers: bool) -> Plan:  # noqa: FBT001
    """The rows of all objects, or of those that are inside, near or joined now; some count, some ask for a speed."""
    below = rng.choice((None, None, _fixes, _moves, _near))
    now = Plan(stream=STREAM) if below is None else below(rng, layers)
    aggregate = None
    if rng.random() < 0.5:
        aggregate = Aggregate(function="avgspd") if rng.random() < 0.5 else _aggregate(rng, joined=False)
    return Plan(
        stream=STREAM, frame=_frame(rng), inside=now.inside, neighbours=now.neighbours, join=now.join,
        where=_where(rng, 0.5), aggregate=aggregate, columns=_columns(rng) if aggregate is None else (),
        emit=_stream(rng),
    )  # fmt: skip


def _transform(rng: Random) -> Transform:
    """Amounts are such that no extent is rounded."""
    match rng.choice(("factor", "value", "value", "metres", "metres", "key", "box", "filter")):
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


def _comparing(rng: Random, layers: bool) -> Plan:  # noqa: FBT001
    """Boxes of fixes that are enlarged, filtered and compared, fix by fix or as a condition of other kinds."""
    below = rng.choice((_fixes, _fixes, _fixes, _moves, _near, _pairs, _windows, _counts, _frames))(rng, layers)
    steps = tuple(_transform(rng) for _ in range(rng.choice((0, 1, 1, 2, 3))))
    compare = Compare(box=box(rng), negative=rng.random() < 0.4) if not steps or rng.random() < 0.8 else None
    inside = below.inside if rng.random() < 0.6 or below.focals else None
    join = below.join
    if join is not None and join.predicate in ("intersects", "dwithin"):
        tags = rng.choice(((), (), (("line", "taxi"),), (("size", "3"), ("line", "bus")), (("kind", "park"),)))
        join = LayerJoin(layer=LAYER, predicate=rng.choice(("intersects", "within")), kinds=join.kinds, tags=tags)
    return replace(below, transforms=steps, compare=compare, inside=inside, join=join)


_MAKE: dict[str, Callable[[Random, bool], Plan]] = {
    "fixes": _fixes, "moving": _moves, "until": _until, "neighbours": _near, "pairs": _pairs, "windows": _windows,
    "counting": _counts, "frames": _frames, "comparing": _comparing,
}  # fmt: skip

KINDS = tuple(_MAKE)
"""The kinds of plans: `fixes` are judged fix by fix, all others at ticks."""
