"""A cluster that is away, or whose answer is lost: nothing is started twice, nothing given up, and it is said."""

import json
import re
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from jobs.run_stream import main as run_stream
from st_common.answers.stream_state import state_of
from st_common.cli import app
from st_common.config.home import Home
from st_common.config.spark import SparkSettings
from st_common.config.streams import Streams, load_streams
from st_common.errors import TransientError
from st_common.operations import standalone
from st_common.operations.alerts import read_alerts
from st_common.operations.judged import healths
from st_common.operations.launcher import kill_launched
from st_common.operations.lease import release, take
from st_common.operations.records import read_record, write_record
from st_common.operations.status import read_exit
from st_common.operations.supervisor import job_supervisor, tick
from tests.kit.http_receiver import Answer, HttpReceiver, http_receiver

pytestmark = pytest.mark.spec("C4")

STREAM = """[streams.cars]
engine = "spark"
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

    def __init__(
        self, root: Path, settings: str, command: Sequence[str] | None = None
    ) -> None:
        (root / "conf").mkdir()
        (root / "conf" / "streams.toml").write_text(settings)
        self.home = Home(root / "home")
        self.folder = self.home.stream("cars")
        self.streams: Streams = load_streams(root / "conf")
        self.supervisor = job_supervisor(self.home, root / "conf")
        if command is not None:
            engines = replace(self.supervisor.engines, command=lambda _: command)
            self.supervisor = replace(self.supervisor, engines=engines)

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
    return Stage(tmp_path, STREAM.format(port=master.port))


def test_a_master_that_is_away_is_alerted_once_and_is_no_crash_loop(
    stage: Stage, master: HttpReceiver
) -> None:
    master.stop()
    for minute in range(60):
        stage.tick(minute)
    told = [alert.text for alert in read_alerts(stage.home)]
    setting = f"[streams.cars.spark] rest = 'http://127.0.0.1:{master.port}'"
    assert len(told) == 1
    assert f"unseen: stream 'cars': nothing answers at {setting}" in told[0]
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


WITHOUT_REST = STREAM.partition("rest")[0].format()
SLEEP = "import time; time.sleep(120)"


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A socket whose port nobody else is given, and at which nothing listens as long as it does not."""
    with socket.socket() as kept:
        kept.bind(("127.0.0.1", 0))
        yield kept


def address(of: socket.socket) -> str:
    return "{}:{}".format(*of.getsockname())


@pytest.fixture
def alone(tmp_path: Path, silent: socket.socket) -> Iterator[Stage]:
    """A stream whose engine is a process here and whose tasks run on a cluster; the engine only sleeps."""
    text = WITHOUT_REST.replace("127.0.0.1:7077", address(silent))
    made = Stage(tmp_path, text, command=[sys.executable, "-c", SLEEP])
    yield made
    kill_launched(made.folder)


def test_a_stream_whose_cluster_is_away_says_so_wherever_it_is_looked_at(
    alone: Stage, silent: socket.socket
) -> None:
    for minute in range(60):
        alone.tick(minute)
    where = address(silent)
    setting = f"[streams.cars.spark] master = 'spark://{where}'"
    says = f"stream 'cars': nothing answers at {setting}: {where}: Connection refused"
    (alert,) = read_alerts(alone.home)
    assert alert.text.startswith(f"unseen: {says} (start that cluster, or")
    assert healths(alone.home, alone.streams, now_us=NOW_US) == {"cars": "unseen"}
    state = state_of(alone.home, "cars")
    assert state.now.state == "unseen"
    assert str(state.now.why).startswith(says)
    assert not (alone.folder / "engine.json").exists(), "nothing was started"


def test_a_stream_starts_once_its_cluster_is_back(
    alone: Stage, silent: socket.socket
) -> None:
    alone.tick(0)
    silent.listen()
    assert alone.tick(1) == ["start"]
    silent.close()
    assert alone.tick(2) == [], "it lives, whatever its cluster does"
    assert state_of(alone.home, "cars").now.why is None


def test_a_crash_loop_whose_cluster_goes_away_is_alerted_once_more_and_over(
    alone: Stage,
) -> None:
    starts_us = [NOW_US - MINUTE_US * minute for minute in range(5, 0, -1)]
    looping = {"tripped": "crash_loop", "condition": "crash_loop", "why": "killed"}
    record = {**looping, "starts_us": starts_us}
    write_record(alone.folder / "supervisor.json", record)
    for minute in range(60):
        alone.tick(minute)
    told = [alert.text.partition(":")[0] for alert in read_alerts(alone.home)]
    assert told == ["unseen"]
    assert state_of(alone.home, "cars").now.state == "unseen"


def test_of_several_masters_one_is_enough(silent: socket.socket) -> None:
    with socket.create_server(("127.0.0.1", 0)) as master:
        masters = f"spark://{address(silent)},{address(master)}"
        standalone.check_master("cars", SparkSettings(master=masters))


def test_where_no_master_listens_each_is_named_with_what_it_answers(
    silent: socket.socket,
) -> None:
    where, port = address(silent), silent.getsockname()[1]
    place = SparkSettings(master=f"spark://{where},localhost:{port}")
    said = f"{where}: Connection refused; localhost:{port}: Connection refused"
    with pytest.raises(standalone.UnreachableError, match=re.escape(said)):
        standalone.check_master("cars", place)


def test_a_command_without_its_cluster_is_wrong_and_a_job_may_try_again(
    alone: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    alone.folder.mkdir(parents=True)
    root = alone.home.root.parent
    places = ["--home", str(alone.home.root), "--conf", str(root / "conf")]
    done = CliRunner().invoke(app, [*places, "run", "cars"], prog_name="fairway")
    says = "stream 'cars': nothing answers at [streams.cars.spark] master = 'spark:"
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)
    assert says in done.stderr
    assert run_stream(["cars", *places]) == 75
    assert says in capsys.readouterr().err
    assert read_exit(alone.folder).code == 75
