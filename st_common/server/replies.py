"""Answers of endpoints: values and tables as JSON, and what went wrong."""

import json
import logging
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from starlette.responses import JSONResponse, Response

from st_common.answers.json_rows import json_line
from st_common.client.result import ARROW, GEOMETRY, to_stream
from st_common.errors import (
    ContractError,
    FairwayError,
    FencedError,
    LogError,
    QueryError,
    StateError,
    StorageError,
    TransientError,
)
from st_common.server.connections import is_short
from st_common.server.installation import Installation
from st_common.server.parameters import (
    AbsentError,
    Parameters,
    RejectedError,
    ReusedKeyError,
    TooLargeError,
    UnsupportedError,
)

_LOG = logging.getLogger(__name__)
_STATUS: tuple[tuple[type[FairwayError], int], ...] = (
    (AbsentError, 404),
    (TooLargeError, 413),
    (UnsupportedError, 415),
    (RejectedError, 422),
    (ReusedKeyError, 422),
    (FencedError, 409),
    (StorageError, 503),
    (TransientError, 503),
    (LogError, 500),  # what lies in the home is damaged: no request would mend it
    (StateError, 500),
    (ContractError, 500),
)
_WRONG, _BROKEN, _SHORT = 400, 500, 503
_REQUESTS = {
    "query list": "GET /v1/queries",
    "layer list": "GET /v1/layers",
    "streams list": "GET /v1/status",
    "status": "GET /v1/status",
    "changes": "GET /v1/changes/Q",
    "verify": "POST /v1/verify",
}
_COMMAND = re.compile(
    rf"`fairway ({'|'.join(_REQUESTS)})`|\bfairway ({'|'.join(_REQUESTS)})(?=$|[,;)])"
)
_RUN = re.compile(r"`fairway run (\S+)` first")


GEOJSON = "application/geo+json"


def value_reply(
    value: Mapping[str, Any], status: int = 200, media: str = "application/json"
) -> Response:
    """A value as JSON: times are ISO 8601 in UTC, numbers that JSON does not have are texts."""
    return Response(json_line(value), status, media_type=media)


def rows_reply(asked: Parameters, rows: pa.Table, **beside: Any) -> Response:
    """The rows of a table as `rows` of a JSON object, with other values beside them; or a stream of Arrow.

    Places are `x` and `y` in JSON, and a column `geometry` of GeoArrow in Arrow: who asks says which he accepts.
    """
    if asked.headers.get("accept") == ARROW:
        return Response(to_stream(rows), media_type=ARROW)
    if GEOMETRY in rows.column_names and pa.types.is_struct(rows[GEOMETRY].type):
        rows = _with_xy(rows)
    return value_reply({**beside, "rows": plain_rows(rows)})


def _with_xy(rows: pa.Table) -> pa.Table:
    """Places as two columns of numbers."""
    points = rows[GEOMETRY].combine_chunks()
    rows = rows.drop_columns([GEOMETRY])
    for name in ("x", "y"):
        if name not in rows.column_names:
            values = pc.struct_field(points, name)
            known = pc.if_else(points.is_valid(), values, pa.scalar(None, pa.float64()))
            rows = rows.append_column(name, known)
    return rows


def plain_rows(rows: pa.Table) -> list[dict[str, Any]]:
    """Rows as JSON values; `fields`, which is JSON in tables, as what it holds."""
    try:
        values: list[dict[str, Any]] = rows.to_pylist()
    except (
        ValueError,
        OverflowError,
    ):  # a time behind the year 9999, or in fractions of a microsecond
        raise QueryError(
            "a value has no form in JSON", hint=f"CAST it to VARCHAR, or accept {ARROW}"
        ) from None
    if "fields" in rows.column_names and pa.types.is_string(rows["fields"].type):
        for one in values:
            one["fields"] = _unpacked(one["fields"])
    return values


def _unpacked(text: str | None) -> Any:
    """What a text of JSON holds; a text that is none, as SQL may make of it, stays."""
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return text


def refusal(
    error: str, hint: str, status: int, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """What is wrong, and what to do."""
    return JSONResponse({"error": error, "hint": hint}, status, headers)


def error_reply(place: Installation, error: Exception) -> Response:
    """What went wrong: `error` and `hint`, without a path of this machine; of a defect nothing but that.

    What a hint says to type at a terminal it names as a request, where there is one.
    """
    if is_short(error):
        wrong, headers = "the server is short of files or memory", {"Retry-After": "1"}
        return refusal(wrong, "try again", _SHORT, headers)
    if not isinstance(error, FairwayError):
        _LOG.error("a defect", exc_info=error)
        return refusal("the server met a defect", "its log has more", _BROKEN)
    status = next(
        (status for kind, status in _STATUS if isinstance(error, kind)), _WRONG
    )
    hint = by_http(place.hidden(error.hint))
    told = {"error": place.hidden(error.message), "hint": hint}
    if isinstance(error, RejectedError):
        told |= error.told
    return JSONResponse(told, status)


def iso_of(when: datetime) -> str:
    """A time in UTC as the page writes it: ISO 8601, to the millisecond."""
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def by_http(hint: str) -> str:
    """A hint for people at a terminal, for programs: `see fairway query list` becomes `see GET /v1/queries`.

    Commands without a request, such as `fairway streams reset S`, stay: whoever runs the server types them.
    """
    hint = _RUN.sub(
        r"its engine has not read fixes yet: `GET /v1/status` says how \1 is", hint
    )
    return _COMMAND.sub(_request_of, hint)


def _request_of(found_at: re.Match[str]) -> str:
    if found_at[1] is not None:
        return f"`{_REQUESTS[found_at[1]]}`"
    return _REQUESTS[found_at[2]]
