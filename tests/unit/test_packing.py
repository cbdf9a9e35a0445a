"""Closed segments lie in packs: few files, the same segments, whoever is killed or reads meanwhile (SPEC S4)."""

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.home import Home
from st_common.errors import LogError
from st_common.log import log as log_module
from st_common.log import packs as packs_module
from st_common.log.log import Log
from st_common.log.log_purging import purge_records
from st_common.log.packing import CLOSED_US, DUE_US, MOST_FILES, pack, pack_when_due
from st_common.log.record_settings import begin_anew
from st_common.log.retention import remove_raw
from st_common.maintenance.backup import back_up
from st_common.storage import LocalStorage
from tests.kit.log_writer import bare_log

pytestmark = pytest.mark.spec("S4")

S_US = 1_000_000
HOUR_US = 3600 * S_US
CONTROL = b'{"op":"time","event_us":1}'


def files(folder: Path) -> list[str]:
    """The files of a log, but locks and notes."""
    kinds = ("segments", "raw", "packs", "raw-packs")
    found = (path for kind in kinds for path in (folder / kind).rglob("*"))
    return sorted(path.name for path in found if path.is_file() and path.name[0] != ".")


@dataclass
class Model:
    """What a log must hold: plain lists, and nothing of how it is stored."""

    rows: list[tuple[str, bytes]] = field(default_factory=list)
    purged: int = 0

    def kept(self) -> list[int]:
        numbers = range(len(self.rows))
        return [n for n in numbers if n >= self.purged or self.rows[n][0] == "control"]


def fill(log: Log, model: Model, kind: str, body: bytes, arrival_us: int) -> None:
    if kind == "control":
        log.append(body, arrival_us=arrival_us, control=True)
    elif kind == "packet":
        log.append(
            body, arrival_us=arrival_us, coded=lambda _: b"what was decoded of " + body
        )
    else:
        log.append(body, arrival_us=arrival_us)
    model.rows.append((kind, body))


def check(log: Log, model: Model) -> None:
    """The log is the model's, by all ways in."""
    assert log.end() == len(model.rows)
    first = log.first()
    assert first <= model.purged
    listed = log.segments(first)
    assert [one.number for one in listed] == list(range(first, len(model.rows)))
    control = [n for n, (kind, _) in enumerate(model.rows) if kind == "control"]
    assert [one.number for one in log.control_segments(0)] == control
    assert [one.number for one in log.control_segments(0, clocks=True)] == control
    for number in model.kept():
        kind, body = model.rows[number]
        segment = log.segment(number)
        assert (segment.control, segment.packet) == (
            kind == "control",
            kind == "packet",
        )
        decoded = b"what was decoded of " + body if kind == "packet" else body
        assert log.read(segment) == decoded
        assert log.raw(segment) == body
        assert log.has_raw(segment)
    for number in set(range(model.purged)) - set(model.kept()):
        with pytest.raises(LogError, match="were purged"):
            log.read(log.segment(number))


EVENTS = st.lists(
    st.one_of(
        st.tuples(
            st.just("append"),
            st.sampled_from(["records", "packet", "control"]),
            st.binary(max_size=9),
        ),
        st.tuples(st.just("pack"), st.floats(0, 1), st.none()),
        st.tuples(st.just("purge"), st.floats(0, 1), st.none()),
        st.tuples(st.just("open"), st.none(), st.none()),
    ),
    max_size=25,
)


@given(EVENTS)
def test_any_course_of_appending_packing_and_purging_keeps_what_is_to_stay(
    tmp_path_factory: pytest.TempPathFactory, events: list[tuple]
) -> None:
    folder = tmp_path_factory.mktemp("log") / "log"
    log, reader, model = bare_log(folder), Log(folder), Model()
    for what, how, body in events:
        if what == "append":
            content = CONTROL if how == "control" else b"%d:" % len(model.rows) + body
            fill(log, model, how, content, len(model.rows))
        elif what == "pack":
            pack(bare_log(folder), upto=int(how * log.end()))
        elif what == "purge":
            before = int(how * log.end())
            gone = model.purged
            purge_records(bare_log(folder), before)
            model.purged = Log(folder).purged_before()
            assert model.purged <= max(before, gone)
        else:
            log = bare_log(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packs_module, "PAUSE_S", -1.0)  # as after a minute
        check(log, model)
        check(reader, model)
    check(Log(folder), model)


class KilledError(Exception):
    """The process that packs ends here."""


@contextmanager
def killed_at(step: int) -> Iterator[list[int]]:
    """The process ends in front of its step-th change of the disk."""
    count = [0]
    names = ("create", "put", "delete", "forget")
    own = {name: getattr(LocalStorage, name) for name in names}

    def dying(name: str):
        def call(self: LocalStorage, *args: object, **options: object) -> object:
            count[0] += 1
            if count[0] == step:
                raise KilledError
            return own[name](self, *args, **options)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(LocalStorage, name, dying(name))
        yield count


