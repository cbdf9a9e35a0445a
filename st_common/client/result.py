"""What a client gives back: an Arrow table, whose places are a column that says what its coordinates mean."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from st_common.config.stream_values import PLANAR
from st_common.errors import ConfigError
from st_common.extras import has_module

if TYPE_CHECKING:
    import geopandas
    import pandas as pd

    from st_common.client.explore import MapPage

GEOMETRY = "geometry"
ARROW = "application/vnd.apache.arrow.stream"
"""The kind of a body that is a table as a stream of Arrow."""
_POINT = pa.struct([("x", pa.float64()), ("y", pa.float64())])


@dataclass(frozen=True, slots=True)
class Result:
    """Rows of an Arrow table; len() is their number, iterating gives each as a dict.

    Whatever takes Arrow takes it as it is: `pa.table(result)`, `polars.DataFrame(result)`.

    Attributes:
        table: the rows. Where they have places, the column `geometry` holds them as GeoArrow points (a struct of `x`
            and `y`, float64), null where a place is not known; its field names the CRS as GeoArrow does.
        crs: such as "EPSG:4326", longitude before latitude; None: there are no places, or they lie in a plane that is
            nowhere on Earth.
    """

    table: pa.Table
    crs: str | None = None

    def __len__(self) -> int:
        return len(self.table)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.table.to_batches():
            yield from batch.to_pylist()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> "pd.DataFrame":
        """The rows as a DataFrame of pandas; a place is a dict of `x` and `y`."""
        frame: pd.DataFrame = self.table.to_pandas()
        return frame

    def to_geopandas(self) -> "geopandas.GeoDataFrame":
        """The rows as a GeoDataFrame in their CRS; rows without a place have an empty one.

        Raises:
            ConfigError: GeoPandas is not installed, or the rows have no places.
        """
        self._check_places()
        if not has_module("geopandas"):
            raise ConfigError(
                "GeoPandas is not installed", hint="pip install geopandas"
            )
        import geopandas

        points = self.table[GEOMETRY].combine_chunks()
        places = geopandas.points_from_xy(
            *(points.field(axis).to_numpy(zero_copy_only=False) for axis in ("x", "y"))
        )
        places[points.is_null().to_numpy(zero_copy_only=False)] = None
        rows = self.table.drop_columns([GEOMETRY]).to_pandas()
        return geopandas.GeoDataFrame(rows, geometry=places, crs=self.crs)

    def explore(self, *, color: str | None = None, under: Any = None) -> "MapPage":
        """A map of the rows, which a notebook shows; it asks nobody for tiles, and `.save(path)` writes it as a page.

        Args:
            color: a column by whose values the dots are coloured.
            under: what is drawn below them, in the same coordinates: GeoJSON, a GeoDataFrame, a geometry of Shapely.

        Raises:
            ConfigError: the rows have no places, or more than 200,000; there is no such column; or `under` has no
                geometry.
        """
        from st_common.client.explore import explored

        self._check_places()
        return explored(self.table, self.crs, color, under)

    def _check_places(self) -> None:
        if GEOMETRY not in self.table.column_names:
            raise ConfigError(
                "these rows have no places",
                hint=f"they have {', '.join(self.table.column_names)}",
            )


def to_stream(table: pa.Table) -> bytes:
    """A table as a stream of Arrow."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def from_stream(data: bytes) -> pa.Table:
    """The table that a stream of Arrow holds.

    Raises:
        pa.ArrowException: it is none.
    """
    return pa.ipc.open_stream(data).read_all()


def placed(table: pa.Table, crs: str) -> Result:
    """Rows with a column `geometry` of GeoArrow points, made from `x` and `y`, which stay.

    Args:
        table: has `x` and `y`, float64; null or NaN where no place is known.
        crs: of a stream's settings: "EPSG:4326", another EPSG number, or "planar".
    """
    x, y = (table[axis].combine_chunks().cast(pa.float64()) for axis in ("x", "y"))
    known = pa.compute.and_(
        *(pa.compute.is_finite(axis).fill_null(False) for axis in (x, y))  # noqa: FBT003 - Arrow's
    )
    points = pa.StructArray.from_arrays(
        [x, y], fields=list(_POINT), mask=pa.compute.invert(known)
    )
    own = None if crs == PLANAR else crs
    return Result(table.append_column(_field(own), points), own)


def crs_of(table: pa.Table) -> str | None:
    """The CRS that the column `geometry` names; None where it names none."""
    metadata = table.schema.field(GEOMETRY).metadata or {}
    said = json.loads(metadata.get(b"ARROW:extension:metadata", b"{}"))
    crs: str | None = said.get("crs")
    return crs


def _field(crs: str | None) -> pa.Field:
    """The field of a column of points, as GeoArrow's specification names extensions and systems."""
    said = {} if crs is None else {"crs": crs, "crs_type": "authority_code"}
    return pa.field(
        GEOMETRY,
        _POINT,
        metadata={
            "ARROW:extension:name": "geoarrow.point",
            "ARROW:extension:metadata": json.dumps(said),
        },
    )
