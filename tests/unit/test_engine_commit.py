"""The table is the one commit point: whatever is torn, old, or taken over, the same changes stand in it once."""

import errno
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
import typer
from deltalake import DeltaTable
from typer.testing import CliRunner

from st_common import tables
from st_common.cli import app, frame
from st_common.client import HomeClient
from st_common.config.columns import Columns
from st_common.config.environment import home_dir
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine import states
from st_common.engine.archive import Archive
from st_common.engine.journal import pending
from st_common.engine.local import LocalEngine
from st_common.engine.owner import owned
from st_common.engine.run import run
from st_common.engine.states import States, _spare
from st_common.errors import ConfigError, ConflictError, FencedError
from st_common.operations.alerts import Alert, append_alert, read_alerts
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.log_writer import bare_log

pytestmark = pytest.mark.spec("S2", "X6")
STREAM = StreamSettings(
    name="s",
    format="csv",
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
    crs="planar",
    time_unit="s",
    max_ahead_s=None,
)
SEGMENTS = 12
FUTURE_US = 1 << 51  # behind the registration, which arrives by the wall clock
command = typer.main.get_command(app)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    register(
        home,
        {"s": STREAM},
        parse("REGISTER QUERY q AS SELECT * FROM s INSIDE (0, 0, 5, 5);"),
        owner="me",
    )
    return home


def _write(home: Home, numbers: range) -> None:
    log = bare_log(home.log("s"))
    for second in numbers:
        place = 1 if second % 2 else 9
        rows = f"id,t,x,y\na,{second},{place},1\nb,{second},{10 - place},1\n"
        log.append(rows.encode(), arrival_us=FUTURE_US + second)


def _changes(home: Home) -> list[tuple[int, int, str, int]]:
    rows = tables.read(home.table("changes", "s")).to_pylist()
    return sorted(
        (row["position"], row["seq"], row["object"], row["sign"]) for row in rows
    )


@pytest.fixture
def calm(tmp_path: Path, home: Home) -> list[tuple[int, int, str, int]]:
    """What an engine tells that nobody disturbs."""
    other = Home(tmp_path / "calm")
    shutil.copytree(home.root, other.root)
    _write(other, range(SEGMENTS))
    run(other, STREAM, until_idle=True)
    return _changes(other)


def _drained(engine: LocalEngine) -> None:
    while engine.batch():
        pass


def test_a_table_that_is_older_than_the_state_is_filled_again(
    tmp_path: Path, home: Home, calm
) -> None:
    _write(home, range(4))
    run(home, STREAM, until_idle=True)
    shutil.copytree(home.table("changes", "s"), tmp_path / "copy")
    _write(home, range(4, SEGMENTS))
    run(home, STREAM, until_idle=True)
    shutil.rmtree(home.table("changes", "s"))
    shutil.copytree(tmp_path / "copy", home.table("changes", "s"))
    run(home, STREAM, until_idle=True)
    assert _changes(home) == calm


def test_a_table_that_is_gone_is_made_again_from_the_log(home: Home, calm) -> None:
    _write(home, range(SEGMENTS))
    run(home, STREAM, until_idle=True)
    shutil.rmtree(home.table("changes", "s"))
    run(home, STREAM, until_idle=True)
    assert _changes(home) == calm


@pytest.mark.parametrize("torn", [b"", b'{"add":'])
def test_a_torn_newest_commit_is_made_again_and_alerted(
    home: Home, calm, torn: bytes
) -> None:
    for numbers in (range(4), range(4, SEGMENTS)):
        _write(home, numbers)
        run(home, STREAM, until_idle=True)
    log = home.table("changes", "s") / "_delta_log"
    newest = DeltaTable(str(home.table("changes", "s"))).version()
    (log / f"{newest:020d}.json").write_bytes(torn)
    run(home, STREAM, until_idle=True)
    assert _changes(home) == calm
    assert [
        (alert.stream, "were torn" in alert.text) for alert in read_alerts(home)
    ] == [("s", True)]


