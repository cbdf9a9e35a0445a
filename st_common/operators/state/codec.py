"""Named arrays of different lengths as one blob: an Arrow stream of one row with a list column per array."""

import json
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

Arrays = Mapping[str, np.ndarray | pa.Array]

T = TypeVar("T")

PACKED = pa.ipc.IpcWriteOptions(compression="lz4")
"""For what goes through the JVM: columns of few different values shrink to almost nothing, in a few milliseconds."""

_META = b"fairway"
_ARROW = "attribute/"  # arrays that stay Arrow, for they may hold nulls


def table_to_blob(table: pa.Table) -> bytes:
    """A table as bytes, in one chunk."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=PACKED) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue())


def table_from_blob(blob: bytes | pa.Buffer) -> pa.Table:
    """The table that `table_to_blob` gave."""
    return pa.ipc.open_stream(blob).read_all()


def to_blob(
    arrays: Arrays, meta: Mapping[str, Any], *, compressed: bool = False
) -> bytes:
    """Named arrays and JSON values as bytes; `from_blob` reads them.

    Args:
        arrays: NumPy arrays of numbers or Arrow arrays, of any lengths, one-dimensional.
        meta: what `json.dumps` can write.
        compressed: whether bytes are compressed by LZ4; those that are not are read without copying.
    """
    columns, names = [], []
    for name, values in arrays.items():
        array = values if isinstance(values, pa.Array) else pa.array(values)
        array = (
            array if len(array) else pa.array([], array.type)
        )  # nothing of a million texts writes all their offsets
        offsets = pa.array([0, len(array)], pa.int64())
        # A batch has columns of one length: each array is the one list of its column.
        columns.append(pa.LargeListArray.from_arrays(offsets, array))
        names.append(name)
    columns.append(pa.array([0], pa.int8()))  # a batch needs one column
    names.append("_")
    schema = pa.schema(
        [pa.field(n, c.type) for n, c in zip(names, columns, strict=True)],
        {_META: json.dumps(meta)},
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(
        sink, schema, options=PACKED if compressed else None
    ) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    return bytes(sink.getvalue())


def from_blob(blob: bytes) -> tuple[dict[str, np.ndarray | pa.Array], dict[str, Any]]:
    """The arrays and the meta that `to_blob` was given.

    Args:
        blob: the bytes. NumPy arrays are views of them: they must not be written.

    Returns:
        By name numbers as NumPy arrays, strings and attributes (which may hold nulls) as Arrow arrays; and the meta.
    """
    with pa.ipc.open_stream(blob) as reader:
        batch = reader.read_next_batch()
    arrays: dict[str, np.ndarray | pa.Array] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name == "_":
            continue
        values = column.values
        is_number = pa.types.is_integer(values.type) or pa.types.is_floating(
            values.type
        )
        arrays[name] = (
            values.to_numpy() if is_number and not name.startswith(_ARROW) else values
        )
    return arrays, json.loads((batch.schema.metadata or {})[_META])


def flat(prefix: str, columns: Any) -> dict[str, np.ndarray]:
    """The arrays of a dataclass of arrays by name, as `prefix/field`.

    Args:
        prefix: what `unflat` finds them by.
        columns: an instance of a dataclass.
    """
    return {
        f"{prefix}/{name}": getattr(columns, name)
        for name in columns.__dataclass_fields__
    }


def unflat(prefix: str, kind: type[T], arrays: Arrays) -> T:
    """The dataclass of arrays that `flat` took apart.

    Args:
        prefix: the one that `flat` was given.
        kind: the dataclass.
        arrays: as `from_blob` gives them; there may be others.

    Raises:
        KeyError: an array of a field is not there.
    """
    names = kind.__dataclass_fields__  # type: ignore[attr-defined]
    return kind(**{name: arrays[f"{prefix}/{name}"] for name in names})


def flat_attributes(attributes: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    """Attributes by the names under which `attributes_of` finds them."""
    return {_ARROW + name: values for name, values in attributes.items()}


def attributes_of(arrays: Arrays) -> dict[str, pa.Array]:
    """The attributes among the arrays of a blob."""
    return {
        name.removeprefix(_ARROW): values
        for name, values in arrays.items()
        if name.startswith(_ARROW)
    }
