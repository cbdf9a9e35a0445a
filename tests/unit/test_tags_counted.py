"""Aggregates about features: their tags, and how far they are, of the version of the layer that counts (X12, G9)."""

import json

import pytest

from st_common.query.plan_json import plan_from_json
from st_common.query.text import TextError, parse, to_text
from tests.kit.by_hand import clock, end, fix, gone, layer, register
from tests.kit.roads import JOIN, plan_of, road, told_of

pytestmark = pytest.mark.spec("X12", "G9")
HOW = [
    {},
    {"cuts": (2, 4, 5)},
    {"cuts": (3, 5), "shards": 3, "restarts": frozenset({0})},
]
ROADS = [
    road("town", 0, name="High Street", maxspeed="50", lanes="2"),
    road("lane", 3, maxspeed="walk", lanes="1"),
]
WIDER = [
    road("town", 0, name="High Street", maxspeed="50", lanes="4"),
    road("lane", 4, maxspeed="walk", lanes="1"),
]


def said(row):
    shown = row["value"] if row["fields"] is None else row["fields"]
    return f"{row['object']} {shown}"


def told(text, rows, layers=None, **how):
    asked = [layer("roads", 1), register("q", plan_of(text), layer_version=1)]
    known = {("roads", 1): ROADS, **(layers or {})}
    return told_of([*asked, *rows, end()], known, said, **how)


@pytest.mark.parametrize("how", HOW)
def test_a_value_follows_each_fix_of_whoever_stays(how):
    """`a` is 1 and 2 m from the streets, then 2.5 and 0.5 m; `b` is at one and 3 m from the other."""
    text = f"SELECT MAX(distance(t, r)) {JOIN}"
    rows = [fix("a", 1, 1, 1), fix("a", 2, 1, 2.5), fix("b", 3, 1, 0), gone("b", 4)]
    assert told(text, rows, **how) == [
        "1 +* 2.0",
        "2 -* 2.0",
        "2 +* 2.5",
        "3 -* 2.5",
        "3 +* 3.0",
        "4 -* 3.0",
        "4 +* 2.5",
    ]


@pytest.mark.parametrize("how", HOW)
def test_another_version_of_the_layer_tells_what_became_another_value(how):
    text = f"SELECT SUM(r.lanes * 1) AS lanes, MAX(distance(t, r)) AS far {JOIN}"
    rows = [fix("a", 1, 1, 1), clock(2), layer("roads", 2), fix("a", 3, 1, 90)]
    assert told(text, rows, {("roads", 2): WIDER}, **how) == [
        '1 +* {"lanes":3.0,"far":2.0}',
        '2 -* {"lanes":3.0,"far":2.0}',
        '2 +* {"lanes":5.0,"far":3.0}',
        '3 -* {"lanes":5.0,"far":3.0}',
        '3 +* {"lanes":null,"far":null}',
    ]


@pytest.mark.parametrize("how", HOW)
def test_the_nearest_of_each_feature_are_the_first_of_its_groups(how):
    text = (
        f"SELECT r.fid AS street, t.object AS car, MIN(distance(t, r)) AS far {JOIN}"
        " GROUP BY r.fid, t.object ORDER BY far ASC LIMIT 1 PER street"
    )
    rows = [fix("a", 1, 1, 1), fix("b", 2, 1, 2), fix("a", 3, 1, 5)]
    shown = [line.partition(" {") for line in told(text, rows, **how)]
    assert [(when[:3], *json.loads(f"{{{row}").values()) for when, _, row in shown] == [
        ("1 +", "lane", "a", 2.0),
        ("1 +", "town", "a", 1.0),
        ("2 -", "lane", "a", 2.0),
        ("2 +", "lane", "b", 1.0),
        ("3 -", "town", "a", 1.0),
        ("3 +", "town", "b", 2.0),
    ]


@pytest.mark.parametrize("how", HOW)
def test_rows_with_tags_are_asked_about(how):
    text = (
        f"SELECT * FROM (SELECT r.name, distance(t, r) AS far {JOIN}) x WHERE x.far < 2"
    )
    rows = [fix("a", 1, 1, 1), fix("a", 2, 1, 2), fix("a", 3, 1, 90)]
    assert told(text, rows, **how) == [
        '1 +a {"name":"High Street","far":1.0}',
        '2 -a {"name":"High Street","far":1.0}',
        '2 +a {"name":null,"far":1.0}',
        '3 -a {"name":null,"far":1.0}',
    ]


@pytest.mark.parametrize(
    ("text", "means"),
    [
        (
            f"SELECT r.kind, AVG(t.speed_mps - r.maxspeed) AS over {JOIN} GROUP BY r.kind",
            'SELECT "r.kind", AVG("t.speed_mps - r.maxspeed") AS over FROM (SELECT'
            f' t.speed_mps - r.maxspeed AS "t.speed_mps - r.maxspeed", r.kind AS "r.kind" {JOIN}) GROUP BY "r.kind"',
        ),
        (
            f"SELECT COUNT(DISTINCT r.name) {JOIN}",
            f'SELECT COUNT(DISTINCT "r.name") FROM (SELECT r.name AS "r.name" {JOIN})',
        ),
    ],
)
def test_it_is_asked_of_the_rows_of_the_pairs(text, means):
    plan = plan_of(text)
    assert plan == plan_of(means)
    (again,) = parse(to_text(plan, "q"))
    assert again.plan == plan
    assert plan_from_json(json.dumps(plan.to_json())) == plan


@pytest.mark.parametrize(
    ("clause", "says"),
    [
        ("WINDOW 1 min", "has no place here"),
        ("DETECT ENTER", "has no place here"),
        ("FOR 1 min", "is not told of an incident"),
    ],
)
def test_where_features_are_known_without_their_tags_it_is_refused(clause, says):
    with pytest.raises(TextError, match=says):
        plan_of(f"SELECT AVG(distance(t, r)) {JOIN} {clause}")
