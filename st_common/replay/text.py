"""Files of text as all formats read them: UTF-8, with line feeds.

UTF-16 and lines that end in a carriage return alone cannot be cut into records by their bytes, so they are written
anew on their way in. All other encodings stand in the log as they came (`formats.encodings`).
"""

import codecs

from st_common.formats.format_settings import Source

_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
HEAD_BYTES = 1 << 16
_LOOKED_AT, _LEAST_LOOKED_AT, _FEW = 512, 16, 0.1


class Resumed:
    """A source from its start, of which the first bytes have been read."""

    def __init__(self, head: bytes, source: Source) -> None:
        self._head, self._source = head, source

    def read(self, size: int) -> bytes:
        """The next bytes, `size` at most."""
        if not self._head:
            return self._source.read(size)
        data, self._head = self._head[:size], self._head[size:]
        return data


class LineFeeds:
    """A source with a line feed for each carriage return."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def read(self, size: int) -> bytes:
        """The next bytes, `size` at most."""
        return self._source.read(size).replace(b"\r", b"\n")


class FromUtf16:
    """A source of UTF-16 as UTF-8. What is no UTF-16 becomes bytes that are no UTF-8, so that its record is a reject.

    Args:
        source: the bytes.
        encoding: `utf-16-le` or `utf-16-be`.
    """

    def __init__(self, source: Source, encoding: str) -> None:
        self._source, self._ready = source, b""
        self._begun = self._ended = False
        self._decoder = codecs.getincrementaldecoder(encoding)("surrogatepass")

    def read(self, size: int) -> bytes:
        """The next bytes, `size` at most."""
        while len(self._ready) < size and not self._ended:
            data = self._source.read(size)
            self._ended = not data
            self._ready += self._decoded(data)
        given, self._ready = self._ready[:size], self._ready[size:]
        return given

    def _decoded(self, data: bytes) -> bytes:
        try:
            text = self._decoder.decode(data, final=self._ended)
        except UnicodeDecodeError:  # half a character at the end, or half of a pair
            self._ended = True
            return b"\xff"
        text = text if self._begun else text.removeprefix("\ufeff")
        self._begun = True
        return text.encode("utf-8", "surrogatepass")


def as_text(head: bytes, source: Source, encoding: str | None) -> Source | None:
    """A source that has to be written anew on its way in; None: it can be read as it is.

    Args:
        head: its first bytes, at most HEAD_BYTES.
        source: all of it.
        encoding: that of the stream; None: nobody knows.
    """
    utf16 = utf16_of(head)
    if utf16 is None and encoding is not None and encoding.startswith("utf-16"):
        utf16 = "utf-16-be" if encoding.endswith("be") else "utf-16-le"
    if utf16 is not None:
        plain = FromUtf16(source, utf16)
        start = plain.read(HEAD_BYTES)
        resumed = Resumed(start, plain)
        return LineFeeds(resumed) if _ends_in_returns(start) else resumed
    return LineFeeds(source) if _ends_in_returns(head) else None


def utf16_of(head: bytes) -> str | None:
    """Which UTF-16 the first bytes of a text are in, by their mark or by their zeros; None: in none."""
    return _UTF16.get(head[:2]) or _without_mark(head)


def _without_mark(head: bytes) -> str | None:
    """Which UTF-16 it is where no mark says so: of texts of the West every other byte is 0."""
    some = head[:_LOOKED_AT]
    if len(some) < _LEAST_LOOKED_AT:
        return None
    zeros = [some[at::2].count(0) / len(some[at::2]) for at in (0, 1)]
    if min(zeros) > _FEW or max(zeros) < 1 - _FEW:
        return None
    return "utf-16-be" if zeros[0] > zeros[1] else "utf-16-le"


def _ends_in_returns(head: bytes) -> bool:
    return b"\r" in head.rstrip(b"\r\n") and b"\n" not in head and b"\0" not in head
