"""Files give their records in the order of event times, whatever order they stand in."""

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.decode import decode
from st_common.formats.said_before import said_before
from st_common.log.log import Log
from st_common.replay import ordered
from st_common.replay.files import replay
from tests.kit.effort import tries

NOW = 1_780_000_000_000_000
CARS = StreamSettings(
    name="cars",
    format="csv",
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
    time_unit="s",
    engine="local",
)
BASE = 1_700_000_000
Row = tuple[str, int]


def text_of(rows: Sequence[Row]) -> bytes:
    lines = [f"{name},{BASE + at},24.{at % 9},60.1" for name, at in rows]
    return "\n".join(["id,t,x,y", *lines]).encode() + b"\n"


def write_csv(path: Path, rows: Sequence[Row]) -> StreamSettings:
    path.write_bytes(text_of(rows))
    return CARS


def write_packed(path: Path, rows: Sequence[Row]) -> StreamSettings:
    path.write_bytes(gzip.compress(text_of(rows)))
    return CARS


def write_array(path: Path, rows: Sequence[Row]) -> StreamSettings:
    records = [
        {"id": name, "t": BASE + at, "x": 24 + at % 9 / 10, "y": 60.1}
        for name, at in rows
    ]
    path.write_text(json.dumps(records))
    return replace(CARS, format="ndjson")


def write_parquet(path: Path, rows: Sequence[Row]) -> StreamSettings:
    names, times = zip(*rows, strict=True) if rows else ((), ())
    table = pa.table(
        {
            "id": pa.array(names, pa.string()),
            "t": pa.array([BASE + at for at in times], pa.int64()),
            "x": pa.array([24 + at % 9 / 10 for at in times], pa.float64()),
            "y": pa.array([60.1] * len(rows), pa.float64()),
        }
    )
    pq.write_table(table, path)
    return replace(CARS, format="parquet")


def write_gpx(path: Path, rows: Sequence[Row]) -> StreamSettings:
    tracks = "".join(
        f"<trk><name>{name}</name><trkseg>"
        f'<trkpt lat="60.1" lon="24.{at % 9}"><time>'
        f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(BASE + at))}</time></trkpt>"
        "</trkseg></trk>"
        for name, at in rows
    )
    path.write_text(f'<gpx version="1.1">{tracks}</gpx>')
    columns = Columns(object="trk/name", event_ts="time", x="lon", y="lat")
    return replace(CARS, format="gpx", columns=columns, time_unit="iso")


WRITERS = [write_csv, write_packed, write_array, write_parquet, write_gpx]


def told(log: Log, stream: StreamSettings) -> list[tuple[str, int, float]]:
    """The fixes of a log in its order."""
    rows: list[tuple[str, int, float]] = []
    for segment in log.segments(0):
        if segment.control:
            continue
        fixes = decode(log.read(segment), stream, arrival_us=segment.arrival_us).fixes
        rows += [
            (row["object"], row["event_ts"] // 1_000_000 - BASE, row["x"])
            for row in fixes.to_pylist()
        ]
    return rows


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(ordered, "PART_BYTES", 200)


@pytest.mark.spec("X14")
@pytest.mark.parametrize("write", WRITERS)
def test_the_order_of_a_file_says_nothing(write, tmp_path, small):
    rows = [(f"bus{bus}", 30 * n + bus) for bus in range(7) for n in range(40)]
    path = tmp_path / "file"
    stream = write(path, rows)
    log = Log(tmp_path / "log")
    report = replay(log, path, stream)
    assert (report.records, report.descents, report.ahead) == (280, 6, 0)
    in_time = sorted(rows, key=lambda row: row[1])
    assert told(log, stream) == [(b, at, 24 + at % 9 / 10) for b, at in in_time]


@tries(25)
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 60)),
        unique=True,
        min_size=1,
        max_size=40,
    ),
    st.randoms(use_true_random=False),
    st.sampled_from(WRITERS),
    st.sampled_from([1, 100, 300, 1 << 20]),
    st.sampled_from([50, 1 << 20]),
)
def test_any_order_gives_one_log(rows, chance, write, part_bytes, segment_bytes):
    """Equal times keep the order in which they stand, so rows are of one object each or ties are broken by it."""
    rows = sorted(rows, key=lambda row: (row[1], row[0]))
    mixed = list(rows)
    chance.shuffle(mixed)
    mixed.sort(key=lambda row: row[0])  # ties between objects stand alike
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordered, "PART_BYTES", part_bytes)
        path, log = Path(folder) / "file", Log(Path(folder) / "log")
        stream = write(path, mixed)
        replay(log, path, stream, segment_bytes=segment_bytes)
        assert [row[:2] for row in told(log, stream)] == rows


@pytest.mark.spec("X14")
def test_a_folder_of_one_file_a_vehicle_is_one_replay(tmp_path):
    paths = []
    for bus in range(3):
        paths.append(tmp_path / f"bus{bus}.csv")
        write_csv(paths[-1], [(f"bus{bus}", 30 * n + bus) for n in range(5)])
    log = Log(tmp_path / "log")
    report = replay(log, paths, CARS)
    assert [at for _, at, _ in told(log, CARS)] == sorted(
        30 * n + bus for bus in range(3) for n in range(5)
    )
    assert (report.records, report.segments, log.end()) == (15, 1, 2)


def test_as_they_stand_is_the_order_of_the_file(tmp_path):
    path = tmp_path / "file"
    write_csv(path, rows := [("a", 9), ("b", 5), ("a", 7)])
    log = Log(tmp_path / "log")
    assert replay(log, path, CARS, as_they_stand=True).descents == 0
    assert [row[:2] for row in told(log, CARS)] == rows
    assert log.read(log.segment(0)) == path.read_bytes()


