"""OGC API Features, Part 1 (Core, GeoJSON, OpenAPI 3.0): what a home has as collections of GeoJSON.

    objects.STREAM    answers.QUERY    visits.STREAM    layers.LAYER

All geometries are longitude and latitude (CRS84). What lies in a projected system is converted; what lies in a plane
without a place on Earth is no collection, for GeoJSON cannot say where it is. `datetime` is an instant or an interval:

    objects     where they were at the instant; at the end of an interval, those that had a fix within it
    answers     who was in at the instant, or at the end of the interval
    visits      those that had begun by its end and had not ended before it began
    layers      all: features of layers have no time
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from starlette.responses import Response

from st_common.config.home import DEFAULT_GROUP
from st_common.config.parameters import Parameter
from st_common.config.values import WrongError, whole
from st_common.crs import WGS84
from st_common.errors import FairwayError
from st_common.server.endpoint import Endpoint
from st_common.server.page.known import Known
from st_common.server.page.readers import answer_with_places, live_places
from st_common.server.parameters import TIME as WHEN
from st_common.server.parameters import AbsentError, Parameters, numbers, time_of
from st_common.server.replies import GEOJSON, value_reply
from st_common.server.schemas import (
    BOX,
    FEATURE,
    FEATURES,
    LINKS,
    TEXT,
    TEXTS,
    TIME,
    a_list,
    an_object,
    or_null,
)

Objects = npt.NDArray[np.object_]
Box = tuple[float, float, float, float]
Seen = Callable[[str], tuple[Box | None, datetime | None]]
"""Gives where the fixes of a stream lie, and since when."""

ROOT = "/v1/ogc"
OPENAPI = "application/vnd.oai.openapi+json;version=3.0"
DEFAULT_LIMIT, LARGEST_LIMIT = 100, 10_000
_JSON, _HTML = "application/json", "text/html"
_CLASSES = (
    "http://www.opengis.net/spec/ogcapi-features-1/1.0/conf/core",
    "http://www.opengis.net/spec/ogcapi-features-1/1.0/conf/geojson",
    "http://www.opengis.net/spec/ogcapi-features-1/1.0/conf/oas30",
)
_CRS84 = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
_GREGORIAN = "http://www.opengis.net/def/uom/ISO-8601/0/Gregorian"
_ROUNDED = 1e-8
"""Degrees: converted coordinates are rounded to nine digits, and must stay in the box that is said of them."""
_EDGES = ("minx", "miny", "maxx", "maxy")


# --- parameters ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A `datetime` of a request.

    Attributes:
        start: the first instant; None: it is open, or the text is an instant.
        end: the last instant; None: it is open.
        text: as it was given.
    """

    start: datetime | None
    end: datetime | None
    text: str

    def until(self) -> datetime | None:
        """Its end where that is past; None: now."""
        is_past = self.end is not None and self.end < _now()
        return self.end if is_past else None


def _now() -> datetime:
    return datetime.fromtimestamp(time.time_ns() / 1e9, UTC)


def interval_of(text: str) -> Interval:
    """An instant, or `START/END` of which one may be open: `..` or nothing.

    Raises:
        ValueError: it is neither.
        WrongError: it ends before it begins.
    """
    first, divider, last = text.partition("/")
    if not divider:
        return Interval(start=None, end=time_of(text), text=text)
    start, end = (None if one in ("", "..") else time_of(one) for one in (first, last))
    if start is not None and end is not None and start > end:
        raise WrongError("ends before it begins", hint="START/END")
    return Interval(start=start, end=end, text=text)


def _box_of(numbers: tuple[float, ...]) -> Box:
    """West, south, east, north of four numbers, or of six with heights, which do not matter; west > east is across 180.

    Raises:
        WrongError: its north lies south of its south.
    """
    edges = (0, 1, 2, 3) if len(numbers) == len(_EDGES) else (0, 1, 3, 4)
    west, south, east, north = (numbers[n] for n in edges)
    if south > north:
        raise WrongError("ends south of its south", hint="west,south,east,north")
    return west, south, east, north


