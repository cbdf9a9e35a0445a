"""Whether a file is what its stream's settings say, found on its first records before any of it goes into the log."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from st_common.capture.chunks import chunks
from st_common.capture.source import is_packed, open_file
from st_common.capture.tally import Tally
from st_common.decode.gzipped import GzipSource
from st_common.errors import ConfigError
from st_common.formats.chunk import Chunk
from st_common.formats.registry import format_of
from st_common.settings import StreamSettings

_FIRST_BYTES = 1 << 18


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
    tally = Tally()
    payload, head = chunk.payload(0, len(chunk.spans)), chunk.payload(0, 1)
    of_any_time = replace(stream, max_ahead_s=None)
    tally.add(payload, chunk.header or head, of_any_time, arrival_us=0)
    if tally.is_mostly_rejected:
        of_what = f"the first {tally.records:,} records of {name}"
        raise ConfigError(
            tally.message(stream.name, of_what),
            hint=f"{tally.mend(stream)}; --force puts it into the log all the same",
        )


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
