"""Streams whose CRS counts in feet: no length is taken for another one."""

from pathlib import Path

import pytest

from st_common.engine.feed import step_settings
from st_common.home import Home
from st_common.query.problem import TextError
from st_common.query.registry import check
from st_common.query.text import parse
from st_common.settings import load_streams

CONF = """
[streams.cars]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
time_unit = "s"
crs = "CRS"
silence_s = 10
max_speed_mps = 30
"""
FEET, METRES = "EPSG:2263", "EPSG:25832"


def streams(folder: Path, crs: str):
    file = folder / "streams.toml"
    file.write_text(CONF.replace("CRS", crs))
    return load_streams(file)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM cars INSIDE CIRCLE (0, 0, 1 km)",
        "SELECT * FROM cars INSIDE CIRCLE (0, 0, 1000)",
        "SELECT * FROM cars INSIDE ('M', 'a', 500 m)",
        "SELECT * FROM cars INSIDE ('M', 'a', 1 km, 1 km)",
        "SELECT * FROM cars a JOIN cars b ON ST_DWithin(a, b, 5 m)",
        "SELECT * FROM cars USING enlarge(50 m) COMPARE WITH (0, 0, 1, 1)",
        "SELECT * FROM cars [RANGE BY 5 km RATTR SPACE]",
        "SELECT * FROM cars WHERE speed_mps > 3",
        "SELECT object, speed_mps AS fast FROM cars",
        "SELECT AVG(speed_mps) FROM cars",
        "SELECT AVGSPD(*) FROM cars [RANGE 10 min]",
    ],
)
def test_what_counts_in_metres_is_refused_on_a_crs_in_feet(tmp_path: Path, query: str):
    statements = parse(f"REGISTER QUERY q AS {query}")
    check(Home(tmp_path / "home"), streams(tmp_path, METRES), statements)
    with pytest.raises(TextError, match=r"metres have no place on EPSG:2263, whose unit is 0\.3048006096 m"):
        check(Home(tmp_path / "home"), streams(tmp_path, FEET), statements)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM cars INSIDE (0, 0, 3280.84, 3280.84)",
        "SELECT * FROM cars INSIDE ('M', 'a', 100, 100) KNN (3, 1, 1)",
        "SELECT * FROM cars USING enlarge_value(5) COMPARE WITH (0, 0, 1, 1)",
        "SELECT COUNT(*) FROM cars [RANGE 10 min] WHERE elapsed_s > 3",
    ],
)
def test_what_counts_in_coordinates_is_fine_in_feet(tmp_path: Path, query: str):
    check(Home(tmp_path / "home"), streams(tmp_path, FEET), parse(f"REGISTER QUERY q AS {query}"))


@pytest.mark.parametrize(
    ("crs", "unit_m"), [(FEET, 1200 / 3937), ("EPSG:2222", 0.3048), (METRES, 1.0), ("planar", 1.0)]
)
def test_the_way_that_an_object_can_go_unseen_is_in_coordinates(tmp_path: Path, crs: str, unit_m: float):
    assert step_settings(streams(tmp_path, crs)["cars"]).margin == pytest.approx(300 / unit_m, rel=1e-12)
