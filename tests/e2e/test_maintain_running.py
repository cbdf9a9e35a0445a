"""A stream that runs, maintenance again and again, and readers, all at once: the answers of an undisturbed stream."""

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from st_common import tables
from st_common.answers.answers import answer
from st_common.checks.verify import verify
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import load_streams
from st_common.log.control import write_end
from st_common.maintenance.maintain import maintain
from st_common.position import position_of
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.archived import run_through
from tests.kit.log_writer import bare_log

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.spec("C5", "S4"),
]

ROOT = Path(__file__).resolve().parents[2]
CONF = """
[streams.load]
format = "csv"
time_unit = "s"
max_ahead_s = "off"
crs = "planar"
latest_flush_s = 1
snapshot_s = 21600
columns = { object = "object", event_ts = "t", x = "x", y = "y" }
"""
QUERIES = """
REGISTER QUERY left AS SELECT * FROM load INSIDE (0, 0, 5, 10);
REGISTER QUERY middle AS SELECT * FROM load INSIDE (3, 3, 7, 7) EMIT EVERY;
"""
SEGMENTS, ROWS, SEGMENT_S = 120, 40, 3600  # five days


def begun(folder: Path) -> tuple[Home, StreamSettings]:
    """A home with two queries and nothing else."""
    home = Home(folder)
    (folder / "conf").mkdir(parents=True)
    (folder / "conf" / "streams.toml").write_text(CONF)
    stream = load_streams(folder / "conf")["load"]
    register(home, {"load": stream}, parse(QUERIES), owner="test")
    return home, stream


def payloads() -> Iterator[bytes]:
    rng = random.Random(3)
    for number in range(SEGMENTS):
        lines = [
            f"o{rng.randrange(12)},{number * SEGMENT_S + row * 60},{rng.uniform(0, 10)},{rng.uniform(0, 10)}"
            for row in range(ROWS)
        ]
        yield ("object,t,x,y\n" + "\n".join(lines) + "\n").encode()


@contextmanager
def running(home: Home) -> Iterator[subprocess.Popen[str]]:
    """An engine with its archive, in a process of its own, which ends with the stream."""
    words = ["load", "--home", str(home.root), "--engine", "local"]
    process = subprocess.Popen(
        [sys.executable, "-m", "jobs.run_stream", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=60)


def ordered(home: Home, name: str) -> pa.Table:
    """The rows of a table in the order of the log."""
    places = {"changes": ("position", "seq"), "positions": ("segment", "row")}[name]
    rows = tables.read(home.table(name, "load"))
    return rows.sort_by([(column, "ascending") for column in places])


def is_committed(home: Home, end: int) -> bool:
    """Whether the engine has committed all segments before `end`."""
    done = tables.committed(home.table("changes", "load"), "engine")
    return done is not None and done + 1 >= position_of(end, 0)


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def calm(folder: Path) -> Home:
    """The same stream, with nobody beside it."""
    home, stream = begun(folder)
    log = bare_log(home.log("load"))
    for payload in payloads():
        log.append(payload, arrival_us=0)
    write_end(log, arrival_us=0)
    run_through(home, stream)
    return home


def test_maintenance_beside_a_running_stream_and_readers_changes_no_answer(
    tmp_path: Path,
) -> None:
    home, stream = begun(tmp_path / "busy")
    log, joined, before = bare_log(home.log("load")), 0, 0
    with running(home) as process:
        for number, payload in enumerate(payloads()):
            log.append(payload, arrival_us=0)
            if number % 6 == 5:
                # However slow the machine, the engine is not further behind than this.
                wait_until(partial(is_committed, home, before))
                before = log.end()
                joined += sum(
                    each.joined for each in maintain(home, today=date(2024, 1, 1))
                )
                answer(home, "left")
            time.sleep(0.05)
        write_end(log, arrival_us=0)
        wait_until(lambda: is_committed(home, log.end()))
        process.terminate()  # it ends between two batches
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0, out
    assert joined > 0, "maintenance had something to do while the stream ran"
    undisturbed = calm(tmp_path / "calm")
    for name in ("changes", "positions"):
        assert ordered(home, name).equals(ordered(undisturbed, name)), name
    assert all(each.holds and each.checked for each in verify(home, stream))
    last = {each.table: each for each in maintain(home, today=date(2024, 1, 1))}
    assert last["positions/load"].after.files <= 5, "a file a day"
