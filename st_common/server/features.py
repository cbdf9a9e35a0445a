"""OGC API Features, Part 1: answers, objects, layers and visits as collections of GeoJSON, for GIS and GeoPandas."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

import pyarrow as pa
import shapely
from starlette.responses import Response

from st_common.errors import ConfigError
from st_common.server.asked import AbsentError, Asked
from st_common.server.page.known import Known
from st_common.server.page.lives import live_places
from st_common.server.placed import answer_with_places
from st_common.server.replies import value_reply
from st_common.stream_columns import GEOMETRY

_GEOJSON = "application/geo+json"
_CLASSES = (
    "http://www.opengis.net/spec/ogcapi-features-1/1.0/conf/core",
    "http://www.opengis.net/spec/ogcapi-features-1/1.0/conf/geojson",
    "http://www.opengis.net/spec/ogcapi-features-1/1.0/conf/oas30",
)
_CRS84 = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
_EPSG = "http://www.opengis.net/def/crs/EPSG/0/{}"
_WGS84 = 4326
LIMIT, MOST = 100, 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """One collection: `objects.STREAM`, `answers.QUERY`, `visits.STREAM` or `layers.LAYER`.

    Attributes:
        kind: the word in front of the point.
        name: what stands behind it.
        title: for people.
        epsg: of its coordinates; 0: a plane without a place on Earth.
    """

    kind: str
    name: str
    title: str
    epsg: int

    @property
    def id(self) -> str:
        """What it is called in addresses."""
        return f"{self.kind}.{self.name}"


def landing(asked: Asked) -> Response:
    """Where to go from here."""
    links = [
        _link(asked, "/ogc", "self", "this page"),
        _link(asked, "/openapi.json", "service-desc", "the API"),
        _link(asked, "/ogc/conformance", "conformance", "what it conforms to"),
        _link(asked, "/ogc/collections", "data", "the collections"),
    ]
    return value_reply({"title": "Fairway", "links": links})


def conformance(_asked: Asked) -> Response:
    """The parts of the standard that are carried out."""
    return value_reply({"conformsTo": list(_CLASSES)})


def collections(asked: Asked) -> Response:
    """All collections."""
    shown = [_described(asked, one) for one in _collections(asked)]
    links = [_link(asked, "/ogc/collections", "self", "the collections")]
    return value_reply({"collections": shown, "links": links})


def collection(asked: Asked) -> Response:
    """One collection."""
    return value_reply(_described(asked, _known(asked)))


def items(asked: Asked) -> Response:
    """Features of a collection, some at once; `next` leads to those that follow."""
    known, given = _known(asked), asked.params
    limit, offset = given.get("limit", LIMIT), given.get("offset", 0)
    if not 1 <= limit <= MOST:
        raise ConfigError(f"limit={limit}", hint=f"from 1 to {MOST}")
    features = list(_FEATURES[known.kind](asked, known))
    box = given.get("bbox")
    if box is not None:
        features = [one for one in features if _meets(one, box)]
    page = features[offset : offset + limit]
    return _page(asked, known, page, matched=len(features), offset=offset, limit=limit)


def item(asked: Asked) -> Response:
    """One feature, by its id."""
    known = _known(asked)
    for one in _FEATURES[known.kind](asked, known):
        if str(one["id"]) == asked.path["feature"]:
            path = f"/ogc/collections/{quote(known.id)}"
            links = [_link(asked, path, "collection", known.title)]
            return _geojson({**one, "links": links})
    raise AbsentError(f"{known.id} has no feature {asked.path['feature']!r}")


def _page(
    asked: Asked,
    known: Collection,
    page: list[dict[str, Any]],
    *,
    matched: int,
    offset: int,
    limit: int,
) -> Response:
    path = f"/ogc/collections/{quote(known.id)}/items"
    kept = {
        name: ",".join(map(str, value)) if name == "bbox" else _text(value)
        for name, value in asked.params.items()
        if name != "offset"
    }
    links = [_link(asked, path, "self", "these", {**kept, "offset": str(offset)})]
    if offset + limit < matched:
        following = {**kept, "offset": str(offset + limit)}
        links.append(_link(asked, path, "next", "those that follow", following))
    return _geojson(
        {
            "type": "FeatureCollection",
            "features": page,
            "numberMatched": matched,
            "numberReturned": len(page),
            "links": links,
        }
    )


def _geojson(value: Mapping[str, Any]) -> Response:
    return Response(value_reply(value).body, media_type=_GEOJSON)


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return str(value)


def _link(
    asked: Asked,
    path: str,
    relation: str,
    title: str,
    params: Mapping[str, str] | None = None,
) -> dict[str, str]:
    behind = f"?{urlencode(params)}" if params else ""
    is_features = path.endswith("/items")
    return {
        "href": f"{asked.base}{path}{behind}",
        "rel": relation,
        "type": _GEOJSON if is_features else "application/json",
        "title": title,
    }


def _collections(asked: Asked) -> Iterator[Collection]:
    from st_common.layers.announce import layer_names, newest_version
    from st_common.query.lookup import queries

    home, streams = asked.place.home, asked.place.streams()
    for name, stream in streams.items():
        for kind, title in (("objects", "objects"), ("visits", "visits")):
            shown = f"{title} of stream {name}"
            yield Collection(kind=kind, name=name, title=shown, epsg=stream.epsg)
    for row in queries(home):
        if row.stream in streams:
            epsg = streams[row.stream].epsg
            title = f"the answer of query {row.name}"
            yield Collection(kind="answers", name=row.name, title=title, epsg=epsg)
    for name in layer_names(home):
        if newest_version(home, name) is not None:
            title = f"layer {name}"
            yield Collection(kind="layers", name=name, title=title, epsg=_WGS84)


def _known(asked: Asked) -> Collection:
    wanted = asked.path["collection"]
    for one in _collections(asked):
        if one.id == wanted:
            return one
    raise AbsentError(f"there is no collection {wanted!r}", hint="see /ogc/collections")


def _described(asked: Asked, known: Collection) -> dict[str, Any]:
    path = f"/ogc/collections/{quote(known.id)}"
    crs = _CRS84 if known.epsg in (0, _WGS84) else _EPSG.format(known.epsg)
    links = [
        _link(asked, path, "self", known.title),
        _link(asked, f"{path}/items", "items", known.title),
    ]
    described = {
        "id": known.id,
        "title": known.title,
        "crs": [crs],
        "itemType": "feature",
        "links": links,
    }
    whose = _attribution(asked, known)
    return described if whose is None else {**described, "attribution": whose}


def _attribution(asked: Asked, known: Collection) -> str | None:
    """Whose data a collection has, to be named wherever it is shown; None where nothing must be said."""
    if known.kind != "layers":
        return None
    return asked.kept.of(Known).attribution(asked, known.name)


def _meets(feature: Mapping[str, Any], box: tuple[float, ...]) -> bool:
    """Whether a feature's box meets another one."""
    bounds = feature.get("bbox")
    if bounds is None:
        return False
    west, south, east, north = bounds
    return bool(
        west <= box[2] and east >= box[0] and south <= box[3] and north >= box[1]
    )


