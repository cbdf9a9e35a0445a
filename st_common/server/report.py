"""The page of a home between two times, made and written as one file."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from st_common import tables
from st_common.config.home import Home
from st_common.errors import ConfigError
from st_common.installed import own_version
from st_common.server.app import application
from st_common.server.installation import Installation
from st_common.server.recording import (
    Recorder,
    known_state,
    record_all,
    write_report,
)

HOUR = timedelta(hours=1)
_BEFORE = timedelta(seconds=1)
"""A report begins so long before the first fix, so that the first objects come in while it is looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """A report that was written.

    Attributes:
        path: of the file.
        since: the beginning of what it shows.
        until: the end.
        size_bytes: of the file.
        known: the times of the first and the last fix of all, where none lies between beginning and end; else None.
    """

    path: Path
    since: datetime
    until: datetime
    size_bytes: int
    known: tuple[datetime, datetime] | None


def report_home(
    place: Installation,
    path: Path,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    span: timedelta = HOUR,
) -> Reported:
    """Writes the page of a home as one file, which needs no server and asks nobody for anything.

    Args:
        place: the home and its settings; `only` names the streams that it is about, with none all.
        path: of the file; one that is there is replaced.
        since: the beginning. None: `span` before the end, or the first fix where that is later.
        until: the end. None: the newest fix.
        span: how long it is where `since` is None.

    Raises:
        ConfigError: there is no such stream, none has a fix yet, the end is not behind the beginning, or the page was
            not built.
    """
    with _recorder(place) as recorder:
        state = _state(known_state(recorder, list(place.served())), place)
        begin, end = _between(place.home, state, since, until, span)
        record_all(recorder, place.home, state, begin, end)
    made = datetime.fromtimestamp(time.time_ns() // 1_000_000_000, UTC)
    size = write_report(path, recorder, since=begin, until=end, made=made)
    names = [one["name"] for one in state["streams"]]
    known = _fixes_elsewhere(place.home, names, begin, end)
    return Reported(path=path, since=begin, until=end, size_bytes=size, known=known)


def _fixes_elsewhere(
    home: Home, streams: list[str], begin: datetime, end: datetime
) -> tuple[datetime, datetime] | None:
    """From when to when streams have fixes, if none of these lies between two times."""
    named = [name for name in streams if has_fixes(home, name)]
    if not named or any(_has_fix(home, name, begin, end) for name in named):
        return None
    spans = [
        pc.min_max(
            tables.read(home.table("positions", name), columns=["event_ts"])["event_ts"]
        )
        for name in named
    ]
    firsts = [span["min"].as_py() for span in spans if span["min"].is_valid]
    lasts = [span["max"].as_py() for span in spans if span["max"].is_valid]
    return (min(firsts), max(lasts)) if firsts else None


def _has_fix(home: Home, stream: str, begin: datetime, end: datetime) -> bool:
    """Whether a fix lies between two times; it reads no further than to the first."""
    when, day = pc.field("event_ts"), pc.field("event_date")
    first, last = (one.astimezone(UTC).date() for one in (begin, end))
    wanted = (day >= first) & (day <= last) & (when >= begin) & (when <= end)
    fixes = tables.dataset(home.table("positions", stream)).filter(wanted)
    return bool(fixes.head(1, columns=["event_ts"]).num_rows)


def has_fixes(home: Home, stream: str) -> bool:
    """Whether there is anything that a report of a stream could show."""
    return tables.exists(home.table("positions", stream))


@contextmanager
def _recorder(place: Installation) -> Iterator[Recorder]:
    app = application(place, version=own_version())
    recorder = Recorder(app)
    try:
        yield recorder
    finally:
        recorder.close()
        app.state.server.kept.close()


def _state(told: dict[str, Any], place: Installation) -> dict[str, Any]:
    """The state of the streams that are reported about, and of what belongs to them.

    Raises:
        ConfigError: there is none.
    """
    only = set(place.only)
    streams = [one for one in told["streams"] if not only or one["name"] in only]
    missing = only - {one["name"] for one in streams}
    if missing:
        raise ConfigError(f"there is no stream {min(missing)!r}")
    if not streams:
        raise ConfigError(
            "there is no stream to report about",
            hint="fairway check FILE --write NAME adds one",
        )
    named = {one["name"] for one in streams}
    queries = [one for one in told["queries"] if one["stream"] in named]
    return {**told, "streams": streams, "queries": queries}


def _between(
    home: Home,
    state: Mapping[str, Any],
    since: datetime | None,
    until: datetime | None,
    span: timedelta,
) -> tuple[datetime, datetime]:
    """Beginning and end of a report.

    Raises:
        ConfigError: nothing was archived yet, or the end is not behind the beginning.
    """
    known = [one["latest_event_ts"] for one in state["streams"]]
    newest = (datetime.fromisoformat(one) for one in known if one is not None)
    end = max(newest, default=None) if until is None else until
    if end is None:
        raise ConfigError("no stream has a fix yet", hint="--from and --to say when")
    names = [one["name"] for one in state["streams"]]
    begin = _begin(home, names, end - span) if since is None else since
    if begin >= end:
        raise ConfigError(f"--from {begin.isoformat()} is not before {end.isoformat()}")
    return begin, end


def _begin(home: Home, streams: list[str], earliest: datetime) -> datetime:
    """The first fix of some streams from a time on, a little before it; the time itself where there is none."""
    firsts = [
        first
        for name in streams
        if has_fixes(home, name)
        and (first := _first_fix(home, name, earliest)) is not None
    ]
    return max(earliest, min(firsts, default=earliest) - _BEFORE)


def _first_fix(home: Home, stream: str, earliest: datetime) -> datetime | None:
    day = earliest.astimezone(UTC).date()
    rows = tables.read(
        home.table("positions", stream),
        columns=["event_ts"],
        filters=[("event_date", ">=", day), ("event_ts", ">=", earliest)],
    )
    first: datetime | None = pc.min(rows["event_ts"]).as_py()
    return first
