"""How far each of some objects is from its nearest other one, at many moments."""

import numpy as np
import numpy.typing as npt

from st_common.geometry.grid import blocks
from st_common.geometry.space import Space

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_MOST_PAIRS = 1 << 20  # looked at together
_NEARLY, _NOTHING = (
    1.07,
    1e-9,
)  # of squared chords: angles that differ by what the ellipsoid is not a ball


def gaps_at_most(x: Floats, y: Floats, *, space: Space) -> Floats:
    """A rank that the gap of each object at each moment does not exceed: cheap, to rule most pairs out.

    Args:
        x: float64[t, n], where n objects are at t moments; NaN where they are not.
        y: float64[t, n].
        space: what coordinates mean.

    Returns:
        float64[t, n], infinite where an object is alone.
    """
    out = np.full(x.shape, np.inf)
    for block in blocks(np.full(len(x), x.shape[1] ** 2), _MOST_PAIRS):
        nearest = _squared_chords(x[block], y[block], space)
        alone = np.isinf(nearest)
        out[block] = np.where(alone, np.inf, space.rank_of_chord(np.sqrt(nearest)))
    return out


def gaps(x: Floats, y: Floats, moment: Ints, column: Ints, *, space: Space) -> Floats:
    """The gaps of some objects at some moments: how far each is from its nearest other one, as a rank.

    Args:
        x: float64[t, n], where n objects are at t moments; NaN where they are not.
        y: float64[t, n].
        moment: int64[p], of the objects that are asked about; repeats are looked at once.
        column: int64[p], which object.
        space: what coordinates mean.

    Returns:
        float64[p], infinite where one is alone. In the plane, of objects at 0, 3 and 5: ranks 9, 4, 4.
    """
    width = x.shape[1]
    key, at = np.unique(moment * max(width, 1) + column, return_inverse=True)
    out = np.full(len(key), np.inf)
    for block in blocks(np.full(len(key), width), _MOST_PAIRS):
        when, who = np.divmod(key[block], width)
        out[block] = _nearest(x[when], y[when], who, space=space)
    return out[at]


def _nearest(x: Floats, y: Floats, who: Ints, *, space: Space) -> Floats:
    """How far one of each row is from its nearest other one."""
    rows = np.arange(len(who))
    here = x[rows, who], y[rows, who]
    others = ~np.isnan(x)
    others[rows, who] = False
    if not space.about_is_exact:  # then many are cheaper than a few exact ones
        way = space.vectors(x, y) - space.vectors(*here)[:, None]
        apart = np.where(others, (way * way).sum(axis=2), np.inf)
        nearest = apart.min(axis=1, initial=np.inf)[:, None]
        others &= apart <= nearest * _NEARLY + _NOTHING
    row, other = np.nonzero(others)
    far = space.rank(here[0][row], here[1][row], x[row, other], y[row, other])
    out = np.full(len(who), np.inf)
    np.minimum.at(out, row, far)
    return out


def _squared_chords(x: Floats, y: Floats, space: Space) -> Floats:
    """float64[t, n]: of each object to the nearest other one, never too little; infinite where there is none."""
    squared = space.squared_chords(x, y)
    nowhere = np.isnan(x)
    if nowhere.any():
        squared[np.broadcast_to(nowhere[:, None], squared.shape)] = np.inf
    numbers = np.arange(x.shape[1])
    squared[:, numbers, numbers] = np.inf
    return np.asarray(squared.min(axis=2, initial=np.inf))
