"""INSIDE FEATURE (zones, s.zone): each object is judged by the feature that its own fix names."""

import random
from pathlib import Path

import pytest
from shapely import Point, box

from st_common.answers.changes import stream_changes
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.run import run
from st_common.geometry.space import PLANE
from st_common.layers.load import load
from st_common.query.area_store import HomeAreas
from st_common.query.problem import TextError
from st_common.query.registry import carry_out
from st_common.query.text import parse, to_text
from tests.kit.log_writer import bare_log

CARS = StreamSettings(
    name="cars",
    format="csv",
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
    crs="planar",
    time_unit="s",
    max_ahead_s=None,
    attributes={"zone": "string", "load": "double"},
)
ZONES = {"z1": box(0, 0, 6, 6), "z2": box(4, 4, 10, 10), "z3": box(0, 7, 3, 10)}
TEXT = "REGISTER QUERY own AS SELECT * FROM cars c INSIDE FEATURE (zones, c.zone)"
CONF = Path(__file__).resolve().parents[2] / "conf"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    features = ",".join(
        f'{{"type": "Feature", "id": "{fid}", "properties": {{"leisure": "park"}}, '
        f'"geometry": {{"type": "Polygon", "coordinates": [{[list(xy) for xy in shape.exterior.coords]}]}}}}'
        for fid, shape in ZONES.items()
    )
    file = tmp_path / "zones.geojson"
    file.write_text(f'{{"type": "FeatureCollection", "features": [{features}]}}')
    home = Home(tmp_path / "home")
    load(home, "zones", file, group="default", conf=CONF, space=PLANE)
    return home


def carried_out(home: Home, text: str):
    statements = parse(text, areas=HomeAreas(home))
    return carry_out(home, {"cars": CARS}, statements, owner="me")


def wrong(home: Home, text: str) -> list[str]:
    with pytest.raises(TextError) as error:
        carried_out(home, text)
    return [str(one) for one in error.value.problems]


@pytest.mark.spec("X12", "X9")
def test_each_object_is_in_the_zone_that_its_fix_names_and_in_no_other(home: Home):
    carried_out(home, TEXT)
    chance, lines, expected, inside = random.Random(5), [], [], {}
    for second in range(200):
        car, zone = chance.choice("abc"), chance.choice((*ZONES, *ZONES, "z9", ""))
        x, y = chance.randint(0, 11), chance.randint(0, 11)
        lines.append(f"{car},{second},{x},{y},{zone},1")
        now = zone if zone in ZONES and ZONES[zone].covers(Point(x, y)) else None
        before, inside[car] = inside.get(car), now
        if before != now:
            expected += [(second, car, before, -1)] if before else []
            expected += [(second, car, now, 1)] if now else []
    log = bare_log(home.log("cars"))
    log.append("\n".join(("id,t,x,y,zone,load", *lines, "")).encode(), arrival_us=0)
    run(home, CARS, until_idle=True)
    told = [
        (int(one["event_ts"].timestamp()), one["object"], one["partner"], one["sign"])
        for one in stream_changes(home, "cars").to_pylist()
    ]
    assert sorted(told) == sorted(expected)
    assert {zone for _, _, zone, _ in told} == set(ZONES)


@pytest.mark.spec("X12")
@pytest.mark.parametrize(
    "clause",
    [
        "",
        " DETECT ENTER, EXIT",
        " WHERE load > 2 EMIT EVERY",
        " FOR 5 s",
    ],
)
def test_it_is_the_join_by_place_and_key(home: Home, clause: str):
    join = "JOIN zones ON ST_Intersects(c, zones) AND c.zone = zones.fid"
    ((row,), (same,)) = (
        carried_out(home, text).rows
        for text in (
            f"{TEXT}{clause}",
            f"REGISTER QUERY same AS SELECT * FROM cars c {join}{clause}",
        )
    )
    assert row.plan == same.plan
    ((printed,),) = (parse(to_text(row.plan, "own"), areas=HomeAreas(home)),)
    assert printed.plan == row.plan


def test_statements_alike_name_their_own_columns_and_layers(home: Home):
    load(
        home,
        "cars",
        home.root.parent / "zones.geojson",
        group="default",
        conf=CONF,
        space=PLANE,
    )
    text = ";".join(
        f"REGISTER QUERY q{at} AS SELECT * FROM cars INSIDE FEATURE ({layer}, cars.zone) WHERE load > {at}"
        for at, layer in enumerate(("zones", "cars") * 3)
    )
    plans = [row.plan for row in carried_out(home, text).rows]
    assert [plan.join.layer for plan in plans] == ["zones", "cars"] * 3
    assert [plan.where for plan in plans] == [f"load > {at}" for at in range(6)]


@pytest.mark.parametrize(
    ("clause", "said"),
    [
        ("NOT INSIDE FEATURE (zones, c.zone)", ["column 69: a region for each object"]),
        (
            "INSIDE (FEATURE (zones, c.zone) OR (0, 0, 1, 1))",
            ["column 66: a region for each object stands alone"],
        ),
        ("INSIDE FEATURE (zones, c.zone, 5)", ["column 42: expected a layer and a"]),
        ("INSIDE FEATURE (zons, c.zone)", ["column 58: unknown layer"]),
        ("INSIDE FEATURE (zones, d.zone)", ["column 65: unknown name"]),
        ("INSIDE FEATURE (zones, c.zoe)", ["column 65: unknown column"]),
        ("INSIDE FEATURE (zones, c.load)", ["column 65: "]),
        (
            "JOIN zones ON ST_Intersects(c, zones) INSIDE FEATURE (zones, c.zone)",
            ["column 80: a region for each object and JOIN exclude each other"],
        ),
    ],
)
def test_what_cannot_be_is_said_once_at_its_place(home: Home, clause: str, said: list):
    problems = wrong(home, f"REGISTER QUERY q AS SELECT * FROM cars c {clause}")
    assert len(problems) == len(said)
    for problem, start in zip(problems, said, strict=True):
        assert problem.removeprefix("line 1, ").startswith(start)
