"""The supervisor over real processes: a stand-in engine that is killed, hangs, crashes and is started twice."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.operations import Limits
from st_common.config.stream import StreamSettings
from st_common.errors import ConfigError, FencedError
from st_common.operations.alerts import read_alerts
from st_common.operations.decide import Action
from st_common.operations.forgiving import retry
from st_common.operations.judged import healths
from st_common.operations.launcher import find, launch, recorded
from st_common.operations.process import kill_session, lives, this_process
from st_common.operations.status import read_exit, read_status
from st_common.operations.supervisor import Engines, Supervisor, tick
from st_common.processes.supervise import main
from tests.kit.log_writer import bare_log

pytestmark = [pytest.mark.spec("C4"), pytest.mark.slow]

ENGINE = """
import subprocess, sys, time
from pathlib import Path
from st_common.log.log import Log
from st_common.errors import ConfigError, FencedError
from st_common.operations.lease import check, release, take
from st_common.operations.status import StreamStatus, write_exit, write_status
from st_common.operations.stop import stop_wanted
from st_common.position import position_of

folder, mode = Path(sys.argv[1]), (Path(sys.argv[1]) / "mode").read_text()
now_us = lambda: time.time_ns() // 1000
try:
    lease = take(folder, now_us=now_us())
except FencedError as error:
    (folder / "refused").touch()
    sys.exit(error.exit_code)
if mode == "crash":
    sys.exit(1)
if mode == "config":
    write_exit(folder, code=2, message="unknown key")
    sys.exit(2)
if mode == "child":
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)"])
end = 0
while True:
    check(lease)
    if mode != "stuck":
        end = Log(folder / "log").end()
        place = position_of(end, 0)
        mine = {"epoch": lease.epoch, "pid": lease.owner.pid, "position": place, "end_position": place}
        write_status(folder, StreamStatus(state="running", beat_ts=now_us(), **mine))
        if stop_wanted(folder):
            break
    time.sleep(0.02)