@pytest.mark.parametrize("work", ["pack", "purge"])
def test_who_is_killed_at_any_step_leaves_the_log_whole_and_the_next_brings_it_to_an_end(
    tmp_path: Path, work: str
) -> None:
    def done(log: Log) -> None:
        pack(log, upto=9) if work == "pack" else purge_records(log, 9)

    kinds = ["control", "packet", "records"] * 4
    step, is_killed = 0, True
    while is_killed:
        step += 1
        log, model = bare_log(tmp_path / str(step)), Model()
        for number, kind in enumerate(kinds):
            fill(
                log,
                model,
                kind,
                CONTROL if kind == "control" else b"%d" % number,
                number,
            )
        pack(log, upto=4)
        is_killed = False
        with killed_at(step):
            try:
                done(bare_log(log.folder))
            except KilledError:
                is_killed = True
        model.purged = log.purged_before()
        if work == "pack" or model.purged == Log(log.folder).first():
            check(Log(log.folder), model)
        done(bare_log(log.folder))
        model.purged = log.purged_before()
        check(Log(log.folder), model)
        beside = [name for name in files(log.folder) if name.endswith(".seg")]
        assert beside == [f"{number:012d}.seg" for number in range(9, 12)]
    assert step > 5


def test_an_hour_of_segments_lies_in_few_files_and_reads_as_it_was_written(
    tmp_path: Path,
) -> None:
    """2,000 fixes/s: a segment of 400 each 200 ms, here those of a minute at once, as capture of a backlog does."""
    log, rows = (
        bare_log(tmp_path / "log"),
        b"".join(b"%d,1,1\n" % n for n in range(400)),
    )
    most = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _: None)  # no power is cut here
        for minute in range(60):
            now_us = minute * 60 * S_US
            bodies = [b"%d\n" % (minute * 300 + number) + rows for number in range(300)]
            log.append_all(bodies, arrival_us=now_us)
            pack_when_due(log, now_us=now_us)  # as the archive does, all the time
            most = max(most, len(files(log.folder)))
        pack_when_due(log, now_us=2 * HOUR_US)
    assert len(files(log.folder)) <= 4
    assert most <= (DUE_US / S_US + 60) * 5 + 4  # what is younger than a pack is due
    reader = Log(log.folder)
    assert [one.number for one in reader.segments(0)] == list(range(18_000))
    for number in range(0, 18_000, 997):
        assert reader.read(reader.segment(number)) == b"%d\n" % number + rows


def test_what_is_young_or_little_is_left_as_it_is(tmp_path: Path) -> None:
    log = bare_log(tmp_path / "log")
    for number in range(MOST_FILES):
        log.append(b"%d" % number, arrival_us=number)
    assert pack_when_due(log, now_us=HOUR_US * 24).segments == 0
    log.append(b"one more", arrival_us=HOUR_US)
    assert pack_when_due(log, now_us=DUE_US - 1).segments == 0
    assert pack_when_due(log, now_us=HOUR_US + CLOSED_US).segments == MOST_FILES
    assert len(files(log.folder)) == 2


def packed(folder: Path, count: int = 6) -> tuple[Log, Path]:
    log = bare_log(folder)
    for number in range(count):
        log.append(b"payload %d" % number, arrival_us=number)
    pack(log)
    return log, Path(log.place(0))


@pytest.mark.parametrize("byte", [0, 41, 60, 100, 16 * 6 + 8])
def test_an_index_with_a_changed_bit_is_made_again_from_the_headers(
    tmp_path: Path, byte: int
) -> None:
    log, path = packed(tmp_path / "log")
    data = bytearray(path.read_bytes())
    data[byte] ^= 4
    path.write_bytes(data)
    reader = Log(log.folder)
    assert [reader.read(one) for one in reader.segments(0)] == [
        b"payload %d" % number for number in range(6)
    ]


def test_a_rest_with_a_damaged_index_is_read_by_its_headers_too(tmp_path: Path) -> None:
    log, model = bare_log(tmp_path / "log"), Model()
    for number in range(9):
        kind = "control" if number % 3 == 0 else "records"
        fill(log, model, kind, CONTROL if number % 3 == 0 else b"%d" % number, number)
    purge_records(log, 8)
    model.purged = 8
    path = Path(log.place(0))
    assert path.name == "000000000000-000000000008-4.rest"
    data = bytearray(path.read_bytes())
    data[9] ^= 1
    path.write_bytes(data)
    check(Log(log.folder), model)


def test_a_changed_bit_in_a_segment_is_an_error_that_names_the_pack_and_may_be_passed_over(
    tmp_path: Path,
) -> None:
    log, path = packed(tmp_path / "log")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"payload 3", b"payload 8"))
    reader = bare_log(log.folder)
    with pytest.raises(LogError, match=rf"{path.name} is damaged") as refused:
        reader.read(reader.segment(3))
    assert "streams skip" in (refused.value.hint or "")
    reader.skip(3, "it is lost")
    kept = [reader.read(one) for one in reader.segments(0)]
    assert kept == [b"" if n == 3 else b"payload %d" % n for n in range(6)]


