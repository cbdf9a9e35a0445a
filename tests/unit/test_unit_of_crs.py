"""Streams whose CRS counts in feet: no length is taken for another one."""

import random
from pathlib import Path

import pyproj
import pytest
import shapely

from st_common.answers.answers import answer
from st_common.answers.changes import stream_changes
from st_common.checks.verify import verify
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.crs import without_srid
from st_common.engine.packets import step_settings
from st_common.engine.run import run
from st_common.log.log import Log
from st_common.query.printed import to_text
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.log_writer import bare_log

CONF = """
[streams.cars]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
time_unit = "s"
max_ahead_s = "off"
crs = "CRS"
silence_s = 10
max_speed_mps = 30
"""
FEET, METRES = "EPSG:2263", "EPSG:25832"


def streams(folder: Path, crs: str):
    file = folder / "streams.toml"
    file.write_text(CONF.replace("CRS", crs))
    return load_streams(file)


QUERIES = {
    "circle": "SELECT * FROM cars INSIDE CIRCLE (X, Y, 2 km)",
    "bare": "SELECT * FROM cars INSIDE CIRCLE (X, Y, 2500)",
    "around": "SELECT * FROM cars INSIDE ('M', 'a', 1.5 km) EMIT CHANGES WITH VALID UNTIL",
    "box": "SELECT * FROM cars INSIDE ('M', 'a', 2 km, 9000 ft)",
    "near": "SELECT * FROM cars a JOIN cars b ON ST_DWithin(a, b, 1 mi)",
    "enlarged": "SELECT * FROM cars USING enlarge(4 km) COMPARE WITH (X, Y, X, Y)",
    "way": "SELECT COUNT(*) FROM cars [RANGE BY 5 km RATTR SPACE] WITH (min_step = '300 m')",
    "sliding": "SELECT COUNT(*) FROM cars [RANGE BY 5 km RATTR SPACE, SLIDE BY 2 km SATTR SPACE] GROUP BY object",
    "fast": "SELECT object, floor(speed_mps) AS fast FROM cars WHERE speed_mps > 500 OR object = 'speed_mps'",
    "knots": "SELECT * FROM cars WHERE speed_mps > 1000 kn",
    "alike": "SELECT * FROM cars a JOIN cars b ON floor(a.speed_mps / 300) = floor(b.speed_mps / 300)",
    "average": "SELECT AVG(speed_mps) FROM cars",
    "speeds": "SELECT AVGSPD(*) FROM cars [RANGE 10 s]",
    "nearest": "SELECT * FROM cars KNN (3, X, Y)",
}
CENTRE = (-73.9857, 40.7484)
TWIN = "EPSG:32118"  # the same projection as FEET, in metres


def fixes(crs: str, seed: int) -> str:
    """Six cars that jump about within some kilometres of the centre, and stand exactly on no border."""
    rng, project = (
        random.Random(seed),
        pyproj.Transformer.from_crs(4326, crs, always_xy=True).transform,
    )
    lines = ["id,t,x,y"]
    for second in range(40):
        place = (
            CENTRE[0] + rng.uniform(-0.04, 0.04),
            CENTRE[1] + rng.uniform(-0.03, 0.03),
        )
        x, y = project(*place)
        lines.append(f"{rng.choice('abcdef')},{second},{x!r},{y!r}")
    return "\n".join([*lines, ""])


def told(folder: Path, crs: str, seed: int) -> dict[str, list[tuple]]:
    """What each query tells of the same places on Earth, in the coordinates of a CRS; `verify` agrees."""
    folder.mkdir()
    home, known = Home(folder / "home"), streams(folder, crs)
    x, y = pyproj.Transformer.from_crs(4326, crs, always_xy=True).transform(*CENTRE)
    for name, text in QUERIES.items():
        placed = text.replace("(X, Y", f"({x!r}, {y!r}").replace(
            " X, Y)", f" {x!r}, {y!r})"
        )
        register(home, known, parse(f"REGISTER QUERY {name} AS {placed}"), owner="ada")
    bare_log(home.log("cars")).append(fixes(crs, seed).encode(), arrival_us=40_000_000)
    Log(home.log("cars")).append(b'{"op":"end"}\n', arrival_us=41_000_000, control=True)
    run(home, known["cars"], until_idle=True)
    assert all(one.holds for one in verify(home, known["cars"]))
    rows = stream_changes(home, "cars").to_pylist()
    return {
        name: [_line(row) for row in rows if row["query"] == name] for name in QUERIES
    }


