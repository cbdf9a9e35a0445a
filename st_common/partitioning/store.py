"""The versions of a group's regions in the table `regions`."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from st_common import tables
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.partitioning.balance import std_deviation
from st_common.partitioning.regions import Regions, whole
from st_common.partitioning.thresholds import Thresholds

Floats = npt.NDArray[np.float64]
_EDGES = (("minx", "maxx"), ("miny", "maxy"), ("lo3", "hi3"), ("lo4", "hi4"))
"""The columns of the lower and the upper edges in each dimension."""
_THRESHOLDS = ("t_upper", "t_lower", "unit")


def current(home: Home, group: str) -> Regions:
    """The newest regions of a group.

    Args:
        home: where the table `regions` lies.
        group: the name of the group.

    Returns:
        Version 0 with one region "0" that is everything, when none are stored.
    """
    rows = _rows(home, group)
    if rows is None or not len(rows):
        return whole(group)
    return _regions(rows, int(rows["version"].to_numpy().max()))


def stored(home: Home, group: str, version: int) -> Regions | None:
    """One version of the regions of a group; None where there is no such version."""
    rows = _rows(home, group)
    if rows is None or version not in rows["version"].to_numpy():
        return None
    return _regions(rows, version)


def newest_rows(home: Home, group: str) -> pa.Table | None:
    """The rows of the newest regions of a group, by region; None where it has none."""
    rows = _rows(home, group)
    if rows is None or not len(rows):
        return None
    versions = rows["version"].to_numpy()
    return rows.filter(pa.array(versions == versions.max())).sort_by("region_id")


def _rows(home: Home, group: str) -> pa.Table | None:
    """The regions of all versions of a group; None where no group has any."""
    path = home.table("regions")
    if not tables.exists(path):
        return None
    contract = load_contract("regions")
    return tables.read(path, filters=[("group", "=", group)], contract=contract)


def _regions(rows: pa.Table, version: int) -> Regions:
    of_version = pa.array(rows["version"].to_numpy() == version)
    return regions_of(rows.filter(of_version).sort_by("region_id"))


def regions_of(rows: pa.Table) -> Regions:
    """The regions that rows of one version of one group stand for, in their order; at least one."""
    group, version, dimensions = (
        rows[name][0].as_py() for name in ("group", "version", "dimensions")
    )
    edges = _EDGES[: dimensions or 2]
    columns = [low for low, _ in edges] + [high for _, high in edges]
    return Regions(
        group=group,
        version=version,
        region_id=rows["region_id"].to_pylist(),
        bounds=np.stack([rows[name].to_numpy() for name in columns], axis=1),
        is_by_place=dimensions is None,
    )


def _edges(regions: Regions) -> dict[str, Floats]:
    """The columns of the edges; regions of one dimension reach without end in the second."""
    low, high = np.split(regions.bounds, 2, axis=1)
    edge = np.full(len(low), np.inf)
    columns = {"miny": -edge, "maxy": edge}
    for axis, names in enumerate(_EDGES[: regions.dimensions]):
        columns |= dict(zip(names, (low[:, axis], high[:, axis]), strict=True))
    return columns


def thresholds_of(home: Home, group: str) -> Thresholds | None:
    """The thresholds by which the newest regions of a group were made; None for none."""
    rows = _rows(home, group)
    if rows is None or not len(rows):
        return None
    newest = rows.take(pa.array([int(np.argmax(rows["version"].to_numpy()))]))
    upper, lower, unit = (newest[name][0].as_py() for name in _THRESHOLDS)
    return None if upper is None else Thresholds(upper=upper, lower=lower, unit=unit)


def groups_between_thresholds(home: Home) -> list[str]:
    """The groups whose newest regions have thresholds, by name."""
    path = home.table("regions")
    if not tables.exists(path):
        return []
    rows = tables.read(path, columns=["group"], contract=load_contract("regions"))
    groups = sorted(set(rows["group"].to_pylist()))
    return [one for one in groups if thresholds_of(home, one) is not None]


def store(
    home: Home,
    regions: Regions,
    rows: npt.NDArray[np.int64],
    strategy: str,
    thresholds: Thresholds | None = None,
) -> Regions:
    """The regions as stored: as the group's next version, whatever version they came with.

    Args:
        home: the home folder.
        regions: cells that tile the space.
        rows: int64[n], the rows that each region held when it was made; their standard deviation is stored too.
        strategy: how the regions were found, such as `sample`.
        thresholds: by which they are split and merged; None: they are not.
    """
    path, count = home.table("regions"), len(regions.region_id)
    with tables.locked(path):
        # Read under the lock, so that two partitionings get two versions.
        version = current(home, regions.group).version + 1
        columns = {
            "group": [regions.group] * count,
            "version": np.full(count, version, np.int32),
            **_edges(regions),
            "dimensions": np.full(count, regions.dimensions, np.int32),
            "rows": rows,
            "region_id": regions.region_id,
            "strategy": [strategy] * count,
            "std_deviation": np.full(count, std_deviation(rows)),
        }
        if thresholds is not None:
            values = (thresholds.upper, thresholds.lower, thresholds.unit)
            for name, value in zip(_THRESHOLDS, values, strict=True):
                columns[name] = pa.array([value] * count)
        tables.append(path, pa.table(columns), load_contract("regions"))
    return current(home, regions.group)
