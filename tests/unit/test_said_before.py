"""What aircraft and ships said before, in captures and replays: segments stand alone, and records count once."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common.cli import app
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import stream_of_table
from st_common.decode import decode
from st_common.engine.archive import Archive
from st_common.log.log import Log
from st_common.log.reader import pieces
from st_common.log.record_settings import log_for
from st_common.rejects.replay import replay_rejects
from st_common.replay.files import replay
from st_common.sources.arrival import Arrival
from st_common.sources.framing import of_message
from st_common.sources.offsets import MovedError
from st_common.sources.writer import Writer
from tests.kit.feeding import capturing, killed, until_records
from tests.kit.ports import free_port

pytestmark = pytest.mark.spec("B6", "B7")

PLANES = {
    "format": "sbs1",
    "columns": {"object": "hex", "event_ts": "time"},
    "attributes": {"callsign": "string", "ground_speed": "double"},
    "max_ahead_s": "off",
    "engine": "local",
}
SHIPS = {
    "format": "ais",
    "columns": {"object": "mmsi", "event_ts": "time"},
    "attributes": {"name": "string", "shiptype": "long"},
    "max_ahead_s": "off",
    "engine": "local",
}
TIME = b"$PGHP,1,2010,6,11,11,46,11,390,231,45,992190934,1,2B*5B\n"
POSITION = b"!BSVDM,1,1,,A,135OaP001b10m:ROTN1SLRjJ0<0l,0*78\n"


def stream_with(table: dict, source: dict | None = None, **more: object):
    sources = {"feed": {"batch_ms": 5, **source}} if source else {}
    stream = stream_of_table("s", {**table, "sources": sources, **more}, Path("conf"))
    small = {name: replace(one, batch_kb=16) for name, one in stream.sources.items()}
    return replace(stream, sources=small)


def fixes_of(home: Home, stream: StreamSettings) -> tuple[list[dict], int]:
    """The fixes that whoever reads the log gets, and how many records there are."""
    log = Log(home.log(stream.name))
    fixes, rows = [], 0
    for piece in pieces(log, log.segments(0), stream):
        rows += piece.rows
        if piece.part is not None:
            fixes += piece.part.decoded.fixes.drop_columns(["row"]).to_pylist()
    return fixes, rows


def whole(payload: bytes, stream: StreamSettings) -> tuple[list[dict], int]:
    decoded = decode(payload, stream, arrival_us=0)
    return decoded.fixes.drop_columns(["row"]).to_pylist(), decoded.rows


async def send(port: int, data: bytes, *, size: int) -> None:
    """Sends lines over one connection, so many bytes at a time."""
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            break
        except OSError:
            await asyncio.sleep(0.01)
    for at in range(0, len(data), size):
        writer.write(data[at : at + size])
        await writer.drain()
        await asyncio.sleep(0.006)
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize(
    ("table", "path"),
    [
        (PLANES, "adsb-sbs1-ulm/sbs1.txt"),
        (SHIPS, "ais-denmark/nmea-stream-2010-06-11.txt"),
    ],
)
def test_a_live_feed_gives_the_fixes_of_a_replay(shared, tmp_path, table, path):
    payload, port = (shared / "data" / path).read_bytes(), free_port()
    home = Home(tmp_path)
    stream = stream_with(table, {"kind": "tcp", "listen": f":{port}"})
    fixes, records = whole(payload, stream)

    async def run():
        async with capturing(home, stream) as capture:
            await send(port, payload, size=len(payload) // 40)
            return await until_records(capture, records)

    note = asyncio.run(run())
    assert note.segments > 5
    assert (note.records, note.skipped) == (records, 0)
    assert fixes_of(home, stream) == (fixes, records)
    assert any(fix["callsign" if table is PLANES else "name"] for fix in fixes)


def plane(icao: str, kind: int, callsign: str = "", place: str = ",") -> bytes:
    stamp = "2022/09/23,11:27:16.635"
    said = f"{callsign},,,,{place},,,0,0,0,0"
    return f"MSG,{kind},1,1,{icao},1,{stamp},{stamp},{said}\n".encode()


NAMED, SEEN = plane("A955D1", 1, "N700NY"), plane("A955D1", 3, place="48.4,9.7")


def names_of(home: Home, stream: StreamSettings) -> list[str | None]:
    fixes, _ = fixes_of(home, stream)
    return [fix["callsign"] for fix in fixes]


def test_a_capture_that_was_killed_begins_anew(tmp_path):
    home, folder = Home(tmp_path / "home"), tmp_path / "drop"
    folder.mkdir()
    stream = stream_with(PLANES, {"kind": "files", "path": str(folder), "every_s": 1})

    async def run():
        (folder / "1").write_bytes(NAMED)
        async with killed(home, stream) as capture:
            await until_records(capture, 1)
            (folder / "2").write_bytes(SEEN)
            await until_records(capture, 2)
        (folder / "3").write_bytes(SEEN)
        async with capturing(home, stream) as capture:
            await until_records(capture, 1)

    asyncio.run(run())
    assert names_of(home, stream) == ["N700NY", None]


def arrival(line: bytes, place: int) -> Arrival:
    return Arrival(body=line, records=1, places={"part": place})


def test_what_another_capture_has_stored_is_not_remembered(tmp_path):
    """It is read again: what it says must not be known of records in front of it."""
    home, stream = Home(tmp_path), stream_with(PLANES)
    one, two = (Writer(home, stream, "feed") for _ in range(2))
    two.write([arrival(SEEN, 1)])
    with pytest.raises(MovedError):
        one.write([arrival(NAMED, 1)])
    one.places.read()
    one.write([arrival(SEEN, 2)])
    assert names_of(home, stream) == [None, None]


def test_the_files_of_a_folder_are_one_feed(tmp_path):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(
        '[streams.s]\nformat = "sbs1"\ncolumns = { object = "hex", event_ts = "time" }\n'
        'attributes = { callsign = "string" }\nmax_ahead_s = "off"\nengine = "local"\n'
    )
    folder = tmp_path / "drop"
    folder.mkdir()
    (folder / "1").write_bytes(NAMED + SEEN)
    (folder / "2").write_bytes(SEEN)
    command = ["--home", str(tmp_path / "home"), "--conf", str(tmp_path / "conf")]
    done = CliRunner().invoke(app, [*command, "replay", "s", str(folder)])
    assert done.exit_code == 0, done.stderr
    assert "s: 3 records in 2 segments" in done.stdout
    stream = stream_with(PLANES, attributes={"callsign": "string"})
    assert names_of(Home(tmp_path / "home"), stream) == ["N700NY", "N700NY"]


@pytest.mark.parametrize("codec", ["raw", "packet"])
def test_the_segments_of_a_replay_know_what_those_before_say(shared, tmp_path, codec):
    path = shared / "data/adsb-sbs1-ulm/sbs1.txt"
    stream = stream_with(PLANES, codec=codec)
    home = Home(tmp_path)
    report = replay(log_for(home, stream), path, stream, segment_bytes=70_000)
    assert (report.records, report.segments) == (1739, 3)
    assert fixes_of(home, stream) == whole(path.read_bytes(), stream)


def test_a_time_that_comes_alone_is_that_of_the_next_sentence(tmp_path):
    home, stream = Home(tmp_path), stream_with(SHIPS)
    writer = Writer(home, stream, "feed")
    for message in (TIME, POSITION, b"# a comment", TIME + POSITION):
        writer.write(of_message(message, stream))
    fixes, rows = fixes_of(home, stream)
    assert (rows, writer.records) == (2, 2)
    assert [fix["event_ts"] for fix in fixes] == [1_276_256_771_390_000] * 2


def test_a_mended_record_has_what_was_said_before_it(tmp_path):
    home, wrong = Home(tmp_path), stream_with(PLANES, time_unit="%d/%m/%Y %H:%M:%S")
    writer = Writer(home, wrong, "feed", clock=lambda: 1_700_000_000_000_000)
    for line in (NAMED, SEEN):
        writer.write([Arrival(body=line, records=1)])
    archive = Archive(home, wrong)
    while archive.batch():
        pass
    right = replace(wrong, time_unit="%Y/%m/%d %H:%M:%S")
    done = replay_rejects(home, right, reasons=["bad_time"])
    assert (done.records, done.again) == (1, 1)
    assert names_of(home, right) == ["N700NY"]
