"""Forms of queries in any number, over cars on straight ways or over aircraft: what `bench.ticks` and its table ask."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

from bench.oldenburg import STREAM
from st_common.geometry.space import GLOBE, PLANE
from st_common.layers.index import LayerIndex
from st_common.query.comparing import Compare
from st_common.query.frame import Extent, Frame, Sliding
from st_common.query.neighbours import GroupNearest, Nearest, Place, ReverseNearest
from st_common.query.plan import Aggregate, LayerJoin, PairJoin, Plan, Window
from st_common.regions.registry import Area, Box, Circle, MovingBox, MovingCircle

CARS = 10_000
SPREAD_M, ROUND_S, KMH = 100_000.0, 60.0, (30.0, 60.0)
_CLASSES = 100
_SQUARES = 40  # of the layer, along each side
Plans = Callable[[int, int], list[Plan]]


def cars(objects: int, rounds: int) -> Iterator[pa.Table]:
    """Rounds in which every car reports once, from 1 January 1970 on; they drive straight on and turn back at ends."""
    rng = np.random.default_rng(5)
    angle, start = (
        rng.uniform(0, 2 * np.pi, objects),
        rng.uniform(0, SPREAD_M, (2, objects)),
    )
    reach = rng.uniform(*KMH, objects) / 3.6 * ROUND_S
    names = pa.array([f"o{number}" for number in range(objects)])
    who = pa.DictionaryArray.from_arrays(pa.array(range(objects), pa.int32()), names)
    for number in range(rounds):
        x, y = start + number * reach * np.stack([np.cos(angle), np.sin(angle)])
        yield pa.table(
            {
                "row": pa.array(range(objects), pa.int32()),
                "object": who,
                "event_ts": np.full(objects, round((number + 1) * ROUND_S * 1e6)),
                "x": _turned(x),
                "y": _turned(y),
                "gone": np.zeros(objects, bool),
                "kind": pa.array(
                    [("taxi", "bus", "van")[n % 3] for n in range(objects)]
                ),
                "class": pa.array([f"c{n % _CLASSES}" for n in range(objects)]),
                "load": np.asarray((np.arange(objects) * 7 + number) % 20, float),
            }
        )


def _turned(axis: np.ndarray) -> np.ndarray:
    """Coordinates thrown back at both ends of the space, to a decimetre."""
    folded: np.ndarray = np.round(
        SPREAD_M - np.abs(axis % (2 * SPREAD_M) - SPREAD_M), 1
    )
    return folded


def squares_of(*, degrees: bool = False) -> LayerIndex:
    """A layer of squares on a grid, half of the space being between them; over Switzerland, or over the cars' space."""
    low = np.array([5.9, 45.8]) if degrees else np.zeros(2)
    side = (
        np.array([4.6, 2.1]) / _SQUARES if degrees else np.full(2, SPREAD_M / _SQUARES)
    )
    corners = low + np.stack(np.divmod(np.arange(_SQUARES**2), _SQUARES), axis=1) * side
    boxes = np.concatenate([corners, corners + side * np.sqrt(0.5)], axis=1)
    shapes = pa.chunked_array([pa.array(shapely.to_wkb(shapely.box(*boxes.T)))])
    fids = [f"s{number:05d}" for number in range(len(boxes))]
    columns = dict(zip(("minx", "miny", "maxx", "maxy"), boxes.T, strict=True))
    rows = pa.table(
        {
            "region_id": ["0"] * len(fids),
            **columns,
            "home": [True] * len(fids),
            "fid": fids,
            "kind": ["park"] * len(fids),
        }
    )
    return LayerIndex(rows, lambda _: shapes, space=GLOBE if degrees else PLANE)


def _plan(**parts: Any) -> Plan:
    return Plan(stream=STREAM, **parts)


def _boxes(queries: int) -> list[Box]:
    """Squares of a fiftieth of a side, anywhere."""
    rng, side = np.random.default_rng(17), SPREAD_M / 50
    at = rng.uniform(0, SPREAD_M - side, (queries, 2)).tolist()
    return [Box(minx=x, miny=y, maxx=x + side, maxy=y + side) for x, y in at]


