"""What the processes of a stream say of themselves: version, CPU, memory, disk, shards."""

import json
import os
import time
from importlib import metadata

import psutil
import pytest
from typer.testing import CliRunner

from st_common.cli import app
from st_common.config.home import Home
from st_common.engine.run import run
from st_common.operations import lease
from st_common.operations.status import read_status
from st_common.operations.workers import Meter
from tests.kit.feeding import stream_with
from tests.kit.log_writer import bare_log

pytestmark = pytest.mark.spec("B18")


def test_a_process_says_what_it_takes(tmp_path):
    meter = Meter("engine", tmp_path)
    first = meter.read()
    assert (first.host, first.pid) == (os.uname().nodename, os.getpid())
    assert first.version == metadata.version("fairway-streams")
    assert first.cpu_share is None
    times = psutil.Process().cpu_times()
    assert first.cpu_s == pytest.approx(times.user + times.system, abs=1)
    assert 0 < first.disk_free_bytes < first.disk_bytes
    held = bytearray(os.urandom(1 << 20) * 64)
    while psutil.Process().cpu_times().user < times.user + 0.1:
        sum(range(10_000))
    second = meter.read()
    assert second.cpu_s > first.cpu_s
    assert 0 < second.cpu_share <= 2
    assert second.memory_bytes >= first.memory_bytes + len(held) // 2


def test_a_folder_on_no_disk_leaves_it_unknown(tmp_path):
    told = Meter("task", tmp_path / "none").read()
    assert (told.disk_free_bytes, told.disk_bytes) == (None, None)


def test_an_engine_writes_it_and_status_shows_it_only_while_it_lives(tmp_path):
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "streams.toml").write_text(
        '[streams.ships]\nformat = "csv"\ncrs = "planar"\ntime_unit = "s"\n'
        'columns = { object = "id", event_ts = "t", x = "x", y = "y" }\n'
    )
    home = Home(tmp_path / "home")
    bare_log(home.log("ships")).append(b"id,t,x,y\na,1,2,3\n", arrival_us=0)
    run(home, stream_with({"kind": "stdin"}), until_idle=True)
    (worker,) = read_status(home.stream("ships")).workers
    assert (worker["role"], worker["pid"]) == ("engine", os.getpid())
    places = ["--home", str(home.root), "--conf", str(conf)]
    told = CliRunner().invoke(app, [*places, "status", "--json"])
    assert json.loads(told.stdout)["workers"] == []
    told = CliRunner().invoke(app, [*places, "status", "--metrics", "-"])
    assert "fairway_log_segments{" in told.stdout
    assert "fairway_worker_" not in told.stdout, "nobody runs it"
    folder, now_us = home.stream("ships"), time.time_ns() // 1000
    held = lease.take(folder, now_us=now_us)
    told = CliRunner().invoke(app, [*places, "status", "--metrics", "-"])
    lease.release(held)
    labels = '{stream="ships",worker="0"}'
    assert f"fairway_worker_memory_bytes{labels}" in told.stdout
    assert f"fairway_worker_cpu_seconds_total{labels}" in told.stdout
