"""The lines of boxes: the id, the sides and the text of each."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.formats.format_settings import FormatSettings
from st_common.formats.numbers import mask
from st_common.formats.records import RAW_LIMIT, Reason, Records, columns_read
from st_common.formats.spans import lines, utf8_faults

_LINE = r"^\s*(?P<key>[^ \t]+)[ \t]+(?P<sides>[^ \t]+)(?:[ \t]+(?P<text>.*?))?\r?$"


def read_boxes(payload: bytes, stream: FormatSettings) -> Records:
    """The lines of a payload; see `boxes`. Total: columns that no line has are a fault of each."""
    buffer = np.frombuffer(payload, np.uint8)
    every = lines(buffer)
    fault = np.full(len(every), Reason.NONE, np.int8)
    fault[every.holding(utf8_faults(buffer))] = Reason.BAD_UTF8
    read = np.flatnonzero(fault == Reason.NONE)
    said = pc.extract_regex(every.select(read).texts().view(pa.string()), _LINE)
    sides = pc.split_pattern(pc.struct_field(said, "sides"), ",")
    counts = pc.fill_null(pc.list_value_length(sides), -1)
    is_whole = mask(pc.equal(counts, len(stream.columns.box)))
    fault[read[~is_whole]] = Reason.RAGGED
    kept = pa.array(is_whole)
    fields = _fields(said.filter(kept), sides.filter(kept), stream)
    wanted = columns_read(stream)
    if not fields.keys() >= set(wanted):
        fault[fault == Reason.NONE] = Reason.MISSING_COLUMN
    return Records(
        fault=fault,
        fields={name: fields[name] for name in wanted if name in fields},
        raw=lambda rows: every.select(rows).texts(RAW_LIMIT),
    )


def _fields(
    said: pa.StructArray, sides: pa.ListArray, stream: FormatSettings
) -> Mapping[str, pa.Array]:
    """The columns of lines that are whole: key and text, and the sides, which stand one line behind the other."""
    flat, columns = sides.flatten(), stream.columns.box
    every = {name: flat[at :: len(columns)] for at, name in enumerate(columns)}
    return {name: pc.struct_field(said, name) for name in ("key", "text")} | every