def _focals(queries: int, objects: int) -> list[str]:
    return [f"o{number % objects}" for number in range(queries)]


def q3_plans(queries: int, objects: int) -> list[Plan]:
    """CQL-S's Q3, a car each: its average speed over the last 5 km, every km."""
    window = Sliding(
        range=Extent(by="space", amount=5_000.0),
        slide=Extent(by="space", amount=1_000.0),
    )
    speed = Aggregate(function="avgspd")
    return [
        _plan(
            frame=Frame(sliding=(window,)),
            aggregate=speed,
            emit="rstream",
            where=f"object = '{name}'",
        )
        for name in _focals(queries, objects)
    ]


def pairs_plans(queries: int, _objects: int) -> list[Plan]:
    """Pairs of cars near each other, the first of them in a square."""
    return [
        _plan(inside=box, pairs=PairJoin(distance_m=1_000.0)) for box in _boxes(queries)
    ]


def joins_plans(queries: int, objects: int) -> list[Plan]:
    """Cars around a car, and the square of the layer that each is in."""
    join = LayerJoin(layer="squares", predicate="intersects")
    return [
        _plan(inside=MovingCircle(focal=name, radius_m=1_000.0), join=join)
        for name in _focals(queries, objects)
    ]


def _moving_pairs(queries: int, objects: int) -> list[Plan]:
    near = PairJoin(distance_m=1_000.0)
    return [
        _plan(inside=MovingCircle(focal=name, radius_m=1_000.0), pairs=near)
        for name in _focals(queries, objects)
    ]


def _rows(queries: int, objects: int) -> list[Plan]:
    frame = Frame(sliding=(Sliding(range=Extent(by="time", amount=300.0)),))
    return [
        _plan(frame=frame, where=f"object = '{name}'")
        for name in _focals(queries, objects)
    ]


def _own(number: int) -> str:
    """A condition that no other query has."""
    return f"load > {number % 20} + {number} / 1e6"


def _own_expression(number: int) -> str:
    """A condition that no other query has, and that is the database's."""
    return f"abs(load - {number % 20}) > 9 + {number} / 1e6"


def _near_a_place(number: int) -> str:
    """A condition that few fixes satisfy, and of which only the database knows which."""
    x, y = number * 7919 % SPREAD_M, number * 104_729 % SPREAD_M
    return f"abs(x - {x}) + abs(y - {y}) < 1000"


def _with(plans: Plans, where: Callable[[int], str]) -> Plans:
    """The same plans, each with a condition."""
    return lambda queries, objects: [
        replace(plan, where=where(number))
        for number, plan in enumerate(plans(queries, objects))
    ]


def _nearest(queries: int, objects: int) -> list[Plan]:
    return [
        _plan(neighbours=Nearest(k=5, place=Place(focal=name)))
        for name in _focals(queries, objects)
    ]


def _circles(queries: int, objects: int) -> list[Plan]:
    return [
        _plan(inside=MovingCircle(focal=name, radius_m=1_000.0))
        for name in _focals(queries, objects)
    ]


def _in_boxes(queries: int, _objects: int) -> list[Plan]:
    return [_plan(inside=box) for box in _boxes(queries)]


