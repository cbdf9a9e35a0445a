"""A real standalone cluster of Spark on this machine: a master and workers, from pip's pyspark."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from tests.kit.jvm import of_spark
from tests.kit.ports import free_port

SPARK_CLASS = Path(sys.executable).with_name("spark-class")
PATIENCE_S = 400


@dataclass(frozen=True)
class Cluster:
    """Addresses of a master, and the processes of it and of its workers."""

    master: str
    rest: str
    master_process: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]

    def descendants(self, word: str) -> dict[int, int]:
        """The processes that workers started, whose command has a word: the number of the worker by process id."""
        found = {}
        for number, worker in enumerate(self.workers):
            if worker.poll() is None:
                for each in psutil.Process(worker.pid).children(recursive=True):
                    with suppress(psutil.Error):  # it has just ended
                        if word in " ".join(each.cmdline()):
                            found[each.pid] = number
        return found


def wait_for(condition: Callable[[], object], told: Callable[[], str]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end_s, told()
        time.sleep(0.3)


@contextmanager
def daemon(
    folder: Path, *words: str, name: str, **environment: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A process of Spark's own, with everything that it started killed at the end."""
    places = {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "JDK_JAVA_OPTIONS": " ".join(of_spark()),  # of drivers and executors too
    }
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [str(SPARK_CLASS), *words],
            env={**os.environ, **places, **environment},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            kill_group(process)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kills a process, and all that it started, by signal 9."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def answers(url: str) -> bool:
    try:
        return bool(httpx.get(url, timeout=10, trust_env=False).content)
    except httpx.HTTPError:
        return False


@contextmanager
def cluster_at(
    folder: Path, port: int, rest: int, *, workers: int
) -> Iterator[Cluster]:
    """A master at a port, its REST interface at another, and workers; all end with the body of a `with`."""
    page = free_port()
    options = f"-Dspark.master.rest.enabled=true -Dspark.master.rest.port={rest}"
    master: tuple[str, ...] = ("org.apache.spark.deploy.master.Master",)
    master += ("--host", "127.0.0.1")
    master += ("--port", str(port), "--webui-port", str(page))
    worker: tuple[str, ...] = ("org.apache.spark.deploy.worker.Worker",)
    worker += ("--host", "127.0.0.1")
    worker += ("--webui-port", "0", "--cores", "3", "--memory", "3g")
    worker += ("--work-dir", str(folder / "work"), f"spark://127.0.0.1:{port}")
    with ExitStack() as stack:
        begun = daemon(folder, *master, name="master", SPARK_MASTER_OPTS=options)
        master_process = stack.enter_context(begun)
        log = folder / "master.log"
        wait_for(lambda: answers(f"http://127.0.0.1:{page}/json/"), log.read_text)
        # Its page listens before its REST interface does.
        asked = f"http://127.0.0.1:{rest}/v1/submissions/status/none"
        wait_for(lambda: answers(asked), log.read_text)
        yield Cluster(
            master=f"spark://127.0.0.1:{port}",
            rest=f"http://127.0.0.1:{rest}",
            master_process=master_process,
            workers=[
                stack.enter_context(daemon(folder, *worker, name=f"worker-{number}"))
                for number in range(workers)
            ],
        )
