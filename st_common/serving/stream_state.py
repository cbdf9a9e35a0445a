"""How a stream is, for `fairway status` and `GET /v1/status`: its engine, how far it is, its counts and sources."""

import dataclasses
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from st_common.capture.log import Log
from st_common.feeds.note import CaptureNote, read_notes
from st_common.home import Home
from st_common.ops.presence import LIVING, Presence, presence, workers_of
from st_common.ops.status import StreamStatus, read_status
from st_common.position import segment_of

COUNTS = ("fixes", "rejects", "late", "double", "cut", "changes")
"""What is counted from when a stream began, as `StreamStatus` has it."""
WARNED_SHARE = 0.01
"""Of fixes; where more are late it is a warning."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StreamState:
    """One stream at one moment.

    Attributes:
        stream: its name.
        segments: how many its log has.
        said: what its engine said last; None: it has not run yet.
        now: who runs it.
        sources: what its sources say of themselves.
        asked_us: the moment, us since 1970.
    """

    stream: str
    segments: int
    said: StreamStatus | None
    now: Presence
    sources: tuple[CaptureNote, ...]
    asked_us: int

    @property
    def segments_done(self) -> int:
        """How many segments are judged."""
        return 0 if self.said is None else segment_of(self.said.position)

    @property
    def is_living(self) -> bool:
        """Whether a process runs it."""
        return self.now.state in LIVING

    def to_json(self) -> dict[str, Any]:
        """A JSON object; of a stream that has not run yet without what only an engine says."""
        sources = [dataclasses.asdict(note) for note in self.sources]
        for source in sources:
            del source["owner"]
        told = {
            "stream": self.stream,
            "state": self.now.state,
            "why": self.now.why,
            "segments": self.segments,
            "segments_done": self.segments_done,
            "sources": sources,
        }
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
            "workers": workers_of(said, self.now),
        }


def state_of(home: Home, stream: str) -> StreamState:
    """How a stream is now.

    Raises:
        LogError: its log has a hole or a foreign file.
    """
    folder, now_us = home.stream(stream), time.time_ns() // 1000
    said = read_status(folder)
    return StreamState(
        stream=stream,
        segments=Log(home.log(stream)).end(),
        said=said,
        now=presence(folder, said, now_us=now_us),
        sources=tuple(read_notes(home, stream)),
        asked_us=now_us,
    )


def is_much(late: int, fixes: int) -> bool:
    """Whether so many late fixes are worth a warning: more than one in a hundred."""
    return late > WARNED_SHARE * fixes


def stamp(time_us: int) -> str:
    """A time (us since 1970) in ISO 8601 with microseconds: `2024-06-11T00:09:59.000000Z`."""
    seconds, us = divmod(time_us, 1_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{us:06d}Z"
