"""What answers look like, as schemas of OpenAPI 3.0: by the method and the address of their endpoint.

Objects say which keys they have and which of these may lack; values with keys of their own (attributes, counts by
reason) are objects of any keys. A test holds real answers against all of it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_WHOLE: Schema = {"type": "integer"}
_NUMBER: Schema = {"type": "number"}
_TRUTH: Schema = {"type": "boolean"}
_TIME: Schema = {"type": "string", "format": "date-time"}
_ANYTHING: Schema = {"nullable": True}


def _or_null(of: Schema) -> Schema:
    return {**of, "nullable": True}


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def _by_name(of: Schema) -> Schema:
    return {"type": "object", "additionalProperties": of}


def _object(may: Mapping[str, Schema] | None = None, /, **must: Schema) -> Schema:
    """An object with these keys, and with those of `may` where there is something to say."""
    properties = {**must, **(may or {})}
    needed = {"required": [*must]} if must else {}  # OpenAPI 3.0 takes no empty list
    return {"type": "object", **needed, "properties": properties}


_ANY = _by_name(_ANYTHING)
_COUNTS = _by_name(_WHOLE)
_TEXTS = _list(_TEXT)
_ROWS = _list(_ANY)
_BOX = _list(_NUMBER)
_LATE = {"warnings": _list(_ANYTHING)}

ERROR = _object({"hint": _TEXT}, error=_TEXT)
"""What was wrong, and what to do."""

_REJECT = _object(
    {"line": _WHOLE, "column": _WHOLE, "offset": _WHOLE, "raw": _TEXT},
    record=_WHOLE,
    reason=_TEXT,
)
_POSTED = _object(
    {
        "reasons": _COUNTS,
        "rejects": _list(_REJECT),
        "position": _or_null(_WHOLE),
        "without_position": _WHOLE,
        "warning": _TEXT,
        "hint": _TEXT,
    },
    records=_WHOLE,
    accepted=_WHOLE,
    rejected=_WHOLE,
)
_REFUSED = _object(
    {"hint": _TEXT, "reasons": _COUNTS, "rejects": _list(_REJECT)},
    error=_TEXT,
    records=_WHOLE,
    accepted=_WHOLE,
    rejected=_WHOLE,
)
_DONE = _object(
    queries=_list(_object(action=_TEXT, name=_TEXT, version=_WHOLE, position=_WHOLE)),
    areas_created=_TEXTS,
    areas_replaced=_TEXTS,
    areas_dropped=_TEXTS,
    streams_created=_TEXTS,
    streams_dropped=_TEXTS,
    notices=_TEXTS,
)
_QUERY: Mapping[str, Schema] = {
    "name": _TEXT,
    "version": _WHOLE,
    "stream": _TEXT,
    "owner": _or_null(_TEXT),
    "state": _TEXT,
    "text": _or_null(_TEXT),
    "why": _or_null(_TEXT),
}
_HISTORY = _object(action=_TEXT, version=_WHOLE, position=_WHOLE, why=_or_null(_TEXT))
_MEMBER = _object(
    object=_TEXT,
    partner=_or_null(_TEXT),
    since_ts=_TIME,
    value=_or_null(_NUMBER),
    fields=_ANYTHING,
    x=_or_null(_NUMBER),
    y=_or_null(_NUMBER),
)
_PLACED = _object(
    {"distance": _NUMBER}, object=_TEXT, event_ts=_TIME, x=_NUMBER, y=_NUMBER
)
_FAULT = _object(outcome=_TEXT, fid=_TEXT, place=_TEXT, reason=_TEXT)
_LAYER = _object(
    layer=_TEXT,
    version=_WHOLE,
    features=_WHOLE,
    rows=_WHOLE,
    by_kind=_COUNTS,
    by_region=_COUNTS,
    box=_BOX,
    attribution=_or_null(_TEXT),
    rejected=_COUNTS,
    repaired=_WHOLE,
    faults=_list(_FAULT),
)
_EXPLAINED = _object(query=_or_null(_TEXT), lines=_TEXTS)
_WHY = _object(
    stream=_TEXT,
    change=_ANY,
    batch=_ANY,
    newest=_WHOLE,
    fix=_ANYTHING,
    joined=_ANYTHING,
    tick=_or_null(_TIME),
    focals=_ANY,
    newcomers=_ANY,
    sentence=_TEXT,
    filtered=_ANYTHING,
    registered=_ANYTHING,
)
_VERIFIED = _object(
    {"position": _WHOLE, "members": _WHOLE, "fixes": _WHOLE, "late": _WHOLE},
    query=_TEXT,
    missing=_WHOLE,
    extra=_WHOLE,
    misplaced=_WHOLE,
    checked=_TRUTH,
    unchecked=_or_null(_TEXT),
    failed=_TRUTH,
    holds=_TRUTH,
)
_VERIFIED_ALL = _object(holds=_TRUTH, queries=_list(_VERIFIED))
_ENGINE: Mapping[str, Schema] = {
    "position": _or_null(_WHOLE),
    "pid": _or_null(_WHOLE),
    "host": _or_null(_TEXT),
    "beat_age_s": _or_null(_NUMBER),
    "beat_us": _or_null(_WHOLE),
    "engine": _TEXT,
    "clock": _or_null(_TIME),
    "clock_us": _or_null(_WHOLE),
    "fixes": _WHOLE,
    "rejects": _WHOLE,
    "late": _WHOLE,
    "double": _WHOLE,
    "cut": _WHOLE,
    "changes": _WHOLE,
    "nulled": _COUNTS,
    "filtered_out": _COUNTS,
    "filtered": _COUNTS,
    "caches": _ANY,
    "workers": _list(_ANY),
}
"""What the engine of a stream has said of itself; nothing before it has run."""
_STREAM = _object(
    {**_ENGINE, **_LATE},
    stream=_TEXT,
    as_of=_TIME,
    state=_TEXT,
    health=_TEXT,
    why=_or_null(_TEXT),
    segments=_WHOLE,
    segments_done=_WHOLE,
    lag_segments=_or_null(_WHOLE),
    lag_s=_or_null(_NUMBER),
    archive_lag_s=_or_null(_NUMBER),
    sources=_list(_ANY),
)
_LINK = _object({"title": _TEXT, "type": _TEXT}, href=_TEXT, rel=_TEXT)
_LINKS = _list(_LINK)
_GEOMETRY = _or_null(_object({"coordinates": _list({})}, type=_TEXT))
_FEATURE = _object(
    {"id": _TEXT, "bbox": _BOX, "links": _LINKS},
    type=_TEXT,
    geometry=_GEOMETRY,
    properties=_or_null(_ANY),
)
_FEATURES = _object(
    {
        "numberMatched": _WHOLE,
        "numberReturned": _WHOLE,
        "timeStamp": _TIME,
        "links": _LINKS,
        "group": _TEXT,
        "dimensions": _ANYTHING,
    },
    type=_TEXT,
    features=_list(_FEATURE),
)
_EXTENT = _object(
    {
        "spatial": _object(bbox=_list(_BOX), crs=_TEXT),
        "temporal": _object(interval=_list(_list(_or_null(_TIME))), trs=_TEXT),
    }
)
_COLLECTION = _object(
    {
        "attribution": _TEXT,
        "extent": _EXTENT,
    },
    id=_TEXT,
    title=_TEXT,
    crs=_TEXTS,
    itemType=_TEXT,
    links=_LINKS,
)
_VISIT = _object(
    query=_TEXT,
    object=_TEXT,
    partner=_or_null(_TEXT),
    from_ts=_TIME,
    to_ts=_or_null(_TIME),
    value=_or_null(_NUMBER),
    cause_in=_TEXT,
    cause_out=_or_null(_TEXT),
)
_PAGE_STATE = _object(
    now=_TIME,
    version=_TEXT,
    streams=_ROWS,
    broken_streams=_ANY,
    queries=_ROWS,
    query_kinds=_COUNTS,
    query_states=_COUNTS,
    layers=_ROWS,
    deliveries=_ROWS,
    alerts=_ROWS,
)

ANSWERS: Mapping[tuple[str, str], Schema] = MappingProxyType(
    {
        ("POST", "/v1/streams/{stream}/fixes"): _POSTED,
        ("GET", "/v1/queries"): _object(queries=_list(_object(**_QUERY))),
        ("POST", "/v1/queries"): _DONE,
        ("GET", "/v1/queries/{query}"): _object(
            **_QUERY,
            plan=_ANYTHING,
            canonical=_or_null(_TEXT),
            history=_list(_HISTORY),
        ),
        ("PUT", "/v1/queries/{query}"): _DONE,
        ("DELETE", "/v1/queries/{query}"): _DONE,
        ("GET", "/v1/answers/{query}"): _object(
            _LATE, query=_TEXT, at=_or_null(_TIME), rows=_list(_MEMBER)
        ),
        ("GET", "/v1/objects"): _object(
            _LATE, stream=_TEXT, at=_or_null(_TIME), rows=_list(_PLACED)
        ),
        ("GET", "/v1/layers"): _object(layers=_list(_LAYER)),
        ("GET", "/v1/explain/{query}"): _EXPLAINED,
        ("POST", "/v1/explain"): _EXPLAINED,
        ("GET", "/v1/why/{query}"): _WHY,
        ("POST", "/v1/verify"): _VERIFIED_ALL,
        ("POST", "/v1/verify/{query}"): _VERIFIED_ALL,
        ("POST", "/v1/sql"): _object(more=_TRUTH, rows=_ROWS),
        ("POST", "/v1/backtest"): _object(
            fixes=_WHOLE,
            since=_ANYTHING,
            until=_ANYTHING,
            seconds=_NUMBER,
            totals=_ANYTHING,
            days=_ANYTHING,
            examples=_ANYTHING,
        ),
        ("GET", "/v1/status"): _object(
            streams=_list(_STREAM),
            broken_streams=_ANY,
            settings_error=_or_null(_TEXT),
            listeners=_list(
                _object(
                    stream=_TEXT,
                    listeners=_WHOLE,
                    age_s=_or_null(_NUMBER),
                    failures=_WHOLE,
                    error=_or_null(_TEXT),
                    dropped=_COUNTS,
                )
            ),
        ),
        ("GET", "/v1/openapi.json"): _object(
            {"components": _ANY, "security": _ROWS},
            openapi=_TEXT,
            info=_ANY,
            paths=_ANY,
        ),
        ("GET", "/v1/ogc"): _object(title=_TEXT, description=_TEXT, links=_LINKS),
        ("GET", "/v1/ogc/conformance"): _object(conformsTo=_TEXTS),
        ("GET", "/v1/ogc/collections"): _object(
            collections=_list(_COLLECTION), links=_LINKS
        ),
        ("GET", "/v1/ogc/collections/{collection}"): _COLLECTION,
        ("GET", "/v1/ogc/collections/{collection}/items"): _FEATURES,
        ("GET", "/v1/ogc/collections/{collection}/items/{feature}"): _FEATURE,
        ("GET", "/page/state"): _PAGE_STATE,
        ("GET", "/page/shapes/{query}"): _FEATURES,
        ("POST", "/page/ask"): _object(
            stream=_TEXT,
            interval=_TRUTH,
            more=_TRUTH,
            fixes=_WHOLE,
            first_fix_ts=_or_null(_TIME),
            last_fix_ts=_or_null(_TIME),
            rows=_ROWS,
        ),
        ("POST", "/page/check"): _object(
            ok=_TRUTH,
            stream=_TEXT,
            kind=_TEXT,
            dwell_s=_or_null(_NUMBER),
            text=_TEXT,
        ),
        ("POST", "/page/complete"): _object(
            **{"from": _WHOLE}, options=_list(_object(text=_TEXT, about=_TEXT))
        ),
        ("GET", "/page/ways/{stream}"): _object(
            **{"from": _or_null(_TIME), "to": _or_null(_TIME)},
            object=_TEXT,
            count=_WHOLE,
            fixes=_list(_list(_or_null(_NUMBER))),
        ),
        ("GET", "/page/places/{stream}"): _object(
            **{"from": _TIME, "to": _TIME},
            stream=_TEXT,
            count=_WHOLE,
            places=_list(_list(_NUMBER)),
        ),
        ("GET", "/page/object/{stream}/{object}"): _object(
            {"lon": _or_null(_NUMBER), "lat": _or_null(_NUMBER)},
            stream=_TEXT,
            object=_TEXT,
            position=_WHOLE,
            event_ts=_TIME,
            x=_or_null(_NUMBER),
            y=_or_null(_NUMBER),
            gone=_TRUTH,
            properties=_ANY,
            answers=_ROWS,
            visits=_list(_VISIT),
        ),
        ("GET", "/page/visits"): _object(stream=_TEXT, rows=_list(_VISIT)),
        ("GET", "/page/regions/{stream}"): _FEATURES,
    }
)
"""The schema of each answer that is JSON."""

_CREATED = {("POST", "/v1/queries"), ("PUT", "/v1/queries/{query}")}


def answers_of(method: str, path: str, gives: str) -> dict[str, Schema]:
    """The schemas of the answers of an endpoint without errors that all have, by their status; text for other media."""
    schema = ANSWERS.get((method, path))
    if schema is None:
        is_text = gives.startswith("text/")
        return {"200": _TEXT if is_text else {"type": "string", "format": "binary"}}
    if path == "/v1/streams/{stream}/fixes":
        return {"202": schema, "422": _REFUSED}
    return {"200": schema, **({"201": schema} if (method, path) in _CREATED else {})}
