"""The state of all as the page polls it: streams, queries, layers, deliveries, alerts. What is not known is null."""

import dataclasses
import threading
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from st_common.answers.stream_state import state_of
from st_common.config.operations import ServerSettings
from st_common.config.stream import StreamSettings
from st_common.crs import unit_of_crs
from st_common.installed import own_version
from st_common.operations.alerts import read_alerts
from st_common.operations.judged import health_now
from st_common.operations.presence import presence
from st_common.operations.status import read_status
from st_common.server.endpoint import Endpoint
from st_common.server.page.frame import frame_of
from st_common.server.page.known import Known
from st_common.server.page.live import iso
from st_common.server.page.questions import answers_until
from st_common.server.page.readers import Lives, late_warnings
from st_common.server.page.watch import Figures, Watch, newest_event_us
from st_common.server.parameters import Parameters
from st_common.server.replies import value_reply
from st_common.server.schemas import (
    ANY,
    COUNTS,
    ROWS,
    TEXT,
    TIME,
    an_object,
    or_null,
)

MOST_QUERIES, MOST_ALERTS = 2000, 50
_FRESH_S = 1.0
_NO_FIGURES = Figures(
    members={},
    changes_per_min={},
    came={},
    came_over_s=None,
    course=None,
    rejects={},
    latency_ms=None,
    fixes_per_s=None,
    extent=None,
)
_PAGE_STATE = an_object(
    now=TIME,
    version=TEXT,
    streams=ROWS,
    broken_streams=ANY,
    queries=ROWS,
    query_kinds=COUNTS,
    query_states=COUNTS,
    layers=ROWS,
    base_map=or_null(an_object({"attribution": or_null(TEXT)}, url=TEXT)),
    deliveries=ROWS,
    alerts=ROWS,
)


class Board:
    """The state as it was told last: pages that poll within a second are told the same."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: tuple[float, dict[str, Any]] | None = None

    def of(self, asked: Parameters) -> dict[str, Any]:
        """The state."""
        with self._lock:
            now_s = time.monotonic()
            if self._told is None or now_s - self._told[0] > _FRESH_S:
                self._told = (now_s, _state(asked))
            return self._told[1]


@Endpoint("GET", "/page/state", _PAGE_STATE, lane="page")
def page_state(asked: Parameters) -> Response:
    """How all streams, queries, layers and deliveries are, as the page polls it."""
    return value_reply(asked.kept.of(Board).of(asked))


def _state(asked: Parameters) -> dict[str, Any]:
    place, now_us = asked.place, time.time_ns() // 1000
    streams = place.streams()
    figures = asked.kept.of(Watch).figures(asked)
    known = asked.kept.of(Known)
    return {
        "now": iso(now_us),
        "version": own_version(),
        "streams": [
            place.without_paths(
                _stream(asked, one, figures.get(name, _NO_FIGURES), now_us)
            )
            for name, one in streams.items()
        ],
        "broken_streams": {
            name: place.hidden(error.message) for name, error in streams.broken.items()
        },
        **_queries(known.queries(place.home), figures),
        "layers": known.layers(asked),
        "base_map": _base_map(asked.kept.of(ServerSettings)),
        "deliveries": place.without_paths(_deliveries(asked, now_us)),
        "alerts": [
            {
                **dataclasses.asdict(one),
                "ts": iso(one.ts),
                "text": place.hidden(one.text),
            }
            for one in read_alerts(place.home)[-MOST_ALERTS:]
        ],
    }


def _base_map(settings: ServerSettings) -> dict[str, Any] | None:
    """The tiles that lie below the layers, and whose they are; None where the page has the world that is its own."""
    if settings.tile_url is None:
        return None
    return {"url": settings.tile_url, "attribution": settings.tile_attribution}


def _stream(
    asked: Parameters, stream: StreamSettings, figures: Figures, now_us: int
) -> dict[str, Any]:
    """How a stream is, with what the page shows beside it."""
    state = state_of(
        asked.place.home, stream.name, wanted=stream.running, now_us=now_us
    )
    frame = frame_of(asked, stream)
    lives = asked.kept.of(Lives)
    held = lives.held(stream.name)
    objects = None if held is None else held.seen[0]
    newest_us = newest_event_us(lives, stream.name, state.said)
    return {
        "engine": stream.engine,
        "workers": [],
        **state.to_json(),
        "name": stream.name,
        "space": frame.to_json(_unit(stream)),
        "extent": frame.box(figures.extent),
        "group": stream.group,
        "attributes": dict(stream.attributes),
        "fixes_per_s": figures.fixes_per_s,
        "came_over_s": figures.came_over_s,
        "latency_ms": figures.latency_ms,
        "rejects": figures.rejects,
        "objects": objects,
        "answers_until": answers_until(asked.place.home, stream.name),
        "latest_event_ts": None if newest_us is None else iso(newest_us),
        "warnings": late_warnings(asked, stream, state.said),
    }


def _unit(stream: StreamSettings) -> str | None:
    """The unit of a plane's coordinates: `m` where they are metres; None where nobody knows."""
    if stream.epsg == 0:
        return None
    unit_m = unit_of_crs(stream.epsg)
    return "m" if unit_m in (None, 1.0) else f"{unit_m:g} m"


def _queries(
    rows: list[dict[str, Any]], figures: Mapping[str, Figures]
) -> dict[str, Any]:
    """The first queries by name with their figures, and of all how many there are of each kind."""
    shown = []
    for row in rows[:MOST_QUERIES]:
        mine = figures.get(row["stream"])
        members = None if mine is None else mine.members.get(row["name"], 0)
        per_min = None if mine is None else mine.changes_per_min.get(row["name"])
        more: dict[str, Any] = {"members": members, "changes_per_min": per_min}
        more |= {"came": None, "left": None}
        if mine is not None and mine.came_over_s is not None:
            more["came"], more["left"] = mine.came.get(row["name"], (0, 0))
        shown.append({**row, **more})
    return {
        "queries": shown,
        "query_kinds": dict(Counter(row["kind"] for row in rows)),
        "query_states": dict(Counter(row["state"] for row in rows)),
    }


def _deliveries(asked: Parameters, now_us: int) -> list[dict[str, Any]]:
    from st_common.delivery.settings import load_deliveries

    place, shown = asked.place, []
    for name, one in load_deliveries(place.conf, place.streams()).items():
        folder = place.home.delivery(name)
        status = read_status(folder)
        told: dict[str, Any] = {"name": name, "stream": one.stream, "to": one.to}
        told["queries"] = list(one.queries)
        told["health"] = health_now(folder, wanted=one.running, now_us=now_us)
        told |= {"state": None, "changes": None, "dead_letters": None, "behind": None}
        if status is not None:
            told["state"] = presence(folder, status, now_us=now_us).state
            told["changes"], told["dead_letters"] = status.changes, status.rejects
            told["behind"] = status.end_position > status.position
        shown.append(told)
    return shown
