"""The indexes of layers in their tables: of a whole version, or of one region of it."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.config.home import Home
from st_common.errors import LayerError
from st_common.geometry.extent import Box
from st_common.geometry.space import GLOBE, Space
from st_common.layers.grouped import groups_of
from st_common.layers.index import EDGES, SMALL_COLUMNS, LayerIndex
from st_common.layers.labels import ROW_COLUMNS, FeatureRows, Labels
from st_common.layers.patched import Index, PatchedIndex, patched
from st_common.layers.readable import readable
from st_common.layers.table import put_between, read_rows, sizes, table_path
from st_common.partitioning.regions import Regions
from st_common.partitioning.store import stored
from st_common.tables.pruning import Filters

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Texts = npt.NDArray[np.object_]

_PART = "part"

_SPREAD_BY = ("region_group", "region_version")
_INDEXES_HELD = 8  # layer versions a process keeps at hand
_PATCHED = [*EDGES, "home", "fid", "kind", "tags", "geometry"]
INDEXES: OrderedDict[tuple[Home, str, Space, int], Index] = OrderedDict()
"""Those at hand, the one used last at the end."""
_lock = threading.Lock()
_PER_FEATURE, _PER_FILE_BYTE = 900, 6
"""What an index takes for each feature, and for each byte of its files: measured on roads, buildings and forests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """What is known of a layer by whoever does not hold its shapes: what features are called, and where they lie.

    A feature stands in every region that it touches; so whoever looks for features at a point asks the region of that
    point alone.

    Attributes:
        labels: ids, kinds and tags of the features, sorted by fid; features are numbered so.
        home: int64[n], the region in which each feature is at home, a place in `region_ids`.
        region_ids: the regions with features.
        features: of each region the numbers of those that stand in it, ascending.
        extents: float64[r, 4], of each region the part in which features may lie.
        nbytes: int64[r], about how much memory the index of each region takes.
        rows: whole features, read on demand.
    """

    labels: Labels
    home: Ints
    region_ids: list[str]
    features: list[Ints]
    extents: Floats
    nbytes: Ints
    rows: FeatureRows


def load_index(home: Home, layer: str, version: int, *, space: Space = GLOBE) -> Index:
    """The index of a version of a layer (a Delta version of its table); held by this process for further calls.

    Where an older version is held, and only some features were put and deleted since, it is made from that one.

    Raises:
        LayerError: there is no such layer or version, or what lies there is no layer.
        TransientError: it cannot be read now, which may pass.
    """
    key = home, layer, space, version
    with _lock:
        held = INDEXES.get(key)
        if held is not None:
            INDEXES.move_to_end(key)
            return held
        before = [n for *of, n in INDEXES if of == [home, layer, space] and n < version]
        older = INDEXES[home, layer, space, max(before)] if before else None
    index: Index | None = None
    if older is not None:
        index = _patched(home, layer, older, max(before), version)
    if index is None:
        index = _read_index(home, layer, version, space)
    with _lock:
        INDEXES[key] = index
        INDEXES.move_to_end(key)
        while len(INDEXES) > _INDEXES_HELD:
            INDEXES.popitem(last=False)
    return index


def load_part(
    home: Home,
    layer: str,
    version: int,
    regions: Sequence[str],
    *,
    space: Space,
    box: Box | None = None,
) -> LayerIndex:
    """The index of the features of a layer that stand in some of its regions, each once; read anew.

    Features are numbered among themselves, by their fids.

    Args:
        home: where the table of the layer lies.
        layer: its name.
        version: of its table.
        regions: by their ids; files of others are not read.
        space: what coordinates mean.
        box: only features whose boxes have a point in it; None: all.

    Raises:
        LayerError: as `load_index`.
        TransientError: likewise.
    """
    part: Filters = [("region_id", "in", list(regions))]
    if box is not None:
        minx, miny, maxx, maxy = box
        part += [("minx", "<=", maxx), ("miny", "<=", maxy)]
        part += [("maxx", ">=", minx), ("maxy", ">=", miny)]
    rows = _features(home, layer, version, [*SMALL_COLUMNS], part)
    # To this index they are of one region, in which all are at home.
    ones = {"region_id": pa.scalar(_PART), "home": pa.scalar(value=True)}
    for name, value in ones.items():
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, name, pa.repeat(value, len(rows)))
    return LayerIndex(
        rows,
        lambda _: _features(home, layer, version, ["geometry"], part)["geometry"],
        space=space,
        read_tag=_tags(home, layer, version, part),
    )


