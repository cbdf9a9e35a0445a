"""Features from GeoJSON: a FeatureCollection, a sequence of records (RFC 8142), or one feature a line; also gzipped."""

import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import shapely
from shapely.geometry import shape

from st_common.decode.gzipped import MAGIC
from st_common.errors import LayerError
from st_common.layers.features import Found, Progress
from st_common.layers.kinds import Kinds, tags_of
from st_common.layers.options import FileOptions
from st_common.layers.unpacked import unpack_gzip

_SHOWN = 80

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
_OF_PARTS = {
    "MultiLineString": 1,
    "Polygon": 1,
    "MultiPolygon": 1,
}  # lists above this depth may hold empty ones
_NO_PARTS, _SHELL = 9, 2
_AS_IT_SAYS = FileOptions()
_MOST_NESTED = 8  # collections in collections
_GZIP, _RECORD = b"\x1f\x8b", b"\x1e"
_REPORT_EVERY = 4096
_BAD_JSON = object()
_COLLECTION = b'"FeatureCollection"'


class _BadFeatureError(Exception):
    """One feature that cannot be used; the text is the reason it is counted under."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Usable:
    kind: str
    tags: dict[str, str]
    wkb: bytes
    mended: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Document:
    """The features of a file with their places in it, what these count, and the members that say a system."""

    records: list[tuple[int, Any]]
    counts: str
    systems: list[Any] = field(default_factory=list)


def read_geojson(
    file: Path,
    kinds: Kinds,
    options: FileOptions = _AS_IT_SAYS,
    *,
    progress: Progress | None = None,
) -> tuple[Found, str | None]:
    """The features of a GeoJSON file, and the system that its member `crs` says; None: it has none, or it is not asked.

    A geometry alone counts as a feature without properties. The kind is the property "kind" if it is a text, else that
    of the first rule that matches the properties, else "other". The fid is the feature's id, else `#n`, its place in
    the file. Properties become tags: texts as they are, other values as JSON, null not at all. Heights are dropped.
    Empty parts and holes are left out, and the feature is told as mended.

    Reasons of rejects: `bad_json` (a line), `not_a_feature`, `unknown_type`, `bad_id`, `bad_properties`,
    `no_geometry`, `bad_geometry`, `bad_coordinates`, `too_few_points`, `ring_not_closed`.

    Args:
        file: a FeatureCollection, a sequence of records (RFC 8142), or one feature a line; also gzipped; UTF-8, or
            UTF-16 and UTF-32 where it begins so.
        kinds: the rules.
        options: which property has the ids, in place of the features' own; and their system, in place of the member.
        progress: told now and then how many features were read.

    Raises:
        LayerError: the file cannot be read, nothing in it is a JSON object, or its systems are not known.
    """
    document = _document(file, _content(file))
    features = Found(counts=document.counts)
    for place, (number, record) in enumerate(document.records, start=1):
        features.wanted += 1
        fid = _identity(record, options.ids, place)
        try:
            usable = _usable(record, fid, kinds)
        except _BadFeatureError as bad:
            features.reject(str(bad), fid, number)
            continue
        features.add(fid, usable.kind, usable.tags, usable.wkb, number)
        if usable.mended:
            features.repair("empty_part", fid, number)
        if progress and place % _REPORT_EVERY == 0:
            progress("reading", len(features.fids))
    systems = document.systems if options.crs is None else ()
    return features, system_of(systems, file)


def _content(file: Path) -> bytes:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise LayerError(f"{file} cannot be read: {error.strerror}") from None
    if content.startswith(MAGIC):
        out = io.BytesIO()
        unpack_gzip(io.BytesIO(content), out, file)
        content = out.getvalue()
    encoding = json.detect_encoding(content)
    try:
        return content.decode(encoding).encode()
    except UnicodeError:  # each line is judged by itself
        return content


def _document(file: Path, content: bytes) -> _Document:
    """The features of one document, else of its records or lines."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        return _lines(file, content, " ".join(str(error).split()))
    features = enumerate(_features(document, file), start=1)
    return _Document(
        records=list(features), counts="feature", systems=_systems(document)
    )


