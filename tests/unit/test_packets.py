"""Segments that hold what was decoded at capture, and the raw bytes beside them (SPEC S2, S4)."""

import shutil
import struct
import zlib
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from st_common import tables
from st_common.batch.reset import reset
from st_common.checks.audit import audit
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.decode import batch as joined
from st_common.decode.packed import Encoder, from_bytes
from st_common.engine.run import run
from st_common.errors import LogError
from st_common.log import appending
from st_common.log.log import Log
from st_common.log.reader import pieces
from st_common.log.record_settings import begin_anew
from st_common.log.retention import remove_raw
from st_common.log.segment import HEADER_BYTES, SEGMENT_LIMIT
from st_common.operations.alerts import read_alerts
from st_common.replay.files import replay
from st_common.spark import log_source
from tests.kit.log_writer import bare_log

CARS = StreamSettings(
    name="cars",
    format="csv",
    crs="planar",
    time_unit="s",
    engine="local",
    codec="packet",
    max_ahead_s=None,
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
    attributes={"n": "long"},
)
TEXT = b"id,t,x,y,n\na,1,5,50,1\nb,2,6,60,x\nc,yesterday,1,1,1\n"
DAY_US = 86_400_000_000


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setattr(appending, "PACKED_BYTES", 0)
    return Home(tmp_path / "home")


def captured(
    home: Home, stream: StreamSettings = CARS, text: bytes = TEXT, **options: object
) -> Log:
    path = home.root.parent / "records"
    path.write_bytes(text)
    log = bare_log(home.log("cars"))
    replay(
        log, path, stream, end_mark=False, **{"clock": lambda: 10 * DAY_US, **options}
    )
    return log


def raws(home: Home) -> list[str]:
    return sorted(path.name for path in (home.log("cars") / "raw").rglob("*.raw"))


def stored(home: Home, *columns: str) -> list[tuple]:
    rows = tables.read(home.table("positions", "cars")).sort_by(
        [("segment", "ascending"), ("row", "ascending")]
    )
    return [
        tuple(row[name] for name in ("object", "x", *columns))
        for row in rows.to_pylist()
    ]


@pytest.mark.spec("S2")
def test_readers_of_a_packet_decode_nothing(home, monkeypatch):
    captured(home)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("it is decoded again")

    monkeypatch.setattr(joined, "decode", never)
    done = run(home, CARS, until_idle=True)
    assert (done.fixes, done.rejects, done.nulled) == (2, 1, {"n": 1})
    assert stored(home, "n") == [("a", 5.0, 1), ("b", 6.0, None)]
    assert tables.read(home.table("rejects"))["raw"].to_pylist() == [
        b"c,yesterday,1,1,1"
    ]
    assert [found.problem for found in audit(home, CARS) if found.problem] == []


def test_small_payloads_and_streams_that_say_so_stay_raw(home, monkeypatch):
    log = captured(home, replace(CARS, codec="raw"))
    monkeypatch.setattr(appending, "PACKED_BYTES", len(TEXT) + 1)
    captured(home)
    monkeypatch.setattr(appending, "PACKED_BYTES", len(TEXT))
    captured(home)
    assert [segment.packet for segment in log.segments(0)] == [False, False, True]
    assert len(raws(home)) == 1


def test_the_raw_bytes_are_there_before_the_segment_has_its_number(home, monkeypatch):
    log = captured(home)
    create_all = log.storage.create_all

    def dies(objects: list[tuple[str, bytes]]) -> bool:
        if any(key.endswith(".seg") for key, _ in objects):
            raise KeyboardInterrupt
        return create_all(objects)

    monkeypatch.setattr(log.storage, "create_all", dies)
    for payload in (b"id,t,x,y,n\nlost,1,1,1,1\n", b"id,t,x,y,n\nlost,2,2,2,2\n"):
        with pytest.raises(KeyboardInterrupt):
            log.append(
                payload, arrival_us=1, coded=Encoder(payload, CARS, arrival_us=1)
            )
    monkeypatch.undo()
    assert (len(raws(home)), log.end()) == (3, 1)
    assert (
        remove_raw(log, before_us=11 * DAY_US) == 1
    )  # their number is not taken yet: a writer may be about to
    assert len(raws(home)) == 2
    again = b"id,t,x,y,n\nlost,1,1,1,1\n"
    segment = log.append(again, arrival_us=1, coded=Encoder(again, CARS, arrival_us=1))
    assert log.raw(segment) == again
    begin_anew(log)  # a reset holds on to what it wants to decode, and to nothing else
    assert remove_raw(log, before_us=11 * DAY_US) == 1
    assert log.raw(segment) == again


