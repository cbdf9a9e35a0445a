"""Lengths and speeds on a plane whose unit is not the metre (a CRS in feet): plans in that unit (SPEC P4).

Plans say metres, and everything that is shown of them does. What judges fixes counts in coordinates: it takes a plan
as `in_coordinates` gives it.
"""

from dataclasses import replace
from functools import partial

from st_common.query import near_columns
from st_common.query.comparing import Transform
from st_common.query.fence import Fence
from st_common.query.frame import Extent, Frame, Sliding
from st_common.query.grammar.terminals import tokens_in
from st_common.query.grammar.words import quoted
from st_common.query.pair_columns import BORDER, DISTANCE, of_other
from st_common.query.plan import Plan
from st_common.query.plan_expressions import with_expressions

_OF_FIX = ("speed_mps", "acceleration_mps2")
_IN_METRES = (
    *_OF_FIX,
    *map(of_other, _OF_FIX),
    DISTANCE,
    BORDER,
    near_columns.DISTANCE,
)
"""What fixes, pairs and neighbours know in coordinates, and expressions in metres."""


def in_coordinates(plan: Plan, unit_m: float) -> Plan:
    """The plan with its lengths in a unit of so many metres, as coordinates are, and speeds in metres per second.

    The average speed of AVGSPD is a value and no text: whoever finds it converts it.
    """
    if unit_m == 1.0:
        return plan
    plan = with_expressions(plan, partial(_expression, unit_m=unit_m))
    join, pairs = plan.join, plan.pairs
    if join is not None:
        join = replace(join, distance_m=join.distance_m / unit_m)
    if pairs is not None and pairs.distance_m is not None:
        pairs = replace(pairs, distance_m=pairs.distance_m / unit_m)
    return replace(
        plan,
        join=join,
        pairs=pairs,
        inside=None if plan.inside is None else plan.inside.in_units(unit_m),
        frame=None if plan.frame is None else _frame(plan.frame, unit_m),
        fence=None if plan.fence is None else _fence(plan.fence, unit_m),
        transforms=tuple(_transform(step, unit_m) for step in plan.transforms),
    )


def _transform(step: Transform, unit_m: float) -> Transform:
    is_length = step.kind in ("metres", "filter")
    return replace(step, amount=step.amount / unit_m) if is_length else step


def _frame(frame: Frame, unit_m: float) -> Frame:
    return replace(
        frame,
        min_step_m=frame.min_step_m / unit_m,
        regions=tuple(region.in_units(unit_m) for region in frame.regions),
        sliding=tuple(
            Sliding(
                range=_extent(one.range, unit_m),
                slide=None if one.slide is None else _extent(one.slide, unit_m),
            )
            for one in frame.sliding
        ),
    )


def _fence(fence: Fence, unit_m: float) -> Fence:
    return replace(fence, hysteresis_m=fence.hysteresis_m / unit_m)


def _extent(extent: Extent, unit_m: float) -> Extent:
    return (
        replace(extent, amount=extent.amount / unit_m)
        if extent.by == "space"
        else extent
    )


def _expression(text: str, unit_m: float) -> str:
    """The text with speeds in metres per second, and distances in metres: fixes and pairs know them in coordinates."""
    said = text.lower()
    if not any(name in said for name in _IN_METRES):
        return text
    for token in reversed(tokens_in(text)):
        name = token.strip('"').lower()
        if token.kind in ("NAME", "QUOTED") and name in _IN_METRES:
            start, end = token.span
            text = f"{text[:start]}({quoted(name)} * {unit_m!r}){text[end:]}"
    return text
