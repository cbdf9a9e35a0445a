"""Numbers with units beside attributes: compared in the attribute's unit, or refused."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.answers.answers import answer
from st_common.config.home import Home
from st_common.config.streams import load_streams, stream_of
from st_common.engine.run import run
from st_common.errors import ConfigError
from st_common.query.builder import query
from st_common.query.lookup import queries
from st_common.query.problem import TextError
from st_common.query.registry import check, register
from st_common.query.text import parse
from tests.kit.log_writer import bare_log

CONF = """
[streams.trucks]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
time_unit = "s"
max_ahead_s = "off"
attributes = { Speed = "double km/h", height = "double ft", late = "long min", load = "double", kind = "string" }
"""


def home_of(folder: Path) -> Home:
    (folder / "conf").mkdir(parents=True)
    (folder / "conf" / "streams.toml").write_text(CONF)
    return Home(folder)


def where(home: Home, condition: str) -> str | None:
    """The condition of a registered query as engines read it."""
    streams = load_streams(home.root / "conf")
    register(
        home,
        streams,
        parse(f"REGISTER QUERY q AS SELECT * FROM trucks WHERE {condition}"),
        owner="me",
    )
    (row,) = queries(home)
    assert row.plan is not None
    return row.plan.where


@pytest.mark.parametrize(
    ("condition", "meant"),
    [
        ("speed > 60 km/h", "Speed > 60"),
        ("60 km/h < trucks.speed", "60 < Speed"),
        ("SPEED > 10 m/s", "Speed > 36"),
        ("speed > -(36 km/h)", "Speed > -(36)"),
        ("Speed BETWEEN 1 kn AND 50 mph", "Speed BETWEEN 1.852 AND 80.4672"),
        (
            "height < 1 km AND late >= 2 hours",
            "height < 3280.839895013123 AND late >= 120",
        ),
        (
            "kind = 'km' AND (load > 5 OR late = 90 s)",
            "kind = 'km' AND (load > 5 OR late = 1.5)",
        ),
        (
            "(load > 5 OR kind = 'km') AND speed < 20 m/s",
            "(load > 5 OR kind = 'km') AND Speed < 72",
        ),
        ("speed_mps > 36 km/h AND speed > 36", "speed_mps > 10 AND Speed > 36"),
        ("ABS(speed_mps) > 36 km/h", "ABS(speed_mps) > 10"),
        ("kind = Car AND speed > 7 km/h", "kind = 'Car' AND Speed > 7"),
    ],
)
def test_a_number_is_compared_in_the_unit_of_the_attribute(
    tmp_path: Path, condition: str, meant: str
):
    assert where(home_of(tmp_path / "home"), condition) == meant


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("load > 60 km/h", "attribute 'load' has no unit to compare 60 km/h with"),
        ("load > 60 km/h", 'attributes = { load = "double km/h" } says it'),
        ("speed > 60 km", "expected a speed, not a distance"),
        ("height = 3 min", "expected a distance, not a time"),
        ("speed * 2 > 60 km/h", "a number with a unit beside more than an attribute"),
        ("speed - 10 km/h > 5", "a number with a unit beside more than an attribute"),
        ("speed > load + 3 km/h", "a number with a unit beside more than an attribute"),
        ("ABS(speed) > 60 km/h", "a number with a unit beside more than an attribute"),
        ("CASE WHEN load > 1 m THEN TRUE END", "attribute 'load' has no unit"),
    ],
)
def test_what_has_no_meaning_is_refused_where_it_stands(
    tmp_path: Path, condition: str, message: str
):
    home = home_of(tmp_path / "home")
    with pytest.raises(TextError) as error:
        check(
            home,
            load_streams(home.root / "conf"),
            parse(f"REGISTER QUERY q AS SELECT * FROM trucks WHERE {condition}"),
        )
    assert message in str(error.value)


@given(
    kmh=st.integers(1, 200),
    limit=st.integers(1, 200),
    unit=st.sampled_from(["km/h", "m/s", "kn", "mph"]),
)
def test_members_are_those_whose_speed_is_above_the_limit(
    kmh, limit, unit, tmp_path_factory
):
    home = home_of(tmp_path_factory.mktemp("home") / "home")
    streams = load_streams(home.root / "conf")
    where(home, f"speed > {limit} {unit}")
    bare_log(home.log("trucks")).append(
        f"id,t,x,y,Speed,height,late,load,kind\na,1,0,0,{kmh},1,1,1,car\n".encode(),
        arrival_us=1,
    )
    run(home, streams["trucks"], until_idle=True)
    per_hour = {"km/h": 1000, "m/s": 3600, "kn": 1852, "mph": 1609.344}[unit]
    assert (len(answer(home, "q")) == 1) == (kmh * 1000 > limit * per_hour)


def test_a_builder_knows_no_units_of_attributes():
    assert (
        query("trucks").where("speed_mps > 36 km/h").build().where == "speed_mps > 10"
    )
    with pytest.raises(
        TextError, match="a number with a unit beside the attribute 'speed'"
    ):
        query("trucks").where("speed > 36 km/h")


@pytest.mark.parametrize(
    "declared", ["double parsec", "string km", "double km/kg", "float km/h"]
)
def test_units_of_settings_are_checked(tmp_path: Path, declared: str):
    home = home_of(tmp_path / "home")
    file = home.root / "conf" / "streams.toml"
    file.write_text(CONF.replace("double ft", declared))
    with pytest.raises(ConfigError, match="height"):
        stream_of(load_streams(file), "trucks")


def test_the_unit_of_a_later_statement_is_shown_as_it_was_written(tmp_path):
    home = home_of(tmp_path)
    text = "REGISTER QUERY q AS SELECT * FROM trucks;\nREGISTER QUERY r AS SELECT * FROM trucks WHERE load > 60 km/h"
    with pytest.raises(TextError) as caught:
        register(home, load_streams(home.root / "conf"), parse(text), owner="me")
    (problem,) = caught.value.problems
    assert problem.message == "attribute 'load' has no unit to compare 60 km/h with"
    assert (problem.line, problem.column) == (2, 55)