def test_a_file_in_order_is_stored_as_it_is(tmp_path):
    path = tmp_path / "file"
    write_csv(path, [("a", 5), ("b", 5), ("a", 7)])
    log = Log(tmp_path / "log")
    assert replay(log, path, CARS).descents == 0
    assert log.read(log.segment(0)) == path.read_bytes()


def test_what_has_no_time_keeps_its_place_and_its_line(tmp_path):
    lines = [
        b"id,t,x,y",
        b"a,90,1,1",
        b"",
        b"junk",
        b"b,50,1,1",
        b"b,,1,1",
        b"c,70,1,1",
    ]
    path = tmp_path / "file"
    path.write_bytes(b"\n".join(lines) + b"\n")
    log = Log(tmp_path / "log")
    replay(log, path, CARS)
    before, body = said_before(log.read(log.segment(0)))
    assert body.split(b"\n") == [
        b"id,t,x,y", b"b,50,1,1", b"b,,1,1", b"c,70,1,1", b"a,90,1,1", b"junk", b"",
    ]  # fmt: skip
    assert before.lines == (5, 6, 7, 2, 4)


def test_what_was_said_of_an_aircraft_is_said_by_time(tmp_path):
    def line(kind: int, icao: str, second: int, callsign: str = "") -> bytes:
        clock = f"2018/08/01,00:00:{second:02}.000"
        place = ",,,,48.4,9.7" if kind == 3 else ""
        text = f"MSG,{kind},1,1,{icao},1,{clock},{clock},{callsign}{place}"
        return (text + "," * (21 - text.count(",")) + "\n").encode()

    planes = replace(
        CARS,
        format="sbs1",
        columns=Columns(object="hex", event_ts="time", x="longitude", y="latitude"),
        attributes={"callsign": "string"},
        time_unit="%Y/%m/%d %H:%M:%S",
    )
    lines = [
        line(3, "AAAAAA", 9),
        line(1, "AAAAAA", 5, "LATE"),
        line(3, "AAAAAA", 2),
        line(1, "AAAAAA", 1, "EARLY"),
    ]
    path = tmp_path / "file"
    path.write_bytes(b"".join(lines))
    log = Log(tmp_path / "log")
    replay(log, path, planes)
    fixes = decode(log.read(log.segment(0)), planes, arrival_us=NOW).fixes
    assert fixes["callsign"].to_pylist() == ["EARLY", "LATE"]


def test_one_wrong_year_is_ahead_wherever_it_stands(tmp_path):
    rows = [(f"v{n % 4}", 10 * n) for n in range(200)]
    rows.insert(20, ("v0", 200 + 365 * 86_400))
    path = tmp_path / "file"
    write_csv(path, rows)
    for number, stands in enumerate((True, False)):
        log = Log(tmp_path / f"log{number}")
        report = replay(log, path, CARS, as_they_stand=stands, segment_bytes=1000)
        assert report.ahead == 1
        assert [row[:2] for row in told(log, CARS)] == [*rows[:20], *rows[21:]]


def test_a_pause_at_the_end_of_a_segment_is_seen_through(tmp_path):
    rows = [("a", 10 * n) for n in range(20)]
    rows += [("a", 3 * 86_400 + 10 * n) for n in range(20)]
    path = tmp_path / "file"
    write_csv(path, rows)
    for size in range(100, 700, 60):
        log = Log(tmp_path / f"log{size}")
        assert replay(log, path, CARS, segment_bytes=size).ahead == 0
        assert [row[:2] for row in told(log, CARS)] == rows


def test_a_clock_1024_weeks_behind_comes_last(tmp_path):
    week = 7 * 86_400
    rows = [("good", n) for n in range(5)] + [
        ("old", n - 1024 * week) for n in range(5)
    ]
    random.Random(4).shuffle(rows)
    path = tmp_path / "file"
    write_csv(path, rows)
    log = Log(tmp_path / "log")
    assert replay(log, path, CARS).ahead == 0
    good, old = (
        [r for r in sorted(rows, key=lambda r: r[1]) if r[0] == n]
        for n in ("good", "old")
    )
    assert [row[:2] for row in told(log, CARS)] == good + old


KILLED = """
import sys, time
from pathlib import Path
from st_common.replay import ordered
from st_common.log.log import Log
from st_common.replay.files import replay
sys.path.insert(0, {here!r})
from test_ordered import CARS
add = ordered._Parts.add
def slow(self, chunk, stream):
    add(self, chunk, stream)
    print("sorting", flush=True)
    time.sleep(60)
ordered._Parts.add = slow
replay(Log(Path({log!r})), Path({path!r}), CARS)
"""


@pytest.mark.slow
def test_who_is_killed_in_mid_sort_leaves_nothing(tmp_path):
    path, log, temporary = tmp_path / "file", tmp_path / "log", tmp_path / "tmp"
    temporary.mkdir()
    write_csv(path, [("a", 9), ("b", 5)])
    code = KILLED.format(here=str(Path(__file__).parent), log=str(log), path=str(path))
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(temporary)},
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"sorting\n"
        finally:
            process.send_signal(signal.SIGKILL)
    assert Log(log).end() == 0
    assert list(temporary.iterdir()) == []
    assert replay(Log(log), path, CARS).records == 2


def test_a_file_that_grows_while_it_is_read_is_said_to_be_a_feed(tmp_path):
    path = tmp_path / "file"
    write_csv(path, [("a", 5), ("b", 7)])

    def grow(_records: int) -> None:
        with path.open("ab") as file:
            file.write(b"c,1700000009,24.0,60.1\n")

    log = Log(tmp_path / "log")
    report = replay(log, path, CARS, progress=grow)
    assert (report.records, report.grown) == (2, (path,))
    assert replay(log, path, CARS).grown == ()
