"""The buffer, the places and the command of captures."""

import asyncio
import contextlib
import dataclasses
import itertools
import signal
import subprocess
import sys
import tempfile
import threading
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from st_common.cli import app
from st_common.config.home import Home
from st_common.config.keys import Place
from st_common.config.sources import source_settings
from st_common.config.streams import load_streams
from st_common.errors import ConfigError
from st_common.log.record_settings import log_for, settle
from st_common.sources.arrival import Arrival
from st_common.sources.buffer import Buffer
from st_common.sources.note import Notes, read_notes
from st_common.sources.offsets import MovedError, Offsets
from st_common.sources.writer import Writer
from st_common.storage import local
from tests.kit.feeding import (
    capturing,
    lines_of,
    stream_with,
    until,
    until_records,
)

pytestmark = pytest.mark.spec("B6")

STREAM = stream_with({"kind": "stdin"})
HEADER = b"id,t,x,y\n"
ROOT = Path(__file__).parents[2]


def arrival(number, size=1, **more):
    body = b"".join(b"a,%d,2,3\n" % (number + at) for at in range(size))
    return Arrival(header=HEADER, body=body, records=size, **more)


def test_who_brings_too_much_waits_or_is_passed_over():
    async def run(*, skips):
        buffer = Buffer(30, skips=skips)
        bringing = asyncio.gather(*(buffer.put(arrival(n)) for n in range(20)))
        taken = []
        while len(taken) + buffer.skipped < 20:
            taken += await buffer.take(most_bytes=10, gather_s=0.001)
            assert buffer.size <= 30
            await asyncio.sleep(0)
        await bringing
        return buffer.skipped, [one.body for one in taken]

    skipped, taken = asyncio.run(run(skips=False))
    assert (skipped, taken) == (0, [arrival(n).body for n in range(20)])
    skipped, taken = asyncio.run(run(skips=True))
    assert skipped + len(taken) == 20
    assert skipped > 10


def test_what_is_passed_over_is_not_waited_for():
    told = []

    async def run():
        buffer = Buffer(1, skips=True)
        await buffer.put(arrival(0))
        await buffer.put(arrival(1, stored=told.append))
        await buffer.close()
        assert len(await buffer.take(most_bytes=99, gather_s=0)) == 1
        assert not await buffer.take(most_bytes=99, gather_s=0)

    asyncio.run(run())
    assert told == [None]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.integers(0, 12))
