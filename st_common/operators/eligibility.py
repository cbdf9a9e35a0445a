"""Which objects can be members of queries at all: those that satisfy their selection (SPEC G5: the nearest *free*)."""

from dataclasses import replace

import numpy as np

from st_common.operators.comparing import NO_STEPS
from st_common.operators.course import Course
from st_common.operators.intern import Interner
from st_common.operators.kind_queries import KindQueries
from st_common.operators.kinds import KINDS
from st_common.operators.match import region_mask
from st_common.operators.present import Present
from st_common.operators.screens import Asked, satisfied
from st_common.operators.world import Table, World
from st_common.query.region import MovingBox, MovingCircle


def masks_of(
    known: KindQueries, fixes: Present | Course, world: World, objects: Interner, *, before: np.ndarray | None,
    changed: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """bool[1 + rules, n]: row 0 is true for all, the others say which objects satisfy a rule.

    They come twice: first as rules without regions that move, which are `before` at the next tick (only the `changed`
    objects, bool[n], are looked at anew then), and with them.
    """
    total = len(world.x)
    if not known.rules:
        return (masks := np.ones((1, total), bool)), masks
    masks = np.zeros((1 + len(known.rules), total), bool)
    masks[0] = True
    if before is not None:
        masks[1:, : before.shape[1]] = before[1:]
    which = np.flatnonzero(world.alive & (changed if before is not None else True))
    masks[1:, which] = _fresh(known, fixes, world, objects, which)
    moving = {n: r for n, rule in enumerate(known.rules, 1) if isinstance(r := rule.region, MovingBox | MovingCircle)}
    whole = masks.copy() if moving else masks
    for number, region in moving.items():
        whole[number] &= moving_mask(region, world, objects)
    return masks, whole


def _fresh(
    known: KindQueries, fixes: Present | Course, world: World, objects: Interner, which: np.ndarray
) -> np.ndarray:
    """bool[rules, w] for some objects, without regions that move."""
    texts = list(dict.fromkeys(rule.where for rule in known.rules if rule.where is not None))
    asked = Asked(readings=fixes.readings(which), objects=objects, geographic=world.geographic)
    found = dict(zip(texts, fixes.masks(texts, which), strict=True))
    x, y = world.x[which], world.y[which]
    out = np.ones((len(known.rules), len(which)), bool)
    for number, rule in enumerate(known.rules):
        if rule.where is not None:
            out[number] &= found[rule.where]
        if rule.region is not None and not isinstance(rule.region, MovingBox | MovingCircle):
            out[number] &= region_mask(rule.region, x, y, geographic=world.geographic)
        if rule.steps != NO_STEPS:
            out[number] &= satisfied(rule.steps, asked)
    return out


def moving_mask(region: MovingBox | MovingCircle, world: World, objects: Interner) -> np.ndarray:
    """The living objects in a region that moves, without its focal object; none when that does not live."""
    mask = np.zeros(len(world.x), bool)
    focal = np.array([objects.number_of(region.focal)], np.int64)
    nowhere = np.array([np.nan])
    table = Table(focal=focal, x=nowhere, y=nowhere, eligible=np.zeros(1, np.int64))
    if isinstance(region, MovingBox):
        sides = {"width": np.array([region.width]), "height": np.array([region.height])}
        kind, table = KINDS["moving_box"], replace(table, metres=np.array([region.metres]), **sides)
    else:
        kind, table = KINDS["moving_circle"], replace(table, radius=np.array([region.radius_m]))
    criteria = kind.update_criteria(world, table, np.zeros(1, np.int64))
    row, found = kind.in_cache_area(world, criteria, np.flatnonzero(world.alive), 0.0)
    mask[found[kind.satisfy(world, criteria, row, found)]] = True
    return mask
