"""Rows as JSON: times are ISO 8601 in UTC with Z, bytes are hexadecimal, and every number is one that JSON has."""

import json
import math
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any


def json_line(row: Mapping[str, Any]) -> str:
    """A row as JSON in one line, without its end; infinite and undefined numbers become "inf", "-inf" and "nan"."""
    try:
        return json.dumps(row, default=plain, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return json.dumps(_without_nan(row), default=plain, ensure_ascii=False)


def plain(value: Any) -> Any:
    """A value of Python in the values of JSON."""
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
