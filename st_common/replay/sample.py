"""The sample by which a file is judged: the first, the middle and the last of its records.

`fairway check`, `replay`, `capture` and `serve` look at the same records of the same bytes, so that what one of them
promises no other refuses. A file of lines is read at three places; of what has no places (packed, a document, Parquet)
one in some portions is kept as it is read to its end.

    first 256 KiB | .. | 256 KiB of the middle | .. | last 256 KiB
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from st_common.config.stream import StreamSettings
from st_common.formats.chunk import Chunk
from st_common.formats.format_settings import Source
from st_common.formats.registry import format_of
from st_common.formats.said_before import SaidBefore, also
from st_common.replay.chunks import chunks
from st_common.replay.source import Opened, name_of, opened, opened_bytes

PART_BYTES = 1 << 18
"""Of the first, of the middle and of the last."""
_MOST_KEPT = 16  # portions, of which one is the middle
_HEAD_BYTES = 1 << 12
_MOST_READ = 1 << 30  # bytes, of what is read to its end


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Some records of a file or of a payload.

    Attributes:
        payloads: whole records, as segments have them.
        head: the first bytes: a header, or a record.
        is_whole: whether these are all records that there are.
    """

    payloads: tuple[bytes, ...]
    head: bytes
    is_whole: bool


def sample_of(path: Path, stream: StreamSettings) -> Sample:
    """The sample of a file.

    Args:
        path: the file, packed by gzip or not.
        stream: how its records are separated.

    Raises:
        ConfigError: it cannot be read, or is not of that format.
    """
    with opened(path, encoding=stream.encoding) as file:
        return _owned(_sampled(file, stream), stream, name_of(path))


def sample_of_bytes(
    data: bytes, stream: StreamSettings, *, is_whole: bool = True
) -> Sample:
    """The sample of bytes that came by a network.

    Args:
        data: packed by gzip or not.
        stream: how its records are separated.
        is_whole: whether these are all bytes; else the last record, which may be cut, is left out.

    Raises:
        ConfigError: they are not of that format.
    """
    if not is_whole and _is_of_lines(data[:_HEAD_BYTES], stream):
        data = data[: format_of(stream.format).whole_bytes(data)]
    file = opened_bytes(data, encoding=stream.encoding)
    return _owned(_sampled(file, stream, is_cut=not is_whole), stream, "source")


def _owned(sample: Sample, stream: StreamSettings, name: str) -> Sample:
    """A sample that says whose its records are, where its writer would."""
    if stream.columns.object_from is None:
        return sample
    before = SaidBefore(owners=(name,))
    payloads = tuple(also(payload, before) for payload in sample.payloads)
    return replace(sample, payloads=payloads)


def _sampled(file: Opened, stream: StreamSettings, *, is_cut: bool = False) -> Sample:
    head, left_out = file.head[:_HEAD_BYTES], is_cut
    source: Source = file.source
    if file.plain is None:
        source = _Bounded(source)
    elif _is_of_lines(head, stream) and file.size > 3 * PART_BYTES:
        source, left_out = io.BytesIO(_three_places(file.plain, file.size)), True
    cut = _portions(chunks(source, stream, size=PART_BYTES))
    kept, skipped = _spread(cut)
    drops_last = is_cut and not _is_of_lines(head, stream)
    payloads = tuple(
        chunk.payload(0, len(chunk.spans)) for part in kept for chunk in part
    )
    if drops_last and kept:
        payloads = (*payloads[:-1], *_without_last(kept[-1][-1]))
    first = kept[0][0] if kept else None
    begun = b"" if first is None else first.header or first.payload(0, 1)
    return Sample(
        payloads=payloads,
        head=(begun or head)[:_HEAD_BYTES],
        is_whole=not (skipped or left_out),
    )


def _is_of_lines(head: bytes, stream: StreamSettings) -> bool:
    """Whether records are lines, so that a file can be read from any of them on; a document belongs together."""
    begun = head + b"."
    is_cut_at_lines = format_of(stream.format).whole_bytes(begun) < len(begun)
    return is_cut_at_lines and stream.records is None


def _three_places(raw: IO[bytes], size: int) -> bytes:
    """The first, the middle and the last lines of a file, each whole."""
    first = raw.read(PART_BYTES)
    first = first[: first.rfind(b"\n") + 1] or first
    pieces = [first]
    for start in ((size - PART_BYTES) // 2, size - PART_BYTES):
        raw.seek(start)
        piece = raw.read(PART_BYTES)
        piece = piece[piece.find(b"\n") + 1 :]
        is_last = start + PART_BYTES >= size
        pieces.append(piece if is_last else piece[: piece.rfind(b"\n") + 1])
    return b"".join(pieces)


def _portions(cut: Iterator[Chunk]) -> Iterator[list[Chunk]]:
    """Chunks in portions of about `PART_BYTES`."""
    portion: list[Chunk] = []
    held = 0
    for chunk in cut:
        if not len(chunk.spans):
            continue
        portion.append(chunk)
        held += int(chunk.spans.ends[-1] - chunk.spans.starts[0])
        if held >= PART_BYTES // 2:
            yield portion
            portion, held = [], 0
    if portion:
        yield portion


def _spread(cut: Iterator[list[Chunk]]) -> tuple[list[list[Chunk]], bool]:
    """The first three portions of a few, else the first, the middle and the last one; and whether some are left out.

    Of those between at most `_MOST_KEPT` are held, each as far from the next as all others.
    """
    first = next(cut, None)
    if first is None:
        return [], False
    between: list[list[Chunk]] = []
    last: list[Chunk] | None = None
    step = number = 1
    for portion in cut:
        if last is not None:
            if number % step == 0:
                between.append(last)
            number += 1
        last = portion
        if len(between) > _MOST_KEPT:
            between, step = between[::2], 2 * step
    middle = [between[len(between) // 2]] if between else []
    kept = [first, *middle, *([] if last is None else [last])]
    return kept, number > 2


def _without_last(chunk: Chunk) -> tuple[bytes, ...]:
    """A chunk without its last record, which is cut."""
    count = len(chunk.spans) - 1
    return (chunk.payload(0, count),) if count else ()


class _Bounded:
    """A source that ends after some bytes: one that unpacks to more than a disk holds."""

    def __init__(self, source: Source) -> None:
        self._source, self._left = source, _MOST_READ

    def read(self, size: int) -> bytes:
        """The next bytes."""
        data = self._source.read(min(size, self._left))
        self._left -= len(data)
        return data
