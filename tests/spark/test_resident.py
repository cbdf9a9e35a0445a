"""Tasks that stay on Spark: what they tell when workers are killed and stopped is what the local engine tells."""

import os
import signal
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from st_common.config.home import Home
from st_common.engine.owner import owned
from st_common.engine.reshard import reshard
from st_common.engine.run import run
from st_common.engine.topology import frozen
from st_common.log.log import Log
from st_common.query.registry import carry_out
from st_common.query.text import parse
from st_common.spark import resident, resident_engine
from st_common.spark.exchange import wire
from st_common.spark.exchange.crew import Crew
from st_common.spark.exchange.wire import Keys
from st_common.spark.resident import Job, on_spark, states_on
from st_common.spark.resident_engine import ResidentEngine
from st_common.spark.resident_task import serve_partition
from st_common.spark.task_settings import TaskSettings, tasks_folder
from st_common.storage import make_folder
from tests.kit.cars import CARS, QUERIES, drive, told
from tests.kit.on_spark import follow_on

pytestmark = [pytest.mark.spec("S5", "S2"), pytest.mark.timeout(600)]


def home_with_cars(folder: Path, seconds: int = 40) -> Home:
    """A home with queries, in which cars drive for so long."""
    home = Home(folder)
    make_folder(folder)
    carry_out(home, {"cars": CARS}, parse(QUERIES), owner="me", now_us=0)
    drive(home, range(seconds))
    return home


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    home = home_with_cars(tmp_path_factory.mktemp("local"))
    run(home, CARS, until_idle=True)
    return told(home)


def followed(spark, home: Home, meddle) -> None:
    """Follows the log a segment a batch on two shards; `meddle` is told of each batch and of the tasks' processes."""
    stream = replace(frozen(home, CARS, engine="spark", shards=2), shards=2)
    feed = TaskSettings.of(home, stream)
    crew = Crew(2, "127.0.0.1")
    job = Job(lambda: spark, 2, partial(serve_partition, crew.address, crew.keys, feed))
    engine = ResidentEngine(home, feed, crew, check=job.check)
    try:
        until_s = time.monotonic() + 120
        while len(crew.names) < 2:  # both, so that one can be missed
            crew.listen()
            job.check()
            assert time.monotonic() < until_s
            time.sleep(0.01)
        number, goes_on = 0, True
        while goes_on:
            engine.take_at_most(1)
            goes_on, number = engine.batch(), number + 1
            meddle(number, engine, [int(name.split("-")[0]) for name in crew.names])
        engine.close()
    finally:
        engine.abandon()
        job.wait()


@pytest.mark.spec("S7")
def test_workers_are_killed_and_stopped_and_nothing_is_told_twice_or_lost(
    spark, expected, tmp_path, monkeypatch
):
    """Three are killed; one is stopped for longer than it may be silent, and writes nothing when it goes on."""
    home = home_with_cars(tmp_path)
    monkeypatch.setattr(wire, "SILENT_S", 5.0)
    stopped = []

    def meddle(number, engine, workers):
        if number in (5, 9, 32):
            os.kill(workers[0], signal.SIGKILL)
        if number in (8, 20):
            engine.store()
        if number >= 12 and len(workers) == 2 and not stopped:
            stopped.append(workers[0])
            os.kill(workers[0], signal.SIGSTOP)
        if number == 30:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)

    followed(spark, home, meddle)
    assert stopped
    assert told(home) == expected
    assert Log(home.log("cars")).end() > 40


