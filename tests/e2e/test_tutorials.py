"""The tutorials of docs/tutorials are followed as a reader would, and everything they say is so."""

import shutil
import sys
from pathlib import Path

import pytest

from st_common.testing.tutorial import Reader, environment, free_ports

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
TUTORIALS = ROOT / "docs" / "tutorials"
PORTS = ("8000", "8640")


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    binaries = Path(sys.executable).parent
    return Reader(folder=tmp_path, env=environment(binaries), ports=free_ports(PORTS))


def test_the_tutorial_about_transit(reader: Reader, shared: Path):
    feeds = shared / "data" / "gtfsrt-kingcounty"
    shutil.copyfile(feeds / "king-county-metro-1.pb", reader.folder / "feed.pb")
    shutil.copyfile(feeds / "king-county-metro-2.pb", reader.folder / "later.pb")
    assert reader.follow(TUTORIALS / "transit.md") > 10


def test_the_tutorial_for_those_who_know_tile38(reader: Reader):
    assert reader.follow(TUTORIALS / "from-tile38.md") > 15