@pytest.mark.parametrize("suffix", [".state", ".delta"])
@pytest.mark.parametrize("at", [0, 5, 12, 40, -1])
def test_a_flipped_state_is_done_without_and_alerted(
    home: Home, calm, at: int, suffix: str
) -> None:
    for numbers in (range(4), range(4, SEGMENTS)):
        _write(home, numbers)
        run(home, STREAM, until_idle=True)
    newest = max((home.stream("s") / "local" / "states").glob(f"*{suffix}"))
    data = bytearray(newest.read_bytes())
    data[at] ^= 1
    newest.write_bytes(bytes(data))
    _write(home, range(SEGMENTS, SEGMENTS + 1))
    run(home, STREAM, until_idle=True)
    assert [row for row in _changes(home) if row[0] >> 24 <= SEGMENTS] == calm
    told = [
        "was damaged" if "was damaged" in alert.text else alert.text[-9:]
        for alert in read_alerts(home)
    ]
    assert told == ["was damaged", *(["beginning"] if suffix == ".state" else [])]


def test_without_any_state_the_log_is_read_from_its_beginning(home: Home, calm) -> None:
    _write(home, range(SEGMENTS))
    run(home, STREAM, until_idle=True)
    for path in (home.stream("s") / "local" / "states").iterdir():
        path.write_bytes(b"")
    run(home, STREAM, until_idle=True)
    assert _changes(home) == calm
    assert "from the log's beginning" in read_alerts(home)[-1].text


def test_an_owner_that_was_overtaken_commits_nothing_more(home: Home, calm) -> None:
    _write(home, range(4))
    with owned(home, "s", engine="local") as first:
        paused = LocalEngine(home, STREAM, first)
        _drained(paused)
        _write(home, range(4, SEGMENTS))
        with owned(home, "s", engine="local") as second:
            engine = LocalEngine(home, STREAM, second)
            _drained(engine)
            with pytest.raises(FencedError):
                paused.commit()
            engine.close()
        with pytest.raises(FencedError):
            paused.commit()
        paused.abandon()
    assert _changes(home) == calm


def test_a_commit_of_the_owner_before_is_not_written_twice(home: Home, calm) -> None:
    _write(home, range(6))
    before = LocalEngine(home, STREAM)
    _drained(before)
    _write(home, range(6, SEGMENTS))
    engine = LocalEngine(home, STREAM)
    _drained(engine)
    before.commit()  # it was past its last look at the lease when it was paused
    before.abandon()
    engine.close()
    assert _changes(home) == calm


def test_the_journal_of_an_overtaken_owner_is_not_read(home: Home) -> None:
    _write(home, range(2))
    with owned(home, "s", engine="local") as first:
        paused = LocalEngine(home, STREAM, first)
    with owned(home, "s", engine="local") as second:
        engine = LocalEngine(home, STREAM, second)
        _drained(paused)
    assert pending(home, "s") == []
    paused.abandon()
    engine.abandon()


