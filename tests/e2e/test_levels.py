"""The levels of storage on real streams, through the commands, and beside engines that are killed."""

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from pyproj import Geod
from typer.testing import CliRunner

from st_common import tables
from st_common.checks.verify import verify
from st_common.cli import app
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.engine.run import run as run_engine
from st_common.history.snapshots import snapshots
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.log_writer import bare_log

ROOT = Path(__file__).resolve().parents[2]
TAXIS = """
[streams.taxis]
format = "csv"
time_unit = "s"
max_ahead_s = "off"
silence_s = 900
engine = "local"
latest_every = 4
snapshot_s = 3600
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
"""
QUERIES = """
REGISTER QUERY centre AS SELECT * FROM taxis INSIDE (-8.63, 41.14, -8.60, 41.16);
REGISTER QUERY west AS SELECT * FROM taxis INSIDE (-8.70, 41.10, -8.63, 41.20);
"""
pytestmark = [pytest.mark.slow, pytest.mark.spec("P2")]


def taxi_rows(shared):
    """Each trip of the taxis as an object of its own, in time order: id, seconds, longitude, latitude."""
    rows = []
    with (shared / "data" / "taxi-porto" / "train-1000.csv").open() as source:
        for trip, record in enumerate(csv.DictReader(source)):
            start = int(record["TIMESTAMP"])
            rows += [
                (f"t{trip}", start + 15 * step, x, y)
                for step, (x, y) in enumerate(json.loads(record["POLYLINE"]))
            ]
    return sorted(rows, key=lambda row: row[1])


@pytest.fixture(scope="module")
def porto(shared, tmp_path_factory):
    """A home in which the taxis of Porto were driven by the local engine; and their fixes."""
    home = Home(tmp_path_factory.mktemp("porto"))
    (home.root / "conf").mkdir()
    (home.root / "conf" / "streams.toml").write_text(TAXIS)
    stream, rows = load_streams(home.root / "conf")["taxis"], taxi_rows(shared)
    register(home, {"taxis": stream}, parse(QUERIES), owner="test")
    for start in range(0, len(rows), 4000):
        lines = [
            "id,t,x,y",
            *(f"{i},{t},{x!r},{y!r}" for i, t, x, y in rows[start : start + 4000]),
        ]
        bare_log(home.log("taxis")).append("\n".join(lines).encode(), arrival_us=0)
    run_engine(home, stream, until_idle=True)
    return home, stream, rows


@pytest.fixture
def fairway(porto, monkeypatch):
    monkeypatch.setenv("FAIRWAY_HOME", str(porto[0].root))

    def run(*args):
        found = CliRunner().invoke(app, list(args), prog_name="fairway")
        assert found.exit_code == 0, found.stderr
        return found

    return run


def seconds(row):
    return np.datetime64(row["event_ts"][:-1]).astype("datetime64[s]").astype(int)


def moments(rows):
    """Times in the middle of the stream, at its ends, and at multiples of an hour."""
    first, last = rows[0][1], rows[-1][1]
    times = [
        first,
        (first + last) // 2 + 7,
        (first + last) // 2 // 3600 * 3600,
        last - 1800,
        last,
    ]
    return [np.datetime64(t, "s").item().isoformat() for t in times], times


def test_where_the_taxis_were_at_a_time(porto, fairway):
    home, _, rows = porto
    taken = snapshots(home, "taxis")
    assert len(taken) > 5
    for text, at in zip(*moments(rows), strict=True):
        last = {}
        for name, t, x, y in rows:
            if t <= at and (name not in last or t > last[name][0]):
                last[name] = (t, x, y)
        alive = {name: fix for name, fix in last.items() if fix[0] + 900 >= at}
        found = [
            json.loads(line)
            for line in fairway(
                "objects", "taxis", "--at", text, "--format", "jsonl"
            ).stdout.splitlines()
        ]
        assert {
            row["object"]: (seconds(row), row["x"], row["y"]) for row in found
        } == alive
        box = ("-8.63", "41.16", "-8.60", "41.14")
        inside = fairway(
            "objects", "taxis", "--at", text, "--inside", *box, "--format", "jsonl"
        ).stdout.splitlines()
        expected = {
            n
            for n, (_, x, y) in alive.items()
            if -8.63 <= x <= -8.60 and 41.14 <= y <= 41.16
        }
        assert {json.loads(line)["object"] for line in inside} == expected
        nearest = fairway(
            "objects",
            "taxis",
            "--at",
            text,
            "--nearest",
            "5",
            "-8.61",
            "41.15",
            "--format",
            "jsonl",
        )
        check_nearest([json.loads(line) for line in nearest.stdout.splitlines()], alive)


