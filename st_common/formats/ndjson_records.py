"""NDJSON: a JSON object a line; also one JSON array of objects. Nested values by path: `VP.lat`, `coordinates[0]`.

DuckDB reads the JSON: one by one, so that a bad record costs itself and no other, and no slower than a typed read by
Arrow, which stops at the first record that it does not like.
"""

import os
import re
import threading

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from st_common.formats.format_settings import FormatSettings
from st_common.formats.json_array import elements, is_array
from st_common.formats.numbers import Mask, mask
from st_common.formats.records import RAW_LIMIT, Reason, Records, columns_read
from st_common.formats.spans import Spans, byte_places, lines, utf8_faults

_HEAD = 1024  # bytes in which the first object of an array begins
_BRACE, _NUL = ord("{"), 0
_INDEX = re.compile(r"\[(\d+)\]")
_NO_JSON = (
    duckdb.InvalidInputException,
    UnicodeDecodeError,  # its message quotes the text, and may cut it inside a character
)
_local = threading.local()


def read_ndjson(payload: bytes, stream: FormatSettings) -> Records:
    """The records of an NDJSON payload, or of one JSON array of objects.

    Blank lines are no records. A record that is not one JSON object is faulty; of a key given twice the first counts.
    Values are taken as texts, so `"12"` is as good as `12`; null is the same as absent, an object's text is its JSON.
    """
    buffer = np.frombuffer(payload, np.uint8)
    in_array = is_array(payload[:_HEAD])
    records = elements(buffer) if in_array else lines(buffer)
    fault = _faults(records, payload)
    good = np.flatnonzero(fault == Reason.NONE)
    texts = (
        records.select(good).texts() if in_array else records.with_line_ends(good)
    ).view(pa.string())
    names = columns_read(stream)
    try:
        fields = _extract(texts, names)
    except _NO_JSON:
        valid = _valid(texts)
        fault[good[~valid]] = Reason.BAD_JSON
        fields = _extract(texts.filter(pa.array(valid)), names)
    return Records(
        fault=fault,
        fields=fields,
        raw=lambda rows: records.select(rows).texts(RAW_LIMIT),
    )


def _faults(records: Spans, payload: bytes) -> NDArray[np.int8]:
    """What is wrong with records before anybody reads them as JSON."""
    fault = np.zeros(len(records), np.int8)
    doubtful = np.flatnonzero(
        records.buffer[np.minimum(records.starts, len(payload) - 1)] != _BRACE
    )
    if len(doubtful):
        trimmed = pc.binary_slice(_trimmed(records.select(doubtful)), 0, 1)
        fault[doubtful[~mask(pc.equal(trimmed, b"{"))]] = Reason.NO_JSON_OBJECT
    if not payload.isascii():
        fault[records.holding(utf8_faults(records.buffer))] = Reason.BAD_UTF8
    if b"\0" in payload:
        fault[records.holding(byte_places(records.buffer, _NUL))] = Reason.NUL
    return fault


def _trimmed(records: Spans) -> pa.Array:
    return pc.replace_substring_regex(records.texts(), r"^[ \t\r\n]+", "")


def _extract(texts: pa.Array, names: tuple[str, ...]) -> dict[str, pa.Array]:
    """The values at paths as texts.

    Raises:
        duckdb.InvalidInputException, UnicodeDecodeError: a text is no JSON.
    """
    if not len(texts):
        return {name: pa.array([], pa.string()) for name in names}
    pointers = ", ".join(
        "'" + _pointer(name).replace("'", "''") + "'" for name in names
    )
    extracted = _project(texts, f"json_extract_string(line, [{pointers}])")
    values = pc.list_flatten(extracted)
    return {
        name: values.take(pa.array(np.arange(place, len(values), len(names))))
        for place, name in enumerate(names)
    }


def _valid(texts: pa.Array) -> Mask:
    return mask(_project(texts, "json_valid(line)"))


def _project(texts: pa.Array, expression: str) -> pa.Array:
    relation = _connection().from_arrow(pa.table({"line": texts}))
    column = relation.project(f"{expression} AS found").to_arrow_table().column("found")
    return (
        column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
    )


def _connection() -> duckdb.DuckDBPyConnection:
    """A database in memory for this thread of this process; it works in one thread, which keeps the order."""
    if (
        getattr(_local, "pid", None) != os.getpid()
    ):  # a forked worker must not use what its parent opened
        _local.connection = duckdb.connect(config={"threads": 1})
        _local.pid = os.getpid()
    connection: duckdb.DuckDBPyConnection = _local.connection
    return connection


def _pointer(path: str) -> str:
    """`VP.lat` and `coordinates[0]` as JSON pointers (RFC 6901)."""
    steps = _INDEX.sub(r".\1", path).split(".")
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)
