"""How far points are from groups of places: by the sum, the maximum or the minimum of distances to these (SPEC G8)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from st_common.geometry.space import Space

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SUM, MAX, MIN = 0, 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Groups of places, m of them with at most p places.

    Attributes:
        x: float64[m, p], longitude in degrees or planar coordinates; NaN where a group has fewer places.
        y: float64[m, p].
        total: int8[m], SUM, MAX or MIN.
        space: what coordinates mean.
    """

    x: Floats
    y: Floats
    total: npt.NDArray[np.int8]
    space: Space

    def take(self, rows: Ints) -> "Groups":
        """These groups."""
        return Groups(
            x=self.x[rows],
            y=self.y[rows],
            total=self.total[rows],
            space=self.space,
        )


def totals(groups: Groups, row: Ints, x: Floats, y: Floats) -> Floats:
    """How far the group and the object's place of each pair are from each other; NaN for groups without places.

        places 0 and 6, an object at 8      SUM 8 + 2 = 10      MAX rank 64 (8 squared)      MIN rank 4

    Args:
        groups: m groups.
        row: int64[p], the group of each pair.
        x: float64[p], where its object is; `y` likewise.
        y: see `x`.

    Returns:
        float64[p]. Sums are distances, rounded once to the decimals of the space; maxima and minima are ranks.
    """
    total, space = groups.total[row], groups.space
    least, most, summed = (
        np.full(len(row), np.inf),
        np.full(len(row), -np.inf),
        np.zeros(len(row)),
    )
    for px, py in zip(groups.x.T, groups.y.T, strict=True):
        far = space.unrounded(px[row], py[row], x, y)
        there = ~np.isnan(far)
        np.minimum(least, far, out=least, where=there)
        np.maximum(most, far, out=most, where=there)
        np.add(summed, space.measure(far), out=summed, where=there)
    sums = np.select(
        [total == MAX, total == MIN],
        [space.rounded(most), space.rounded(least)],
        np.round(summed, space.decimals),
    )
    return np.where(most < least, np.nan, sums)


def lengths(groups: Groups, limit: Floats) -> Floats:
    """Totals, one for each group, as distances: sums are, the ranks of maxima and minima are measured.

    Args:
        groups: m groups.
        limit: float64[m], totals as `totals` gives them.
    """
    return measured(limit, groups.total, groups.space)


def measured(far: Floats, total: npt.NDArray[np.int8], space: Space) -> Floats:
    """Totals (float64[n]) as distances, by how each was made of distances (int8[n]); see `totals`."""
    return np.where(total == SUM, far, space.measure(far))


def grown_by(groups: Groups, limit: Floats, margin: float) -> Floats:
    """What totals become, as lengths, when each distance gets longer by a margin.

    Args:
        groups: m groups.
        limit: float64[m], totals as `totals` gives them.
        margin: metres or the unit of the plane; a sum grows by it for each place.

    Example:
        two places, margin 2:  a sum of 10 becomes 14, a maximum with rank 64 becomes 10
    """
    return lengths(groups, limit) + margin * np.where(
        groups.total == SUM, sizes_of(groups), 1
    )


def apart_of(groups: Groups) -> Floats:
    """How far the places of each group are from each other: float64[m, p, p]; NaN where there is none."""
    x, y, space = groups.x, groups.y, groups.space
    rank = space.rank(x[:, :, None], y[:, :, None], x[:, None], y[:, None])
    return space.measure(rank)


def sizes_of(groups: Groups) -> Ints:
    """How many places each group has; 1 where it has none."""
    return np.asarray(np.maximum((~np.isnan(groups.x)).sum(axis=1), 1))
