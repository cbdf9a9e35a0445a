"""Rectangles and areas at 180 degrees: right with CROSSING 180, refused where they can be read in two ways."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.answers.answers import answer
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.run import run
from st_common.errors import QueryError
from st_common.query.builder import box_across, query
from st_common.query.plan import Plan
from st_common.query.printed import to_text
from st_common.query.problem import TextError
from st_common.query.registry import check, register
from st_common.query.text import parse
from tests.kit.log_writer import bare_log

COLUMNS = Columns(object="id", event_ts="t", x="x", y="y")
SHIPS = StreamSettings(
    name="ships", format="csv", columns=COLUMNS, time_unit="s", max_ahead_s=None
)
CARS = StreamSettings(
    name="cars",
    format="csv",
    columns=COLUMNS,
    time_unit="s",
    max_ahead_s=None,
    crs="planar",
)
STREAMS = {"ships": SHIPS, "cars": CARS}


def refused(home: Home, text: str) -> str:
    with pytest.raises(TextError) as error:
        check(home, STREAMS, parse(text))
    return str(error.value)


def plan_of(text: str) -> Plan:
    (statement,) = parse(f"REGISTER QUERY q AS SELECT * FROM ships {text}")
    assert statement.plan is not None
    return statement.plan


@pytest.mark.parametrize(
    ("region", "message"),
    [
        (
            "(170, -20, -170, -10)",
            "from 170 to -170 degrees: over 180, or the other way around?",
        ),
        (
            "(170, -20, -170, -10)",
            "(170, -20, -170, -10) CROSSING 180, or (-170, -20, 170, -10)",
        ),
        ("(179, 10, -1.5, 11)", "from 179 to -1.5 degrees"),
        ("(170, 0, 190, 10)", "the box lies off the Earth: longitude 190"),
        ("(0, -91, 10, 0)", "the box lies off the Earth: latitude -91"),
        (
            "CIRCLE (180.5, 0, 5 km)",
            "the centre of the circle lies off the Earth: longitude 180.5",
        ),
        ("CIRCLE (0, -90.25, 5 km)", "latitude -90.25"),
        (
            "'POLYGON((170 0, 190 0, 190 10, 170 0))'",
            "the area lies off the Earth: longitude 190",
        ),
        (
            "'POLYGON((170 0, -170 0, -170 10, 170 10, 170 0))'",
            "a side of the area is longer than 180 degrees",
        ),
    ],
)
def test_regions_that_are_not_on_earth_or_have_two_readings_are_refused(
    tmp_path: Path, region: str, message: str
):
    for clause in (f"INSIDE {region}", f"[RANGE BY {region} RATTR SPACE]"):
        assert message in refused(
            Home(tmp_path), f"REGISTER QUERY q AS SELECT * FROM ships {clause}"
        )


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("KNN (3, 181, 0)", "the place lies off the Earth: longitude 181"),
        (
            "GROUP KNN (3, SUM, (1, 1), (1, -91))",
            "the place lies off the Earth: latitude -91",
        ),
        ("COMPARE WITH (170, 0, -170, 1)", "from 170 to -170 degrees"),
        ("USING box(170, 0, -170, 1)", "from 170 to -170 degrees"),
        ("INSIDE (170, 0, -170, 1) CROSSING 90", "expected 180"),
        (
            "INSIDE (-170, 0, 170, 1) CROSSING 180",
            "what crosses 180 degrees begins west of it",
        ),
        ("INSIDE (190, 0, -170, 1) CROSSING 180", "190 is no longitude"),
        ("INSIDE (170, 0, -170, -91) CROSSING 180", "-91 is no latitude"),
        ("INSIDE (170, 1, -170, 1) CROSSING 180", "two latitudes"),
    ],
)
def test_places_and_boxes_of_other_clauses_too(
    tmp_path: Path, clause: str, message: str
):
    assert message in refused(
        Home(tmp_path), f"REGISTER QUERY q AS SELECT * FROM ships {clause}"
    )


@pytest.mark.parametrize(
    "region",
    [
        "(10, 5, -10, -5)",
        "(-170, 0, 170, 10)",
        "'POLYGON((-180 -90, 180 -90, 180 -60, -180 -60, -180 -90))'",
        "(179, 0, 180, 10)",
        "CIRCLE (180, 0, 500 km)",
    ],
)
def test_what_has_one_reading_is_fine(tmp_path: Path, region: str):
    check(
        Home(tmp_path),
        STREAMS,
        parse(f"REGISTER QUERY q AS SELECT * FROM ships INSIDE {region}"),
    )


def test_a_plane_has_no_180_degrees(tmp_path: Path):
    home = Home(tmp_path)
    check(
        home,
        STREAMS,
        parse("REGISTER QUERY q AS SELECT * FROM cars INSIDE (170, -200, -170, 10)"),
    )
    message = refused(
        home,
        "REGISTER QUERY q AS SELECT * FROM cars INSIDE (170, -20, -170, 10) CROSSING 180",
    )
    assert "CROSSING 180 has no meaning on a plane" in message


def test_an_area_by_name_crosses_or_is_refused(tmp_path: Path):
    home = Home(tmp_path)
    assert "from 170 to -170 degrees" in refused(
        home, "CREATE AREA fiji AS (170, -20, -170, -10)"
    )
    text = "CREATE AREA fiji AS (170, -20, -170, -10) CROSSING 180; REGISTER QUERY q AS SELECT * FROM ships INSIDE fiji"
    register(home, STREAMS, parse(text), owner="me")
    assert members(home, [(175.0, -15.0), (-175.0, -15.0), (0.0, -15.0)]) == [0, 1]


def members(home: Home, places: list[tuple[float, float]]) -> list[int]:
    """The numbers of the places that the query q holds."""
    rows = "".join(f"o{number},1,{x!r},{y!r}\n" for number, (x, y) in enumerate(places))
    bare_log(home.log("ships")).append(f"id,t,x,y\n{rows}".encode(), arrival_us=1)
    run(home, SHIPS, until_idle=True)
    return sorted(int(name[1:]) for name in answer(home, "q")["object"].to_pylist())


LONGITUDES = st.integers(-1799, 1799).map(lambda tenths: tenths / 10)
LATITUDES = st.integers(-900, 900).map(lambda tenths: tenths / 10)
ACROSS = st.tuples(LONGITUDES, LATITUDES, LONGITUDES, LATITUDES).filter(
    lambda c: c[0] > c[2] and c[1] < c[3]
)


@given(corners=ACROSS)
def test_it_is_printed_as_it_is_written_and_is_the_same_by_json_and_builder(corners):
    west, south, east, north = corners
    text = f"INSIDE ({west:.15g}, {south:.15g}, {east:.15g}, {north:.15g}) CROSSING 180"
    plan = plan_of(text)
    assert Plan.from_json(plan.to_json()) == plan
    assert query("ships").inside(box_across(*corners)).build() == plan
    printed = to_text(plan, "q")
    assert "CROSSING 180" in printed
    assert parse(printed)[0].plan == plan


def test_the_builder_refuses_what_does_not_cross():
    with pytest.raises(
        QueryError,
        match=r"box_across\(\.\.\): \(-170, 0, 170, 1\) does not cross 180 degrees",
    ):
        box_across(-170, 0, 170, 1)


@given(corners=ACROSS, data=st.data())
def test_members_are_those_on_the_way_east_over_180_degrees(
    corners, data, tmp_path_factory
):
    west, south, east, north = corners
    near = (
        st.sampled_from([west, east, west + 0.1, east - 0.1, -180.0, 180.0, 0.0])
        | LONGITUDES
    )
    level = st.sampled_from([south, north]) | LATITUDES
    places = data.draw(st.lists(st.tuples(near, level), min_size=1, max_size=20))
    home = Home(tmp_path_factory.mktemp("home"))
    text = to_text(query("ships").inside(box_across(*corners)).build(), "q")
    register(home, STREAMS, parse(text), owner="me")
    unwrapped = [x if x >= west else x + 360 for x, _ in places]
    wanted = [
        n
        for n, (x, (_, y)) in enumerate(zip(unwrapped, places, strict=True))
        if x <= east + 360 and south <= y <= north
    ]
    assert members(home, places) == wanted


def test_corners_in_either_order_are_the_same_box():
    plans = {
        plan_of(f"INSIDE ({x1}, {y1}, {x2}, {y2})")
        for (x1, x2), (y1, y2) in itertools.product(((1, 9), (9, 1)), ((2, 8), (8, 2)))
    }
    assert len(plans) == 1
