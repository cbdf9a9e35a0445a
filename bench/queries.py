"""The queries of the round benches, each kind with its plans and its exact answer."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench.expected import (
    circle_keys,
    nearest_keys,
    pair_keys,
    side_for,
    square_keys,
    without_focals,
)
from bench.oldenburg import STREAM, World
from st_common.query.neighbours import Nearest, Place
from st_common.query.plan import PairJoin, Plan
from st_common.regions.registry import Box, MovingBox, MovingCircle

_OTHER_FORMULA = 2e-4  # how far two formulas for metres on the ellipsoid may differ
_NONE = np.empty(0, np.int64)
Exact = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Queries q0, q1, ..; `exact` gives for places of all objects the answer's keys, and those that are doubtful.

    With `pairs` there is one query and keys are `object << 32 | partner`. `reach` is half a side, a radius, or 0.
    """

    what: str
    plans: list[Plan]
    exact: Exact
    reach: float = 0.0
    pairs: bool = False


def ask(
    kind: str, space: World, *, queries: int, members: float, k: int, distance_m: float
) -> Asked:
    """So many queries of a kind; moving ones are bound to random objects, each to another as long as there are any."""
    rng = np.random.default_rng(11)
    objects = space.x.shape[1]
    focal = np.concatenate(
        [rng.permutation(objects) for _ in range(-(-queries // objects))]
    )[:queries]
    return KINDS[kind](space, focal, members, k, distance_m)


def _squares(
    space: World, focal: np.ndarray, members: float, _k: int, _distance_m: float
) -> Asked:
    half = side_for(space.x[0], space.y[0], members)
    plans = [
        Plan(
            stream=STREAM,
            inside=MovingBox(focal=f"o{f}", width=2 * half, height=2 * half),
        )
        for f in focal
    ]

    def exact(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return without_focals(square_keys(x, y, x[focal], y[focal], half), focal), _NONE

    return Asked(
        what=f"{len(focal):,} moving squares", plans=plans, exact=exact, reach=half
    )


def _circles(
    space: World, focal: np.ndarray, members: float, _k: int, _distance_m: float
) -> Asked:
    radius = side_for(space.x[0], space.y[0], members)
    plans = [
        Plan(stream=STREAM, inside=MovingCircle(focal=f"o{f}", radius_m=radius))
        for f in focal
    ]

    def exact(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return without_focals(
            circle_keys(x, y, x[focal], y[focal], radius), focal
        ), _NONE

    return Asked(
        what=f"{len(focal):,} moving circles", plans=plans, exact=exact, reach=radius
    )


def _stationary(
    space: World, focal: np.ndarray, members: float, _k: int, _distance_m: float
) -> Asked:
    """Squares whose centres are places of objects at the start, as in PLACE."""
    half, (cx, cy) = (
        side_for(space.x[0], space.y[0], members),
        (space.x[0, focal], space.y[0, focal]),
    )
    plans = [
        Plan(
            stream=STREAM,
            inside=Box(minx=a - half, miny=b - half, maxx=a + half, maxy=b + half),
        )
        for a, b in zip(cx.tolist(), cy.tolist(), strict=True)
    ]
    return Asked(
        what=f"{len(focal):,} stationary squares",
        plans=plans,
        reach=half,
        exact=lambda x, y: (square_keys(x, y, cx, cy, half), _NONE),
    )


def _nearest(
    _space: World, focal: np.ndarray, _members: float, k: int, _distance_m: float
) -> Asked:
    plans = [
        Plan(stream=STREAM, neighbours=Nearest(k=k, place=Place(focal=f"o{f}")))
        for f in focal
    ]
    return Asked(
        what=f"{len(focal):,} moving kNN, k = {k}",
        plans=plans,
        exact=lambda x, y: (nearest_keys(x, y, focal, k), _NONE),
    )


def _fences(
    _space: World, _focal: np.ndarray, _members: float, _k: int, distance_m: float
) -> Asked:
    """All pairs of objects within a distance, in metres on the ellipsoid."""

    def exact(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        keys, metres = pair_keys(x, y, distance_m)
        return keys[metres <= distance_m], keys[
            np.abs(metres - distance_m) < _OTHER_FORMULA * distance_m
        ]

    plan = Plan(stream=STREAM, pairs=PairJoin(distance_m=distance_m))
    return Asked(
        what=f"pairs within {distance_m:g} m",
        plans=[plan],
        exact=exact,
        reach=distance_m,
        pairs=True,
    )


KINDS = {
    "squares": _squares,
    "circles": _circles,
    "stationary": _stationary,
    "nearest": _nearest,
    "fences": _fences,
}
