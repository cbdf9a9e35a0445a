"""Tags of features among the columns that are selected: of the version of the layer that counts (SPEC X12)."""

import json

import pytest

from st_common.errors import QueryError
from st_common.query.builder import query
from st_common.query.plan_json import plan_from_json
from st_common.query.text import TextError, parse, to_text
from tests.kit.by_hand import end, fix, gone, layer, register
from tests.kit.roads import JOIN, plan_of, road, told_of

pytestmark = pytest.mark.spec("X12")
HOW = [
    {},
    {"cuts": (2, 4, 5)},
    {"cuts": (3, 5), "shards": 3, "restarts": frozenset({0})},
]


ROADS = [
    road("town", 0, name="High Street", maxspeed="50"),
    road("lane", 3, maxspeed="walk"),
    road("open", 100, name="B 1", maxspeed="none"),
]
SLOWER = [road("town", 0, name="High Street", maxspeed="30 mph")]


def said(row):
    return f"{row['object']}|{row['partner']} {row['fields']}"


def told(rows, layers, **how):
    return told_of(rows, layers, said, **how)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("form", ["{}", "RSTREAM ({})"])
def test_each_row_has_the_tags_of_its_feature(how, form):
    columns = "t.x, t.y, r.name, r.maxspeed AS allowed, r.kind"
    rows = [
        layer("roads", 1),
        register(
            "q", plan_of(f"SELECT {form.format(columns)} {JOIN}"), layer_version=1
        ),
        fix("a", 1, 1, 0),
        fix("b", 1, 2, 100),
        fix("a", 3, 5, 50),
        gone("b", 4),
        end(),
    ]
    town = '"name":"High Street","allowed":"50","kind":"road"'
    lane = '"name":null,"allowed":"walk","kind":"road"'
    free = '"name":"B 1","allowed":"none","kind":"road"'
    again = [f'3 =b|open {{"x":2.0,"y":100.0,{free}}}'] if "(" in form else []
    assert told(rows, {("roads", 1): ROADS}, **how) == [
        f'1 +a|lane {{"x":1.0,"y":0.0,{lane}}}',
        f'1 +a|town {{"x":1.0,"y":0.0,{town}}}',
        f'1 +b|open {{"x":2.0,"y":100.0,{free}}}',
        f'3 -a|lane {{"x":5.0,"y":50.0,{lane}}}',
        f'3 -a|town {{"x":5.0,"y":50.0,{town}}}',
        *again,
        f'4 -b|open {{"x":2.0,"y":100.0,{free}}}',
    ]


@pytest.mark.parametrize("how", HOW)
def test_who_leaves_with_a_version_of_the_layer_shows_the_tags_of_before(how):
    rows = [
        layer("roads", 1),
        register("q", plan_of(f"SELECT r.maxspeed {JOIN}"), layer_version=1),
        fix("a", 1, 1, 2),
        layer("roads", 2),
        fix("a", 2, 1, 90),
        end(),
    ]
    layers = {("roads", 1): ROADS, ("roads", 2): SLOWER}
    assert told(rows, layers, **how) == [
        '1 +a|lane {"maxspeed":"walk"}',
        '1 +a|town {"maxspeed":"50"}',
        '1 -a|lane {"maxspeed":"walk"}',
        '2 -a|town {"maxspeed":"30 mph"}',
    ]


def test_a_tag_and_a_column_of_another_object_may_have_one_name():
    pairs = "SELECT b.kind FROM s a JOIN s b ON ST_DWithin(a, b, 5 m)"
    rows = [
        layer("roads", 1),
        register("q", plan_of(f"SELECT r.kind {JOIN}"), layer_version=1),
        register("p", plan_of(pairs)),
        fix("a", 1, 1, 0, kind="taxi"),
        fix("b", 1, 2, 0, kind="bus"),
        end(),
    ]
    rows = told(rows, {("roads", 1): ROADS[:1]})
    assert sorted(rows) == [
        '1 +a|b {"kind":"bus"}',
        '1 +a|town {"kind":"road"}',
        '1 +b|a {"kind":"taxi"}',
        '1 +b|town {"kind":"road"}',
    ]


@pytest.mark.parametrize(
    ("said", "columns"),
    [
        ("r.name", (("name", '"other.name"'),)),
        ("r.name AS street", (("street", '"other.name"'),)),
        (
            "t.speed_mps - r.maxspeed AS over",
            (("over", 'speed_mps - "other.maxspeed in m/s"'),),
        ),
        (
            "t.speed_mps > r.maxspeed AS fast",
            (("fast", 'speed_mps > "other.maxspeed in m/s"'),),
        ),
        ("r.lanes * 2 AS l", (("l", 'TRY_CAST("other.lanes" AS DOUBLE) * 2'),)),
    ],
)
def test_text_json_and_builder_say_the_same(said, columns):
    plan = plan_of(f"SELECT {said} {JOIN}")
    assert plan.columns == columns
    (again,) = parse(to_text(plan, "q"))
    assert again.plan == plan
    assert plan_from_json(json.dumps(plan.to_json())) == plan
    expression, _, name = said.replace("t.", "s.").partition(" AS ")
    column = (name, expression) if name else expression
    joined = query("s").join("roads", "r").on_dwithin(5)
    assert joined.select(column).plan == plan


@pytest.mark.parametrize(
    "clause", ["DETECT ENTER, EXIT", "FOR 1 min", "[RANGE 1 hour]"]
)
def test_where_rows_are_kept_without_their_feature_tags_are_refused(clause):
    text = f"SELECT r.name {JOIN} {clause}"
    if clause == "outer":
        text = f"SELECT * FROM (SELECT r.name {JOIN}) x WHERE x.name = 'a'"
    elif clause[0] == "[":
        text = f"SELECT r.name {JOIN}".replace(" s t", f" s {clause} t")
    with pytest.raises(
        (QueryError, TextError), match="columns of tags or the distance"
    ):
        plan_from_json(json.dumps(plan_of(text).to_json()))
