"""The state of all as the page polls it: streams, queries, layers, deliveries, alerts. What is not known is null."""

import dataclasses
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.responses import Response

from st_common.capture.log import Log
from st_common.crs import unit_of_crs
from st_common.errors import FairwayError
from st_common.feeds.note import read_notes
from st_common.installed import own_version
from st_common.ops.alerts import read_alerts
from st_common.ops.health import observe
from st_common.ops.judged import all_healths
from st_common.ops.presence import presence, workers_of
from st_common.ops.status import StreamStatus, read_status
from st_common.position import segment_of
from st_common.server.asked import Asked
from st_common.server.late import late_warnings
from st_common.server.page.asks import answers_until
from st_common.server.page.frame import frame_of
from st_common.server.page.known import Known
from st_common.server.page.live import iso
from st_common.server.page.lives import Lives
from st_common.server.page.watch import Figures, Watch
from st_common.server.replies import value_reply
from st_common.settings import Streams, StreamSettings

MOST_QUERIES, MOST_ALERTS = 2000, 50
_FRESH_S = 1.0
_NO_FIGURES = Figures(
    members={},
    changes_per_min={},
    rejects={},
    latency_ms=None,
    fixes_per_s=None,
    extent=None,
)


class Board:
    """The state as it was told last: pages that poll within a second are told the same."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: tuple[float, dict[str, Any]] | None = None

    def of(self, asked: Asked) -> dict[str, Any]:
        """The state."""
        with self._lock:
            now_s = time.monotonic()
            if self._told is None or now_s - self._told[0] > _FRESH_S:
                self._told = (now_s, _state(asked))
            return self._told[1]


def page_state(asked: Asked) -> Response:
    """How all streams, queries, layers and deliveries are, for the page."""
    return value_reply(asked.kept.of(Board).of(asked))


def _state(asked: Asked) -> dict[str, Any]:
    place, now_us = asked.place, time.time_ns() // 1000
    streams = place.streams()
    figures = asked.kept.of(Watch).figures(asked)
    known = asked.kept.of(Known)
    healths = _healths(asked, streams, now_us)
    return {
        "now": iso(now_us),
        "version": own_version(),
        "streams": [
            place.without_paths(
                _stream(asked, one, figures.get(name, _NO_FIGURES), now_us)
            )
            | {"health": healths["streams"].get(name)}
            for name, one in streams.items()
        ],
        "broken_streams": {
            name: place.hidden(error.message) for name, error in streams.broken.items()
        },
        **_queries(known.queries(place.home), figures),
        "layers": known.layers(asked),
        "deliveries": place.without_paths(_deliveries(asked, healths["deliveries"])),
        "alerts": [
            {
                **dataclasses.asdict(one),
                "ts": iso(one.ts),
                "text": place.hidden(one.text),
            }
            for one in read_alerts(place.home)[-MOST_ALERTS:]
        ],
    }


def _healths(
    asked: Asked, streams: Streams, now_us: int
) -> Mapping[str, Mapping[str, str]]:
    from st_common.delivery.settings import wanted

    deliveries = wanted(asked.place.conf, streams)
    return all_healths(asked.place.home, streams, deliveries, now_us=now_us)


def _stream(
    asked: Asked, stream: StreamSettings, figures: Figures, now_us: int
) -> dict[str, Any]:
    frame = frame_of(asked, stream)
    held = asked.kept.of(Lives).held(stream.name)
    objects, newest_us = (None, None) if held is None else held.seen
    return {
        "name": stream.name,
        "space": frame.to_json(_unit(stream)),
        "extent": frame.box(figures.extent),
        "group": stream.group,
        "attributes": dict(stream.attributes),
        "fixes_per_s": figures.fixes_per_s,
        "latency_ms": figures.latency_ms,
        "rejects": figures.rejects,
        "sources": _sources(asked, stream.name),
        "objects": objects,
        "answers_until": answers_until(asked.place.home, stream.name),
        **_engine(asked, stream, now_us),
        **({} if newest_us is None else {"latest_event_ts": iso(newest_us)}),
    }


def _unit(stream: StreamSettings) -> str | None:
    """The unit of a plane's coordinates: `m` where they are metres; None where nobody knows."""
    if stream.epsg == 0:
        return None
    unit_m = unit_of_crs(stream.epsg)
    return "m" if unit_m in (None, 1.0) else f"{unit_m:g} m"


