"""Cells in which places lie, as keys of groups and as values: H3's hexagons, squares of a plane (SPEC X12).

    H3_CELL(9)         H3_CELL(x, y, 9)         '891f1d48b87ffff'     on degrees; resolution 0 to 15
    GRID_CELL(500)     GRID_CELL(x, y, 500)     '12:-3'               on planes; 12 * 500 <= x < 13 * 500

They are functions of expressions as all others, so that a cell stands wherever an expression does. H3 comes from a
library for whole columns, as a function that DuckDB calls with Arrow arrays (docs/adr/0010).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb

FINEST = 15
H3, GRID = "H3_CELL", "GRID_CELL"
CELLS = (H3.lower(), GRID.lower())
"""Both as functions of SQL."""
_GRID_SQL = """CREATE TEMP MACRO grid_cell(cell_x, cell_y, side) AS
  concat(CAST(floor(cell_x / side) AS BIGINT), ':', CAST(floor(cell_y / side) AS BIGINT))"""


def calls_cells(text: str) -> bool:
    """Whether an expression may call one of both: a connection must know them before."""
    return "_CELL(" in text


def add_cells(connection: "duckdb.DuckDBPyConnection") -> None:
    """Lets a connection call both functions; what H3 needs is imported when it is called."""
    from duckdb.func import ARROW

    connection.create_function(
        "h3_cell", _h3_cells, ["double", "double", "integer"], "varchar", type=ARROW
    )
    connection.execute(_GRID_SQL)


def _h3_cells(x: Any, y: Any, resolution: Any) -> Any:
    """The cells of places in degrees, Arrow arrays of each; null for what is no place on Earth."""
    import numpy as np
    import pyarrow as pa
    from h3ronpy import cells_to_string
    from h3ronpy.vector import coordinates_to_cells

    lon, lat, fine = (
        column.to_numpy(zero_copy_only=False) for column in (x, y, resolution)
    )
    is_known = np.isfinite(lon) & (np.abs(lat) <= 90.0)
    lon, lat = np.where(is_known, lon, 0.0), np.where(is_known, lat, 0.0)
    cells = coordinates_to_cells(lat, lon, fine.astype(np.uint8))
    texts = pa.array(cells_to_string(cells), pa.string())
    return texts.take(pa.array(np.arange(len(lon)), mask=~is_known))
