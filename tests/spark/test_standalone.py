"""A stream whose driver a real standalone cluster runs: master and worker on this machine, from pip's pyspark."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from st_common import tables
from st_common.answers.stream_state import state_of
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.controls.rows import Register
from st_common.controls.writing import to_bytes
from st_common.engine.run import run
from st_common.layers.load import load
from st_common.operations.alerts import read_alerts
from st_common.operations.launcher import find
from st_common.operations.lease import current
from st_common.operations.records import read_record
from st_common.operations.status import read_exit, read_status
from st_common.operations.supervisor import job_supervisor, tick
from st_common.position import segment_of
from st_common.query.plan import Box, Plan
from st_common.query.registry import carry_out
from st_common.query.text import parse
from tests.kit.cars import QUERIES, drive, told
from tests.kit.log_writer import bare_log
from tests.kit.ports import free_port
from tests.kit.standalone import (
    PATIENCE_S,
    Cluster,
    cluster_at,
    kill_group,
    wait_for,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

STREAM = """[streams.cars]
format = "csv"
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
shards = {shards}
columns = {{ object = "id", event_ts = "t", x = "x", y = "y" }}
running = {running}
[streams.cars.spark]
master = "{master}"
cores = {shards}
memory = "1g"
executor_memory = "512m"
"""
EXECUTOR = "CoarseGrainedExecutorBackend"


@pytest.fixture
def cluster(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A master and two workers, or as many as the test's parameter says: each is a JVM that takes seconds to start."""
    count = getattr(request, "param", 2)
    with cluster_at(tmp_path, free_port(), free_port(), workers=count) as made:
        yield made


class Stage:
    """A home, its supervisor, and a stream that the cluster shall run."""

    def __init__(
        self, root: Path, master: str, rest: str | None = None, *, shards: int = 1
    ) -> None:
        self.root, self.shards = root, shards
        self.master, self.rest = master, rest
        self.home = Home(root / "home")
        self.folder = self.home.stream("cars")
        (root / "conf").mkdir()
        self.log = bare_log(self.folder / "log")

    def register(self) -> None:
        plan = Plan(stream="cars", inside=Box(minx=0, miny=0, maxx=5, maxy=5)).to_json()
        row = Register(query="q", version=1, plan=plan, text="", owner="")
        self.log.append(to_bytes(row), arrival_us=1, control=True)

    def append(self, *names: str) -> None:
        lines = [f"{name},1,1,1" for name in names]
        self.log.append("\n".join(["id,t,x,y", *lines, ""]).encode(), arrival_us=1)

    def tick(self, *, running: bool = True) -> list[str]:
        text = STREAM.format(
            running=str(running).lower(),
            shards=self.shards,
            master=self.master,
        )
        if self.rest is not None:
            text += f'rest = "{self.rest}"\n'
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
@pytest.mark.parametrize("cluster", [1], indirect=True, ids=["one-worker"])
def test_a_driver_of_a_cluster_is_started_killed_started_again_and_stopped(
    tmp_path: Path, cluster: Cluster
) -> None:
    stage = Stage(tmp_path, cluster.master, cluster.rest)
    stage.register()
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