def _line(row: dict) -> tuple:
    value = (
        None
        if row["value"] is None
        else pytest.approx(row["value"], rel=1e-6, nan_ok=True)
    )
    fields = row["fields"] if row["query"] == "fast" else None
    return (
        row["event_ts"],
        row["object"],
        row["partner"],
        row["sign"],
        row["cause"],
        value,
        fields,
    )


@pytest.mark.spec("P4")
@pytest.mark.parametrize("seed", range(4))
def test_the_same_places_in_feet_and_in_metres_give_the_same_answers(
    tmp_path: Path, seed: int
):
    in_feet, in_metres = (
        told(tmp_path / "feet", FEET, seed),
        told(tmp_path / "metres", TWIN, seed),
    )
    for name in QUERIES:
        assert in_feet[name] == in_metres[name], name
        assert len(in_feet[name]) > 2, name


@pytest.mark.spec("P4")
def test_a_circle_of_a_kilometre_in_feet_is_what_shapely_finds(tmp_path: Path):
    home, known = Home(tmp_path / "home"), streams(tmp_path, FEET)
    register(
        home,
        known,
        parse(
            "REGISTER QUERY q AS SELECT * FROM cars INSIDE CIRCLE (1000000, 200000, 1 km)"
        ),
        owner="a",
    )
    rng = random.Random(3)
    places = {
        f"c{n}": (
            1_000_000 + rng.uniform(-5000, 5000),
            200_000 + rng.uniform(-5000, 5000),
        )
        for n in range(300)
    }
    lines = [f"{name},1,{x!r},{y!r}" for name, (x, y) in places.items()]
    bare_log(home.log("cars")).append(
        "\n".join(["id,t,x,y", *lines, ""]).encode(), arrival_us=1_000_000
    )
    run(home, known["cars"], until_idle=True)
    centre, to_metres = shapely.Point(1_000_000, 200_000), 1200 / 3937
    inside = {
        name
        for name, place in places.items()
        if centre.distance(shapely.Point(place)) * to_metres <= 1000
    }
    assert set(answer(home, "q")["object"].to_pylist()) == inside
    assert 10 < len(inside) < 290


def test_plans_are_shown_in_the_metres_that_were_asked_for(tmp_path: Path):
    home, known = Home(tmp_path / "home"), streams(tmp_path, FEET)
    (row,) = register(
        home,
        known,
        parse("REGISTER QUERY q AS SELECT * FROM cars INSIDE CIRCLE (0, 0, 1 km)"),
        owner="a",
    )
    assert "1000" in to_text(row.plan, "q")


@pytest.mark.parametrize(
    ("crs", "unit_m"),
    [(FEET, 1200 / 3937), ("EPSG:2222", 0.3048), (METRES, 1.0), ("planar", 1.0)],
)
def test_the_way_that_an_object_can_go_unseen_is_in_coordinates(
    tmp_path: Path, crs: str, unit_m: float
):
    assert step_settings(streams(tmp_path, crs)["cars"]).margin == pytest.approx(
        300 / unit_m, rel=1e-12
    )


@pytest.mark.parametrize(
    ("text", "epsg", "wkt"),
    [
        ("SRID=4326;POINT (1 2)", 4326, "POINT (1 2)"),
        (" srid = 3067 ; POLYGON EMPTY", 3067, "POLYGON EMPTY"),
        ("SRID=3067;POINT (1 2)", 0, "POINT (1 2)"),
        ("POINT (1 2)", 4326, "POINT (1 2)"),
    ],
)
def test_the_system_in_front_of_a_geometry_is_taken_off(text, epsg, wkt):
    assert without_srid(text, epsg) == wkt


def test_a_geometry_in_another_system_is_refused_by_both_names():
    with pytest.raises(
        ValueError, match="SRID=3067 is another system than the stream's EPSG:4326"
    ):
        without_srid("SRID=3067;POINT (1 2)", 4326)
