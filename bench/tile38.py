"""The same work by Tile38, when TILE38 names its server: a backlog against rectangles, and fences over the network.

TILE38=/path/to/tile38-server python -m bench.command_line --replays 6
TILE38=/path/to/tile38-server python -m bench.serving

Its server is started here, on loopback, with its append-only file, and ended by its process id. Commands go over
its own protocol, many in flight, as its own benchmark sends them. Tile38 tells `enter` of an object that it first sees
inside, and judges no times: workloads without late fixes have the same `enter` and `exit` as our + and -.
"""

import asyncio
import contextlib
import json
import re
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

PORT = 18_642
_AT_ONCE = 2000  # commands
_QUIET_S = 3.0
_TOLD = re.compile(rb'"detect":"(enter|exit)"')


@contextlib.contextmanager
def server(program: str, folder: Path) -> Iterator[None]:
    """Its server, until the body of the `with` ends."""
    command = [program, "-h", "127.0.0.1", "-p", str(PORT), "-d", str(folder), "-q"]
    with subprocess.Popen(command) as process:
        try:
            _await_port()
            yield
        finally:
            process.terminate()


def _await_port() -> None:
    end_s = time.monotonic() + 60
    while time.monotonic() < end_s:
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", PORT)),
        ):
            return
        time.sleep(0.05)
    raise SystemExit("Tile38 does not answer")


class Told(threading.Thread):
    """Counts what fences tell over a connection of its own."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.counts = {"enter": 0, "exit": 0}
        self.last_s = time.monotonic()
        self._connection = socket.create_connection(("127.0.0.1", PORT))
        self._connection.sendall(b"PSUBSCRIBE q*\r\n")
        self.start()

    def run(self) -> None:
        """Reads until the server ends."""
        rest = b""
        while data := self._connection.recv(1 << 20):
            *whole, rest = (rest + data).split(b"\n")
            for found in _TOLD.findall(b"\n".join(whole)):
                self.counts[found.decode()] += 1
                self.last_s = time.monotonic()


def register(rects: pa.Table) -> None:
    """A fence for each rectangle, on a channel of its own."""
    lines = [
        f"SETCHAN q{r['query_id']} INTERSECTS load FENCE DETECT enter,exit "
        f"BOUNDS {r['y1']} {r['x1']} {r['y2']} {r['x2']}\r\n"
        for r in rects.to_pylist()
    ]
    with socket.create_connection(("127.0.0.1", PORT)) as connection:
        send(connection, "".join(lines).encode(), len(lines))


def commands_of(points: pa.Table) -> list[tuple[bytes, int]]:
    """`SET load OBJECT POINT y x` for each fix, some thousand in each portion, and how many these are."""
    x, y = (pc.cast(points[name], pa.string()) for name in ("x", "y"))
    ids = pc.cast(points["object_id"], pa.string())
    lines = pc.binary_join_element_wise("SET load", ids, "POINT", y, x, " ")
    texts = lines.combine_chunks()
    portions = []
    for start in range(0, len(texts), _AT_ONCE):
        part = texts.slice(start, _AT_ONCE).to_pylist()
        portions.append(("\r\n".join([*part, ""]).encode(), len(part)))
    return portions


def send(connection: socket.socket, data: bytes, count: int) -> None:
    """Sends commands, and reads as many answers; one that is an error ends the run."""
    connection.sendall(data)
    answers = b""
    while answers.count(b"\n") < count:
        part = connection.recv(1 << 16)
        if not part or b"-ERR" in part:
            raise SystemExit(f"Tile38 answers {part[:200]!r}")
        answers += part


def backlog(
    points: pa.Table, rects: pa.Table, program: str, folder: Path
) -> dict[str, object]:
    """A backlog from the first command to the last answer, and what its fences told; registering is not in it."""
    portions = commands_of(points)
    with server(program, folder):
        register(rects)
        told = Told()
        time.sleep(1)  # it listens
        begun_s = time.perf_counter()
        with socket.create_connection(("127.0.0.1", PORT)) as connection:
            for data, count in portions:
                send(connection, data, count)
        sent_s = time.perf_counter() - begun_s
        while time.monotonic() - told.last_s < _QUIET_S:
            time.sleep(0.1)
        counts = dict(told.counts)
    return {
        "what": f"tile38, {len(rects):,} rectangles",
        "fixes": len(points),
        **counts,
        "seconds": round(sent_s, 2),
        "fixes_per_s": round(len(points) / sent_s),
    }


async def fence(query: int, told_s: dict[tuple[str, int], float]) -> None:
    """Listens to one fence, and notes when each change comes; a field of the object says which fix it is of."""
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT, limit=1 << 20)
    writer.write(f"SUBSCRIBE q{query}\r\n".encode())
    try:
        while line := await reader.readline():
            if line.startswith(b"{"):
                change = json.loads(line)
                turn = int(change["fields"]["turn"])
                told_s[change["id"], turn] = time.monotonic()
    finally:
        writer.close()


async def set_again_and_again(
    fixes: range, every_s: float, objects: int, *, end_s: float
) -> dict[tuple[str, int], float]:
    """Sets each object in and out of its fence, all of a connection in one message; when each was sent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
    sent_s: dict[tuple[str, int], float] = {}
    turn, due_s = 0, time.monotonic() + every_s * (fixes.start % 97) / 97
    while time.monotonic() < end_s:
        await asyncio.sleep(max(due_s - time.monotonic(), 0))
        due_s += every_s
        turn += 1
        now_s, lines = time.monotonic(), []
        for one in fixes:
            x = one // objects / 10 + (0.01 if turn % 2 else 0.08)
            lines.append(f"SET load o{one} FIELD turn {turn} POINT 0.01 {x:.4f}\r\n")
            sent_s[f"o{one}", turn] = now_s
        writer.write("".join(lines).encode())
        for _ in lines:
            await reader.readline()
    writer.close()
    return sent_s


async def over_network(
    rate: int, connections: int, clients: int, objects: int, *, seconds: float
) -> tuple[dict[tuple[str, int], float], dict[tuple[str, int], float]]:
    """What was sent when, and what was told when: as bench.serving does, a square of its own for each client."""
    squares = [
        {"query_id": n, "x1": n / 10, "y1": 0, "x2": n / 10 + 0.05, "y2": 0.05}
        for n in range(clients)
    ]
    register(pa.Table.from_pylist(squares))
    told_s: dict[tuple[str, int], float] = {}
    listening = [asyncio.create_task(fence(n, told_s)) for n in range(clients)]
    await asyncio.sleep(2)
    each = objects * clients // connections
    every_s, end_s = connections * each / rate, time.monotonic() + seconds
    sending = [
        set_again_and_again(
            range(n * each, (n + 1) * each), every_s, objects, end_s=end_s
        )
        for n in range(connections)
    ]
    sent_s = {k: v for part in await asyncio.gather(*sending) for k, v in part.items()}
    await asyncio.sleep(2)
    for one in listening:
        one.cancel()
    return sent_s, told_s
