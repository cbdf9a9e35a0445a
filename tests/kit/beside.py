"""A stream, its reprocessing, compaction and reports at once, each a process, and equal answers in the end.

engine       |=============================================|       fairway run
log          | a segment every so often: the clock goes on |       this process
jobs         |-reprocess-|-maintain-|-report-|-reprocess-|-..      python -m jobs.NAME, each again and again
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random

import pyarrow as pa

from st_common import tables
from st_common.batch.reprocess import reprocess
from st_common.checks.verify import verify
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import load_streams
from st_common.engine.run import run
from st_common.history.told import told_visits
from st_common.history.visits import sorted_visits
from st_common.log.control import write_clock
from st_common.log.log import Log
from st_common.operations.days import open_since
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.log_writer import bare_log

NAME, OBJECTS, LATENESS_S = "grid", 40, 900
STOPS_S = 120.0
"""An engine that is asked to stop has so long: a batch and the rest of the archive take seconds."""

_DAY = timedelta(days=1)
_OF_DAY = 96  # segments
_FIRST = 100  # segments that are there at once: a day and an hour
T0 = datetime(2024, 5, 1, tzinfo=UTC)
_ROOT = Path(__file__).resolve().parents[2]
_CONF = f"""
[streams.{NAME}]
format = "csv"
columns = {{ object = "id", event_ts = "t", x = "x", y = "y" }}
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
lateness_s = {LATENESS_S}
snapshot_s = 21600
latest_flush_s = 3
engine = "local"
"""
_QUERIES = """
REGISTER QUERY left AS SELECT * FROM grid INSIDE (0, 0, 50, 100);
REGISTER QUERY fence AS SELECT * FROM grid INSIDE (30, 30, 70, 70) DETECT ENTER, EXIT, DWELL 1 h;
REGISTER QUERY near AS SELECT * FROM grid KNN (5, 50, 50);
REGISTER QUERY pairs AS SELECT * FROM grid a JOIN grid b ON ST_DWithin(a, b, 3 m);
REGISTER QUERY many AS SELECT COUNT(*) FROM grid INSIDE (0, 0, 100, 50);
REGISTER QUERY lately AS SELECT * FROM grid INSIDE (30, 30, 70, 70) WINDOW 3 h;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What ran beside each other.

    Attributes:
        fixes: how many were captured.
        days: how many days were closed in the end.
        changes: how many were told.
        visits: how many there are.
        done: how often each job came to its end while the engine ran.
    """

    fixes: int
    days: int
    changes: int
    visits: int
    done: dict[str, int] = field(default_factory=dict)


def run_beside(
    folder: Path, *, seconds: float, rounds: int, seed: int = 1, day_s: float = 20.0
) -> Beside:
    """Lets an engine run while days that it has closed are processed again, compacted, and reported on.

    Fixes come out of order, none later than the lateness. So in the end the visits of each closed day must be those
    that its changes fold to, and the changes those of an engine that has read the same log alone.

    Args:
        folder: an empty folder.
        seconds: for how long at least.
        rounds: how often each job is done at least.
        seed: of the fixes.
        day_s: how long a day of the stream takes; the first one is there at once.

    Raises:
        AssertionError: a job failed, an answer differs, or `verify` finds one that does not hold.
    """
    home, stream = _made(folder)
    engine = _started("jobs.run_stream", NAME, home=home)
    done: Counter[str] = Counter()
    try:
        fixes = _lived(home, Random(seed), seconds, rounds, day_s, done)
    finally:
        code = _ended(engine)
    said = (home.root / "jobs.run_stream.out").read_text()
    _require(code == 0, f"the engine ended with exit code {code}: {said[-8000:]}")
    run(home, stream, until_idle=True)
    until = open_since(home, NAME)
    _require(until is not None and until > T0.date(), "no day is closed")
    assert until is not None
    changes = _checked_changes(home, stream)
    visits = _checked_visits(home, stream, until)
    wrong = [each.query for each in verify(home, stream) if not each.holds]
    _require(not wrong, f"verify finds what does not hold: {wrong}")
    return Beside(
        fixes=fixes,
        days=(until - T0.date()).days,
        changes=changes,
        visits=visits,
        done=dict(done),
    )


def _ended(engine: subprocess.Popen[bytes]) -> int:
    """The exit code of an engine that is asked to stop; one that does not is ended, and says where it stood."""
    engine.terminate()
    try:
        return engine.wait(timeout=STOPS_S)
    except subprocess.TimeoutExpired:
        engine.send_signal(
            signal.SIGABRT
        )  # faulthandler writes the stacks of all threads
        return engine.wait()


def _made(folder: Path) -> tuple[Home, StreamSettings]:
    (folder / "conf").mkdir(parents=True)
    (folder / "conf" / "streams.toml").write_text(_CONF)
    home, streams = Home(folder), load_streams(folder / "conf")
    register(home, streams, parse(_QUERIES), owner="t")
    return home, streams[NAME]


def _lived(
    home: Home,
    rng: Random,
    seconds: float,
    rounds: int,
    day_s: float,
    done: Counter[str],
) -> int:
    """Appends to the log in time, and keeps a job going; gives how many fixes there were."""
    log, begun_s = bare_log(home.log(NAME)), time.monotonic()
    jobs, job = _jobs(home), None
    for number, segment in enumerate(_segments(rng)):
        log.append(segment.encode(), arrival_us=0)
        if job is None or job.process.poll() is not None:
            _note(job, done)
            enough = min(done[name] for name in _JOBS) >= rounds
            if enough and time.monotonic() - begun_s >= seconds:
                break
            job = next(jobs) if _closed(home) > T0.date() else None
        due_s = begun_s + (number - _FIRST) * day_s / _OF_DAY
        time.sleep(max(0.0, due_s - time.monotonic()))
    _end(log, number)
    return (number + 1) * OBJECTS


def _note(job: "_Job | None", done: Counter[str]) -> None:
    """Counts a job that has ended."""
    if job is not None:
        code = job.process.returncode
        _require(code in job.fine, f"{job.name} ended with exit code {code}")
        done[job.name] += 1


def _end(log: Log, number: int) -> None:
    """Lets the clock pass the end of the day."""
    day = T0 + timedelta(minutes=15 * number) + timedelta(days=1, hours=1)
    write_clock(log, round(day.timestamp() * 1e6), arrival_us=0)


def _segments(rng: Random) -> Iterator[str]:
    """Segments of a quarter of an hour each, for ever: a fix of each object, up to the lateness out of order."""
    place = [(rng.uniform(0, 100), rng.uniform(0, 100)) for _ in range(OBJECTS)]
    at_s = round(T0.timestamp())
    while True:
        rows = []
        for n, (x, y) in enumerate(place):
            place[n] = (_moved(x, rng), _moved(y, rng))
            rows.append(f"o{n},{at_s + rng.randrange(LATENESS_S)},{x:.3f},{y:.3f}")
        rng.shuffle(rows)
        yield "\n".join(["id,t,x,y", *rows])
        at_s += 900


def _moved(at: float, rng: Random) -> float:
    return min(max(at + rng.uniform(-12, 12), 0.0), 100.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    name: str
    process: subprocess.Popen[bytes]
    fine: tuple[int, ...]


_JOBS = ("reprocess", "maintain", "report_quality")


def _jobs(home: Home) -> Iterator[_Job]:
    """Jobs as they are started, one after the other: the next one is when it is asked for."""
    while True:
        until = _closed(home)
        since = max(T0.date(), until - 2 * _DAY)
        days = (f"--from={since}", f"--to={until}", NAME)
        last = (f"--day={until - _DAY}", "--engine=local")
        for name, words in zip(_JOBS, (days, ("--engine=local",), last), strict=True):
            process = _started(f"jobs.{name}", *words, home=home)
            # a report below what a contract promises is one all the same
            fine = (0, 3) if name == "report_quality" else (0,)
            yield _Job(name=name, process=process, fine=fine)


def _closed(home: Home) -> date:
    return open_since(home, NAME) or T0.date()


def _started(module: str, *words: str, home: Home) -> subprocess.Popen[bytes]:
    with (home.root / f"{module}.out").open("ab") as told:
        return subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-m", module, *words],
            cwd=_ROOT,  # where jobs are
            env=os.environ | {"FAIRWAY_HOME": str(home.root)},
            stdout=told,
            stderr=subprocess.STDOUT,
        )


def _checked_changes(home: Home, stream: StreamSettings) -> int:
    """How many changes there are, after it is sure that an engine that reads the log alone tells the same."""
    alone = Home(home.root / "alone")
    left = shutil.ignore_patterns("readers")
    shutil.copytree(home.log(NAME), alone.log(NAME), ignore=left)
    run(alone, stream, until_idle=True)
    told, wanted = (_changes(one) for one in (home, alone))
    _require(told.equals(wanted), "the changes are not those of an engine alone")
    return len(told)


def _changes(home: Home) -> pa.Table:
    rows = tables.read(home.table("changes", NAME))
    return rows.sort_by(
        [("position", "ascending"), ("seq", "ascending")]
    ).combine_chunks()


def _checked_visits(home: Home, stream: StreamSettings, until: date) -> int:
    """How many visits there are, after it is sure that they are those that the changes of each day fold to."""
    days = reprocess(home, stream, T0.date(), until).days
    differ = {str(day.day): day.differs for day in days if day.differs or day.late}
    _require(not differ, f"days differ from what was told: {differ}")
    visits, told = (
        tables.read(home.table("visits", NAME)),
        told_visits(home, NAME, T0.date(), until),
    )
    both = [sorted_visits(rows).drop_columns(["run"]) for rows in (visits, told)]
    _require(both[0].equals(both[1]), "the visits are not those that were told")
    return len(visits)


def _require(holds: object, problem: str) -> None:
    if not holds:
        raise AssertionError(problem)
