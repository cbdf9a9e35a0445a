"""EXISTS and NOT EXISTS: objects that are joined with a feature, or with none, each once; the nearest of these (G9)."""

import json

import pytest
import shapely

from st_common.query.builder import query
from st_common.query.checks import complaints_of_tree
from st_common.query.explain_steps import layer_in_words
from st_common.query.plan_json import plan_from_json
from st_common.query.text import TextError, parse, to_text
from st_common.query.tree.growing import tree_of
from tests.kit.by_hand import end, fix, layer, log, register
from tests.kit.laws import run_steps
from tests.kit.oracle_rows import Feature, Rules
from tests.kit.strategies import Case, Segmentation

IN_PARK = "EXISTS (SELECT 1 FROM parks p WHERE ST_Intersects(t, p))"


def plan_of(text):
    (statement,) = parse(f"REGISTER QUERY q AS {text}")
    return statement.plan


def park(fid, x1, x2, **tags):
    return Feature(fid, tags.pop("kind", "park"), shapely.box(x1, 0, x2, 10), tags)


PARKS = {
    ("parks", 1): [park("west", 0, 10), park("mid", 8, 20), park("east", 50, 60)],
    ("parks", 2): [park("east", 50, 60)],
}
HOW = [{}, {"cuts": (3, 6)}, {"shards": 3, "restarts": frozenset({0})}]


def told(text, rows, layers=PARKS, cuts=(), **how):
    rows = [
        layer("parks", 1),
        register("q", plan_of(text), layer_version=1),
        *rows,
        end(),
    ]
    case = Case(rows=tuple(log(*rows)), layers=layers, rules=Rules(tick_us=1_000_000))
    changes, _, _ = run_steps(case, Segmentation(cuts=cuts, batches=()), **how)
    return [
        f"{row['event_ts'].timestamp():g} {'-=+'[row['sign'] + 1]}{row['object']} {row['cause']}"
        for row in changes.to_pylist()
        if row["partner"] is None
    ]


WALK = [
    fix("a", 1, 5, 5),
    fix("b", 1, 30, 5),
    fix("a", 2, 9, 5),
    fix("b", 2, 55, 5),
    fix("a", 3, 30, 5),
    layer("parks", 2),
    fix("b", 4, 15, 5),
]


@pytest.mark.spec("G9", "X12")
@pytest.mark.parametrize("how", HOW)
def test_an_object_in_two_parks_is_there_once(how):
    assert told(f"SELECT * FROM s t WHERE {IN_PARK}", WALK, **how) == [
        "1 +a enter",
        "2 +b enter",
        "3 -a leave",
        "4 -b leave",
    ]


@pytest.mark.spec("G9", "X12")
@pytest.mark.parametrize("how", HOW)
def test_an_object_in_no_park_is_there_until_it_comes_into_one(how):
    assert told(f"SELECT * FROM s t WHERE NOT {IN_PARK}", WALK, **how) == [
        "1 +b enter",
        "2 -b leave",
        "3 +a enter",
        "4 +b enter",
    ]


@pytest.mark.spec("G9", "X4")
@pytest.mark.parametrize(
    ("word", "sign"), [("", "-"), ("NOT ", "+")], ids=["exists", "not exists"]
)
def test_another_version_of_the_layer_chooses_others(word, sign):
    rows = [
        fix("a", 1, 5, 5),
        fix("b", 1, 55, 5),
        fix("b", 3, 55, 5),
        layer("parks", 2),
    ]
    for text in (
        f"SELECT * FROM s t WHERE {word}{IN_PARK}",
        f"SELECT * FROM s t WHERE {word}{IN_PARK} KNN (2, 0, 0)",
    ):
        by_layer = [line for line in told(text, rows) if line.endswith(" layer")]
        assert by_layer == [f"3 {sign}a layer"]


@pytest.mark.spec("P7", "G5", "X12")
@pytest.mark.parametrize("how", HOW)
def test_the_nearest_of_those_in_a_park(how):
    rows = [
        fix("out", 1, 30, 5),
        fix("far", 1, 55, 5),
        fix("near", 1, 20, 5),
        fix("near", 2, 21, 5),
        fix("out", 3, 19, 5),
        fix("far", 3, 55, 5),
    ]
    knn = f"SELECT * FROM s t WHERE {IN_PARK} KNN (1, 30, 5)"
    assert told(knn, rows, **how) == [
        "1 +near enter",
        "2 +far enter",
        "2 -near leave",
        "3 -far leave",
        "3 +out enter",
    ]


@pytest.mark.spec("P7", "G5", "X12")
def test_the_nearest_to_an_object_of_those_in_no_park_and_around_it():
    rows = [
        fix("me", 1, 30, 5),
        fix("a", 1, 20, 5),
        fix("b", 1, 40, 5),
        fix("c", 1, 26, 5),
        fix("c", 2, 15, 5),
    ]
    near = f"SELECT * FROM s t WHERE NOT {IN_PARK} KNN ('M', 1, 'me')"
    assert told(near, rows) == ["1 +c enter", "2 +b enter", "2 -c leave"]
    around = f"SELECT * FROM s t WHERE {IN_PARK} INSIDE ('M', 'me', 12)"
    assert told(around, rows) == ["1 +a enter"]