def _point(row: dict[str, Any], key: str) -> dict[str, Any]:
    """A row with `x` and `y` as a feature."""
    x, y = row.pop("x"), row.pop("y")
    has_place = x is not None and y is not None
    place = {"type": "Point", "coordinates": [x, y]} if has_place else None
    feature = {"type": "Feature", "id": key, "geometry": place, "properties": row}
    return {**feature, "bbox": [x, y, x, y]} if has_place else feature


def _objects(asked: Asked, known: Collection) -> Iterator[dict[str, Any]]:
    """Where objects are, or were at `datetime`: the geometry of those that have one, else a point."""
    rows = _seen(asked, known.name)
    if GEOMETRY not in rows.column_names:
        for row in rows.to_pylist():
            yield _point(row, row["object"])
        return
    shapes = shapely.from_wkt(rows[GEOMETRY].to_numpy(zero_copy_only=False))
    rows = rows.drop_columns(GEOMETRY)
    for row, shape in zip(rows.to_pylist(), shapes, strict=True):
        yield {
            "type": "Feature",
            "id": row["object"],
            "geometry": json.loads(shapely.to_geojson(shape)),
            "bbox": list(shape.bounds),
            "properties": row,
        }


def _seen(asked: Asked, stream: str) -> pa.Table:
    """Where objects are by all that has come, or were by what is archived; none before anything is."""
    from st_common.serving.history import Choice, archived_at, chosen

    settings, at = asked.place.stream(stream), asked.params.get("datetime")
    if at is None:
        rows = live_places(asked, settings).current()
        return chosen(asked.place.home, settings, rows, Choice(shapes=True))
    return archived_at(asked.place.home, settings, at, shapes=True)


def _answers(asked: Asked, known: Collection) -> Iterator[dict[str, Any]]:
    """Who is in, or was at `datetime`, where the object's last fix was; groups have no place."""
    for row in answer_with_places(asked, known.name, "datetime").to_pylist():
        fields, where = row.pop("fields"), {"x": row.pop("x"), "y": row.pop("y")}
        more = json.loads(fields) if fields else {}
        key = "/".join(filter(None, (row["object"], row["partner"])))
        yield _point({**row, **more, **where}, key)


def _visits(asked: Asked, known: Collection) -> Iterator[dict[str, Any]]:
    """Stays in answers, where they began; those that the day begins, and groups, have no geometry."""
    from st_common.serving.sql import sql

    rows = sql(asked.place.home, _VISITS.format(known.name.replace("-", "_")))
    for number, row in enumerate(rows.to_pylist()):
        where = {"x": row.pop("from_x"), "y": row.pop("from_y")}
        yield _point({**row, **where}, str(number))


_VISITS = "SELECT * FROM visits_{} ORDER BY ALL"


def _layers(asked: Asked, known: Collection) -> Iterator[dict[str, Any]]:
    """Features of a layer, each once."""
    from st_common import tables
    from st_common.layers.announce import newest_version

    home = asked.place.home
    version = newest_version(home, known.name)
    columns = ["fid", "kind", "tags", "geometry", "home"]
    rows = tables.read(
        home.table("layers", known.name), version=version, columns=columns
    )
    rows = rows.filter(rows["home"]).sort_by("fid")
    shapes = shapely.from_wkb(rows["geometry"].to_numpy(zero_copy_only=False))
    boxes = shapely.bounds(shapes).tolist()
    shown = [json.loads(text) for text in shapely.to_geojson(shapes)]
    for row, shape, box in zip(rows.to_pylist(), shown, boxes, strict=True):
        tags = dict(row["tags"] or ())
        yield {
            "type": "Feature",
            "id": row["fid"],
            "geometry": shape,
            "bbox": box,
            "properties": {"kind": row["kind"], **tags},
        }


_FEATURES = {
    "objects": _objects,
    "answers": _answers,
    "visits": _visits,
    "layers": _layers,
}
