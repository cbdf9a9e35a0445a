"""How sources become regions, whoever reads them: a sample or first elements, a split, and the rows of each region."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

import numpy as np
import numpy.typing as npt

from st_common.partitioning.balance import rows_per_region
from st_common.partitioning.kdtree import Split, median_split
from st_common.partitioning.regions import Regions
from st_common.partitioning.sample import (
    Floats,
    PointSource,
    after,
    first,
    mixed,
    sampled,
)

Ints = npt.NDArray[np.int64]
Stage = Callable[[str, int], None]
"""Told what is being done, and how many rows of it are done."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Regions that rows have made.

    Attributes:
        split: the cells; None where there are no rows.
        rows: how many made it.
        tree: who split: `median`, or the tree of Sedona's that did.
        note: why Sedona did not split, where it should have; else "".
    """

    split: Split | None
    rows: int
    tree: str
    note: str = ""


NOTHING = Chosen(None, 0, "")


class PointEngine(Protocol):
    """Reads sources of points and splits space by them."""

    def split_sample(
        self, sources: Sequence[PointSource], share: float, at_least: int, regions: int
    ) -> Chosen:
        """Regions by a share of all points, of which each source has as many.

        Args:
            sources: of the same dimensions.
            share: of the points of each, from 0 to 1.
            at_least: so many of each where the share gives fewer.
            regions: how many are wanted.
        """

    def first(self, source: PointSource, count: int) -> Floats:
        """The first points of a source, float64[k, d], k <= count."""

    def sampled(
        self, source: PointSource, share: float, at_least: int
    ) -> tuple[Floats, int]:
        """A share of the points, float64[k, d], and how many there are; see `sample.sampled`."""

    def counted(
        self, sources: Sequence[PointSource], regions: Regions, skip: int, stage: Stage
    ) -> tuple[Ints, list[str]]:
        """How many points lie in each region, without the first `skip`; and lines for people about what is no point."""


class LocalPoints:
    """Reads in this process, and splits at medians."""

    def split_sample(
        self, sources: Sequence[PointSource], share: float, at_least: int, regions: int
    ) -> Chosen:
        """See `PointEngine`."""
        samples = [sampled(one, share=share, at_least=at_least)[0] for one in sources]
        points = mixed(samples)
        if not len(points):
            return NOTHING
        return Chosen(median_split(points, regions), len(points), "median")

    def first(self, source: PointSource, count: int) -> Floats:
        """See `PointEngine`."""
        return first(source, count)

    def sampled(
        self, source: PointSource, share: float, at_least: int
    ) -> tuple[Floats, int]:
        """See `PointEngine`."""
        return sampled(source, share=share, at_least=at_least)

    def counted(
        self, sources: Sequence[PointSource], regions: Regions, skip: int, stage: Stage
    ) -> tuple[Ints, list[str]]:
        """See `PointEngine`."""
        rows = np.zeros(len(regions.region_id), np.int64)
        points = chain.from_iterable(after(one, skip) for one in sources)
        for part in points:
            rows += rows_per_region(regions, part)
            stage("counting", int(rows.sum()))
        return rows, [line for source in sources for line in source.left_out()]
