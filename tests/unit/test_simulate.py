"""`python -m demo.simulation`: objects on roads, as fixes of a stream in its log or at a socket."""

import json
import socket
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import shapely

from demo.simulation.__main__ import main
from demo.simulation.network import CLASSES
from demo.simulation.roads import grid_of_streets
from demo.simulation.simulate import Plan, simulate
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import load_streams
from st_common.decode import decode
from st_common.geometry.space import GLOBE, PLANE
from st_common.layers.load import load
from st_common.log.log import Log


class Run(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str


ROADNET = Path("data") / "roadnet-oldenburg"
START_US = 1_718_000_000_000_000
CONF = """
[streams.plain]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y", gone = "gone" }
crs = "planar"
attributes = { class = "string", speed_mps = "double", other = "long" }

[streams.numbers]
format = "tsv"
header = false
columns = { object = "2", event_ts = "1", x = "4", y = "5" }
crs = "planar"
time_unit = "s"

[streams.degrees]
format = "ndjson"
columns = { object = "id", event_ts = "at", x = "lon", y = "lat" }
time_unit = "ms"
attributes = { speed_mps = "double" }

[streams.custom]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
crs = "EPSG:2263"
time_unit = "%d/%m/%Y %H:%M:%S"

[streams.track]
format = "gpx"
columns = { object = "name", event_ts = "time", x = "lon", y = "lat" }
"""
ROADS = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "id": f"road{number}",
            "properties": {"highway": highway, "kind": "road"},
            "geometry": {"type": "LineString", "coordinates": places},
        }
        for number, (highway, places) in enumerate(
            [
                ("primary", [[24.90, 60.10], [24.91, 60.10], [24.92, 60.10]]),
                ("residential", [[24.91, 60.10], [24.91, 60.11], [24.92, 60.11]]),
                ("service", [[24.92, 60.10], [24.92, 60.11]]),
                ("primary", [[25.50, 60.10], [25.51, 60.10]]),
            ]
        )
    ],
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> Callable[..., Run]:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(CONF)
    kinds = '[kinds.road]\ngeometry = "line"\ntags = ["highway"]\n'
    (tmp_path / "conf" / "layers.toml").write_text(kinds)
    monkeypatch.setenv("FAIRWAY_HOME", str(tmp_path))

    def run(*words: object) -> Run:
        try:
            code = main([str(word) for word in words])
        except SystemExit as ended:
            code = ended.code
        return Run(code, *capsys.readouterr())

    return run


def payloads(home: Path, stream: str) -> list[bytes]:
    log = Log(Home(home).log(stream))
    return [log.read(one) for one in log.segments(0) if not one.control]


def settings(home: Path, stream: str) -> StreamSettings:
    return replace(load_streams(home / "conf")[stream], max_ahead_s=None)


@pytest.mark.spec("P12")
@pytest.mark.parametrize("stream", ["plain", "numbers", "degrees", "custom"])
def test_each_object_reports_each_second_as_the_stream_reads_it(
    run, tmp_path: Path, stream: str
) -> None:
    words = ("--fast", "--objects", 40, "--seconds", 3, "--start", "2024-06-10T06:13Z")
    found = run(stream, *words)
    assert found.exit_code == 0, found.stderr
    nodes = {"nodes": 961, "nodes_of_network": 961}
    said = {"stream": stream, "fixes": 120, "seconds": 3.0, **nodes}
    assert json.loads(found.stdout) == said
    read = [
        decode(part, settings(tmp_path, stream), arrival_us=0)
        for part in payloads(tmp_path, stream)
    ]
    assert sum(len(one.rejects) for one in read) == 0
    ids = [name for one in read for name in one.fixes["object"].to_pylist()]
    assert sorted(ids) == sorted([f"v{number}" for number in range(40)] * 3)
    times = {int(at) for one in read for at in one.fixes["event_ts"].to_numpy()}
    step = 1_000_000 if stream == "custom" else 200_000
    begin = 1_717_999_980_000_000
    assert times == set(range(begin, begin + 3_000_000, step))
    if stream == "plain":
        fixes = read[0].fixes
        assert set(fixes["class"].to_pylist()) <= set(CLASSES)
        assert all(0 < speed < 40 for speed in fixes["speed_mps"].to_pylist())
        assert fixes["other"].null_count == len(fixes)


@pytest.mark.spec("P12")
def test_the_same_seed_gives_the_same_bytes(run, shared: Path, tmp_path: Path) -> None:
    words = ("--fast", "--objects", 30, "--seconds", 2, "--arrivals", 4)
    words += ("--network", shared / ROADNET, "--start", "2024-06-10")
    logs = []
    for seed in (3, 3, 4):
        before = len(payloads(tmp_path, "plain"))
        assert run("plain", *words, "--seed", seed).exit_code == 0
        logs.append(payloads(tmp_path, "plain")[before:])
    assert logs[0] == logs[1] != logs[2]


