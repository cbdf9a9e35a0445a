"""Processes to be killed: each begins with all modules loaded, so that a test can kill many of them in little time."""

import asyncio
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pyarrow as pa

from st_common import tables
from st_common.contracts import load_contract
from st_common.engine import local
from st_common.engine.run import run
from st_common.feeds.running import run_until_stopped
from st_common.home import Home
from st_common.settings import load_streams

_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload([__name__])


def started(program: Callable[..., None], out: Path, *arguments: Any) -> BaseProcess:
    """A process, and the leader of a group of its own, that runs a function of this module and says it into `out`."""
    process = _SERVER.Process(
        target=_apart, args=(program, out, *arguments), daemon=True
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


def _apart(program: Callable[..., None], out: Path, *arguments: Any) -> None:
    os.setsid()
    with out.open("a", encoding="utf-8", buffering=1) as sys.stdout:
        program(*arguments)


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
        assert tables.append(path, data, contract, app=app, version=version)  # noqa: S101 - of a test
        sys.stdout.write(f"{version}\n")
        if compact_every and version % compact_every == compact_every - 1:
            tables.compact(path, before=date(1970, 1, 2))
