"""The box around the places of some rows."""

import pyarrow as pa
import pyarrow.compute as pc

Box = tuple[float, float, float, float]


def extent_of_rows(rows: pa.Table) -> Box | None:
    """The least and greatest `x` and `y` of rows: minx, miny, maxx, maxy; None where none has a place."""
    x, y = (pc.min_max(rows[name]).as_py() for name in ("x", "y"))
    if x["min"] is None or y["min"] is None:
        return None
    return x["min"], y["min"], x["max"], y["max"]