def check_nearest(found, alive):
    """The five nearest by another library's geodesic, which agrees to 0.01 %."""
    names = sorted(alive)
    _, _, metres = Geod(ellps="WGS84").inv(
        [-8.61] * len(names),
        [41.15] * len(names),
        [alive[n][1] for n in names],
        [alive[n][2] for n in names],
    )
    by_name = dict(zip(names, metres, strict=True))
    distances = [row["distance"] for row in found]
    assert distances == sorted(distances)
    assert len(found) == min(5, len(names))
    assert np.allclose(
        distances, [by_name[row["object"]] for row in found], rtol=1e-4, atol=0.01
    )
    assert np.allclose(distances, sorted(metres)[:5], rtol=1e-4, atol=0.01)


def test_answers_at_a_time_are_those_of_all_changes_and_read_less(porto, fairway):
    home, stream, rows = porto
    everything = tables.read(home.table("changes", "taxis")).sort_by(
        [("position", "ascending"), ("seq", "ascending")]
    )
    everything = everything.to_pylist()
    for text, at in zip(*moments(rows), strict=True):
        for query in ("centre", "west"):
            members = {}
            for row in everything:
                if row["query"] == query and row["event_ts"].timestamp() <= at:
                    members.pop(row["object"], None)
                    if row["sign"] > 0:
                        members[row["object"]] = row["event_ts"].timestamp()
            found = fairway(
                "answer", query, "--at", text, "--format", "jsonl", "--explain"
            )
            shown = [json.loads(line) for line in found.stdout.splitlines()]
            assert {
                row["object"]: np.datetime64(row["since_ts"][:-1], "s").astype(int)
                for row in shown
            } == members
            assert list(shown[0] if shown else {"object": 0}) in (
                ["object", "partner", "since_ts", "value", "fields"],
                ["object"],
            )
    of_centre = sum(row["query"] == "centre" for row in everything)
    read = fairway("answer", "centre", "--explain").stderr
    assert read.startswith("read of taxis: ")
    assert (
        int(read.split(" changes ")[0].split(", ")[-1].replace(",", ""))
        < of_centre / 10
    )
    assert all(found.holds for found in verify(home, stream))