FORMS: dict[str, Plans] = {
    "box": _in_boxes,
    "box WHERE a condition of its own": _with(_in_boxes, _own),
    "box WHERE an expression of its own": _with(_in_boxes, _own_expression),
    "WHERE one object, no region": lambda q, n: [
        _plan(where=f"object = '{name}'") for name in _focals(q, n)
    ],
    "COUNT in a box": lambda q, _: [
        _plan(inside=box, aggregate=Aggregate(function="count")) for box in _boxes(q)
    ],
    "COUNT in a box, WINDOW 5 minutes": lambda q, _: [
        _plan(
            inside=box,
            window=Window(seconds=300.0),
            aggregate=Aggregate(function="count"),
        )
        for box in _boxes(q)
    ],
    "WHERE one object and an expression of its own, no region": lambda q, n: [
        _plan(where=f"object = '{name}' AND {_own_expression(number)}")
        for number, name in enumerate(_focals(q, n))
    ],
    "WHERE an expression of its own, no region": _with(
        lambda q, _: [_plan()] * q, _near_a_place
    ),
    "layer join in a box": lambda q, _: [
        _plan(inside=box, join=LayerJoin(layer="squares", predicate="intersects"))
        for box in _boxes(q)
    ],
    "moving box": lambda q, n: [
        _plan(inside=MovingBox(focal=name, width=2_000.0, height=2_000.0))
        for name in _focals(q, n)
    ],
    "moving circle WHERE a condition of its own": _with(_circles, _own),
    "moving circle WHERE an expression of its own": _with(_circles, _own_expression),
    "5 nearest": _nearest,
    "5 nearest WHERE a kind": _with(_nearest, lambda _: "kind = 'taxi'"),
    "5 nearest WHERE one of 100 classes": _with(
        _nearest, lambda number: f"class = 'c{number * 7 % _CLASSES}'"
    ),
    "5 nearest WHERE a condition of its own": _with(_nearest, _own),
    "5 nearest WHERE an expression of its own": _with(_nearest, _own_expression),
    "pairs in a box": pairs_plans,
    "pairs in a box WHERE a condition of its own": _with(pairs_plans, _own),
    "pairs in a box WHERE an expression of its own": _with(
        pairs_plans, _own_expression
    ),
    "pairs in a moving circle": _moving_pairs,
    "pairs in a moving circle WHERE a condition of its own": _with(_moving_pairs, _own),
    "layer join in a moving circle": joins_plans,
    "layer join in a moving circle WHERE a condition of its own": _with(
        joins_plans, _own
    ),
    "a car's last 5 minutes": _rows,
    "a car's average speed (CQL-S Q3)": q3_plans,
}
"""What is asked in the table: per form the plans of so many queries among so many objects."""


def aircraft_plans(fixes: pa.Table) -> list[Plan]:
    """52 queries of all kinds over Switzerland, those that move with the aircraft that report most."""
    names = fixes["object"].combine_chunks().value_counts()
    most = sorted(names.to_pylist(), key=lambda one: (-one["counts"], one["values"]))
    focal = [one["values"] for one in most]
    zurich, geneva = (8.55, 47.45), (6.11, 46.24)
    near = Box(minx=7.5, miny=46.5, maxx=9.5, maxy=47.7)
    ring = Circle(x=zurich[0], y=zurich[1], radius_m=30_000.0)
    alps = Area(wkt="POLYGON ((6.5 46, 10 46.2, 9.5 47, 7 46.8, 6.5 46))")
    high = "altitude > 30000"
    return [
        *_still(near, ring, alps, high),
        *_moving(focal, high),
        *_near(focal, zurich, geneva, near, high),
        *_paired(focal, near, high),
        *_counted(near, ring, alps, focal),
        *_framed(near, ring, focal),
    ]


def _still(near: Box, ring: Circle, alps: Area, high: str) -> list[Plan]:
    join = LayerJoin(layer="squares", predicate="intersects")
    return [
        _plan(inside=near),
        _plan(inside=ring),
        _plan(inside=alps),
        _plan(inside=near, where=high),
        _plan(
            inside=ring,
            emit="every",
            columns=(("callsign", "callsign"), ("feet", "altitude")),
        ),
        _plan(inside=alps, where="groundspeed > 400"),
        _plan(join=join),
        _plan(join=join, inside=near, where=high),
        _plan(inside=near, valid_until=True),
        _plan(inside=ring, emit="rstream"),
        _plan(
            inside=near,
            compare=Compare(
                box=Box(minx=8.0, miny=46.0, maxx=9.0, maxy=47.0), negative=True
            ),
        ),
    ]


def _moving(focal: list[str], high: str) -> list[Plan]:
    squares = LayerJoin(layer="squares", predicate="intersects")
    around = MovingCircle(focal=focal[3], radius_m=60_000.0)
    return [
        *(
            _plan(
                inside=MovingBox(
                    focal=name, width=80_000.0, height=50_000.0, metres=True
                )
            )
            for name in focal[:3]
        ),
        _plan(inside=MovingBox(focal=focal[4], width=1.0, height=0.5), where=high),
        *(
            _plan(inside=MovingCircle(focal=name, radius_m=40_000.0))
            for name in focal[5:8]
        ),
        _plan(inside=around),
        _plan(inside=around, valid_until=True),
        _plan(inside=around, where="groundspeed > 300", emit="every"),
        _plan(inside=around, join=squares),
    ]


