"""All that is known of one object, now or at a time: its last fix, the answers that it is in, its visits."""

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from starlette.responses import Response

from st_common import tables
from st_common.answers.history import object_at
from st_common.config.stream import StreamSettings
from st_common.contracts import load_contract
from st_common.history.fold import MEMBERS, fold
from st_common.history.purged import kept_snapshot
from st_common.history.snapshots import members_of
from st_common.log.log import Log
from st_common.log.reader import pieces
from st_common.position import row_of, segment_of
from st_common.query.lookup import queries
from st_common.server.endpoint import AT, Endpoint
from st_common.server.page.frame import frame_of
from st_common.server.page.past import VISIT, visits_of
from st_common.server.page.readers import live_places
from st_common.server.parameters import AbsentError, Parameters, known_stream
from st_common.server.replies import value_reply
from st_common.server.schemas import (
    ANY,
    NUMBER,
    ROWS,
    TEXT,
    TIME,
    TRUTH,
    WHOLE,
    a_list,
    an_object,
    or_null,
)

_VISITS = 50
_OF_ALL = {"query": None, "since": None, "until": None, "limit": _VISITS}


@Endpoint(
    "GET",
    "/page/object/{stream}/{object}",
    an_object(
        {"lon": or_null(NUMBER), "lat": or_null(NUMBER)},
        stream=TEXT,
        object=TEXT,
        position=WHOLE,
        event_ts=TIME,
        x=or_null(NUMBER),
        y=or_null(NUMBER),
        gone=TRUTH,
        properties=ANY,
        answers=ROWS,
        visits=a_list(VISIT),
    ),
    params=(AT,),
    apart="read",
    is_on_map=True,
)
def page_object(asked: Parameters) -> Response:
    """All that is known of one object, now or at a time."""
    stream, name = known_stream(asked, asked.path["stream"]), asked.path["object"]
    at = asked.params.get("at")
    known = _now(asked, stream, name) if at is None else _then(asked, stream, name, at)
    return value_reply({"stream": stream.name, "object": name, **known})


def _now(asked: Parameters, stream: StreamSettings, name: str) -> dict[str, Any]:
    position = live_places(asked, stream).position_of(name)
    if position is None or position < 0:
        raise AbsentError(f"stream {stream.name!r} has no object {name!r}")
    return {
        "position": position,
        **_fix(asked, stream, position),
        "answers": _answers(asked, stream, name),
        "visits": visits_of(asked, stream.name, "newest", {**_OF_ALL, "object": name}),
    }


def _then(
    asked: Parameters, stream: StreamSettings, name: str, at: datetime
) -> dict[str, Any]:
    """The same as of a time, by what is archived; a visit that was not over then has no end."""
    rows = object_at(asked.place.home, stream, name, at)
    if not len(rows):
        raise AbsentError(f"stream {stream.name!r} had no object {name!r} at that time")
    (fix,) = rows.to_pylist()
    given = {**_OF_ALL, "object": name, "until": at}
    visits = [
        _open_at(one, at) for one in visits_of(asked, stream.name, "newest", given)
    ]
    return {
        **_shown(asked, stream, {**fix, "gone": False}),
        "answers": [_as_answer(one) for one in visits if one["to_ts"] is None],
        "visits": visits,
    }


def _open_at(visit: dict[str, Any], at: datetime) -> dict[str, Any]:
    """A visit as it was known at a time."""
    until = visit["to_ts"]
    if until is None or until <= at:
        return visit
    return {**visit, "to_ts": None, "cause_out": None, "value": None}


def _as_answer(visit: dict[str, Any]) -> dict[str, Any]:
    shown = {key: visit[key] for key in ("query", "partner", "value")}
    return {**shown, "since_ts": visit["from_ts"], "fields": None}


def _fix(asked: Parameters, stream: StreamSettings, position: int) -> dict[str, Any]:
    """A fix by its place in the log; where its segment was purged, by the archive."""
    log = Log(asked.place.home.log(stream.name))
    number, row = segment_of(position), row_of(position)
    if number >= log.purged_before():
        rows = _logged(log, stream, number)
    else:
        path = asked.place.home.table("positions", stream.name)
        rows = tables.read(path, filters=[("segment", "=", number)])
    (fix,) = rows.filter(pa.compute.equal(rows["row"], row)).to_pylist()
    return _shown(asked, stream, fix)


def _logged(log: Log, stream: StreamSettings, number: int) -> pa.Table:
    (piece,) = pieces(log, [log.segment(number)], stream)
    assert piece.part is not None  # noqa: S101 - a fix stands there
    return piece.part.decoded.fixes


def _shown(
    asked: Parameters, stream: StreamSettings, fix: dict[str, Any]
) -> dict[str, Any]:
    frame, when = frame_of(asked, stream), fix["event_ts"]
    if isinstance(when, int):
        when = datetime.fromtimestamp(when / 1e6, UTC)
    x, y = fix["x"], fix["y"]
    return {
        "event_ts": when,
        "x": x,
        "y": y,
        "lon": None if x is None else frame.lon(x),
        "lat": None if y is None else frame.lat(y),
        "gone": fix["gone"],
        "properties": {name: fix.get(name) for name in stream.attributes},
    }


def _answers(
    asked: Parameters, stream: StreamSettings, name: str
) -> list[dict[str, Any]]:
    """The answers of live queries that it is in, as what is committed says."""
    home = asked.place.home
    path, schema = (
        home.table("changes", stream.name),
        load_contract("changes").arrow_schema(),
    )
    if not tables.exists(path):
        return []
    snapshot = kept_snapshot(home, stream.name, "changes")
    members = members_of(home, stream.name, snapshot)
    held = members.filter(pa.compute.equal(members["object"], name))
    start = 0 if snapshot is None else snapshot.position
    changes = tables.read(
        path,
        columns=schema.names,
        filters=[("object", "=", name), ("position", ">=", start)],
    )
    rows = fold(changes, held.select(MEMBERS.names))
    live = {row.name for row in queries(home, [stream.name])}
    shown = ("query", "partner", "since_ts", "value", "fields")
    return [
        {key: _value(key, row[key]) for key in shown}
        for row in rows.sort_by("query").to_pylist()
        if row["query"] in live
    ]


def _value(key: str, value: Any) -> Any:
    return json.loads(value) if key == "fields" and value else value