BBOX = Parameter(
    "bbox",
    replace(numbers(4, 6), check=_box_of),
    "west,south,east,north, or with heights six numbers: what meets this box",
)
DATETIME = Parameter(
    "datetime",
    replace(WHEN, takes=f"{WHEN.takes}, or an interval", read=interval_of),
    "an instant, or an interval whose start or end may be open: 2024-05-01T12:00:00Z/..",
)
_SO_MANY = whole(least=1)
LIMIT = Parameter(
    "limit",
    replace(
        _SO_MANY,
        check=lambda value: min(_SO_MANY.check(value), LARGEST_LIMIT),
        schema={**_SO_MANY.schema, "maximum": LARGEST_LIMIT},
    ),
    f"at most so many; more than {LARGEST_LIMIT:,} are cut to that",
    default=DEFAULT_LIMIT,
)
OFFSET = Parameter("offset", whole(least=0), "from which on, from 0", default=0)


# --- resources -------------------------------------------------------------------------------------------------------
_EXTENT = an_object(
    {
        "spatial": an_object(bbox=a_list(BOX), crs=TEXT),
        "temporal": an_object(interval=a_list(a_list(or_null(TIME))), trs=TEXT),
    }
)
_COLLECTION = an_object(
    {
        "attribution": TEXT,
        "extent": _EXTENT,
    },
    id=TEXT,
    title=TEXT,
    crs=TEXTS,
    itemType=TEXT,
    links=LINKS,
)


@Endpoint("GET", "/v1/ogc", an_object(title=TEXT, description=TEXT, links=LINKS))
def landing(asked: Parameters) -> Response:
    """OGC API Features: where to go from here."""
    links = [
        _link(asked, ROOT, "self", "this document"),
        _link(asked, "/", "alternate", "the page with the map", media=_HTML),
        _link(asked, "/v1/openapi.json", "service-desc", "the API", media=OPENAPI),
        _link(asked, f"{ROOT}/conformance", "conformance", "what it conforms to"),
        _link(asked, f"{ROOT}/collections", "data", "the collections"),
    ]
    about = "Moving objects, answers of continuous queries, visits and layers"
    return value_reply({"title": "Fairway", "description": about, "links": links})


@Endpoint("GET", "/v1/ogc/conformance", an_object(conformsTo=TEXTS))
def conformance(_asked: Parameters) -> Response:
    """Which parts of the standard are carried out."""
    return value_reply({"conformsTo": list(_CLASSES)})


@Endpoint(
    "GET",
    "/v1/ogc/collections",
    an_object(collections=a_list(_COLLECTION), links=LINKS),
)
def collections(asked: Parameters) -> Response:
    """All collections of features."""
    seen = cache(partial(_seen_extent, asked))  # all queries on a stream share it
    shown = [
        _described(asked, one, seen) for one in _all_collections(asked) if one.epsg
    ]
    links = [
        _link(asked, f"{ROOT}/collections", "self", "the collections"),
        _link(asked, "/", "alternate", "the page with the map", media=_HTML),
    ]
    return value_reply({"collections": shown, "links": links})


@Endpoint("GET", "/v1/ogc/collections/{collection}", _COLLECTION)
def collection(asked: Parameters) -> Response:
    """One collection."""
    return value_reply(_described(asked, _known(asked), partial(_seen_extent, asked)))


@Endpoint(
    "GET",
    "/v1/ogc/collections/{collection}/items",
    FEATURES,
    params=(BBOX, DATETIME, LIMIT, OFFSET),
    apart="read",
    gives=GEOJSON,
)
def items(asked: Parameters) -> Response:
    """Features of a collection."""
    known, given = _known(asked), asked.params
    limit, offset = given["limit"], given["offset"]
    features = _read(asked, known)
    if (box := given.get("bbox")) is not None:
        features = features.take(shapely.intersects(features.shapes, _region(box)))
    page = features.take(slice(offset, offset + limit))
    links = _item_links(asked, known, has_more=offset + limit < len(features.ids))
    return value_reply(
        {
            "type": "FeatureCollection",
            "features": list(page.to_json()),
            "numberMatched": len(features.ids),
            "numberReturned": len(page.ids),
            "timeStamp": _now(),
            "links": links,
        },
        media=GEOJSON,
    )


