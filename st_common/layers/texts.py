"""Text files as UTF-8 with line feeds, whatever they are written in: read as records of streams are."""

import codecs
from pathlib import Path

from st_common.capture.source import opened
from st_common.errors import ConfigError, LayerError
from st_common.formats.encodings import UTF8, as_utf8, encoding_seen

_AT_ONCE = 1 << 20


def read_text(file: Path) -> tuple[bytes, list[str]]:
    """The bytes of a text file in UTF-8, without a byte order mark, and what was found out about them.

    What is no UTF-8 is read as Windows-1252, which is told; UTF-16 as what it is.

    Raises:
        LayerError: the file cannot be read, or is no text.
    """
    try:
        with opened(file) as source:
            parts = iter(lambda: source.source.read(_AT_ONCE), b"")
            data = b"".join(parts).removeprefix(codecs.BOM_UTF8)
    except ConfigError as error:
        raise LayerError(error.message, hint=error.hint) from None
    if b"\0" in data:
        raise LayerError(f"{file} is no text", hint="save it as CSV")
    encoding = encoding_seen(data)
    if encoding == UTF8:
        return data, []
    return as_utf8(data, encoding), [f"the file is no UTF-8: it is read as {encoding}"]
