"""GPX (1.0 and 1.1): the points of tracks, routes and waypoints, which are one XML document.

A segment is a GPX document of its own. A file is cut between points, and around the points of a segment stand the tags
that they stood in, with the name of their track:

    <gpx><metadata/>                   <gpx><trk><name>a</name><trkseg>
      <trk><name>a</name><trkseg>  ->  <trkpt ..>..</trkpt>
        <trkpt ..>..</trkpt>           <trkpt ..>..</trkpt>
        <trkpt ..>..</trkpt> ..        </trkseg></trk></gpx>

Expat reads it, as UTF-8 alone and without a DOCTYPE, so that no entity can be declared and nothing is ever fetched.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING
from xml.parsers import expat

from st_common.errors import ConfigError
from st_common.formats.format import Format
from st_common.formats.format_settings import (
    FormatSettings,
    Source,
    named_columns,
    parts,
)

if TYPE_CHECKING:
    from st_common.formats.chunk import Chunk
    from st_common.formats.records import Records

_TRACK_NAME = "trk/name"
_WAYPOINT = "wpt"
_POINTS = ("trkpt", "rtept", _WAYPOINT)
_ENCODINGS = ("utf-8", "us-ascii")
_BLANKS = b"\xef\xbb\xbf \t\r\n"
_PORTION = 1 << 16  # bytes read at once
_LEAST_CHUNK = 1 << 18  # bytes
_LONGEST = 1 << 20  # bytes of a point, and of the tags around it
_DEEPEST = 100  # elements in each other
_START_TAG = re.compile(rb"""<(?:[^"'>]|"[^"]*"|'[^']*')*>""")


class Gpx(Format):
    """Points; the columns of one are `lat`, `lon`, its children by path (`time`, `extensions/hr`) and `trk/name`."""

    is_lines = False

    takes = frozenset({"time_unit", "time_zone"})
    crs = "EPSG:4326"

    columns = MappingProxyType({"x": "lon", "y": "lat"})
    known = MappingProxyType(
        {
            "ele": "double m",
            "name": "string",
            "sat": "long",
            "hdop": "double",
            _TRACK_NAME: "string",
        }
    )

    def chunks(
        self, source: Source, stream: FormatSettings, *, size: int
    ) -> "Iterator[Chunk]":
        """Chunks of points that stand in the same tags; of about `size` bytes, raised to 256 KiB where it is less.

        Raises:
            ConfigError: the document breaks, with line and column.
        """
        group: list[_Point] = []
        filled = 0
        for point in _points(source):
            if group and (point.around != group[0].around or filled >= size):
                yield _chunk(group)
                group, filled = [], 0
            group.append(point)
            filled += len(point.text)
        if group:
            yield _chunk(group)

    def check_whole(self, source: Source) -> None:
        """Reads the document to its end.

        Raises:
            ConfigError: it breaks, with line and column.
        """
        for _ in _points(source):
            pass

    def records(self, payload: bytes, stream: FormatSettings) -> "Records":
        """The points of a document; where it breaks, one more record stands for the rest, `unreadable`.

        Where tracks are the objects, waypoints are `no_position`: they mark places, and nobody is there.
        """
        import numpy as np
        import pyarrow as pa

        from st_common.formats.records import RAW_LIMIT, Reason, Records, columns_read

        reader = _Reader()
        fault, texts = [], []
        try:
            reader.feed(payload)
            reader.end()
        except _BrokenError:
            fault.append(Reason.UNREADABLE)
            texts.append(payload[reader.read_to :][:RAW_LIMIT])
        points = reader.take()
        by_track = _TRACK_NAME in parts(stream.columns.object)
        beside = [by_track and point.is_waypoint for point in points]
        told = [Reason.NO_POSITION if one else Reason.NONE for one in beside]
        fault = [*told, *fault]
        raw = pa.array(
            [point.text[:RAW_LIMIT] for point in points] + texts, pa.binary()
        )
        read = [
            point for point, is_none in zip(points, beside, strict=True) if not is_none
        ]
        fields = {
            name: pa.array([point.fields.get(name) for point in read], pa.string())
            for name in columns_read(stream)
        }
        return Records(
            fault=np.array(fault, np.int8),
            fields=fields,
            raw=lambda rows: raw.take(pa.array(rows)),
        )

    def whole_bytes(self, payload: bytes) -> int:
        """All of them: where the document breaks is seen when it is read."""
        return len(payload)

    def wrong_in(self, stream: FormatSettings) -> tuple[str, str] | None:
        """Coordinates from elsewhere than `lon` and `lat`, and what is said of a track beside its name."""
        if (stream.columns.x, stream.columns.y) != ("lon", "lat"):
            wrong = (
                f"columns: x and y are {stream.columns.x!r} and {stream.columns.y!r}"
            )
            return wrong, 'a point of GPX has x = "lon" and y = "lat"'
        for _, name in named_columns(stream):
            if name.startswith("trk/") and name != _TRACK_NAME:
                wrong = f"columns: {name!r} is nothing that is read of a track"
                return wrong, f"{_TRACK_NAME} is the name of a point's track"
        return None

    def mend(self, reason: str, head: bytes, stream: FormatSettings) -> str | None:
        """What a track without a name needs."""
        if reason == "missing_object" and stream.columns.object == _TRACK_NAME:
            return "each track needs a <name>, in front of its points"
        return None


@dataclass(frozen=True, slots=True)
class _Point:
    """A point: the tags in front of it and behind it, its own bytes, and its texts by the name of their column."""

    around: tuple[bytes, bytes]
    text: bytes
    fields: dict[str, str]
    is_waypoint: bool


@dataclass(slots=True)
class _Kept:
    """A point or a track's name that is being read: where it starts, and what is known of it so far."""

    start: int
    tag: bytes
    is_point: bool
    is_waypoint: bool = False
    fields: dict[str, str] = field(default_factory=dict)
    path: list[str] = field(default_factory=list)  # of the open elements inside it
    texts: list[str] = field(default_factory=list)  # of the innermost


class _BrokenError(Exception):
    """Where a document breaks, and why."""


class _Reader:
    """Reads the points of a document that comes in portions. `read_to` is where the last whole point ends."""

    def __init__(self) -> None:
        self.read_to = 0
        self._parser = expat.ParserCreate("utf-8")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.XmlDeclHandler = self._declaration
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._is_blank = True
        self._bytes, self._base = b"", 0  # what may still be asked for, and its place
        self._open: list[tuple[str, bytes]] = []  # names and start tags around a point
        self._kept: _Kept | None = None
        self._name: tuple[bytes, str] | None = None  # of the open track
        self._around: tuple[bytes, bytes] | None = None
        self._points: list[_Point] = []

    def feed(self, data: bytes) -> None:
        """Reads the next bytes.

        Raises:
            _BrokenError: the document breaks in them.
        """
        self._is_blank = self._is_blank and not data.strip(_BLANKS)
        if self._is_blank:
            self._base += len(data)
            return
        self._bytes += data
        self._parse(data, is_last=False)
        self._forget()

    def end(self) -> None:
        """Nothing follows.

        Raises:
            _BrokenError: the document is not at its end.
        """
        if not self._is_blank:
            self._parse(b"", is_last=True)

    def take(self) -> list[_Point]:
        """The points that were read since the last call."""
        points, self._points = self._points, []
        return points

    def _parse(self, data: bytes, *, is_last: bool) -> None:
        try:
            self._parser.Parse(data, is_last)
        except expat.ExpatError as error:
            why = expat.ErrorString(error.code)
            place = f"line {error.lineno}, column {error.offset + 1}"
            raise _BrokenError(f"{place}: {why}") from None

    def _forget(self) -> None:
        """Lets go of the bytes in front of what is being read."""
        at = self._parser.CurrentByteIndex
        start = at if self._kept is None else self._kept.start
        if start > self._base:
            self._bytes = self._bytes[start - self._base :]
            self._base = start
        if len(self._bytes) > _LONGEST + _PORTION:
            raise self._broken("a point, or a text, has more than 1 MiB")

    def _broken(self, why: str) -> _BrokenError:
        place = f"line {self._parser.CurrentLineNumber}, column {self._parser.CurrentColumnNumber + 1}"
        return _BrokenError(f"{place}: {why}")

    def _declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and encoding.lower() not in _ENCODINGS:
            raise self._broken(f"its encoding is {encoding}, and must be UTF-8")

    def _doctype(self, *declared: object) -> None:
        raise self._broken("it has a DOCTYPE, which is refused: GPX needs none")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        kept, local = self._kept, _local(name)
        if kept is not None:
            if len(kept.path) >= _DEEPEST:
                raise self._broken("elements stand too deep in each other")
            kept.path.append(local)
            kept.texts = []
            return
        self._start_outside(name, local, attributes)

    def _start_outside(self, name: str, local: str, attributes: dict[str, str]) -> None:
        """An element that stands in no point."""
        if not self._open and local != "gpx":
            raise self._broken(f"its root is {name!r} and not gpx")
        if len(self._open) >= _DEEPEST:
            raise self._broken("elements stand too deep in each other")
        start = self._parser.CurrentByteIndex
        tag = self._start_tag(start)
        if local in _POINTS:
            texts = {_local(key): value for key, value in attributes.items()}
            self._kept = _Kept(
                start,
                tag,
                is_point=True,
                is_waypoint=local == _WAYPOINT,
                fields=texts,
            )
        elif local == "name" and self._in_track():
            self._kept = _Kept(start, tag, is_point=False)
        else:
            self._open.append((name, tag))
            self._around = None

    def _in_track(self) -> bool:
        return [_local(name) for name, _ in self._open] == ["gpx", "trk"]

    def _text(self, text: str) -> None:
        if self._kept is not None:
            self._kept.texts.append(text)

    def _end(self, name: str) -> None:
        kept = self._kept
        if kept is None:
            self._open.pop()
            self._around = None
            if len(self._open) == 1:
                self._name = None
            return
        kept.fields.setdefault("/".join(kept.path), "".join(kept.texts).strip())
        kept.texts = []
        if kept.path:
            kept.path.pop()
        else:
            self._finish(kept)

    def _finish(self, kept: _Kept) -> None:
        """A point, or the name of the open track, is whole."""
        end = self._end_of(kept)
        text = self._bytes[kept.start - self._base : end - self._base]
        self._kept = None
        if not kept.is_point:
            if self._name is None:
                self._name, self._around = (text, kept.fields[""]), None
            return
        if self._name is not None:
            kept.fields[_TRACK_NAME] = self._name[1]
        around = self._tags_around()
        self._points.append(_Point(around, text, kept.fields, kept.is_waypoint))
        self.read_to = end

    def _start_tag(self, start: int) -> bytes:
        tag = _START_TAG.match(self._bytes, start - self._base)
        if tag is None:
            raise self._broken("a start tag never ends")
        if b"\0" in tag[0]:
            raise self._broken("it is UTF-16, and must be UTF-8")
        return tag[0]

    def _end_of(self, kept: _Kept) -> int:
        """The place behind an element whose end is being told."""
        if kept.tag.endswith(b"/>"):
            return kept.start + len(kept.tag)
        end_tag = self._parser.CurrentByteIndex - self._base
        return self._base + self._bytes.index(b">", end_tag) + 1

    def _tags_around(self) -> tuple[bytes, bytes]:
        """What makes a document of a point: the open tags and the track's name in front of it, end tags behind it."""
        if self._around is None:
            starts = [tag for _, tag in self._open]
            if self._name is not None:
                starts.insert(2, self._name[0])
            ends = [f"</{name}>" for name, _ in reversed(self._open)]
            self._around = b"".join(starts) + b"\n", "".join(ends).encode() + b"\n"
        if len(self._around[0]) > _LONGEST:
            raise self._broken("the tags around a point have more than 1 MiB")
        return self._around


def _local(name: str) -> str:
    """The name of an element without the prefix of its namespace."""
    return name.rpartition(":")[2]


def _points(source: Source) -> Iterator[_Point]:
    """The points of a source.

    Raises:
        ConfigError: the document breaks.
    """
    reader = _Reader()
    try:
        data = source.read(_PORTION)
        while data:
            reader.feed(data)
            yield from reader.take()
            data = source.read(_PORTION)
        reader.end()
    except _BrokenError as error:
        raise ConfigError(
            f"the GPX document breaks in {error}",
            hint="mend the file; --force takes the points in front of it that fill a segment",
        ) from None


def _chunk(points: list[_Point]) -> "Chunk":
    """Points that stand in the same tags, each on lines of its own."""
    import numpy as np

    from st_common.formats.chunk import Around, Chunk
    from st_common.formats.spans import Spans

    sizes = np.array([len(point.text) for point in points], np.int64)
    starts = np.cumsum(sizes + 1) - (sizes + 1)
    lines = b"".join(point.text + b"\n" for point in points)
    spans = Spans(np.frombuffer(lines, np.uint8), starts, starts + sizes)
    head, foot = points[0].around
    inner, outer = _without_root(head, foot)
    return Chunk(head, spans, foot, around=Around(*inner, *outer))


def _without_root(
    head: bytes, foot: bytes
) -> tuple[tuple[bytes, bytes], tuple[bytes, bytes]]:
    """The tags around a point but for those of the document, and a document's around all.

    <gpx><trk><name>a</name><trkseg> .. </trkseg></trk></gpx>   ->   the tags of trk and trkseg; <gpx> and </gpx>
    """
    before = head[head.index(b">") + 1 :]
    behind = foot[: foot.rindex(b"</")]
    return (before, behind), (b"<gpx>\n", b"</gpx>\n")
