"""The tutorials of docs/tutorials are followed as a reader would, and everything they say is so."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.kit.tutorial import Reader, environment, ports_for

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
TUTORIALS = ROOT / "docs" / "tutorials"
PORTS = ("8000", "8640")


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    binaries = Path(sys.executable).parent
    return Reader(folder=tmp_path, env=environment(binaries), ports=ports_for(PORTS))


def test_the_tutorial_about_transit(reader: Reader, shared: Path):
    feeds = shared / "data" / "gtfsrt-kingcounty"
    shutil.copyfile(feeds / "king-county-metro-1.pb", reader.folder / "feed.pb")
    shutil.copyfile(feeds / "king-county-metro-2.pb", reader.folder / "later.pb")
    assert reader.follow(TUTORIALS / "transit.md") > 10


def test_the_tutorial_for_those_who_know_tile38(reader: Reader):
    assert reader.follow(TUTORIALS / "from-tile38.md") > 15


def test_the_notebook_runs_from_its_first_cell_to_its_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    cells = json.loads((TUTORIALS / "notebook.ipynb").read_text("utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) >= 6
    assert [cell["outputs"] for cell in code] == [[]] * len(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", environment(Path(sys.executable).parent)["PATH"])
    names: dict[str, Any] = {}
    for number, cell in enumerate(code, start=1):
        exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
    assert names["story"] == [
        ("fast", 1, "08:02"),
        ("slow", 1, "08:04"),
        ("fast", -1, "08:06"),
    ]
    assert [row["object"] for row in names["then"]] == ["fast", "slow"]
    assert [row["visits"] for row in names["stays"]] == [1, 1]


def test_the_tutorial_about_berlinmod(reader: Reader, shared: Path):
    trips = shared / "data" / "berlinmod-brussels" / "berlinmod_instants.csv.gz"
    shutil.copyfile(trips, reader.folder / "trips.csv.gz")
    assert reader.follow(TUTORIALS / "berlinmod.md") > 5


def test_every_tutorial_is_followed():
    told = Path(__file__).read_text("utf-8")
    pages = [path.name for path in TUTORIALS.iterdir()]
    assert len(pages) >= 4
    assert [name for name in pages if f'"{name}"' not in told] == []
