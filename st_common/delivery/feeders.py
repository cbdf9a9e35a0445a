"""Streams that are fed by a query's rows: a process for each, looked after as deliveries are (SPEC W6).

A stream whose settings name a `query` has a delivery `feed-NAME`, which shall run when the stream shall.
"""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from st_common.answers.follow import POLL_S
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.delivery.stream_feed import StreamFeed
from st_common.engine.owner import Owner, owned_folder
from st_common.errors import ConfigError
from st_common.operations.records import private_folder

_PREFIX = "feed-"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedSummary:
    """What a run did: how many records it wrote, and up to which row of the source's log."""

    stream: str
    query: str
    seconds: float
    records: int
    position: int

    def to_json(self) -> dict[str, Any]:
        """The summary as JSON values."""
        return asdict(self)


def feeders_of(streams: Mapping[str, StreamSettings]) -> dict[str, StreamSettings]:
    """The streams that a query feeds, by the names of their deliveries."""
    return {
        f"{_PREFIX}{name}": stream
        for name, stream in streams.items()
        if stream.query is not None
    }


def feed(home: Home, stream: StreamSettings, *, until_idle: bool) -> FeedSummary:
    """Writes the rows of a stream's query into its log until it is asked to stop.

    Args:
        home: the home folder.
        stream: whose settings name a query.
        until_idle: end when all that is committed now is written.

    Raises:
        ConfigError: the settings name no query, or do not fit its records.
        QueryError: there is no such query, or a row of it has no place.
        FencedError: another process does this.
    """
    if stream.query is None:
        raise ConfigError(
            f"no query feeds stream {stream.name!r}", hint="its settings name one"
        )
    started_s = time.monotonic()
    folder = home.delivery(f"{_PREFIX}{stream.name}")
    private_folder(folder)
    with owned_folder(folder, engine="feed") as owner:
        source = StreamFeed(home, stream.query, stream)
        _follow(source, owner, until_idle=until_idle)
    return FeedSummary(
        stream=stream.name,
        query=stream.query,
        seconds=round(time.monotonic() - started_s, 3),
        records=source.records,
        position=source.position,
    )


def _follow(source: StreamFeed, owner: Owner, *, until_idle: bool) -> None:
    """Writes what is committed, again and again, and says how far it is."""
    while not owner.stop_wanted():
        written = source.poll()
        owner.check()
        owner.counts["changes"] = source.records
        place, state = source.position + 1, "running" if written else "idle"
        owner.beat(state, position=place, end_position=place, now_ts=None)
        if written is None and until_idle:
            return
        if written is None:
            time.sleep(POLL_S)
