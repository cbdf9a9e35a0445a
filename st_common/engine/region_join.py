"""The join of a stream's stored fixes with a layer, region by region (SPEC B2, docs/adr/0099).

    region "00":   its fixes x the features that stand in it  ->  pairs
    region "01":   its fixes x the features that stand in it  ->  pairs      nothing goes from one to another

A fix lies in one region, and a feature stands in every region that it touches. So whatever a fix lies in stands in its
region, and each pair is found once. For a distance a region is as much larger: it sees the features of its neighbours
that are near enough to its fixes, and still its own fixes alone.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.contracts import load_contract
from st_common.errors import LayerError, QueryError
from st_common.geometry.enlarged import POINT, grown, points_reaching
from st_common.geometry.extent import Box
from st_common.geometry.space import Space
from st_common.layers.announce import regions_of, required_version
from st_common.layers.grouped import groups_of
from st_common.layers.stored import load_part
from st_common.layers.table import read_rows
from st_common.partitioning.regions import Regions, assign, touching
from st_common.query.problem import did_you_mean
from st_common.tables.pruning import Filters

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_READ = ("segment", "row", "object", "event_ts", "x", "y", "region_id")
PAIRS = pa.schema(
    [
        ("segment", pa.int64()),
        ("row", pa.int32()),
        ("object", pa.string()),
        ("event_ts", pa.timestamp("us", tz="UTC")),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("region_id", pa.string()),
        ("fid", pa.string()),
    ]
)
"""A pair: the fix with the region that it is stored in, and the feature."""

ORDER = [(name, "ascending") for name in ("segment", "row", "fid")]
"""That of pairs: by fix, then feature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionJoin:
    """What is joined; the same value in each process.

    Attributes:
        home: the home folder.
        stream: whose fixes.
        group: of the stream.
        layer: whose features.
        version: the Delta version of the layer's table.
        space: what coordinates mean.
        regions: by which the layer is spread, in this version.
        distance_m: metres, or the unit of the plane; None: a fix must lie in a feature, or on its border.
        kinds: features of these kinds only; none given means of every kind.
        since: the first UTC day of the fixes; None: from the beginning.
        until: the day after the last; None: to the end.
    """

    home: Path
    stream: str
    group: str
    layer: str
    version: int
    space: Space
    regions: Regions
    distance_m: float | None = None
    kinds: tuple[str, ...] = ()
    since: date | None = None
    until: date | None = None


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """Stored fixes of one region: its id, and the version of the regions that it is of; None: of none that is known."""

    region_id: str
    version: int | None


def join_of(
    home: Home,
    stream: StreamSettings,
    layer: str,
    *,
    distance_m: float | None = None,
    kinds: Sequence[str] = (),
    since: date | None = None,
    until: date | None = None,
) -> RegionJoin:
    """The join of a stream's stored fixes with the newest version of a layer; see `RegionJoin`.

    Raises:
        LayerError: there is no such layer, none of its features is of such a kind, or its table does not say by which
            regions it is spread.
        QueryError: the distance is none.
    """
    version = required_version(home, layer)
    if distance_m is not None and not (math.isfinite(distance_m) and distance_m >= 0):
        raise QueryError(f"{distance_m} m is no distance", hint="0, or a number above")
    _require_kinds(home, layer, kinds)
    return RegionJoin(
        home=home.root,
        stream=stream.name,
        group=stream.group,
        layer=layer,
        version=version,
        space=stream.space,
        regions=regions_of(home, layer, version),
        distance_m=distance_m,
        kinds=tuple(kinds),
        since=since,
        until=until,
    )


def cells_of(join: RegionJoin) -> list[Cell]:
    """The regions in which fixes that are joined are stored, each a task of its own, in order.

    Raises:
        QueryError: nothing of the stream is archived.
    """
    columns = ["region_id", "region_version"]
    rows = tables.read(
        _positions(join), columns=columns, filters=_days(join), contract=_CONTRACT
    )
    known = rows.group_by(columns).aggregate([]).to_pylist()
    cells = [Cell(row["region_id"], row["region_version"]) for row in known]
    return sorted(cells, key=lambda one: (one.region_id, one.version or 0))


def joined_in(join: RegionJoin, cell: Cell) -> pa.Table:
    """The pairs of the fixes of one region; rows of `PAIRS`, by fix, then feature.

    It reads the fixes of this region alone, and of the layer the files of the regions that they are near to: where both
    are of one version of one group and no distance is asked for, that is this region.

    Raises:
        LayerError: the layer cannot be read.
    """
    fixes = _fixes(join, cell)
    own = _own_regions(join, cell, fixes)
    parts = [_joined(join, region, fixes.take(rows)) for region, rows in own]
    return pa.concat_tables([PAIRS.empty_table(), *parts]).sort_by(ORDER)


