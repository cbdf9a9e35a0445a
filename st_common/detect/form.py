"""Which format bytes are of: by how they begin, and for text by what separates its fields."""

import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from st_common.config.stream_values import PLANAR
from st_common.detect.columns import guessed
from st_common.detect.rows import Rows, flat, rows_of_features
from st_common.detect.text import text_of
from st_common.errors import ConfigError
from st_common.formats.encodings import UTF8, as_utf8, encoding_seen
from st_common.formats.member_lines import list_of, member_lines
from st_common.formats.registry import format_of
from st_common.formats.stamped import plain_lines
from st_common.replay.source import opened
from st_common.replay.zipped import zip_above

_LIST = re.compile(rb'"([^"\\.]+)"\s*:\s*\[\s*\{')
_OBJECT = re.compile(rb'"([^"\\.]+)"\s*:\s*\{')
_MOST = 8  # names of each kind that are looked at

_LINES = 100
_AIS = re.compile(
    rb"^(\\[^\\]*\\|\d+,|\W?\d{4}-\d\d-\d\d[T ][^!\n]{0,40})?[!$](AI|BS|AB|AN|AR|AS|AT|AX)(VDM|VDO)",
    re.MULTILINE,
)
_SBS = re.compile(
    rb"MSG,[1-8],[^\n]*|(SEL|ID|AIR|STA|CLK),[^,\n]*,[^\n]*\d{4}/\d\d/\d\d,\d\d:\d\d:\d\d[^\n]*"
)
_SBS_FIELDS = {
    b"MSG": (22,),
    b"SEL": (11, 22),
    b"ID": (11, 22),
    b"AIR": (10, 22),
    b"STA": (11, 22),
    b"CLK": (10, 22),
}
_FEATURES = re.compile(rb'"(features|locations)"\s*:\s*\[')
_LOCATIONS = re.compile(rb'"locations"\s*:\s*\[\s*\{(?s:.*?)"Feature"')
_OWN_LINES: Mapping[str, re.Pattern[bytes]] = {
    "hfp": re.compile(rb'^([0-9]\S* )?/hfp/v[0-9]/.* \{\s*"'),
    "owntracks": re.compile(rb'^[0-9]{4}-[0-9-]+T[0-9:.]+Z\t[^\t{]*\t\{"'),
    "nmea": re.compile(
        rb"^(?:[^$!\n]{0,80}\$[^\n]*\n){0,99}?[^$!\n]{0,80}\$[A-Z]{2}(?:RMC|GGA),"
    ),
}
"""What lines begin with that are of a format of their own."""
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What was seen of a format.

    Attributes:
        format: its name in settings.
        settings: other keys of the stream that follow from it.
        names: of columns, in their order; empty where the format has names of its own.
        rows: the first records as texts by column.
    """

    format: str
    settings: dict[str, Any] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    rows: Sequence[dict[str, str]] = ()


def form_of(data: bytes, place: str) -> Form:
    """The format of bytes, and the encoding of a text that is no UTF-8.

    Raises:
        ConfigError: it is none that is known.
    """
    form, encoding = _form_of(data, place), encoding_seen(data)
    if encoding == UTF8 or "encoding" not in format_of(form.format).takes:
        return form
    form = _form_of(as_utf8(data, encoding), place)
    return replace(form, settings={**form.settings, "encoding": encoding})


def _form_of(data: bytes, place: str) -> Form:
    data = data.removeprefix(_BOM)
    begun = plain_lines(data.lstrip())
    if data.startswith(b"PAR1"):
        return _of_parquet(place)
    if begun.startswith(b"<"):
        return _of_xml(begun, place)
    if _AIS.search(data[:65_536]):
        return Form(format="ais")
    if _is_sbs(begun):
        return Form(format="sbs1")
    if (own := _own_lines(begun)) is not None:
        return Form(format=own)
    if begun.startswith((b"{", b"[")):
        return _of_json(begun, place)
    if b"\0" in data[:4096] or _is_binary(data[:4096]):
        return _of_binary(data, place)
    return _of_text(data.decode("utf-8", "replace"), place)


def _is_sbs(begun: bytes) -> bool:
    """Whether most of the first lines are SBS-1: by their kinds, and each with its number of fields."""
    lines = [one.rstrip(b"\r") for one in begun.split(b"\n", _LINES)[:_LINES]]
    lines = [one for one in lines if one][: max(len(lines) - 1, 1)]
    good = sum(
        _SBS.fullmatch(one) is not None
        and one.count(b",") + 1 in _SBS_FIELDS[one.partition(b",")[0]]
        for one in lines
    )
    return 2 * good > len(lines)


def _of_parquet(place: str) -> Form:
    """The columns of a file and its first rows; only a file can be looked into, for its end says what is in it."""
    from st_common.formats.parquet_records import (
        WGS84,
        batches,
        primary_column,
        system_of,
    )
    from st_common.formats.parquet_records import opened as parquet

    path = Path(place)
    if not (path.is_file() or zip_above(path)):
        raise ConfigError(f"{place} is Parquet", hint="fetch it into a file")
    try:
        with opened(path) as packed, parquet(packed.source) as file:
            batch = next(batches(file), None)
            schema = file.schema_arrow
    except ConfigError as error:
        raise ConfigError(f"{place}: {error.message}", hint=error.hint) from None
    records = [] if batch is None else batch.slice(0, _LINES).to_pylist()
    rows = [flat(record) for record in records]
    names = _names_of(rows)
    settings: dict[str, Any] = {}
    primary = primary_column(schema.metadata)
    if primary is not None:
        system = system_of(schema.metadata, primary)
        if system not in (None, WGS84):
            settings["crs"] = system if str(system).startswith("EPSG:") else PLANAR
        own = [one for one in names if one.partition(".")[0] == primary]
        names = (*own, *(one for one in names if one not in own))
    return Form(format="parquet", settings=settings, names=names, rows=rows)


def _of_geojson(begun: bytes) -> Form:
    """The properties of the first features, and the id of their own where each has one."""
    listed = _FEATURES.search(begun)
    at = begun.find(b"[", listed.start()) if listed else 0
    rows = rows_of_features(list(_objects(begun[at:]))[:_LINES])
    return Form(format="geojson", names=_names_of(rows), rows=rows)


def _of_xml(begun: bytes, place: str) -> Form:
    if b"<gpx" in begun[:4096]:
        return Form(format="gpx")
    raise ConfigError(f"{place} is XML, and no GPX", hint="layers are read from .osm")


def _is_binary(data: bytes) -> bool:
    """Whether bytes are no text."""
    return sum(byte < 9 for byte in data) > len(data) // 50


def _of_binary(data: bytes, place: str) -> Form:
    """A FeedMessage begins with its header, field 1: a message with a version, "1.0" or "2.0"."""
    if data[:1] == b"\n" and re.match(rb"\n.{1,3}\n\x03[12]\.0", data, re.DOTALL):
        return Form(format="gtfs-rt")
    raise ConfigError(
        f"{place} is binary, and neither Parquet nor GTFS-realtime",
        hint="docs/formats.md has all formats",
    )


def _of_json(begun: bytes, place: str) -> Form:
    head = begun[:4096]
    is_list = b'"FeatureCollection"' in head or _LOCATIONS.search(head) is not None
    if is_list or b'"Feature"' in head.partition(b"\n")[0]:
        return _of_geojson(begun)
    if re.match(rb'\{\s*"time"\s*:\s*\d+\s*,\s*"states"\s*:', begun):
        return Form(format="opensky")
    if (own := _own_json(head)) is not None:
        return Form(format=own)
    rows = _rows_of(begun)
    settings = {}
    if len(rows) <= 1 and not _are_fixes(rows):
        lists = _lists_in(begun)
        fixes = (name for name, inside in lists.items() if _are_fixes(inside))
        member = next(fixes, next(iter(lists), None))
        if member is not None:
            settings, rows = {"records": member}, lists[member]
    if not rows and re.match(rb"\[\s*[^]\s]", begun):
        raise ConfigError(f"{place} is JSON without objects", hint="an object a line")
    return Form(format="ndjson", settings=settings, names=_names_of(rows), rows=rows)


_OWN_JSON: Mapping[str, re.Pattern[bytes]] = {
    "gtfs-rt": re.compile(
        rb'"gtfs_?realtime_?version"\s*:|"header"\s*:\s*\{[^{}]*\}\s*,\s*"entity"\s*:',
        re.IGNORECASE,
    ),
    "owntracks": re.compile(
        rb'"_type"\s*:\s*"(location|waypoints?|transition|lwt|cmd|card|steps)"'
    ),
    "traccar": re.compile(
        rb'"deviceId"\s*:(?s:.*)"(fixTime|deviceTime|serverTime)"\s*:'
    ),
    "readsb": re.compile(
        rb'"(aircraft|ac)"\s*:\s*\[(?s:.*)"seen(_pos)?"\s*:|"now"\s*:(?s:.*)"aircraft"\s*:\s*\['
        rb'|"icao"\s*:(?s:.*)"trace"\s*:\s*\[\s*\['
    ),
}
"""What the beginning of JSON has that is of a format of its own."""


def _own_lines(begun: bytes) -> str | None:
    """The format of lines that have one of their own."""
    return next((name for name, of in _OWN_LINES.items() if of.match(begun)), None)


def _own_json(head: bytes) -> str | None:
    """The format of JSON that has one of its own."""
    return next((name for name, of in _OWN_JSON.items() if of.search(head)), None)


def _rows_of(text: bytes) -> list[dict[str, str]]:
    return [flat(record) for record in list(_objects(text))[:_LINES]]


def _names_of(rows: Rows) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for row in rows for name in row))


def _are_fixes(rows: Rows) -> bool:
    """Whether records have columns that look like those of a fix."""
    return not guessed(_names_of(rows), rows).missing


def _lists_in(document: bytes) -> dict[str, list[dict[str, str]]]:
    """The records of each list of objects in a JSON document, by its path; none where it is no document."""
    lists = {}
    for path in lists_in(document):
        inside = member_lines(io.BytesIO(document), path, size=len(document) + 1)
        lists[path] = _rows_of(b"".join(inside))
    return lists


def _objects(text: bytes) -> Any:
    """The first objects of JSON: lines, or elements of an array; the last one may be cut."""
    decoder, shown = json.JSONDecoder(), text.decode("utf-8", "replace")
    at = 1 if shown.startswith("[") else 0
    while at < len(shown):
        while at < len(shown) and shown[at] in " \t\r\n,":
            at += 1
        try:
            value, at = decoder.raw_decode(shown, at)
        except (ValueError, RecursionError):
            return
        if isinstance(value, dict):
            yield value


def _of_text(text: str, place: str) -> Form:
    seen = text_of(text, place)
    settings: dict[str, Any] = {} if seen.has_header else {"header": False}
    if seen.skip_lines:
        settings["skip_lines"] = seen.skip_lines
    is_tsv = seen.delimiter == "\t"
    if seen.delimiter not in (",", "\t"):
        settings["delimiter"] = seen.delimiter
    return Form(
        format="tsv" if is_tsv else "csv",
        settings=settings,
        names=seen.names,
        rows=seen.rows,
    )


def lists_in(document: bytes) -> Iterator[str]:
    """The paths of the lists of objects in a document, also of those in an object of it: `vehicles`, `data.vehicles`.

    Lists inside of records are none; of names the first ones count.
    """
    if not document.startswith(b"{"):
        return
    lists = _names(_LIST, document)
    outer = _names(_OBJECT, document)
    paths = (*lists, *(f"{one}.{name}" for one in outer for name in lists))
    yield from (path for path in paths if list_of(document, path) is not None)


def _names(pattern: re.Pattern[bytes], document: bytes) -> list[str]:
    """The names that a pattern takes, each once."""
    names = (one[1].decode("utf-8", "replace") for one in pattern.finditer(document))
    return list(islice(dict.fromkeys(names), _MOST))