def test_a_pack_that_is_gone_is_an_error_and_no_end(tmp_path: Path) -> None:
    log, path = packed(tmp_path / "log")
    log.append(b"behind it", arrival_us=9)
    path.unlink()
    with pytest.raises(LogError, match="is missing"):
        Log(log.folder).segments(0)


def test_a_damaged_segment_is_not_packed_nor_what_lies_behind_it(
    tmp_path: Path,
) -> None:
    log = bare_log(tmp_path / "log")
    for number in range(6):
        log.append(b"payload %d" % number, arrival_us=number)
    path = Path(log.place(3))
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    assert pack(log).segments == 3
    assert [name for name in files(log.folder) if name.endswith(".seg")] == [
        f"{number:012d}.seg" for number in (3, 4, 5)
    ]
    log.skip(3, "it is lost")
    assert pack(log).segments == 3
    assert [Log(log.folder).read(one) for one in log.segments(0)][3] == b""


def test_a_reader_and_a_writer_that_were_there_before_go_on(tmp_path: Path) -> None:
    log = bare_log(tmp_path / "log")
    for number in range(6):
        log.append(b"%d" % number, arrival_us=number)
    reader = Log(log.folder)
    assert len(reader.segments(0)) == 6
    pack(bare_log(log.folder), upto=5)
    assert [reader.read(one) for one in reader.segments(0)] == [
        b"%d" % number for number in range(6)
    ]
    assert log.append(b"6", arrival_us=6).number == 6
    assert [one.number for one in reader.segments(4)] == [4, 5, 6]


def test_who_paused_while_its_number_was_given_and_packed_takes_another(
    tmp_path: Path,
) -> None:
    """It looked where the log ends, stood still for an hour, and goes on where it was: its name is free again."""
    log, other = bare_log(tmp_path / "log"), bare_log(tmp_path / "log")
    log.append(b"0", arrival_us=0)
    own, passed_s = LocalStorage.create_all, [0.0]

    def paused(self: LocalStorage, objects: list) -> bool:
        if not passed_s[0]:
            passed_s[0] = 3600.0
            other.append(b"of another one", arrival_us=1)
            pack(other)
        return own(self, objects)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalStorage, "create_all", paused)
        patch.setattr(LocalStorage, "locked", lambda *_: nullcontext())
        patch.setattr(log_module, "uptime_s", lambda: passed_s[0])
        assert log.append(b"its own", arrival_us=2).number == 2
    reader = Log(log.folder)
    assert [reader.read(one) for one in reader.segments(0)] == [
        b"0",
        b"of another one",
        b"its own",
    ]


def test_raw_bytes_in_packs_go_after_their_time_and_are_there_for_a_reset(
    tmp_path: Path,
) -> None:
    log, model = bare_log(tmp_path / "log"), Model()
    for number in range(12):
        fill(log, model, "packet", b"%d" % number, number * HOUR_US)
        if number % 4 == 3:
            pack(log)
    assert begin_anew(bare_log(log.folder)) == 0
    assert remove_raw(log, before_us=20 * HOUR_US) == 0  # the reset waits for all of it
    (log.folder / "reading.json").unlink()
    assert remove_raw(bare_log(log.folder), before_us=6 * HOUR_US) == 1
    reader = Log(log.folder)
    there = [reader.has_raw(one) for one in reader.segments(0)]
    assert there == [number >= 4 for number in range(12)]
    with pytest.raises(LogError, match="raw bytes of segment 2 are gone"):
        reader.raw(reader.segment(2))


def test_a_copy_of_a_home_has_its_packs(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    log, _ = packed(home.log("s"))
    log.append(b"behind it", arrival_us=9)
    back_up(home, tmp_path / "copy")
    copy = Log(Home(tmp_path / "copy").log("s"))
    assert [copy.read(one) for one in copy.segments(0)] == [
        log.read(one) for one in log.segments(0)
    ]


def test_another_file_among_packs_is_an_error_that_names_it(tmp_path: Path) -> None:
    log, path = packed(tmp_path / "log")
    (path.parent / "notes.txt").write_text("mine")
    with pytest.raises(LogError, match=r"packs/notes\.txt is no pack"):
        Log(log.folder).end()


def test_a_pack_is_laid_out_as_its_page_says(tmp_path: Path) -> None:
    _, path = packed(tmp_path / "log", 2)
    data = path.read_bytes()
    assert path.name == "000000000000-000000000002-2.pack"
    assert struct.unpack_from("<5q", data) == (0, 1, 48, 48 + 73, 48 + 2 * 73)
    assert struct.unpack_from("<I", data, 40)[0] == zlib.crc32(data[:40])
    assert data[48:52] == data[48 + 73 : 52 + 73] == b"FWSG"
