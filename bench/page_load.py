"""The page under load: fixes are posted, a browser has the page open; each minute memory, CPU and how late it is.

usage: python -m bench.page_load [--rate 20000] [--objects 100000] [--minutes 10] [--queries 100]

Fixes have the time at which they are posted. Lag is told as the page says it, of answers (told_s) and of the map
(told_map_s), and as it is: how long ago the newest fix was made that is in the answers (answers_s), and that is on the
map (map_s); it includes what the posting itself is behind. Chromium has to be on the
path; it draws without a graphics card.
"""

import argparse
import io
import shutil
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import httpx
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.csv as pc
from playwright.sync_api import Page, sync_playwright

from tests.kit.page_home import Served, serve_home

SETTINGS = """
[streams.vehicles]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
time_unit = "us"
max_ahead_s = "off"
engine = "local"
"""
POSTS_PER_S = 4
WEST, SOUTH, SIZE = 24.0, 60.0, 1.0
STEP = 0.0005
MIB = 1 << 20


class Poster:
    """Posts fixes of objects that walk at random, at a rate; `posted` are durable."""

    def __init__(self, served: Served, rate: int, objects: int) -> None:
        self._served, self._each = served, rate // POSTS_PER_S
        self._random = np.random.default_rng(1)
        self._places = self._random.random((objects, 2)) * SIZE + (WEST, SOUTH)
        self._at, self.posted, self._over = 0, 0, threading.Event()
        self.failed: Exception | None = None
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        begun_s, posts = time.monotonic(), 0
        try:
            with httpx.Client(timeout=120) as client:
                while not self._over.is_set():
                    self._post(client)
                    posts += 1
                    late_s = time.monotonic() - begun_s - posts / POSTS_PER_S
                    self._over.wait(max(-late_s, 0))
        except Exception as error:  # noqa: BLE001 - whoever measures tells it
            self.failed = error

    def _post(self, client: httpx.Client) -> None:
        which = (self._at + np.arange(self._each)) % len(self._places)
        self._at += self._each
        self._places[which] += self._random.normal(0, STEP, (self._each, 2))
        names = [f"v{one}" for one in which.tolist()]
        times = np.full(self._each, time.time_ns() // 1000)
        x, y = self._places[which].T
        text = io.BytesIO()
        pc.write_csv(pa.table({"id": names, "t": times, "x": x, "y": y}), text)
        address = f"{self._served.url}/v1/streams/vehicles/fixes"
        headers = {"content-type": "text/csv"}
        client.post(
            address, content=text.getvalue(), headers=headers
        ).raise_for_status()
        self.posted += self._each


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute:
    """What was read at the end of a minute; memory in MiB, CPU in cores over the minute."""

    fixes_per_s: float
    server_mib: float
    engine_mib: float
    heap_mib: float
    server_cpu: float
    engine_cpu: float
    told_s: float
    told_map_s: float
    answers_s: float
    map_s: float


class Gauge:
    """Reads server, engine and page; rates are since the reading before."""

    def __init__(self, served: Served, poster: Poster, page: Page) -> None:
        assert served.process is not None  # noqa: S101 - it was started
        self._served, self._poster, self._page = served, poster, page
        self._server = psutil.Process(served.process.pid)
        self._session = page.context.new_cdp_session(page)
        self._before = (time.monotonic(), poster.posted, self._cpu_s())

    def _cpu_s(self) -> dict[str, float]:
        """CPU seconds of the server, and of its engines and what else it started."""
        times = {"server": _cpu_of(self._server), "engine": 0.0}
        for one in self._server.children(recursive=True):
            times["engine"] += _cpu_of(one)
        return times

    def read(self) -> Minute:
        """What is now."""
        now_s, posted, cpu_s = time.monotonic(), self._poster.posted, self._cpu_s()
        passed_s = now_s - self._before[0]
        cpu = {one: (cpu_s[one] - self._before[2][one]) / passed_s for one in cpu_s}
        rate = (posted - self._before[1]) / passed_s
        self._before = (now_s, posted, cpu_s)
        children = self._server.children(recursive=True)
        return Minute(
            fixes_per_s=rate,
            server_mib=self._server.memory_info().rss / MIB,
            engine_mib=sum(one.memory_info().rss for one in children) / MIB,
            heap_mib=self._heap_bytes() / MIB,
            server_cpu=cpu["server"],
            engine_cpu=cpu["engine"],
            **self._lags(),
        )

    def _heap_bytes(self) -> int:
        """The heap of the page's JavaScript, after what nobody needs is collected."""
        self._session.send("HeapProfiler.collectGarbage")
        return int(self._session.send("Runtime.getHeapUsage")["usedSize"])

    def _lags(self) -> dict[str, float]:
        (told,) = self._served.get("/page/state")["streams"]
        (status,) = self._served.get("/v1/status")["streams"]
        newest_ms, mapped_ms = self._page.evaluate(NEWEST_MS)
        now_s = time.time_ns() / 1e9
        return {
            "told_s": told["lag_s"],
            "told_map_s": now_s - mapped_ms / 1000,
            "answers_s": now_s - (status["clock_us"] or 0) / 1e6,
            "map_s": now_s - newest_ms / 1000,
        }


NEWEST_MS = """() => ['latest', 'mapped'].map(
    (what) => fairwayPage.place[what].get('vehicles') ?? 0)"""


def _cpu_of(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _register(served: Served, count: int) -> None:
    """Regions of a hundredth of a degree, spread over where objects are."""
    corners = np.random.default_rng(2).random((count, 2)) * SIZE + (WEST, SOUTH)
    for number, (x, y) in enumerate(corners.tolist()):
        box = f"({x:.5f}, {y:.5f}, {x + 0.01:.5f}, {y + 0.01:.5f})"
        text = f"SELECT * FROM vehicles INSIDE {box}"  # noqa: S608 - numbers of ours
        address = f"{served.url}/v1/queries/q{number}"
        httpx.put(address, content=text, timeout=120).raise_for_status()


def _measured(served: Served, given: argparse.Namespace, page: Page) -> list[Minute]:
    read: list[Minute] = []
    with Poster(served, given.rate, given.objects) as poster:
        gauge = Gauge(served, poster, page)
        print(" ".join(f"{one:>11}" for one in ("minute", *Minute.__annotations__)))
        for minute in range(1, given.minutes + 1):
            page.wait_for_timeout(60_000)
            read.append(gauge.read())
            values = [
                minute,
                *(getattr(read[-1], one) for one in Minute.__annotations__),
            ]
            print(" ".join(f"{value:>11.2f}" for value in values), flush=True)
            if poster.failed is not None:
                raise poster.failed
    return read


def main() -> None:
    """Runs it, and prints a line a minute."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=int, default=20_000)
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument("--minutes", type=int, default=10)
    parser.add_argument("--queries", type=int, default=100)
    given = parser.parse_args()
    chromium = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        with serve_home(Path(folder), SETTINGS) as served:
            _register(served, given.queries)
            page = browser.new_page(viewport={"width": 1400, "height": 900})
            page.goto(f"{served.url}/#tab=server&query=q0")
            _measured(served, given, page)
        browser.close()


if __name__ == "__main__":
    main()
