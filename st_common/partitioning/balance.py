"""How evenly the rows of a group are spread over its regions."""

import numpy as np
import numpy.typing as npt

from st_common.partitioning.regions import Regions, assign

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def rows_per_region(regions: Regions, points: Floats) -> Ints:
    """How many of some points each region holds.

    Args:
        regions: n regions that tile the space of d dimensions.
        points: float64[m, d]; a point with NaN counts for the first region.

    Returns:
        int64[n], in the order of the regions.
    """
    rows = np.bincount(assign(regions, points), minlength=len(regions.region_id))
    return rows.astype(np.int64)


def rows_per_worker(rows: Ints, workers: int) -> Ints:
    """How many rows each worker holds when the regions are dealt out in turn (Figs. 26 and 27 of BBoxDB).

        rows 5, 3, 2, 4 for 2 workers   ->   7, 7: the first one takes regions 0 and 2

    Args:
        rows: int64[n], of each region.
        workers: how many there are.

    Returns:
        int64[workers].
    """
    return np.bincount(
        np.arange(len(rows)) % workers, weights=rows, minlength=workers
    ).astype(np.int64)


def std_deviation(rows: Ints) -> float:
    """The population standard deviation of row counts over regions or workers; 8 and 2 give 3.0, a single one 0.0."""
    return float(np.std(rows))
