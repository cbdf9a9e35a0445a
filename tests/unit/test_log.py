"""The log: dense numbers, crash safety, order, sweeping."""

import errno
import os
import signal
import subprocess
import sys
import textwrap
import time
import zlib
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.errors import LogError, StorageError
from st_common.log.log import SEGMENT_LIMIT, Log
from st_common.storage import LocalStorage
from tests.kit.log_writer import bare_log

ARRIVAL = 1_700_000_000_000_000  # 2023-11-14 22:13:20 UTC
HOUR_US = 3_600_000_000
HEADER = 64
ROOT = Path(__file__).resolve().parents[2]


def _log(tmp_path: Path, payloads: int = 0) -> Log:
    log = bare_log(tmp_path / "log")
    for number in range(payloads):
        log.append(b"%d" % number, arrival_us=ARRIVAL + number)
    return log


def _file(tmp_path: Path, number: int) -> Path:
    return tmp_path / "log" / "segments" / "00000000" / f"{number:012d}.seg"


def _files(tmp_path: Path) -> list[str]:
    return sorted(
        path.name for path in (tmp_path / "log" / "segments" / "00000000").iterdir()
    )


def _start(code: str, *args: object) -> subprocess.Popen[bytes]:
    imports = "import sys\nfrom pathlib import Path\nfrom tests.kit.log_writer import bare_log\n"
    source = imports + textwrap.dedent(code)
    return subprocess.Popen(
        [sys.executable, "-c", source, *map(str, args)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
    )


def _ended(process: subprocess.Popen[bytes]) -> int:
    process.communicate(timeout=60)
    return process.returncode


def test_a_header_that_says_more_than_this_version_knows_is_refused(tmp_path):
    log = bare_log(tmp_path / "log")
    log.append(b"a\n", arrival_us=ARRIVAL)
    path = Path(log.place(0))
    data = bytearray(path.read_bytes())
    data[8] |= 8  # a flag of a later version, with the checksum of its header
    data[60:64] = zlib.crc32(bytes(data[:60])).to_bytes(4, "little")
    path.write_bytes(bytes(data))
    for read in (log.segment, log.segments):
        with pytest.raises(
            LogError, match=r"000000000000\.seg.* flags 8.*newer version"
        ):
            read(0)


def test_a_log_that_is_only_read_leaves_no_trace(tmp_path: Path) -> None:
    log = _log(tmp_path)
    assert (
        log.end(),
        log.segments(0),
        log.control_segments(0),
        log.reader_positions(),
    ) == (0, [], [], {})
    assert list(tmp_path.iterdir()) == []


def test_segments_come_back_in_order_with_what_was_appended(tmp_path: Path) -> None:
    log = _log(tmp_path)
    data = log.append(b"a,b\n1,2\n", arrival_us=ARRIVAL)
    control = log.append(b'{"op":"end"}\n', arrival_us=ARRIVAL + 5, control=True)
    assert log.segments(0) == [data, control] == bare_log(tmp_path / "log").segments(0)
    assert [(s.number, s.arrival_us, s.control, s.size) for s in log.segments(0)] == [
        (0, ARRIVAL, False, 8),
        (1, ARRIVAL + 5, True, 13),
    ]
    assert _files(tmp_path) == ["000000000000.seg", "000000000001.seg"]
    assert log.control_segments(0) == [control]
    assert log.control_segments(2) == []
    assert log.read(data) == b"a,b\n1,2\n"
    assert log.end() == 2


def test_a_segment_says_whether_its_writer_called_it_live(tmp_path: Path) -> None:
    log = _log(tmp_path)
    log.append(b"a replay", arrival_us=ARRIVAL)
    log.append(b"as it happens", arrival_us=ARRIVAL, live=True)
    log.append_all([b"1", b"2"], arrival_us=ARRIVAL, live=True)
    log.append(b'{"op":"end"}\n', arrival_us=ARRIVAL, control=True)
    marks = [(False, False), (False, True), (False, True), (False, True), (True, False)]
    assert [
        (s.control, s.live) for s in bare_log(tmp_path / "log").segments(0)
    ] == marks
    with pytest.raises(LogError, match="control rows are not live"):
        log.append(b"{}", arrival_us=ARRIVAL, control=True, live=True)


def test_a_listing_is_bounded_by_bytes_and_by_number(tmp_path: Path) -> None:
    log = bare_log(tmp_path / "log")
    log.append_all([b"x" * 10] * 5, arrival_us=ARRIVAL)
    numbers = [
        [s.number for s in log.segments(1, max_bytes=n)] for n in (0, 10, 19, 20, 1000)
    ]
    assert numbers == [[1], [1], [1], [1, 2], [1, 2, 3, 4]]
    assert [s.number for s in log.segments(1, end=3)] == [1, 2]
    assert log.segments(5) == log.segments(7) == log.segments(2, end=2) == []


@pytest.mark.parametrize(
    ("payload", "arrival_us"),
    [(b"x" * SEGMENT_LIMIT, ARRIVAL), (b"", -1), (b"", 10**16)],
    ids=["big", "early", "far"],
)
def test_what_cannot_be_a_segment_is_refused(
    tmp_path: Path, payload: bytes, arrival_us: int
) -> None:
    log = _log(tmp_path, 1)
    with pytest.raises(LogError):
        log.append_all([b"fine", payload], arrival_us=arrival_us)
    assert _files(tmp_path) == ["000000000000.seg"]
    assert log.append(b"x" * (SEGMENT_LIMIT - 1), arrival_us=ARRIVAL).number == 1


def test_an_error_while_payloads_are_made_stores_none(tmp_path: Path) -> None:
    log = _log(tmp_path, 1)
    with pytest.raises(ZeroDivisionError):
        log.append_all((b"%d" % (1 // n) for n in (2, 1, 0)), arrival_us=ARRIVAL)
    assert (log.end(), _files(tmp_path)) == (1, ["000000000000.seg"])


def test_a_log_that_ends_before_its_readers_takes_no_more(tmp_path: Path) -> None:
    log = _log(tmp_path, 3)
    log.publish("query", 3)
    _file(tmp_path, 2).unlink()
    with pytest.raises(
        LogError, match=r"ends at segment 2, but its readers were further: .*'query': 3"
    ):
        log.append(b"", arrival_us=ARRIVAL)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(0, 5)),
            st.tuples(st.just("publish"), st.integers(0, 12)),
            st.tuples(st.just("control"), st.integers(0, 2)),
        ),
        max_size=15,
    )
)
def test_any_course_of_events_keeps_all_segments_in_order(
    tmp_path_factory: pytest.TempPathFactory, events: list[tuple[str, int]]
) -> None:
    folder = tmp_path_factory.mktemp("log")
    log, stored, controls = bare_log(folder), [], []
    for kind, value in events:
        if kind == "append":
            payloads = [b"%d" % (len(stored) + n) for n in range(value)]
            log.append_all(payloads, arrival_us=ARRIVAL + len(stored) * HOUR_US)
            stored += payloads
        elif kind == "publish":
            log.publish("query", min(value, len(stored)))
        else:
            log.append(b"rows", arrival_us=ARRIVAL, control=value > 0, clock=value > 1)
            controls += [len(stored)] if value == 1 else []
            stored.append(b"rows")
        for reader in (log, bare_log(folder)):
            assert [reader.read(s) for s in reader.segments(0)] == stored
            assert reader.end() == len(stored)
            assert [s.number for s in reader.control_segments(0)] == controls
            assert [s.number for s in reader.control_segments(3)] == [
                n for n in controls if n >= 3
            ]


