"""Which days of which streams a run processes again, and what it leaves out because the archive has not come so far.

asked for             an interval, whose days must be closed; or nothing: the days that are due (see `due`)
engine                2024-03-13 00:10
archive               2024-03-12 23:50, 3 segments behind     ->   2024-03-12 is left out, or waited for
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from st_common.batch.days import WholeDays, behind_engine, engine_of
from st_common.batch.due import due_days
from st_common.config.home import Home
from st_common.config.redaction import redacted
from st_common.config.stream import StreamSettings
from st_common.errors import FairwayError
from st_common.operations.days import (
    archive_behind,
    engine_open_since,
    is_closed_before,
    open_since,
)
from st_common.storage import refused

_DAY = timedelta(days=1)
_LOOK_S = 1.0  # between two looks at an archive that is waited for
ASKED_FOR = "asked for"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Days of one stream that are processed again.

    Attributes:
        stream: the name of the stream.
        since: the first day.
        until: the end, not in it.
        why: for people.
        engine: what folds them, `spark` or `local`.
    """

    stream: str
    since: date
    until: date
    why: str
    engine: str

    def to_json(self) -> dict[str, str]:
        """The run as JSON values, with names as `reprocess` takes them."""
        return {
            "stream": self.stream,
            "from": self.since.isoformat(),
            "to": self.until.isoformat(),
            "why": self.why,
            "engine": self.engine,
        }

    def __str__(self) -> str:
        """The run, for people: `taxis: 2024-03-09 to 2024-03-11 are due: 12 late fixes came for 2024-03-09`."""
        days = f"{self.stream}: {_are(self.since, self.until)}"
        return (
            f"{days} {self.why}" if self.why == ASKED_FOR else f"{days} due: {self.why}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """What is processed again, and what is not.

    Attributes:
        runs: one a stream at most.
        open: the streams of which days are left out because they are open: all of them, or the last ones.
        left_out: of those of which the engine has passed such a day, and the archive has not: which day, in words.
        behind_segments: of runs by stream, how many segments the engine has read that are not archived, where there
            are any: late fixes may lie in them.
    """

    runs: tuple[Run, ...]
    open: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    behind_segments: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON values; without `behind_segments` where nothing is behind."""
        behind = {"behind_segments": dict(self.behind_segments)}
        return {
            "runs": [run.to_json() for run in self.runs],
            "open": list(self.open),
            "left_out": dict(self.left_out),
            **(behind if self.behind_segments else {}),
        }

    def lines(self) -> Iterator[str]:
        """What is behind and what is left out, for people, a line each."""
        for stream, count in self.behind_segments.items():
            yield f"{stream}: {behind_engine(count)}, in which late fixes may lie"
        for stream in self.open:
            yield f"{stream}: left out, {self.left_out.get(stream, 'a day is open')}"


def plan_runs(
    home: Home,
    streams: Mapping[str, StreamSettings],
    days: WholeDays | None,
    *,
    wait_s: float = 0.0,
    engine: str | None = None,
) -> RunPlan:
    """What is to be processed again of some streams.

    A stream of which it cannot be said what is due has a run over its newest closed day, which says what is wrong.

    Args:
        home: the home folder.
        streams: their settings by name.
        days: those that are asked for; None: those that are due.
        wait_s: how long archives are waited for that have not passed a day which their engines have.
        engine: what folds the days; None: what each stream runs on.
    """
    until = None if days is None else days.until
    _wait(home, streams, until, wait_s)
    runs: list[Run] = []
    left_out = dict(_left_out(home, streams, until))
    still_open = [
        name
        for name in streams
        if name in left_out or not _has_closed(home, name, until)
    ]
    for name, stream in streams.items():
        if days is None:
            runs += _due(home, stream, engine_of(home, name, engine))
        elif name not in still_open:
            one = Run(
                stream=name,
                since=days.since,
                until=days.until,
                why=ASKED_FOR,
                engine=engine_of(home, name, engine),
            )
            runs.append(one)
    behind = {one.stream: archive_behind(home, one.stream) for one in runs}
    return RunPlan(
        runs=tuple(runs),
        open=tuple(still_open),
        left_out=left_out,
        behind_segments={name: count for name, count in behind.items() if count},
    )


def _has_closed(home: Home, stream: str, until: date | None) -> bool:
    """Whether all days before one are closed; None: whether any is."""
    if until is None:
        return open_since(home, stream) is not None
    return is_closed_before(home, stream, until)


def _due(home: Home, stream: StreamSettings, engine: str) -> Iterator[Run]:
    """The run over the days of a stream that are due, if any are."""
    name = stream.name
    try:
        due = due_days(home, stream)
    except (FairwayError, OSError) as error:
        until = open_since(home, name)
        if until is not None:
            why = redacted(str(refused(error)))
            newest = until - _DAY
            yield Run(stream=name, since=newest, until=until, why=why, engine=engine)
        return
    if due is not None:
        yield Run(
            stream=name, since=due.since, until=due.until, why=due.why, engine=engine
        )


def _wait(
    home: Home, streams: Mapping[str, StreamSettings], until: date | None, wait_s: float
) -> None:
    """Waits for archives that have not passed a day which their engines have, for so many seconds at most."""
    end_s = time.monotonic() + wait_s
    while (left_s := end_s - time.monotonic()) > 0 and any(
        _left_out(home, streams, until)
    ):
        time.sleep(min(_LOOK_S, left_s))


def _left_out(
    home: Home, streams: Mapping[str, StreamSettings], until: date | None
) -> Iterator[tuple[str, str]]:
    """The streams of which the engine has passed a day that is asked for, or any, and the archive has not; and why."""
    for name in streams:
        passed, still_open = engine_open_since(home, name), open_since(home, name)
        if passed is None or (until is not None and passed < until):
            continue
        wanted = passed if until is None else until
        since = still_open or wanted - _DAY
        if since < wanted:
            behind = behind_engine(archive_behind(home, name))
            yield name, f"{_are(since, wanted)} open: {behind}"


def _are(since: date, until: date) -> str:
    """Days in words, with the verb: `2024-03-09 is`, `2024-03-09 to 2024-03-11 are`."""
    last = until - _DAY
    return f"{since} is" if since == last else f"{since} to {last} are"
