"""The supervisor over deliveries: real deliverers that are started, killed, started again and stopped."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.engine.local import LocalEngine
from st_common.log.log import Log
from st_common.operations.alerts import read_alerts
from st_common.operations.launcher import find, recorded
from st_common.operations.process import kill_session
from st_common.processes.supervise import main
from st_common.query.plan import Box, Plan
from tests.kit.http_receiver import HttpReceiver, http_receiver
from tests.kit.log_writer import bare_log

pytestmark = [pytest.mark.spec("X7"), pytest.mark.slow, pytest.mark.timeout(180)]

STREAMS = """
[streams.s]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
"""
DELIVERY = '[deliveries.d]\nstream = "s"\nto = "webhook"\nurl = "{url}"\nretry_max_s = 0.2\nrunning = {running}\n'


def now_us() -> int:
    return time.time_ns() // 1000


def wait_for(condition: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.05)


class Stage:
    """A home with one stream and one delivery, and a supervisor that ticks when it is told to."""

    def __init__(
        self, folder: Path, receiver: HttpReceiver, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.home, self._receiver, self._capsys, self._second = (
            Home(folder),
            receiver,
            capsys,
            0,
        )
        self.folder = self.home.delivery("d")
        (folder / "conf").mkdir()
        (folder / "conf" / "streams.toml").write_text(STREAMS)
        plan = Plan(stream="s", inside=Box(minx=0, miny=0, maxx=5, maxy=5)).to_json()
        row = {
            "op": "register",
            "query": "q",
            "version": 1,
            "plan": plan,
            "text": "",
            "owner": "t",
        }
        Log(self.home.log("s")).append(
            json.dumps(row).encode(), arrival_us=0, control=True
        )

    def shall_run(self, running: bool) -> None:
        text = DELIVERY.format(url=self._receiver.url, running=str(running).lower())
        (self.home.root / "conf" / "deliveries.toml").write_text(text)

    def tick(self) -> dict[str, object]:
        assert (
            main(
                ["--home", str(self.home.root), "--conf", str(self.home.root / "conf")]
            )
            == 0
        )
        return json.loads(self._capsys.readouterr().out.splitlines()[-1])

    def changes(self, number: int) -> None:
        lines = [f"o{self._second + n},{self._second + n},1,1" for n in range(number)]
        self._second += number
        bare_log(self.home.log("s")).append(
            "\n".join(["id,t,x,y", *lines, ""]).encode(), arrival_us=0
        )
        engine = LocalEngine(self.home, load_streams(self.home.root / "conf")["s"])
        while engine.batch():
            pass
        engine.close()


@pytest.fixture
def stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Stage]:
    with http_receiver() as receiver:
        made = Stage(tmp_path, receiver, capsys)
        try:
            yield made
        finally:
            if (owner := recorded(made.folder)) is not None:
                kill_session(owner)


def test_a_delivery_is_started_kept_alive_and_stopped(stage: Stage) -> None:
    stage.shall_run(True)
    stage.changes(5)
    done = stage.tick()
    assert done["actions"] == [
        {"stream": "delivery d", "kind": "start", "reason": "it has not run yet"}
    ]
    taken = stage._receiver.taken
    wait_for(lambda: len(taken) == 5 and (stage.folder / "status.json").exists())
    done = stage.tick()
    assert (done["actions"], done["deliveries"], done["streams"]) == (
        [],
        {"d": "idle"},
        {"s": "stopped"},
    )
    first = recorded(stage.folder)
    assert first is not None
    os.kill(first.pid, signal.SIGKILL)
    wait_for(lambda: find(stage.folder, now_us=now_us()) is None)
    stage.changes(5)
    assert [action["kind"] for action in stage.tick()["actions"]] == ["restart"]
    wait_for(lambda: len(taken) >= 10)
    assert list(dict.fromkeys(change["object"] for change in taken)) == [
        f"o{n}" for n in range(10)
    ]
    stage.shall_run(False)
    assert [action["kind"] for action in stage.tick()["actions"]] == ["stop"]
    wait_for(lambda: find(stage.folder, now_us=now_us()) is None)
    assert json.loads((stage.folder / "status.json").read_text())["state"] == "stopped"
    done = stage.tick()
    assert ([action["kind"] for action in done["actions"]], done["deliveries"]) == (
        ["clear"],
        {"d": "stopped"},
    )
    assert [(alert.stream, alert.level) for alert in read_alerts(stage.home)] == [
        ("delivery d", "error"),
        ("delivery d", "info"),
    ]


def test_a_receiver_that_is_away_is_no_reason_to_restart(stage: Stage) -> None:
    stage._receiver.stop()
    stage.shall_run(True)
    stage.changes(3)
    stage.tick()
    status = stage.folder / "status.json"
    wait_for(
        lambda: (
            status.exists() and json.loads(status.read_text())["state"] == "retrying"
        )
    )
    done = stage.tick()
    assert (done["actions"], done["deliveries"]) == ([], {"d": "idle"})
    stage._receiver.start()
    wait_for(lambda: len(stage._receiver.taken) == 3)


def test_wrong_settings_end_it_until_a_reset(stage: Stage) -> None:
    stage.shall_run(True)
    with (stage.home.root / "conf" / "deliveries.toml").open("a") as file:
        file.write('token_env = "FAIRWAY_NO_SUCH_SECRET"\n')
    stage.changes(1)
    stage.tick()
    wait_for(
        lambda: (
            (stage.folder / "exit.json").exists()
            and find(stage.folder, now_us=now_us()) is None
        )
    )
    done = stage.tick()
    assert done["deliveries"] == {"d": "bad_config"}
    assert "FAIRWAY_NO_SUCH_SECRET is not set" in str(read_alerts(stage.home)[-1].text)
    stage.shall_run(True)
    arguments = [
        "--home",
        str(stage.home.root),
        "--conf",
        str(stage.home.root / "conf"),
    ]
    assert main([*arguments, "--retry", "deliveries/d"]) == 0
    wait_for(lambda: len(stage._receiver.taken) == 1)
