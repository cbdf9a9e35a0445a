"""Drivers of a cluster whose master is away, or whose answer is lost: nothing is started twice, nothing given up."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from st_common.errors import TransientError
from st_common.home import Home
from st_common.ops import standalone
from st_common.ops.alerts import read_alerts
from st_common.ops.lease import release, take
from st_common.ops.records import read_record
from st_common.ops.supervisor import job_supervisor, tick
from st_common.settings import Streams, load_streams
from st_common.testing.http_receiver import Answer, HttpReceiver, http_receiver

pytestmark = pytest.mark.spec("C4")

STREAM = """[streams.cars]
format = "csv"
columns = {{ object = "id", x = "x", y = "y" }}
running = true
[streams.cars.spark]
master = "spark://127.0.0.1:7077"
rest = "http://127.0.0.1:{port}"
"""
NOW_US = time.time_ns() // 1000
MINUTE_US = 60_000_000


class Stage:
    """A stream that a cluster shall run, and in the place of its master a receiver that does wrong."""

    def __init__(self, root: Path, master: HttpReceiver) -> None:
        (root / "conf").mkdir()
        text = STREAM.format(port=master.port)
        (root / "conf" / "streams.toml").write_text(text)
        self.home = Home(root / "home")
        self.folder = self.home.stream("cars")
        self.streams: Streams = load_streams(root / "conf")
        self.supervisor = job_supervisor(self.home, root / "conf")

    def tick(self, minute: int) -> list[str]:
        now_us = NOW_US + minute * MINUTE_US
        done = tick(self.supervisor, self.streams, now_us=now_us)
        return [action.kind.value for action in done]


@pytest.fixture
def master() -> Iterator[HttpReceiver]:
    with http_receiver() as made:
        yield made


@pytest.fixture
def stage(tmp_path: Path, master: HttpReceiver) -> Stage:
    return Stage(tmp_path, master)


def test_a_master_that_is_away_is_alerted_once_and_is_no_crash_loop(
    stage: Stage, master: HttpReceiver
) -> None:
    master.stop()
    for minute in range(0, 60, 4):
        stage.tick(minute)
    told = [alert.text for alert in read_alerts(stage.home)]
    assert len(told) == 1
    assert f"the master at http://127.0.0.1:{master.port} does not answer" in told[0]
    memory = read_record(stage.folder / "supervisor.json")
    assert (memory["starts_us"], memory["tripped"]) == ([], "")
    master.judge = lambda _: Answer(body='{"success": true, "submissionId": "d-1"}')
    master.start()
    assert "start" in stage.tick(61)
    assert read_record(stage.folder / "engine.json")["submission"] == "d-1"


@pytest.mark.timeout(120)
def test_a_machine_that_takes_no_connection_is_not_waited_for_as_an_answer_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(standalone, "_CONNECT_S", 0.3)
    monkeypatch.setattr(standalone, "_READ_S", 600.0)
    with ExitStack() as stack:
        full = stack.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)  # nobody accepts: soon the machine answers to no more
        place = full.getsockname()
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(place)
        rest = f"http://{place[0]}:{place[1]}"
        gone = standalone.Submission(rest=rest, id="d-1", submitted_s=0.0)
        with pytest.raises(TransientError, match="ConnectTimeout"):
            standalone.fate_of(gone)


def test_what_a_master_is_handed(stage: Stage, master: HttpReceiver) -> None:
    master.judge = lambda _: Answer(body='{"success": true, "submissionId": "d-1"}')
    assert stage.tick(0) == ["start"]
    (request,) = master.requests[0]
    words = request["appArgs"]
    assert words[:4] == [
        "--master",
        "spark://127.0.0.1:7077",
        "--deploy-mode",
        "client",
    ], "else the inner spark-submit runs everything in the worker"
    assert Path(words[8]).read_text(encoding="utf-8").startswith('"""Runs a stream')
    assert words[9:] == [
        "cars",
        "--home",
        str(stage.home.root.resolve()),
        "--conf",
        str(stage.home.root.parent / "conf"),
        "--engine",
        "spark",
    ]
    assert request["sparkProperties"]["spark.driver.supervise"] == "false"
    assert set(request["environmentVariables"]) == {
        "PYSPARK_PYTHON",
        "SPARK_ENV_LOADED",
        "SPARK_LOCAL_IP",
    }, "no variable of the supervisor, which has secrets"


def test_a_lost_answer_leads_to_no_second_driver(
    stage: Stage, master: HttpReceiver
) -> None:
    master.judge = lambda _: Answer(cut=True)
    stage.tick(0)
    assert [stage.tick(minute) for minute in (1, 2)][-1] == []
    assert len(master.requests) == 1, "it may live: nobody knows"
    lease = take(stage.folder, now_us=NOW_US)
    stage.tick(4)
    assert len(master.requests) == 1, "it lives: it has the lease"
    release(lease)
    master.judge = lambda _: Answer(body='{"success": true, "submissionId": "d-2"}')
    stage.tick(8)
    assert len(master.requests) == 2
    assert json.loads((stage.folder / "engine.json").read_text())["submission"] == "d-2"


def test_a_master_that_refuses_is_named_with_what_it_says(
    stage: Stage, master: HttpReceiver
) -> None:
    master.judge = lambda _: Answer(body='{"success": false, "message": "no room"}')
    stage.tick(0)
    assert "refuses a driver: no room" in read_alerts(stage.home)[-1].text
    stage.tick(1)
    assert len(master.requests) == 2, "nothing was started, so it is asked again"