def test_the_state_is_stored_while_the_engine_goes_on(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(home, range(4))
    engine, goes_on = LocalEngine(home, STREAM), Event()
    real = States.store

    def slow(self: States, *given) -> None:
        assert goes_on.wait(timeout=60)
        real(self, *given)

    monkeypatch.setattr(States, "store", slow)
    _drained(engine)
    engine.store()
    _write(home, range(4, 6))
    assert engine.batch()
    assert States.of(home, "s").places() == []
    goes_on.set()
    engine.close()
    assert States.of(home, "s").places() == [5, 7]


def test_a_state_that_cannot_be_stored_stops_the_engine(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: States, *_given) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(States, "store", full)
    _write(home, range(4))
    engine = LocalEngine(home, STREAM)
    _drained(engine)
    with pytest.raises(OSError, match="No space left"):
        engine.close()
    engine.abandon()


def test_few_states_are_kept_and_they_reach_far_back() -> None:
    kept: list[int] = []
    for number in range(1, 1001):
        kept = [
            place for place in [*kept, number] if place not in _spare([*kept, number])
        ]
        assert kept[-1] == number
        assert len(kept) < 16
    assert kept[0] == 1
    assert any(1000 - place > 400 for place in kept[1:])


def test_doctor_mends_what_is_torn_and_says_so(
    home: Home, calm, capsys: pytest.CaptureFixture[str]
) -> None:
    for numbers in (range(4), range(4, SEGMENTS)):
        _write(home, numbers)
        run(home, STREAM, until_idle=True)
    newest = DeltaTable(str(home.table("changes", "s"))).version()
    (home.table("changes", "s") / "_delta_log" / f"{newest:020d}.json").write_bytes(b"")
    states = home.stream("s") / "local" / "states"
    max(states.iterdir()).write_bytes(b"FWST")
    (states / ".draft-x.1.1").write_bytes(b"")
    command.main(
        ["--home", str(home.root), "doctor", "--repair"], standalone_mode=False
    )
    mended = [
        line
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("MENDED")
    ]
    for what, line in zip(
        ("was changed", "was damaged", "1 drafts"), mended, strict=True
    ):
        assert what in line
    run(home, STREAM, until_idle=True)
    assert _changes(home) == calm


def test_a_running_stream_is_not_mended(home: Home) -> None:
    _write(home, range(1))
    with owned(home, "s", engine="local"):
        other = subprocess.run(
            [
                sys.executable,
                "-m",
                "st_common.cli",
                "--home",
                str(home.root),
                "doctor",
                "--repair",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    assert (other.returncode, "is run by process" in other.stderr) == (4, True)


def test_doctor_says_which_stream_has_wrong_settings(tmp_path: Path) -> None:
    columns = 'columns = { object = "id", event_ts = "t", x = "x", y = "y" }'
    settings = f'[streams.a]\nformat = "csv"\n{columns}\n[streams.b]\nformat = "cvs"\n{columns}\n'
    (tmp_path / "streams.toml").write_text(settings)
    done = CliRunner().invoke(
        app, ["--home", str(tmp_path), "--conf", str(tmp_path), "doctor"]
    )
    (wrong,) = [line for line in done.output.splitlines() if "settings" in line]
    assert wrong.startswith("WRONG settings")
    assert "'b'" in wrong
    assert "cvs" in wrong


@pytest.mark.parametrize(
    "address", ["s3://bucket/home", "gs://b", "hdfs://node:9000/h", "file:/tmp/h"]
)
def test_a_home_that_is_no_folder_is_refused(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="a home cannot lie at"):
        home_dir(address)
    done = CliRunner().invoke(app, ["--home", address, "status"], prog_name="fairway")
    said = f"error: a home cannot lie at {address} (give a folder of a local disk; shared storage is planned)\n"
    assert (done.exit_code, done.stderr) == (2, said)
    with pytest.raises(ConfigError, match=f"a home cannot lie at {address} "):
        HomeClient(address, streams={})
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_takes_nothing_still_alerts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "alerts.jsonl").mkdir()  # stands for any refusal of the file
    append_alert(
        Home(tmp_path), Alert(ts=1, stream="s", level="error", text="the disk is full")
    )
    assert "alert: s: the disk is full" in capsys.readouterr().err


def test_a_refused_file_is_one_line_that_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "x"))
    assert frame._report(error, debug=False) == 75
    assert capsys.readouterr().err == (
        f"error: {tmp_path / 'x'}: No space left on device (free some space; whoever wrote goes on where it was)\n"
    )


def test_a_clock_that_was_set_back_is_told(home: Home) -> None:
    log = bare_log(home.log("s"))
    newest = log.end() - 1
    arrival_us = log.segments(newest)[0].arrival_us
    for step_us in (10, -3_600_000_000, -3_500_000_000):
        log.append(b"id,t,x,y\na,1,1,1\n", arrival_us=arrival_us + step_us)
    run(home, STREAM, until_idle=True)
    assert [alert.text for alert in read_alerts(home)] == [
        f"segments from {newest + 2} to {newest + 3} arrived before those in front of them (2 in all):"
        " a clock was set back; they count as arrived with them"
    ]


