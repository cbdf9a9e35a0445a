"""Tags beside attributes: in the unit of the attribute; and errors about both in the words of who wrote them (X12)."""

import pytest
import shapely

from st_common.config.streams import load_streams
from st_common.query.explain import explain, lines
from st_common.query.names import resolved
from st_common.query.terms import problems_of, types_of
from st_common.query.text import parse, to_text
from tests.kit.by_hand import end, fix, layer, log, register
from tests.kit.laws import run_steps
from tests.kit.oracle_rows import Feature, Rules
from tests.kit.strategies import Case, Segmentation

pytestmark = pytest.mark.spec("X12")
CONF = """
[streams.cars]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
time_unit = "s"
max_ahead_s = "off"

[streams.cars.attributes]
Speed = "double km/h"
seats = "long km/h"
sog = "double kn"
height = "double ft"
load = "double"
kind = "string"
"""
ROADS = "SELECT * FROM cars t JOIN roads r ON ST_DWithin(t, r, 5 m) WHERE "
PAIRS = "SELECT * FROM cars a JOIN cars b ON ST_DWithin(a, b, 5 m) WHERE "


@pytest.fixture(scope="module")
def streams(tmp_path_factory):
    file = tmp_path_factory.mktemp("conf") / "streams.toml"
    file.write_text(CONF)
    return load_streams(file)


def checked(text, streams):
    """The plan of a query with its names resolved, and what is wrong with it."""
    (statement,) = parse(f"REGISTER QUERY q AS {text}")
    done = resolved(
        statement, streams, ["roads"], lambda _: ("maxspeed",), lambda _: None
    )
    types = types_of([done.statement], streams)
    wrong = [*done.problems, *problems_of(done.statement, streams["cars"], types)]
    return done.statement.plan, [f"{one.message} ({one.hint})" for one in wrong]


@pytest.mark.parametrize(
    ("condition", "meant"),
    [
        ("t.speed > r.maxspeed", 'Speed > "other.maxspeed in km/h"'),
        ("r.maxspeed < SPEED", '"other.maxspeed in km/h" < Speed'),
        (
            "t.speed > 1.1 * r.maxspeed + 10 m/s",
            'Speed > 1.1 * "other.maxspeed in km/h" + 36',
        ),
        ("t.sog > r.maxspeed", 'sog > "other.maxspeed in kn"'),
        (
            "t.speed > r.maxspeed OR r.maxspeed IS NULL",
            'Speed > "other.maxspeed in km/h" OR "other.maxspeed" IS NULL',
        ),
        ("t.load > r.lanes", 'load > TRY_CAST("other.lanes" AS DOUBLE)'),
        ("t.load * 2 > r.lanes", 'load * 2 > TRY_CAST("other.lanes" AS DOUBLE)'),
        ("t.kind <> r.use", 'kind <> "other.use"'),
        (
            "t.speed > r.maxspeed AND t.speed < 50 mph",
            'Speed > "other.maxspeed in km/h" AND Speed < 80.4672',
        ),
    ],
)
def test_a_tag_is_in_the_unit_of_the_attribute_beside_it(streams, condition, meant):
    plan, wrong = checked(ROADS + condition, streams)
    assert (plan.where, wrong) == (meant, [])
    again, wrong = checked(to_text(plan, "q").partition(" AS ")[2], streams)
    assert (again, wrong) == (plan, [])


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        (
            ROADS + "t.speed + speed_mps > r.maxspeed",
            ["a tag beside speeds in km/h and in m/s"],
        ),
        (ROADS + "t.speed > r.maxspeed + 5 km", ["expected a speed, not a distance"]),
        (
            ROADS + "t.height > r.maxheight",
            ["r.maxheight is a text", "TRY_CAST(r.maxheight AS DOUBLE)"],
        ),
        (ROADS + "t.speed > lower(r.name)", ["LOWER(r.name) is a text"]),
        (
            PAIRS + "b.kindd = 'x'",
            ["unknown column 'b.kindd'", "did you mean b.kind?"],
        ),
        (
            PAIRS + "b.zzz = 'x'",
            ["known columns: b.Speed, b.acceleration_mps2, b.elapsed_s"],
        ),
        (
            PAIRS + "a.load > b.kind",
            ["b.kind is a text", "TRY_CAST(b.kind AS DOUBLE)"],
        ),
    ],
)
def test_errors_call_columns_as_they_are_written(streams, text, messages):
    _, (wrong, *more) = checked(text, streams)
    assert [message for message in messages if message not in wrong] == []
    assert not more
    assert "other." not in wrong


@pytest.mark.parametrize("form", ["{}", "{} IS NULL", "{} > t.speed"])
def test_a_tag_that_no_feature_has_is_noticed_where_it_stands(streams, form):
    text = f"REGISTER QUERY q AS {ROADS}{form.format('r.maxsped')} OR r.kind <> 'a'"
    (statement,) = parse(text)
    known = ("maxspeed", "name")
    (notice,) = resolved(
        statement, streams, ["roads"], lambda _: known, lambda _: None
    ).notices
    assert notice.message == "no feature of the layer has the tag 'maxsped': it is NULL"
    assert notice.hint == "did you mean maxspeed?"
    assert notice.column == text.index("r.maxsped") + 1


def test_explain_calls_columns_as_its_text_does(streams):
    text = "SELECT b.speed_mps FROM cars a JOIN cars b ON ST_DWithin(a, b, 5 m) WHERE b.load > a.load"
    plan, _ = checked(text, streams)
    shown = "\n".join(lines(explain(plan, "q", stream=streams["cars"])))
    assert "of both: other.load > load" in shown
    assert "speed_mps (number in m/s, or null)" in shown
    plan, _ = checked(ROADS + "t.speed > r.maxspeed", streams)
    shown = "\n".join(lines(explain(plan, "q", stream=streams["cars"])))
    assert 'of both: Speed > roads."maxspeed in km/h"' in shown


def test_who_drives_as_fast_as_is_allowed_is_not_faster(streams):
    plan, _ = checked(ROADS + "t.seats > r.maxspeed", streams)
    line = shapely.LineString([(0, 0), (1000, 0)])
    roads = [
        Feature("town", "road", line, {"maxspeed": "50"}),
        Feature("miles", "road", line, {"maxspeed": "30 mph"}),
        Feature("open", "road", line, {"maxspeed": "none"}),
    ]
    rows = [
        layer("roads", 1),
        register("q", plan, layer_version=1),
        *(fix(f"{kmh}", 1, 0, 0, seats=kmh) for kmh in (48, 49, 50, 51)),
        end(),
    ]
    case = Case(
        rows=tuple(log(*rows)),
        layers={("roads", 1): roads},
        rules=Rules(tick_us=1_000_000),
    )
    changes, _, _ = run_steps(case, Segmentation(cuts=(), batches=()))
    told = {(row["object"], row["partner"]) for row in changes.to_pylist()}
    assert told == {("49", "miles"), ("50", "miles"), ("51", "miles"), ("51", "town")}
