"""Replay of files: whole segments, nothing lost, at the given pace."""

import gzip
import io
import itertools
import json
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.decode import decode
from st_common.decode.gzipped import GzipSource
from st_common.errors import ConfigError
from st_common.formats.chunk import Chunk
from st_common.log.control import write_clock, write_end
from st_common.log.log import Log
from st_common.replay.chunks import chunks
from st_common.replay.files import replay
from tests.kit.effort import tries

COLUMNS = Columns(object="id", event_ts="ts", x="x", y="y")
START = 1_700_000_000_000_000
HEADER = b"id,ts,x,y\n"


def stream(form: str = "csv", **other) -> StreamSettings:
    return StreamSettings(
        name="s",
        format=form,
        **({"columns": COLUMNS, "time_unit": "s", "max_ahead_s": None} | other),
    )


@dataclass
class Clock:
    """A clock that only sleeping moves."""

    now_us: int = START
    slept_s: list[float] = field(default_factory=list)

    def __call__(self) -> int:
        return self.now_us

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.slept_s.append(seconds)
        self.now_us += round(seconds * 1e6)


@dataclass
class Bytes:
    """A source that gives bytes in portions of any size."""

    data: bytes

    def read(self, size: int) -> bytes:
        given, self.data = self.data[:size], self.data[size:]
        return given


def rows(count: int, start: int = 0) -> bytes:
    return b"".join(b"car-%d,%d,1,2\n" % (n, n) for n in range(start, start + count))


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "input"
    path.write_bytes(data)
    return path


def played(
    tmp_path: Path, data: bytes, settings_: StreamSettings, **options
) -> tuple[Log, list[bytes]]:
    log = Log(tmp_path / "log")
    clock = options.pop("clock", Clock())
    replay(
        log, write(tmp_path, data), settings_, clock=clock, sleep=clock.sleep, **options
    )
    return log, [log.raw(segment) for segment in log.segments(0) if not segment.control]


def objects(payloads: list[bytes], settings_: StreamSettings) -> list[str]:
    decoded = [decode(payload, settings_, arrival_us=START) for payload in payloads]
    assert [part.rejects.num_rows for part in decoded] == [0] * len(decoded)
    return [name for part in decoded for name in part.fixes["object"].to_pylist()]


@pytest.mark.spec("B6")
def test_a_file_is_replayed_as_fast_as_possible_in_segments_of_a_size_with_an_end_mark(
    tmp_path: Path,
):
    log = Log(tmp_path / "log")
    seen: list[int] = []
    path = write(tmp_path, HEADER + rows(100_000))
    report = replay(
        log,
        path,
        stream(),
        segment_bytes=1 << 20,
        clock=Clock(),
        progress=seen.append,
    )
    segments = log.segments(0)
    payloads = [log.raw(segment) for segment in segments]
    assert all(
        payload.startswith(HEADER) and len(payload) <= 1 << 20
        for payload in payloads[:-1]
    )
    assert len(payloads) == -(-path.stat().st_size // (1 << 20)) + 1, (
        "no small pieces between"
    )
    assert b"".join(payload.removeprefix(HEADER) for payload in payloads[:-1]) == rows(
        100_000
    )
    assert [segment.control for segment in segments] == [False] * (
        len(segments) - 1
    ) + [True]
    assert json.loads(payloads[-1]) == {"op": "end"}
    assert {segment.arrival_us for segment in segments} == {START}
    assert (report.records, report.segments, report.first, report.end) == (
        100_000,
        len(segments) - 1,
        0,
        len(segments),
    )
    assert report.bytes == sum(len(payload) for payload in payloads[:-1])
    assert seen[-1] == 100_000
    assert not report.broken


def test_a_second_replay_goes_on_behind_the_first_and_may_leave_the_end_open(
    tmp_path: Path,
):
    log, path = Log(tmp_path / "log"), write(tmp_path, HEADER + rows(3))
    replay(log, path, stream(), end_mark=False)
    report = replay(log, path, stream(), end_mark=False)
    assert (report.first, report.end, log.control_segments(0)) == (1, 2, [])


