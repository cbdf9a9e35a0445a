"""Which straight ways come within a distance of outlines.

A way and an outline that do not cross are nearest to each other where one of them ends or has a corner:

    b
     .        o-----      the corner o is nearest to the way from a to b,
      .       |           the end a to the side below o
       a      |
"""

import numpy as np
import numpy.typing as npt

from st_common.geometry.enlarged import grown
from st_common.geometry.near import Distance, Outlines, near, of_pairs
from st_common.geometry.space import Space
from st_common.runs import ranges

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_MOST_PIECES = 1 << 17  # of outlines looked at together: some megabytes


def passing(
    shapes: Outlines, which: Ints, ways: Floats, distance_m: Distance, *, space: Space
) -> Bools:
    """For each pair of a geometry and a way that does not cross its outline, whether they are so near; bool[n].

    Distance <= `distance_m` counts as near, and is as exact as that of `near`. For what lies beyond 180 degrees ask
    again with ways a whole turn away.

    Args:
        shapes: the outlines.
        which: int64[n], the geometry of each pair.
        ways: float64[4, n], straight in the coordinates: ax, ay, bx, by.
        distance_m: metres; for planar coordinates, their unit. One for all pairs, or float64[n].
        space: what coordinates mean.
    """
    ax, ay, bx, by = ways
    passes = near(shapes, which, ax, ay, distance_m, space=space)
    passes |= near(shapes, which, bx, by, distance_m, space=space)
    left = np.flatnonzero(~passes)
    pieces = shapes.piece_start[which[left] + 1] - shapes.piece_start[which[left]]
    share = np.cumsum(pieces) // _MOST_PIECES
    for part in np.unique(share).tolist():
        mine = left[share == part]
        far = of_pairs(distance_m, mine)
        passes[mine] = _corners_near(
            shapes, which[mine], ways[:, mine], far, space=space
        )
    return passes


def _corners_near(
    shapes: Outlines, which: Ints, ways: Floats, distance_m: Distance, *, space: Space
) -> Bools:
    """For each pair whether an end or a corner of the outline is so near to the way."""
    way, piece = _pieces_around(shapes, which, ways, distance_m, space=space)
    sizes = shapes.start[piece + 1] - shapes.start[piece]
    ends = shapes.ends[:, ranges(shapes.start[piece], sizes)]
    at = np.tile(np.repeat(way, sizes), 2)
    x, y = np.concatenate([ends[:2], ends[2:]], axis=1)
    far = of_pairs(distance_m, at)
    hit = near(_alone(ways), at, x, y, far, space=space)
    passes = np.zeros(len(which), np.bool_)
    passes[at[hit]] = True
    return passes


def _pieces_around(
    shapes: Outlines, which: Ints, ways: Floats, distance_m: Distance, *, space: Space
) -> tuple[Ints, Ints]:
    """Pairs of a way's number and a piece of its geometry whose box the distance can reach."""
    first = shapes.piece_start[which]
    counts = shapes.piece_start[which + 1] - first
    way, piece = np.repeat(np.arange(len(which)), counts), ranges(first, counts)
    around = grown(_boxes(ways).T, distance_m, space=space).T
    minx, miny, maxx, maxy = shapes.boxes
    keep = minx[piece] <= around[2][way]
    keep &= maxx[piece] >= around[0][way]
    keep &= miny[piece] <= around[3][way]
    keep &= maxy[piece] >= around[1][way]
    return way[keep], piece[keep]


def _alone(ways: Floats) -> Outlines:
    """Ways as outlines of one segment each."""
    number = np.arange(ways.shape[1] + 1)
    return Outlines(ends=ways, start=number, boxes=_boxes(ways), piece_start=number)


def _boxes(ways: Floats) -> Floats:
    """The boxes of ways: float64[4, n]."""
    low, high = np.minimum(ways[:2], ways[2:]), np.maximum(ways[:2], ways[2:])
    return np.concatenate([low, high])