def read_features(
    home: Home,
    layer: str,
    version: int,
    columns: Sequence[str],
    part: Filters | None = None,
) -> pa.Table:
    """Columns of the features of a version of a layer, or of those of a part of it: a row each, sorted by fid.

    Args:
        home: where the table of the layer lies.
        layer: its name.
        version: of its table.
        columns: of the table; `fid` and `home` come too.
        part: only rows of which this holds; files that have none are not read.

    Raises:
        LayerError: as `load_index`.
        TransientError: likewise.
    """
    return _features(home, layer, version, [*columns], part)


def load_outline(home: Home, layer: str, version: int) -> Outline | None:
    """Where the features of a version of a layer lie; held by this process for further calls.

    None where its table does not say by which regions it is spread, or these are not known any more.

    Raises:
        LayerError: as `load_index`.
        TransientError: likewise.
    """
    return _load_outline(home, layer, version)


def index_bytes(home: Home, layer: str, version: int) -> int:
    """About how much memory the index of a version of a layer takes; by its table's log, no file is read.

    Raises:
        LayerError: as `load_index`.
        TransientError: likewise.
    """
    return sum(_sizes(home, layer, version).values())


def _patched(
    home: Home, layer: str, older: Index, since: int, version: int
) -> PatchedIndex | None:
    """A version as the older one, which is held, with what was put and deleted since; None where it is read anew."""
    with readable():
        rows = put_between(home, layer, since, version, _PATCHED)
    if rows is None:
        return None
    is_there = pc.invert(pc.fill_null(rows["deleted"], fill_value=False))
    # In the index of what was put one region is as good as another.
    place = pa.repeat(pa.scalar(_PART), len(rows))
    return patched(
        older,
        rows["fid"].to_pylist(),
        rows.append_column("region_id", place).filter(is_there),
        since=since,
    )


def _read_index(home: Home, layer: str, version: int, space: Space) -> LayerIndex:
    return LayerIndex(
        _rows(home, layer, version, list(SMALL_COLUMNS)),
        partial(_wkb, home, layer, version),
        space=space,
        read_tag=_tags(home, layer, version),
        read_rows=partial(_whole, home, layer, version),
    )


@lru_cache(maxsize=_INDEXES_HELD)
def _load_outline(home: Home, layer: str, version: int) -> Outline | None:
    rows = _rows(home, layer, version, [*SMALL_COLUMNS, *_SPREAD_BY])
    regions = _regions_of(home, rows)
    if regions is None:
        return None
    labels = Labels(
        rows.filter(rows["home"]).sort_by("fid"), _tags(home, layer, version)
    )
    number = np.searchsorted(labels.fids, _texts(rows["fid"]))
    cells = dict(zip(regions.region_id, regions.bounds, strict=True))
    ids, region = np.unique(_texts(rows["region_id"]), return_inverse=True)
    groups = [members for _, members in groups_of(region)]
    boxes = np.stack([rows[edge].to_numpy() for edge in EDGES], axis=1)
    at_home = rows["home"].to_numpy(zero_copy_only=False)
    features = [np.sort(number[members]) for members in groups]
    home_of = np.empty(len(labels.fids), np.int64)
    home_of[number[at_home]] = region[at_home]
    nbytes = _sizes(home, layer, version)
    extents = [
        _common(cells[name], _around(boxes[members]))
        for name, members in zip(ids.tolist(), groups, strict=True)
    ]
    return Outline(
        labels=labels,
        home=home_of,
        region_ids=ids.tolist(),
        features=features,
        extents=np.array(extents).reshape(-1, len(EDGES)),
        nbytes=np.array([nbytes[name] for name in ids], np.int64),
        rows=FeatureRows(home_of, ids.tolist(), partial(_whole, home, layer, version)),
    )


