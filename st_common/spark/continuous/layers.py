"""DataFrames as layers: their features with valid geometries."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType

from st_common.errors import ConfigError
from st_common.geometry.space import Space
from st_common.layers.features import Features, Found, checked


def features_of(layer: str, frame: DataFrame, *, space: Space) -> Features:
    """The features of a DataFrame: collected, for every shard needs them all.

    Args:
        layer: the name of the layer: the kind of features that have none.
        frame: `fid`, `geometry` (WKB, or a geometry of Sedona), maybe `kind` and `tags` (a map of texts). Every other
            column is a tag of its name.
        space: what coordinates mean.

    Raises:
        ConfigError: a column is missing, or the layer streams.
    """
    for name in ("fid", "geometry"):
        if name not in frame.columns:
            raise ConfigError(
                f"layer {layer!r} has no column {name!r}",
                hint=f"it has {', '.join(frame.columns)}",
            )
    if frame.isStreaming:
        raise ConfigError(f"layer {layer!r} is a stream", hint="read it as a batch")
    found = Found()
    for row in _rows(_with_wkb(frame).toArrow()):
        kind = row.pop("kind", None) or layer
        fid, geometry = row.pop("fid"), row.pop("geometry")
        tags = dict(row.pop("tags", None) or ())
        tags |= {name: str(value) for name, value in row.items() if value is not None}
        found.add(str(fid), str(kind), tags, geometry)
    found.wanted = len(found.fids)
    return checked(found, space=space)


def _with_wkb(frame: DataFrame) -> DataFrame:
    if isinstance(frame.schema["geometry"].dataType, BinaryType):
        return frame
    return frame.withColumn("geometry", sf.expr("ST_AsBinary(geometry)"))


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in table.to_batches():
        yield from batch.to_pylist()