@pytest.mark.spec("S4")
def test_raw_bytes_go_after_their_time_and_segments_stay(home):
    log = captured(home)
    captured(home, clock=lambda: 12 * DAY_US)
    assert remove_raw(log, before_us=10 * DAY_US) == 0
    assert remove_raw(log, before_us=11 * DAY_US) == 1
    old, new = log.segments(0)
    assert (log.has_raw(old), log.has_raw(new)) == (False, True)
    with pytest.raises(LogError, match="raw bytes of segment 0 are gone"):
        log.raw(old)
    run(home, CARS, until_idle=True)  # thirty days have passed since 1970
    assert raws(home) == []
    assert len(stored(home)) == 4
    kept = replace(CARS, raw_days=None)
    captured(home, kept)
    run(home, kept, until_idle=True)
    assert len(raws(home)) == 1


@pytest.mark.spec("S3")
def test_a_reset_decodes_raw_bytes_anew_and_leaves_what_has_none_as_it_was_decoded(
    home,
):
    log = captured(home)
    swapped = replace(
        CARS,
        raw_days=None,
        columns=Columns(object="id", event_ts="t", x="y", y="x"),
        attributes={},
    )
    captured(home, clock=lambda: 12 * DAY_US)
    run(home, replace(CARS, raw_days=None), until_idle=True)
    remove_raw(log, before_us=11 * DAY_US)
    assert reset(home, "cars").kept == 1
    run(home, swapped, until_idle=True)
    assert stored(home) == [("a", 5.0), ("b", 6.0), ("a", 50.0), ("b", 60.0)]
    assert "n" not in tables.read(home.table("positions", "cars")).column_names
    assert (
        remove_raw(log, before_us=99 * DAY_US) == 0
    )  # else a reader that is behind would see other fixes
    assert [found.problem for found in audit(home, swapped) if found.problem] == []
    assert reset(home, "cars").kept == 1
    typed = replace(CARS, raw_days=None, attributes={"n": "string"})
    run(home, typed, until_idle=True)
    assert stored(home, "n") == [
        ("a", 5.0, None),
        ("b", 6.0, None),
        ("a", 5.0, "1"),
        ("b", 6.0, "x"),
    ]


def test_damage_is_found_in_both_and_named(home):
    log = captured(home)
    raw = next((home.log("cars") / "raw").rglob("*.raw"))
    raw.write_bytes(raw.read_bytes().replace(b"b,2", b"b,3"))
    run(home, replace(CARS, raw_days=None), until_idle=True)
    problems = [found.problem for found in audit(home, CARS) if found.problem]
    assert len(problems) == 1
    assert raw.name in problems[0]
    path = Path(log.place(0))
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(LogError, match="is damaged"):
        list(pieces(log, log.segments(0), CARS))
    log.skip(0, "a test")
    assert [piece.rows for piece in pieces(log, log.segments(0), CARS)] == [0]
    (home.log("cars") / "raw" / "00000000" / "mine.txt").write_text("x")
    captured(home)
    assert (
        remove_raw(log, before_us=99 * DAY_US) == 2
    )  # nobody holds on to the raw bytes of what is passed over
    assert raws(home) == []


