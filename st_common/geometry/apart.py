"""How far points are from lines, outlines and points: pairs, whose limit `near` judges in the same way.

bound       the distance to some corner: nothing farther than that is looked at
pieces      those whose boxes the bound reaches
segments    the nearest one in the plane around the point; on the globe those that may be it are measured
"""

import numpy as np

from st_common.geometry.distance import metres_between
from st_common.geometry.grid import blocks
from st_common.geometry.near import (
    CLEAR,
    SHORT_M,
    TEMPERATE,
    Bools,
    Floats,
    Ints,
    Outlines,
    nearest_places,
    nearest_places_in,
    pieces_within_reach,
    squared_gaps,
)
from st_common.geometry.space import Space
from st_common.runs import is_first, ranges

_MOST_CANDIDATES = 1 << 15  # pairs of points and pieces looked at together


def distances(
    shapes: Outlines, which: Ints, x: Floats, y: Floats, *, space: Space
) -> Floats:
    """How far the point of each pair is from the outline of its geometry; float64[n].

    A distance d is the least for which `near` holds: in a plane to the last bit, on the globe as exact as that is.
    Inside an area it is that to its rings. For what lies beyond 180 degrees ask again with points a whole turn away.

    Args:
        shapes: the outlines.
        which: int64[n], the geometry of each pair.
        x: float64[n], longitude in degrees or a planar coordinate.
        y: float64[n].
        space: what coordinates mean.

    Returns:
        Metres; for planar coordinates their unit. NaN where the geometry has no segments or the point is nowhere.
    """
    result = np.full(len(which), np.nan)
    pieces = shapes.piece_start[which + 1] - shapes.piece_start[which]
    known = np.flatnonzero((pieces > 0) & ~np.isnan(x) & ~np.isnan(y))
    for part in blocks(pieces[known], _MOST_CANDIDATES):
        some = known[part]
        result[some] = _distances(shapes, which[some], x[some], y[some], space)
    return result


def _distances(
    shapes: Outlines, which: Ints, x: Floats, y: Floats, space: Space
) -> Floats:
    bound = _to_a_corner(shapes, which, x, y, space)
    pair, piece = pieces_within_reach(shapes, which, x, y, bound, space=space)
    sizes = shapes.start[piece + 1] - shapes.start[piece]
    ends = shapes.ends[:, ranges(shapes.start[piece], sizes)]
    pair = np.repeat(pair, sizes)
    across, along = space.scale(y)
    gap2 = squared_gaps(ends, x[pair], y[pair], across[pair], along[pair])
    least2 = _least(gap2, pair, len(which))
    if space.is_flat:
        return _root(least2)
    kept = np.flatnonzero(_may_be_nearest(gap2, least2[pair], np.abs(y[pair])))
    at = pair[kept]
    places = nearest_places(ends[:, kept], x[at], y[at])
    return _least(metres_between(x[at], y[at], *places), at, len(which))


def nearest_of(
    shapes: Outlines, which: Ints, x: Floats, y: Floats, *, space: Space
) -> tuple[Floats, Floats, Floats]:
    """How far the point of each pair is from the outline of its geometry, and the place there that is so far.

    Args:
        shapes: see `distances`; so are all others.
        which: int64[n].
        x: float64[n].
        y: float64[n].
        space: what coordinates mean.

    Returns:
        float64[n] each: the distance, x and y of the place, of several the first along the outline; NaN where the
        distance is.
    """
    far, place_x, place_y = np.full((3, len(which)), np.nan)
    pieces = shapes.piece_start[which + 1] - shapes.piece_start[which]
    known = np.flatnonzero((pieces > 0) & ~np.isnan(x) & ~np.isnan(y))
    for part in blocks(pieces[known], _MOST_CANDIDATES):
        some = known[part]
        far[some], place_x[some], place_y[some] = _nearest_of(
            shapes, which[some], x[some], y[some], space
        )
    return far, place_x, place_y


def _nearest_of(
    shapes: Outlines, which: Ints, x: Floats, y: Floats, space: Space
) -> tuple[Floats, Floats, Floats]:
    bound = _to_a_corner(shapes, which, x, y, space)
    pair, piece = pieces_within_reach(shapes, which, x, y, bound, space=space)
    sizes = shapes.start[piece + 1] - shapes.start[piece]
    ends = shapes.ends[:, ranges(shapes.start[piece], sizes)]
    pair = np.repeat(pair, sizes)
    there_x, there_y = nearest_places_in(ends, x[pair], y[pair], space=space)
    far = space.distance(x[pair], y[pair], there_x, there_y)
    order = np.lexsort((far, pair))
    best = order[is_first(pair[order])]
    # What lies a turn away may have nothing within the bound, and is no nearer here.
    least, place_x, place_y = (
        np.full(len(which), nothing) for nothing in (np.inf, np.nan, np.nan)
    )
    least[pair[best]] = far[best]
    place_x[pair[best]], place_y[pair[best]] = there_x[best], there_y[best]
    return least, place_x, place_y


def _to_a_corner(
    shapes: Outlines, which: Ints, x: Floats, y: Floats, space: Space
) -> Floats:
    """At least the distance to the nearest of the corners where pieces begin."""
    first = shapes.piece_start[which]
    counts = shapes.piece_start[which + 1] - first
    corner = shapes.ends[:2, shapes.start[ranges(first, counts)]]
    pair = np.repeat(np.arange(len(which)), counts)
    about = _least(space.rank_about(x[pair], y[pair], *corner), pair, len(which))
    return space.radius_of(space.surely(about))


def _least(values: Floats, pair: Ints, total: int) -> Floats:
    """The least value of each of so many pairs."""
    least = np.full(total, np.inf)
    np.minimum.at(least, pair, values)
    return least


def _may_be_nearest(gap2: Floats, least2: Floats, latitude: Floats) -> Bools:
    """The segments to measure: where the plane is right, those hardly farther in it than the nearest; else all."""
    is_right = (least2 <= SHORT_M**2) & (latitude <= TEMPERATE)
    return ~is_right | (gap2 <= least2 * (1 + CLEAR) ** 2)


def _root(square: Floats) -> Floats:
    """The least number of which the square, as it is rounded, is no less: so `near` holds at a distance itself."""
    root = np.sqrt(square)
    return np.where(root * root < square, np.nextafter(root, np.inf), root)