def _near(
    focal: list[str],
    zurich: tuple[float, float],
    geneva: tuple[float, float],
    near: Box,
    high: str,
) -> list[Plan]:
    one, other = Place(x=zurich[0], y=zurich[1]), Place(x=geneva[0], y=geneva[1])
    both = (one, Place(focal=focal[0]))
    return [
        _plan(neighbours=Nearest(k=5, place=one)),
        _plan(neighbours=Nearest(k=3, place=other), where=high),
        *(
            _plan(neighbours=Nearest(k=4, place=Place(focal=name)))
            for name in focal[:3]
        ),
        _plan(neighbours=Nearest(k=2, place=one), inside=near),
        _plan(neighbours=ReverseNearest(place=one)),
        _plan(neighbours=ReverseNearest(place=Place(focal=focal[1]))),
        _plan(neighbours=GroupNearest(k=3, total="sum", places=both)),
        _plan(neighbours=GroupNearest(k=2, total="max", places=both), where=high),
    ]


def _paired(focal: list[str], near: Box, high: str) -> list[Plan]:
    close = PairJoin(distance_m=10_000.0)
    return [
        _plan(pairs=close),
        _plan(pairs=close, inside=near, where=high),
        _plan(pairs=PairJoin(distance_m=30_000.0, keys=("substr(callsign, 1, 3)",))),
        _plan(pairs=close, inside=MovingCircle(focal=focal[0], radius_m=80_000.0)),
    ]


def _counted(near: Box, ring: Circle, alps: Area, focal: list[str]) -> list[Plan]:
    company = "substr(callsign, 1, 3)"
    hour = Window(seconds=3600.0)
    return [
        _plan(inside=near, aggregate=Aggregate(function="count")),
        _plan(inside=ring, aggregate=Aggregate(function="avg", argument="altitude")),
        _plan(
            inside=alps,
            aggregate=Aggregate(function="max", argument="groundspeed", group=company),
        ),
        _plan(inside=near, aggregate=Aggregate(function="distinct", group=company)),
        _plan(
            inside=MovingCircle(focal=focal[0], radius_m=50_000.0),
            aggregate=Aggregate(function="count"),
        ),
        _plan(inside=near, window=Window(seconds=600.0)),
        _plan(inside=ring, window=Window(tuples=20)),
        _plan(inside=near, window=hour, aggregate=Aggregate(function="count")),
        _plan(
            inside=alps,
            window=hour,
            aggregate=Aggregate(function="min", argument="altitude", group=company),
        ),
        _plan(
            pairs=PairJoin(distance_m=20_000.0), aggregate=Aggregate(function="count")
        ),
    ]


def _framed(near: Box, ring: Circle, focal: list[str]) -> list[Plan]:
    space = Sliding(
        range=Extent(by="space", amount=50_000.0),
        slide=Extent(by="space", amount=10_000.0),
    )
    hour = Sliding(
        range=Extent(by="time", amount=3600.0), slide=Extent(by="time", amount=600.0)
    )
    last = Sliding(range=Extent(by="rows", amount=5))
    speed = Aggregate(function="avgspd")
    return [
        _plan(frame=Frame(sliding=(space,)), aggregate=speed, emit="rstream"),
        _plan(
            frame=Frame(sliding=(space,)),
            aggregate=speed,
            where=f"object = '{focal[0]}'",
            emit="rstream",
        ),
        _plan(frame=Frame(sliding=(hour,)), aggregate=Aggregate(function="count")),
        _plan(frame=Frame(sliding=(last,), regions=(near,))),
        _plan(frame=Frame(sliding=(last,)), inside=ring),
        _plan(
            frame=Frame(sliding=(Sliding(range=Extent(by="time", amount=900.0)),)),
            where=f"object = '{focal[1]}'",
        ),
    ]
