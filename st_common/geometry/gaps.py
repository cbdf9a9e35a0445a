"""How far each of some objects is from its nearest other one, at many moments."""

import numpy as np
import numpy.typing as npt

from st_common.geometry.grid import blocks
from st_common.geometry.nearest import distance

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_MOST_PAIRS = 1 << 20  # looked at together
_RADIUS_M = 6_399_594.0  # of the flattest place of the globe: no angle is longer
_LONGER, _ROUNDED_M = (
    1.01,
    10.0,
)  # what an angle on the ellipsoid can be more than one on the ball, and then some
_NEARLY, _NOTHING = (
    1.07,
    1e-9,
)  # of 1 - cosine: angles that differ by what the ellipsoid is not a ball


def gaps_at_most(x: Floats, y: Floats, *, geographic: bool) -> Floats:
    """For each object at each moment a distance that its gap does not exceed; infinite where it is alone.

    Args:
        x: float64[t, n], where n objects are at t moments; NaN where they are not.
        y: float64[t, n].
        geographic: whether coordinates are degrees on WGS 84: then in metres, else as `distance` compares.
    """
    out = np.full(x.shape, np.inf)
    for block in blocks(np.full(len(x), x.shape[1] ** 2), _MOST_PAIRS):
        if geographic:
            nearest = _cosines(x[block], y[block]).max(axis=2, initial=-2.0)
            angle = 2 * np.arcsin(np.sqrt(np.clip((1 - nearest) / 2, 0.0, 1.0)))
            out[block] = np.where(
                nearest < -1.5, np.inf, angle * _RADIUS_M * _LONGER + _ROUNDED_M
            )
        else:
            out[block] = _squares(x[block], y[block]).min(axis=2, initial=np.inf)
    return out


def gaps(
    x: Floats, y: Floats, moment: Ints, column: Ints, *, geographic: bool
) -> Floats:
    """The gaps of some objects at some moments, as `distance` compares; infinite where one is alone."""
    width = x.shape[1]
    key, at = np.unique(moment * max(width, 1) + column, return_inverse=True)
    out = np.full(len(key), np.inf)
    for block in blocks(np.full(len(key), width), _MOST_PAIRS):
        when, who = np.divmod(key[block], width)
        out[block] = _nearest(x[when], y[when], who, geographic=geographic)
    return out[at]


def _nearest(x: Floats, y: Floats, who: Ints, *, geographic: bool) -> Floats:
    """How far one of each row is from its nearest other one."""
    rows = np.arange(len(who))
    here = x[rows, who], y[rows, who]
    others = ~np.isnan(x)
    others[rows, who] = False
    if geographic:
        one, all_of = _unit(*here)[:, None], _unit(x, y)
        apart = np.where(others, 1 - (one * all_of).sum(axis=2), np.inf)
        others &= (
            apart <= apart.min(axis=1, initial=np.inf)[:, None] * _NEARLY + _NOTHING
        )
    row, other = np.nonzero(others)
    far = distance(
        here[0][row], here[1][row], x[row, other], y[row, other], geographic=geographic
    )
    out = np.full(len(who), np.inf)
    np.minimum.at(out, row, far)
    return out


def _cosines(x: Floats, y: Floats) -> Floats:
    """float64[t, n, n]: of the angles between objects; -2 where there is no pair."""
    units = _unit(x, y)
    nowhere = np.isnan(x)
    units[nowhere] = 0.0
    found = units @ units.transpose(0, 2, 1)
    found[np.broadcast_to(nowhere[:, None], found.shape)] = -2.0
    numbers = np.arange(x.shape[1])
    found[:, numbers, numbers] = -2.0
    return np.asarray(found)


def _squares(x: Floats, y: Floats) -> Floats:
    """float64[t, n, n]: distances in the plane as they are compared; infinite where there is no pair."""
    found = distance(
        x[:, :, None], y[:, :, None], x[:, None], y[:, None], geographic=False
    )
    found[np.isnan(found)] = np.inf
    numbers = np.arange(x.shape[1])
    found[:, numbers, numbers] = np.inf
    return np.asarray(found)


def _unit(x: Floats, y: Floats) -> Floats:
    lon, lat = np.radians(x), np.radians(y)
    return np.stack(
        [np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=-1
    )