@pytest.mark.spec("P12")
def test_objects_travel_on_the_roads_of_a_layer_as_fast_as_these_allow(
    run, tmp_path: Path
) -> None:
    (tmp_path / "roads.geojson").write_text(json.dumps(ROADS))
    load(
        Home(tmp_path),
        "roads",
        tmp_path / "roads.geojson",
        group="default",
        conf=tmp_path / "conf",
    )
    words = ("--fast", "--objects", 20, "--seconds", 60, "--rate", 5)
    found = run("degrees", *words, "--network", "roads")
    assert found.exit_code == 0, found.stderr
    # The fourth road does not hang together with the others.
    nodes = {"nodes": 5, "nodes_of_network": 7}
    said = {"stream": "degrees", "fixes": 300, "seconds": 60.0, **nodes}
    assert json.loads(found.stdout) == said
    rows = [
        json.loads(line)
        for part in payloads(tmp_path, "degrees")
        for line in part.splitlines()
    ]
    lines = [one["geometry"]["coordinates"] for one in ROADS["features"][:3]]
    roads = shapely.MultiLineString(lines)
    points = shapely.points([[row["lon"], row["lat"]] for row in rows])
    assert shapely.distance(points, roads).max() < 1e-6
    by_object: dict[str, list[dict[str, float]]] = {}
    for row in rows:
        by_object.setdefault(row["id"], []).append(row)
    assert {len(one) for one in by_object.values()} == {15}
    scale = np.array([111_320 * np.cos(np.radians(60.1)), 111_412])
    moved = 0.0
    for fixes in by_object.values():
        ways = np.diff([[row["lon"], row["lat"]] for row in fixes], axis=0) * scale
        took_s = np.diff([row["at"] for row in fixes]) / 1000
        assert (took_s == 4).all()
        assert (np.hypot(*ways.T) / took_s <= 70 / 3.6 * 1.01).all()  # of a primary
        moved += np.hypot(*ways.T).sum()
    assert moved > 1000


@pytest.mark.spec("P12")
def test_lines_go_to_whoever_listens(run, tmp_path: Path) -> None:
    words = ("--fast", "--objects", 10, "--seconds", 2, "--start", "2024-06-10")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)
        taken: list[bytes] = []

        def take() -> None:
            connection, _ = server.accept()
            with connection, connection.makefile("rb") as lines:
                taken.extend(lines)

        thread = threading.Thread(target=take)
        thread.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        found = run("plain", *words, "--tcp", address)
        thread.join(timeout=20)
    assert found.exit_code == 0, found.stderr
    assert payloads(tmp_path, "plain") == []
    assert run("plain", *words).exit_code == 0
    logged = payloads(tmp_path, "plain")
    header = logged[0].splitlines(keepends=True)[0]
    records = [line for part in logged for line in part.splitlines(keepends=True)[1:]]
    assert taken == [header, *records]
    found = run("plain", *words, "--tcp", address)
    assert found.exit_code == 75
    assert f"{address} takes no fixes: Connection refused" in found.stderr


class Clock:
    """A clock that goes on by sleeping alone."""

    def __init__(self) -> None:
        self.now = 0.0
        self.written: list[tuple[float, int]] = []

    def write(self, header: bytes, lines: bytes) -> None:
        assert header == b"id,t,x,y,gone,class,speed_mps,other\n"
        self.written.append((round(self.now, 1), lines.count(b"\n")))

    def end(self) -> None:
        self.written.append((round(self.now, 1), -1))

    def sleep(self, seconds: float) -> None:
        if self.now > 0.7:
            raise KeyboardInterrupt
        self.now += seconds


def test_fixes_come_when_they_are_due_until_somebody_ends_it(
    run, tmp_path: Path
) -> None:
    clock = Clock()
    plan = Plan(
        objects=100,
        rate=100,
        seconds=None,
        seed=1,
        arrivals=0,
        start_us=START_US,
        paced=True,
    )
    stream = settings(tmp_path, "plain")
    done = simulate(
        grid_of_streets(PLANE),
        stream,
        plan,
        clock,
        clock=lambda: clock.now,
        sleep=clock.sleep,
    )
    due = [(0.0, 20), (0.2, 20), (0.4, 20), (0.6, 20), (0.8, 20)]
    assert clock.written == [*due, (0.8, -1)]
    assert done.fixes == 100


def test_the_grid_lies_in_the_stream_s_space() -> None:
    streets = grid_of_streets(GLOBE)
    assert (np.abs(streets.length - 150) < 1).all()
    assert (streets.x > 8).all()
    assert (streets.x < 9).all()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("track",), "stream 'track' is gpx, and what is simulated is written as csv"),
        (("plain", "--network", "raods"), "there is no layer and no file 'raods'"),
        (("plain", "--objects", "0"), "objects is '0' (a whole number, at least 1)"),
        (("plain", "--fast"), "--fast has no end (add --seconds N)"),
        (("plain", "--tcp", "8000"), "--tcp '8000' is no address (HOST:PORT)"),
        (("plain", "--network", "conf"), "conf has 0 files *_nodes.csv, not one"),
    ],
)
def test_wrong_use_is_one_line(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    found = run(*words)
    assert found.exit_code == 2, found.stderr
    assert found.stderr.startswith("error: ")
    assert says in found.stderr
