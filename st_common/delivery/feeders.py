"""Streams that a query's rows feed, or that join two others: a process for each, looked after as deliveries are.

A stream whose settings name a `query`, or that `joins` streams, has a delivery `feed-NAME`, which shall run when the
stream shall.
"""

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from st_common.answers.follow import POLL_S
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.delivery.joint_feed import JointFeed
from st_common.delivery.stream_feed import StreamFeed
from st_common.engine.owner import Owner, owned_folder
from st_common.errors import ConfigError, FairwayError
from st_common.operations.records import private_folder

_LOG = logging.getLogger(__name__)
_PREFIX = "feed-"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedSummary:
    """What a run did: how many records it wrote, of which query or streams, and up to which row of the source's log."""

    stream: str
    query: str
    seconds: float
    records: int
    position: int

    def to_json(self) -> dict[str, Any]:
        """The summary as JSON values."""
        return asdict(self)


def feeders_of(streams: Mapping[str, StreamSettings]) -> dict[str, StreamSettings]:
    """The streams that a query feeds or that join two others, by the names of their deliveries."""
    return {
        f"{_PREFIX}{name}": stream
        for name, stream in streams.items()
        if stream.query is not None or stream.joins
    }


def feed(
    home: Home,
    stream: StreamSettings,
    streams: Mapping[str, StreamSettings],
    *,
    until_idle: bool,
) -> FeedSummary:
    """Writes the rows of a stream's query, or the fixes of the streams that it joins, into its log until it is to stop.

    Args:
        home: the home folder.
        stream: whose settings name a query, or two streams.
        streams: the settings of all streams, by name.
        until_idle: end when all that is committed now is written.

    Raises:
        ConfigError: the settings name neither, or do not fit its records.
        QueryError: there is no such query, or a row of it has no place.
        FencedError: another process does this.
    """
    if stream.query is None and not stream.joins:
        raise ConfigError(
            f"no query feeds stream {stream.name!r}", hint="its settings name one"
        )
    started_s = time.monotonic()
    folder = home.delivery(f"{_PREFIX}{stream.name}")
    private_folder(folder)
    source: StreamFeed | JointFeed
    with owned_folder(folder, engine="feed") as owner:
        if stream.query is not None:
            source = StreamFeed(home, stream.query, stream)
        else:
            source = JointFeed(home, stream, streams)
        _follow(source, owner, until_idle=until_idle)
    return FeedSummary(
        stream=stream.name,
        query=stream.query or " and ".join(stream.joined),
        seconds=round(time.monotonic() - started_s, 3),
        records=source.records,
        position=source.position,
    )


@contextmanager
def joining(
    home: Home,
    stream: StreamSettings,
    streams: Mapping[str, StreamSettings],
    *,
    until_idle: bool,
) -> Iterator[None]:
    """Joins two streams in a thread while the body runs; with `until_idle` in front of it, all that there is.

    Another process may do so too: each fix is written once.

    Raises:
        ConfigError: as `feed`.
        LogError: a log is damaged; while the body runs, at its end.
    """
    source = JointFeed(home, stream, streams)
    if until_idle:
        source.run()
        yield
        return
    ended, failures = threading.Event(), list[FairwayError]()

    def follow() -> None:
        try:
            while not ended.is_set():
                if source.poll() is None:
                    ended.wait(POLL_S)
            source.close()
        except FairwayError as error:
            _LOG.error("%s: its streams are joined no more: %s", stream.name, error)
            failures.append(error)

    thread = threading.Thread(target=follow, name="joining", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    for failure in failures:
        raise failure


def _follow(source: StreamFeed | JointFeed, owner: Owner, *, until_idle: bool) -> None:
    """Writes what is committed, again and again, and says how far it is."""
    while not owner.stop_wanted():
        written = source.poll()
        owner.check()
        owner.counts["changes"] = source.records
        place, state = source.position + 1, "running" if written else "idle"
        owner.beat(state, position=place, end_position=place, now_ts=None)
        if written is None and until_idle:
            break
        if written is None:
            time.sleep(POLL_S)
    source.close()