@pytest.mark.spec("S2")
def test_a_damaged_packet_is_decoded_anew_from_raw_bytes_that_are_whole(home):
    """What is told is the same; the damage is named by `verify` all the same."""
    kept = replace(CARS, raw_days=None)
    log = captured(home, kept)
    whole = next(pieces(log, log.segments(0), kept)).part.decoded
    path = Path(log.place(0))
    damage(log, 0)
    found = next(pieces(log, log.segments(0), kept)).part.decoded
    assert (found.fixes.to_pylist(), found.rejects, found.nulled) == (
        whole.fixes.to_pylist(),
        whole.rejects,
        whole.nulled,
    )
    assert run(home, kept, until_idle=True).fixes == 2
    assert [found.problem for found in audit(home, kept) if found.problem] == [
        f"{path} is damaged: its bytes were changed"
    ]
    raw = next((home.log("cars") / "raw").rglob("*.raw"))
    raw.unlink()
    with pytest.raises(LogError, match="is damaged"):
        list(pieces(log, log.segments(0), kept))


def damage(log: Log, number: int) -> None:
    path = Path(log.place(number))
    data = path.read_bytes()
    path.write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])


def alerts_of(home: Home, number: int) -> list[str]:
    name = f"{number:012d}.seg"
    return [
        alert.text
        for alert in read_alerts(home)
        if name in alert.text and alert.stream == "cars"
    ]


@pytest.mark.spec("S2")
def test_an_engine_tells_once_of_each_damaged_packet_that_raw_bytes_stand_in_for(
    home, caplog
):
    kept = replace(CARS, raw_days=None)
    log = captured(home, kept)
    captured(home, kept)
    captured(home, kept)
    damage(log, 0)
    run(home, kept, until_idle=True)  # the archive reads it too, at the same time
    (text,) = alerts_of(home, 0)
    assert f"{log.place(0)} is damaged" in text
    assert "restore it from a copy" in text
    assert [
        record.getMessage()
        for record in caplog.records
        if log.place(0) in record.getMessage()
    ] == [text]
    damage(
        log, 2
    )  # behind the archive, and in front of an engine that has lost its state
    shutil.rmtree(home.stream("cars") / "local")
    run(home, kept, until_idle=True)
    assert [len(alerts_of(home, number)) for number in range(3)] == [1, 0, 1]


@pytest.mark.spec("S2")
def test_the_source_of_spark_tells_of_a_damaged_packet(home):
    kept = replace(CARS, raw_days=None)
    log = captured(home, kept)
    damage(log, 0)
    place = log_source._Place(root=str(home.root), stream=kept)
    (part,) = place.parts(0, log.end())
    for _ in range(2):  # a task that failed is tried again
        assert [len(batch) for batch in place.read(part)] == [2]
    assert len(alerts_of(home, 0)) == 1


def test_the_raw_bytes_of_a_damaged_packet_stay_until_it_is_whole(home):
    log = captured(home)
    captured(home)
    path = Path(log.place(0))
    whole = path.read_bytes()
    damage(log, 0)
    assert remove_raw(log, before_us=99 * DAY_US) == 1
    assert [log.has_raw(segment) for segment in log.segments(0)] == [True, False]
    path.write_bytes(whole)
    assert remove_raw(log, before_us=99 * DAY_US) == 1


def test_raw_bytes_that_are_missing_before_their_time_are_said_by_an_audit_and_a_reset(
    home,
):
    kept = replace(CARS, raw_days=None)
    captured(home, kept)
    run(home, kept, until_idle=True)
    next((home.log("cars") / "raw").rglob("*.raw")).unlink()
    said = [found for found in audit(home, kept) if found.what.startswith("log")]
    assert [(found.problem, found.unchecked) for found in said] == [
        (None, "raw bytes of 1 packet, which are gone")
    ]
    assert reset(home, "cars").kept == 1


def forged(log: Log, packet: bytes) -> None:
    log.append(TEXT, arrival_us=1, coded=lambda _: packet)


