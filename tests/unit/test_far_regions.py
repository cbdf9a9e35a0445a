"""Regions that lie where nobody is are told of when they are registered."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common.cli import app

pytestmark = pytest.mark.spec("X2")

SETTINGS = """
[streams.cars]
format = "csv"
columns = { object = "id", event_ts = "t", x = "lon", y = "lat" }
time_unit = "s"
max_ahead_s = "off"
engine = "local"
"""
FIXES = "id,t,lon,lat\na,1,13.25,52.5\nb,2,13.5,52.25\n"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two cars in Berlin, which the engine has seen."""
    home = tmp_path_factory.mktemp("home")
    (home / "conf").mkdir()
    (home / "conf" / "streams.toml").write_text(SETTINGS)
    (home / "fixes.csv").write_text(FIXES)
    run(home, "replay", "cars", str(home / "fixes.csv"))
    run(home, "run", "cars", "--until-idle")
    return home


def run(home: Path, *words: str) -> str:
    """What a command that ends well says on standard error."""
    done = CliRunner().invoke(app, ["--home", str(home), *words])
    assert done.exit_code == 0, done.output
    return done.stderr


def registered(home: Path, name: str, region: str) -> str:
    text = f"REGISTER QUERY {name} AS SELECT * FROM cars {region}"
    return run(home, "query", "register", "--text", text)


WHERE = "lies away from all objects of cars (x 13.25 to 13.5, y 52.25 to 52.5)"


@pytest.mark.parametrize(
    ("name", "region", "told"),
    [
        ("swapped", "INSIDE (52.4, 13.3, 52.6, 13.4)", f"the region of swapped {WHERE}: are x and y exchanged?\n"),
        ("far", "INSIDE CIRCLE (0, 0, 5 km)", f"the region of far {WHERE}\n"),
        ("wkt", "INSIDE 'POLYGON ((52.2 13, 52.3 13, 52.3 14, 52.2 13))'", "are x and y exchanged?\n"),
    ],
)  # fmt: skip
def test_a_region_away_from_all_objects_is_told_of(home, name, region, told):
    assert registered(home, name, region).endswith(told)


@pytest.mark.parametrize(
    ("name", "region"),
    [
        ("meets", "INSIDE (13.4, 52.4, 14, 53)"),
        ("moves", "INSIDE ('M', 'a', 1 km)"),
        ("without", "NOT INSIDE (52.4, 13.3, 52.6, 13.4)"),
    ],
)
def test_no_other_region_is_told_of(home, name, region):
    assert "lies away" not in registered(home, name, region)
