"""Whether a file is what its stream's settings say, found on its first records before any of it goes into the log."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc

from st_common.capture.chunks import chunks
from st_common.capture.source import is_packed, open_file
from st_common.decode import Decoded, Reason, decode
from st_common.decode.gzipped import GzipSource
from st_common.errors import ConfigError
from st_common.formats.chunk import Chunk
from st_common.formats.registry import format_of, names_of_formats
from st_common.settings import StreamSettings

_FIRST_BYTES = 1 << 18
_SHOWN = 80  # characters of a record
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_MENDS = {
    "missing_column": "columns in the settings are spelled as in the header; delimiter says what separates them",
    "ragged": "delimiter and quote say how fields are separated; header = false when there is no header",
    "missing_object": "columns.object names the column of ids",
    "missing_time": "columns.event_ts names the column of times; without it the arrival is the time",
    "bad_time": "time_unit says how times are written: s, ms, us, iso or a format",
    "missing_position": "columns.x and columns.y name the coordinates",
    "bad_number": "columns.x and columns.y name the coordinates; their numbers have a decimal point",
    "out_of_crs": "x is the longitude and y the latitude: are they exchanged? crs says in which system they are",
    "no_point": "a fix is a point, POINT (x y) or WKB, in columns.place; fairway layer load takes lines and areas, "
    "columns.shape makes elements of them",
    "bad_box": "columns.box names the sides in pairs, the low one first: lo1, hi1, lo2, hi2",
    "no_shape": "columns.shape names a column of WKT, WKB or GeoJSON geometries, and they must be valid",
    "bad_json": f"format says what the file is: {names_of_formats()}",
    "no_json_object": f"format says what the file is: {names_of_formats()}",
    "bad_utf8": "the file must be UTF-8: convert it, as with iconv -f LATIN1 -t UTF-8",
    "nul": "the file must be UTF-8, without NUL bytes: convert it, as with iconv -t UTF-8",
}


def refuse_unreadable(
    path: Path, stream: StreamSettings, *, name: str | None = None
) -> None:
    """Makes sure that a file is what its stream's settings say, by its first records: 256 KiB at most.

    A format in which a fault in one place spoils all that follows is read to its end.

    Whether a fix is too far ahead of its arrival is not looked at. An empty file is fine.

    Args:
        path: the file, packed by gzip or not.
        stream: the settings.
        name: what people call the file; None: by its path.

    Raises:
        ConfigError: the file cannot be opened, or more than half of its first records cannot be read; it says the main
            reason, the first record that has it, and what is likely to mend it.
    """
    name = str(path) if name is None else name
    _refuse_broken(path, stream, name)
    with open_file(path) as raw:
        source = GzipSource(raw) if is_packed(raw) else raw
        chunk = next(_first(chunks(source, stream, size=_FIRST_BYTES)), None)
    if chunk is None:
        _refuse_one_line(path, stream, name)
        return
    count = len(chunk.spans)
    decoded = decode(
        chunk.payload(0, count), replace(stream, max_ahead_s=None), arrival_us=0
    )
    if _is_mostly_rejected(decoded):
        raise ConfigError(
            _message(name, stream, decoded), hint=_mend(chunk, stream, decoded)
        )


def _is_mostly_rejected(decoded: Decoded) -> bool:
    """Whether more than half cannot be read of the records that are about positions, or none of them all is."""
    reasons = decoded.rejects["reason"]
    others = pc.sum(pc.equal(reasons, Reason.NO_POSITION.name.lower())).as_py() or 0
    about, bad = decoded.rows - others, len(decoded.rejects) - others
    return 2 * bad > about or (about == 0 and others > 0)


def _refuse_broken(path: Path, stream: StreamSettings, name: str) -> None:
    """A fault after which nothing can be read, wherever it is; few formats have one."""
    with open_file(path) as raw:
        source = GzipSource(raw) if is_packed(raw) else raw
        try:
            format_of(stream.format).check_whole(source)
        except ConfigError as error:
            raise ConfigError(f"{name}: {error.message}", hint=error.hint) from None


def _first(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    return (chunk for chunk in chunks if len(chunk.spans))


def _refuse_one_line(path: Path, stream: StreamSettings, name: str) -> None:
    """A file without a record is fine, unless all of it is one line because its line ends are not seen."""
    with open_file(path) as raw:
        head = raw.read(_FIRST_BYTES)
    if b"\r" in head.rstrip(b"\r\n") and b"\n" not in head:
        message = f"{name} has no record for stream {stream.name!r}: its lines end in a carriage return alone"
        raise ConfigError(
            message,
            hint="convert it, as with tr '\\r' '\\n'; --force puts it into the log all the same",
        )


def _message(name: str, stream: StreamSettings, decoded: Decoded) -> str:
    reason = _main_reason(decoded)
    raw = decoded.rejects.filter(pc.equal(decoded.rejects["reason"], reason))["raw"][
        0
    ].as_py()
    shown = raw.decode("utf-8", "replace")[:_SHOWN]
    what = f"{len(decoded.rejects):,} of the first {decoded.rows:,} records of {name}"
    return f"{what} are nothing that stream {stream.name!r} can read: mostly {reason}, such as {shown!r}"


def _main_reason(decoded: Decoded) -> str:
    counts = pc.value_counts(decoded.rejects["reason"].combine_chunks()).to_pylist()
    return str(max(counts, key=lambda count: count["counts"])["values"])


def _mend(chunk: Chunk, stream: StreamSettings, decoded: Decoded) -> str:
    """What is likely to mend it."""
    head = chunk.header or chunk.payload(0, 1)
    reason = _main_reason(decoded)
    mend = _MENDS.get(reason, "compare the file with the stream's settings")
    if head.startswith(_UTF16):
        mend = "the file is UTF-16: convert it, as with iconv -f UTF-16 -t UTF-8"
    else:
        mend = format_of(stream.format).mend(reason, head, stream) or mend
    return f"{mend}; --force puts it into the log all the same"
