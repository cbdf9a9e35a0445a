"""Figures 26 and 27 of BBoxDB Streams on a real stream: the first n elements make regions, the rest is counted."""

import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from st_common import tables
from st_common.batch.prepartition import Partitioned, prepartition
from st_common.config.home import Home
from st_common.partitioning.sample import PointSource

NODES = 5


@pytest.fixture(scope="module")
def buses(shared: Path) -> np.ndarray:
    """Longitude and latitude of 136,501 reports of Riga's buses, as they came; float64[2, n]."""
    path = shared / "data" / "gtfsrt-riga" / "riga_vehicle_positions.parquet"
    rows = pq.read_table(path, columns=["longitude", "latitude"])
    return np.array([column.to_numpy() for column in rows.columns], np.float64)


def in_polls(points: np.ndarray) -> PointSource:
    """The points as a source that gives them in batches of uneven size."""

    def read() -> Iterator[np.ndarray]:
        yield from np.array_split(points.T, 7)

    return PointSource(name="buses", dimensions=2, read=read)


def partitioned(
    home: Home, points: np.ndarray, first: int, regions: int
) -> tuple[Partitioned, list[dict[str, Any]]]:
    """What the product tells, and the cells that it stored, in the order in which nodes take them."""
    done = prepartition(
        home,
        "riga",
        in_polls(points),
        strategy="elements",
        elements=first,
        regions=regions,
        workers=NODES,
    )
    cells = tables.read(home.table("regions"), filters=[("version", "=", done.version)])
    return done, sorted(cells.to_pylist(), key=lambda cell: cell["region_id"])


def counted(cells: list[dict[str, Any]], points: np.ndarray) -> list[int]:
    """How many points each half-open cell has; every point is looked at for every cell."""
    x, y = points
    inside = (
        (x >= cell["minx"])
        & (x < cell["maxx"])
        & (y >= cell["miny"])
        & (y < cell["maxy"])
        for cell in cells
    )
    return [int(np.count_nonzero(one)) for one in inside]


@pytest.mark.spec("B4")
@pytest.mark.parametrize("first", [20_000, 50_000])
@pytest.mark.parametrize("regions", [10, 40, 1_000])
def test_the_rest_of_a_real_stream_lies_in_its_regions_as_the_deviations_say(
    tmp_path: Path, buses: np.ndarray, first: int, regions: int
) -> None:
    done, cells = partitioned(Home(tmp_path), buses, first, regions)
    rest = counted(cells, buses[:, first:])
    assert sum(rest) == buses.shape[1] - first, "each is in one region"
    assert [cell["rows"] for cell in cells] == rest
    assert (done.chosen, done.rows, done.tree) == (first, sum(rest), "median")
    assert done.std_deviation == pytest.approx(statistics.pstdev(rest))
    nodes = [sum(rest[node::NODES]) for node in range(NODES)]
    assert done.std_deviation_workers == pytest.approx(statistics.pstdev(nodes))
    # Buses that stand make crowds of reports at one place, which no split parts.
    assert regions * 0.99 <= len(cells) == done.regions <= regions
    shares = counted(cells, buses[:, :first])
    assert max(shares) < 3 * first / regions


@pytest.mark.spec("B4")
def test_regions_follow_from_the_first_elements_alone(
    tmp_path: Path, buses: np.ndarray
) -> None:
    home, first = Home(tmp_path), 20_000
    behind = buses[:, first:][:, ::-1] + 1.0
    elsewhere = np.concatenate([buses[:, :first], behind], axis=1)
    _, cells = partitioned(home, buses, first, 40)
    again, same = partitioned(home, elsewhere, first, 40)
    edges = ("region_id", "minx", "miny", "maxx", "maxy")
    assert [[cell[e] for e in edges] for cell in cells] == [
        [cell[e] for e in edges] for cell in same
    ]
    assert again.rows == buses.shape[1] - first
