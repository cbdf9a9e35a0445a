"""What the answers of the round benches must be, by SciPy's KD-tree alone: nothing of the product is used.

Answers are sorted int64 keys `query << 32 | object`.
"""

import numpy as np
from pyproj import Geod
from scipy.spatial import cKDTree

SHIFT = 32
_EARTH_M = 6_371_008.8
_SLACK = 1.01


def square_keys(
    x: np.ndarray, y: np.ndarray, cx: np.ndarray, cy: np.ndarray, half: float
) -> np.ndarray:
    """Points in squares around centres, closed."""
    return _within(x, y, cx, cy, half, norm=np.inf)


def circle_keys(
    x: np.ndarray, y: np.ndarray, cx: np.ndarray, cy: np.ndarray, radius: float
) -> np.ndarray:
    """Points in circles around centres, closed."""
    return _within(x, y, cx, cy, radius, norm=2.0)


def _within(
    x: np.ndarray,
    y: np.ndarray,
    cx: np.ndarray,
    cy: np.ndarray,
    reach: float,
    *,
    norm: float,
) -> np.ndarray:
    centres, points = (cKDTree(np.c_[a, b]) for a, b in ((cx, cy), (x, y)))
    found = centres.sparse_distance_matrix(points, reach, p=norm, output_type="ndarray")
    return np.sort((found["i"].astype(np.int64) << SHIFT) | found["j"].astype(np.int64))


def without_focals(keys: np.ndarray, focal: np.ndarray) -> np.ndarray:
    """The keys but for each query's own focal object."""
    return keys[(keys & ((1 << SHIFT) - 1)) != focal[keys >> SHIFT]]


def nearest_keys(x: np.ndarray, y: np.ndarray, focal: np.ndarray, k: int) -> np.ndarray:
    """The k nearest of each focal object, itself left out."""
    _, found = cKDTree(np.c_[x, y]).query(np.c_[x[focal], y[focal]], k=k + 1)
    keys = (np.repeat(np.arange(len(focal)), k + 1) << SHIFT) | found.ravel()
    return np.sort(without_focals(keys, focal))


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
    metres = Geod(ellps="WGS84").inv(lon[a], lat[a], lon[b], lat[b])[2]
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