@pytest.mark.spec("X12", "X8")
def test_what_is_asked_of_both_is_asked_in_it():
    layers = {("parks", 1): [park("slow", 0, 100, maxspeed="18")]}
    rows = [
        fix("a", at, x, 5) for at, x in ((1, 0), (2, 3), (3, 10), (4, 90), (5, 200))
    ]
    asked = "ST_Intersects(t, p) AND t.speed_mps > p.maxspeed"
    fast = f"SELECT * FROM s t WHERE {{}}EXISTS (SELECT 1 FROM parks p WHERE {asked})"
    assert told(fast.format(""), rows, layers) == ["3 +a enter", "5 -a leave"]
    assert told(fast.format("NOT "), rows, layers) == [
        "1 +a enter",
        "3 -a leave",
        "5 +a enter",
    ]
    out = f"SELECT * FROM s t WHERE NOT {IN_PARK} FOR 2 fixes"
    assert told(out, [*rows, fix("a", 6, 300, 5)], layers) == ["6 +a started"]


@pytest.mark.spec("B14", "B16", "X12")
def test_text_builder_and_json_say_the_same():
    text = (
        "SELECT * FROM s t WHERE NOT EXISTS (SELECT * FROM parks p WHERE ST_DWithin(t, p, 5 m) "
        "AND p.kind = 'a' AND t.speed_mps > p.maxspeed) AND speed_mps > 1 KNN (3, 1, 2)"
    )
    plan = plan_of(text)
    built = (
        query("s")
        .not_exists("parks", "p")
        .on_dwithin("5 m")
        .kinds("a")
        .where("speed_mps > 1 AND speed_mps > p.maxspeed")
        .nearest(3, 1, 2)
    )
    assert built.build() == plan == plan_from_json(json.dumps(plan.to_json()))
    canonical = to_text(plan, "q")
    assert canonical.endswith(
        "WHERE speed_mps > 1 AND NOT EXISTS (SELECT 1 FROM parks WHERE ST_DWithin(s, parks, 5 m) "
        "AND parks.kind = 'a' AND speed_mps > parks.\"maxspeed in m/s\") KNN (3, 1, 2)"
    )
    assert parse(canonical)[0].plan == plan
    words = "objects without a feature, layer parks of kind a: within 5 m"
    assert layer_in_words(plan.join) == words


@pytest.mark.spec("P4", "X12")
@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        (
            f"SELECT * FROM s t WHERE x > 1 OR {IN_PARK}",
            "EXISTS stands in WHERE",
            "EXISTS",
        ),
        (f"SELECT p.fid FROM s t WHERE {IN_PARK}", "unknown name 'p'", "p.fid"),
        (
            f"SELECT * FROM s t WHERE {IN_PARK} AND p.kind = 'a'",
            "unknown name 'p'",
            "p.kind",
        ),
        (
            f"SELECT * FROM s t WHERE NOT {IN_PARK[:-1]} AND x > 1)",
            "in NOT EXISTS a condition names what is joined",
            "x > 1",
        ),
        (
            f"SELECT * FROM s t JOIN roads r ON ST_Intersects(t, r) WHERE {IN_PARK}",
            "a query joins one layer",
            "EXISTS",
        ),
        (
            f"SELECT * FROM s t WHERE {IN_PARK} AND NOT {IN_PARK}",
            "a query joins",
            "NOT",
        ),
        (
            "SELECT * FROM s t WHERE EXISTS (SELECT 1 FROM parks p WHERE x > 1)",
            "expected ST_Intersects",
            "x > 1",
        ),
    ],
)
def test_what_cannot_be_said_is_pointed_at(text, message, place):
    with pytest.raises(TextError) as refused:
        parse(f"REGISTER QUERY q AS {text}")
    problem = refused.value.problems[0]
    assert problem.message.startswith(message)
    at = len("REGISTER QUERY q AS ") + text.rindex(place)
    assert problem.column == at + 1


@pytest.mark.spec("X12")
@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("USING enlarge(5 m)", "EXISTS and USING exclude each other"),
        ("COMPARE WITH (0, 0, 1, 1)", "EXISTS and COMPARE WITH exclude each other"),
        ("INSIDE (0, 0, 9, 9) DETECT ENTER", "EXISTS and DETECT exclude each other"),
        ("DETECT ENTER", "DETECT needs INSIDE, or a JOIN with a layer"),
        (
            "INSIDE (0, 0, 9, 9) EMIT CHANGES WITH VALID UNTIL",
            "WITH VALID UNTIL and EXISTS exclude each other",
        ),
    ],
)
def test_what_has_no_meaning_is_refused(clause, message):
    plan = plan_of(f"SELECT * FROM s t WHERE {IN_PARK} {clause}")
    assert message in [one.message for one in complaints_of_tree(tree_of(plan))]
