"""Layers that are in memory as a whole, rather than in a table."""

import pyarrow as pa
import pyarrow.compute as pc

from st_common.geometry.space import GLOBE, Space
from st_common.layers.index import SMALL_COLUMNS, LayerIndex
from st_common.layers.labels import ROW_COLUMNS


def index_of(rows: pa.Table, *, space: Space = GLOBE) -> LayerIndex:
    """The index of a layer whose rows are in memory, with their tags and geometries.

    Args:
        rows: as `layer_rows` gives them.
        space: what the coordinates of the layer and of the points mean.
    """
    at_home = rows.filter(rows["home"]).sort_by("fid")

    def read_rows(region_id: str) -> pa.Table:
        of_region = at_home.filter(pc.field("region_id") == region_id)
        return of_region.select(list(ROW_COLUMNS))

    def read_region(region_id: str) -> pa.ChunkedArray:
        return read_rows(region_id)["geometry"]

    def read_tag(name: str) -> pa.Array:
        tags = at_home["tags"].combine_chunks()
        return pc.map_lookup(tags, pa.scalar(name), "first")

    small = rows.select(list(SMALL_COLUMNS))
    return LayerIndex(
        small, read_region, space=space, read_tag=read_tag, read_rows=read_rows
    )
