"""Lines with a stamp in front of each, as loggers write them: when the line was received.

2025-11-24T08:00:00.123Z {"id":"a",..}      [2025-11-24 09:00:00 +01:00] {"id":"a",..}      1764000000.5 MSG,3,..
"""

import re

import pyarrow as pa
import pyarrow.compute as pc

from st_common.formats.numbers import Mask, mask

RECEIVED = "received"
"""The column of stamps."""
STAMP = r"\[?(?P<received>[0-9][0-9A-Za-z.,:+ -]{6,39}?)\]?[:;,|]?[ \t]+"
"""A date and a time, or a number that counts from 1970, and what stands behind it."""
_OBJECT = rf"^{STAMP}(?P<object>\{{)"


def is_stamped(texts: pa.Array) -> Mask:
    """Which lines (binary) are a stamp and a JSON object."""
    return mask(pc.match_substring_regex(texts, _OBJECT))


def with_received(texts: pa.Array) -> pa.Array:
    """Stamped lines as objects that have the stamp as `received`."""
    inside = pc.replace_substring_regex(
        texts, rf"^{STAMP}\{{\s*", rf'{{"{RECEIVED}":"\1",'
    )
    return pc.replace_substring_regex(inside, r'^(\{"received":"[^"]*"),(\})', r"\1\2")


_HEAD_OBJECT = re.compile(rf"^{STAMP}\{{[ \t]*".encode(), re.MULTILINE)
_HEAD_MESSAGE = re.compile(
    rf"^{STAMP}(?=(?:MSG|SEL|ID|AIR|STA|CLK),)".encode(), re.MULTILINE
)


def is_stamped_text(text: bytes) -> bool:
    """Whether the first line of a text has a stamp in front."""
    return (_HEAD_OBJECT.match(text) or _HEAD_MESSAGE.match(text)) is not None


def plain_lines(text: bytes) -> bytes:
    """A text without the stamps in front of its lines; those in front of objects become `received`, as above."""
    if _HEAD_OBJECT.match(text):
        plain = _HEAD_OBJECT.sub(rb'{"received":"\g<received>",', text)
        return re.sub(
            rb'^(\{"received":"[^"]*"),\}', rb"\1}", plain, flags=re.MULTILINE
        )
    return _HEAD_MESSAGE.sub(b"", text) if _HEAD_MESSAGE.match(text) else text
