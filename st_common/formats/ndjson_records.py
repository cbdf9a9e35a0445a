"""NDJSON: a JSON object a line; also one JSON array of objects. Nested values by path: `VP.lat`, `coordinates[0]`.

DuckDB reads the JSON: one by one, so that a bad record costs itself and no other, and no slower than a typed read by
Arrow, which stops at the first record that it does not like.
"""

import os
import re
import threading
from collections.abc import Mapping, Sequence

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from st_common.asking import opened
from st_common.formats.format_settings import FormatSettings
from st_common.formats.ndjson_chunks import elements, is_array
from st_common.formats.numbers import Mask, mask
from st_common.formats.records import RAW_LIMIT, Reason, Records, columns_read
from st_common.formats.spans import Spans, byte_places, lines, utf8_faults
from st_common.formats.stamped import is_stamped, with_received

_HEAD = 1024  # bytes in which the first object of an array begins
_NUL = 0
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
    paths = {name: name for name in columns_read(stream)}
    if not is_array(payload[:_HEAD]):
        return read_lines(payload, paths)
    records = elements(np.frombuffer(payload, np.uint8))
    fault = _faults(records, payload, b"{")
    good = np.flatnonzero(fault == Reason.NONE)
    return _read(records, fault, records.select(good).texts(), paths)


def read_lines(
    payload: bytes, paths: Mapping[str, str], *, opening: bytes = b"{"
) -> Records:
    """The records of lines, each a JSON object, or an array where `opening` is a bracket.

    A stamp in front of an object, as loggers write it, is its column `received`.

    Args:
        payload: the lines.
        paths: where each column stands in a record: `VP.lat`, `coordinates[0]`, `5` of an array.
        opening: what a record begins with; another one is no record of this kind.
    """
    records = lines(np.frombuffer(payload, np.uint8))
    fault = _faults(records, payload, opening)
    good = np.flatnonzero(fault == Reason.NONE)
    texts = records.with_line_ends(good)
    other = np.flatnonzero(fault == Reason.NO_JSON_OBJECT)
    if opening == b"{" and len(other):
        lines_of_others = records.select(other).texts()
        stamped = is_stamped(lines_of_others)
        fault[other[stamped]] = Reason.NONE
        plain = with_received(lines_of_others.filter(pa.array(stamped)))
        order = np.argsort(np.append(good, other[stamped]), kind="stable")
        texts = pa.concat_arrays([texts, plain]).take(pa.array(order))
    return _read(records, fault, texts, paths)


def _read(
    records: Spans,
    fault: NDArray[np.int8],
    without_fault: pa.Array,
    paths: Mapping[str, str],
) -> Records:
    """Records of which those `without_fault` are read; the others have theirs already."""
    good = np.flatnonzero(fault == Reason.NONE)
    texts = without_fault.view(pa.string())
    try:
        fields = _extract(texts, paths)
    except _NO_JSON:
        valid = _valid(texts)
        fault[good[~valid]] = Reason.BAD_JSON
        fields = _extract(texts.filter(pa.array(valid)), paths)
    return Records(
        fault=fault,
        fields=fields,
        raw=lambda rows: records.select(rows).texts(RAW_LIMIT),
    )


def _faults(records: Spans, payload: bytes, opening: bytes) -> NDArray[np.int8]:
    """What is wrong with records before anybody reads them as JSON."""
    fault, buffer = np.zeros(len(records), np.int8), records.buffer
    doubtful = np.flatnonzero(
        buffer[np.minimum(records.starts, len(buffer) - 1)] != ord(opening)
    )
    if len(doubtful):
        trimmed = pc.binary_slice(_trimmed(records.select(doubtful)), 0, 1)
        fault[doubtful[~mask(pc.equal(trimmed, opening))]] = Reason.NO_JSON_OBJECT
    if not payload.isascii():
        fault[records.holding(utf8_faults(buffer))] = Reason.BAD_UTF8
    if b"\0" in payload:
        fault[records.holding(byte_places(buffer, _NUL))] = Reason.NUL
    return fault


def _trimmed(records: Spans) -> pa.Array:
    return pc.replace_substring_regex(records.texts(), r"^[ \t\r\n]+", "")


def _extract(texts: pa.Array, paths: Mapping[str, str]) -> dict[str, pa.Array]:
    """The values at paths as texts, by the names of their columns.

    Raises:
        duckdb.InvalidInputException, UnicodeDecodeError: a text is no JSON.
    """
    if not len(texts):
        return {name: pa.array([], pa.string()) for name in paths}
    pointers = ", ".join(
        "'" + _pointer(path).replace("'", "''") + "'" for path in paths.values()
    )
    extracted = _project(texts, f"json_extract_string(line, [{pointers}])")
    values = pc.list_flatten(extracted)
    return {
        name: values.take(pa.array(np.arange(place, len(values), len(paths))))
        for place, name in enumerate(paths)
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
        _local.connection = opened({"threads": 1})
        _local.pid = os.getpid()
    connection: duckdb.DuckDBPyConnection = _local.connection
    return connection


def _pointer(path: str) -> str:
    """`VP.lat` and `coordinates[0]` as JSON pointers (RFC 6901)."""
    steps = _INDEX.sub(r".\1", path).split(".")
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)


# --- columns that may stand under several names ---

Paths = Mapping[str, Sequence[str]]
"""By column where its value may stand; the first one that is there counts."""


def read_columns(lines: bytes, paths: Paths) -> Records:
    """The records of lines, each a JSON object, with these columns as texts."""
    each = {f"{n} {at}": path for n, of in paths.items() for at, path in enumerate(of)}
    records = read_lines(lines, each)
    fields = {
        name: pc.coalesce(*(records.fields[f"{name} {at}"] for at in range(len(of))))
        for name, of in paths.items()
    }
    return Records(fault=records.fault, fields=fields, raw=records.raw)


def without(records: Records, reasons: Mapping[Reason, Mask]) -> Records:
    """The records of which some of those without a fault have one after all.

    Args:
        records: what was read.
        reasons: which of the records without a fault have which; the first one of each counts.
    """
    fault = records.fault.copy()
    good = (fault == Reason.NONE).nonzero()[0]
    own = fault[good]
    for reason, where in reasons.items():
        own[where & (own == Reason.NONE)] = reason
    fault[good] = own
    kept = pa.array(own == Reason.NONE)
    fields = {name: values.filter(kept) for name, values in records.fields.items()}
    return Records(fault=fault, fields=fields, raw=records.raw)
