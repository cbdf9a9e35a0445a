"""Random fences on the small grid: amounts by which no fix and no way is in doubt by a rounded distance."""

from dataclasses import replace
from random import Random

from st_common.query.fence import EVENTS, Debounce, Event, Fence
from st_common.query.plan import LayerJoin, Plan
from st_common.regions.registry import (
    Box,
    Circle,
    MovingCircle,
    Region,
    Union,
)
from tests.kit.random_grid import (
    LAYER,
    ODD,
    draw_key,
    draw_moving,
    draw_simple,
    draw_still,
)

_HALVES = (0.5, 1.0, 2.5)


def draw_border(rng: Random) -> Region:
    """A region that stands still, or OR of some; some rectangles are lines or points."""
    if rng.random() < 0.15:
        parts = [_in_odd_borders(draw_simple(rng)) for _ in range(rng.choice((2, 3)))]
        return Union(parts=tuple(parts))
    return _in_odd_borders(draw_still(rng))


def _in_odd_borders(region: Region) -> Region:
    """The region with circles that no point of the grid lies on the border of; corridors are so already."""
    if isinstance(region, Circle):
        return replace(region, radius_m=ODD[0] + region.radius_m)
    return region.with_parts(_in_odd_borders)


def draw_join_by_place(rng: Random) -> LayerJoin:
    """With the features of a layer, by their shapes."""
    kinds = rng.choice(((), ("park",), ("park", "road")))
    predicate = rng.choice(("intersects", "within", "dwithin"))
    left, right = draw_key(rng)
    if predicate == "dwithin":
        return LayerJoin(
            layer=LAYER,
            predicate="dwithin",
            distance_m=rng.choice(ODD),
            kinds=kinds,
            left=left,
            right=right,
        )
    return LayerJoin(
        layer=LAYER,
        predicate="within" if predicate == "within" else "intersects",
        kinds=kinds,
        left=left,
        right=right,
    )


def draw_fence(rng: Random, inside: Region | None, join: LayerJoin | None) -> Fence:
    """Events that make sense there, and options; mostly with an answer."""
    events = {event for event in EVENTS if rng.random() < 0.5}
    if rng.random() < 0.6:
        events |= {"enter", "exit"}
    if join is not None:
        events -= {"outside"}
    if inside is not None and inside.no_border:
        events -= {"cross"}
    asked: tuple[Event, ...] = tuple(events) or ("enter",)
    return Fence(
        events=asked,
        dwell_s=rng.choice((0.5, 1.0, 2.0, 3.5)) if "dwell" in asked else None,
        enter_after=_draw_debounce(rng),
        exit_after=_draw_debounce(rng),
        hysteresis_m=_draw_hysteresis(rng, inside),
        max_gap_s=rng.choice((None, None, 0.5, 1.0, 2.5)),
        restart=rng.random() < 0.2,
    )


def draw_moving_border(rng: Random) -> Region:
    """A region around an object, which nothing on the grid is in doubt of."""
    return _in_odd_circles(draw_moving(rng))


def _in_odd_circles(region: Region) -> Region:
    """The region with circles around objects that no point of the grid lies on the border of."""
    if isinstance(region, MovingCircle):
        return replace(region, radius_m=ODD[0] + region.radius_m)
    return region.with_parts(_in_odd_circles)


def draw_moving_fence(rng: Random, inside: Region) -> Fence:
    """A fence that has a meaning at ticks: no CROSS or OUTSIDE, and times in the place of rows of fixes."""
    fence = draw_fence(rng, inside, None)
    events = tuple(e for e in fence.events if e not in ("outside", "cross"))
    return replace(
        fence,
        events=events or ("enter",),
        enter_after=replace(fence.enter_after, fixes=1),
        exit_after=replace(fence.exit_after, fixes=1),
        hysteresis_m=0.0 if inside.no_border else rng.choice((0.0, *ODD)),
        max_gap_s=None,
    )


def other_options(before: Plan, after: Plan, number: int) -> Plan:
    """What replaces a fence: for some numbers the same with other options, else the plan as it is."""
    if before.fence is None or after.fence is None or number % 3 == 0:
        return after
    if before.by_ticks != after.by_ticks:
        return after
    fence = replace(
        before.fence,
        enter_after=after.fence.enter_after,
        exit_after=after.fence.exit_after,
        max_gap_s=after.fence.max_gap_s,
        restart=number % 4 == 0,
    )
    return replace(before, fence=fence, columns=after.columns)


def _draw_debounce(rng: Random) -> Debounce:
    """Mostly a single fix."""
    return rng.choice(
        (
            Debounce(),
            Debounce(),
            Debounce(),
            Debounce(fixes=2),
            Debounce(fixes=3),
            Debounce(seconds=1.0),
            Debounce(fixes=2, seconds=2.0),
        )
    )


def _draw_hysteresis(rng: Random, inside: Region | None) -> float:
    """Some sides of areas are slanted, and circles odd: there no distance is a half."""
    if inside is not None and inside.no_border:
        return 0.0
    exact = isinstance(inside, Box) or inside is None
    return rng.choice((0.0, 0.0, *(_HALVES if exact else ODD)))