@Endpoint(
    "GET",
    "/v1/ogc/collections/{collection}/items/{feature}",
    FEATURE,
    params=(DATETIME,),
    apart="read",
    gives=GEOJSON,
)
def item(asked: Parameters) -> Response:
    """One feature."""
    known, wanted = _known(asked), asked.path["feature"]
    features = _read(asked, known)
    for feature in features.take(features.ids == wanted).to_json():
        path = known.path
        own = f"{path}/items/{quote(wanted, safe='')}"
        links = [
            _link(asked, own, "self", "this feature", media=GEOJSON),
            _link(asked, path, "collection", known.title),
        ]
        return value_reply({**feature, "links": links}, media=GEOJSON)
    raise AbsentError(f"{known.id} has no feature {wanted!r}")


def _link(
    asked: Parameters,
    path: str,
    relation: str,
    title: str,
    *,
    media: str = _JSON,
    params: Mapping[str, Any] | None = None,
) -> dict[str, str]:
    behind = f"?{urlencode(params)}" if params else ""
    href = f"{asked.base}{path}{behind}"
    return {"href": href, "rel": relation, "type": media, "title": title}


def _item_links(
    asked: Parameters, known: "Collection", *, has_more: bool
) -> list[dict[str, str]]:
    """`self`, `collection`, and `next` where there are more features."""
    path, usual = f"{known.path}/items", {LIMIT.name: LIMIT.default, OFFSET.name: 0}
    given = {
        name: value for name, value in asked.params.items() if value != usual.get(name)
    }
    if "bbox" in given:
        given["bbox"] = ",".join(map(str, given["bbox"]))
    if "datetime" in given:
        given["datetime"] = given["datetime"].text
    links = [
        _link(asked, path, "self", "this document", media=GEOJSON, params=given),
        _link(asked, known.path, "collection", known.title),
    ]
    if has_more:
        further = {**given, "offset": asked.params["offset"] + asked.params["limit"]}
        title = "the features that follow"
        links.append(_link(asked, path, "next", title, media=GEOJSON, params=further))
    return links