@pytest.mark.spec("S5", "S7", "B18")
def test_tasks_end_and_others_take_their_place_without_a_gap(
    spark, expected, tmp_path, monkeypatch
):
    """As once an hour; here whenever states were stored. What ends is no failure, and nobody waits for the next."""
    home = home_with_cars(tmp_path)
    monkeypatch.setattr(resident_engine, "RENEW_S", 0.0)
    names, held = [], set()

    def meddle(number, engine, workers):
        if number % 6 == 0:
            engine.store()
        engine.commit_if_due()
        names.extend(name for name in engine._crew.names if name not in names)
        known = {
            int(name.split("-")[0]) for name in engine._crew.names
        }  # others may have come
        for one in engine._crew.workers():
            assert (one["role"], one["pid"] in known) == ("task", True)
            assert min(one["memory_bytes"], one["disk_free_bytes"]) > 0
            held.update(one["shards"])

    followed(spark, home, meddle)
    assert len(names) > 3
    assert held == {0, 1}
    assert told(home) == expected


@pytest.mark.spec("S5")
def test_the_driver_steps_all_shards_until_spark_has_started(spark, expected, tmp_path):
    home, ready = home_with_cars(tmp_path), threading.Event()

    def start():
        assert ready.wait(60)
        return spark

    stream = replace(frozen(home, CARS, engine="spark", shards=2), shards=2)
    with owned(home, "cars", engine="spark") as owner:
        feed, until_s = TaskSettings.of(home, stream), time.monotonic() + 120
        with resident._engine(start, home, feed, owner, host="127.0.0.1") as engine:
            for _ in range(10):
                engine.take_at_most(1)
                assert engine.batch()
            assert pids(engine) == {os.getpid()}
            engine.commit()
            assert engine.committed > 0, "before Spark has started"
            ready.set()
            while pids(engine) == {os.getpid()} or len(engine._crew.names) < 2:
                engine.take_at_most(1)
                engine.batch()
                time.sleep(0.01)
                assert time.monotonic() < until_s
            while engine.batch():
                pass
            assert os.getpid() not in pids(engine)
            engine.close()
    assert told(home) == expected


def pids(engine) -> set[int]:
    """The processes of the tasks of an engine."""
    return {int(name.split("-")[0]) for name in engine._crew.names}


@pytest.mark.spec("S7")
def test_a_reshard_takes_over_what_tasks_knew(spark, expected, tmp_path):
    """From two shards to three on the way, and to the local engine at the end."""
    home = home_with_cars(tmp_path, 25)
    with_two = replace(frozen(home, CARS, engine="spark", shards=2), shards=2)
    with owned(home, "cars", engine="spark") as owner:
        on_spark(spark, home, TaskSettings.of(home, with_two), owner, end=20)
    export = partial(states_on, spark)
    done = reshard(home, CARS, engine="spark", shards=3, export=export)
    assert done.objects == 60
    assert not tasks_folder(home, "cars").exists()  # the new generation has not begun
    drive(home, range(25, 40))
    with_three = replace(CARS, shards=3, id_key=with_two.id_key)
    with owned(home, "cars", engine="spark") as owner:
        on_spark(spark, home, TaskSettings.of(home, with_three), owner)
    assert tasks_folder(home, "cars").exists()
    reshard(home, CARS, engine="local", shards=1, export=export)
    assert without_places(told(home)) == without_places(expected)


def without_places(rows):
    """Rows but for where they stand in a log that has marks of its own."""
    return [{**row, "position": 0, "seq": 0} for row in rows]


@pytest.mark.spec("S7")
def test_the_key_of_a_run_is_in_no_setting_variable_or_file(
    spark, tmp_path, monkeypatch
):
    home, made, make = home_with_cars(tmp_path / "home", 5), [], Keys.made
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(Keys, "made", lambda: made.append(make()) or made[-1])
    follow_on(spark, home, CARS, shards=2)
    (keys,) = made
    shown = [spark.sparkContext.getConf().toDebugString(), repr(os.environ), repr(keys)]
    status = spark.sparkContext._jsc.sc().statusStore()
    shown.append(status.environmentInfo().toString())
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) > 20
    for secret in (keys.password, *keys.key.splitlines()[1:-1]):
        assert not [text for text in shown if secret in text]
        assert not [data for data in written if secret.encode() in data]
