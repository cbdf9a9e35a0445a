"""Names and ids of others as parts of an id, or of a topic: what means something there, or to nobody, is escaped."""

import re

_RANGES = (
    (0x00, 0x1F),
    (0x7F, 0x9F),
    (0x2028, 0x2029),
    (0xFDD0, 0xFDEF),
    *((plane << 16 | 0xFFFE, plane << 16 | 0xFFFF) for plane in range(17)),
)
"""Control characters, ends of lines, and what is no character: MQTT forbids most of them in its texts."""
_SURROGATES = (0xD800, 0xDFFF)  # none is in a text of Arrow
CONTROLS_RE2 = "[" + "".join(rf"\x{{{a:x}}}-\x{{{b:x}}}" for a, b in _RANGES) + "]"
"""The same as a pattern for Arrow."""


def signs(others: str = "") -> re.Pattern[str]:
    """What is escaped: some signs besides those that are nowhere written as they are.

    Args:
        others: the signs, such as `%/~`.
    """
    ranges = "".join(rf"\U{a:08x}-\U{b:08x}" for a, b in (*_RANGES, _SURROGATES))
    return re.compile(f"[{re.escape(others)}{ranges}]")


CONTROLS = signs()


def escaped(text: str, what: re.Pattern[str]) -> str:
    """The text with some signs as `%` and two digits for each of their bytes in UTF-8.

    Args:
        text: the text.
        what: the signs, as `signs` gives them.
    """
    return what.sub(_percent, text)


def _percent(sign: re.Match[str]) -> str:
    content = sign[0].encode("utf-8", "surrogatepass")
    return "".join(f"%{byte:02X}" for byte in content)