# --- collections -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """One collection.

    Attributes:
        kind: `objects`, `answers`, `visits` or `layers`.
        name: of the stream, the query or the layer.
        title: for people.
        stream: whose objects it is about; None: of a layer.
        epsg: of the coordinates as they are stored; 0: a plane that has no place on Earth.
    """

    kind: str
    name: str
    title: str
    stream: str | None
    epsg: int

    @property
    def id(self) -> str:
        """What it is called in addresses."""
        return f"{self.kind}.{self.name}"

    @property
    def path(self) -> str:
        """Its address."""
        return f"{ROOT}/collections/{quote(self.id)}"


def _all_collections(asked: Parameters) -> Iterator[Collection]:
    from st_common.layers.announce import layer_group, loaded_layers
    from st_common.layers.conversion import crs_of_group
    from st_common.query.lookup import queries

    home, streams = asked.place.home, asked.place.streams()
    for name, stream in streams.items():
        for kind in ("objects", "visits"):
            title = f"{kind} of stream {name}"
            yield Collection(
                kind=kind, name=name, title=title, stream=name, epsg=stream.epsg
            )
    for row in queries(home):
        if row.stream in streams:
            yield Collection(
                kind="answers",
                name=row.name,
                title=f"the answer of query {row.name}",
                stream=row.stream,
                epsg=streams[row.stream].epsg,
            )
    for name in loaded_layers(home):
        group = layer_group(home, name) or DEFAULT_GROUP
        _, _, number = crs_of_group(streams.values(), group).partition(":")
        epsg = int(number or 0)
        title = f"layer {name}"
        yield Collection(kind="layers", name=name, title=title, stream=None, epsg=epsg)


def _known(asked: Parameters) -> Collection:
    wanted = asked.path["collection"]
    for one in _all_collections(asked):
        if one.id == wanted and one.epsg:
            return one
        if one.id == wanted:
            raise AbsentError(
                f"{wanted} lies in a plane without a place on Earth, and features are in longitude and latitude",
                hint="GET /v1/objects and GET /v1/answers have coordinates as they are",
            )
    raise AbsentError(
        f"there is no collection {wanted!r}", hint=f"see {ROOT}/collections"
    )


def _described(asked: Parameters, known: Collection, seen: Seen) -> dict[str, Any]:
    described: dict[str, Any] = {
        "id": known.id,
        "title": known.title,
        "crs": [_CRS84],
        "itemType": "feature",
        "links": [
            _link(asked, known.path, "self", known.title),
            _link(asked, f"{known.path}/items", "items", known.title, media=GEOJSON),
            _link(asked, "/", "alternate", "the page with the map", media=_HTML),
        ],
    }
    if extent := _extent(asked, known, seen):
        described["extent"] = extent
    if known.kind == "layers":
        whose = asked.kept.of(Known).attribution(asked, known.name)
        return described if whose is None else {**described, "attribution": whose}
    return described


def _extent(asked: Parameters, known: Collection, seen: Seen) -> dict[str, Any]:
    """In which box and since when all features of a collection lie, those of the past too; {} while there are none."""
    try:
        if known.stream is None:
            box, since = asked.kept.of(Known).box(asked, known.name), None
        else:
            box, since = seen(known.stream)
    except FairwayError:
        return {}  # `items` says what is wrong
    extent: dict[str, Any] = {}
    if box is not None:
        boxes = [list(_box_on_earth(box, known.epsg))]
        extent["spatial"] = {"bbox": boxes, "crs": _CRS84}
    if since is not None:
        extent["temporal"] = {"interval": [[since, None]], "trs": _GREGORIAN}
    return extent


def _seen_extent(asked: Parameters, name: str) -> tuple[Box | None, datetime | None]:
    """Where fixes of a stream lie, by the statistics of its archive and by its objects now; and since when.

    Of elements that are lines or areas the archive's statistics know a point each, so that no box is said of them.
    """
    from st_common import tables
    from st_common.answers.history import has_shapes

    ranges = tables.ranges(
        asked.place.home.table("positions", name), "x", "y", "event_ts"
    )
    stream = asked.place.stream(name)
    rows = live_places(asked, stream).current()
    seen = {
        column: [*ranges.get(column, ()), *pc.min_max(rows[column]).as_py().values()]
        for column in ("x", "y", "event_ts")
    }
    x, y, times = ([one for one in seen[c] if one is not None] for c in seen)
    since = min(times, default=None)
    if not x or not y or has_shapes(stream):
        return None, since
    return (min(x), min(y), max(x), max(y)), since


# --- features --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Features:
    """Features of a collection.

    Attributes:
        ids: str[n].
        shapes: geometries in longitude and latitude; object[n], None where a feature has none.
        rows: their properties.
    """

    ids: Objects
    shapes: Objects
    rows: pa.Table

    def take(self, which: npt.NDArray[np.bool_] | slice) -> "Features":
        """Some of them."""
        numbers = np.arange(len(self.ids))[which]
        return Features(self.ids[which], self.shapes[which], self.rows.take(numbers))

    def to_json(self) -> Iterator[dict[str, Any]]:
        """Each as GeoJSON; `fields`, which is JSON in tables, and `tags` become properties."""
        boxes = shapely.bounds(self.shapes).tolist()
        texts = shapely.to_geojson(self.shapes)
        rows = self.rows.to_pylist()
        for key, row, box, text in zip(self.ids, rows, boxes, texts, strict=True):
            fields, tags = row.pop("fields", None), row.pop("tags", None)
            more = json.loads(fields) if fields else dict(tags or ())
            properties = {**row, **more}
            feature = {"type": "Feature", "id": str(key), "properties": properties}
            if text is None:
                yield {**feature, "geometry": None}
            else:
                yield {**feature, "geometry": json.loads(text), "bbox": box}


def _read(asked: Parameters, known: Collection) -> Features:
    """All features of a collection, as of the time that is asked for."""
    when = asked.params.get("datetime") or interval_of("../..")
    features = _FEATURES[known.kind](asked, known, when)
    return Features(features.ids, _on_earth(features.shapes, known.epsg), features.rows)


def _on_earth(shapes: Objects, epsg: int) -> Objects:
    from st_common.answers.exports import on_earth

    return shapes if epsg == WGS84 else on_earth(shapes, epsg)


def _box_on_earth(box: Box, epsg: int) -> Box:
    if epsg == WGS84:
        return box
    from pyproj import Transformer

    west, south, east, north = Transformer.from_crs(
        epsg, WGS84, always_xy=True
    ).transform_bounds(*box)
    return west - _ROUNDED, south - _ROUNDED, east + _ROUNDED, north + _ROUNDED


def _region(box: Box) -> shapely.Geometry:
    """A box as a geometry, in two parts where it goes across 180 degrees."""
    west, south, east, north = box
    if west <= east:
        return shapely.box(west, south, east, north)
    return shapely.union(
        shapely.box(west, south, 180.0, north), shapely.box(-180.0, south, east, north)
    )


def _features(ids: pa.ChunkedArray, rows: pa.Table) -> Features:
    """Features of rows with `geometry`, or with `x` and `y`, as they are stored."""
    from st_common.answers.exports import others_of, shapes_of

    names = ids.to_numpy(zero_copy_only=False)
    return Features(names, shapes_of(rows), others_of(rows))


def _objects(asked: Parameters, known: Collection, when: Interval) -> Features:
    """Where objects are or were: the geometry of those that have one, else a point."""
    from st_common.answers.history import Choice, archived_at, chosen

    stream, until = asked.place.stream(known.name), when.until()
    if until is None:
        last = live_places(asked, stream).current()
        rows = chosen(asked.place.home, stream, last, Choice(shapes=True))
    else:
        rows = archived_at(asked.place.home, stream, until, shapes=True)
    if when.start is not None:
        rows = rows.filter(pc.greater_equal(rows["event_ts"], _instant(when.start)))
    if when.end is not None:
        rows = rows.filter(pc.less_equal(rows["event_ts"], _instant(when.end)))
    return _features(rows["object"], rows)


def _answers(asked: Parameters, known: Collection, when: Interval) -> Features:
    """Who is or was in, where the object's last fix was; groups have no place."""
    rows = answer_with_places(asked, known.name, when.until())
    ids = pc.binary_join_element_wise(
        rows["object"], rows["partner"], "/", null_handling="skip"
    )
    return _features(ids, rows)