@pytest.mark.spec("B6")
def test_records_arrive_steadily_at_a_rate(tmp_path: Path):
    clock = Clock()
    log, payloads = played(
        tmp_path, HEADER + rows(1000), stream(), rate=500.0, segment_s=0.2, clock=clock
    )
    counts = [payload.count(b"\n") - 1 for payload in payloads]
    assert counts == [100] * 10
    arrivals = [
        segment.arrival_us for segment in log.segments(0) if not segment.control
    ]
    assert [arrival - START for arrival in arrivals] == [
        200_000 * (n + 1) for n in range(10)
    ]
    assert objects(payloads, stream()) == [f"car-{n}" for n in range(1000)]


def test_a_rate_below_one_record_a_segment_waits_for_each(tmp_path: Path):
    log, payloads = played(
        tmp_path, HEADER + rows(3), stream(), rate=2.0, segment_s=0.1
    )
    assert [payload.count(b"\n") - 1 for payload in payloads] == [1, 1, 1]
    assert [s.arrival_us - START for s in log.segments(0)][:3] == [
        100_000,
        600_000,
        1_100_000,
    ]


def test_a_writer_that_fell_behind_sends_all_that_is_due_at_once(tmp_path: Path):
    ticks = itertools.chain(
        [START, START, START + 1_000_000], itertools.repeat(START + 1_000_000)
    )
    log = Log(tmp_path / "log")
    slept: list[float] = []
    replay(
        log,
        write(tmp_path, HEADER + rows(1000)),
        stream(),
        rate=500.0,
        clock=lambda: next(ticks),
        sleep=slept.append,
    )
    assert [log.raw(s).count(b"\n") - 1 for s in log.segments(0, end=2)] == [500, 100]
    assert slept[0] == pytest.approx(0.2)


@pytest.mark.spec("B6")
def test_records_arrive_in_the_distances_of_their_event_times(tmp_path: Path):
    times = [100, 100, 101, 99, 104, 104]
    lines = [b"car-%d,%d,1,2\n" % pair for pair in enumerate(times)]
    lines.insert(4, b"broken,,,\n")
    log, payloads = played(
        tmp_path,
        HEADER + b"".join(lines),
        stream(),
        as_they_stand=True,
        rate="event",
        speed=2.0,
        segment_s=0.1,
    )
    arrivals = [s.arrival_us - START for s in log.segments(0) if not s.control]
    assert arrivals == [100_000, 600_000, 2_100_000]
    assert [payload.removeprefix(HEADER) for payload in payloads] == [
        b"".join(part) for part in (lines[:2], lines[2:5], lines[5:])
    ]


@pytest.mark.parametrize(
    ("options", "other", "message"),
    [
        ({"rate": 0.0}, {}, "a rate of 0.0"),
        ({"rate": float("nan")}, {}, "a rate of nan"),
        ({"speed": 0.0}, {}, "a speed of 0.0"),
        ({"segment_s": -1.0}, {}, r"segments of -1.0 s"),
        ({"segment_bytes": 1 << 24}, {}, "16777216 bytes"),
        (
            {"rate": "event"},
            {"columns": Columns(object="id", x="x", y="y")},
            "has no event time",
        ),
    ],
)
def test_an_impossible_pace_is_refused_before_anything_is_written(
    tmp_path: Path, options, other, message: str
):
    log = Log(tmp_path / "log")
    with pytest.raises(ConfigError, match=message):
        replay(log, write(tmp_path, HEADER), stream(**other), **options)
    assert log.end() == 0


def test_a_file_that_cannot_be_read_or_has_no_header_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match="No such file"):
        replay(Log(tmp_path / "log"), tmp_path / "none.csv", stream())
    with pytest.raises(ConfigError, match="no header in its first MiB"):
        replay(Log(tmp_path / "log"), write(tmp_path, b"x" * (1 << 21)), stream())