def test_the_lock_is_reentrant_and_keeps_other_processes_out(tmp_path: Path) -> None:
    log = _log(tmp_path)
    with log.locked(), log.locked():
        assert log.append(b"mine", arrival_us=ARRIVAL).number == 0
        other = _start(
            "bare_log(Path(sys.argv[1])).append(b'other', arrival_us=1)",
            tmp_path / "log",
        )
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(timeout=1)
        assert log.append(b"mine", arrival_us=ARRIVAL).number == 1
    assert _ended(other) == 0
    assert [log.read(s) for s in log.segments(0)] == [b"mine", b"mine", b"other"]


def test_processes_that_append_side_by_side_make_no_hole_and_no_repeat(
    tmp_path: Path,
) -> None:
    writer = """
        log, name = bare_log(Path(sys.argv[1])), sys.argv[2]
        for n in range(60):
            log.append(f"{name}-{n}".encode(), arrival_us=1_700_000_000_000_000 + n * 1_000_000_000, control=n % 7 == 0)
            log.publish("query", log.end())
    """
    writers = [_start(writer, tmp_path / "log", name) for name in "abc"]
    log, seen = bare_log(tmp_path / "log"), []
    while any(process.poll() is None for process in writers):
        seen += [log.read(s) for s in log.segments(len(seen))]
        time.sleep(0.002)  # a core of two is for the writers
    assert [_ended(process) for process in writers] == [0, 0, 0]
    seen += [log.read(s) for s in log.segments(len(seen))]
    assert [log.read(s) for s in bare_log(tmp_path / "log").segments(0)] == seen
    for name in "abc":
        assert [text.decode() for text in seen if text.startswith(name.encode())] == [
            f"{name}-{n}" for n in range(60)
        ]


