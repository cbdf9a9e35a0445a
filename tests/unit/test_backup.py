"""A home that is backed up beside a running stream goes on elsewhere with the same answers (SPEC S2)."""

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from typer.testing import CliRunner

from st_common import tables
from st_common.answers.answers import answer
from st_common.cli import app
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.errors import ConfigError
from st_common.log.log import Log
from st_common.maintenance.backup import _in_order, back_up
from st_common.position import position_of
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.log_writer import bare_log

pytestmark = [pytest.mark.spec("S2"), pytest.mark.spec("S4")]

CONF = """
[streams.grid]
format = "csv"
crs = "planar"
time_unit = "s"
engine = "local"
max_ahead_s = "off"
latest_flush_s = 1
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
"""
QUERY = "REGISTER QUERY west AS SELECT * FROM grid INSIDE (0, 0, 5, 5)"


def fairway(root: Path, *args: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["--home", str(root), *args], prog_name="fairway")
    assert done.exit_code == code, done.output
    return done.output


def arrive(home: Home, step: int) -> None:
    fixes = [f"o{n},{step},{(step * (n + 3)) % 11},1" for n in range(5)]
    body = "\n".join(["id,t,x,y", *fixes, ""]).encode()
    bare_log(home.log("grid")).append(body, arrival_us=step)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    root = tmp_path / "home"
    (root / "conf").mkdir(parents=True)
    (root / "conf" / "streams.toml").write_text(CONF)
    home = Home(root)
    register(home, load_streams(root / "conf"), parse(QUERY), owner="t", now_us=0)
    for step in range(20):
        arrive(home, step)
    fairway(root, "run", "grid", "--until-idle")
    return home


def rows_before(home: Home, table: str, end: int) -> pa.Table:
    """What a table says of the log before a segment, in order."""
    rows = tables.read(home.table(table, "grid"))
    if table == "changes":
        order = [("position", "ascending"), ("seq", "ascending")]
        return rows.filter(pc.less(rows["position"], position_of(end, 0))).sort_by(
            order
        )
    rows = rows.filter(pc.less(rows["segment"], end))
    return rows.sort_by([("segment", "ascending"), ("row", "ascending")])


@pytest.mark.slow
def test_a_copy_made_beside_a_running_stream_goes_on_with_the_same_rows(
    home: Home, tmp_path: Path
):
    command = [sys.executable, "-m", "st_common.cli", "--home", str(home.root)]
    enough, step = threading.Event(), 20

    def feed() -> None:
        nonlocal step
        while not enough.wait(0.01):
            arrive(home, step)
            step += 1

    with subprocess.Popen([*command, "run", "grid"]) as engine:
        feeder = threading.Thread(target=feed)
        feeder.start()
        try:
            copies = []
            for number in range(3):
                enough.wait(1.0)
                copies.append(Home(tmp_path / f"copy{number}"))
                back_up(home, copies[-1].root)
        finally:
            enough.set()
            feeder.join()
            engine.terminate()
            engine.wait()
    fairway(home.root, "run", "grid", "--until-idle")
    for copy in copies:
        end = Log(copy.log("grid")).end()
        assert end <= Log(home.log("grid")).end()
        fairway(copy.root, "doctor", "--repair")
        fairway(copy.root, "run", "grid", "--until-idle")
        for table in ("changes", "positions"):
            assert rows_before(copy, table, end) == rows_before(home, table, end)
        assert "WRONG" not in fairway(copy.root, "verify", "west")
    ends = [Log(copy.log("grid")).end() for copy in copies]
    assert ends == sorted(set(ends)), "the stream went on between the copies"


def test_nothing_is_copied_before_what_may_be_ahead_of_it(home: Home):
    progress = home.root / "deliveries" / "d" / "progress.json"
    progress.parent.mkdir(parents=True)
    progress.write_text("{}")
    names = [str(path.relative_to(home.root)) for path in _in_order(home)]

    def last(part: str) -> int:
        return max(place for place, name in enumerate(names) if part in name)

    def first(part: str) -> int:
        return min(place for place, name in enumerate(names) if part in name)

    assert last("deliveries/") < first("tables/")
    assert last("streams/grid/local") < first("tables/")
    assert last("_delta_log") < first(".parquet")
    assert last(".parquet") < first("/log/")
    assert last("/log/readers") < first("/log/segments")
    assert len(names) == len(set(names))


