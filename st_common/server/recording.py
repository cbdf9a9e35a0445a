"""The page of a home as one file: answers of the server, recorded, in the place of a server.

    since ----+---+---+---+---- until           moments at which objects and answers are recorded
    /page/past/buses?at=..  /v1/answers/zone?at=..  /page/tiles/parks/13/4660/2371.mvt    asked of the application

Everything is bounded: as many moments as the positions of all objects allow, as many tiles as are few.
"""

import asyncio
import base64
import gzip
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import pyarrow as pa
import pyarrow.compute as pc
from starlette.applications import Starlette

from st_common.answers.changes import stream_changes
from st_common.answers.outlets import Outlet
from st_common.config.home import Home
from st_common.errors import ConfigError
from st_common.server.changes import told_of
from st_common.server.page.files import FOLDER
from st_common.server.replies import iso_of
from st_common.storage import LocalStorage

if TYPE_CHECKING:
    import httpx

Box = tuple[float, float, float, float]

MOMENTS = 60
"""So many at most."""
_MOST_PLACES = 600_000
"""Positions of objects at all moments together; each takes some 20 bytes of the file."""
_MOST_TILES = 300
_MOST_ZOOM = 16
_MOST_ASKED = 3
"""Of each query, so many who are in at the end can be asked about."""
_MOST_CHANGES = 20_000
"""Of each query; where there are more, it is shown from later on."""
_LOOK_S = 20.0
_TEMPLATE = "report.html"
_EMPTY = 'id="recording">null<'


@dataclass
class Recorder:
    """Asks the application, and keeps what it answers.

    Attributes:
        app: the application of a server.
        replies: by address the kind of the body, and the body, packed and as base64.
    """

    app: Starlette
    replies: dict[str, tuple[str, str]] = field(default_factory=dict)
    _runner: asyncio.Runner = field(default_factory=asyncio.Runner)

    def close(self) -> None:
        """Ends what it asked with."""
        self._runner.close()

    def ask(self, path: str) -> "httpx.Response":
        """The answer to a request."""
        import httpx

        async def asked() -> httpx.Response:
            there = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(
                transport=there, base_url="http://localhost", trust_env=False
            ) as client:
                return await client.get(path)

        return self._runner.run(asked())

    def keep(self, path: str) -> None:
        """Records the answer to a request; nothing where it is refused, or empty."""
        reply = self.ask(path)
        if reply.status_code == 200:
            self.record(path, reply.headers["content-type"], reply.content)

    def ask_json(self, path: str) -> dict[str, Any]:
        """What an answer says; {} where the request is refused."""
        reply = self.ask(path)
        told: dict[str, Any] = reply.json() if reply.status_code == 200 else {}
        return told

    def record(self, path: str, media: str, body: bytes) -> None:
        """Records a body as the answer to a request."""
        packed = base64.b64encode(gzip.compress(body, mtime=0)).decode()
        self.replies[path] = (media, packed)


def path_of(*parts: str, **params: str) -> str:
    """A path of its parts, each escaped, with parameters."""
    path = "/" + "/".join(quote(part, safe="") for part in parts)
    return f"{path}?{urlencode(params)}" if params else path


