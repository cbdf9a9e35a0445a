"""A server of HTTP in a thread of this process, and its events as whoever listens reads them."""

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx

from st_common.config.streams import load_streams
from st_common.engine.archive import Archive
from st_common.engine.local import LocalEngine
from st_common.engine.topology import frozen
from st_common.server.installation import Installation
from st_common.server.serve import listening, serve


@contextlib.contextmanager
def served(place: Installation, *, port: int = 0, **how: Any) -> Iterator[httpx.Client]:
    """A server without engines on a port, 0 any that is free, and a client of it; it has ended when this is left."""
    listener = listening("127.0.0.1", port)
    begun: dict[str, Any] = {}
    has_begun = threading.Event()

    async def run() -> None:
        begun["stop"], begun["loop"] = asyncio.Event(), asyncio.get_running_loop()

        def told(line: str) -> None:
            begun.setdefault("address", line)  # the first line is the address
            has_begun.set()

        await serve(
            place,
            listener,
            version="0",
            runs_engines=False,
            stop=begun["stop"],
            told=told,
            **how,
        )

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    assert has_begun.wait(60)
    try:
        with httpx.Client(base_url=begun["address"], timeout=60) as client:
            yield client
    finally:
        begun["loop"].call_soon_threadsafe(begun["stop"].set)
        thread.join(60)


def events(response: httpx.Response) -> Iterator[tuple[str, dict[str, Any]]]:
    """The id and the data of each event of an answer that goes on."""
    known = ""
    for line in response.iter_lines():
        name, _, value = line.partition(": ")
        if name == "id":
            known = value
        elif name == "data":
            yield known, json.loads(value)


class Engine:
    """An engine that works when it is told to."""

    def __init__(self, place: Installation, name: str = "ships") -> None:
        stream = load_streams(place.conf)[name]
        self.stream = replace(
            frozen(place.home, stream, engine="local", shards=1), shards=1
        )
        self._engine = LocalEngine(place.home, self.stream)
        self._archive = Archive(place.home, self.stream)

    def close(self) -> None:
        """Ends it."""
        self._engine.close()

    def abandon(self) -> None:
        """Ends it as one that is killed: what was told and not committed is not committed now."""
        self._engine.abandon()

    def batch(self) -> bool:
        """Steps: what comes of it is told, and not committed; whether there was something."""
        return self._engine.batch()

    def work(self) -> None:
        """Steps, commits and archives all that the log has."""
        while self._engine.batch():
            pass
        self._engine.commit()
        while self._archive.batch():
            pass