def _visits(asked: Parameters, known: Collection, when: Interval) -> Features:
    """Stays in answers, where they began; those that the day begins, and groups, have no geometry."""
    from st_common.answers.sql import sql

    rows = sql(asked.place.home, _VISITS.format(known.name.replace("-", "_")))
    if when.start is not None or when.end is not None:
        start = when.end if "/" not in when.text else when.start
        rows = _lasting(rows, start, when.end)
    where = {"from_x": "x", "from_y": "y"}
    rows = rows.rename_columns([where.get(one, one) for one in rows.column_names])
    return _features(rows["id"], rows.drop_columns(["id"]))


_VISITS = """
SELECT *, concat_ws('/', query, query_version, object, partner, strftime(from_ts, '%Y-%m-%dT%H:%M:%S.%fZ'),
    nullif(row_number() OVER (PARTITION BY query, query_version, object, partner, from_ts), 1)) AS id
FROM visits_{} ORDER BY ALL"""


def _instant(at: datetime) -> pa.Scalar:
    return pa.scalar(at, pa.timestamp("us", "UTC"))


def _lasting(rows: pa.Table, start: datetime | None, end: datetime | None) -> pa.Table:
    """Visits that had begun by the end of an interval and had not ended before its start."""
    if end is not None:
        rows = rows.filter(pc.less_equal(rows["from_ts"], _instant(end)))
    if start is not None:
        lasts = pc.greater_equal(rows["to_ts"], _instant(start))
        rows = rows.filter(pc.fill_null(lasts, fill_value=True))
    return rows


def _layers(asked: Parameters, known: Collection, _when: Interval) -> Features:
    """Features of a layer, each once."""
    from st_common.layers.rows import shapes_of
    from st_common.layers.table import AT_HOME, newest_version, read_rows

    home = asked.place.home
    version = newest_version(home, known.name)
    columns = ["fid", "kind", "tags", "geometry"]
    rows = read_rows(home, known.name, version, columns=columns, filters=AT_HOME)
    rows = rows.sort_by("fid")
    ids = rows["fid"].to_numpy(zero_copy_only=False)
    return Features(ids, shapes_of(rows), rows.select(["kind", "tags"]))


_FEATURES: Mapping[str, Callable[[Parameters, Collection, Interval], Features]] = {
    "objects": _objects,
    "answers": _answers,
    "visits": _visits,
    "layers": _layers,
}