def _sources(asked: Asked, name: str) -> list[dict[str, Any]]:
    shown = []
    for note in read_notes(asked.place.home, name):
        one = dataclasses.asdict(note)
        del one["owner"]
        for key in ("arrived_us", "beat_us"):
            one[key.replace("_us", "_ts")] = iso(one.pop(key))
        shown.append(one)
    return shown


def _engine(asked: Asked, stream: StreamSettings, now_us: int) -> dict[str, Any]:
    """Its engine: whether it lives, how far it is behind, and the newest time that it has seen."""
    folder = asked.place.home.stream(stream.name)
    told: dict[str, Any] = {"engine": stream.engine, "workers": []}
    try:
        seen = observe(folder, wanted=stream.running, now_us=now_us)
    except FairwayError as error:
        why = error.message
        lags = dict.fromkeys(("lag_s", "behind_segments", "archive_lag_s"))
        nothing: dict[str, Any] = {
            **lags,
            "counts": None,
            "latest_event_ts": None,
            "warnings": [],
        }
        return {**told, **nothing, "state": "unreadable", "why": why}
    status = seen.status
    now = presence(folder, status, now_us=now_us)
    counts = ("fixes", "rejects", "late", "double", "cut", "changes", "filtered")
    return {
        **told,
        "engine": stream.engine if status is None else status.engine or stream.engine,
        "state": now.state,
        "why": now.why,
        **_behind(folder, status, now_us),
        "archive_lag_s": _age_s(seen.waiting_since_us, now_us),
        "latest_event_ts": None if status is None else iso(status.now_ts),
        "counts": None
        if status is None
        else {name: getattr(status, name) for name in counts},
        "workers": workers_of(status, now),
        "warnings": late_warnings(asked, stream, status),
    }


def _behind(folder: Path, status: StreamStatus | None, now_us: int) -> dict[str, Any]:
    """How far answers are behind the log, wherever the archive is, which gathers for half a minute."""
    log = Log(folder / "log")
    first = 0 if status is None else segment_of(status.position)
    waiting = max(log.end() - first, 0)
    oldest = log.segments(first, end=first + 1) if waiting else []
    since_us = oldest[0].arrival_us if oldest else None
    return {"lag_s": _age_s(since_us, now_us), "behind_segments": waiting}


def _age_s(since_us: int | None, now_us: int) -> float:
    """Seconds since then; 0 where nothing waits."""
    return 0.0 if since_us is None else max(now_us - since_us, 0) / 1e6


def _queries(
    rows: list[dict[str, Any]], figures: Mapping[str, Figures]
) -> dict[str, Any]:
    """The first queries by name with their figures, and of all how many there are of each kind."""
    shown = []
    for row in rows[:MOST_QUERIES]:
        mine = figures.get(row["stream"])
        members = None if mine is None else mine.members.get(row["name"], 0)
        per_min = None if mine is None else mine.changes_per_min.get(row["name"])
        more = {"members": members, "changes_per_min": per_min}
        shown.append({**row, **more})
    return {
        "queries": shown,
        "query_kinds": dict(Counter(row["kind"] for row in rows)),
        "query_states": dict(Counter(row["state"] for row in rows)),
    }


def _deliveries(asked: Asked, healths: Mapping[str, str]) -> list[dict[str, Any]]:
    from st_common.delivery.settings import load_deliveries

    place, shown = asked.place, []
    for name, one in load_deliveries(place.conf, place.streams()).items():
        status = read_status(place.home.delivery(name))
        told: dict[str, Any] = {"name": name, "stream": one.stream, "to": one.to}
        told |= {"queries": list(one.queries), "health": healths.get(name)}
        told |= {"state": None, "changes": None, "dead_letters": None, "behind": None}
        if status is not None:
            folder, now_us = place.home.delivery(name), time.time_ns() // 1000
            told["state"] = presence(folder, status, now_us=now_us).state
            told["changes"], told["dead_letters"] = status.changes, status.rejects
            told["behind"] = status.end_position > status.position
        shown.append(told)
    return shown
