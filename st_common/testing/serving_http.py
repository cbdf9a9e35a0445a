"""A server of HTTP in a thread of this process, and its events as whoever listens reads them."""

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx

from st_common.server.place import Place
from st_common.server.serve import listening, serve


@contextlib.contextmanager
def served(place: Place, **how: Any) -> Iterator[httpx.Client]:
    """A server without engines on a free port, and a client of it; it has ended when this is left."""
    listener = listening("127.0.0.1", 0)
    begun: dict[str, Any] = {}
    has_begun = threading.Event()

    async def run() -> None:
        begun["stop"], begun["loop"] = asyncio.Event(), asyncio.get_running_loop()

        def told(address: str) -> None:
            begun["address"] = address
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
    assert has_begun.wait(60)  # noqa: S101 - a test waits for it
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
