"""What the answers of the round benches must be: SciPy's KD-tree says who is near, the reference who is a member.

Answers are sorted int64 keys `query << 32 | object`.
"""

import numpy as np
from scipy.spatial import cKDTree

from st_common.reference.metric import Metric
from st_common.reference.ranges import in_box

PLANE, GLOBE = Metric(is_flat=True), Metric(is_flat=False)
SHIFT = 32
_EARTH_M = 6_371_008.8
_SLACK = 1.01


def square_keys(
    x: np.ndarray, y: np.ndarray, cx: np.ndarray, cy: np.ndarray, half: float
) -> np.ndarray:
    """Points in squares around centres, closed."""
    row, at = _near(x, y, cx, cy, half, norm=np.inf)
    return _keys(row, at, in_box(x[at], y[at], (cx[row], cy[row]), (half, half), PLANE))


def circle_keys(
    x: np.ndarray, y: np.ndarray, cx: np.ndarray, cy: np.ndarray, radius: float
) -> np.ndarray:
    """Points in circles around centres, closed."""
    row, at = _near(x, y, cx, cy, radius, norm=2.0)
    found = PLANE.is_within(x[at], y[at], cx[row], cy[row], radius)
    return _keys(row, at, found.maybe)


def _keys(row: np.ndarray, at: np.ndarray, keep: np.ndarray) -> np.ndarray:
    return np.sort((row[keep] << SHIFT) | at[keep])


def _near(
    x: np.ndarray,
    y: np.ndarray,
    cx: np.ndarray,
    cy: np.ndarray,
    reach: float,
    *,
    norm: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Which centre and which point may be that near: all that are, and some more."""
    centres, points = (cKDTree(np.c_[a, b]) for a, b in ((cx, cy), (x, y)))
    found = centres.sparse_distance_matrix(
        points, reach * _SLACK, p=norm, output_type="ndarray"
    )
    return found["i"].astype(np.int64), found["j"].astype(np.int64)


def without_focals(keys: np.ndarray, focal: np.ndarray) -> np.ndarray:
    """The keys but for each query's own focal object."""
    return keys[(keys & ((1 << SHIFT) - 1)) != focal[keys >> SHIFT]]


def nearest_keys(x: np.ndarray, y: np.ndarray, focal: np.ndarray, k: int) -> np.ndarray:
    """The k nearest of each focal object, itself left out; of places at random none are equally far."""
    at = cKDTree(np.c_[x, y]).query(np.c_[x[focal], y[focal]], k=k + 2)[1].ravel()
    row = np.repeat(np.arange(len(focal)), k + 2)
    row, at = row[at != focal[row]], at[at != focal[row]]
    far = PLANE.rank(x[at], y[at], x[focal[row]], y[focal[row]])
    order = np.lexsort((far, row))
    place = np.arange(len(row)) - np.searchsorted(row, row)
    return _keys(row[order], at[order], place < k)


def pair_keys(
    lon: np.ndarray, lat: np.ndarray, distance_m: float
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of objects (both orders, `object << 32 | partner`) up to 1 % further apart, and their geodesic metres."""
    angles = np.radians(np.c_[lon, lat])
    ball = np.c_[
        np.cos(angles[:, 1]) * np.cos(angles[:, 0]),
        np.cos(angles[:, 1]) * np.sin(angles[:, 0]),
        np.sin(angles[:, 1]),
    ]
    pairs = (
        cKDTree(ball)
        .query_pairs(distance_m * _SLACK / _EARTH_M, output_type="ndarray")
        .astype(np.int64)
    )
    a, b = pairs.T
    metres = GLOBE.distance(lon[a], lat[a], lon[b], lat[b])
    keys = np.concatenate([(a << SHIFT) | b, (b << SHIFT) | a])
    order = np.argsort(keys)
    return keys[order], np.tile(metres, 2)[order]


def changes_between(before: np.ndarray, after: np.ndarray) -> tuple[int, int]:
    """How many keys are new, and how many are gone."""
    same = len(np.intersect1d(before, after, assume_unique=True))
    return len(after) - same, len(before) - same


def side_for(x: np.ndarray, y: np.ndarray, members: float) -> float:
    """Half the side of squares around all objects that have so many members on average; never met exactly by a border.

    Coordinates have six decimals, the half side has a seventh: no object lies on a border.
    """
    tree, low, high = cKDTree(np.c_[x, y]), 0.0, float(max(np.ptp(x), np.ptp(y)))
    some = np.random.default_rng(0).choice(len(x), min(len(x), 5000), replace=False)
    for _ in range(40):
        half = (low + high) / 2
        mean = (
            tree.query_ball_point(
                np.c_[x[some], y[some]], half, p=np.inf, return_length=True
            ).mean()
            - 1
        )
        low, high = (half, high) if mean < members else (low, half)
    return round(low, 3) + 5e-7