@pytest.mark.spec("C4")
def test_a_stream_waits_for_a_cluster_that_goes_away_and_comes_back(
    tmp_path: Path,
) -> None:
    port, rest = free_port(), free_port()
    stage = Stage(tmp_path, f"spark://127.0.0.1:{port}")
    stage.register()
    stage.append("a")
    assert stage.tick() == ["alert"]
    assert stage.tick() == []
    assert state_of(stage.home, "cars").now.state == "unseen"
    with cluster_at(tmp_path, port, rest, workers=1) as cluster:
        assert stage.tick() == ["start"]
        wait_for(lambda: cluster.descendants(EXECUTOR), stage.told)
        wait_for(stage.follows, stage.told)
        assert stage.tick() == ["alert"], "it is well"
        owner = current(stage.folder).owner
    os.kill(owner.pid, signal.SIGKILL)
    wait_for(lambda: not stage.lives(), stage.told)
    stage.append("b")
    stage.tick()
    assert not stage.lives()
    assert state_of(stage.home, "cars").now.state == "unseen"
    with cluster_at(tmp_path, port, rest, workers=1) as cluster:
        assert stage.tick() == ["start"]
        wait_for(lambda: cluster.descendants(EXECUTOR), stage.told)
        wait_for(stage.follows, stage.told)
        assert stage.members() == ["a", "b"], "each once"
        stage.tick(running=False)
        wait_for(lambda: not stage.lives(), stage.told)
    told = [one.text.partition(":")[0] for one in read_alerts(stage.home)]
    assert told[:4] == ["unseen", "ok", "dead", "unseen"]


def test_what_listens_but_is_no_master_is_named_in_a_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        master = "spark://{}:{}".format(*server.getsockname())
        stage = Stage(tmp_path, master)
        stage.register()
        stage.tick(running=False)
        command = [sys.executable, "-m", "st_common.cli", "--home", stage.home.root]
        command += ["--conf", tmp_path / "conf", "run", "cars"]
        done = subprocess.run(
            [str(word) for word in command],
            check=False,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: fairway-cars: master = '{master}' gives no session")


STATEMENTS = f"""{QUERIES}
REGISTER QUERY parks AS SELECT * FROM cars c JOIN parks p ON ST_Intersects(c, p);
REGISTER QUERY beside AS SELECT * FROM cars INSIDE ('M', 'c1', 20 m);
"""
PARK = {
    "type": "Feature",
    "id": "p1",
    "properties": {"kind": "park"},
    "geometry": {
        "type": "Polygon",
        "coordinates": [[[10, 10], [70, 10], [70, 60], [10, 60], [10, 10]]],
    },
}


@pytest.mark.spec("S7", "S2")
def test_a_stream_of_all_kinds_outlives_an_executor_a_worker_and_the_master(
    tmp_path: Path, cluster: Cluster
) -> None:
    stage = Stage(tmp_path, cluster.master, cluster.rest, shards=2)
    stage.tick(running=False)
    stream = load_streams(tmp_path / "conf")["cars"]
    file = tmp_path / "parks.geojson"
    file.write_text(json.dumps({"type": "FeatureCollection", "features": [PARK]}))
    load(stage.home, "parks", file, group=stream.group, space=stream.space)
    carry_out(stage.home, {"cars": stream}, parse(STATEMENTS), owner="me", now_us=1)
    drive(stage.home, range(10))
    assert stage.tick() == ["start"]
    wait_for(stage.follows, stage.told)
    # The driver steps the first fixes itself, and may have told them before Spark has executors.
    wait_for(lambda: len(set(cluster.descendants(EXECUTOR).values())) == 2, stage.told)
    os.kill(min(cluster.descendants(EXECUTOR)), signal.SIGKILL)
    drive(stage.home, range(10, 20))
    wait_for(stage.follows, stage.told)
    (with_driver,) = set(cluster.descendants("run_stream").values())
    kill_group(cluster.workers[1 - with_driver])
    drive(stage.home, range(20, 30))
    wait_for(stage.follows, stage.told)
    kill_group(cluster.master_process)
    drive(stage.home, range(30, 40))
    wait_for(stage.follows, stage.told)
    alone = Home(tmp_path / "alone")
    skipped = shutil.ignore_patterns("readers")
    shutil.copytree(stage.home.log("cars"), alone.log("cars"), ignore=skipped)
    layer = ("layers", "parks")
    shutil.copytree(stage.home.table(*layer), alone.table(*layer))
    run(alone, replace(stream, engine="local"), until_idle=True)
    assert told(stage.home) == told(alone)
    assert {row["query"] for row in told(alone)} == set(
        re.findall(r"QUERY (\w+)", STATEMENTS)
    )
