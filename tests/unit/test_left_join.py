"""LEFT JOIN with a layer: pairs, and objects without a feature, which have no partner (G9, X12)."""

import json

import pytest

from st_common.errors import QueryError
from st_common.query.builder import query
from st_common.query.plan_json import plan_from_json
from st_common.query.text import TextError, parse, to_text
from tests.kit.by_hand import clock, end, fix, gone, layer, register
from tests.kit.roads import plan_of, road, told_of

pytestmark = pytest.mark.spec("G9", "X12")
HOW = [{}, {"cuts": (2, 4, 5)}, {"shards": 3, "restarts": frozenset({0})}]
LEFT = "FROM s t LEFT JOIN roads r ON ST_DWithin(t, r, 5 m)"
ROADS = [
    road("town", 0, name="High Street", lanes="2"),
    road("lane", 3, lanes="1"),
]
ROWS = [fix("a", 1, 1, 1), fix("b", 1, 1, 50), fix("a", 3, 1, 90), gone("b", 4)]


def said(row):
    shown = row["fields"] or ("" if row["value"] is None else f"{row['value']:g}")
    return f"{row['object']}|{row['partner'] or ''} {shown}".rstrip()


def told(text, rows, layers=None, **how):
    asked = [layer("roads", 1), register("q", plan_of(text), layer_version=1)]
    known = {("roads", 1): ROADS, **(layers or {})}
    return told_of([*asked, *rows, end()], known, said, **how)


@pytest.mark.parametrize("how", HOW)
def test_who_is_at_no_feature_is_there_without_one(how):
    assert told(f"SELECT r.name {LEFT}", ROWS, **how) == [
        '1 +a|lane {"name":null}',
        '1 +a|town {"name":"High Street"}',
        '1 +b| {"name":null}',
        '3 -a|lane {"name":null}',
        '3 -a|town {"name":"High Street"}',
        '3 +a| {"name":null}',
        '4 -b| {"name":null}',
    ]


@pytest.mark.parametrize("how", HOW)
def test_what_on_asks_of_features_leaves_no_object_out(how):
    """Where asks which objects there are."""
    text = f"SELECT * {LEFT} AND r.lanes > 1 WHERE t.object <> 'b'"
    assert told(text, ROWS, **how) == ["1 +a|town", "3 -a|town", "3 +a|"]


@pytest.mark.parametrize("how", HOW)
def test_objects_without_a_feature_are_a_group(how):
    text = f"SELECT r.fid, COUNT(*) {LEFT} GROUP BY r.fid"
    assert told(text, ROWS, **how) == [
        "1 +NULL| 1",
        "1 +lane| 1",
        "1 +town| 1",
        "3 -NULL| 1",
        "3 +NULL| 2",
        "3 -lane| 1",
        "3 -town| 1",
        "4 -NULL| 2",
        "4 +NULL| 1",
    ]


@pytest.mark.parametrize("how", HOW)
def test_another_version_of_the_layer_gives_and_takes_features(how):
    rows = [
        fix("a", 1, 1, 50),
        clock(2),
        layer("roads", 2),
        clock(3),
        layer("roads", 3),
    ]
    layers = {("roads", 2): [road("new", 50)], ("roads", 3): []}
    assert told(f"SELECT * {LEFT}", rows, layers, **how) == [
        "1 +a|",
        "2 -a|",
        "2 +a|new",
        "3 -a|new",
        "3 +a|",
    ]


def test_text_builder_and_json_say_the_same():
    text = f"SELECT * {LEFT} AND r.kind = 'road' AND r.lanes > 1 WHERE t.kind = 'bus'"
    plan = plan_of(text)
    assert plan.join.how == "left"
    (again,) = parse(to_text(plan, "q"))
    assert again.plan == plan
    assert plan_from_json(json.dumps(plan.to_json())) == plan
    joined = query("s").left_join("roads", "r").on_dwithin(5).kinds("road")
    built = joined.where("s.kind = 'bus' AND r.lanes > 1")
    assert built.plan == plan
    assert plan == plan_of(text.replace("LEFT JOIN", "left outer join"))


@pytest.mark.parametrize(
    ("rest", "says"),
    [
        (
            "WHERE r.name IS NULL",
            "in WHERE of LEFT JOIN a condition is about the object",
        ),
        ("AND t.kind = 'bus'", "in ON of LEFT JOIN a condition names r, and this"),
    ],
)
def test_what_belongs_to_the_other_clause_is_refused(rest, says):
    with pytest.raises(TextError, match=says):
        plan_of(f"SELECT * {LEFT} {rest}")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"SELECT * {LEFT} DETECT ENTER", "DETECT and LEFT JOIN exclude"),
        (f"SELECT * {LEFT} FOR 1 min", "FOR and LEFT JOIN exclude"),
        (
            f"SELECT * {LEFT.replace('s t', 's [RANGE 1 hour] t')}",
            "a window in brackets and LEFT JOIN exclude",
        ),
    ],
)
def test_what_needs_a_feature_is_refused(text, says):
    with pytest.raises((QueryError, TextError), match=says):
        plan_from_json(json.dumps(plan_of(text).to_json()))