release(lease)
write_exit(folder, code=0, message="")
"""

TICK = """
import sys, time
from pathlib import Path
from st_common.config.home import Home
from st_common.config.operations import Limits
from st_common.operations.supervisor import Engines, Supervisor, tick
from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
taxis = StreamSettings(name="taxis", format="csv", columns=Columns(object="id", x="x", y="y"), running=True)
engines = Engines(command=lambda _stream: sys.argv[2:])
supervisor = Supervisor(home=Home(Path(sys.argv[1])), engines=engines, limits=Limits(back_off_s=0, breaker_starts=99))
print("ready", flush=True)
tick(supervisor, {"taxis": taxis}, now_us=time.time_ns() // 1000)
"""

LIMITS = Limits(
    start_grace_s=20,
    stuck_s=1,
    stop_grace_s=0.3,
    back_off_s=0.01,
    breaker_starts=3,
    breaker_window_s=60,
)
TAXIS = StreamSettings(
    name="taxis",
    format="csv",
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
    running=True,
)


class Stage:
    """One home with one stream, its supervisor, and a clean end for whatever was started."""

    def __init__(self, root: Path) -> None:
        script = root / "engine.py"
        script.write_text(ENGINE)
        self.home = Home(root / "home")
        self.folder = self.home.stream("taxis")
        self.folder.mkdir(parents=True)
        self.command = [sys.executable, str(script), str(self.folder)]
        self.supervisor = Supervisor(
            home=self.home,
            engines=Engines(command=lambda _stream: self.command),
            limits=LIMITS,
        )
        self.mode("work")

    def mode(self, mode: str) -> None:
        (self.folder / "mode").write_text(mode)

    def tick(self, stream: StreamSettings | None = TAXIS) -> list[str]:
        return [action.kind.value for action in self.actions(stream)]

    def look(self) -> list[str]:
        return [action.kind.value for action in self.actions(act=False)]

    def actions(
        self, stream: StreamSettings | None = TAXIS, *, act: bool = True
    ) -> list[Action]:
        return tick(
            self.supervisor,
            {"taxis": stream} if stream else {},
            now_us=time.time_ns() // 1000,
            act=act,
        )

    def until(
        self, condition: Callable[[], bool], *, ticking: bool = False
    ) -> list[str]:
        done: list[str] = []
        deadline = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < deadline, (
                f"waited in vain; done: {done}; {self.log()}"
            )
            done += self.tick() if ticking else []
            time.sleep(0.02)
        return done

    def pid(self) -> int | None:
        running = find(self.folder, now_us=time.time_ns() // 1000)
        return running.owner.pid if running else None

    def speaks(self) -> bool:
        status = read_status(self.folder)
        return status is not None and status.pid == self.pid()

    def log(self) -> str:
        path = self.folder / "engine.log"
        return path.read_text() if path.exists() else ""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    owner = recorded(stage.folder)
    if owner is not None:
        kill_session(owner)


def alerted(stage: Stage) -> list[str]:
    return [
        f"{alert.level} {alert.text.split(':')[0]}" for alert in read_alerts(stage.home)
    ]


def test_a_wanted_stream_is_started_once_and_stopped_in_order(stage: Stage) -> None:
    assert stage.tick() == ["start"]
    stage.until(stage.speaks)
    assert [stage.tick() for _ in range(3)] == [[], [], []]
    off = replace(TAXIS, running=False)
    assert stage.tick(off) == ["stop"]
    stage.until(lambda: stage.pid() is None)
    assert read_exit(stage.folder).code == 0, "it ended between two batches, by itself"
    assert stage.tick(off) == ["clear"]
    assert not (stage.folder / "stop").exists()
    assert alerted(stage) == []


@pytest.mark.spec("X6")
def test_an_engine_that_was_killed_is_restarted(stage: Stage) -> None:
    stage.tick()
    stage.until(stage.speaks)
    first = stage.pid()
    os.kill(first, signal.SIGKILL)
    stage.until(lambda: stage.pid() is None)
    assert stage.tick() == ["alert", "restart"]
    stage.until(stage.speaks)
    assert stage.pid() != first
    assert read_status(stage.folder).epoch == 2
    assert stage.tick() == ["alert"]
    assert alerted(stage) == ["error dead", "info ok"]


@pytest.mark.spec("C4")
def test_a_look_finds_what_a_tick_then_does_and_does_nothing(stage: Stage) -> None:
    assert [stage.look(), stage.look(), stage.tick()] == [["start"]] * 3
    stage.until(stage.speaks)
    assert stage.look() == []
    first = stage.pid()
    os.kill(first, signal.SIGKILL)
    stage.until(lambda: stage.pid() is None)
    assert [stage.look(), stage.look()] == [["alert", "restart"]] * 2
    assert (alerted(stage), stage.pid()) == ([], None)
    assert stage.tick() == ["alert", "restart"]
    stage.until(stage.speaks)
    assert stage.tick() == ["alert"]
    os.kill(stage.pid(), signal.SIGSTOP)
    bare_log(stage.folder / "log").append(b"id,t,x,y\n", arrival_us=1)
    stage.until(lambda: bool(stage.look()))
    assert alerted(stage) == ["error dead", "info ok"], (
        "looks find it, and alert nobody"
    )
    assert "alert" in stage.tick()
    assert alerted(stage)[2:] == ["error stuck"]


def test_an_engine_that_hangs_is_asked_killed_and_restarted(stage: Stage) -> None:
    stage.tick()
    stage.until(stage.speaks)
    stage.tick()
    hanging = stage.pid()
    os.kill(hanging, signal.SIGSTOP)
    bare_log(stage.folder / "log").append(b"id,t,x,y\n", arrival_us=1)
    done = stage.until(
        lambda: stage.pid() not in (hanging, None) and stage.speaks(), ticking=True
    )
    in_order = [
        kind for kind in dict.fromkeys(done) if kind != "alert"
    ]  # a killed process may take a moment to go
    assert in_order == ["stop", "kill", "clear", "restart"]
    stage.until(lambda: alerted(stage)[-1] == "info ok", ticking=True)
    assert alerted(stage)[0] == "error stuck"


def test_a_crash_loop_is_given_up_until_somebody_resets_it(stage: Stage) -> None:
    stage.mode("crash")
    deadline, done = time.monotonic() + 20, []
    while "error crash_loop" not in alerted(stage):
        assert time.monotonic() < deadline
        done += stage.tick()
        time.sleep(0.02)
    assert done.count("start") + done.count("restart") == LIMITS.breaker_starts
    assert [stage.tick() for _ in range(3)] == [[], [], []]
    assert healths(stage.home, {"taxis": TAXIS}, now_us=0) == {"taxis": "crash_loop"}
    stage.mode("work")
    with pytest.raises(ConfigError, match="no stream 'busses'"):
        retry(stage.home, "busses")
    retry(stage.home, "taxis")
    assert "start" in stage.tick()
    stage.until(stage.speaks)


def test_wrong_settings_are_tried_once(stage: Stage) -> None:
    stage.mode("config")
    stage.tick()
    stage.until(lambda: read_exit(stage.folder) is not None and stage.pid() is None)
    assert stage.tick() == ["alert"]
    assert alerted(stage) == ["error bad_config"]
    assert stage.tick() == []


def test_an_option_that_an_engine_does_not_know_is_a_wrong_setting_too(
    stage: Stage,
) -> None:
    stage.command = [sys.executable, "-m", "jobs.run_stream", "taxis", "--speed=9"]
    assert stage.tick() == ["start"]
    stage.until(lambda: read_exit(stage.folder) is not None)
    assert stage.tick() == ["alert"]
    (alert,) = read_alerts(stage.home)
    assert "unrecognized arguments: --speed=9" in alert.text
    assert alerted(stage) == ["error bad_config"]


@pytest.mark.spec("X6")
def test_a_supervisor_killed_between_start_and_record_leads_to_no_second_engine(
    stage: Stage,
) -> None:
    orphan = subprocess.Popen(stage.command, start_new_session=True)
    try:  # no record of it yet, and no lease: it is only in the process table
        # Linux tells that a program has begun a moment before it shows its words.
        stage.until(psutil.Process(orphan.pid).cmdline)
        assert stage.tick() == []
        assert recorded(stage.folder).pid == orphan.pid
        stage.until(stage.speaks)
        assert stage.tick() == []
    finally:
        orphan.kill()
        orphan.wait()


@pytest.mark.spec("X6")
def test_a_second_start_is_refused(stage: Stage) -> None:
    now_us = time.time_ns() // 1000
    owner = launch(stage.folder, stage.command, now_us=now_us)
    with pytest.raises(FencedError, match=str(owner.pid)):
        launch(stage.folder, stage.command, now_us=now_us)
    stage.until(stage.speaks)
    by_hand = subprocess.run(stage.command, check=False, timeout=30)
    assert by_hand.returncode == 4


@pytest.mark.spec("X6")
def test_the_engine_outlives_a_supervisor_that_is_killed_with_its_whole_group(
    stage: Stage,
) -> None:
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom st_common.operations.launcher import launch\n"
        "launch(Path(sys.argv[1]), sys.argv[2:], now_us=time.time_ns() // 1000)\nprint(flush=True)\ntime.sleep(60)"
    )
    supervisor = subprocess.Popen(
        [sys.executable, "-c", code, str(stage.folder), *stage.command],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    supervisor.stdout.readline()
    stage.until(stage.speaks)
    os.killpg(supervisor.pid, signal.SIGKILL)
    supervisor.communicate()
    engine = stage.pid()
    beat = read_status(stage.folder).beat_ts
    stage.until(lambda: read_status(stage.folder).beat_ts > beat)
    assert stage.pid() == engine
    assert stage.tick() == []


@pytest.mark.spec("X6")
def test_supervisors_killed_at_any_moment_leave_one_engine_or_none_and_never_two(
    stage: Stage,
) -> None:
    moments = random.Random(7)
    stage.supervisor = replace(
        stage.supervisor, limits=Limits(back_off_s=0, breaker_starts=99)
    )
    for attempt in range(15):
        supervisor = subprocess.Popen(
            [sys.executable, "-c", TICK, str(stage.home.root), *stage.command],
            stdout=subprocess.PIPE,
        )
        supervisor.stdout.readline()
        time.sleep(moments.uniform(0, 0.08))
        supervisor.kill()
        supervisor.communicate()
        engine = stage.pid()
        if attempt % 3 == 2 and engine:
            os.kill(engine, signal.SIGKILL)
            stage.until(lambda: stage.pid() is None)
    stage.until(stage.speaks, ticking=True)
    alive = [
        p
        for p in psutil.process_iter(["cmdline"])
        if (p.info["cmdline"] or [])[1:] == stage.command[1:]
    ]
    assert [p.pid for p in alive] == [stage.pid()]
    assert not (stage.folder / "refused").exists(), "no second engine was even started"


def test_what_a_killed_engine_left_behind_is_killed_before_the_next_start(
    stage: Stage,
) -> None:
    stage.mode("child")
    stage.tick()
    stage.until(lambda: stage.speaks() and bool(psutil.Process(stage.pid()).children()))
    left_behind = psutil.Process(stage.pid()).children()[0]
    os.kill(stage.pid(), signal.SIGKILL)
    stage.until(lambda: stage.pid() is None)
    assert left_behind.is_running()
    assert "restart" in stage.tick()
    stage.until(
        lambda: (
            not left_behind.is_running() or left_behind.status() == psutil.STATUS_ZOMBIE
        )
    )


def test_a_stream_that_left_the_settings_is_stopped_but_not_one_that_a_person_runs(
    stage: Stage,
) -> None:
    by_hand = subprocess.Popen(stage.command)
    stage.until(stage.speaks)
    assert stage.tick(None) == []
    assert stage.tick(replace(TAXIS, running=False)) == []
    by_hand.kill()
    by_hand.wait()
    assert "start" in stage.tick() or "restart" in stage.tick()
    stage.until(stage.speaks)
    assert stage.tick(None) == ["stop"]
    stage.until(lambda: stage.pid() is None)


def test_a_broken_log_is_alerted_once_and_does_not_keep_other_streams_from_their_turn(
    stage: Stage,
) -> None:
    segments = stage.home.log("buses") / "segments" / "00000000"
    segments.mkdir(parents=True)
    (segments / "notes.txt").write_text("not a segment")
    streams = {"buses": replace(TAXIS, name="buses"), "taxis": TAXIS}
    actions = tick(stage.supervisor, streams, now_us=time.time_ns() // 1000)
    assert [(action.stream, action.kind.value) for action in actions] == [
        ("buses", "alert"),
        ("taxis", "start"),
    ]
    assert "notes.txt" in actions[0].reason
    assert [
        a.stream for a in tick(stage.supervisor, streams, now_us=time.time_ns() // 1000)
    ] == []


def test_one_tick_at_a_time(stage: Stage) -> None:
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom st_common.operations.records import held_lock\n"
        "with held_lock(Path(sys.argv[1])):\n    print(flush=True)\n    time.sleep(60)"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(stage.home.root / ".supervisor.lock")],
        stdout=subprocess.PIPE,
    )
    other.stdout.readline()
    assert stage.tick() == []
    assert stage.pid() is None
    other.kill()  # the lock dies with its holder
    other.communicate()
    assert stage.tick() == ["start"]


def test_a_tick_that_finds_nothing_wanted_writes_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    supervisor = Supervisor(
        home=home, engines=Engines(command=lambda _stream: ["false"])
    )
    assert tick(supervisor, {"taxis": replace(TAXIS, running=False)}, now_us=1) == []
    assert not (home.root / "streams").exists()


def test_a_cut_last_alert_is_left_out(stage: Stage) -> None:
    line = json.dumps(
        {"ts": 1, "stream": "taxis", "level": "error", "text": "dead: gone"}
    )
    (stage.home.root / "alerts.jsonl").write_text(line + "\n" + line[:20])
    assert len(read_alerts(stage.home)) == 1


def test_killing_spares_who_asks_and_who_came_later(stage: Stage) -> None:
    me = this_process()
    assert kill_session(replace(me, ticks=me.ticks - 1)) == 0
    assert lives(me)


def test_the_job_does_one_tick_and_says_what_it_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "conf").mkdir()
    columns = 'format = "csv"\ncolumns = { object = "id", x = "x", y = "y" }'
    (tmp_path / "conf" / "streams.toml").write_text(f"[streams.taxis]\n{columns}\n")
    assert main(["--home", str(tmp_path)]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary == {
        "streams": {"taxis": "stopped"},
        "deliveries": {},
        "actions": [],
        "alerts": [],
        "late": {},
        "supervised_by": "",
        "beats": 0,
        "notified": None,
        "notifier": None,
    }
    assert main(["--home", str(tmp_path), "--retry", "busses"]) == 2
    assert "no stream 'busses'" in capsys.readouterr().err