@pytest.mark.spec("X6")
@pytest.mark.parametrize("delay_ms", [3, 11, 23, 47, 71])
def test_a_killed_writer_leaves_whole_segments_and_the_next_one_goes_on(
    tmp_path: Path, delay_ms: int
) -> None:
    writer = """
        log = bare_log(Path(sys.argv[1]))
        print("ready", flush=True)
        n = 0
        while True:
            log.append_all([bytes([n % 251]) * 300_000] * 3, arrival_us=1_700_000_000_000_000)
            n += 1
    """
    process = _start(writer, tmp_path / "log")
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    time.sleep(delay_ms / 1000)
    os.kill(process.pid, signal.SIGKILL)
    assert _ended(process) == -signal.SIGKILL
    log = _log(tmp_path)
    found = [log.read(s) for s in log.segments(0)]
    assert found == [bytes([n // 3 % 251]) * 300_000 for n in range(len(found))]
    assert log.append(b"next", arrival_us=ARRIVAL).number == len(found)


def test_a_hole_is_an_error_that_names_it(tmp_path: Path) -> None:
    log = _log(tmp_path, 4)
    _file(tmp_path, 1).unlink()
    for reader in (log, bare_log(tmp_path / "log")):
        with pytest.raises(LogError, match="segment 1 is missing"):
            reader.segments(0)
        with pytest.raises(LogError, match="segment 1 is missing"):
            reader.segments(1)
        assert [s.number for s in reader.segments(2)] == [2, 3]


def test_a_foreign_file_among_the_segments_is_an_error_that_names_it(
    tmp_path: Path,
) -> None:
    _log(tmp_path, 2)
    (_file(tmp_path, 0).parent / "notes.txt").write_text("mine")
    with pytest.raises(LogError, match=r"notes\.txt in .* is no segment"):
        bare_log(tmp_path / "log").end()


@pytest.mark.spec("S2")
@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda data: data[: HEADER + 3], "3 bytes instead of 8"),
        (lambda data: data[:20], "it has no header"),
        (lambda _: b"", "it has no header"),
        (
            lambda data: data[:17] + bytes([data[17] ^ 1]) + data[18:],
            "its header was changed",
        ),
        (
            lambda data: (
                data[: HEADER + 2] + bytes([data[HEADER + 2] ^ 4]) + data[HEADER + 3 :]
            ),
            "its bytes were changed",
        ),
    ],
    ids=["half", "no header", "empty", "a bit of the header", "a bit of the payload"],
)
def test_a_damaged_segment_is_an_error_that_says_what_is_wrong(
    tmp_path: Path, change, what: str
) -> None:
    log = _log(tmp_path)
    for _ in range(2):
        log.append(b"a,b\n1,2\n", arrival_us=ARRIVAL)
    path = _file(tmp_path, 0)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(LogError, match=f"000000000000.seg is damaged: {what}"):
        log.read(log.segments(0)[0])
    assert log.read(log.segments(1)[0]) == b"a,b\n1,2\n"


