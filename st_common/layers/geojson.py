"""Features from GeoJSON: a FeatureCollection, a sequence of records (RFC 8142), or one feature a line; also gzipped."""

import gzip
import json
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import shapely
from shapely.geometry import shape

from st_common.errors import LayerError
from st_common.geometry.space import GLOBE, Space
from st_common.layers.features import Found, Progress
from st_common.layers.kinds import Kinds, tags_of

SUFFIXES = (
    ".geojson",
    ".json",
    ".geojsonl",
    ".geojsons",
    ".geojsonseq",
    ".ndjson",
    ".jsonl",
)
_DEPTH = {
    "Point": 0,
    "MultiPoint": 1,
    "LineString": 1,
    "MultiLineString": 2,
    "Polygon": 2,
    "MultiPolygon": 3,
}
_FEWEST = {
    "LineString": 2,
    "MultiLineString": 2,
    "Polygon": 4,
    "MultiPolygon": 4,
}  # positions of a line or a ring
_MOST_NESTED = 8  # collections in collections
_GZIP, _RECORD = b"\x1f\x8b", b"\x1e"
_REPORT_EVERY = 4096
_BAD_JSON = object()


class _BadFeatureError(Exception):
    """One feature that cannot be used; the text is the reason it is counted under."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Usable:
    fid: str
    kind: str
    tags: dict[str, str]
    wkb: bytes


def read_geojson(
    file: Path,
    kinds: Kinds,
    *,
    space: Space = GLOBE,
    progress: Progress | None = None,
) -> Found:
    """The features of a GeoJSON file; a geometry alone counts as a feature without properties.

    The kind is the property "kind" if it is a text, else that of the first rule that matches the properties, else
    "other". The fid is the feature's id, else `#n`, its place in the file. Properties become tags: texts as they are,
    other values as JSON, null not at all. Heights are dropped.

    Reasons of rejects: `bad_json` (a line), `not_a_feature`, `unknown_type`, `bad_id`, `bad_properties`,
    `no_geometry`, `bad_geometry`, `bad_coordinates`, `too_few_points`, `ring_not_closed`, `out_of_crs` (longitude or
    latitude out of range, on the globe).

    Args:
        file: a FeatureCollection, a sequence of records (RFC 8142), or one feature a line; also gzipped.
        kinds: the rules.
        space: what coordinates mean.
        progress: told now and then how many features were read.

    Raises:
        LayerError: the file cannot be read, or nothing in it is a JSON object.
    """
    features = Found()
    for number, record in enumerate(_records(file, _content(file)), start=1):
        features.wanted += 1
        try:
            usable = _usable(record, number, kinds, space=space)
        except _BadFeatureError as bad:
            features.rejected[str(bad)] += 1
            continue
        features.add(usable.fid, usable.kind, usable.tags, usable.wkb)
        if progress and number % _REPORT_EVERY == 0:
            progress("reading", len(features.fids))
    return features


def _content(file: Path) -> bytes:
    try:
        content = file.read_bytes()
        return gzip.decompress(content) if content.startswith(_GZIP) else content
    except (OSError, EOFError, zlib.error) as error:
        raise LayerError(
            f"{file} cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None


def _records(file: Path, content: bytes) -> Iterator[Any]:
    """The features of one document, else of its records or lines."""
    try:
        document = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        yield from _lines(file, content, " ".join(str(error).split()))
    else:
        yield from _features(document, file)


def _lines(file: Path, content: bytes, reason: str) -> Iterator[Any]:
    # In RFC 8142 a record begins with a separator and may go over several lines.
    pieces = content.split(_RECORD) if _RECORD in content else content.splitlines()
    records = [_parsed(piece) for piece in pieces if piece.strip()]
    if not any(isinstance(record, dict) for record in records):
        raise LayerError(
            f"{file} is no GeoJSON: {reason}",
            hint="neither one document nor one feature a line",
        )
    for record in records:
        yield from _features(record, file) if isinstance(record, dict) else [record]


def _parsed(piece: bytes) -> Any:
    try:
        return json.loads(piece.decode("utf-8-sig").strip().removesuffix(","))
    except (ValueError, RecursionError):
        return _BAD_JSON


def _features(document: Any, file: Path) -> Iterator[Any]:
    if not isinstance(document, dict):
        raise LayerError(
            f"{file} is no GeoJSON: {type(document).__name__} instead of an object"
        )
    if document.get("type") != "FeatureCollection":
        yield document
        return
    features = document.get("features")
    if not isinstance(features, list):
        raise LayerError(
            f"{file} is no GeoJSON: a FeatureCollection without a list of features"
        )
    yield from features


def _usable(record: Any, number: int, kinds: Kinds, *, space: Space) -> _Usable:
    if record is _BAD_JSON:
        raise _BadFeatureError("bad_json")
    if not isinstance(record, dict):
        raise _BadFeatureError("not_a_feature")
    feature = record if record.get("type") == "Feature" else {"geometry": record}
    identity = feature.get("id", f"#{number}")
    if (
        isinstance(identity, bool)
        or not isinstance(identity, str | int | float)
        or identity == ""
    ):
        raise _BadFeatureError("bad_id")
    tags = _tags(feature.get("properties"))
    geometry = feature.get("geometry")
    if geometry is None:
        raise _BadFeatureError("no_geometry")
    flat = _checked(geometry, space=space)
    kind = kinds.named_or_of(tags, flat["type"])
    return _Usable(fid=str(identity), kind=kind, tags=tags, wkb=_wkb(flat))


def _tags(properties: Any) -> dict[str, str]:
    if properties is None:
        return {}
    if not isinstance(properties, dict):
        raise _BadFeatureError("bad_properties")
    return tags_of(properties)


def _wkb(geometry: dict[str, Any]) -> bytes:
    try:
        return bytes(shapely.to_wkb(shape(geometry)))
    except (ValueError, TypeError, shapely.errors.ShapelyError):
        raise _BadFeatureError("bad_geometry") from None


def _checked(geometry: Any, *, space: Space, nested: int = 0) -> dict[str, Any]:
    """A geometry that GEOS can build, in two dimensions; says what is wrong with any other."""
    if not isinstance(geometry, dict):
        raise _BadFeatureError("bad_geometry")
    kind = geometry.get("type")
    if kind == "GeometryCollection":
        members = geometry.get("geometries")
        if not isinstance(members, list) or nested == _MOST_NESTED:
            raise _BadFeatureError("bad_geometry")
        parts = [_checked(member, space=space, nested=nested + 1) for member in members]
        return {"type": kind, "geometries": parts}
    if not isinstance(kind, str) or kind not in _DEPTH:
        raise _BadFeatureError("unknown_type")
    places = _places(geometry.get("coordinates"), _DEPTH[kind], kind, space=space)
    return {"type": kind, "coordinates": places}


def _places(places: Any, depth: int, kind: str, *, space: Space) -> list[Any]:
    if not isinstance(places, list):
        raise _BadFeatureError("bad_coordinates")
    if depth == 0:
        return _place(places, space=space)
    checked = [_places(place, depth - 1, kind, space=space) for place in places]
    if depth == 1 and len(checked) < _FEWEST.get(kind, 1):
        raise _BadFeatureError("too_few_points")
    if depth == 1 and kind.endswith("Polygon") and checked[0] != checked[-1]:
        raise _BadFeatureError("ring_not_closed")
    return checked


def _place(place: list[Any], *, space: Space) -> list[Any]:
    if len(place) < 2 or not all(_is_number(value) for value in place):
        raise _BadFeatureError("bad_coordinates")
    most_x, most_y = space.farthest
    if abs(place[0]) > most_x or abs(place[1]) > most_y:
        raise _BadFeatureError("out_of_crs")
    return place[:2]


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return False
