"""A source of which the first bytes were looked at, and which is read from its beginning all the same."""

from st_common.formats.format_settings import Source


class Begun:
    """Gives the bytes of a source.

    Args:
        source: the source.
        size: how many of its first bytes `head` has, or fewer if it ends before.
    """

    def __init__(self, source: Source, *, size: int) -> None:
        self.head = b""
        while len(self.head) < size and (more := source.read(size - len(self.head))):
            self.head += more
        self._rest, self._source = self.head, source

    def read(self, size: int) -> bytes:
        """The next bytes, `size` at most; none at the end."""
        if not self._rest:
            return self._source.read(size)
        part, self._rest = self._rest[:size], self._rest[size:]
        missing = size - len(part)
        return part + self._source.read(missing) if missing and not self._rest else part
