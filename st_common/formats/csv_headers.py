r"""Headers in the middle of delimited text, where exports were put one behind another.

id,t,lon,lat                                        line 1 is the header
a,1764000000,24.9,60.2
id,t,lon,lat                                        line 3 repeats it: no record
a,1764000060,24.9,60.2
id,t,lat,lon                                        line 5 is another one: what is behind it is read by it
a,1764000120,60.2,24.9
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from st_common.formats.encodings import as_utf8
from st_common.formats.format_settings import FormatSettings, named_columns
from st_common.formats.spans import Spans
from st_common.formats.spans import lines as lines_of

_CORE = ("object", "event_ts", "x", "y", "place")
_LF = 10
_SHOWN = 80  # characters of a header
_MOST_TOLD = 5
_UNITS = (
    "deg", "degs", "degree", "degrees", "decimal degrees", "dd", "°", "º", "wgs84", "epsg:4326", "m", "metre", "metres",
    "meter", "meters", "wkt", "grad", "grados", "degrés",
)  # fmt: skip


def core_columns(stream: FormatSettings) -> tuple[str, ...]:
    """The columns without which a line of names is no header: those of the id, the time and the place."""
    named = (name for key, name in named_columns(stream) if key in _CORE)
    return tuple(dict.fromkeys(named))


def places_named(stream: FormatSettings) -> tuple[str, ...]:
    """The columns of the place."""
    named = (name for key, name in named_columns(stream) if key in ("x", "y", "place"))
    return tuple(dict.fromkeys(named))


def names_columns(texts: pa.Array, stream: FormatSettings) -> NDArray[np.bool_]:
    """Which texts of a column of places are names of columns, or units.

    Args:
        texts: strings; null or "" is none.
        stream: names the columns.
    """
    known = [*(name.lower() for name in core_columns(stream)), *_UNITS]
    plain = pc.utf8_lower(pc.utf8_trim(pc.fill_null(texts, ""), " []()"))
    found = pc.is_in(plain, pa.array(known, pa.string()))
    return np.asarray(found.to_numpy(zero_copy_only=False), bool)


def sections(
    header: bytes, spans: Spans, stream: FormatSettings
) -> list[tuple[bytes, Spans]]:
    """Lines by the header that stands in front of them; headers are none of them. The last one may have no lines.

    Args:
        header: the first one, with its line end.
        spans: the lines behind it, each whole.
        stream: names the columns.
    """
    found = headers_in(spans, stream)
    if not len(found):
        return [(header, spans.without(header.rstrip(b"\r\n")))]
    is_record = np.ones(len(spans), bool)
    is_record[found] = False
    cuts, headers = [0], [header]
    for at, line in zip(found.tolist(), _texts(spans, found), strict=True):
        if line != headers[-1].rstrip(b"\r\n"):  # the same once more is none either
            cuts.append(at)
            headers.append(line + b"\n")
    parts, begun = [], 0
    for one, start, stop in zip(headers, cuts, [*cuts[1:], len(spans)], strict=True):
        end = int(spans.starts[stop]) if stop < len(spans) else len(spans.buffer)
        which = start + np.flatnonzero(is_record[start:stop])
        starts, ends = spans.starts[which] - begun, spans.ends[which] - begun
        parts.append((one, Spans(spans.buffer[begun:end], starts, ends)))
        begun = end if len(which) else begun
    return parts


def headers_in(spans: Spans, stream: FormatSettings) -> NDArray[np.int64]:
    """Which lines name all columns of an id, a time and a place: the numbers of their spans, ascending."""
    wanted = sorted(core_columns(stream), key=len, reverse=True)
    if not stream.header or not wanted or not all(map(_is_a_name, wanted)):
        return np.zeros(0, np.int64)
    data = spans.buffer.tobytes()
    if not all(one.encode() in data for one in wanted):  # nearly always
        return np.zeros(0, np.int64)
    at = np.array(_places(data, wanted[0].encode(), stream), np.int64)
    lines = np.unique(np.searchsorted(spans.starts, at, side="right") - 1)
    lines = lines[lines >= 0]
    names = frozenset(wanted)
    found = [
        number
        for number, line in zip(lines.tolist(), _texts(spans, lines), strict=True)
        if all(one.encode() in line for one in wanted) and _names(line, stream) >= names
    ]
    return np.array(found, np.int64)


def headers_told(
    data: bytes, stream: FormatSettings, *, first_line: int = 1
) -> list[str]:
    """What is said of the headers in the middle of the first bytes of a file.

    Args:
        data: from its header on.
        stream: names the columns.
        first_line: the number of its first line.
    """
    spans = lines_of(np.frombuffer(data, np.uint8))
    found = headers_in(spans, stream)
    if len(found) < 2:
        return []
    ends = np.flatnonzero(spans.buffer == _LF)
    numbers = np.searchsorted(ends, spans.starts[found]) + first_line
    first, *texts = _texts(spans, found)
    said, same = [], []
    for number, text in zip(numbers[1:].tolist(), texts, strict=True):
        if text == first:
            same.append(number)
            continue
        shown = as_utf8(text, stream.encoding).decode("utf-8", "replace")[:_SHOWN]
        said.append(
            f"line {number:,} is another header, {shown}: what is behind it is read by it"
        )
        first = text
    if same:
        more = f", and {len(same) - 1:,} more lines do" if len(same) > 1 else ""
        said.insert(0, f"line {same[0]:,} repeats the header{more}: it is no record")
    return said[:_MOST_TOLD]


def _is_a_name(column: str) -> bool:
    """Whether a column is called so that no value is alike, in bytes that are the same in all encodings."""
    return column.isascii() and any(map(str.isalpha, column))


def _names(line: bytes, stream: FormatSettings) -> frozenset[str]:
    from st_common.formats.csv_records import names_in

    return frozenset(names_in(as_utf8(line, stream.encoding), stream))


def _places(data: bytes, name: bytes, stream: FormatSettings) -> list[int]:
    """Where a name stands as a field, or at the edge of one."""
    mark, quote = stream.delimiter.encode(), stream.quote.encode()
    edges = {mark, b"\n", b"\r", b" ", quote} - {b""}
    bounded = [edge + name for edge in edges]
    at = [0] if data.startswith(name) else []
    for one in bounded:
        place = data.find(one)
        while place >= 0:
            end = place + len(one)
            if end == len(data) or data[end : end + 1] in edges:
                at.append(place + 1)
            place = data.find(one, end)
    return sorted(at)


def _texts(spans: Spans, numbers: NDArray[np.int64]) -> list[bytes]:
    texts: list[bytes] = spans.select(numbers).texts().to_pylist()
    return texts
