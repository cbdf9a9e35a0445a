"""Tags of features in conditions: as texts, as numbers, and as the speeds that words of OpenStreetMap mean (X12)."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.units import unit_of
from st_common.errors import QueryError
from st_common.query.builder import query
from st_common.query.lengths import in_coordinates
from st_common.query.plan_json import plan_from_json
from st_common.query.sides import sides_of
from st_common.query.tag_speeds import speed_of
from st_common.query.text import TextError, parse, to_text
from st_common.reference.tag_speeds import speed_said
from tests.kit.by_hand import end, fix, gone, layer, register
from tests.kit.roads import JOIN, plan_of, road, told_of

pytestmark = pytest.mark.spec("X12")
MPS = unit_of("m/s")


FAST = plan_of(f"SELECT * {JOIN} WHERE t.speed_mps > r.maxspeed")
ROADS = [
    road("town", 0, maxspeed="50"),
    road("lane", 3, maxspeed="walk"),
    road("open", 100, maxspeed="none"),
    road("signs", 200, maxspeed="signals"),
    road("untagged", 300),
    road("miles", 400, maxspeed="30 mph"),
]


def said(row):
    return f"{row['object']}|{row['partner']} {row['cause']}"


def told(rows, layers, **how):
    return told_of(rows, layers, said, **how)


@pytest.mark.parametrize(
    "how", [{}, {"cuts": (2, 4)}, {"shards": 3, "restarts": frozenset({0})}]
)
def test_faster_than_is_allowed_there(how):
    rows = [
        layer("roads", 1),
        register("q", FAST, layer_version=1),
        fix("a", 1, 0, 0),
        fix("a", 2, 10, 0),
        fix("a", 3, 25, 0),
        fix("a", 4, 26, 0),
        *(fix(name, 1, 0, y) for name, y in (("b", 100), ("c", 200), ("d", 300))),
        *(fix(name, 2, 90, y) for name, y in (("b", 100), ("c", 200), ("d", 300))),
        fix("e", 3, 0, 400),
        fix("e", 4, 14, 400),
        gone("e", 5),
        end(),
    ]
    assert told(rows, {("roads", 1): ROADS}, **how) == [
        "2 +a|lane enter",
        "3 +a|town enter",
        "4 -a|lane leave",
        "4 -a|town leave",
        "4 +e|miles enter",
        "5 -e|miles gone",
    ]


def test_another_version_of_the_layer_has_other_tags():
    slower = [road("town", 0, maxspeed="30")]
    rows = [
        layer("roads", 1),
        register("q", FAST, layer_version=1),
        fix("a", 1, 0, 0),
        fix("a", 2, 10, 0),
        layer("roads", 2),
        end(),
    ]
    layers = {("roads", 1): ROADS[:1], ("roads", 2): slower}
    assert told(rows, layers) == ["2 +a|town layer"]


@pytest.mark.parametrize(
    ("tag", "kmh"),
    [
        ("50", 50),
        ("7.5", 7.5),
        ("50 km/h", 50),
        ("50kmh", 50),
        ("30 mph", 48.28032),
        ("10 knots", 18.52),
        ("none", math.inf),
        ("walk", 7),
    ],
)
def test_a_speed_is_read_as_openstreetmap_means_it(tag, kmh):
    assert speed_of(tag, MPS) == pytest.approx(kmh / 3.6, rel=1e-12)
    assert speed_of(tag, unit_of("km/h")) == kmh


@pytest.mark.parametrize(
    "tag",
    ["signals", "variable", "DE:urban", "50;70", "50 mi/h", "-5", "5e3", "", " ", "²"],
)
def test_what_is_no_one_speed_is_none(tag):
    assert speed_of(tag, MPS) is None


@given(
    st.from_regex(
        r"([0-9]{0,3}(\.[0-9]{0,2})? ?(km/h|kmh|kph|mph|knots|mps)?)|none|walk",
        fullmatch=True,
    ),
    st.sampled_from(["m/s", "km/h", "knots", "mph", "ft/min"]),
)
def test_two_ways_to_read_a_speed_agree(tag, unit):
    one = unit_of(unit)
    assert speed_of(tag, one) == speed_said(tag, one.times, one.per)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("t.speed_mps > r.maxspeed", 'speed_mps > "other.maxspeed in m/s"'),
        (
            "speed_mps > 1.1 * r.maxspeed + 5 m/s",
            'speed_mps > 1.1 * "other.maxspeed in m/s" + 5',
        ),
        ("r.maxspeed >= 36 km/h", '"other.maxspeed in m/s" >= 10'),
        ("r.lanes > 2", 'TRY_CAST("other.lanes" AS DOUBLE) > 2'),
        ("r.name LIKE 'A%'", "\"other.name\" LIKE 'A%'"),
        ("r.ref IS NULL OR t.load > 3", '"other.ref" IS NULL OR load > 3'),
    ],
)
def test_text_json_and_canonical_text_say_the_same(said, meant):
    plan = plan_of(f"SELECT * {JOIN} WHERE {said}")
    assert plan.where == meant
    (again,) = parse(to_text(plan, "q"))
    assert again.plan == plan
    assert plan_from_json(json.dumps(plan.to_json())) == plan
    built = query("s").join("roads", "r").on_dwithin(5).where(said.replace("t.", "s."))
    assert built.plan.where == meant


def test_what_equals_a_text_still_chooses_features():
    plan = plan_of(
        f"SELECT * {JOIN} WHERE r.kind = 'road' AND r.name = 'A' AND r.lanes > 2"
    )
    assert (plan.join.kinds, plan.join.tags) == (("road",), (("name", "A"),))
    assert sides_of(plan.where).beside == 'TRY_CAST("other.lanes" AS DOUBLE) > 2'


def test_a_tag_says_metres_per_second_where_coordinates_are_feet():
    assert in_coordinates(FAST, 0.3048).where == (
        '(speed_mps * 0.3048) > "other.maxspeed in m/s"'
    )


@pytest.mark.parametrize("clause", ["DETECT ENTER, EXIT", "FOR 1 min"])
def test_events_at_features_know_no_tags(clause):
    with pytest.raises(
        (QueryError, TextError), match="condition on tags or the distance"
    ):
        plan_from_json(
            json.dumps(plan_of(f"SELECT * {JOIN} WHERE r.lanes > 2 {clause}").to_json())
        )