def joined(join: RegionJoin) -> Iterator[pa.Table]:
    """The pairs, region by region, in this process; see `joined_in`."""
    return (joined_in(join, cell) for cell in cells_of(join))


def regions_read(join: RegionJoin, region: int, x: Floats, y: Floats) -> list[str]:
    """The regions whose features are looked at for fixes of one region: that one, and for a distance those near by.

    Args:
        join: what is joined.
        region: the number of the region that the fixes lie in.
        x: float64[n], the places of the fixes.
        y: float64[n].
    """
    if join.distance_m is None:
        return [join.regions.region_id[region]]
    _, near = touching(join.regions, _around(join, x, y))
    return [join.regions.region_id[number] for number in np.unique(near).tolist()]


_CONTRACT = load_contract("positions")


def _require_kinds(home: Home, layer: str, kinds: Sequence[str]) -> None:
    """Makes sure that a layer has features of each of these kinds.

    Raises:
        LayerError: of one it has none.
    """
    if not kinds:
        return
    rows = read_rows(home, layer, columns=["kind"])
    known = sorted(pc.unique(rows["kind"]).to_pylist())
    for kind in kinds:
        if kind not in known:
            hint = did_you_mean(kind, known) or f"it has {', '.join(known)}"
            raise LayerError(f"layer {layer!r} has no kind {kind!r}", hint=hint)


def _positions(join: RegionJoin) -> Path:
    path = Home(join.home).table("positions", join.stream)
    if not tables.exists(path):
        message = f"nothing of stream {join.stream!r} is archived yet"
        raise QueryError(message, hint=f"fairway run {join.stream} archives it")
    return path


def _days(join: RegionJoin) -> Filters:
    since: Filters = [] if join.since is None else [("event_date", ">=", join.since)]
    until: Filters = [] if join.until is None else [("event_date", "<", join.until)]
    return since + until


def _fixes(join: RegionJoin, cell: Cell) -> pa.Table:
    """The fixes that are stored in a region and say a place; who is gone is nowhere."""
    rows = tables.read(
        _positions(join),
        columns=[*_READ, "region_version", "gone"],
        filters=[*_days(join), ("region_id", "=", cell.region_id)],
        contract=_CONTRACT,
    )
    version = rows["region_version"]
    of_cell = (
        pc.is_null(version)
        if cell.version is None
        else pc.fill_null(pc.equal(version, cell.version), fill_value=False)
    )
    is_there = pc.and_(pc.invert(rows["gone"]), pc.is_finite(rows["x"]))
    rows = rows.filter(pc.and_(of_cell, is_there)).select(list(_READ))
    return rows.sort_by([("segment", "ascending"), ("row", "ascending")])


def _own_regions(
    join: RegionJoin, cell: Cell, fixes: pa.Table
) -> list[tuple[int, Ints]]:
    """The regions of the layer that fixes lie in, each with its fixes: one, where the same regions spread both."""
    regions = join.regions
    is_together = (join.group, cell.version) == (regions.group, regions.version)
    if is_together and cell.region_id in regions.region_id:
        region = regions.region_id.index(cell.region_id)
        return [(region, np.arange(len(fixes)))] if len(fixes) else []
    places = np.column_stack([fixes["x"].to_numpy(), fixes["y"].to_numpy()])
    return groups_of(assign(regions, places).astype(np.int64))


def _joined(join: RegionJoin, region: int, fixes: pa.Table) -> pa.Table:
    """The pairs of fixes that lie in a region of the layer."""
    x, y = fixes["x"].to_numpy(), fixes["y"].to_numpy()
    index = load_part(
        Home(join.home),
        join.layer,
        join.version,
        regions_read(join, region, x, y),
        space=join.space,
        box=_box(join, x, y),
    )
    point, feature = index.match(x, y, distance_m=join.distance_m, kinds=join.kinds)
    pairs = fixes.take(pa.array(point))
    fids = pa.array(index.fids[feature], pa.string())
    return pairs.append_column("fid", fids).cast(PAIRS)


def _around(join: RegionJoin, x: Floats, y: Floats) -> Floats:
    """The boxes around all that is within the distance of fixes: one, or one on either side of 180 degrees."""
    far = join.distance_m or 0.0
    px, py, _ = points_reaching(x, y, far, POINT, space=join.space)
    sides = [slice(0, len(x)), slice(len(x), None)]
    boxes = [
        (px[side].min(), py[side].min(), px[side].max(), py[side].max())
        for side in sides
        if len(px[side])
    ]
    return grown(np.array(boxes), far, space=join.space)


def _box(join: RegionJoin, x: Floats, y: Floats) -> Box | None:
    """The box outside of which no feature is near to a fix; None where fixes reach across 180 degrees."""
    boxes = _around(join, x, y)
    return tuple(boxes[0].tolist()) if len(boxes) == 1 else None
