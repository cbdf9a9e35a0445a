"""kill -9 of an engine at random moments: nothing is lost, nothing is there twice (SPEC X6)."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from st_common import tables
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.engine import local
from st_common.query.plan import Box, Plan
from tests.kit.log_writer import bare_log
from tests.kit.on_spark import follow_on
from tests.kit.victims import engine, killed, started

ROOT = Path(__file__).resolve().parents[2]
STREAMS = """
[streams.load]
format = "csv"
time_unit = "s"
max_ahead_s = "off"
crs = "planar"
columns = { object = "object", event_ts = "t", x = "x", y = "y" }
"""
SEGMENTS, ROWS, OBJECTS = 400, 50, 40
FIRST_COMMIT_S = 600.0  # Spark's start takes minutes where many others start


def plan_of(n):
    return Plan(stream="load", inside=Box(minx=n, miny=0, maxx=n + 3, maxy=6)).to_json()


def fill(home, seed, segments):
    """A log of random walks over a few rectangles."""
    random.seed(seed)
    log = bare_log(home.log("load"))
    rows = [
        json.dumps(
            {
                "op": "register",
                "query": f"q{n}",
                "version": 1,
                "text": "",
                "owner": "t",
                "plan": plan_of(n),
            }
        )
        for n in range(6)
    ]
    log.append("\n".join(rows).encode(), arrival_us=0, control=True)
    payloads = []
    for number in range(segments):
        lines = [
            f"o{random.randrange(OBJECTS)},{number * ROWS + row},{random.uniform(0, 10)},{random.uniform(0, 10)}"
            for row in range(ROWS)
        ]
        payloads.append(("object,t,x,y\n" + "\n".join(lines) + "\n").encode())
    log.append_all(payloads, arrival_us=0)


def prepare(folder, seed, segments=SEGMENTS):
    home = Home(folder)
    (folder / "conf").mkdir(parents=True)
    (folder / "conf" / "streams.toml").write_text(STREAMS)
    fill(home, seed, segments)
    return home


def expected(tmp_path, seed, segments=SEGMENTS):
    """The rows that an engine that nobody disturbs writes."""
    home = prepare(tmp_path / "calm", seed, segments)
    calm = local.LocalEngine(home, load_streams(home.root / "conf")["load"])
    while calm.batch():
        pass
    calm.close()
    return ordered(home)


def ordered(home):
    """The changes in their order."""
    table = tables.read(home.table("changes", "load"))
    return table.sort_by([("position", "ascending"), ("seq", "ascending")])


def start(home, kind, *options, slowly="import sys"):
    """Starts an engine as a process group of its own; `slowly` is run first, to make its batches small."""
    program = f"{slowly}; import jobs.run_stream as j, sys; sys.exit(j.main())"
    command = [
        sys.executable,
        "-c",
        program,
        "load",
        "--home",
        str(home.root),
        "--engine",
        kind,
        *options,
    ]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def kill(process):
    """kill -9 of the whole process group: for Spark that is driver, JVM and workers."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)


def progress(home):
    done = tables.committed(home.table("changes", "load"), "engine")
    return -1 if done is None else done


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.spec("X6")
def test_local_engine_killed_20_times(tmp_path):
    home, chance = prepare(tmp_path / "killed", 7), random.Random(11)
    for _ in range(20):
        process = started(engine, tmp_path / "said", home.root, "load", 3000)
        status = home.stream("load") / "status.json"
        before_s = status.stat().st_mtime if status.exists() else 0.0
        until_s = time.monotonic() + 60
        while time.monotonic() < until_s and (
            not status.exists() or status.stat().st_mtime == before_s
        ):
            time.sleep(0.01)  # it runs once it has written its status
        time.sleep(chance.uniform(0, 0.6))
        killed(process)
    out, err = start(home, "local", "--until-idle").communicate(timeout=240)
    assert b'"position"' in out, err.decode()[-2000:]
    assert ordered(home).equals(expected(tmp_path, 7))


def killed_in_a_batch(home, chance, *, whole, slowly):
    """Starts an engine on Spark, and kills it soon after its first commit: with all that it started, or by itself."""
    before = progress(home)
    process = start(home, "spark", slowly=slowly)
    until_s = time.monotonic() + FIRST_COMMIT_S
    while time.monotonic() < until_s and progress(home) == before:
        assert process.poll() is None, process.communicate()[1].decode()[-2000:]
        time.sleep(0.02)
    assert progress(home) > before, "no commit before the kill"
    time.sleep(chance.uniform(0, 1.0))
    if whole:
        kill(process)
    else:
        process.kill()  # its JVM and tasks hear of it, and end by themselves
        process.wait(timeout=60)


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1800)
@pytest.mark.spec("X6", "S5", "S7")
def test_drivers_of_tasks_that_stay_are_killed_and_nothing_is_lost_or_told_twice(
    spark, tmp_path
):
    """Some with all their processes, others alone: their tasks may live on while the next ones take the shards."""
    home, chance = prepare(tmp_path / "killed", 8), random.Random(5)
    slowly = "import st_common.spark.resident_engine as e; e.BATCH_BYTES = 1"
    places = []
    for whole in (False, True, False):
        killed_in_a_batch(home, chance, whole=whole, slowly=slowly)
        places.append(progress(home))
    follow_on(spark, home, load_streams(home.root / "conf")["load"])
    assert -1 < places[0] < places[1] < places[2] < progress(home)
    assert ordered(home).equals(expected(tmp_path, 8))
