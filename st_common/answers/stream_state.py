"""How a stream is, as of a moment: what `status`, `GET /v1/status`, metrics, the page and Airflow show of it.

log      |----------------|--------|        segments that have come
engine   .................^ lag  ->|        evaluated and committed by the engine
archive  ..........^ archive lag ->|        stored in `positions` and `rejects`
"""

import dataclasses
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from st_common.config.home import JOINS_FILE, Home
from st_common.errors import FairwayError
from st_common.log.log import Log
from st_common.operations.health import waiting_from
from st_common.operations.judged import MEMORY_FILE, health_now
from st_common.operations.presence import LIVING, Presence, presence, workers_of
from st_common.operations.records import read_record
from st_common.operations.status import StreamStatus, read_all_status, read_status
from st_common.position import segment_of
from st_common.sources.note import CaptureNote, read_notes

COUNTS = ("fixes", "rejects", "late", "double", "cut", "changes")
"""What is counted from when a stream began, as `StreamStatus` has it."""
WARNED_SHARE = 0.01
"""Of fixes; where more are late it is a warning."""
UNREADABLE = "unreadable"
"""The state of a stream whose log cannot be read; `why` says what is wrong."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """How far a job of a stream is behind its log.

    Attributes:
        segments: how many wait.
        since_us: when the oldest of them arrived, us since 1970; None: none waits.
    """

    segments: int
    since_us: int | None

    def seconds(self, now_us: int) -> float:
        """How long the oldest segment has waited; 0 where none does."""
        return 0.0 if self.since_us is None else max(now_us - self.since_us, 0) / 1e6


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StreamState:
    """One stream at one moment.

    Attributes:
        stream: its name.
        as_of_us: the moment, us since 1970.
        health: how it is, as the supervisor judged it, corrected by whether a process lives (`operations.judged`).
        looked_us: when the supervisor looked at it last, us since 1970; None: it never did.
        now: who runs it.
        said: what its engine said last; None: it has not run yet.
        jobs: what each of its jobs said last: the engine, the archive.
        segments: how many its log has.
        lag: how far its answers are behind the log.
        archive_lag: how far its archive is.
        sources: what its sources say of themselves.
        waits_for: of a joint stream the one that it waits for; "" for none.
        waits_s: for how long, in seconds.
    """

    stream: str
    as_of_us: int
    health: str
    looked_us: int | None
    now: Presence
    said: StreamStatus | None
    jobs: tuple[StreamStatus, ...]
    segments: int
    lag: Lag
    archive_lag: Lag
    sources: tuple[CaptureNote, ...]
    waits_for: str = ""
    waits_s: float = 0.0

    @property
    def segments_done(self) -> int:
        """How many segments are evaluated."""
        return 0 if self.said is None else segment_of(self.said.position)

    @property
    def is_living(self) -> bool:
        """Whether a process runs it."""
        return self.now.state in LIVING

    @property
    def is_readable(self) -> bool:
        """Whether its log can be read: else segments and lags are 0."""
        return self.now.state != UNREADABLE

    @property
    def workers(self) -> list[dict[str, Any]]:
        """What its processes take; none of a stream that nobody runs."""
        return workers_of(self.said, self.now)

    def to_json(self) -> dict[str, Any]:
        """A JSON object; of a stream that has not run yet without what only an engine says."""
        sources = [dataclasses.asdict(note) for note in self.sources]
        for source in sources:
            del source["owner"]
        known = self.is_readable
        told = {
            "stream": self.stream,
            "as_of": stamp(self.as_of_us),
            "state": self.now.state,
            "health": self.health,
            "why": self.now.why,
            "segments": self.segments,
            "segments_done": self.segments_done,
            "lag_segments": self.lag.segments if known else None,
            "lag_s": self.lag.seconds(self.as_of_us) if known else None,
            "archive_lag_s": self.archive_lag.seconds(self.as_of_us) if known else None,
            "sources": sources,
        }
        if self.waits_for:
            told |= {"waits_for": self.waits_for, "waits_s": self.waits_s}
        return told if self.said is None else {**told, **self._said(self.said)}

    def _said(self, said: StreamStatus) -> Mapping[str, Any]:
        owner, age_s = self.now.owner, self.now.age_s
        return {
            "position": said.position,
            "pid": owner and owner.pid,
            "host": owner and owner.host,
            "beat_age_s": None if age_s is None else round(age_s, 3),
            "beat_us": said.beat_ts,
            "engine": said.engine,
            "clock": None if said.now_ts is None else stamp(said.now_ts),
            "clock_us": said.now_ts,
            **{name: getattr(said, name) for name in COUNTS},
            "nulled": said.nulled,
            "filtered_out": said.filtered_out,
            "filtered": said.filtered,
            "caches": said.caches,
            "workers": self.workers,
        }


def state_of(
    home: Home, stream: str, *, wanted: bool = True, now_us: int | None = None
) -> StreamState:
    """How a stream is.

    Args:
        home: the home folder.
        stream: its name.
        wanted: whether it shall run, as its settings say.
        now_us: the moment, us since 1970; None: now.

    Returns:
        Its state; one whose log has a hole or a foreign file is `UNREADABLE`.
    """
    folder = home.stream(stream)
    now_us = time.time_ns() // 1000 if now_us is None else now_us
    said, jobs = read_status(folder), tuple(read_all_status(folder))
    now = presence(folder, said, now_us=now_us)
    segments, lag, archive_lag = 0, _NO_LAG, _NO_LAG
    try:
        log = Log(home.log(stream))
        segments = log.end()
        lag, archive_lag = _lag(log, said), _lag(log, _job(jobs, "archive"))
    except FairwayError as error:
        now = dataclasses.replace(now, state=UNREADABLE, why=str(error))
    note = read_record(folder / JOINS_FILE) or {}
    since_us = note.get("since_us")
    return StreamState(
        stream=stream,
        as_of_us=now_us,
        health=health_now(folder, wanted=wanted, now_us=now_us),
        looked_us=_looked_us(folder),
        now=now,
        said=said,
        jobs=jobs,
        segments=segments,
        lag=lag,
        archive_lag=archive_lag,
        sources=tuple(read_notes(home, stream)),
        waits_for=note.get("waits_for", ""),
        waits_s=0.0 if since_us is None else max(now_us - since_us, 0) / 1e6,
    )


_NO_LAG = Lag(segments=0, since_us=None)


def _job(jobs: tuple[StreamStatus, ...], name: str) -> StreamStatus | None:
    return next((one for one in jobs if one.job == name), None)


def _lag(log: Log, job: StreamStatus | None) -> Lag:
    """How far a job is behind a log."""
    first = 0 if job is None else segment_of(job.position)
    segments, since_us = waiting_from(log, first)
    return Lag(segments=segments, since_us=since_us)


def _looked_us(folder: Path) -> int | None:
    memory = folder / MEMORY_FILE
    return memory.stat().st_mtime_ns // 1000 if memory.exists() else None


def is_much(late: int, fixes: int) -> bool:
    """Whether so many late fixes are worth a warning: more than one in a hundred."""
    return late > WARNED_SHARE * fixes


def stamp(time_us: int) -> str:
    """A time (us since 1970) in ISO 8601 with microseconds: `2024-06-11T00:09:59.000000Z`."""
    seconds, us = divmod(time_us, 1_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{us:06d}Z"
