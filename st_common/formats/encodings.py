"""Texts of other encodings than UTF-8: records are read as UTF-8, and their bytes stay as they came.

Bytes stand in the log as they came, so that another `encoding` can read them anew. UTF-16 alone is written anew on its
way into the log (`replay.text`): its line ends are no bytes of their own.
"""

import codecs
import re
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from st_common.formats.records import Records
    from st_common.formats.spans import Ints

UTF8 = "utf-8"
_WIDE = ("utf-16", "utf-16-le", "utf-16-be")
_KNOWN = re.compile(
    r"ascii|cp\d+|iso8859-\d+|mac-\w+|koi8-\w|tis-620|ptcp154|kz1048"
    r"|shift_jis\w*|gbk|gb2312|gb18030|big5\w*|euc_\w+|johab"
)
_ASCII = bytes(range(128))


def encoding_of(name: str) -> str | None:
    """The encoding of a name, as Python calls it; None: it is none that records can be in.

        windows-1252, cp1252 -> cp1252      latin-1 -> iso8859-1      utf-16 -> utf-16      cp037 (EBCDIC) -> None

    Args:
        name: as people write it.
    """
    try:
        known = codecs.lookup(name).name
    except (LookupError, ValueError):
        return None
    if known in ("utf-8", "utf-8-sig"):
        return UTF8
    if known in _WIDE:
        return known
    if not _KNOWN.fullmatch(known):
        return None
    try:
        return known if _ASCII.decode(known) == _ASCII.decode("ascii") else None
    except UnicodeError:
        return None


def encoding_seen(data: bytes) -> str:
    """The encoding that bytes are likely to be in: UTF-8 where they are that, else the one that most of the West wrote.

    Args:
        data: the beginning of a file, which may be cut inside of a character.
    """
    try:
        codecs.getincrementaldecoder(UTF8)().decode(data)
    except UnicodeDecodeError:
        return UTF8 if b"\0" in data else "windows-1252"
    return UTF8


def is_read_anew(encoding: str) -> bool:
    """Whether bytes of the log have to be decoded from an encoding: what is UTF-16 outside is UTF-8 there."""
    return encoding != UTF8 and encoding not in _WIDE


def as_utf8(data: bytes, encoding: str) -> bytes:
    """Bytes of the log as UTF-8; a byte that stands for no character stays, so that its record is no UTF-8."""
    if not is_read_anew(encoding) or data.isascii():
        return data
    try:
        text = data.decode(encoding, "surrogateescape")
    except UnicodeDecodeError:
        text = data.decode(encoding, "replace")
    return text.encode(UTF8, "surrogateescape")


def as_written(data: bytes, encoding: str) -> bytes:
    """UTF-8 as bytes of the log; what the encoding has no character for is a question mark, what is cut is left out."""
    if not is_read_anew(encoding) or data.isascii():
        return data
    text = data.decode(UTF8, "surrogateescape")
    try:
        return text.encode(encoding, "surrogateescape")
    except UnicodeEncodeError:
        return text.encode(encoding, "replace")


def encoded(text: str, encoding: str) -> bytes:
    """A text that a program puts into a log, as bytes of it.

    Raises:
        ValueError: it has characters that the encoding does not have.
    """
    return text.encode(encoding if is_read_anew(encoding) else UTF8)


def with_own_bytes(records: "Records", encoding: str) -> "Records":
    """Records that were read from `as_utf8`, with their bytes as they stand in the log."""
    if not is_read_anew(encoding):
        return records
    return replace(records, raw=_written(records.raw, encoding))


def _written(
    raw: "Callable[[Ints], pa.Array]", encoding: str
) -> "Callable[[Ints], pa.Array]":
    def in_own_bytes(rows: "Ints") -> "pa.Array":
        import pyarrow as pa

        texts = raw(rows).to_pylist()
        return pa.array([as_written(one, encoding) for one in texts], pa.binary())

    return in_own_bytes
