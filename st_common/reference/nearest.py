"""KNN, GROUP KNN and REVERSE KNN (SPEC G5): every object is measured, and they are sorted.

The nearest of a group have the least sum, maximum or minimum of distances to its places; of equally far ones the id
decides, as text. An object is in a reverse answer when the place is (one of) its nearest neighbours:

    place --3-- a --2-- b      `b` is nearer to `a` than the place is: `a` is not in the answer
"""

import numpy as np
import shapely

from st_common.query.neighbours import (
    GroupNearest,
    Nearest,
    Neighbours,
    ReverseNearest,
    places_of,
)
from st_common.reference.columns import Fixes
from st_common.reference.extents import elements_of
from st_common.reference.metric import Bools, Floats, Members
from st_common.reference.shapes import from_shapes
from st_common.regions.registry import ByExtent, Circle

_DIGITS = {True: 9, False: 3}
"""So many digits of a sum count: of the plane's unit, or of metres on degrees."""


def neighbours(wanted: Neighbours, fixes: Fixes, eligible: Members) -> Members:
    """The neighbours among the eligible ones; `fixes` are all objects that live. Masks of n.

    Where it is in doubt who counts, so it is who is among the first k.
    """
    if isinstance(wanted, ReverseNearest):
        return eligible & _reverse(wanted, fixes, eligible.maybe)
    far = totals(wanted, fixes)
    chosen = first(wanted.k, far, fixes, eligible.maybe)
    if not fixes.metric.doubts or np.count_nonzero(eligible.maybe) <= wanted.k:
        return Members(sure=chosen & eligible.sure, maybe=chosen)
    if (eligible.sure != eligible.maybe).any():
        return Members(sure=np.zeros(len(fixes), np.bool_), maybe=eligible.maybe)
    last = far[chosen].max()
    clear = fixes.metric.slack(last)
    near = eligible.maybe & (far <= last + clear)
    return Members(sure=chosen & (far < last - clear), maybe=near | chosen)


def totals(wanted: Nearest | GroupNearest, fixes: Fixes) -> Floats:
    """What objects are compared by, f64[n]: the rank to the place, or of those to all places what is asked for."""
    metric, places = fixes.metric, [fixes.place_of(one) for one in places_of(wanted)]
    if isinstance(wanted, Nearest) and wanted.extent:
        (place,) = places
        return np.round(of_extents(wanted, fixes, *place), _DIGITS[metric.is_flat])
    if isinstance(wanted, GroupNearest) and wanted.total == "sum":
        each = [metric.distance(fixes.x, fixes.y, *place) for place in places]
        return np.asarray(np.round(np.sum(each, axis=0), _DIGITS[metric.is_flat]))
    ranks = [metric.rank(fixes.x, fixes.y, *place) for place in places]
    is_least = isinstance(wanted, GroupNearest) and wanted.total == "min"
    return np.asarray(np.min(ranks, axis=0) if is_least else np.max(ranks, axis=0))


def of_extents(wanted: Nearest, fixes: Fixes, x: float, y: float) -> Floats:
    """How far the nearest point of each element is from a place, 0 in an area; f64[n]."""
    region = ByExtent(
        part=Circle(x=x, y=y, radius_m=0.0), how="intersects", extent=wanted.extent
    )
    elements, count = elements_of(region, fixes), len(fixes)
    far = from_shapes(elements, np.full(count, x), np.full(count, y), fixes.metric)
    far[shapely.intersects_xy(elements, x, y)] = 0.0
    return far


def nearness(
    wanted: Nearest, fixes: Fixes, members: Fixes
) -> tuple[list[int], list[float]]:
    """Which of the nearest each member is, from 1 on, and how far it is from the place; of equal ones ids decide.

    Args:
        wanted: the neighbours; a focal object is among the fixes.
        fixes: all objects that live.
        members: those that are the nearest, in any order.
    """
    if not len(members):
        return [], []  # perhaps because the focal object does not live
    metric, (x, y) = fixes.metric, fixes.place_of(wanted.place)
    if wanted.extent:
        measured = of_extents(wanted, members, x, y)
        ranks = np.round(measured, _DIGITS[metric.is_flat]).tolist()
    else:
        measured = metric.distance(members.x, members.y, x, y)
        ranks = metric.rank(members.x, members.y, x, y).tolist()
    ordered = sorted(range(len(ranks)), key=lambda row: (ranks[row], members.ids[row]))
    nth = dict(zip(ordered, range(1, len(ranks) + 1), strict=True))
    return [nth[row] for row in range(len(ranks))], measured.tolist()


def first(k: int, far: Floats, fixes: Fixes, eligible: Bools) -> Bools:
    """The k eligible ones that are least far, of equally far ones those whose id comes first."""
    rows = np.flatnonzero(eligible).tolist()
    chosen = np.zeros(len(far), np.bool_)
    chosen[sorted(rows, key=lambda row: (far[row], fixes.ids[row]))[:k]] = True
    return chosen


def _reverse(wanted: ReverseNearest, fixes: Fixes, eligible: Bools) -> Members:
    """To whom no other object is nearer than the place is."""
    metric, place = fixes.metric, fixes.place_of(wanted.place)
    far = metric.rank(fixes.x, fixes.y, *place)
    gap = gaps(fixes, eligible)
    clear = np.where(np.isfinite(gap), metric.slack(gap), 0.0)
    return Members(sure=far <= gap - clear, maybe=far <= gap + clear)


def gaps(fixes: Fixes, which: Bools) -> Floats:
    """The rank from each of some objects to the nearest other one, inf where there is none; f64[n], -inf for others."""
    ranks = np.full(len(fixes), -np.inf)
    for row in np.flatnonzero(which):
        others = fixes.metric.rank(fixes.x, fixes.y, fixes.x[row], fixes.y[row])
        others[row] = np.inf
        ranks[row] = others.min()
    return ranks
