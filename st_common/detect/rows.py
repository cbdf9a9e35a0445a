"""The records of a sample as texts by column, whatever their format is."""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from st_common.config.stream import StreamSettings
from st_common.formats.encodings import as_utf8
from st_common.formats.stamped import plain_lines

Rows = Sequence[Mapping[str, str]]

_MOST = 5_000  # records of each payload


def rows_of(
    payloads: Sequence[bytes], stream: StreamSettings, names: Sequence[str]
) -> list[dict[str, str]]:
    """The first records of each payload.

    Args:
        payloads: whole records, as segments have them.
        stream: how they are separated.
        names: of the columns, where records do not name them.
    """
    read = {"parquet": _of_arrow, "geojson": _of_features, "ndjson": _of_objects}
    if stream.format in read:
        return [row for one in payloads for row in read[stream.format](one)]
    return [row for one in payloads for row in _of_text(one, stream, names)]


def _of_text(
    payload: bytes, stream: StreamSettings, names: Sequence[str]
) -> Iterator[dict[str, str]]:
    """Lines with as many fields as there are columns; the header is none of them, also where it comes again."""
    plain = as_utf8(payload, stream.encoding)
    text = io.StringIO(plain.decode("utf-8-sig", "replace"))
    table = csv.reader(
        text,
        delimiter=stream.delimiter,
        quotechar=stream.quote or None,
        quoting=csv.QUOTE_MINIMAL if stream.quote else csv.QUOTE_NONE,
    )
    left = _MOST
    try:
        for cells in table:
            row = [cell.strip() for cell in cells]
            if len(row) != len(names) or row == list(names):
                continue
            yield dict(zip(names, row, strict=True))
            left -= 1
            if not left:
                return
    except csv.Error:  # a field that is longer than Python's csv allows
        return


def _of_objects(payload: bytes) -> list[dict[str, str]]:
    return [flat(one) for one in _objects(payload)]


def _of_features(payload: bytes) -> list[dict[str, str]]:
    return rows_of_features(_objects(payload))


def _objects(payload: bytes) -> list[dict[str, Any]]:
    values = []
    for line in plain_lines(payload).splitlines()[:_MOST]:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            values.append(value)
    return values


def rows_of_features(features: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """The properties of features, and the id of their own where each has one."""
    rows = [_properties(one) for one in features]
    if features and all(one.get("id") is not None for one in features):
        own = [str(one["id"]) for one in features]
        rows = [{"id": name, **row} for name, row in zip(own, rows, strict=True)]
    return rows


def _properties(feature: Mapping[str, Any]) -> dict[str, str]:
    """The properties of a feature; `id` alone would be the feature's own."""
    own = feature.get("properties")
    values = flat(own) if isinstance(own, dict) else {}
    return {
        "properties.id" if name == "id" else name: one for name, one in values.items()
    }


def _of_arrow(payload: bytes) -> list[dict[str, str]]:
    with pa.ipc.open_stream(payload) as stream:
        table = stream.read_all()
    return [flat(record) for record in table.slice(0, _MOST).to_pylist()]


def flat(record: Mapping[str, Any], before: str = "") -> dict[str, str]:
    """Values as texts, by their paths: `VP.veh`; lists are left out."""
    texts: dict[str, str] = {}
    for name, value in record.items():
        if isinstance(value, dict):
            texts |= flat(value, f"{before}{name}.")
        elif not isinstance(value, list):
            texts[f"{before}{name}"] = _text(value)
    return texts


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if isinstance(value, datetime) else str(value)
