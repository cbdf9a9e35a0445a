"""Processes to be killed: each begins with all modules loaded, so that a test can kill many of them in little time."""

import asyncio
import multiprocessing
import os
import runpy
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from itertools import count
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pyarrow as pa

from st_common import tables
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import load_streams
from st_common.contracts import load_contract
from st_common.engine import local
from st_common.engine.reshard import of_local, reshard
from st_common.engine.run import run
from st_common.engine.topology import topology_of
from st_common.sources.running import run_until_stopped
from tests.kit.shards_here import shards_here

_CHANGING = frozenset(
    [
        "os.rename",
        "os.remove",
        "os.rmdir",
        "os.mkdir",
        "os.link",
        "os.symlink",
        "os.truncate",
    ]
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload([__name__])


def started(program: Callable[..., None], out: Path, *arguments: Any) -> BaseProcess:
    """A process, and the leader of a group of its own, that runs a function of this module and says it into `out`."""
    process = _SERVER.Process(
        target=_apart,
        args=(dict(os.environ), program, out, *arguments),
        daemon=True,
    )
    process.start()
    return process


def killed(process: BaseProcess) -> None:
    """Kills (-9) a process and those that it started, and waits until it is gone."""
    if process.pid is not None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join(60)


def _apart(
    environment: dict[str, str],
    program: Callable[..., None],
    out: Path,
    *arguments: Any,
) -> None:
    os.setsid()
    os.environ.clear()  # it has that of whoever started the first of all
    os.environ.update(environment)
    with out.open("a", encoding="utf-8", buffering=1) as sys.stdout:
        program(*arguments)


def ended(process: BaseProcess, within_s: float = 300) -> int | None:
    """Waits for a process; its exit code, -9 when it was killed; one that does not end is killed, and None."""
    process.join(within_s)
    if process.exitcode is None:
        killed(process)
        return None
    return process.exitcode


def stepping(folder: Path, at: int, program: Callable[..., None], *more: Any) -> None:
    """Runs a function of this module, and kills (-9) itself right before its `at`-th change of a file below a folder.

    What libraries write that are not Python (Delta, Arrow) happens between two of these steps.

    Args:
        folder: a folder, by its whole path.
        at: the number of the step, from 1 on; 0: it lives.
        program: the function.
        more: what it takes.
    """
    steps, below = count(1), str(folder)

    def look(event: str, given: tuple[Any, ...]) -> None:
        if not (event in _CHANGING or (event == "open" and given[2] & _WRITING)):
            return
        if str(given[0]).startswith(below) and next(steps) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(look)
    try:
        program(*more)
    finally:
        at = -1
        sys.stdout.write(f"steps {next(steps) - 1}\n")


def command(*words: str) -> None:
    """Runs `fairway` with some words, to its end."""
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
    sys.argv, sys.stderr = ["fairway", *words], sys.stdout
    runpy.run_module("st_common.cli", run_name="__main__")


def partition(*words: str) -> None:
    """Runs the job `partition` with some words, to its end."""
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
    sys.argv, sys.stderr = ["partition", *words], sys.stdout
    runpy.run_module("jobs.partition", run_name="__main__")


def resharder(root: Path, stream: StreamSettings, engine: str, shards: int) -> None:
    """Takes a stream to another engine or number of shards; shards are stepped here, without Spark."""
    home = Home(root)
    before = topology_of(home, stream.name)
    is_local = before is None or before.engine == "local"
    export = of_local if is_local else shards_here
    reshard(home, stream, engine=engine, shards=shards, export=export)


def engine(root: Path, stream: str, batch_bytes: int) -> None:
    """Runs a stream with the local engine until it is killed, in small batches."""
    local.BATCH_BYTES = batch_bytes
    run(Home(root), load_streams(root / "conf")[stream], until_idle=False)


def capturer(root: Path, stream: str) -> None:
    """Captures all sources of a stream until it is killed."""
    settings = load_streams(root / "conf")[stream]
    names = tuple(settings.sources)
    asyncio.run(run_until_stopped(Home(root), settings, names))


def writer(path: Path, app: str, end: int, rows: int, compact_every: int) -> None:
    """Appends the versions that come after the last committed one, up to a number, and says each of them."""
    contract = load_contract("changes")
    done = tables.committed(path, app)
    sys.stdout.write("ready\n")
    for version in range(0 if done is None else done + 1, end):
        columns = {
            "position": version,
            "event_ts": version,
            "query_version": 1,
            "sign": 1,
        }
        texts = {"object": app, "query": "q", "cause": "enter"}
        data = pa.table(
            {name: [value] * rows for name, value in (columns | texts).items()}
            | {"seq": range(rows)}
        )
        assert tables.append(path, data, contract, app=app, version=version)
        sys.stdout.write(f"{version}\n")
        if compact_every and version % compact_every == compact_every - 1:
            tables.compact(path, before=date(1970, 1, 2))
