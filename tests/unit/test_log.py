"""The log: dense numbers, crash safety, order, sweeping."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.capture.log import SEGMENT_LIMIT, Log
from st_common.errors import LogError

ARRIVAL = 1_700_000_000_000_000  # 2023-11-14 22:13:20 UTC
HOUR_US = 3_600_000_000
ROOT = Path(__file__).resolve().parents[2]


def _log(tmp_path: Path, payloads: int = 0) -> Log:
    log = Log(tmp_path / "log")
    for number in range(payloads):
        log.append(b"%d" % number, arrival_us=ARRIVAL + number)
    return log


def _start(code: str, *args: object) -> subprocess.Popen[bytes]:
    source = "import sys\nfrom pathlib import Path\nfrom st_common.capture.log import Log\n" + textwrap.dedent(code)
    return subprocess.Popen([sys.executable, "-c", source, *map(str, args)], cwd=ROOT, stdout=subprocess.PIPE)


def _ended(process: subprocess.Popen[bytes]) -> int:
    process.communicate(timeout=60)
    return process.returncode


def test_a_log_that_is_only_read_leaves_no_trace(tmp_path: Path) -> None:
    log = _log(tmp_path)
    assert (log.end(), log.segments(0), log.control_segments(0), log.reader_positions()) == (0, [], [], {})
    assert list(tmp_path.iterdir()) == []


def test_segments_come_back_in_order_with_what_was_appended(tmp_path: Path) -> None:
    log = _log(tmp_path)
    data = log.append(b"a,b\n1,2\n", arrival_us=ARRIVAL)
    control = log.append(b'{"op":"end"}\n', arrival_us=ARRIVAL + 5, control=True)
    assert log.segments(0) == [data, control] == Log(tmp_path / "log").segments(0)
    assert [(s.number, s.arrival_us, s.control, s.size) for s in log.segments(0)] == [
        (0, ARRIVAL, False, 8),
        (1, ARRIVAL + 5, True, 13),
    ]
    assert [s.path.name for s in log.segments(0)] == [
        "000000000000-1700000000000000-d.seg",
        "000000000001-1700000000000005-c.seg",
    ]
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
    assert [(s.control, s.live) for s in Log(tmp_path / "log").segments(0)] == marks
    log.publish("reader", log.end())
    log.sweep()
    assert [(s.control, s.live) for s in Log(tmp_path / "log").segments(0)] == marks  # the archive keeps the mark
    with pytest.raises(LogError, match="control rows are not live"):
        log.append(b"{}", arrival_us=ARRIVAL, control=True, live=True)


def test_a_listing_is_bounded_by_bytes_and_by_number(tmp_path: Path) -> None:
    log = Log(tmp_path / "log")
    log.append_all([b"x" * 10] * 5, arrival_us=ARRIVAL)
    numbers = [[s.number for s in log.segments(1, max_bytes=n)] for n in (0, 10, 19, 20, 1000)]
    assert numbers == [[1], [1], [1], [1, 2], [1, 2, 3, 4]]
    assert [s.number for s in log.segments(1, end=3)] == [1, 2]
    assert log.segments(5) == log.segments(7) == log.segments(2, end=2) == []


def test_modification_times_rise_strictly_in_whole_milliseconds(tmp_path: Path) -> None:
    log = _log(tmp_path, 20)
    log.append_all([b""] * 20, arrival_us=ARRIVAL)
    stamps = [s.path.stat().st_mtime_ns for s in log.segments(0)]
    assert all(stamp % 1_000_000 == 0 for stamp in stamps)
    assert all(later - earlier >= 1_000_000 for earlier, later in pairwise(stamps))


@pytest.mark.parametrize(
    ("payload", "arrival_us"), [(b"x" * SEGMENT_LIMIT, ARRIVAL), (b"", -1), (b"", 10**16)], ids=["big", "early", "far"]
)
def test_what_cannot_be_a_segment_is_refused(tmp_path: Path, payload: bytes, arrival_us: int) -> None:
    log = _log(tmp_path, 1)
    with pytest.raises(LogError):
        log.append_all([b"fine", payload], arrival_us=arrival_us)
    assert [path.name[:12] for path in (tmp_path / "log" / "landing").iterdir()] == ["000000000000"]
    assert log.append(b"x" * (SEGMENT_LIMIT - 1), arrival_us=ARRIVAL).number == 1


def test_an_error_while_payloads_are_made_stores_none(tmp_path: Path) -> None:
    log = _log(tmp_path, 1)
    with pytest.raises(ZeroDivisionError):
        log.append_all((b"%d" % (1 // n) for n in (2, 1, 0)), arrival_us=ARRIVAL)
    assert (log.end(), len(list((tmp_path / "log" / "landing").iterdir()))) == (1, 1)


def test_a_hole_a_repeat_and_a_foreign_file_are_errors_that_name_them(tmp_path: Path) -> None:
    log = _log(tmp_path, 4)
    landing = tmp_path / "log" / "landing"
    twin = landing / "000000000002-1700000000000099-d.seg"
    twin.write_bytes(b"")
    with pytest.raises(LogError, match="segment 2 is twice"):
        log.segments(0)
    twin.unlink()
    log.segments(1)[0].path.unlink()
    with pytest.raises(LogError, match="segment 1 is missing"):
        log.segments(0)
    with pytest.raises(LogError, match="segment 1 is missing"):
        log.control_segments(1)
    assert [s.number for s in log.segments(2)] == [2, 3]
    (landing / "notes.txt").write_text("mine")
    with pytest.raises(LogError, match=r"notes\.txt is no segment"):
        log.segments(2)


def test_nothing_is_swept_without_a_reader_or_before_a_reader_has_it(tmp_path: Path) -> None:
    log = _log(tmp_path, 6)
    assert log.sweep() == 0
    log.publish("query", 4)
    log.publish("archive", 2)
    assert log.reader_positions() == {"archive": 2, "query": 4}
    assert (log.sweep(), log.sweep()) == (2, 0)
    log.publish("archive", 6)
    assert log.sweep() == 2
    log.publish("query", 6)
    assert log.sweep() == 1, "the newest stays, for it tells the next number"
    assert [s.path.parent.name for s in log.segments(0)] == ["22"] * 5 + ["landing"]
    assert log.append(b"", arrival_us=ARRIVAL).number == 6


def test_swept_segments_lie_by_the_hour_of_their_arrival_and_are_still_read_in_order(tmp_path: Path) -> None:
    log = Log(tmp_path / "log")
    arrivals = [ARRIVAL, ARRIVAL + 2 * HOUR_US, ARRIVAL - 30 * HOUR_US, ARRIVAL + HOUR_US]
    for number, arrival_us in enumerate(arrivals):
        log.append(b"%d" % number, arrival_us=arrival_us, control=number == 1)
    reader, before = Log(tmp_path / "log"), log.segments(0)
    log.publish("query", 4)
    assert log.sweep() == 3
    folders = [str(s.path.parent.relative_to(tmp_path / "log")) for s in reader.segments(0)]
    assert folders == ["archive/2023-11-14/22", "archive/2023-11-15/00", "archive/2023-11-13/16", "landing"]
    assert [log.read(s) for s in before] == [b"0", b"1", b"2", b"3"], "a listing from before the sweep can be read"
    assert [s.number for s in reader.control_segments(0)] == [1]


def test_numbers_are_not_used_again_when_landing_was_emptied_by_hand(tmp_path: Path) -> None:
    log = _log(tmp_path, 3)
    log.publish("query", 2)
    log.sweep()
    log.segments(2)[0].path.rename(log.segments(1)[0].path.parent / log.segments(2)[0].path.name)
    assert log.append(b"", arrival_us=ARRIVAL).number == 3
    assert [s.number for s in Log(tmp_path / "log").segments(0)] == [0, 1, 2, 3]


def test_a_log_that_ends_before_its_readers_takes_no_more(tmp_path: Path) -> None:
    log = _log(tmp_path, 3)
    log.publish("query", 3)
    log.segments(2)[0].path.unlink()
    with pytest.raises(LogError, match=r"ends at segment 2, but its readers were further: .*'query': 3"):
        log.append(b"", arrival_us=ARRIVAL)


def test_a_reader_file_that_tells_nothing_is_an_error_with_its_path(tmp_path: Path) -> None:
    log = _log(tmp_path, 1)
    log.publish("query", 1)
    (tmp_path / "log" / "readers" / "query.json").write_text("{}")
    with pytest.raises(LogError, match=r"query\.json tells no position"):
        log.sweep()


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(0, 5)),
            st.tuples(st.just("publish"), st.integers(0, 12)),
            st.tuples(st.just("sweep"), st.just(0)),
        ),
        max_size=15,
    )
)
def test_any_course_of_events_keeps_all_segments_in_order(
    tmp_path_factory: pytest.TempPathFactory, events: list[tuple[str, int]]
) -> None:
    folder = tmp_path_factory.mktemp("log")
    log, stored = Log(folder), []
    for kind, value in events:
        if kind == "append":
            payloads = [b"%d" % (len(stored) + n) for n in range(value)]
            log.append_all(payloads, arrival_us=ARRIVAL + len(stored) * HOUR_US)
            stored += payloads
        elif kind == "publish":
            log.publish("query", min(value, len(stored)))
        else:
            log.sweep()
        for reader in (log, Log(folder)):
            assert [reader.read(s) for s in reader.segments(0)] == stored
            assert reader.end() == len(stored)


def test_the_lock_is_reentrant_and_keeps_other_processes_out(tmp_path: Path) -> None:
    log = _log(tmp_path)
    with log.locked(), log.locked():
        assert log.append(b"mine", arrival_us=ARRIVAL).number == 0
        other = _start("Log(Path(sys.argv[1])).append(b'other', arrival_us=1)", tmp_path / "log")
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(timeout=1)
        assert log.append(b"mine", arrival_us=ARRIVAL).number == 1
    assert _ended(other) == 0
    assert [log.read(s) for s in log.segments(0)] == [b"mine", b"mine", b"other"]


def test_processes_that_append_and_sweep_side_by_side_make_no_hole_and_no_repeat(tmp_path: Path) -> None:
    writer = """
        log, name = Log(Path(sys.argv[1])), sys.argv[2]
        for n in range(60):
            log.append(f"{name}-{n}".encode(), arrival_us=1_700_000_000_000_000 + n * 1_000_000_000, control=n % 7 == 0)
            log.publish("query", log.end())
            log.sweep()
    """
    writers = [_start(writer, tmp_path / "log", name) for name in "abc"]
    log, seen = Log(tmp_path / "log"), []
    while any(process.poll() is None for process in writers):
        seen += [log.read(s) for s in log.segments(len(seen))]
    assert [_ended(process) for process in writers] == [0, 0, 0]
    seen += [log.read(s) for s in log.segments(len(seen))]
    assert [log.read(s) for s in Log(tmp_path / "log").segments(0)] == seen
    for name in "abc":
        assert [text.decode() for text in seen if text.startswith(name.encode())] == [f"{name}-{n}" for n in range(60)]


@pytest.mark.spec("X6")
@pytest.mark.parametrize("delay_ms", [3, 11, 23, 47, 71])
def test_a_killed_writer_leaves_whole_segments_and_the_next_one_goes_on(tmp_path: Path, delay_ms: int) -> None:
    writer = """
        log = Log(Path(sys.argv[1]))
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
    assert not list((tmp_path / "log" / "landing").glob(".*")), "what the dead writer left is gone"


def test_a_dot_file_of_a_dead_writer_is_no_segment(tmp_path: Path) -> None:
    log = _log(tmp_path, 1)
    left = tmp_path / "log" / "landing" / ".000000000001-1700000000000000-d.seg"
    left.write_bytes(b"half")
    assert (log.end(), len(log.segments(0))) == (1, 1)
    assert log.append(b"whole", arrival_us=ARRIVAL).number == 1
    assert log.read(log.segments(1)[0]) == b"whole"
    assert not left.exists()


def test_a_large_archive_is_listed_once_and_not_walked_for_reading_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = _log(tmp_path, 40)
    log.publish("query", 40)
    log.sweep()
    listed: list[str] = []
    real = os.listdir
    monkeypatch.setattr("st_common.capture.log.os.listdir", lambda path: listed.append(Path(path).name) or real(path))
    log.append(b"", arrival_us=ARRIVAL)
    assert [s.number for s in log.segments(39)] == [39, 40]
    assert set(listed) == {"landing"}
    listed.clear()
    assert [len(log.segments(0)) for _ in range(3)] == [41] * 3
    assert listed.count("22") == 1
