"""Rows of tables and layers found once: by key, in a rectangle, and pairs of two tables in one.

Only the files of regions that a rectangle touches are read, and of these those whose statistics allow a row in it; the
answers say how many that were. Rectangles and shapes are in the coordinates of the layer, and shapes planar in these.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import shapely

from st_common.config.home import Home
from st_common.errors import LayerError
from st_common.geometry.extent import Box
from st_common.layers.announce import (
    layer_group,
    loaded_layers,
    regions_of,
    required_version,
    spread_by,
)
from st_common.layers.declared import table_settings
from st_common.layers.rows import shapes_of
from st_common.layers.table import feature_count, files_read, history_of, read_rows
from st_common.partitioning.regions import touching
from st_common.tables.pruning import Filters

Ints = npt.NDArray[np.int64]
_COLUMNS = ["fid", "kind", "tags", "geometry"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was found in some files of those there are.

    Attributes:
        rows: `fid`, `kind`, `tags` and `geometry` of n rows, each once, sorted by fid.
        version: of the table.
        read: how many data files were read.
        there: how many there are.
    """

    rows: pa.Table
    version: int
    read: int
    there: int

    def to_json(self) -> dict[str, Any]:
        """The rows as a FeatureCollection of GeoJSON, with the files that were read."""
        return {
            "type": "FeatureCollection",
            "features": list(features_of(self.rows)),
            "version": self.version,
            "files_read": self.read,
            "files": self.there,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Pairs of rows of two tables that meet in a rectangle: the numbers of their rows in both, int64[m] each."""

    left: Found
    right: Found
    left_row: Ints
    right_row: Ints

    def fids(self) -> list[list[str]]:
        """The pairs by their keys, sorted."""
        left = self.left.rows["fid"].take(pa.array(self.left_row)).to_pylist()
        right = self.right.rows["fid"].take(pa.array(self.right_row)).to_pylist()
        return sorted(map(list, zip(left, right, strict=True)))

    def to_json(self) -> dict[str, Any]:
        """The pairs, and the rows that are in some of both tables as features; with the files that were read."""
        sides = ((self.left, self.left_row), (self.right, self.right_row))
        left, right = (
            list(features_of(one.rows.take(pa.array(np.unique(rows)))))
            for one, rows in sides
        )
        return {
            "pairs": self.fids(),
            "left": left,
            "right": right,
            "files_read": self.left.read + self.right.read,
            "files": self.left.there + self.right.there,
        }


def get(home: Home, table: str, key: str) -> list[dict[str, Any]]:
    """The row of a key, as a feature; with the older versions of it that the table keeps behind it, newest first.

    Each says in `put_at` when it was put (ISO 8601; null: with the whole layer). [] where there is none.

    Raises:
        LayerError: there is no such table.
    """
    version = required_version(home, table)
    settings = table_settings(home, table)
    most = 1 if settings is None else settings.versions
    rows = history_of(home, table, version, key).slice(0, most)
    if not len(rows) or rows["deleted"][0].as_py():
        return []
    return [
        {**feature, "put_at": at and at.isoformat(), "deleted": bool(gone)}
        for feature, at, gone in zip(
            features_of(rows),
            rows["put_at"].to_pylist(),
            rows["deleted"].to_pylist(),
            strict=True,
        )
    ]


def in_rectangle(home: Home, table: str, box: Box) -> Found:
    """The rows of a table or layer whose shapes have a point in common with a closed rectangle.

    Raises:
        LayerError: there is no such table, or the rectangle is none.
    """
    require_rectangle(box)
    version = required_version(home, table)
    filters = _near(home, table, version, box)
    rows = read_rows(home, table, version, columns=_COLUMNS, filters=filters)
    fids = rows["fid"].to_numpy(zero_copy_only=False).astype(object)
    _, first = np.unique(fids, return_index=True)
    rows = rows.take(pa.array(first))
    shapes = shapely.from_wkb(rows["geometry"].to_numpy(zero_copy_only=False))
    rows = rows.filter(pa.array(shapely.intersects(shapes, shapely.box(*box))))
    read, there = files_read(home, table, version, filters)
    return Found(rows=rows, version=version, read=read, there=there)


def join_in_rectangle(home: Home, left: str, right: str, box: Box) -> Pairs:
    """The pairs of a row of one table and one of another that have a point in common in a closed rectangle.

    Raises:
        LayerError: there is no such table, or the rectangle is none.
    """
    mine, other = (in_rectangle(home, table, box) for table in (left, right))
    ours, theirs = (shapes_of(one.rows) for one in (mine, other))
    tree = shapely.STRtree(theirs)
    left_row, right_row = tree.query(ours, predicate="intersects")
    common = shapely.intersection(ours[left_row], theirs[right_row])
    meets = shapely.intersects(common, shapely.box(*box))
    return Pairs(
        left=mine, right=other, left_row=left_row[meets], right_row=right_row[meets]
    )


def features_of(rows: pa.Table) -> Iterator[dict[str, Any]]:
    """Rows with `fid`, `kind`, `tags` and `geometry` as features of GeoJSON, whose geometry is null without a place."""
    texts = shapely.to_geojson(shapes_of(rows))
    for row, text in zip(rows.to_pylist(), texts, strict=True):
        yield {
            "type": "Feature",
            "id": row["fid"],
            "geometry": None if text is None else json.loads(text),
            "properties": {"kind": row["kind"], **dict(row["tags"])},
        }


def require_rectangle(box: Box) -> None:
    """Raises a LayerError where four numbers are no rectangle."""
    minx, miny, maxx, maxy = box
    if not all(map(np.isfinite, box)) or minx > maxx or miny > maxy:
        raise LayerError(
            f"{','.join(f'{edge:g}' for edge in box)} is no rectangle",
            hint="minx,miny,maxx,maxy; one across 180 degrees is two",
        )


def _near(home: Home, table: str, version: int, box: Box) -> Filters:
    """What files and rows can hold a row in a rectangle."""
    minx, miny, maxx, maxy = box
    filters: Filters = [("minx", "<=", maxx), ("maxx", ">=", minx)]
    filters += [("miny", "<=", maxy), ("maxy", ">=", miny)]
    if spread_by(home, table, version)[0] is None:
        return filters
    regions = regions_of(home, table, version)
    _, touched = touching(regions, np.array([box]))
    return [("region_id", "in", [regions.region_id[one] for one in touched]), *filters]


def tables_shown(home: Home) -> list[dict[str, Any]]:
    """All tables and layers by name, as JSON has them: how many rows they have, and how they were declared."""
    shown = []
    for name, version in loaded_layers(home).items():
        settings = table_settings(home, name)
        said = {} if settings is None else asdict(settings)
        shown.append(
            {
                "table": name,
                "version": version,
                "rows": feature_count(home, name, version),
                "key": said.get("key"),
                "columns": list(said.get("columns", ())),
                "versions": said.get("versions", 1),
                "ttl_s": said.get("ttl_s"),
                "group": said.get("group") or layer_group(home, name),
            }
        )
    return shown