@pytest.mark.parametrize(
    "data", [b"", b"\n", HEADER, HEADER[:-1], b"\xef\xbb\xbf" + HEADER + b"\r\n"]
)
def test_a_file_without_records_gives_an_end_mark_alone(tmp_path: Path, data: bytes):
    log, payloads = played(tmp_path, data, stream())
    assert (payloads, len(log.control_segments(0))) == ([], 1)


def test_a_packed_file_is_unpacked_and_a_broken_one_says_so(tmp_path: Path):
    packed = gzip.compress(HEADER + rows(200_000))
    _, payloads = (
        played(tmp_path / "whole", packed, stream())
        if (tmp_path / "whole").mkdir() is None
        else (None, [])
    )
    assert objects(payloads, stream()) == [f"car-{n}" for n in range(200_000)]
    log = Log(tmp_path / "log")
    report = replay(log, write(tmp_path, packed[:-100_000]), stream(), clock=Clock())
    assert report.broken
    assert log.control_segments(0), "also a broken replay ends"
    lines = b"".join(
        log.raw(s).removeprefix(HEADER) for s in log.segments(0) if not s.control
    )
    assert 0 < report.records < 200_000
    assert rows(200_000).startswith(lines.removesuffix(b"\n"))


@pytest.mark.parametrize("indent", [None, 1])
def test_a_json_array_becomes_lines(tmp_path: Path, indent: int | None):
    values = [
        {"id": f"a,[{n}", "ts": n, "x": 1, "y": 2, "note": ["]", "}\\"]}
        for n in range(20_000)
    ]
    data = (json.dumps(values, indent=indent) + "\n").encode()
    _, payloads = played(tmp_path, data, stream("ndjson"), segment_bytes=1 << 18)
    assert len(payloads) > 4
    assert [
        json.loads(line) for payload in payloads for line in payload.splitlines()
    ] == values
    assert objects(payloads, stream("ndjson")) == [value["id"] for value in values]


def test_what_breaks_or_follows_a_json_array_is_kept_as_lines(tmp_path: Path):
    _, payloads = played(tmp_path, b'[{"id":1},\n {"id"', stream("ndjson"))
    assert payloads == [b'{"id":1}\n  {"id"\n']
    (tmp_path / "more").mkdir()
    _, payloads = played(tmp_path / "more", b'[{"id":1}] {"id":2}\n', stream("ndjson"))
    assert payloads == [b'{"id":1}\n {"id":2} \n']


def test_aircraft_over_switzerland_come_through_as_they_are_in_their_file(
    tmp_path: Path, shared: Path
):
    path = shared / "data" / "adsb-switzerland" / "switzerland.json.gz"
    log = Log(tmp_path / "log")
    report = replay(log, path, stream("ndjson"), clock=Clock())
    lines = [
        line
        for s in log.segments(0)
        if not s.control
        for line in log.raw(s).splitlines()
    ]
    assert report.records == len(lines) == 139_098
    assert [json.loads(line) for line in lines[::50]] == json.loads(
        gzip.decompress(path.read_bytes())
    )[::50]


# --- chunks ---


def cut(
    data: bytes, settings_: StreamSettings, size: int, monkeypatch: pytest.MonkeyPatch
) -> list[Chunk]:
    with monkeypatch.context() as patch:
        patch.setattr("st_common.formats.csv_records._LEAST_CHUNK", 1)
        patch.setattr("st_common.formats.ndjson_chunks.LEAST_CHUNK", 1)
        patch.setattr("st_common.formats.csv_records.HEADER_LIMIT", 64)
        return list(chunks(Bytes(data), settings_, size=size))


QUOTED = st.text('ab,"\n\r', max_size=6).map(
    lambda text: '"' + text.replace('"', '""') + '"'
)
FIELDS = st.one_of(QUOTED, st.text("ab ", max_size=3))


