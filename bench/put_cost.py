"""What a put costs the server: the CPU of its process for a body of fixes, as text and by the Python client.

usage: python -m bench.put_cost [--puts 200] [--fixes 1 100 1000]

The server runs no engine. Each way puts the same fixes into a stream of its own, as many times; what the server says
of each is counted.
"""

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil

import fairway

STREAM = """
[streams.{name}]
format = "{format}"
columns = {{ object = "id", event_ts = "t", x = "x", y = "y" }}
attributes = {{ speed = "double m/s" }}
time_unit = "s"
max_ahead_s = "off"
engine = "local"
"""
NDJSON = {"Content-Type": "application/x-ndjson"}


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[tuple[psutil.Process, str]]:
    """A server without engines as a process of its own, and its address."""
    (folder / "streams.toml").write_text(
        "".join(
            STREAM.format(name=f"{way}_{kind}", format=kind)
            for way in ("text", "client")
            for kind in ("ndjson", "csv")
        )
    )
    command = [sys.executable, "-m", "st_common.cli", "--home", folder / "home"]
    command += ["--conf", folder, "serve", "--port", "0", "--no-engines"]
    process = subprocess.Popen(
        [str(one) for one in command], stdout=subprocess.PIPE, text=True
    )
    try:
        address = process.stdout.readline().strip() if process.stdout else ""
        yield psutil.Process(process.pid), address
    finally:
        process.terminate()
        process.wait()


def fixes_of(number: int, count: int) -> list[dict[str, object]]:
    """The fixes of one put."""
    return [
        {"id": f"o{n}", "t": number + 1, "x": n / 1000, "y": 1.25, "speed": n * 0.1}
        for n in range(count)
    ]


def cost_ms(
    server: psutil.Process, put: Callable[[int], object], puts: int
) -> tuple[float, float]:
    """CPU of the server and time of a put, milliseconds."""
    put(0)  # what is made once
    used, begun_s = server.cpu_times(), time.perf_counter()
    for number in range(1, puts + 1):
        put(number)
    now = server.cpu_times()
    cpu_s = now.user + now.system - used.user - used.system
    return cpu_s / puts * 1e3, (time.perf_counter() - begun_s) / puts * 1e3


def require(told: int, count: int) -> None:
    """Ends the run where the server counts other records than were sent."""
    if told != count:
        sys.exit(f"the server counts {told} records of {count}")


def main() -> None:
    """Measures, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--puts", type=int, default=200)
    parser.add_argument("--fixes", type=int, nargs="*", default=[1, 100, 1000])
    given = parser.parse_args()
    print("stream  fixes  sent as  CPU ms    ms")
    for count in given.fixes:
        with (
            tempfile.TemporaryDirectory() as folder,
            serving(Path(folder)) as (server, address),
            httpx.Client(base_url=address, timeout=60) as http,
            fairway.connect(address) as client,
        ):
            for kind in ("ndjson", "csv"):
                for way, put in ways(http, client, kind, count).items():
                    cpu, wall = cost_ms(server, put, given.puts)
                    print(f"{kind:6}  {count:5}  {way:7}  {cpu:6.1f} {wall:5.1f}")


def ways(
    http: httpx.Client, client: fairway.Client, kind: str, count: int
) -> dict[str, Callable[[int], None]]:
    """How fixes can be put, by what they are sent as."""

    def text(number: int) -> None:
        lines = "".join(json.dumps(one) + "\n" for one in fixes_of(number, count))
        path = f"/v1/streams/text_{kind}/fixes"
        told = http.post(path, content=lines, headers=NDJSON)
        require(told.json()["records"], count)

    def rows(number: int) -> None:
        put = client.put(f"client_{kind}", fixes_of(number, count))
        require(put.records, count)

    return {"NDJSON": text, "client": rows}


if __name__ == "__main__":
    main()
