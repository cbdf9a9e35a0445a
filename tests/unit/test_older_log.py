"""A log that is older than what was made from it is found at the start, and never taken for done (SPEC S2)."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from st_common import tables
from st_common.cli import app
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.engine import run as local_run
from st_common.errors import StateError
from st_common.spark import resident as tasks_that_stay
from tests.kit.log_writer import bare_log

pytestmark = pytest.mark.spec("S2")

CONF = """
[streams.grid]
format = "csv"
crs = "planar"
time_unit = "s"
engine = "local"
max_ahead_s = "off"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
"""


def fairway(root: Path, *args: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["--home", str(root), *args], prog_name="fairway")
    assert done.exit_code == code, done.output
    return done.output


def arrive(root: Path, first: int, count: int) -> None:
    log = bare_log(Home(root).log("grid"))
    for step in range(first, first + count):
        log.append(f"id,t,x,y\no{step},{step},1,1\n".encode(), arrival_us=step)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A home that ran twice; what it was in between lies beside it."""
    root = tmp_path / "home"
    (root / "conf").mkdir(parents=True)
    (root / "conf" / "streams.toml").write_text(CONF)
    text = "REGISTER QUERY west AS SELECT * FROM grid INSIDE (0, 0, 5, 5)"
    fairway(root, "query", "register", "--text", text)
    arrive(root, 0, 20)
    fairway(root, "run", "grid", "--until-idle")
    shutil.copytree(root, tmp_path / "older")
    arrive(root, 20, 22)
    fairway(root, "run", "grid", "--until-idle")
    return root


def put_back(*parts: str) -> Callable[[Path], None]:
    """Puts parts of the older copy in the place of those of the home."""

    def put(root: Path) -> None:
        for part in parts:
            shutil.rmtree(root / part)
            shutil.copytree(root.parent / "older" / part, root / part)

    return put


RESTORED = {
    "log": put_back("streams/grid/log"),
    "stream": put_back("streams/grid"),
}


@pytest.mark.parametrize("restored", sorted(RESTORED))
@pytest.mark.parametrize("more", [0, 5, 60], ids=["as it was", "grown", "passed"])
def test_a_log_older_than_its_tables_stops_the_engine_with_both_places(
    root: Path, restored: str, more: int
):
    before = tables.read(root / "tables" / "changes" / "grid")
    RESTORED[restored](root)
    arrive(root, 1000, more)
    said = fairway(root, "run", "grid", "--until-idle", code=2)
    (line,) = said.strip().splitlines()
    ends = len(list((root / "streams/grid/log/segments").rglob("*.seg")))
    for word in (f"ends at {ends}.0", "stands at", "fairway streams reset grid"):
        assert word in line
    assert tables.read(root / "tables" / "changes" / "grid") == before


@pytest.mark.parametrize("more", [0, 60], ids=["as it was", "passed"])
def test_doctor_finds_an_older_log_and_says_the_ways_out(root: Path, more: int):
    assert "WRONG" not in fairway(root, "doctor")
    RESTORED["log"](root)
    arrive(root, 1000, more)
    said = fairway(root, "doctor", code=1)
    (wrong,) = [line for line in said.splitlines() if line.startswith("WRONG")]
    for word in (
        "stream grid",
        "stands at",
        "fairway backup restore",
        "streams reset grid",
    ):
        assert word in wrong
    assert wrong in fairway(root, "doctor", "--repair", code=1)


def test_each_way_out_of_an_older_log_leads_to_an_answer_that_holds(root: Path):
    RESTORED["log"](root)
    arrive(root, 1000, 50)
    fairway(root, "streams", "reset", "grid", "--yes")
    done = fairway(root, "run", "grid", "--until-idle")
    assert "70 fixes" in done
    assert "70 members" in fairway(root, "verify", "west")
    assert "WRONG" not in fairway(root, "doctor")
    put_back("streams/grid", "tables")(root)
    arrive(root, 2000, 1)
    fairway(root, "run", "grid", "--until-idle")
    assert "21 members" in fairway(root, "verify", "west")


def test_states_of_a_log_that_went_another_way_are_not_taken_up(root: Path):
    put_back("streams/grid/log", "tables")(root)
    states = root / "streams" / "grid" / "local" / "states"
    assert max(int(path.stem) for path in states.iterdir()) > 21
    arrive(root, 1000, 30)
    fairway(root, "run", "grid", "--until-idle")
    fairway(root, "run", "grid", "--until-idle")
    said = fairway(root, "verify")
    assert "50 members" in said
    assert "WRONG" not in said


def test_a_log_in_front_of_a_restored_table_fills_it_again(root: Path):
    before = tables.read(root / "tables" / "changes" / "grid")
    put_back("tables")(root)
    fairway(root, "run", "grid", "--until-idle")
    after = tables.read(root / "tables" / "changes" / "grid")
    order = [("position", "ascending"), ("seq", "ascending")]
    assert after.sort_by(order) == before.sort_by(order)


def test_a_segment_that_is_passed_over_later_makes_no_other_log(root: Path):
    last = max((root / "streams/grid/log/segments").rglob("*.seg"))
    last.write_bytes(b"")
    assert last.name in fairway(root, "run", "grid", "--until-idle", code=2)
    fairway(root, "streams", "skip", "grid", str(int(last.stem)), "--why", "torn")
    fairway(root, "run", "grid", "--until-idle")
    assert "WRONG" not in fairway(root, "doctor")


@pytest.mark.parametrize(
    "engine",
    [local_run, tasks_that_stay],
    ids=["local", "tasks that stay"],
)
@pytest.mark.parametrize("more", [0, 60], ids=["as it was", "passed"])
def test_every_engine_refuses_an_older_log_before_anything_starts(
    root: Path, engine: ModuleType, more: int
):
    RESTORED["log"](root)
    arrive(root, 1000, more)
    stream = replace(load_streams(root / "conf")["grid"], shards=2)
    end = f"ends at {len(list(root.rglob('*.seg')))}.0"
    with pytest.raises(StateError, match=end):
        engine.run(Home(root), stream, until_idle=True)