def test_latest_is_every_fourth_reading_of_each_taxi(porto, fairway):
    _, _, rows = porto
    readings = {}
    for name, t, x, y in rows:
        if name not in readings or t > readings[name][-1][0]:
            readings.setdefault(name, []).append((t, x, y))
    expected = {
        name: (len(own), own[-1][0], *own[(len(own) - 1) // 4 * 4])
        for name, own in readings.items()
    }
    times = "epoch(newest_ts)::BIGINT AS newest, epoch(event_ts)::BIGINT AS t"
    text = f"SELECT object, readings, {times}, x, y FROM latest_taxis"
    found = [
        json.loads(line)
        for line in fairway("sql", text, "--format", "jsonl").stdout.splitlines()
    ]
    assert {
        r["object"]: (r["readings"], r["newest"], r["t"], r["x"], r["y"]) for r in found
    } == expected
    kinds = fairway(
        "sql",
        "SELECT kind, count(*) > 0 AS n FROM snapshots_taxis GROUP BY ALL ORDER BY 1",
        "--format",
        "csv",
    )
    assert kinds.stdout == "kind,n\nanswer,True\nobject,True\n"


@pytest.mark.spec("X5")
def test_every_change_of_a_real_stream_names_a_fix_that_explains_it(porto, fairway):
    home, _, rows = porto
    fixes = {(name, t): (x, y) for name, t, x, y in reversed(rows)}
    changes = tables.read(home.table("changes", "taxis")).to_pylist()
    chance = random.Random(3)
    for row in chance.sample([row for row in changes if row["query"] == "centre"], 12):
        text = row["event_ts"].isoformat()
        found = json.loads(
            fairway("why", "centre", row["object"], "--at", text, "--json").stdout
        )
        assert (found["change"]["position"], found["change"]["seq"]) == (
            row["position"],
            row["seq"],
        )
        x, y = fixes[row["object"], round(row["fix_ts"].timestamp())]
        assert (found["fix"]["x"], found["fix"]["y"]) == (x, y)
        is_in = -8.63 <= x <= -8.60 and 41.14 <= y <= 41.16
        assert is_in == (row["sign"] > 0 or row["cause"] == "expired")
        assert found["batch"]["version"] is not None or found["batch"]["file"]


def prepare(folder):
    """A log of random walks over some hours, with a snapshot every 1000 s."""
    home, chance = Home(folder), random.Random(7)
    (folder / "conf").mkdir(parents=True)
    text = (
        TAXIS.replace("taxis", "load").replace("3600", "1000")
        + 'crs = "planar"\nlatest_flush_s = 1\n'
    )
    (folder / "conf" / "streams.toml").write_text(text)
    streams = load_streams(folder / "conf")
    register(
        home,
        streams,
        parse("REGISTER QUERY q AS SELECT * FROM load INSIDE (2, 2, 6, 6)"),
        owner="t",
        now_us=0,
    )
    for number in range(150):
        lines = [
            f"o{chance.randrange(40)},{number * 50 + row},{chance.uniform(0, 9)},{chance.uniform(0, 9)}"
            for row in range(50)
        ]
        bare_log(home.log("load")).append(
            "\n".join(["id,t,x,y", *lines]).encode(), arrival_us=0
        )
    return home


def start(home):
    """The engine in a process of its own, with small batches and an archive that wakes all the time."""
    batches = "import st_common.engine.local as e; e.BATCH_BYTES = 3000"
    pauses = "import st_common.engine.archiver as a; a.EVERY_S = 0.02"
    program = (
        f"{batches}; {pauses}; import jobs.run_stream as j, sys; sys.exit(j.main())"
    )
    command = [
        sys.executable,
        "-c",
        program,
        "load",
        "--home",
        str(home.root),
        "--engine",
        "local",
        "--until-idle",
    ]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def levels(home):
    return [
        sorted(str(row) for row in tables.read(home.table(name, "load")).to_pylist())
        for name in ("snapshots", "latest")
    ]


@pytest.mark.spec("X6")
@pytest.mark.timeout(600)
def test_levels_beside_an_engine_that_is_killed_are_there_once(tmp_path):
    calm, home, chance = (
        prepare(tmp_path / "calm"),
        prepare(tmp_path / "killed"),
        random.Random(5),
    )
    run_engine(calm, load_streams(calm.root / "conf")["load"], until_idle=True)
    for _ in range(8):
        process = start(home)
        time.sleep(chance.uniform(0.8, 3.5))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    _, error = (process := start(home)).communicate(timeout=240)
    assert process.returncode == 0, error.decode()[-2000:]
    assert len(snapshots(home, "load")) == 8
    assert levels(home) == levels(calm)


def test_the_job_takes_what_is_due_and_nothing_twice(tmp_path):
    home = prepare(tmp_path / "job")
    streams = load_streams(home.root / "conf")
    from st_common.engine.archive import Archive
    from st_common.engine.local import LocalEngine

    engine, archive = LocalEngine(home, streams["load"]), Archive(home, streams["load"])
    while engine.batch() or archive.batch():
        pass
    engine.close()
    command = [
        sys.executable,
        "-m",
        "jobs.maintain",
        "--levels",
        "--home",
        str(home.root),
    ]
    told = [
        json.loads(
            subprocess.run(
                command, cwd=ROOT, capture_output=True, check=True, text=True
            ).stdout.splitlines()[-1]
        )
        for _ in range(2)
    ]
    assert told == [
        {"latest": {"load": 40}, "snapshots": {"load": 8}},
        {"latest": {"load": None}, "snapshots": {"load": 0}},
    ]
    wrong = subprocess.run(
        [*command, "--stream", "lod"],
        cwd=ROOT,
        capture_output=True,
        check=False,
        text=True,
    )
    assert (wrong.returncode, wrong.stderr) == (
        2,
        "error: there is no stream 'lod' (the settings have load)\n",
    )
