"""How evenly the rows of a group are spread over its regions."""

import numpy as np
import numpy.typing as npt

from st_common.partition.regions import Regions, assign

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def rows_per_region(regions: Regions, x: Floats, y: Floats) -> Ints:
    """How many of the points each region holds, int64, in the order of the regions."""
    return np.bincount(assign(regions, x, y), minlength=len(regions.region_id)).astype(
        np.int64
    )


def rows_per_worker(rows: Ints, workers: int) -> Ints:
    """How many rows each worker holds when the regions are dealt out in turn (Figs. 26 and 27 of BBoxDB)."""
    return np.bincount(
        np.arange(len(rows)) % workers, weights=rows, minlength=workers
    ).astype(np.int64)


def std_deviation(rows: Ints) -> float:
    """The population standard deviation of the rows over regions or workers; 0.0 for one of them."""
    return float(np.std(rows))