@pytest.mark.spec("X10")
def test_what_a_query_knew_that_is_registered_meanwhile_is_copied_too(
    home: Home, tmp_path: Path
):
    copy, registered = Home(tmp_path / "copy"), False
    text = f"{QUERY.replace('west', 'later')} FROM BEGINNING"
    for path in _in_order(home):
        if home.log("grid") in path.parents and not registered:
            fairway(home.root, "query", "register", "--text", text)
            registered = True
        target = copy.root / path.relative_to(home.root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    fairway(copy.root, "run", "grid", "--until-idle")
    later, west = answer(copy, "later"), answer(copy, "west")
    assert later["object"].to_pylist() == west["object"].to_pylist() != []


def test_fed_streams_come_before_those_that_feed_them(home: Home):
    note = home.log("alarms") / "feeds" / "grid.west.json"
    note.parent.mkdir(parents=True)
    note.write_text("{}")
    names = [str(path) for path in _in_order(home)]
    fed = [place for place, name in enumerate(names) if "alarms/log" in name]
    feeding = [place for place, name in enumerate(names) if "grid/log" in name]
    assert max(fed) < min(feeding)


def test_leases_stay_behind_and_a_folder_with_files_is_refused(
    home: Home, tmp_path: Path
):
    copy = tmp_path / "copy"
    said = fairway(home.root, "backup", "create", str(copy))
    assert "files" in said
    assert (home.stream("grid") / "lease.json").exists()
    assert not (copy / "streams" / "grid" / "lease.json").exists()
    assert (copy / "id.key").read_bytes() == (home.root / "id.key").read_bytes()
    assert (copy / "id.key").stat().st_mode & 0o077 == 0
    assert "is not empty" in fairway(home.root, "backup", "create", str(copy), code=2)
    with pytest.raises(ConfigError, match="lies in the home"):
        back_up(home, home.root / "backup")


def test_a_backup_is_restored_by_one_command_and_goes_on(home: Home, tmp_path: Path):
    said = fairway(home.root, "backup", "create", str(tmp_path / "copy"))
    for what in ("grid: log at 21.0", "changes/grid at 21.0", "positions/grid at 21.0"):
        assert what in said
    arrive(home, 20)
    fairway(home.root, "run", "grid", "--until-idle")
    calm = {name: rows_before(home, name, 22) for name in ("changes", "positions")}
    shutil.move(home.root, tmp_path / "lost")
    assert "changes/grid at 21.0" in fairway(
        home.root, "backup", "restore", str(tmp_path / "copy")
    )
    arrive(home, 20)
    fairway(home.root, "run", "grid", "--until-idle")
    for name, rows in calm.items():
        assert rows_before(home, name, 22) == rows
    assert "WRONG" not in fairway(home.root, "verify", "west")
    assert "WRONG" not in fairway(home.root, "doctor")


def test_a_restore_mixes_nothing(home: Home, tmp_path: Path):
    copy = tmp_path / "copy"
    fairway(home.root, "backup", "create", str(copy))
    before = sorted(home.root.rglob("*"))
    assert "is not mixed" in fairway(home.root, "backup", "restore", str(copy), code=2)
    assert sorted(home.root.rglob("*")) == before


@pytest.mark.parametrize("fault", ["changed", "missing", "no manifest", "outside"])
def test_a_backup_that_is_not_whole_restores_nothing(
    home: Home, tmp_path: Path, fault: str
):
    copy, other = tmp_path / "copy", tmp_path / "other"
    fairway(home.root, "backup", "create", str(copy))
    victim = next(iter(sorted(copy.rglob("*.parquet"))))
    if fault == "changed":
        content = bytearray(victim.read_bytes())
        content[7] ^= 1
        victim.write_bytes(content)
    elif fault == "missing":
        victim.unlink()
    elif fault == "no manifest":
        (copy / "backup.json").unlink()
    else:
        text = (copy / "backup.json").read_text()
        name = str(victim.relative_to(copy))
        (copy / "backup.json").write_text(text.replace(name, "../stolen"))
    said = fairway(other, "backup", "restore", str(copy), code=2)
    assert len(said.strip().splitlines()) == 1
    assert not other.exists()
    assert not [path for path in tmp_path.iterdir() if "restoring" in path.name]


def test_a_backup_says_that_a_log_is_older_than_its_tables(home: Home, tmp_path: Path):
    newest = max(home.log("grid").rglob("*.seg"))
    newest.unlink()
    said = fairway(home.root, "backup", "create", str(tmp_path / "copy"), code=1)
    assert "WRONG" in said
    assert "ends at 20.0" in said


def without(file: Path) -> None:
    file.unlink()


def torn(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:9])


@pytest.mark.parametrize(
    ("table", "file", "harm"),
    [
        ("changes/grid", f"_delta_log/{0:020d}.json", without),
        ("positions/grid", f"_delta_log/{0:020d}.json", torn),
        ("latest/grid", f"_delta_log/{0:020d}.json", torn),
        ("latest/grid", "*.parquet", without),
        ("rejects", f"_delta_log/{0:020d}.json", torn),
    ],
)
def test_a_table_that_cannot_be_read_is_copied_and_named(
    home: Home, tmp_path: Path, table: str, file: str, harm: Callable[[Path], None]
):
    harm(max((home.root / "tables" / table).glob(file)))
    copy, back = tmp_path / "copy", tmp_path / "back"
    for root, words in (
        (home.root, ("create", str(copy))),
        (back, ("restore", str(copy))),
    ):
        first, *said = fairway(root, "backup", *words, code=2).splitlines()
        assert first.endswith("; 1 table cannot be read")
        (wrong,) = [line for line in said if line.startswith("WRONG")]
        assert wrong.startswith(f"WRONG table {table}: {root}/tables/{table}")
        assert "`fairway doctor --repair`" in wrong
        (places,) = [line for line in said if line.startswith("grid: log at 21.0")]
        others = {"changes/grid", "positions/grid"} - {table}
        assert all(f"{other} at 21.0" in places for other in others)
    fairway(back, "doctor", "--repair")
    fairway(back, "run", "grid", "--until-idle")
    again = tmp_path / "again"
    assert "cannot be read" not in fairway(back, "backup", "create", str(again))
    for name in ("changes", "positions"):
        assert rows_before(Home(again), name, 21)
