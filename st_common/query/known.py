"""What is registered by which name, kept beside the logs: so a registration reads the control rows that are new.

The logs are the truth. `registry/known.json` and what this process remembers are both only a start: for each stream
they say up to which control segment they have read, and are believed as long as that segment still stands in the log.
"""

import json
import threading
import zlib
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from st_common.config.home import Home
from st_common.controls.rectangles import Rectangles
from st_common.controls.rows import AboutQuery, ControlRow, Drop
from st_common.errors import LogError, MissingError
from st_common.log.control import control_row, control_rows
from st_common.log.log import Log, Segment
from st_common.position import position_of, row_of, segment_of
from st_common.query.control import QueryRow, note_versions, query_row, query_rows
from st_common.storage import LocalStorage

FILE = "known.json"
_FORMAT = 1
_STORE_AFTER = 256  # rows read since the file was written
_KEPT = 8  # homes that a process remembers

Brief = tuple[int, bool, int, int]
"""Of a query's newest row in a stream: version, whether it runs, position, arrival."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Of:
    """The names of one stream. `last` is the newest control segment that was read, and `checksum` its own."""

    last: int = -1
    checksum: int = 0
    names: Mapping[str, Brief] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The names of all streams; `unstored` rows were read since the file was written."""

    streams: Mapping[str, Of] = field(default_factory=dict)
    unstored: int = 0

    def latest(self) -> "Latest":
        """The newest row of every name: the highest version, and its drop after what it dropped."""
        newest: dict[str, tuple[str, Brief]] = {}
        for stream, of in self.streams.items():
            for name, brief in of.names.items():
                before = newest.get(name)
                if before is None or (brief[0], not brief[1]) > (
                    before[1][0],
                    not before[1][1],
                ):
                    newest[name] = stream, brief
        return Latest(newest)


class Latest(MutableMapping[str, QueryRow]):
    """Control rows by their names, without plan, text and owner unless they were put in."""

    def __init__(self, briefs: Mapping[str, tuple[str, Brief]]) -> None:
        self._briefs, self._rows = briefs, dict[str, QueryRow]()

    def __getitem__(self, name: str) -> QueryRow:
        row = self._rows.get(name)
        if row is None:
            stream, (version, live, position, arrival_us) = self._briefs[name]
            op: Literal["register", "drop"] = "register" if live else "drop"
            row = QueryRow(
                name=name,
                version=version,
                op=op,
                stream=stream,
                position=position,
                arrival_us=arrival_us,
            )
        return row

    def __setitem__(self, name: str, row: QueryRow) -> None:
        self._rows[name] = row

    def __delitem__(self, name: str) -> None:
        del self._rows[name]

    def __contains__(self, name: object) -> bool:
        return name in self._rows or name in self._briefs

    def __iter__(self) -> Iterator[str]:
        yield from self._briefs
        yield from (name for name in self._rows if name not in self._briefs)

    def __len__(self) -> int:
        return len(self._briefs.keys() | self._rows.keys())


_remembered: dict[Home, Known] = {}
_lock = threading.Lock()


def known(home: Home, streams: list[str], *, store: bool = False) -> Known:
    """What is registered in the logs of some streams now; with `store` (the registry is locked) it may be kept.

    Raises:
        LogError: a control row that is no JSON object, or a query row without its parts.
    """
    with _lock:
        before = _remembered.get(home) or _stored(home)
        read = {
            stream: _caught_up(home, stream, before.streams.get(stream, Of()))
            for stream in streams
        }
        now = Known(
            streams={stream: of for stream, (of, _) in read.items()},
            unstored=before.unstored + sum(count for _, count in read.values()),
        )
        if store and now.unstored >= _STORE_AFTER:
            _store(home, now)
            now = replace(now, unstored=0)
        _remembered.pop(home, None)
        _remembered[home] = now
        for old in list(_remembered)[:-_KEPT]:
            del _remembered[old]
        return now


def forget() -> None:
    """Lets this process go on as a new one would: from the file and the logs."""
    with _lock:
        _remembered.clear()


def row_at(home: Home, brief: QueryRow) -> QueryRow:
    """The whole control row of which the brief one tells the place.

    Raises:
        LogError: it stands there no more.
    """
    log, number = Log(home.log(brief.stream)), segment_of(brief.position)
    for segment in log.segments(number, end=number + 1):
        row = control_row(log, segment, row_of(brief.position))
        if isinstance(row, AboutQuery) and row.query == brief.name:
            version = brief.version if isinstance(row, Drop) else row.version
            return query_row(
                row, version, brief.stream, segment, row_of(brief.position)
            )
    raise LogError(
        f"segment {number} of stream {brief.stream} has no row of query {brief.name!r}"
    )


def _caught_up(home: Home, stream: str, of: Of) -> tuple[Of, int]:
    """What is known of a stream after its newest control segment, and how many rows were read for it."""
    log = Log(home.log(stream))
    of = of if _still_stands(log, of) else Of()
    segments = log.control_segments(of.last + 1)
    if not segments:
        return of, 0
    names = dict(of.names)
    versions = {name: brief[0] for name, brief in names.items()}
    read = 0
    for segment in segments:
        briefs = _briefs(control_rows(log, segment), stream, segment, versions)
        read += len(briefs)
        names.update(brief for brief in briefs if brief is not None)
    return Of(
        last=segments[-1].number, checksum=segments[-1].checksum, names=names
    ), read


def _briefs(
    rows: Sequence[ControlRow],
    stream: str,
    segment: Segment,
    versions: dict[str, int],
) -> "list[tuple[str, Brief] | None]":
    """For each query row of a control segment what its name is now; None where it is registered as before."""
    if isinstance(rows, Rectangles):
        note_versions(rows, versions)
        named = enumerate(
            zip(rows.names, rows.versions, strict=True),
            position_of(segment.number, 0),
        )
        return [
            (name, (version, True, position, segment.arrival_us))
            for position, (name, version) in named
        ]
    return [
        None
        if row.op == "fail"
        else (row.name, (row.version, row.live, row.position, row.arrival_us))
        for row in query_rows(rows, stream, segment, versions, brief=True)
    ]


def _still_stands(log: Log, of: Of) -> bool:
    if of.last < 0:
        return True
    segments = log.segments(of.last, end=of.last + 1)
    return (
        bool(segments) and segments[0].control and segments[0].checksum == of.checksum
    )


def _store(home: Home, now: Known) -> None:
    streams = {
        stream: [of.last, of.checksum, dict(of.names)]
        for stream, of in now.streams.items()
    }
    body = json.dumps({"format": _FORMAT, "streams": streams}, separators=(",", ":"))
    _storage(home).put(FILE, f"{zlib.crc32(body.encode()):08x}\n{body}".encode())


def _stored(home: Home) -> Known:
    """What the file says; nothing when it is absent, damaged or of another format: then the logs are read."""
    try:
        checksum, _, body = _storage(home).read(FILE).partition(b"\n")
        if int(checksum, 16) != zlib.crc32(body):
            return Known()
        stored = json.loads(body)
    except (MissingError, ValueError):
        return Known()
    if stored["format"] != _FORMAT:
        return Known()
    return Known(
        streams={
            stream: Of(
                last=last,
                checksum=checksum,
                names={name: tuple(brief) for name, brief in names.items()},
            )
            for stream, (last, checksum, names) in stored["streams"].items()
        }
    )


def _storage(home: Home) -> LocalStorage:
    return LocalStorage(home.root / "registry")