def test_a_segment_in_another_ones_place_is_found(tmp_path: Path) -> None:
    log = _log(tmp_path, 2)
    _file(tmp_path, 1).write_bytes(_file(tmp_path, 0).read_bytes())
    with pytest.raises(LogError, match="it is segment 0"):
        log.segments(1)


@pytest.mark.spec("S2")
def test_no_power_cut_leaves_a_hole_where_a_writer_died_before_it_synced(
    tmp_path: Path,
) -> None:
    _log(tmp_path, 1)  # who made segment 0 may have died before it was durable
    done: list[str] = []

    class Noting(LocalStorage):
        def sync(self, folder: str) -> None:
            done.append(f"sync {folder}")
            super().sync(folder)

        def create_all(self, objects: Iterable[tuple[str, bytes]]) -> bool:
            made = super().create_all(objects)
            done.append("create")
            return made

    log = bare_log(tmp_path / "log", storage=Noting(tmp_path / "log"))
    for _ in range(2):
        log.append(b"", arrival_us=ARRIVAL)
    assert done == ["sync segments/00000000", "create", "create"]


def test_arrivals_never_go_back_and_a_clock_that_does_is_seen(tmp_path: Path) -> None:
    log = _log(tmp_path)
    found = [
        log.append(b"", arrival_us=arrival_us)
        for arrival_us in (ARRIVAL, ARRIVAL - HOUR_US, ARRIVAL + 1)
    ]
    assert [(s.arrival_us - ARRIVAL, s.raised) for s in found] == [
        (0, False),
        (0, True),
        (1, False),
    ]
    assert log.segments(0) == found


def test_clocks_are_control_rows_that_nobody_has_to_pass_over(tmp_path: Path) -> None:
    log = _log(tmp_path)
    log.append(b"1", arrival_us=ARRIVAL, control=True)
    for _ in range(3):
        log.append(b"2", arrival_us=ARRIVAL, clock=True)
    assert [s.number for s in log.control_segments(0)] == [0]
    assert [s.number for s in log.control_segments(0, clocks=True)] == [0, 1, 2, 3]


def test_statements_are_found_without_reading_what_lies_between(tmp_path: Path) -> None:
    log = _log(tmp_path, 3)
    log.append(b"", arrival_us=ARRIVAL, control=True)
    log.append_all([b""] * 200, arrival_us=ARRIVAL)
    read: list[str] = []

    class Counting(LocalStorage):
        def read(self, key: str, *, start: int = 0, length: int | None = None) -> bytes:
            read.append(key)
            return super().read(key, start=start, length=length)

    found = bare_log(
        tmp_path / "log", storage=Counting(tmp_path / "log")
    ).control_segments(0)
    assert ([s.number for s in found], len(read)) == ([3], 2)


def test_a_record_of_a_reader_that_was_torn_needs_everything(tmp_path: Path) -> None:
    log = _log(tmp_path, 2)
    log.publish("query", 2)
    (tmp_path / "log" / "readers" / "query.json").write_bytes(b"")
    assert log.reader_positions() == {"query": 0}
    log.publish("query", 1)
    assert log.reader_positions() == {"query": 1}


def test_a_writer_that_holds_no_lock_takes_no_number_twice(tmp_path: Path) -> None:
    log = _log(tmp_path, 1)
    real = log._storage.create_all

    def beaten(objects: list[tuple[str, bytes]]) -> bool:
        log._storage.create_all = real  # type: ignore[method-assign]
        bare_log(tmp_path / "log", storage=_Unlocked(tmp_path / "log")).append(
            b"quicker", arrival_us=ARRIVAL
        )
        return real(objects)

    log._storage.create_all = beaten  # type: ignore[method-assign]
    assert log.append(b"slower", arrival_us=ARRIVAL).number == 2
    assert [log.read(s) for s in log.segments(0)] == [b"0", b"quicker", b"slower"]


