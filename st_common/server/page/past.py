"""What was: objects at a time, changes up to one, ways, visits; and the regions by which a stream is stored."""

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import shapely
from starlette.responses import Response

from st_common.answers.history import objects_at
from st_common.answers.moving_places import Moved
from st_common.answers.places_sample import places_sample
from st_common.answers.sql import sql
from st_common.answers.ways import way_of
from st_common.config.home import view_name
from st_common.config.parameters import Parameter
from st_common.config.stream import StreamSettings
from st_common.config.values import one_of
from st_common.errors import ConfigError
from st_common.partitioning.regions import Regions, assign
from st_common.partitioning.shown import rectangles_of
from st_common.partitioning.store import newest_rows, regions_of
from st_common.query.lookup import find
from st_common.server.endpoint import AT, LIMIT, NEEDED_STREAM, Endpoint
from st_common.server.page.frame import frame_of
from st_common.server.page.live import MEDIA, iso, packed
from st_common.server.page.readers import Lives, live_places
from st_common.server.parameters import (
    ANY_TEXT,
    Parameters,
    known_query,
    known_stream,
)
from st_common.server.parameters import TIME as WHEN
from st_common.server.replies import GEOJSON, plain_rows, value_reply
from st_common.server.schemas import (
    FEATURES,
    NUMBER,
    ROWS,
    TEXT,
    TIME,
    WHOLE,
    a_list,
    an_object,
    or_null,
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_WORLD = np.array([-180.0, -85.0, 180.0, 85.0])
_MOST_FIXES, _FIXES = 50_000, 5000
_MOST_VISITS, _VISITS = 5000, 100
_MOST_CHANGES, _CHANGES = 1000, 12
_MOST_PLACES, _PLACES = 10_000, 3000
_DIGITS = 7  # of degrees: a centimetre
_HOUR = timedelta(hours=1)
_ORDERS = {
    "longest": "coalesce(to_ts, now()) - from_ts DESC, from_ts DESC",
    "newest": "from_ts DESC",
}
_VISITS_SQL = """
SELECT query, object, partner, from_ts, to_ts, value, cause_in, cause_out FROM visits_{stream}
WHERE ($query IS NULL OR query = $query) AND ($object IS NULL OR object = $object)
  AND ($until IS NULL OR from_ts <= $until) AND ($since IS NULL OR to_ts IS NULL OR to_ts >= $since)
ORDER BY {order}, query, object, partner LIMIT $limit"""
_OBJECT = Parameter("object", ANY_TEXT, "the object")
_FROM = Parameter("from", WHEN, "the first time, ISO 8601")
_TO = Parameter("to", WHEN, "the last time, ISO 8601")
VISIT = an_object(
    query=TEXT,
    object=TEXT,
    partner=or_null(TEXT),
    from_ts=TIME,
    to_ts=or_null(TIME),
    value=or_null(NUMBER),
    cause_in=TEXT,
    cause_out=or_null(TEXT),
)


@Endpoint(
    "GET",
    "/page/past/{stream}",
    params=(AT,),
    gives=MEDIA,
    apart="read",
    is_on_map=True,
)
def page_past(asked: Parameters) -> Response:
    """Where the objects of a stream were at a time, as arrays for a map."""
    stream = known_stream(asked, asked.path["stream"])
    at = asked.params.get("at")
    if at is None:
        raise ConfigError("the parameter 'at' is missing")
    rows = objects_at(asked.place.home, stream, at).rows
    event_us = rows["event_ts"].cast(pa.int64()).to_numpy()
    header = {
        "cursor": "",
        "reset": True,
        "names": {"from": 0, "names": rows["object"].to_pylist()},
        "latest_event_ts": iso(int(event_us.max())) if len(event_us) else None,
        "lag_s": 0.0,
    }
    unknown = np.full(len(rows), np.nan, np.float32)
    moved = Moved(
        index=np.arange(len(rows), dtype=np.uint32),
        event_us=event_us,
        x=rows["x"].to_numpy(),
        y=rows["y"].to_numpy(),
        heading=unknown,
        speed=unknown,
    )
    return Response(packed(header, moved, frame_of(asked, stream)), media_type=MEDIA)


@Endpoint(
    "GET",
    "/page/changes/{query}",
    an_object(
        **{"from": TIME, "to": TIME},
        query=TEXT,
        entered=WHOLE,
        left=WHOLE,
        rows=ROWS,
    ),
    params=(_FROM, replace(_TO, is_required=True), LIMIT),
    apart="read",
)
def page_changes(asked: Parameters) -> Response:
    """The last changes of an answer between two times, the newest first, and how many came and left.

    By default during the hour before the last time. Each is as `/v1/changes` tells it.
    """
    from st_common.answers.changes import stream_changes, streams_of
    from st_common.answers.outlets import Outlet
    from st_common.delivery.message import messages

    home, query = asked.place.home, find(asked.place.home, known_query(asked)).name
    until = asked.params["to"]
    since = asked.params.get("from") or until - _HOUR
    most = _bounded(asked, _CHANGES, _MOST_CHANGES)
    signs: Counter[int] = Counter()
    told: list[dict[str, Any]] = []
    for stream in streams_of(home, query):
        rows = stream_changes(home, stream, query, begin=since, until=until)
        passed = Outlet(home, stream).passed(rows)
        signs.update(passed["sign"].to_pylist())
        last = passed.slice(max(len(passed) - most, 0))
        told += [json.loads(line) for line in messages(last, stream).lines]
    told.sort(key=_told_at, reverse=True)
    about = {"query": query, "from": since, "to": until}
    counts = {"entered": signs[1], "left": signs[-1]}
    return value_reply({**about, **counts, "rows": told[:most]})


def _told_at(change: dict[str, Any]) -> tuple[str, int, int]:
    return change["event_ts"], change["position"], change["seq"]


@Endpoint(
    "GET",
    "/page/ways/{stream}",
    an_object(
        **{"from": or_null(TIME), "to": or_null(TIME)},
        object=TEXT,
        count=WHOLE,
        fixes=a_list(a_list(or_null(NUMBER))),
    ),
    params=(replace(_OBJECT, is_required=True), _FROM, _TO, LIMIT),
    apart="read",
    is_on_map=True,
)
def ways(asked: Parameters) -> Response:
    """The way of one object.

    By default during the hour before its stream's last fix.
    """
    stream = known_stream(asked, asked.path["stream"])
    until = asked.params.get("to") or _newest(asked, stream)
    since = asked.params.get("from") or until - _HOUR
    most = _bounded(asked, _FIXES, _MOST_FIXES)
    name, frame = asked.params["object"], frame_of(asked, stream)
    live = live_places(asked, stream)
    way = way_of(
        asked.place.home, stream, live, name, since=since, until=until, most=most
    )
    known = ~np.isnan(way.x)
    columns = (way.event_us[known] / 1e6, frame.lon(way.x[known]), frame.lat(way.y[known]))  # fmt: skip
    fixes: Floats = np.stack(columns, axis=1)
    told = {"object": name, "from": since, "to": until, "count": way.count}
    return value_reply({**told, "fixes": fixes.tolist()})


@Endpoint(
    "GET",
    "/page/places/{stream}",
    an_object(
        **{"from": TIME, "to": TIME},
        stream=TEXT,
        count=WHOLE,
        places=a_list(a_list(NUMBER)),
    ),
    params=(
        replace(_FROM, is_required=True),
        replace(_TO, is_required=True),
        LIMIT,
    ),
    apart="read",
    is_on_map=True,
)
def places(asked: Parameters) -> Response:
    """Where fixes of an interval lie: a sample of them."""
    stream = known_stream(asked, asked.path["stream"])
    since, until = asked.params["from"], asked.params["to"]
    most = _bounded(asked, _PLACES, _MOST_PLACES)
    sample = places_sample(
        asked.place.home, stream.name, since=since, until=until, most=most
    )
    frame = frame_of(asked, stream)
    both = np.stack([frame.lon(sample.x), frame.lat(sample.y)], axis=1)
    told = {"stream": stream.name, "from": since, "to": until, "count": sample.count}
    return value_reply({**told, "places": both.round(_DIGITS).tolist()})


def _newest(asked: Parameters, stream: StreamSettings) -> datetime:
    newest_us = live_places(asked, stream).look().newest_us
    return datetime.fromtimestamp((newest_us or 0) / 1e6, UTC) + timedelta(seconds=1)


@Endpoint(
    "GET",
    "/page/visits",
    an_object(stream=TEXT, rows=a_list(VISIT)),
    params=(
        NEEDED_STREAM,
        Parameter("query", ANY_TEXT, "only in its answer"),
        _OBJECT,
        _FROM,
        _TO,
        LIMIT,
        Parameter("order", one_of("longest", "newest"), "which come first"),
    ),
    apart="read",
)
def visits(asked: Parameters) -> Response:
    """Stays in answers, the newest or the longest first."""
    stream = known_stream(asked, asked.params["stream"])
    order = asked.params.get("order", "newest")
    given = {
        "query": asked.params.get("query"),
        "object": asked.params.get("object"),
        "since": asked.params.get("from"),
        "until": asked.params.get("to"),
        "limit": _bounded(asked, _VISITS, _MOST_VISITS),
    }
    rows = visits_of(asked, stream.name, order, given)
    return value_reply({"stream": stream.name, "rows": rows})


def visits_of(
    asked: Parameters, stream: str, order: str, given: dict[str, Any]
) -> list[dict[str, Any]]:
    """Visits of a stream; none before something was told.

    Args:
        asked: the request.
        stream: the stream.
        order: "longest" or "newest" first.
        given: query, object, since, until, each None for all, and limit.
    """
    from st_common.answers.changes import changed_streams

    if stream not in changed_streams(asked.place.home):
        return []
    text = _VISITS_SQL.format(stream=view_name(stream), order=_ORDERS[order])
    return plain_rows(sql(asked.place.home, text, given=given))


def _bounded(asked: Parameters, usual: int, most: int) -> int:
    limit = int(asked.params.get("limit", usual))
    if not 1 <= limit <= most:
        raise ConfigError(f"limit={limit}", hint=f"from 1 to {most}")
    return limit


@Endpoint("GET", "/page/regions/{stream}", FEATURES, gives=GEOJSON, lane="page")
def regions(asked: Parameters) -> Response:
    """The regions by which a stream is stored, with their load.

    Those of more than two dimensions are told by the first two, and those that differ in the others alone as one; how
    many objects are in each now is told in one and two dimensions.
    """
    stream = known_stream(asked, asked.path["stream"])
    rows, frame = newest_rows(asked.place.home, stream.group), frame_of(asked, stream)
    told: dict[str, Any] = {"group": stream.group, "dimensions": None, "features": []}
    if rows is not None:
        made = regions_of(rows)
        counts: Ints = rows["rows"].to_numpy()
        shown = rectangles_of(made, counts)
        boxes = _cut(shown.bounds, frame.back(_WORLD))
        most = max(int(shown.rows.max()), 1)
        objects = _objects_in(asked, stream, made)
        told["dimensions"] = made.dimensions
        columns = (boxes, shown.names, shown.rows.tolist())
        for box, name, count in zip(*columns, strict=True):
            corners = frame.placed(box.reshape(2, 2)).ravel()
            about = {"region": name, "rows": count, "share": count / most}
            about["objects"] = None if objects is None else objects.get(name, 0)
            told["features"].append(_polygon(corners, about))
    return value_reply({"type": "FeatureCollection", **told}, media=GEOJSON)


def _objects_in(
    asked: Parameters, stream: StreamSettings, made: Regions
) -> Counter[str] | None:
    """How many objects are in each region now; None where nobody looks at the stream, or x and y do not say it."""
    where = asked.kept.of(Lives).where(stream.name)
    if where is None or made.dimensions > 2:
        return None
    numbers = assign(made, np.column_stack(where[: made.dimensions]))
    counts = np.bincount(numbers, minlength=len(made.region_id))
    return Counter(dict(zip(made.region_id, counts.tolist(), strict=True)))


def _cut(bounds: Floats, world: Floats) -> Floats:
    """Boxes, float64[n, 4], whose infinite edges lie a little behind the last border, or at the end of the world."""
    low, high = bounds[:, :2], bounds[:, 2:]
    borders = np.where(np.isinf(bounds), np.nan, bounds).reshape(-1, 2)
    has_none = np.isnan(borders).all(axis=0)
    borders = np.where(has_none, world.reshape(2, 2)[:1], borders)
    first = np.where(has_none, world[:2], np.nanmin(borders, axis=0))
    last = np.where(has_none, world[2:], np.nanmax(borders, axis=0))
    room = np.where(has_none, 0.0, np.maximum((last - first) * 0.15, 1e-6))
    return np.concatenate(
        [np.maximum(low, first - room), np.minimum(high, last + room)], axis=1
    )


def _polygon(corners: Floats, told: dict[str, Any]) -> dict[str, Any]:
    ring = shapely.get_coordinates(shapely.box(*corners)).tolist()
    geometry = {"type": "Polygon", "coordinates": [ring]}
    return {"type": "Feature", "geometry": geometry, "properties": told}