def _sizes(home: Home, layer: str, version: int) -> dict[str, int]:
    """About how much memory the index of each region takes, by its files and the number of its features."""
    _require(home, layer, version)
    with readable():
        by_region = sizes(home, layer, version)
    return {
        region: rows * _PER_FEATURE + nbytes * _PER_FILE_BYTE
        for region, (rows, nbytes) in by_region.items()
    }


def _regions_of(home: Home, rows: pa.Table) -> Regions | None:
    """The regions by which a layer's rows are spread; None where they are not known."""
    known = rows.select(list(_SPREAD_BY)).slice(0, 1).to_pylist()
    if not known or known[0]["region_group"] is None:
        return None
    return stored(home, known[0]["region_group"], known[0]["region_version"])


def _texts(column: pa.ChunkedArray) -> Texts:
    texts: Texts = column.to_numpy(zero_copy_only=False).astype(object)
    return texts


def _around(boxes: Floats) -> Floats:
    """The box around some boxes; NaN where none has a place."""
    return np.concatenate([np.fmin.reduce(boxes[:, :2]), np.fmax.reduce(boxes[:, 2:])])


def _common(one: Floats, other: Floats) -> Floats:
    """What two closed boxes have in common."""
    lower, upper = np.fmax(one[:2], other[:2]), np.fmin(one[2:], other[2:])
    return np.concatenate([lower, upper])


def _require(home: Home, layer: str, version: int) -> None:
    """Makes sure that a layer has a version.

    Raises:
        LayerError: there is no such layer or version, or what lies there is no layer.
        TransientError: it cannot be read now.
    """
    with readable():
        newest = tables.version(table_path(home, layer))
    if newest is None or not 0 <= version <= newest:
        has = (
            f"its versions go to {newest}"
            if newest is not None
            else "fairway layer list shows which there are"
        )
        raise LayerError(f"layer {layer!r} has no version {version}", hint=has)


def _rows(
    home: Home,
    layer: str,
    version: int,
    columns: list[str],
    part: Filters | None = None,
) -> pa.Table:
    """The rows of a layer, or of a part of it.

    Raises:
        LayerError: there is no such layer or version, or what lies there is no layer.
        TransientError: it cannot be read now.
    """
    _require(home, layer, version)
    with readable():
        return read_rows(home, layer, version, columns=columns, filters=part)


def _features(
    home: Home,
    layer: str,
    version: int,
    columns: list[str],
    part: Filters | None = None,
) -> pa.Table:
    """A row for each feature of a layer, or for each of a part of it; sorted by fid."""
    needed = [name for name in ("home", "fid") if name not in columns]
    rows = _rows(home, layer, version, [*needed, *columns], part)
    if part is None:
        return rows.filter(rows["home"]).sort_by("fid")
    _, first = np.unique(_texts(rows["fid"]), return_index=True)
    return rows.take(pa.array(first))


def _tags(
    home: Home, layer: str, version: int, part: Filters | None = None
) -> Callable[[str], pa.Array]:
    """What reads a tag of all features, in the order of their fids."""

    def read_tag(name: str) -> pa.Array:
        tags = _features(home, layer, version, ["tags"], part)["tags"].combine_chunks()
        return pc.map_lookup(tags, pa.scalar(name), "first")

    return read_tag


def _wkb(home: Home, layer: str, version: int, region_id: str) -> pa.ChunkedArray:
    """The geometries of the features at home in a region, sorted by fid."""
    return _whole(home, layer, version, region_id, ("fid", "geometry"))["geometry"]


def _whole(
    home: Home,
    layer: str,
    version: int,
    region_id: str,
    columns: Sequence[str] = ROW_COLUMNS,
) -> pa.Table:
    """Some columns of the features at home in a region, sorted by fid."""
    of_region: Filters = [("region_id", "in", [region_id])]
    rows = _rows(home, layer, version, ["home", *columns], of_region)
    return rows.filter(rows["home"]).sort_by("fid").select(list(columns))
