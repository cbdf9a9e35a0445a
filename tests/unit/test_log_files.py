"""Logs of a home do not grow without end, while those who write them go on."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from st_common.config.home import Home
from st_common.config.streams import Streams
from st_common.delivery.look import look_after
from st_common.operations.launcher import LOG_FILE, kill_launched, launch
from st_common.operations.log_files import LIMIT_BYTES, rotate, rotate_logs
from st_common.operations.records import private_append

SAYS_MUCH = """
import sys, time
number = 0
while True:
    for _ in range(2_000):
        number += 1
        print(f"line {number}", "-" * 980)
    sys.stdout.flush()
    time.sleep(0.01)
"""
FULL = b"." * LIMIT_BYTES


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def now_us() -> int:
    return time.time_ns() // 1000


@pytest.fixture
def engine(home: Home) -> Iterator[Path]:
    """The folder of a stream whose process writes some 100 MB a second into its log."""
    folder = home.stream("s")
    folder.mkdir(parents=True)
    launch(folder, [sys.executable, "-u", "-c", SAYS_MUCH], now_us=now_us())
    yield folder
    kill_launched(folder)


def grown(path: Path) -> None:
    deadline = time.monotonic() + 240
    while path.stat().st_size < LIMIT_BYTES:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def numbers(path: Path) -> list[int]:
    """Of the lines that are whole."""
    lines = path.read_bytes().split(b"\n")[1:-1]
    return [int(line.split()[1]) for line in lines]


def test_a_process_goes_on_in_its_log_when_that_is_rotated(engine: Path):
    log, before = engine / LOG_FILE, engine / f"{LOG_FILE}.1"
    grown(log)
    rotate(log)
    first = numbers(before)
    assert len(first) > 16_000
    grown(log)
    kill_launched(engine)
    second = numbers(log)
    assert b"\0" not in log.read_bytes(), "it would if the process kept its place"
    assert second == list(range(second[0], second[-1] + 1))
    assert second[0] > first[-1]
    rotate(log)
    assert numbers(before) == second
    assert log.stat().st_size == 0


def test_all_logs_of_a_home_are_rotated_at_a_look_after_it(home: Home):
    names = (
        "logs/jobs.log",
        "streams/s/engine.log",
        "streams/s/spark.log",
        "streams/s/join/spark.log",
        "deliveries/d/engine.log",
    )
    for name in names:
        path = home.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(FULL)
    conf = home.root / "conf"
    conf.mkdir()
    look_after(home, conf, Streams({}, {}), now_us=now_us())
    for name in names:
        assert (home.root / name).stat().st_size == 0
        assert (home.root / f"{name}.1").read_bytes() == FULL
        assert (home.root / f"{name}.1").stat().st_mode & 0o777 == 0o600


def test_what_is_small_or_no_log_stays_as_it_is(home: Home):
    folder = home.stream("s")
    folder.mkdir(parents=True)
    small, other = folder / LOG_FILE, folder / "status.json"
    small.write_bytes(FULL[:-1])
    other.write_bytes(FULL)
    rotate_logs(home)
    rotate(folder / "nowhere.log")
    assert small.read_bytes() == FULL[:-1]
    assert other.read_bytes() == FULL
    assert {path.name for path in folder.iterdir()} == {LOG_FILE, "status.json"}


def test_a_log_that_cannot_be_copied_stays(home: Home):
    folder = home.stream("s")
    (folder / f"{LOG_FILE}.1").mkdir(parents=True)  # as if no file could be made there
    (folder / f"{LOG_FILE}.1" / "x").touch()
    with private_append(folder / LOG_FILE) as log:
        log.write(FULL)
    rotate(folder / LOG_FILE)
    assert (folder / LOG_FILE).read_bytes() == FULL
    assert not (folder / f".{LOG_FILE}.1.part").exists()
