"""Figures of streams that take more than a moment to find: gathered by one thread while somebody looks at the page."""

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from st_common import tables
from st_common.answers.courses import Course, Courses
from st_common.answers.tallies import Tallies
from st_common.errors import FairwayError
from st_common.operations.status import StreamStatus, read_status
from st_common.server.installation import Installation
from st_common.server.page.readers import Lives
from st_common.server.parameters import Parameters

_LOG = logging.getLogger(__name__)
_EVERY_S = 2.0
_UNASKED_S = 60.0
_RATE_S = 10.0
_CHANGES_S = 60.0
_COURSE_S = 5.0
_MOST_SEEN = (
    0.999  # of objects that lie in the extent, each way: some are far off by mistake
)
_QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What is known of one stream; None: not known, or not yet.

    Attributes:
        members: of the answer of each query.
        changes_per_min: of each query, over the last minute or as long as somebody looks.
        came: how many came into the answer of each query in that time, and how many left; none where nothing changed.
        came_over_s: how long that time was; None: it has just begun.
        course: how many were in minute by minute, looked at every five seconds.
        rejects: by reason.
        latency_ms: p50, p95 and p99 of the last 1,000 segments of a live feed, from arrival until their changes were in
            the table; None of a replay, whose segments arrive faster than they can be judged.
        fixes_per_s: that the engine took, over the last ten seconds.
        extent: minx, miny, maxx, maxy of nearly all objects.
    """

    members: Mapping[str, int]
    changes_per_min: Mapping[str, float]
    came: Mapping[str, tuple[int, int]]
    came_over_s: float | None
    course: Course | None
    rejects: Mapping[str, int]
    latency_ms: Mapping[str, float] | None
    fixes_per_s: float | None
    extent: Box | None


@dataclass(slots=True)
class _Meter:
    """A count over time, and how fast it rises over the last seconds."""

    over_s: float
    seen: deque[tuple[float, Any]] = field(default_factory=deque)

    def add(self, now_s: float, count: Any) -> tuple[float, Any] | None:
        """Takes a count; the oldest one that is kept and how many seconds it is old, None for the first."""
        while len(self.seen) > 1 and self.seen[1][0] <= now_s - self.over_s:
            self.seen.popleft()
        self.seen.append((now_s, count))
        begun_s, before = self.seen[0]
        return None if begun_s >= now_s else (now_s - begun_s, before)


@dataclass(frozen=True, slots=True)
class _Counted:
    """What was counted at a look, by query."""

    changes: Counter[str]
    came: Counter[str]
    members: Counter[str]

    @classmethod
    def of(cls, tallies: Tallies) -> "_Counted":
        return cls(tallies.changes.copy(), tallies.came.copy(), tallies.members.copy())


@dataclass(slots=True)
class _Stream:
    """What is remembered of a stream from one round to the next."""

    tallies: Tallies = field(default_factory=Tallies)
    fixes: _Meter = field(default_factory=lambda: _Meter(_RATE_S))
    changes: _Meter = field(default_factory=lambda: _Meter(_CHANGES_S))
    archived: tuple[int | None, Box | None] = (None, None)
    courses: Courses = field(default_factory=Courses)
    course: tuple[float, Course | None] | None = (
        None  # when it was looked at, and what it was
    )


class Watch:
    """Gathers figures of all streams while somebody asks for them; the first are there some seconds after that."""

    def __init__(self) -> None:
        self._figures: dict[str, Figures] = {}
        self._streams: dict[str, _Stream] = {}
        self._lock, self._over = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None
        self._asked_s = 0.0

    def figures(self, asked: Parameters) -> Mapping[str, Figures]:
        """The figures of streams as the last round found them, by name."""
        with self._lock:
            self._asked_s = time.monotonic()
            if self._thread is None and not self._over.is_set():
                work = (asked.place, asked.kept.of(Lives))
                self._thread = threading.Thread(
                    target=self._run, args=work, daemon=True
                )
                self._thread.start()
            return dict(self._figures)

    def close(self) -> None:
        """Ends the thread."""
        self._over.set()

    def _run(self, place: Installation, lives: Lives) -> None:
        while not self._over.is_set():
            with self._lock:
                if time.monotonic() - self._asked_s > _UNASKED_S:
                    self._thread, self._streams, self._figures = None, {}, {}
                    return
            for name in self._known(place):
                self._gather(place, lives, name)
            self._over.wait(_EVERY_S)

    def _known(self, place: Installation) -> list[str]:
        try:
            return list(place.streams())
        except FairwayError as error:
            _LOG.warning("streams are not looked at: %s", error)
            return []

    def _gather(self, place: Installation, lives: Lives, name: str) -> None:
        kept = self._streams.setdefault(name, _Stream())
        try:
            figures = _figures(place, lives, name, kept)
        except (FairwayError, OSError) as error:
            _LOG.warning("stream %s is not looked at: %s", name, error)
            self._figures.pop(name, None)
            return
        self._figures[name] = figures


def _figures(place: Installation, lives: Lives, name: str, kept: _Stream) -> Figures:
    now_s = time.monotonic()
    kept.tallies = kept.tallies.look(place.home, name)
    changes = kept.changes.add(now_s, _Counted.of(kept.tallies))
    status = read_status(place.home.stream(name))
    passed = None if status is None else kept.fixes.add(now_s, status.fixes)
    rate = None
    if passed is not None and status is not None:
        rate = max(status.fixes - passed[1], 0) / passed[0]
    return Figures(
        members=dict(kept.tallies.members),
        changes_per_min={} if changes is None else _per_min(kept.tallies, *changes),
        came={} if changes is None else _came(kept.tallies, changes[1]),
        came_over_s=None if changes is None else changes[0],
        course=_course(place, lives, name, kept, status),
        rejects=dict(kept.tallies.rejects),
        latency_ms=_quantiles(np.array(kept.tallies.recent_s)),
        fixes_per_s=rate,
        extent=_extent(place, lives, name, kept),
    )


def _per_min(tallies: Tallies, passed_s: float, before: _Counted) -> dict[str, float]:
    per_min = 60 / passed_s
    return {
        query: max(count - before.changes[query], 0) * per_min
        for query, count in tallies.changes.items()
    }


def _came(tallies: Tallies, before: _Counted) -> dict[str, tuple[int, int]]:
    """How many came and left since then, by query; those who left are the comers who are not members more."""
    changed: dict[str, tuple[int, int]] = {}
    for query, count in tallies.came.items():
        came = max(count - before.came[query], 0)
        left = max(came - (tallies.members[query] - before.members[query]), 0)
        if came or left:
            changed[query] = (came, left)
    return changed


def _course(
    place: Installation,
    lives: Lives,
    name: str,
    kept: _Stream,
    status: StreamStatus | None,
) -> Course | None:
    """The last hour of a stream, looked at anew every some seconds; None: its time is not known yet."""
    now_s = time.monotonic()
    if kept.course is not None and now_s - kept.course[0] < _COURSE_S:
        return kept.course[1]
    newest_us = newest_event_us(lives, name, status)
    if newest_us is None:
        return None
    course = kept.courses.look(place.home, name, kept.tallies, newest_us)
    kept.course = (now_s, course)
    return course


def newest_event_us(lives: Lives, name: str, status: StreamStatus | None) -> int | None:
    """The newest event time of a stream, us since 1970: of its fixes where somebody looks at it, else its clock."""
    held = lives.held(name)
    newest_us = None if held is None else held.seen[1]
    if newest_us is None and status is not None:
        newest_us = status.now_ts
    return newest_us


def _quantiles(waits_s: npt.NDArray[np.float64]) -> dict[str, float] | None:
    if not len(waits_s):
        return None
    return {
        name: round(float(np.quantile(waits_s, share)) * 1000, 1)
        for name, share in _QUANTILES.items()
    }


def _extent(place: Installation, lives: Lives, name: str, kept: _Stream) -> Box | None:
    """Where nearly all objects are: by who looks at the stream, else by the archive."""
    looked_at = lives.where(name)
    if looked_at is not None:
        return extent_of(*looked_at)
    path = place.home.table("latest", name)
    version = tables.version(path)
    if version is not None and version != kept.archived[0]:
        rows = tables.read(path, columns=["x", "y"])
        box = extent_of(rows["x"].to_numpy(), rows["y"].to_numpy())
        kept.archived = (version, box)
    return kept.archived[1]


def extent_of(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> Box | None:
    """The box in which nearly all of some places lie; None without any. NaN is nowhere."""
    places = np.stack([x, y], axis=1)
    places = places[np.isfinite(places).all(axis=1)]
    if not len(places):
        return None
    west, south, east, north = np.quantile(
        places, [1 - _MOST_SEEN, _MOST_SEEN], axis=0
    ).ravel()
    return float(west), float(south), float(east), float(north)
