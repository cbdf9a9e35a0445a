"""A stream whose driver a real standalone cluster runs: master and worker on this machine, from pip's pyspark."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from st_common import tables
from st_common.controls.rows import Register
from st_common.controls.writing import to_bytes
from st_common.home import Home
from st_common.ops.alerts import read_alerts
from st_common.ops.launcher import find
from st_common.ops.lease import current
from st_common.ops.records import read_record
from st_common.ops.status import read_exit, read_status
from st_common.ops.supervisor import job_supervisor, tick
from st_common.position import segment_of
from st_common.query.plan import Box, Plan
from st_common.settings import load_streams
from st_common.testing.jvm import QUICK_TO_START
from st_common.testing.log_writer import bare_log

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

SPARK_CLASS = Path(sys.executable).with_name("spark-class")
STREAM = """[streams.cars]
format = "csv"
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
shards = 1
columns = {{ object = "id", event_ts = "t", x = "x", y = "y" }}
running = {running}
[streams.cars.spark]
master = "{master}"
rest = "{rest}"
cores = 1
memory = "1g"
executor_memory = "512m"
"""
PATIENCE_S = 400


@dataclass(frozen=True)
class Cluster:
    master: str
    rest: str


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


def wait_for(condition: Callable[[], object], told: Callable[[], str]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end_s, told()
        time.sleep(0.3)


@contextmanager
def daemon(folder: Path, *words: str, **environment: str) -> Iterator[None]:
    """A process of Spark's own, with everything that it started killed at the end."""
    places = {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "JDK_JAVA_OPTIONS": " ".join(QUICK_TO_START),  # of drivers and executors too
    }
    with (folder / f"{words[0].rpartition('.')[2]}.log").open("wb") as log:
        process = subprocess.Popen(
            [str(SPARK_CLASS), *words],
            env={**os.environ, **places, **environment},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def answers(url: str) -> bool:
    try:
        return bool(urllib.request.urlopen(url, timeout=10).read())
    except OSError:
        return False


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    port, rest, page = free_port(), free_port(), free_port()
    options = f"-Dspark.master.rest.enabled=true -Dspark.master.rest.port={rest}"
    master = ("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1")
    master += ("--port", str(port), "--webui-port", str(page))
    worker = ("org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1")
    worker += ("--webui-port", "0", "--cores", "4", "--memory", "4g")
    worker += ("--work-dir", str(tmp_path / "work"), f"spark://127.0.0.1:{port}")
    with daemon(tmp_path, *master, SPARK_MASTER_OPTS=options):
        log = tmp_path / "Master.log"
        wait_for(lambda: answers(f"http://127.0.0.1:{page}/json/"), log.read_text)
        with daemon(tmp_path, *worker):
            yield Cluster(
                master=f"spark://127.0.0.1:{port}", rest=f"http://127.0.0.1:{rest}"
            )


class Stage:
    """A home, its supervisor, and a stream that the cluster shall run."""

    def __init__(self, root: Path, cluster: Cluster) -> None:
        self.root, self.cluster = root, cluster
        self.home = Home(root / "home")
        self.folder = self.home.stream("cars")
        (root / "conf").mkdir()
        self.log = bare_log(self.folder / "log")
        plan = Plan(stream="cars", inside=Box(minx=0, miny=0, maxx=5, maxy=5)).to_json()
        row = Register(query="q", version=1, plan=plan, text="", owner="")
        self.log.append(to_bytes(row), arrival_us=1, control=True)

    def append(self, *names: str) -> None:
        lines = [f"{name},1,1,1" for name in names]
        self.log.append("\n".join(["id,t,x,y", *lines, ""]).encode(), arrival_us=1)

    def tick(self, *, running: bool = True) -> list[str]:
        text = STREAM.format(
            running=str(running).lower(),
            master=self.cluster.master,
            rest=self.cluster.rest,
        )
        (self.root / "conf" / "streams.toml").write_text(text)
        streams = load_streams(self.root / "conf")
        supervisor = job_supervisor(self.home, self.root / "conf")
        done = tick(supervisor, streams, now_us=time.time_ns() // 1000)
        return [action.kind.value for action in done]

    def lives(self) -> bool:
        return find(self.folder, now_us=time.time_ns() // 1000) is not None

    def follows(self) -> bool:
        """Whether everything that the log has is committed."""
        status = read_status(self.folder)
        return status is not None and segment_of(status.position) == self.log.end()

    def told(self) -> str:
        outputs = sorted((self.root / "work").rglob("std*"))
        texts = [f"{path}:\n{path.read_text()[-3000:]}" for path in outputs]
        return "\n".join([str(read_alerts(self.home)), *texts])

    def members(self) -> list[str]:
        table = tables.read(self.home.table("changes", "cars"), columns=["object"])
        return sorted(table["object"].to_pylist())


@pytest.mark.spec("C4")
def test_a_driver_of_a_cluster_is_started_killed_started_again_and_stopped(
    tmp_path: Path, cluster: Cluster
) -> None:
    stage = Stage(tmp_path, cluster)
    stage.append("a", "b")
    assert stage.tick() == ["start"]
    assert stage.lives()
    assert stage.tick() == [], "nothing is started twice"
    wait_for(stage.follows, stage.told)
    first = read_record(stage.folder / "engine.json")["submission"]
    owner = current(stage.folder).owner
    os.kill(owner.pid, signal.SIGKILL)
    wait_for(lambda: not stage.lives(), stage.told)
    stage.append("c")
    assert stage.tick() == ["alert", "restart"]
    wait_for(stage.follows, stage.told)
    assert read_record(stage.folder / "engine.json")["submission"] != first
    assert current(stage.folder).owner.pid != owner.pid
    assert stage.members() == ["a", "b", "c"], "each once, over a kill"
    assert [kind for kind in stage.tick(running=False) if kind != "alert"] == ["stop"]
    wait_for(lambda: not stage.lives(), stage.told)
    assert read_exit(stage.folder).code == 0
    assert stage.tick(running=False) == ["clear"]