def _lines(file: Path, content: bytes, reason: str) -> _Document:
    # In RFC 8142 a record begins with a separator and may go over several lines.
    is_sequence = _RECORD in content
    pieces = content.split(_RECORD) if is_sequence else content.splitlines()
    parsed = [
        (number, _parsed(piece))
        for number, piece in enumerate(pieces, start=0 if is_sequence else 1)
        if piece.strip()
    ]
    objects = [record for _, record in parsed if isinstance(record, dict)]
    is_cut = _COLLECTION in content and not any(
        record.get("type") == "FeatureCollection" for record in objects
    )
    if not objects or is_cut:
        raise LayerError(
            f"{file} is no GeoJSON: {reason}",
            hint="neither one document nor one feature a line",
        )
    records = [
        (number, one)
        for number, record in parsed
        for one in (_features(record, file) if isinstance(record, dict) else [record])
    ]
    systems = [system for record in objects for system in _systems(record)]
    counts = "record" if is_sequence else "line"
    return _Document(records=records, counts=counts, systems=systems)


def _parsed(piece: bytes) -> Any:
    try:
        return json.loads(piece.decode().strip().removesuffix(","))
    except (ValueError, RecursionError):
        return _BAD_JSON


def _features(document: Any, file: Path) -> list[Any]:
    if not isinstance(document, dict):
        raise LayerError(
            f"{file} is no GeoJSON: {type(document).__name__} instead of an object"
        )
    if (other := _other_json(document)) is not None:
        what, hint = other
        raise LayerError(f"{file} is {what}, and no GeoJSON", hint=hint)
    if document.get("type") != "FeatureCollection":
        return [document]
    features = document.get("features")
    if not isinstance(features, list):
        raise LayerError(
            f"{file} is no GeoJSON: a FeatureCollection without a list of features"
        )
    return features


def _other_json(document: dict[str, Any]) -> tuple[str, str] | None:
    """What a document is that other programs write, and what to do; None for one that may be GeoJSON."""
    if document.get("type") == "Topology":
        return "TopoJSON", "call it NAME.topojson"
    if "type" not in document and {"geometryType", "features"} <= document.keys():
        return "Esri JSON", "ogr2ogr -f GeoJSON NEW.geojson FILE makes GeoJSON of it"
    return None


def _systems(document: Any) -> list[Any]:
    return [document["crs"]] if "crs" in document else []


def _identity(record: Any, ids: str | None, place: int) -> str:
    """The id of a feature; "" for one that is no text or number."""
    if not isinstance(record, dict) or record.get("type") != "Feature":
        return f"#{place}"
    if ids is None:
        value = record.get("id")
        value = f"#{place}" if value is None else value
    else:
        properties = record.get("properties")
        value = properties.get(ids) if isinstance(properties, dict) else None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    is_whole = isinstance(value, float) and value.is_integer()
    text = str(int(value) if is_whole else value).strip()
    return text if _is_text(text) else ""


def _usable(record: Any, fid: str, kinds: Kinds) -> _Usable:
    if record is _BAD_JSON:
        raise _BadFeatureError("bad_json")
    if not isinstance(record, dict):
        raise _BadFeatureError("not_a_feature")
    if not fid:
        raise _BadFeatureError("bad_id")
    feature = record if record.get("type") == "Feature" else {"geometry": record}
    tags = _tags(feature.get("properties"))
    geometry = feature.get("geometry")
    if geometry is None:
        raise _BadFeatureError("no_geometry")
    flat, mended = _checked(geometry)
    kind = kinds.named_or_of(tags, flat["type"])
    return _Usable(kind=kind, tags=tags, wkb=_wkb(flat), mended=mended)


def _tags(properties: Any) -> dict[str, str]:
    if properties is None:
        return {}
    if not isinstance(properties, dict):
        raise _BadFeatureError("bad_properties")
    try:
        tags = tags_of(properties)
    except RecursionError:
        raise _BadFeatureError("bad_properties") from None
    if not all(map(_is_text, (*tags, *tags.values()))):
        raise _BadFeatureError("bad_properties")
    return tags