def two_streams(fixes: pa.Table, rejects: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    for table in (fixes, rejects):
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    return sink.getvalue().to_pybytes()


def test_a_packet_that_is_not_what_the_stream_expects_is_refused_in_one_line(home):
    good = Encoder(TEXT, CARS, arrival_us=0)(0)
    source = pa.BufferReader(good)
    fixes, rejects = (
        pa.ipc.open_stream(source).read_all(),
        pa.ipc.open_stream(source).read_all(),
    )
    bare = fixes.replace_schema_metadata(None)
    twice = (
        pa.concat_tables([fixes.slice(0, 1), fixes.slice(0, 1)])
        .unify_dictionaries()
        .combine_chunks()
    )
    other = replace(CARS, attributes={"m": "long"})
    wrong = {
        "nothing": b"",
        "text": TEXT,
        "cut": good[:-40],
        "too long": good + b"more",
        "half": good[: len(good) // 2],
        "no metadata": two_streams(bare, rejects),
        "no fixes": two_streams(rejects, rejects),
        "no rejects": two_streams(fixes, fixes),
        "a column is missing": two_streams(fixes.drop_columns(["gone"]), rejects),
        "another type": two_streams(
            fixes.set_column(3, "x", fixes["x"].cast(pa.float32())), rejects
        ),
        "a reject is missing": two_streams(fixes, rejects.slice(0, 0)),
        "a record twice": two_streams(
            twice.replace_schema_metadata(fixes.schema.metadata), rejects
        ),
        "a null": two_streams(
            fixes.set_column(3, "x", pa.nulls(2, pa.float64())), rejects
        ),
        "an unknown reason": two_streams(
            fixes, rejects.set_column(1, "reason", pa.array(["because"]))
        ),
        "of other attributes": Encoder(TEXT.replace(b",n", b",m"), other, arrival_us=0)(
            0
        ),
    }
    for what, packet in wrong.items():
        with pytest.raises(LogError, match="cannot be read") as refused:
            from_bytes(packet, CARS, arrival_us=0, where="here")
        assert "\n" not in refused.value.message, what
    assert from_bytes(good, CARS, arrival_us=0, where="here").rows == 3


def test_a_reader_knows_the_codec_and_refuses_others(home):
    log = captured(home)
    path = Path(log.place(0))
    data = path.read_bytes()
    codec = bytearray(data[: HEADER_BYTES - 4])
    codec[7] = 9
    path.write_bytes(
        bytes(codec) + struct.pack("<I", zlib.crc32(bytes(codec))) + data[HEADER_BYTES:]
    )
    with pytest.raises(LogError, match="newer version"):
        log.segments(0)


def test_a_packet_that_would_be_too_large_stays_raw(home):
    log = captured(home)
    segment = log.append(TEXT, arrival_us=1, coded=lambda _: b"x" * SEGMENT_LIMIT)
    assert (segment.packet, log.read(segment)) == (False, TEXT)


def test_a_limit_is_judged_by_the_arrival_that_the_log_gives(home):
    ahead = replace(CARS, max_ahead_s=10.0)
    log = captured(home, ahead, b"id,t,x,y,n\na,1,5,5,1\n", clock=lambda: 100_000_000)
    captured(
        home, ahead, b"id,t,x,y,n\na,105,5,5,1\nb,111,5,5,1\n", clock=lambda: 50_000_000
    )  # set back
    piece = list(pieces(log, log.segments(0), ahead))[1]
    assert piece.part.decoded.fixes["object"].to_pylist() == ["a"]
    assert piece.part.decoded.rejects["reason"].to_pylist() == ["too_far_ahead"]


def test_records_without_times_take_the_arrival_that_the_log_gives(home):
    timeless = replace(CARS, columns=Columns(object="id", x="x", y="y"))
    log = captured(home, timeless, clock=lambda: 100)
    captured(home, timeless, clock=lambda: 50)
    parts = [piece.part for piece in pieces(log, log.segments(0), timeless)]
    first, second = (part.decoded.fixes["event_ts"].to_pylist() for part in parts)
    assert first == [98, 99, 100][: len(first)]
    assert min(second) > max(first)
