"""Captures as they run, in this process: started, waited for, stopped or killed; and what the log has after them."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import stream_of_table
from st_common.log.log import Log
from st_common.sources.capture import Capture
from st_common.sources.note import CaptureNote

_WAIT_S = 60.0
PLAIN = {
    "format": "csv",
    "columns": {"object": "id", "event_ts": "t", "x": "x", "y": "y"},
    "crs": "planar",
    "time_unit": "s",
    "max_ahead_s": "off",
    "engine": "local",
}
"""Settings of a stream whose lines are `id,t,x,y`."""


def stream_with(source: dict[str, object], **others: object) -> StreamSettings:
    """A stream with one source, `feed`; settings are those of `PLAIN`, without those that are None here."""
    given = {**PLAIN, "sources": {"feed": {"batch_ms": 5, **source}}, **others}
    table = {key: value for key, value in given.items() if value is not None}
    return stream_of_table("ships", table, Path("streams.toml"))


@contextlib.asynccontextmanager
async def capturing(home: Home, stream: StreamSettings) -> AsyncIterator[Capture]:
    """A capture of the source `feed` that runs; it has stored all that came when this is left."""
    capture, stop = Capture(home, stream, stream.sources["feed"]), asyncio.Event()
    running = asyncio.create_task(capture.run(stop))
    try:
        yield capture
    finally:
        stop.set()
        await running


@contextlib.asynccontextmanager
async def killed(home: Home, stream: StreamSettings) -> AsyncIterator[Capture]:
    """A capture that ends as if it were killed: what it holds in memory is gone."""
    capture = Capture(home, stream, stream.sources["feed"])
    running = asyncio.create_task(capture.run(asyncio.Event()))
    try:
        yield capture
    finally:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(running, *tasks, return_exceptions=True)


async def until(is_so: Callable[[], bool]) -> None:
    """Waits until something is so.

    Raises:
        AssertionError: it was not for a minute.
    """
    end_s = time.monotonic() + _WAIT_S
    while not is_so():
        assert time.monotonic() < end_s, "it has not come about"
        await asyncio.sleep(0.01)


async def until_records(capture: Capture, count: int) -> CaptureNote:
    """Waits until so many records are stored."""
    await until(lambda: capture.note.records >= count)
    return capture.note


def payloads_of(home: Home, stream: str = "ships") -> list[bytes]:
    """The payloads of all segments of records, as they arrived."""
    log = Log(home.log(stream))
    return [log.raw(one) for one in log.segments(0) if not one.control]


def lines_of(home: Home, stream: str = "ships") -> list[str]:
    """The lines of all segments, without those that name columns."""
    lines = b"".join(payloads_of(home, stream)).decode().splitlines()
    return [line for line in lines if line and not line.startswith("id,")]
