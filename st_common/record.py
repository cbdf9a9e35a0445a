"""Records as JSON values: frozen dataclasses, fast, and small ones with a checksum.

A registry of 100,000 queries writes and reads each of them.
"""

import json
import zlib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

_SUM = "crc32"

_KNOWN: dict[type[Any], tuple[tuple[str, Any], ...]] = {}


def values_of(record: Any) -> dict[str, Any]:
    """The fields of a dataclass that make its value, by name, without those that have their default.

    Args:
        record: a dataclass; fields with `compare=False` are left out.

    Returns:
        The values themselves, not copies.
    """
    known = _KNOWN.get(type(record)) or _learned(type(record))
    return {
        name: value
        for name, default in known
        if (value := getattr(record, name)) != default
    }


def _learned(kind: type[Any]) -> tuple[tuple[str, Any], ...]:
    _KNOWN[kind] = tuple(
        (field.name, field.default) for field in fields(kind) if field.compare
    )
    return _KNOWN[kind]


def with_sum(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record with the checksum of its values: JSON says nothing when a digit of it was changed (SPEC S2)."""
    return {**record, _SUM: _sum_of(record)}


def without_sum(record: dict[str, Any]) -> dict[str, Any] | None:
    """The record that `with_sum` was given; None when its values were changed.

    One without a checksum, of an older version, is as it is.
    """
    expected = record.pop(_SUM, None)
    return record if expected in (None, _sum_of(record)) else None


def _sum_of(record: Mapping[str, Any]) -> int:
    plain = {name: value for name, value in record.items() if name != _SUM}
    return zlib.crc32(json.dumps(plain, sort_keys=True).encode())