@given(
    st.lists(st.tuples(FIELDS, FIELDS).map(",".join), max_size=12),
    st.integers(70, 200),
    st.sampled_from(["\n", "\r\n"]),
)
@tries(60)
def test_chunks_are_cut_between_records_wherever_the_blocks_end(
    records: list[str], size: int, line_end: str
):
    patch = pytest.MonkeyPatch()
    data = line_end.join(["name,kind", *records]).encode()
    settings_ = stream(columns=Columns(object="name", x="kind", y="name"))
    found = cut(data, settings_, size, patch)
    whole = decode(data, settings_, arrival_us=0)
    parts = [
        decode(chunk.payload(0, len(chunk.spans)), settings_, arrival_us=0)
        for chunk in found
    ]
    assert [len(chunk.spans) for chunk in found] == [part.rows for part in parts]
    outcomes = [row["raw"] for part in parts for row in part.rejects.to_pylist()]
    assert outcomes == whole.rejects["raw"].to_pylist()


@given(
    st.binary(max_size=300), st.integers(70, 200), st.sampled_from(["csv", "ndjson"])
)
def test_no_byte_is_lost_but_blanks_whatever_the_file_holds(
    data: bytes, size: int, form: str
):
    patch = pytest.MonkeyPatch()
    found = cut(HEADER + data, stream(form), size, patch)
    kept = b"".join(
        chunk.payload(0, len(chunk.spans)).removeprefix(chunk.header) for chunk in found
    )
    drop = b"\r\n\xef\xbb\xbf"
    expected = data if form == "csv" else HEADER + data
    assert kept.translate(None, drop) == expected.translate(None, drop)


def test_a_line_longer_than_a_segment_is_cut_and_lost_to_no_one(tmp_path: Path):
    data = HEADER + rows(10) + b"x" * 3_000_000 + b"\n" + rows(10)
    log, payloads = played(
        tmp_path, data, stream(), segment_bytes=1 << 20, as_they_stand=True
    )
    assert max(len(payload) for payload in payloads) <= 1 << 20
    body = b"".join(payload.removeprefix(HEADER) for payload in payloads)
    assert body.count(b"x") == 3_000_000
    decoded = [decode(payload, stream(), arrival_us=0) for payload in payloads]
    assert sum(part.fixes.num_rows for part in decoded) == 20
    assert {
        reason for part in decoded for reason in part.rejects["reason"].to_pylist()
    } == {"ragged"}
    assert log.end() == len(payloads) + 1


# --- control rows ---


def test_clock_rows_and_end_marks_are_control_segments(tmp_path: Path):
    log = Log(tmp_path / "log")
    segments = [
        write_clock(log, START - 5, arrival_us=START),
        write_end(log, arrival_us=START + 1),
    ]
    assert log.control_segments(0, clocks=True) == segments
    assert [json.loads(log.read(segment)) for segment in segments] == [
        {"op": "clock", "ts": START - 5},
        {"op": "end"},
    ]
    assert [segment.arrival_us for segment in segments] == [START, START + 1]


# --- packed files ---


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=3), st.data())
def test_a_packed_file_gives_all_that_can_be_unpacked(
    members: list[bytes], draws: st.DataObject
):
    packed = b"".join(gzip.compress(member) for member in members)
    end = draws.draw(st.integers(2, len(packed)))
    source = GzipSource(io.BytesIO(packed[:end]))
    found = b"".join(iter(lambda: source.read(7), b""))
    expected, rest = (
        b"",
        packed[:end],
    )  # by one call for each member, which keeps what was unpacked before a break
    while rest[:2] == b"\x1f\x8b":
        member = zlib.decompressobj(31)
        expected += member.decompress(rest)
        rest = member.unused_data
    assert found == expected
    assert source.broken == (not member.eof or rest != b"")


@pytest.mark.parametrize(
    ("tail", "broken"),
    [(b"", False), (b"\0" * 700, False), (b"more", True), (b"\x1f\x8bxx", True)],
)
def test_what_follows_a_packed_file_breaks_it_unless_it_is_padding(
    tail: bytes, broken: bool
):
    source = GzipSource(io.BytesIO(gzip.compress(b"text") + tail))
    assert (source.read(100), source.read(100), source.broken) == (b"text", b"", broken)
