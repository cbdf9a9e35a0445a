"""Rows as JSON: times are ISO 8601 in UTC with Z, bytes are hexadecimal, and every number is one that JSON has."""

import json
import math
import re
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

_UNSAFE = re.compile("[\x80-\x9f\u2028\u2029\ud800-\udfff]")
"""What JSON allows in a text, and some readers take for the end of a line, or cannot write at all."""


def json_line(row: Mapping[str, Any]) -> str:
    r"""A row as JSON in one line, without its end; infinite and undefined numbers become "inf", "-inf" and "nan".

    {"at": datetime(2024, 1, 1, tzinfo=UTC), "raw": b"\x01\xff", "v": inf}
    {"at": "2024-01-01T00:00:00Z", "raw": "01ff", "v": "inf"}

    Nothing in it ends a line for anybody: all control characters, U+2028, U+2029 and lone surrogates are `\u` escapes.
    """
    try:
        line = json.dumps(row, default=plain, ensure_ascii=False, allow_nan=False)
    # Only a row with such a number is looked through value by value.
    except ValueError:
        line = json.dumps(_without_nan(row), default=plain, ensure_ascii=False)
    return line if line.isascii() else _UNSAFE.sub(_escaped, line)


def _escaped(sign: re.Match[str]) -> str:
    return f"\\u{ord(sign[0]):04x}"


def plain(value: Any) -> Any:
    """A Python value as a JSON value: times in ISO 8601, bytes in hexadecimal, what JSON does not have as text."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    return value if isinstance(value, (int, float, list, dict, bool)) else str(value)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return (
        str(value) if isinstance(value, float) and not math.isfinite(value) else value
    )
