"""Runs a stream with the local engine, with the archive beside it."""

import dataclasses
import time
from collections.abc import Callable, Mapping

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.archive import Archive
from st_common.engine.archive_queue import ArchiveQueue
from st_common.engine.archiver import archiving
from st_common.engine.committing import Committing
from st_common.engine.layer_feed import LayerFeed
from st_common.engine.lease_watch import LeaseWatch
from st_common.engine.local import LocalEngine
from st_common.engine.owner import Owner, owned, pulsing
from st_common.engine.recovery import prepare
from st_common.engine.states import end_of
from st_common.engine.summary import RunSummary
from st_common.engine.topology import begin
from st_common.memory import keep_freed_memory
from st_common.operations.alerts import tell
from st_common.operations.status import Phase
from st_common.operators.skeleton.cache_counts import to_json
from st_common.operators.state.fixes import NEVER
from st_common.position import position_of

POLL_S = 0.005
MOST_POLL_S = 0.1


def run(home: Home, stream: StreamSettings, *, until_idle: bool) -> RunSummary:
    """Runs the local engine on a stream, with the archive beside it, until somebody asks it to stop.

    Args:
        home: the home folder.
        stream: the settings of the stream.
        until_idle: stop when the end of the log is reached, too.

    Returns:
        What this run did.

    Raises:
        FencedError: another process owns the stream, or takes it over.
        StateError: the stream was begun with other settings.
        LogError: a segment of the log is missing or damaged.
    """
    started_s = time.monotonic()
    with owned(home, stream.name, engine="local") as owner, pulsing(owner):
        prepare(home, stream.name)
        stream = begin(home, stream, engine="local", shards=1)
        engine = follow(home, stream, owner, until_idle=until_idle)
    return summary(
        owner,
        stream.name,
        segments=engine.totals.segments,
        position=end_of(engine.state) + 1,
        seconds=time.monotonic() - started_s,
        counters=dataclasses.asdict(engine.totals.counters),
    )


def follow(
    home: Home, stream: StreamSettings, owner: Owner, *, until_idle: bool
) -> LocalEngine:
    """Follows the log for the owner of the stream, as `run`.

    Args:
        home: the home folder.
        stream: the settings as `topology.begin` gave them.
        owner: the stream's owner.
        until_idle: stop when the end of the log is reached, too.

    Returns:
        The closed engine; its state is stored, and `state` can still be read.

    Raises:
        FencedError: another process takes the stream over.
        LogError: a segment of the log is missing or damaged.
    """
    keep_freed_memory()
    sink = ArchiveQueue()
    archive = Archive(home, stream, sink)
    engine = LocalEngine(home, stream, owner, sink=sink)
    for notice in engine.states.notices:
        tell(home, stream.name, notice)
    with archiving(archive):
        try:
            leases = LeaseWatch(home, stream.name)
            feed = _feed_of(home, stream, engine, at_once=until_idle)
            attend(
                engine,
                owner,
                archive,
                leases,
                until_idle=until_idle,
                feed=feed,
            )
            engine.close()
        finally:
            engine.abandon()
    beat(engine, owner, "idle" if until_idle else "stopped", force=True)
    return engine


def attend(
    engine: Committing,
    owner: Owner,
    archive: Archive,
    leases: LeaseWatch,
    *,
    until_idle: bool,
    feed: Callable[[], bool] | None = None,
) -> None:
    """Has an engine follow its log until it is asked to stop; with `until_idle` until the log's end is reached.

    Queries whose leases end are dropped meanwhile. Where all is read, `feed` may append more, and says whether it did.
    """
    busy_s = time.monotonic()
    while not owner.stop_wanted():
        owner.check()
        archive.check()
        leases.look()
        waits = archive.is_behind
        busy = waits or engine.batch()
        engine.commit_if_due()
        owner.phase = Phase.WAITING
        beat(engine, owner, "running" if busy else "idle")
        # Asked only when all of the log is read, for a clock row makes late what is still in front of it.
        if busy or engine.keep_time() or (feed is not None and feed()):
            owner.phase = Phase.BATCH
            busy_s = time.monotonic()
            if waits:
                time.sleep(POLL_S)
            continue
        if until_idle:
            break
        time.sleep(pause_s(time.monotonic() - busy_s))
        owner.phase = Phase.BATCH


def _feed_of(
    home: Home, stream: StreamSettings, engine: LocalEngine, *, at_once: bool
) -> Callable[[], bool] | None:
    """What brings the newest version of its layer into the log of a stream; None where it has none."""
    if stream.layer is None:
        return None
    feed = LayerFeed(home, stream)
    return lambda: feed.look(engine.state, at_once=at_once)


def pause_s(quiet_s: float) -> float:
    """How long to wait before looking for news, after so many seconds without any: a hundredth of these.

    To look costs half a millisecond, so who looks each 5 ms takes a tenth of a core. Now the first fix after a pause is
    told later by a hundredth of that pause, and by 100 ms at most.
    """
    return min(max(POLL_S, quiet_s / 100), MOST_POLL_S)


def beat(engine: Committing, owner: Owner, state: str, *, force: bool = False) -> None:
    """Says how the stream of an engine goes."""
    counters = engine.totals.counters
    owner.counts = {
        "fixes": counters.fixes,
        "rejects": engine.totals.rejects,
        "late": counters.late,
        "double": counters.double,
        "cut": counters.cut,
        "changes": engine.totals.changes,
    }
    owner.nulled, owner.caches = dict(engine.totals.nulled), engine.totals.caches
    owner.filtered = counters.filtered
    owner.filtered_out = dict(engine.totals.filtered_out)
    max_event = engine.committed_event
    now_ts = None if max_event == NEVER else max_event - engine.settings.lateness_us
    end_position = position_of(engine.log.end(), 0)
    owner.beat(
        state,
        position=engine.committed + 1,
        end_position=end_position,
        now_ts=now_ts,
        force=force,
    )


def summary(
    owner: Owner,
    stream: str,
    *,
    segments: int,
    position: int,
    seconds: float,
    counters: Mapping[str, int],
) -> RunSummary:
    """What a run that ends now did.

    Args:
        owner: has the counts of this run.
        stream: the name of the stream.
        segments: how many segments were read.
        position: the position after the last committed row.
        seconds: how long it took.
        counters: all counters of the step by name; those that `owner` does not count are the operators'.
    """
    operators = {
        name: count
        for name, count in counters.items()
        if name not in owner.counts and not name.startswith("filtered_")
    }
    return RunSummary(
        stream=stream,
        engine=owner.engine,
        seconds=round(seconds, 3),
        segments=segments,
        position=position,
        operators=operators,
        nulled=dict(owner.nulled),
        filtered_out=dict(owner.filtered_out),
        filtered=dict(owner.filtered),
        caches=to_json(owner.caches),
        **owner.counts,
    )
