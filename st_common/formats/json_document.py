"""What a JSON document says beside its list of records, given to each of them.

{"now": 1753571941.0, "aircraft": [{"hex": "3c0001"}]}   ->   {"document":{"now":1753571941.0},"hex": "3c0001"}
{"icao": "3c0001", "trace": [[0, 47.1, 8.2]]}            ->   {"document":{"icao":"3c0001"},"row":[0, 47.1, 8.2]}

So a record stands alone, wherever the list is cut.
"""

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.formats.spans import lines

DOCUMENT = "document"
"""The key of a record under which it has what its document says."""
ROW = "row"
"""The key of a record that is an array."""
_PLAIN = (str, int, float, bool)


def said_beside(
    head: bytes, tail: bytes | None, levels: int, kept: Sequence[str]
) -> bytes:
    """The member that records are given, with a comma behind; nothing where the document says none of it.

    Args:
        head: the document up to its list.
        tail: what stands behind the list; None: nobody knows yet.
        levels: how many objects the list lies in.
        kept: the paths of what is given to records.
    """
    if not kept:
        return b""
    try:
        document = json.loads(head + b"[]" + (b"}" * levels if tail is None else tail))
    except (ValueError, RecursionError):
        return b""
    said: dict[str, Any] = {}
    for path in kept:
        _put(said, path.split("."), document)
    return f'"{DOCUMENT}":{json.dumps(said)},'.encode() if said else b""


def _put(said: dict[str, Any], path: Sequence[str], document: Any) -> None:
    """Puts the value at a path of the document where it stands there."""
    *outer, name = path
    for step in outer:
        document = document.get(step) if isinstance(document, dict) else None
    value = document.get(name) if isinstance(document, dict) else None
    if not isinstance(value, _PLAIN) or _is_no_number(value):
        return
    for step in outer:
        said = said.setdefault(step, {})
    said[name] = value


def with_said(elements: bytes, said: bytes) -> bytes:
    """Lines of elements, each object with that member in front of its own; an array stands behind it."""
    if not said or not elements:
        return elements
    texts = lines(np.frombuffer(elements, np.uint8)).texts()
    inside = said.replace(b"\\", b"\\\\")
    empty = pc.replace_substring_regex(
        texts, r"^[ \t]*\{[ \t]*\}", b"{" + inside.removesuffix(b",") + b"}"
    )
    is_empty = pc.not_equal(empty, texts)
    filled = pc.replace_substring_regex(texts, r"^[ \t]*\{", b"{" + inside)
    row = b"{" + inside + f'"{ROW}":'.encode() + rb"\1}"
    filled = pc.replace_substring_regex(filled, r"^[ \t]*(\[(?s:.*))$", row)
    joined = pc.binary_join(
        pa.ListArray.from_arrays(
            pa.array([0, len(texts)], pa.int32()), pc.if_else(is_empty, empty, filled)
        ),
        b"\n",
    )
    whole: bytes = joined[0].as_py()
    return whole + b"\n"


def _is_no_number(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
