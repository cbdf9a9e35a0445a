"""Distances in SQL: ST_Point(x, y) and ST_Distance(a, b), of which one is a point and the other any geometry (SPEC P3).

    SELECT c.object, s.fid, ST_Distance(s.geometry, ST_Point(c.x, c.y)) AS metres
    FROM latest_cars c, layer_stations s QUALIFY row_number() OVER (PARTITION BY c.object ORDER BY metres, s.fid) = 1

Geometries are WKB, as layers have them. Distances are those of joins: metres on WGS 84, 0 inside an area; on planes
their unit.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from st_common.config.stream import StreamSettings
from st_common.errors import QueryError

if TYPE_CHECKING:
    import duckdb

PLACES = ("st_point", "st_distance")
"""Both as functions of SQL."""


def calls_places(text: str) -> bool:
    """Whether a text (in small letters) may call one of both: a connection must know them before."""
    return any(f"{name}(" in text for name in PLACES)


def add_places(
    connection: "duckdb.DuckDBPyConnection", streams: Collection[StreamSettings]
) -> None:
    """Lets a connection call both functions.

    Args:
        connection: it asks for one SELECT.
        streams: all of the home: they say what coordinates are; degrees where there are none.

    Raises:
        QueryError: some are on the globe and some on planes.
    """
    from duckdb.func import ARROW

    from st_common.geometry.space import GLOBE

    spaces = {one.space for one in streams} or {GLOBE}
    if len(spaces) > 1:
        raise QueryError(
            "ST_Distance does not know whether coordinates are degrees: this home has streams of both kinds",
            hint="ask the language of queries: SELECT distance() FROM layer KNN (1, x, y)",
        )
    connection.create_function(
        "st_point", _points, ["double", "double"], "blob", type=ARROW
    )
    (space,) = spaces

    def far(one: Any, other: Any) -> Any:
        return _distances(one, other, space=space)

    connection.create_function(
        "st_distance", far, ["blob", "blob"], "double", type=ARROW
    )


def _points(x: Any, y: Any) -> Any:
    """Points as WKB; Arrow arrays."""
    import pyarrow as pa
    import shapely

    places = shapely.points(*(one.to_numpy(zero_copy_only=False) for one in (x, y)))
    return pa.array(shapely.to_wkb(places), pa.binary())


def _distances(one: Any, other: Any, *, space: Any) -> Any:
    """How far two geometries are from each other, of which one is a point; Arrow arrays.

    Raises:
        ValueError: none of the two is a point.
    """
    import numpy as np
    import pyarrow as pa
    import shapely

    from st_common.geometry.elements import distances_from

    a, b = (
        shapely.from_wkb(side.to_numpy(zero_copy_only=False)) for side in (one, other)
    )
    is_point = shapely.get_type_id(b) == 0
    points, shapes = np.where(is_point, b, a), np.where(is_point, a, b)
    if (shapely.get_type_id(points) > 0).any():
        raise ValueError("ST_Distance needs a point: ST_Distance(geometry, ST_Point(x, y))")  # fmt: skip
    which, x, y = np.arange(len(a)), shapely.get_x(points), shapely.get_y(points)
    return pa.array(distances_from(shapes, which, x, y, space=space), from_pandas=True)
