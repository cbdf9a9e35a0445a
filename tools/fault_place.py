"""A home with a feed, an engine and a follower at work, and the judge of what is left of it: for tools/faults.py."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from st_common.storage import LocalStorage

FAIRWAY = Path(sys.executable).with_name("fairway")
ROOT = Path(__file__).resolve().parents[1]
STREAM = "load"
SETTINGS = """
[streams.load]
format = "csv"
time_unit = "s"
max_ahead_s = "off"
crs = "planar"
engine = "local"
running = true
silence_s = 60.0
max_speed_mps = 5.0
codec = "{codec}"
columns = {{ object = "object", event_ts = "t", x = "x", y = "y" }}
{more}
"""
QUERIES = """
REGISTER QUERY left AS SELECT * FROM load INSIDE (0, 0, 5, 10);
REGISTER QUERY around AS SELECT * FROM load INSIDE ('M', 'o1', 3, 3);
REGISTER QUERY many AS SELECT COUNT(*) FROM load INSIDE (2, 2, 8, 8);
REGISTER QUERY near AS SELECT * FROM load KNN ('M', 3, 'o2');
"""
OBJECTS, ROWS = 40, 2000
WAIT_S = 240.0


class BrokenError(Exception):
    """What did not hold."""


@dataclass
class Place:
    """A home and what is at work on it; `root` may be on a file system of its own, `notes` never is."""

    root: Path
    notes: Path
    rng: random.Random
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)
    acknowledged: int = 0
    wants_more: bool = True
    codec: str = "raw"
    rows: int = ROWS
    engine: str = "local"
    settings: str = ""

    @property
    def stream(self) -> Path:
        """The stream's folder."""
        return self.root / "streams" / STREAM

    def call(
        self, *arguments: str, root: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end."""
        return subprocess.run(
            [FAIRWAY, "--home", root or self.root, *arguments],
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )

    def tick(self) -> subprocess.CompletedProcess[str]:
        """One look of the supervisor, to its end."""
        return subprocess.run(
            [
                sys.executable,
                "-m",
                "st_common.processes.supervise",
                "--home",
                self.root,
                "--conf",
                self.root / "conf",
            ],
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
            cwd=ROOT,
        )

    def spawn(
        self, *arguments: str, before: tuple[str, ...] = (), out: Path | None = None
    ) -> subprocess.Popen[bytes]:
        """Starts a command as a process group; what it says on stderr goes to the notes."""
        name = f"{len(self.started):02d}-{arguments[0]}"
        with (
            (self.notes / f"{name}.err").open("wb") as err,
            (out or self.notes / f"{name}.out").open("ab") as said,
        ):
            process = subprocess.Popen(
                [*before, FAIRWAY, "--home", self.root, *arguments],
                stdout=said,
                stderr=err,
                start_new_session=True,
            )
        self.started.append(process)
        return process

    def launched(self) -> int | None:
        """The process of the engine that the supervisor launched last."""
        with suppress(OSError, ValueError):
            return int(json.loads((self.stream / "engine.json").read_text())["pid"])
        return None

    def kill_all(self) -> None:
        """Kills (-9) all that was started here and still runs."""
        self.wants_more = False
        if (launched := self.launched()) is not None:
            with suppress(ProcessLookupError):
                os.killpg(launched, signal.SIGKILL)
        for process in self.started:
            kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kills (-9) a process and its children."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def part_of(number: int, rng: random.Random, count: int = ROWS) -> str:
    """A part of the feed: random walks, 20 rows a second."""
    rows = (
        f"o{rng.randrange(OBJECTS)},{(number * count + row) / 20},{rng.uniform(0, 10):.3f},{rng.uniform(0, 10):.3f}"
        for row in range(count)
    )
    return "object,t,x,y\n" + "\n".join(rows) + "\n"


def prepare(place: Place) -> None:
    """A home with a stream and its queries."""
    LocalStorage(place.root / "conf").put(
        "streams.toml", SETTINGS.format(codec=place.codec, more=place.settings).encode()
    )  # survives a power cut
    (place.notes / "queries.sql").write_text(QUERIES)
    done = place.call("query", "register", str(place.notes / "queries.sql"))
    if done.returncode:
        raise BrokenError(f"cannot register: {done.stderr}")


def feed(place: Place) -> None:
    """Appends part after part; one whose command ended well is acknowledged."""
    number = 0
    while place.wants_more:
        part = place.notes / f"part-{number:03d}.csv"
        part.write_text(part_of(number, place.rng, place.rows))
        capture = place.spawn("replay", STREAM, str(part), "--no-end")
        if capture.wait() == 0:
            place.acknowledged += 1
        elif not place.wants_more:
            return
        number += 1


def position(place: Place) -> int:
    """How far the engine says it is."""
    with suppress(OSError, ValueError):
        return int(json.loads((place.stream / "status.json").read_text())["position"])
    return 0


def until(wanted: Callable[[], bool], what: str) -> None:
    """Waits until something is so."""
    end_s = time.monotonic() + WAIT_S
    while not wanted():
        if time.monotonic() > end_s:
            raise BrokenError(f"waited {WAIT_S:.0f} s until {what}")
        time.sleep(0.05)


@contextmanager
def at_work(place: Place) -> Iterator[subprocess.Popen[bytes]]:
    """A feed, an engine and a follower, some way into the log; gives the engine. In the end all are killed."""
    prepare(place)
    engine = place.spawn("run", STREAM, "--engine", place.engine)
    place.spawn("changes", "--follow", "--json", out=place.notes / "told.jsonl")
    feeder = threading.Thread(target=feed, args=(place,), daemon=True)
    feeder.start()
    try:
        until(
            lambda: position(place) > 0 and place.acknowledged > 1,
            "the engine is at work",
        )
        time.sleep(place.rng.uniform(0, 3))
        yield engine
    finally:
        place.kill_all()
        feeder.join(timeout=WAIT_S)


def rerun(place: Place) -> None:
    """The engine once more, to the log's end."""
    done = place.call("run", STREAM, "--engine", place.engine, "--until-idle")
    if done.returncode:
        raise BrokenError(
            f"run ended with {done.returncode}: {done.stderr.strip()[-300:]}"
        )


def told_by(place: Place, root: Path) -> list[str]:
    """All changes of a home, a line each."""
    done = place.call("changes", "--json", root=root)
    if done.returncode:
        raise BrokenError(
            f"changes ended with {done.returncode}: {done.stderr.strip()[-300:]}"
        )
    return done.stdout.splitlines()


def judge(place: Place) -> str:
    """Compares with a calm run over the log that survived; says how much there was.

    Raises:
        BrokenError: something was lost, told twice, or is not what a calm run tells.
    """
    found = told_by(place, place.root)
    calm = place.notes / "calm"
    shutil.copytree(place.root / "conf", calm / "conf")
    shutil.copytree(
        place.stream / "log",
        calm / "streams" / STREAM / "log",
        ignore=shutil.ignore_patterns("readers"),
    )
    done = place.call("run", STREAM, "--engine", "local", "--until-idle", root=calm)
    expected = told_by(place, calm)
    if done.returncode or not expected:
        raise BrokenError(
            f"the calm run ended with {done.returncode}: {done.stderr.strip()[-300:]}"
        )
    if found != expected:
        lost, more = (
            Counter(expected) - Counter(found),
            Counter(found) - Counter(expected),
        )
        raise BrokenError(
            f"{lost.total()} changes lost, {more.total()} too many, of {len(expected)}"
        )
    _judge_told(place, found)
    _judge_acknowledged(place)
    return f"{len(found)} changes, {place.acknowledged * place.rows} fixes acknowledged"


def _judge_told(place: Place, found: list[str]) -> None:
    lines = (place.notes / "told.jsonl").read_text().splitlines()
    told = Counter(lines[:-1])  # the last one may be cut
    more = told - Counter(found)
    if more:
        raise BrokenError(
            f"a follower was told {more.total()} of {told.total()} changes that are not in the table, or twice"
        )


def _judge_acknowledged(place: Place) -> None:
    done = place.call(
        "sql", "--format", "csv", "SELECT count(*) AS n FROM positions_load"
    )
    if done.returncode:
        raise BrokenError(
            f"sql ended with {done.returncode}: {done.stderr.strip()[-300:]}"
        )
    archived = int(done.stdout.split()[-1])
    places = (
        'SELECT count(*) - count(DISTINCT (segment, "row")) AS n FROM positions_load'
    )
    doubles = place.call("sql", "--format", "csv", places)
    if archived < place.acknowledged * place.rows:
        raise BrokenError(
            f"{place.acknowledged * place.rows} fixes were acknowledged, {archived} are there"
        )
    if int(doubles.stdout.split()[-1]):
        raise BrokenError(f"{doubles.stdout.split()[-1]} fixes are there twice")
