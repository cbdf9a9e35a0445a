"""The places of features, for partitioning a group by what lies in it."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import shapely

from st_common.config.home import Home
from st_common.layers.announce import required_version
from st_common.layers.features import MORE, lines_of
from st_common.layers.kinds import Kinds
from st_common.layers.reading import Wanted, read_features
from st_common.layers.table import AT_HOME, read_rows, table_path
from st_common.partitioning.sample import Floats, PointSource

if TYPE_CHECKING:
    from st_common.tables.pruning import Filters


def file_points(file: Path, rules: Kinds) -> PointSource:
    """The middles of the boxes of all features of an OSM or GeoJSON file, which is read once, at once.

    Raises:
        LayerError: the file cannot be read.
    """
    features = read_features(file, Wanted(rules))
    bounds = shapely.bounds(features.geometries)
    middles = (bounds[:, :2] + bounds[:, 2:]) / 2
    lines = lines_of(features, more=MORE)
    return PointSource(
        name=str(file),
        dimensions=2,
        read=lambda: iter([middles]),
        left_out=lambda: lines,
    )


def layer_points(home: Home, layer: str) -> PointSource:
    """The middles of the boxes of all features of a layer's newest version.

    Raises:
        LayerError: the layer was never loaded.
    """
    version = required_version(home, layer)

    def read() -> Iterator[Floats]:
        columns = ["home", "fid", "minx", "miny", "maxx", "maxy"]
        placed: Filters = [*AT_HOME, ("minx", "<=", sys.float_info.max)]
        rows = read_rows(home, layer, version, columns=columns, filters=placed)
        rows = rows.sort_by("fid")
        minx, miny, maxx, maxy = (rows[name].to_numpy() for name in columns[2:])
        yield np.column_stack([(minx + maxx) / 2, (miny + maxy) / 2])

    return PointSource(
        name=f"layer {layer!r}",
        dimensions=2,
        read=read,
        layer=(str(table_path(home, layer).absolute()), version),
    )