def moments_of(since: datetime, until: datetime, objects: int) -> list[datetime]:
    """The moments that are recorded, the last one `until`: fewer where there are many objects.

    Args:
        since: the beginning.
        until: the end; behind the beginning.
        objects: how many there are.
    """
    count = max(2, min(MOMENTS, _MOST_PLACES // max(objects, 1)))
    step = (until - since) / (count - 1)
    between = [since + n * step for n in range(count - 1)]
    whole_ms = [one - timedelta(microseconds=one.microsecond % 1000) for one in between]
    return [*whole_ms, until]


def tiles_of(boxes: Sequence[Box]) -> tuple[int, list[tuple[int, int, int]]]:
    """The tiles that cover some boxes, from zoom 0 on, as far as they are few.

    Args:
        boxes: west, south, east, north.

    Returns:
        The largest zoom whose tiles are all there, and all tiles as zoom, column and row.
    """
    known: list[tuple[int, int, int]] = []
    for zoom in range(_MOST_ZOOM + 1):
        here = {(zoom, x, y) for box in boxes for x, y in _covering(box, zoom)}
        if len(known) + len(here) > _MOST_TILES:
            return zoom - 1, known
        known += sorted(here)
    return _MOST_ZOOM, known


def _covering(box: Box, zoom: int) -> Iterator[tuple[int, int]]:
    """Columns and rows of the tiles of Mercator that a box touches."""
    west, south, east, north = box
    first_x, first_y = _tile_at(west, north, zoom)
    last_x, last_y = _tile_at(east, south, zoom)
    for x in range(first_x, min(last_x, first_x + _MOST_TILES) + 1):
        for y in range(first_y, min(last_y, first_y + _MOST_TILES) + 1):
            yield x, y


def _tile_at(lon: float, lat: float, zoom: int) -> tuple[int, int]:
    side = 1 << zoom
    northing = math.asinh(math.tan(math.radians(max(-85.0, min(85.0, lat)))))
    x = int((lon + 180) / 360 * side)
    y = int((1 - northing / math.pi) / 2 * side)
    return max(0, min(side - 1, x)), max(0, min(side - 1, y))


def known_state(recorder: Recorder, streams: Sequence[str]) -> dict[str, Any]:
    """What `/page/state` says once it has looked at all streams, which it does in the background.

    Args:
        recorder: of the home's application.
        streams: their names.
    """
    for name in streams:
        recorder.ask(path_of("page", "live", name))
    until_s = time.monotonic() + _LOOK_S
    while True:
        state: dict[str, Any] = recorder.ask("/page/state").json()
        waiting = [
            one for one in state["streams"] if one["objects"] and not one["extent"]
        ]
        if not waiting or time.monotonic() > until_s:
            return state
        time.sleep(0.2)


def record_all(
    recorder: Recorder,
    home: Home,
    state: dict[str, Any],
    since: datetime,
    until: datetime,
) -> None:
    """Records what the page shows of a home between two times.

    Args:
        recorder: of the home's application.
        home: the home folder.
        state: what `/page/state` says.
        since: the beginning.
        until: the end.
    """
    objects = sum(one["objects"] or 0 for one in state["streams"])
    moments = moments_of(since, until, objects)
    for stream in state["streams"]:
        recorder.keep(path_of("page", "regions", stream["name"]))
        _keep_moments(recorder, ("page", "past", stream["name"]), moments)
    for query in state["queries"]:
        _record_query(recorder, home, query, since, until)
        _record_members(recorder, query)
    _record_tiles(recorder, state)


def _keep_moments(
    recorder: Recorder, parts: tuple[str, ...], moments: Sequence[datetime]
) -> None:
    for at in moments:
        recorder.keep(path_of(*parts, at=iso_of(at)))


def _record_query(
    recorder: Recorder,
    home: Home,
    query: Mapping[str, str],
    since: datetime,
    until: datetime,
) -> None:
    """Records a query: its text, its regions, who was in at first, and what changed from then on, as events.

    Who was in at any moment between follows from these two, in the page.
    """
    stream, name = query["stream"], query["name"]
    recorder.keep(path_of("v1", "queries", name))
    recorder.keep(path_of("page", "shapes", name))
    rows = stream_changes(home, stream, name, until=until)
    told = rows.filter(pc.field("event_ts") > pa.scalar(since))
    if len(told) > _MOST_CHANGES:
        told = told.slice(len(told) - _MOST_CHANGES)
        since = told["event_ts"][0].as_py()
        told = told.filter(pc.field("event_ts") > pa.scalar(since))
    recorder.keep(path_of("v1", "answers", name, at=iso_of(since)))
    passed = Outlet(home, stream).passed(told)
    events = b"".join(one.event for one in told_of(passed, stream))
    recorder.record(path_of("v1", "changes", name), "text/event-stream", events)


def _record_members(recorder: Recorder, query: Mapping[str, str]) -> None:
    """Records what is known of some of those who are in the answer of a query, and why they are."""
    name, stream = query["name"], query["stream"]
    rows = recorder.ask_json(path_of("v1", "answers", name)).get("rows", ())
    for member in list(dict.fromkeys(row["object"] for row in rows))[:_MOST_ASKED]:
        recorder.keep(path_of("v1", "why", name, object=member))
        if path_of("page", "object", stream, member) not in recorder.replies:
            recorder.keep(path_of("page", "object", stream, member))


def _record_tiles(recorder: Recorder, state: Mapping[str, Any]) -> None:
    """Records the layers around all streams, and says in the state how far they go; tiles of others are left out."""
    state = {**state, "base_map": None}  # a report asks nobody; a key may stand in it
    shown = [one["extent"] for one in state["streams"] if one["extent"] is not None]
    for layer in state["layers"]:
        boxes = shown or [layer["extent"]] if layer["extent"] else []
        zoom, tiles = tiles_of([tuple(box) for box in boxes])
        layer["recorded_zoom"] = zoom
        for z, x, y in tiles:
            version = str(layer["version"])
            recorder.keep(
                path_of(
                    "page",
                    "tiles",
                    layer["name"],
                    str(z),
                    str(x),
                    f"{y}.mvt",
                    v=version,
                )
            )
    recorder.record("/page/state", "application/json", json.dumps(state).encode())


def write_report(
    path: Path,
    recorder: Recorder,
    *,
    since: datetime,
    until: datetime,
    made: datetime,
) -> int:
    """Writes the page with what was recorded; it asks nobody for anything.

    Args:
        path: of the file; one that is there is replaced.
        recorder: what was recorded.
        since: the beginning of what it shows.
        until: the end.
        made: when it was made.

    Returns:
        Bytes of the file.

    Raises:
        ConfigError: the page was not built.
    """
    template = FOLDER / _TEMPLATE
    if not template.exists():
        raise ConfigError("the page was not built", hint="`make setup` builds it")
    told = {
        "made": iso_of(made),
        "since": iso_of(since),
        "until": iso_of(until),
        "explained": _MOST_ASKED,
        "replies": recorder.replies,
    }
    data = json.dumps(told, separators=(",", ":")).replace("<", "\\u003c")
    head, marked, rest = template.read_text(encoding="utf-8").partition(_EMPTY)
    if not marked:
        raise ConfigError("the page was built by another version", hint="`make setup`")
    text = f"{head}{_EMPTY.replace('null', data)}{rest}"
    content = text.encode()
    LocalStorage(path.parent).put(path.name, content)
    return len(content)
