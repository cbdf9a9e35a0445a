"""How long a real engine may stand still: its first batch may take its time, a process that hangs may not."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from st_common.config.home import Home
from st_common.config.operations import Limits
from st_common.config.streams import load_streams
from st_common.controls.rows import Register
from st_common.controls.writing import to_bytes
from st_common.operations.alerts import read_alerts
from st_common.operations.decide import Action
from st_common.operations.health import observe, phase_of
from st_common.operations.launcher import find, recorded
from st_common.operations.process import kill_session
from st_common.operations.status import Phase, read_status
from st_common.operations.supervisor import job_supervisor, tick
from st_common.position import segment_of
from st_common.query.plan import PairJoin, Plan
from tests.kit.log_writer import bare_log

pytestmark = [pytest.mark.spec("C4"), pytest.mark.slow]

STREAMS = """[streams.cars]
format = "csv"
crs = "planar"
engine = "local"
time_unit = "s"
max_ahead_s = "off"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
running = true
"""
OBJECTS, SECONDS = 300, 900
STILL_S = 0.5
PATIENT = Limits(stuck_s=STILL_S, silent_s=120, stop_grace_s=120)
IMPATIENT = Limits(stuck_s=STILL_S, silent_s=0.5, stop_grace_s=0.1)


def now_us() -> int:
    return time.time_ns() // 1000


class Stage:
    """A home with a stream whose only batch takes seconds, and its supervisor."""

    def __init__(self, root: Path) -> None:
        (root / "conf").mkdir()
        (root / "conf" / "streams.toml").write_text(STREAMS)
        self.home = Home(root / "home")
        self.folder = self.home.stream("cars")
        self.streams = load_streams(root / "conf")
        self.supervisor = job_supervisor(self.home, root / "conf")
        self.log = bare_log(self.folder / "log")
        self._write()

    def _write(self) -> None:
        plan = Plan(stream="cars", pairs=PairJoin(distance_m=10.0)).to_json()
        row = Register(query="near", version=1, plan=plan, text="", owner="")
        self.log.append(to_bytes(row), arrival_us=1, control=True)
        self.append(SECONDS)

    def append(self, seconds: int) -> None:
        """Records of objects that all stand in a square of 100 m, as one segment."""
        lines = [
            f"o{number},{second},{number * 37 % 100},{(number * 61 + second * 7) % 100}"
            for second in range(seconds)
            for number in range(OBJECTS)
        ]
        self.log.append("\n".join(["id,t,x,y", *lines, ""]).encode(), arrival_us=2)

    def tick(self, limits: Limits) -> list[Action]:
        supervisor = replace(self.supervisor, limits=limits)
        return tick(supervisor, self.streams, now_us=now_us())

    def until(self, condition: Callable[[], bool], limits: Limits) -> list[str]:
        done: list[str] = []
        end_s = time.monotonic() + 240
        while not condition():
            assert time.monotonic() < end_s, (done, read_alerts(self.home))
            done += [action.kind.value for action in self.tick(limits)]
            time.sleep(0.05)
        return done

    def committed(self) -> int:
        """The segment that the engine reads next."""
        status = read_status(self.folder)
        return segment_of(status.position) if status is not None else 0


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    yield made
    if (owner := recorded(made.folder)) is not None:
        kill_session(owner)


def test_a_slow_first_batch_is_left_alone_and_a_process_that_hangs_is_not(
    stage: Stage,
) -> None:
    stage.tick(PATIENT)
    busy_s: list[float] = []

    def has_committed() -> bool:
        seen = observe(stage.folder, wanted=True, now_us=now_us())
        phase = phase_of(seen, now_us=now_us(), limits=PATIENT)
        is_busy = phase in (Phase.START_UP, Phase.BATCH)
        busy_s.extend([time.monotonic()] if is_busy else [])
        return stage.committed() == stage.log.end()

    done = stage.until(has_committed, PATIENT)
    assert busy_s[-1] - busy_s[0] > STILL_S, "it stood still for longer than stuck_s"
    assert (done, read_alerts(stage.home)) == ([], [])

    running = find(stage.folder, now_us=now_us())
    os.kill(running.owner.pid, signal.SIGSTOP)
    stage.append(1)
    done = stage.until(lambda: find(stage.folder, now_us=now_us()) is None, IMPATIENT)
    assert [kind for kind in dict.fromkeys(done) if kind != "alert"] == ["stop", "kill"]
    stage.until(lambda: stage.committed() == stage.log.end(), PATIENT)
    stage.until(lambda: len(read_alerts(stage.home)) > 1, PATIENT)
    told = [(alert.level, alert.text[:5]) for alert in read_alerts(stage.home)]
    assert told == [("error", "stuck"), ("info", "ok: n")], "its end is no second error"
