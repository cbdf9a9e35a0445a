"""A server under load: fixes posted over many connections, changes read by many clients; from POST to event.

usage: python -m bench.serving [--rate 2000] [--connections 50] [--clients 200] [--seconds 30] [--kill]

Each client listens to a query of its own, and each fix enters or leaves one: as many changes as fixes. With --kill the
server is killed half-way, and starts again: whoever posts tries again with the same key, whoever listens goes on behind
the last change that he had. A run in which a change is missing, or comes twice, fails.
With TILE38=path the same is done by Tile38, see bench/tile38.py.
"""

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bench import tile38
from bench.percentiles import latencies

SETTINGS = """
[streams.ships]
format = "ndjson"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
crs = "planar"
time_unit = "us"
max_ahead_s = "off"
engine = "local"
"""
WARM_S = 5.0
PORT = 18_641
OBJECTS = 10
"""Of each client's query."""


@dataclass
class Run:
    """What was sent when, and what came back."""

    sent_s: dict[tuple[str, int], float] = field(default_factory=dict)
    told_s: dict[tuple[str, int], float] = field(default_factory=dict)
    told: Counter[str] = field(default_factory=Counter)
    tries: int = 0


async def request(
    streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    method: str,
    path: str,
    body: bytes = b"",
    **headers: str,
) -> int:
    """Sends one request over a connection that stays; the status of its answer."""
    reader, writer = streams
    named = {"Host": "localhost", "Content-Length": str(len(body)), **headers}
    lines = [f"{method} {path} HTTP/1.1", *(f"{n}: {v}" for n, v in named.items())]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
    status = int((await reader.readuntil(b"\r\n")).split()[1])
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length")
    )
    await reader.readexactly(length)
    return status


async def connected() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection, as soon as the server listens."""
    while True:
        with contextlib.suppress(OSError):
            return await asyncio.open_connection("127.0.0.1", PORT)
        await asyncio.sleep(0.05)


def serve(folder: Path) -> subprocess.Popen[bytes]:
    """The server, as a process of its own."""
    command = [sys.executable, "-m", "st_common.cli", "--home", folder / "home"]
    command += ["--conf", folder, "serve", "--port", str(PORT)]
    log = (folder / "serve.log").open("ab")
    return subprocess.Popen([str(one) for one in command], stdout=log, stderr=log)


async def register(clients: int) -> None:
    """A query for each client: a square of its own."""
    statements = [
        f"REGISTER QUERY q{n} AS SELECT * FROM ships INSIDE ({n * 10}, 0, {n * 10 + 5}, 5);"  # noqa: S608 - not SQL
        for n in range(clients)
    ]
    streams = await connected()
    body = "\n".join(statements).encode()
    status = await request(streams, "POST", "/v1/queries", body)
    if status != 201:
        sys.exit(f"POST /v1/queries answers {status}")


async def post(
    run: Run, number: int, every_s: float, fixes: int, *, end_s: float
) -> None:
    """Posts some fixes again and again: each of its objects goes in and out of its square."""
    streams, turn = await connected(), 0
    due_s = time.monotonic() + every_s * np.random.default_rng(number).random()
    while time.monotonic() < end_s:
        await asyncio.sleep(max(due_s - time.monotonic(), 0))
        due_s += every_s
        turn += 1
        now_s, records = time.monotonic(), []
        for one in range(number * fixes, (number + 1) * fixes):
            x = one // OBJECTS * 10 + (1 if turn % 2 else 8)
            t = time.time_ns() // 1000
            records.append(json.dumps({"id": f"o{one}", "t": t, "x": x, "y": 1}))
            run.sent_s[f"o{one}", turn] = now_s
        body = "\n".join(records).encode()
        key = f"{number}-{turn}"
        while True:
            run.tries += 1
            with contextlib.suppress(OSError, EOFError):
                named = {"Content-Type": "application/x-ndjson", "Idempotency-Key": key}
                path = "/v1/streams/ships/fixes"
                if await request(streams, "POST", path, body, **named) == 202:
                    break
            streams = await connected()


async def events(query: int, last: str) -> AsyncIterator[str]:
    """The ids of a query's changes as they come, until the connection breaks off."""
    reader, writer = await connected()
    behind = f"Last-Event-ID: {last}\r\n" if last else ""
    since = "" if last else "?since=0"
    head = (
        f"GET /v1/changes/q{query}{since} HTTP/1.1\r\nHost: localhost\r\n{behind}\r\n"
    )
    writer.write(head.encode())
    try:
        while line := await reader.readline():
            if line.startswith(b"id: "):
                yield line[4:].strip().decode()
    finally:
        writer.close()


async def listen(run: Run, query: int) -> None:
    """Notes when each change comes."""
    last, turns = "", Counter[str]()
    while True:
        with contextlib.suppress(OSError):
            async for known in events(query, last):
                last = known
                run.told[known] += 1
                ship = known.split("/")[2]
                turns[ship] += 1
                turn = ship, turns[ship]
                run.told_s[turn] = time.monotonic()
        await asyncio.sleep(0.05)


async def measure(arguments: argparse.Namespace, folder: Path) -> Run:
    """The run."""
    run, server = Run(), serve(folder)
    await register(arguments.clients)
    listening = [asyncio.create_task(listen(run, n)) for n in range(arguments.clients)]
    await asyncio.sleep(2)
    fixes = OBJECTS * arguments.clients // arguments.connections
    every_s = arguments.connections * fixes / arguments.rate
    end_s = time.monotonic() + WARM_S + arguments.seconds
    posting = [
        asyncio.create_task(post(run, n, every_s, fixes, end_s=end_s))
        for n in range(arguments.connections)
    ]
    if arguments.kill:
        await asyncio.sleep(WARM_S + arguments.seconds / 2)
        server.kill()
        server.wait()
        server = serve(folder)
    await asyncio.gather(*posting)
    until_s = time.monotonic() + 60
    while len(run.told) < len(run.sent_s) and time.monotonic() < until_s:
        await asyncio.sleep(0.1)
    await asyncio.sleep(1)  # what would come twice
    for one in listening:
        one.cancel()
    server.terminate()
    server.wait()
    return run


def main() -> None:
    """Runs it, and prints what was measured."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=int, default=2000)
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--kill", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "streams.toml").write_text(SETTINGS)
        run = asyncio.run(measure(arguments, Path(folder)))
        log = (Path(folder) / "serve.log").read_text()
    twice = sum(count > 1 for count in run.told.values())
    if len(run.told) != len(run.sent_s) or twice:
        print(log[-2000:], file=sys.stderr)
        sys.exit(
            f"{len(run.told)} of {len(run.sent_s)} changes came, {twice} of them twice"
        )
    told = {
        **latencies(run.sent_s, run.told_s, warm_s=WARM_S),
        "posts": run.tries,
        "killed": arguments.kill,
    }
    print(json.dumps(told))
    if "TILE38" in os.environ:
        print(json.dumps(by_tile38(arguments, os.environ["TILE38"])))


def by_tile38(arguments: argparse.Namespace, program: str) -> dict[str, object]:
    """The same fixes and squares by Tile38's fences."""
    with tempfile.TemporaryDirectory() as folder, tile38.server(program, Path(folder)):
        sent_s, told_s = asyncio.run(
            tile38.over_network(
                arguments.rate,
                arguments.connections,
                arguments.clients,
                OBJECTS,
                seconds=WARM_S + arguments.seconds,
            )
        )
    return {"what": "tile38", **latencies(sent_s, told_s, warm_s=WARM_S)}


if __name__ == "__main__":
    main()