class _Unlocked(LocalStorage):
    def locked(self, name: str):  # noqa: ARG002 - a writer that does not ask
        return nullcontext()


@pytest.mark.spec("S2")
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_disk_that_refuses_is_one_line_and_nothing_is_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    log = _log(tmp_path, 1)
    real = os.fsync

    def refuse(fd: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("st_common.storage.local.os.fsync", refuse)
    with pytest.raises(StorageError, match=os.strerror(code)):
        log.append_all([b"1", b"2"], arrival_us=ARRIVAL)
    monkeypatch.setattr("st_common.storage.local.os.fsync", real)
    assert _files(tmp_path) == ["000000000000.seg"]
    assert log.append(b"3", arrival_us=ARRIVAL).number == 1


def test_a_log_that_grew_by_much_is_listed_instead_of_walked(tmp_path: Path) -> None:
    log, reader = _log(tmp_path, 1), bare_log(tmp_path / "log")
    assert reader.end() == 1
    log.append_all([b""] * 300, arrival_us=ARRIVAL)
    asked: list[str] = []
    real = reader._storage.exists
    reader._storage.exists = lambda key: asked.append(key) or real(key)  # type: ignore[method-assign]
    assert (reader.end(), reader.end()) == (301, 301)
    assert len(asked) < 100


def test_a_reader_that_goes_on_while_the_log_grows_is_not_ahead_of_it(
    tmp_path, monkeypatch
):
    log = bare_log(tmp_path)
    log.append(b"a\n", arrival_us=1)
    looked = Log.reader_positions

    def while_it_grows(mine):
        other = bare_log(tmp_path)
        monkeypatch.setattr(Log, "reader_positions", looked)
        monkeypatch.setattr(Log, "locked", lambda _: nullcontext())
        other.append(b"b\n", arrival_us=2)
        other.publish("engine", 2)
        return looked(mine)

    monkeypatch.setattr(Log, "reader_positions", while_it_grows)
    assert log.append(b"c\n", arrival_us=3).number == 2


def test_a_damaged_segment_that_is_given_up_is_passed_over_by_everybody(
    tmp_path: Path,
) -> None:
    log = _log(tmp_path, 2)
    log.append(b"a statement", arrival_us=ARRIVAL + 2, control=True)
    log.append(b"lost", arrival_us=ARRIVAL + 3, control=True)
    log.append(b"gone", arrival_us=ARRIVAL + 4)
    log.append(b"last", arrival_us=ARRIVAL + 5)
    _file(tmp_path, 3).write_bytes(b"")
    _file(tmp_path, 4).unlink()
    for number in (3, 4):
        with pytest.raises(LogError, match=r"`fairway streams skip` passes over it"):
            [log.read(s) for s in log.segments(number)]
        log.skip(number, "there is no copy")
    for reader in (log, bare_log(tmp_path / "log")):
        found = reader.segments(0)
        assert [reader.read(s) for s in found] == [
            b"0",
            b"1",
            b"a statement",
            b"",
            b"",
            b"last",
        ]
        assert [(s.number, s.control, s.skipped) for s in found[2:5]] == [
            (2, True, False),
            (3, False, True),
            (4, False, True),
        ]
        assert [s.number for s in reader.control_segments(0)] == [2]
        assert [
            number
            for number, why in reader.skipped().items()
            if why.endswith("; there is no copy")
        ] == [3, 4]
    assert log.append(b"more", arrival_us=ARRIVAL + 6).number == 6


def test_only_what_is_damaged_or_missing_can_be_skipped(tmp_path: Path) -> None:
    log = _log(tmp_path, 2)
    with pytest.raises(LogError, match="segment 1 is whole"):
        log.skip(1, "")
    with pytest.raises(LogError, match="has no segment 2"):
        log.skip(2, "")
    assert log.skipped() == {}


def test_a_log_of_an_older_version_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "log" / "landing"
    folder.mkdir(parents=True)
    (folder / "000000000000-1700000000000000-d.seg").write_bytes(b"")
    with pytest.raises(LogError, match="was written by an older version"):
        bare_log(tmp_path / "log").segments(0)
