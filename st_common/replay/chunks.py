"""A file cut into records by the format of its stream."""

from collections.abc import Iterator

from st_common.config.stream import StreamSettings
from st_common.formats.chunk import Chunk
from st_common.formats.format_settings import Source
from st_common.formats.registry import format_of


def chunks(source: Source, stream: StreamSettings, *, size: int) -> Iterator[Chunk]:
    """Cuts a source into chunks of about `size` bytes, from each of which segments can be cut.

    Args:
        source: read portion by portion; never held as a whole.
        stream: its `format` says how, and some of its other settings.
        size: bytes of a chunk; formats raise it to what their records need.

    Yields:
        Chunks with at least one record, in the order of the source.

    Raises:
        ConfigError: the source is not of that format, so that no records can be told in it.
    """
    if stream.skip_lines:
        source = _WithoutFirst(source, stream.skip_lines)
    return format_of(stream.format).chunks(source, stream, size=size)


class _WithoutFirst:
    """A source without its first lines, however long they are."""

    def __init__(self, source: Source, lines: int) -> None:
        self._source, self._left = source, lines

    def read(self, size: int) -> bytes:
        """The next bytes behind these lines, `size` at most; none at the end."""
        data = self._source.read(size)
        while self._left and data:
            *skipped, rest = data.split(b"\n", self._left)
            self._left -= len(skipped)
            kept = b"" if self._left else rest
            data = kept + self._source.read(size - len(kept))
        return data
