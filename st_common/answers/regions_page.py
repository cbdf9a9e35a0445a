"""The regions of a group as a page: a picture with their load, and how evenly it spreads, for each strategy."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.answers.templates import templates_in
from st_common.config.home import Home, checked_name
from st_common.contracts import load_contract
from st_common.errors import ConfigError
from st_common.partitioning.balance import rows_per_worker, std_deviation
from st_common.partitioning.regions import Regions
from st_common.partitioning.shown import rectangles_of
from st_common.partitioning.store import regions_of
from st_common.storage import LocalStorage

_PAGES = Path(__file__).with_name("pages")
_WORKERS = (2, 3, 4, 5, 8, 10)
_SIDE = 560.0
"""Pixels of a picture's longer side."""

_MARGIN = 0.15
"""By which share of its sides the picture is larger than the known edges of regions."""
_STRATEGIES = ("sample", "elements", "thresholds")
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A rectangle in the picture: a region, or several that differ in further dimensions alone.

    Attributes:
        name: its path in the tree of splits; of several with commas between them.
        rows: how many rows it held when it was made.
        share: of the rows of the fullest one, 0 to 1.
        x: pixels, of its left edge; `y` of its upper one.
        y: see x.
        width: pixels; the outer edges, which are infinite, are cut at the picture's.
        height: see width.
    """

    name: str
    rows: int
    share: float
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A version of a group's regions, and how evenly rows spread over them.

    Attributes:
        version: of the regions.
        strategy: how they were made, and by whom, such as "sample, sedona".
        counted: what was counted: all of the source, or the rest of a stream behind its first elements.
        rows: how many rows were counted.
        regions: how many there are.
        dimensions: that they have; the picture shows the first two.
        mean: rows per region.
        deviation: standard deviation of the rows over the regions.
        workers: for numbers of workers who take the regions in turn: the number, the mean of their rows and the
            standard deviation.
        cells: the picture.
        width: of the picture, pixels.
        height: see width.
    """

    version: int
    strategy: str
    counted: str
    rows: int
    regions: int
    dimensions: int
    mean: float
    deviation: float
    workers: list[tuple[int, float, float]]
    cells: list[Cell]
    width: float
    height: float


def partitions(home: Home, group: str) -> list[Partition]:
    """The newest version of a group's regions by each strategy, newest first.

    Raises:
        ConfigError: the group has no regions.
    """
    path = home.table("regions")
    filters = [("group", "=", group)]
    contract = load_contract("regions")
    rows = (
        tables.read(path, filters=filters, contract=contract)
        if tables.exists(path)
        else None
    )
    if rows is None or not len(rows):
        raise ConfigError(
            f"group {group!r} has no regions", hint=f"fairway partition {group}"
        )
    chosen = [_newest(rows, strategy) for strategy in _STRATEGIES]
    made = [_partition(version) for version in chosen if len(version)]
    return sorted(made, key=lambda one: one.version, reverse=True)


def write_regions_page(home: Home, group: str) -> Path:
    """Writes `HOME/reports/regions/GROUP.html`, which needs no network, and gives its path.

    Raises:
        ConfigError: the group has no regions.
    """
    shown = partitions(home, checked_name(group, "group"))
    template = templates_in(_PAGES).get_template("regions.html")
    folder = home.reports / "regions"
    text = template.render(group=group, partitions=shown)
    LocalStorage(folder).put(f"{group}.html", text.encode())
    return folder / f"{group}.html"


def _newest(rows: pa.Table, strategy: str) -> pa.Table:
    """The rows of the newest version by a strategy, in the order in which workers take them."""
    of_it = rows.filter(pc.starts_with(rows["strategy"], strategy))
    newest = pc.max(of_it["version"])
    return of_it.filter(pc.equal(of_it["version"], newest)).sort_by("region_id")


def _partition(rows: pa.Table) -> Partition:
    counts: Ints = rows["rows"].to_numpy().astype(np.int64)
    strategy = str(rows["strategy"][0].as_py())
    made = regions_of(rows)
    cells, size = _cells(made, counts)
    return Partition(
        version=int(rows["version"][0].as_py()),
        strategy=strategy,
        counted="the rest of the stream"
        if strategy.startswith("elements")
        else "all rows of the source",
        rows=int(counts.sum()),
        regions=len(counts),
        dimensions=made.dimensions,
        mean=float(counts.mean()),
        deviation=std_deviation(counts),
        workers=[_worker(counts, number) for number in _WORKERS],
        cells=cells,
        width=size[0],
        height=size[1],
    )


def _worker(counts: Ints, number: int) -> tuple[int, float, float]:
    held = rows_per_worker(counts, number)
    return number, float(held.mean()), std_deviation(held)


def _cells(made: Regions, counts: Ints) -> tuple[list[Cell], tuple[float, float]]:
    """The regions in the picture, and its size."""
    shown = rectangles_of(made, counts)
    placed, size = _pixels(shown.bounds)
    share = shown.rows / max(int(shown.rows.max()), 1)
    columns = (shown.names, shown.rows.tolist(), share.round(3).tolist())
    cells = [
        Cell(name=name, rows=number, share=of, x=x, y=y, width=width, height=height)
        for name, number, of, (x, y, width, height) in zip(
            *columns, placed.tolist(), strict=True
        )
    ]
    return cells, size


def _view(lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Two corners of the box around all that is known of some corners, with room; the unit square for none.

    Of an axis without any, as in one dimension, a strip is shown.

    Args:
        lower: float64[n, 2], x and y; NaN is not known.
        upper: likewise.
    """
    points = np.concatenate([lower, upper])
    is_free = np.isnan(points).all(axis=0)
    if is_free.all():
        return np.zeros(2), np.ones(2)
    points[:, is_free] = 0.0
    low, high = np.nanmin(points, axis=0), np.nanmax(points, axis=0)
    room = np.maximum((high - low) * _MARGIN, 1e-6)
    room = np.where(is_free, room.max(), room)
    return low - room, high + room


def _pixels(bounds: Floats) -> tuple[Floats, tuple[float, float]]:
    """Left, top, width and height of boxes in pixels, y downwards, and the size of the picture; float64[n, 4].

    Infinite edges are cut at the picture's, which leaves room to see that there is something behind the last border.
    """
    finite = np.where(np.isinf(bounds), np.nan, bounds)
    low, high = _view(finite[:, :2], finite[:, 2:])
    scale = _SIDE / (high - low).max()
    corners = np.clip(bounds, [*low, *low], [*high, *high])
    left, bottom, right, top = ((corners - [*low, *low]) * scale).T
    width, height = (high - low) * scale
    placed = np.stack([left, height - top, right - left, top - bottom], axis=1)
    return placed.round(1), (round(float(width), 1), round(float(height), 1))