def test_a_source_goes_on_behind_what_the_log_has_wherever_it_was_killed(sizes, step):
    """In front of a note, between a note and its segment, or behind a segment."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        with contextlib.suppress(_KilledError):
            write_from_where_it_was(home, sizes, dies_at=step)
        assert len(lines_of(home)) == sum(sizes[: step // 2])
        place = Offsets(log_for(home, STREAM), "feed").read().get("part", 0)
        assert place == len(lines_of(home))
        write_from_where_it_was(home, sizes)
        assert lines_of(home) == [f"a,{n},2,3" for n in range(sum(sizes))]


class _KilledError(Exception):
    pass


def write_from_where_it_was(home, sizes, *, dies_at=None):
    """Writes what is left of a source of so many arrivals; it may die in front of a note or of a segment."""
    writer, steps = Writer(home, STREAM, "feed", clock=lambda: 1), itertools.count()

    def dying(do):
        def done(*args, **how):
            if next(steps) == dies_at:
                raise _KilledError
            return do(*args, **how)

        return done

    writer.places.announce = dying(writer.places.announce)
    writer.log.append = dying(writer.log.append)
    begun = writer.places.read().get("part", 0)
    for size, end in zip(sizes, itertools.accumulate(sizes), strict=True):
        if end > begun:
            writer.write([arrival(end - size, size, places={"part": end})])


@pytest.mark.spec("S2")
def test_a_place_is_noted_only_when_what_lies_before_it_is_durable(
    tmp_path, monkeypatch
):
    """Else a power cut takes a segment whose place is noted: its source is not asked for these records again."""
    home, done, real = Home(tmp_path), [], local._sync_folder

    def died(folder):
        if folder.parent.name == "segments":
            raise _KilledError  # the segment has its name, which is not durable
        real(folder)

    monkeypatch.setattr(local, "_sync_folder", died)
    writer = Writer(home, STREAM, "feed", clock=lambda: 1)
    settle(writer.log, STREAM)
    with pytest.raises(_KilledError):
        writer.write([arrival(0, 3, places={"part": 3})])

    def synced(folder):
        real(folder)
        if folder.parent.name == "segments":
            done.append(folder.name)

    monkeypatch.setattr(local, "_sync_folder", synced)
    other = Writer(home, STREAM, "feed", clock=lambda: 1)
    assert other.places.known == {"part": 3}
    assert done == ["00000000"]
    other.write([arrival(3, 2, places={"part": 5})])
    other.write([arrival(5, 2, places={"part": 7})])
    # What a writer has stored itself costs nothing more.
    assert done[1:] == 2 * ["00000000"]


def test_two_captures_of_one_source_store_each_record_once(tmp_path):
    home = Home(tmp_path)
    one, two = (Writer(home, STREAM, "feed") for _ in range(2))
    one.write([arrival(0, 3, places={"part": 3})])
    with pytest.raises(MovedError, match="part"):
        two.write([arrival(0, 2, places={"part": 2})])
    assert two.places.read() == {"part": 3}
    two.write([arrival(3, 2, places={"part": 5}), arrival(9, places={"other": 1})])
    assert lines_of(home) == [f"a,{n},2,3" for n in (0, 1, 2, 3, 4, 9)]
    assert one.places.read() == {"part": 5, "other": 1}


@pytest.mark.parametrize(
    ("table", "wrong"),
    [
        ({}, "kind is missing"),
        ({"kind": "tpc", "listen": ":1"}, "did you mean 'tcp'"),
        ({"kind": "tcp"}, "either listen or connect"),
        ({"kind": "tcp", "listen": "5000"}, "must be \":PORT\""),
        ({"kind": "udp", "listen": ":1", "path": "x"}, "path has no meaning for udp"),
        ({"kind": "http"}, "url is missing"),
        ({"kind": "http", "url": "ftp://x"}, "must be an address"),
        ({"kind": "http", "url": "http://u:p@x"}, "feed': url: must be an address"),
        ({"kind": "http", "url": "http://feed.example", "token_env": "T"}, "without TLS"),
        ({"kind": "mqtt", "connect": "b:1", "topics": ["a"], "token_env": "T"}, "without TLS"),
        ({"kind": "kafka", "connect": "b:1,c", "topics": ["a"]}, "must be \"HOST:PORT\""),
        ({"kind": "stdin", "overload": "drop"}, "is none of wait, skip"),
    ],
)  # fmt: skip
def test_a_source_that_is_wrong_is_named(table, wrong):
    with pytest.raises(ConfigError, match=r"^ships: source 'feed':") as told:
        source_settings({"feed": table}, Place(file="ships"))
    assert wrong in str(told.value)


@pytest.fixture
def settings(tmp_path):
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "streams.toml").write_text(
        """
        [streams.ships]
        format = "csv"
        columns = { object = "id", event_ts = "t", x = "x", y = "y" }
        crs = "planar"
        time_unit = "s"
        max_ahead_s = "off"
        sources = { piped = { kind = "stdin" } }
        """
    )
    return ["--home", str(tmp_path / "home"), "--conf", str(conf)]


def test_what_is_piped_into_capture_is_stored_and_told(settings, tmp_path):
    command = [sys.executable, "-m", "st_common.cli", *settings, "capture", "ships"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdin.write(HEADER + b"a,1,2,3\nb,1")
        process.stdin.flush()
        process.stdin.write(b",2,3")
        told, wrong = process.communicate(timeout=100)
    assert (process.returncode, wrong) == (0, b"")
    assert told == b"ships: 2 records from piped in 1 segments\n"
    assert lines_of(Home(tmp_path / "home")) == ["a,1,2,3", "b,1,2,3"]
    shown = CliRunner().invoke(app, [*settings, "status"])
    assert "ships: source piped (stdin): 2 records, the last " in shown.stdout


def test_a_slow_note_never_replaces_the_last_one(tmp_path, monkeypatch):
    home, write = Home(tmp_path / "home"), Notes.write
    begun, ended = threading.Event(), threading.Event()

    def write_slowly(notes, note):
        if not note.records:
            begun.set()
            ended.wait(3.0)
        write(notes, note)
        if note.records:
            ended.set()

    async def run(stream):
        async with capturing(home, stream) as capture:
            await until(begun.is_set)
            (tmp_path / "part.csv").write_bytes(HEADER + b"a,1,2,3\n")
            await until_records(capture, 1)

    monkeypatch.setattr(Notes, "write", write_slowly)
    source = {"kind": "files", "path": f"{tmp_path}/*.csv", "every_s": 0.1}
    asyncio.run(run(stream_with(source)))
    assert [one.records for one in read_notes(home, "ships")] == [1]


def test_sigterm_stores_what_has_arrived(settings, tmp_path):
    command = [sys.executable, "-m", "st_common.cli", *settings, "capture", "ships"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdin.write(HEADER + b"a,1,2,3\n")
        process.stdin.flush()
        home = Home(tmp_path / "home")
        while not lines_of(home):
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=100) == 0
    (note,) = read_notes(home, "ships")
    assert (note.records, note.error) == (1, None)


def test_status_counts_what_is_in_doubt_and_shows_the_last_of_it(settings, tmp_path):
    command = [sys.executable, "-m", "st_common.cli", *settings, "capture", "ships"]
    subprocess.run(command, input=HEADER + b"a,1,2,3\n", timeout=100, check=True)
    home = Home(tmp_path / "home")
    (note,) = read_notes(home, "ships")
    doubted = dataclasses.replace(note, doubts=2, doubted="b.csv was emptied")
    Notes(home, "ships", "piped").write(doubted)
    shown = CliRunner().invoke(app, [*settings, "status"])
    assert "; 2 doubts, the last: b.csv was emptied\n" in shown.stdout


def test_a_source_that_another_process_captures_is_named(settings, tmp_path):
    command = [sys.executable, "-m", "st_common.cli", *settings, "capture", "ships"]
    home = Home(tmp_path / "home")
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as first:
        while not read_notes(home, "ships"):
            assert first.poll() is None
        beside = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=100,
            check=True,
        )
        first.communicate(timeout=100)
    said = f"note: process {first.pid} captures piped of ships already; one is enough\n"
    assert beside.stderr.decode() == said
    alone = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, timeout=100, check=True
    )
    assert alone.stderr == b"", "the first one has ended"


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        (["ships", "--source", "other"], "has no source 'other' (it has piped)"),
        (["ships", "--source", "piped", "--query", "q"], "neither --query nor --follow"),
    ],
)  # fmt: skip
def test_capture_refuses_what_does_not_go_together(settings, arguments, wrong):
    told = CliRunner().invoke(app, [*settings, "capture", *arguments])
    assert told.exit_code == 2
    assert wrong in told.output.replace("\n", " ")


def test_the_examples_of_the_page_are_settings(tmp_path):
    page = (ROOT / "docs" / "feeds.md").read_text(encoding="utf-8")
    (text,) = [one.partition("```")[0] for one in page.split("```toml\n")[1:]]
    (tmp_path / "streams.toml").write_text(text)
    streams = load_streams(tmp_path)
    assert not streams.broken
    assert set(streams["ships"].sources) == set(
        tomllib.loads(text)["streams"]["ships"]["sources"]
    )
