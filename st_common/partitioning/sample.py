"""A share of points that repeats exactly, taken while they stream by."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

ROWS_PER_REGION = (
    20  # with fewer sample rows Sedona's tree degenerates or cannot be built
)
SAMPLED_PER_REGION = 300
"""Of so many sample rows a region the fullest region is a tenth above the mean; of 20, a quarter and up to twice it."""
_WHOLE = 2.0**64


@dataclass(frozen=True, slots=True, kw_only=True)
class PointSource:
    """Points that can be read again and again.

    Attributes:
        name: what they are, for people: "stream 'taxis'".
        dimensions: how many coordinates each has.
        read: each call gives all points again, in batches of float64[n, dimensions].
        left_out: gives a line for people about each thing of it that is no point, as far as it was read.
        divided: gives its parts; None: it is read as one.
        layer: the folder and version of the table in which the points are features; None: they are none.
    """

    name: str
    dimensions: int
    read: Callable[[], Iterator[Floats]]
    left_out: Callable[[], Sequence[str]] = tuple
    divided: Callable[[], Sequence["PointSource"]] | None = None
    layer: tuple[str, int] | None = None

    def parts(self) -> Sequence["PointSource"]:
        """Sources that can be read side by side, and that together are this one, in its order."""
        return (self,) if self.divided is None else self.divided()


def shortage(rows: int, regions: int) -> str:
    """Why a sample is too small for a tree of so many regions, for people; "" when it is large enough.

    Args:
        rows: of the sample.
        regions: how many are wanted; each needs 20 rows.
    """
    if rows >= ROWS_PER_REGION * regions:
        return ""
    return f"{rows} rows are too few for {regions} regions of {ROWS_PER_REGION}"


def known(points: Floats) -> Floats:
    """The points whose coordinates are all finite, in their order; float64[m, d]."""
    finite: Floats = points[np.isfinite(points).all(axis=1)]
    return finite


def sampled(source: PointSource, *, share: float, at_least: int) -> tuple[Floats, int]:
    """A share of the points of a source that is the same each time.

    A point is chosen by a hash of its row number. So a larger share contains a smaller one, and a crowd of points at
    one place counts like any other. No more than the sample and one batch are held at once.

    Args:
        source: gives the points in batches.
        share: from 0 to 1; points whose hash is below it are chosen.
        at_least: as many are chosen when the share gives fewer, the ones with the smallest hashes.

    Returns:
        The chosen points as float64[k, d], in the order of their hashes, and how many points there are at all.
    """
    kept, hashes = np.empty((0, source.dimensions)), np.empty(0, np.uint64)
    total = 0
    for points in source.read():
        rows = np.arange(total, total + len(points), dtype=np.uint64)
        total += len(points)
        kept = np.concatenate([kept, points])
        hashes = np.concatenate([hashes, _hashed(rows)])
        order = np.argsort(hashes, kind="stable")
        order = order[: max(int((hashes < min(share, 1.0) * _WHOLE).sum()), at_least)]
        kept, hashes = kept[order], hashes[order]
    return kept, total


def mixed(samples: Sequence[Floats]) -> Floats:
    """Samples of different sources as one in which each counts as much, however many points it has.

    Points of the smaller ones come again and again:

        1 2 3 4 and 8 9   ->   1 2 3 4 8 9 8 9

    Args:
        samples: float64[k, d] each, at least one.

    Returns:
        float64[n, d]; those of sources without points are left out.
    """
    known = [sample for sample in samples if len(sample)]
    most = max(map(len, known), default=0)
    again = [sample[np.arange(most) % len(sample)] for sample in known]
    return np.concatenate([samples[0][:0], *again])


def first(source: PointSource, count: int) -> Floats:
    """The first points of a source, which is read no further.

    Args:
        source: gives the points in batches.
        count: how many are wanted.

    Returns:
        float64[k, d], k <= `count`.
    """
    taken: list[Floats] = [np.empty((0, source.dimensions))]
    for points in source.read():
        left = count - sum(map(len, taken))
        taken.append(points[:left])
        if len(points) >= left:
            break
    return np.concatenate(taken)


def after(source: PointSource, count: int) -> Iterator[Floats]:
    """The points of a source without the first `count`, in batches of float64[n, d]."""
    for points in source.read():
        if len(points) > count:
            yield points[count:]
        count = max(count - len(points), 0)


def _hashed(rows: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """splitmix64: every bit of the result depends on every bit of the row number."""
    # Steele, Lea, Flood: Fast splittable pseudorandom number generators (2014); sums wrap around.
    mixed = rows + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