def _is_text(text: str) -> bool:
    """Whether a text is one: JSON may have half of a pair of surrogates, which no file can hold."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _wkb(geometry: dict[str, Any]) -> bytes:
    try:
        return bytes(shapely.to_wkb(shape(geometry)))
    except (ValueError, TypeError, IndexError, shapely.errors.ShapelyError):
        raise _BadFeatureError("bad_geometry") from None


def _checked(geometry: Any, *, nested: int = 0) -> tuple[dict[str, Any], bool]:
    """A geometry that GEOS can build, in two dimensions, and whether empty parts were left out.

    Raises:
        _BadFeatureError: what is wrong with any other.
    """
    if not isinstance(geometry, dict):
        raise _BadFeatureError("bad_geometry")
    kind = geometry.get("type")
    if kind == "GeometryCollection":
        members = geometry.get("geometries")
        if not isinstance(members, list) or nested == _MOST_NESTED:
            raise _BadFeatureError("bad_geometry")
        parts = [_checked(member, nested=nested + 1) for member in members]
        flat = {"type": kind, "geometries": [part for part, _ in parts]}
        return flat, any(mended for _, mended in parts)
    if not isinstance(kind, str) or kind not in _DEPTH:
        raise _BadFeatureError("unknown_type")
    given = geometry.get("coordinates")
    full = _without_empty(given, _DEPTH[kind], kind)
    places = _places(full, _DEPTH[kind], kind)
    return {"type": kind, "coordinates": places}, full != given


def _without_empty(places: Any, depth: int, kind: str) -> Any:
    """The coordinates without empty parts and holes, as far as there are lists; a part without its shell is empty."""
    if depth <= _OF_PARTS.get(kind, _NO_PARTS) or not isinstance(places, list):
        return places
    parts = [_without_empty(part, depth - 1, kind) for part in places]
    if depth == _SHELL and kind.endswith("Polygon") and parts and parts[0] == []:
        return []
    return [part for part in parts if part != []]


def _places(places: Any, depth: int, kind: str) -> list[Any]:
    if not isinstance(places, list):
        raise _BadFeatureError("bad_coordinates")
    if depth == 0:
        return _place(places)
    checked = [_places(place, depth - 1, kind) for place in places]
    if depth == 1 and len(checked) < _FEWEST.get(kind, 1):
        raise _BadFeatureError("too_few_points")
    if depth == 1 and kind.endswith("Polygon") and checked[0] != checked[-1]:
        raise _BadFeatureError("ring_not_closed")
    return checked


def _place(place: list[Any]) -> list[Any]:
    if len(place) < 2 or not all(_is_number(value) for value in place):
        raise _BadFeatureError("bad_coordinates")
    return place[:2]


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return False


def system_of(members: Sequence[Any], file: Path) -> str | None:
    """The system that the members of a file say, as pyproj understands it; None: none says one.

        {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::25832"}}   ->   urn:ogc:def:crs:EPSG::25832
        {"type": "EPSG", "properties": {"code": 25832}}                           ->   EPSG:25832

    Args:
        members: the values of `crs`, of the document or of its lines; null says nothing.
        file: names the file in errors.

    Raises:
        LayerError: one says its system in no way that is known, or two say different ones.
    """
    names = sorted({_name(one, file) for one in members if one is not None})
    if len(names) > 1:
        raise LayerError(
            f"{file} says several systems of coordinates: {', '.join(names)}",
            hint="make a file of each, with ogr2ogr",
        )
    return names[0] if names else None


def _name(member: Any, file: Path) -> str:
    """What a member says.

    Raises:
        LayerError: it is none of the two kinds that name a system.
    """
    properties = member.get("properties") if isinstance(member, dict) else None
    said = properties if isinstance(properties, dict) else {}
    name, code = said.get("name"), said.get("code")
    if isinstance(name, str) and name.strip():
        return name.strip()
    if isinstance(code, int) and not isinstance(code, bool):
        return f"EPSG:{code}"
    shown = json.dumps(member, default=str)[:_SHOWN]
    raise LayerError(
        f"{file}: its member crs names no system of coordinates: {shown}",
        hint="--source-crs EPSG:.. says it",
    )
