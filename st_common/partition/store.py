"""The versions of a group's regions in the table `regions`."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from st_common import tables
from st_common.contracts import load_contract
from st_common.home import Home
from st_common.partition.balance import std_deviation
from st_common.partition.regions import Regions, whole

_EDGES = ("minx", "miny", "maxx", "maxy")


def current(home: Home, group: str) -> Regions:
    """The newest regions of a group.

    Args:
        home: where the table `regions` lies.
        group: the name of the group.

    Returns:
        Version 0 with one region "0" that is everything, when none are stored.
    """
    path = home.table("regions")
    if not tables.exists(path):
        return whole(group)
    rows = tables.read(path, filters=[("group", "=", group)])
    if not len(rows):
        return whole(group)
    versions = rows["version"].to_numpy()
    rows = rows.filter(pa.array(versions == versions.max())).sort_by("region_id")
    return Regions(
        group=group,
        version=int(versions.max()),
        region_id=rows["region_id"].to_pylist(),
        bounds=np.stack([rows[edge].to_numpy() for edge in _EDGES], axis=1),
    )


def store(
    home: Home, regions: Regions, rows: npt.NDArray[np.int64], strategy: str
) -> Regions:
    """The regions as stored: as the group's next version, whatever version they came with.

    Args:
        home: the home folder.
        regions: cells that tile the plane.
        rows: int64[n], the rows that each region held when it was made; their standard deviation is stored too.
        strategy: how the regions were found, such as `sample`.
    """
    path, count = home.table("regions"), len(regions.region_id)
    with tables.locked(path):
        # Read under the lock, so that two partitionings get two versions.
        version = current(home, regions.group).version + 1
        columns = {
            "group": [regions.group] * count,
            "version": np.full(count, version, np.int32),
            **dict(zip(_EDGES, regions.bounds.T, strict=True)),
            "rows": rows,
            "region_id": regions.region_id,
            "strategy": [strategy] * count,
            "std_deviation": np.full(count, std_deviation(rows)),
        }
        tables.append(path, pa.table(columns), load_contract("regions"))
    return current(home, regions.group)