def test_an_archive_that_was_overtaken_writes_nothing_twice(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(home, range(4))
    paused, other = Archive(home, STREAM), Archive(home, STREAM)
    real = tables.append

    def overtaken(*args, **more):
        monkeypatch.setattr(tables, "append", real)
        assert other.batch()
        return real(*args, **more)

    monkeypatch.setattr(tables, "append", overtaken)
    with pytest.raises(ConflictError):
        paused.batch()
    assert tables.read(home.table("positions", "s")).num_rows == 8


def test_a_table_that_goes_back_under_a_running_engine_is_not_jumped_over(
    tmp_path: Path, home: Home, calm
) -> None:
    _write(home, range(4))
    engine = LocalEngine(home, STREAM)
    _drained(engine)
    engine.commit()
    shutil.copytree(home.table("changes", "s"), tmp_path / "copy")
    for numbers in (range(4, 8), range(8, SEGMENTS)):
        _write(home, numbers)
        _drained(engine)
        if numbers.stop < SEGMENTS:
            engine.commit()
            shutil.rmtree(home.table("changes", "s"))
            shutil.copytree(tmp_path / "copy", home.table("changes", "s"))
    with pytest.raises(ConflictError):
        engine.commit()
    engine.abandon()
    run(home, STREAM, until_idle=True)
    assert _changes(home) == calm


def test_an_overtaken_owner_writes_no_clock_rows(home: Home) -> None:
    log = bare_log(home.log("s"))
    log.append(b"id,t,x,y\na,1,1,1\n", arrival_us=FUTURE_US, live=True)
    with owned(home, "s", engine="local") as first:
        paused = LocalEngine(
            home,
            replace(STREAM, silence_s=1.0),
            first,
            now_us=lambda: FUTURE_US + 10**9,
        )
        _drained(paused)
        with owned(home, "s", engine="local"), pytest.raises(FencedError):
            paused.keep_time()
        paused.abandon()
    assert log.end() == 2


def test_torn_snapshots_of_a_stream_are_cut_off_at_a_start(home: Home) -> None:
    stream = replace(STREAM, snapshot_s=2.0)
    _write(home, range(SEGMENTS))
    run(home, stream, until_idle=True)
    table = home.table("snapshots", "s")
    whole = tables.read(table).num_rows
    newest = DeltaTable(str(table)).version()
    (table / "_delta_log" / f"{newest:020d}.json").write_bytes(b"")
    run(home, stream, until_idle=True)
    assert any(
        "snapshots" in alert.text and "were torn" in alert.text
        for alert in read_alerts(home)
    )
    assert tables.read(table).num_rows == whole


def test_only_what_changed_is_stored_until_it_is_more_than_the_state(
    home: Home, monkeypatch
) -> None:
    monkeypatch.setattr(states, "_LEAST_BYTES", 0)
    monkeypatch.setattr(states, "_MOST_LINKS", 3)
    folder = home.stream("s") / "local" / "states"
    rows = "\n".join(f"other-{n}-{n * n},1,50,50" for n in range(5_000))
    bare_log(home.log("s")).append(f"id,t,x,y\n{rows}\n".encode(), arrival_us=1)
    engine, kinds = LocalEngine(home, STREAM), []
    for number in range(7):
        _write(home, range(number, number + 1))
        _drained(engine)
        engine.store()
        engine._wait()
        newest = max(folder.glob("*[a-z]"), key=lambda path: int(path.stem))
        kinds.append((newest.suffix, newest.stat().st_size > 100_000))
    assert kinds == [
        (".state", True),
        *[(".delta", False)] * 3,
        (".state", True),
        *[(".delta", False)] * 2,
    ]
    known = sorted(engine.state.objects.ids.to_pylist())
    engine.abandon()
    again = LocalEngine(home, STREAM)
    assert sorted(again.state.objects.ids.to_pylist()) == known
    assert again.state.next_segment == engine.state.next_segment
    again.abandon()
