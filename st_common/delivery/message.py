"""Changes as they are sent: one JSON object for each, with an id that never changes."""

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from st_common.answers.json_rows import json_line
from st_common.delivery.names import CONTROLS, CONTROLS_RE2, escaped

FORMAT = 1  # counts up when a receiver would have to be changed
_NULL = "~"
_ESCAPES = (("%", "%25"), ("/", "%2F"), (_NULL, "%7E"))
_COLUMNS = (
    "query",
    "query_version",
    "layer_version",
    "object",
    "partner",
    "sign",
    "cause",
    "event_ts",
    "fix_ts",
    "position",
    "seq",
    "value",
    "x",
    "y",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """Changes of a stream in their order, ready to be sent: the rows, and as aligned lists ids, queries, JSON lines."""

    stream: str
    rows: pa.Table
    ids: list[str]
    queries: list[str]
    lines: list[bytes]

    def __len__(self) -> int:
        """How many there are."""
        return len(self.ids)

    def part(self, start: int, end: int) -> "Messages":
        """Those from `start` up to `end`, which is not among them."""
        return Messages(
            stream=self.stream,
            rows=self.rows.slice(start, end - start),
            ids=self.ids[start:end],
            queries=self.queries[start:end],
            lines=self.lines[start:end],
        )


def change_ids(rows: pa.Table) -> pa.ChunkedArray:
    """The id of each change, a string: query/version/object/partner/position/seq.

    In a text `%`, `/` and `~` are written `%25`, `%2F` and `%7E`, and control characters and ends of lines the same
    way, by the bytes of UTF-8; a partner that is null is `~`. So two changes have
    one id only when they are the same change, and a change that is committed again has the id that it had (SPEC X7).
    """
    return pc.binary_join_element_wise(
        _escaped(rows["query"]),
        rows["query_version"].cast(pa.string()),
        _escaped(rows["object"]),
        pc.fill_null(_escaped(rows["partner"]), _NULL),
        rows["position"].cast(pa.string()),
        rows["seq"].cast(pa.string()),
        "/",
    )


def messages(rows: pa.Table, stream: str) -> Messages:
    """Changes of a stream as they are sent.

    A line is JSON without an end of line: `id`, `stream`, the columns of the contract `changes` but for its partition,
    and `fields` as an object. Times are ISO 8601 in UTC; numbers that JSON does not have are "inf", "-inf", "nan".
    """
    ids = change_ids(rows).to_pylist()
    records = rows.select(_COLUMNS).to_pylist()
    fields = rows["fields"].to_pylist()
    lines = [
        json_line(
            {"id": own, "stream": stream, **record, "fields": _object(text)}
        ).encode()
        for own, record, text in zip(ids, records, fields, strict=True)
    ]
    return Messages(
        stream=stream,
        rows=rows,
        ids=ids,
        queries=rows["query"].to_pylist(),
        lines=lines,
    )


def _escaped(column: pa.ChunkedArray) -> pa.ChunkedArray:
    for plain, written in _ESCAPES:
        column = pc.replace_substring(column, plain, written)
    if not pc.any(pc.match_substring_regex(column, CONTROLS_RE2)).as_py():
        return column
    texts = [
        None if text is None else escaped(text, CONTROLS) for text in column.to_pylist()
    ]
    return pa.chunked_array([pa.array(texts, pa.string())])


def _object(text: str | None) -> Any:
    return None if text is None else json.loads(text)
