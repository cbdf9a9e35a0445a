"""Forms of queries in any number, over cars on straight ways: what `bench.ticks` and its table ask."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

from bench.oldenburg import STREAM
from st_common.geometry.space import GLOBE, PLANE
from st_common.layers.index import LayerIndex
from st_common.query.frame import Extent, Frame, Sliding
from st_common.query.neighbours import Nearest, Place
from st_common.query.plan import Aggregate, LayerJoin, PairJoin, Plan, Window
from st_common.regions.registry import Box, MovingBox, MovingCircle

CARS = 10_000
SPREAD_M, ROUND_S, KMH = 100_000.0, 60.0, (30.0, 60.0)
_CLASSES = 100
_SQUARES = 40  # of the layer, along each side
_NAMES = 50  # of squares
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
                "zone": pa.array([fid_of(n % _SQUARES**2) for n in range(objects)]),
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
    fids = [fid_of(number) for number in range(len(boxes))]
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
    tags = {
        "name": pa.array([f"square {number % _NAMES}" for number in range(len(fids))]),
        "least": pa.array([str(number % 20) for number in range(len(fids))]),
    }
    space = GLOBE if degrees else PLANE
    return LayerIndex(rows, lambda _: shapes, space=space, read_tag=tags.__getitem__)


def fid_of(number: int) -> str:
    """What a square of the layer is called."""
    return f"s{number:05d}"


def plan_of(**parts: Any) -> Plan:
    """A plan on the stream of the benchmark."""
    return Plan(stream=STREAM, **parts)


def boxes_of(queries: int) -> list[Box]:
    """Squares of a fiftieth of a side, anywhere."""
    rng, side = np.random.default_rng(17), SPREAD_M / 50
    at = rng.uniform(0, SPREAD_M - side, (queries, 2)).tolist()
    return [Box(minx=x, miny=y, maxx=x + side, maxy=y + side) for x, y in at]


def focals_of(queries: int, objects: int) -> list[str]:
    """The car that each query is about; from the first on again where there are more queries than cars."""
    return [f"o{number % objects}" for number in range(queries)]


def q3_plans(queries: int, objects: int) -> list[Plan]:
    """CQL-S's Q3, a car each: its average speed over the last 5 km, every km."""
    window = Sliding(
        range=Extent(by="space", amount=5_000.0),
        slide=Extent(by="space", amount=1_000.0),
    )
    speed = Aggregate(function="avgspd")
    return [
        plan_of(
            frame=Frame(sliding=(window,)),
            aggregate=speed,
            emit="rstream",
            where=f"object = '{name}'",
        )
        for name in focals_of(queries, objects)
    ]


def pairs_plans(queries: int, _objects: int) -> list[Plan]:
    """Pairs of cars near each other, the first of them in a square."""
    return [
        plan_of(inside=box, pairs=PairJoin(distance_m=1_000.0))
        for box in boxes_of(queries)
    ]


def joins_plans(queries: int, objects: int) -> list[Plan]:
    """Cars around a car, and the square of the layer that each is in."""
    join = LayerJoin(layer="squares", predicate="intersects")
    return [
        plan_of(inside=MovingCircle(focal=name, radius_m=1_000.0), join=join)
        for name in focals_of(queries, objects)
    ]


def _moving_pairs(queries: int, objects: int) -> list[Plan]:
    near = PairJoin(distance_m=1_000.0)
    return [
        plan_of(inside=MovingCircle(focal=name, radius_m=1_000.0), pairs=near)
        for name in focals_of(queries, objects)
    ]


def _rows(queries: int, objects: int) -> list[Plan]:
    frame = Frame(sliding=(Sliding(range=Extent(by="time", amount=300.0)),))
    return [
        plan_of(frame=frame, where=f"object = '{name}'")
        for name in focals_of(queries, objects)
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
        plan_of(neighbours=Nearest(k=5, place=Place(focal=name)))
        for name in focals_of(queries, objects)
    ]


def _circles(queries: int, objects: int) -> list[Plan]:
    return [
        plan_of(inside=MovingCircle(focal=name, radius_m=1_000.0))
        for name in focals_of(queries, objects)
    ]


def _in_boxes(queries: int, _objects: int) -> list[Plan]:
    return [plan_of(inside=box) for box in boxes_of(queries)]


FORMS: dict[str, Plans] = {
    "box": _in_boxes,
    "box WHERE a condition of its own": _with(_in_boxes, _own),
    "box WHERE an expression of its own": _with(_in_boxes, _own_expression),
    "WHERE one object, no region": lambda q, n: [
        plan_of(where=f"object = '{name}'") for name in focals_of(q, n)
    ],
    "box WITH VALID UNTIL": lambda q, _: [
        plan_of(inside=box, valid_until=True) for box in boxes_of(q)
    ],
    "moving circle WITH VALID UNTIL": lambda q, n: [
        replace(plan, valid_until=True) for plan in _circles(q, n)
    ],
    "COUNT in a box": lambda q, _: [
        plan_of(inside=box, aggregate=Aggregate(function="count"))
        for box in boxes_of(q)
    ],
    "COUNT in a box, WINDOW 5 minutes": lambda q, _: [
        plan_of(
            inside=box,
            window=Window(seconds=300.0),
            aggregate=Aggregate(function="count"),
        )
        for box in boxes_of(q)
    ],
    "WHERE one object and an expression of its own, no region": lambda q, n: [
        plan_of(where=f"object = '{name}' AND {_own_expression(number)}")
        for number, name in enumerate(focals_of(q, n))
    ],
    "WHERE an expression of its own, no region": _with(
        lambda q, _: [plan_of()] * q, _near_a_place
    ),
    "layer join in a box": lambda q, _: [
        plan_of(inside=box, join=LayerJoin(layer="squares", predicate="intersects"))
        for box in boxes_of(q)
    ],
    "moving box": lambda q, n: [
        plan_of(inside=MovingBox(focal=name, width=2_000.0, height=2_000.0))
        for name in focals_of(q, n)
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
"""Forms made as plans: of each the plans of so many queries among so many objects."""
