"""EXISTS and NOT EXISTS about the stream itself: objects that have a partner, or none, each once (G9, X12)."""

import json

import pytest

from st_common.errors import QueryError
from st_common.query.builder import query
from st_common.query.explain import explain, lines
from st_common.query.plan_json import plan_from_json
from st_common.query.text import TextError, parse, to_text
from tests.kit.by_hand import clock, drop, end, fix, gone, log, register
from tests.kit.laws import run_steps
from tests.kit.oracle_rows import Rules
from tests.kit.strategies import Case, Segmentation

NEAR = "EXISTS (SELECT 1 FROM s b WHERE ST_DWithin(a, b, 10 m))"
HOW = [{}, {"cuts": (2, 4, 6)}, {"shards": 3, "restarts": frozenset({0, 1})}]


def plan_of(text):
    (statement,) = parse(f"REGISTER QUERY q AS {text}")
    return statement.plan


def told(text, rows, cuts=(), **how):
    rows = [register("q", plan_of(text)), *rows, end()]
    case = Case(rows=tuple(log(*rows)), layers={}, rules=Rules(tick_us=1_000_000))
    changes, _, _ = run_steps(case, Segmentation(cuts=cuts, batches=()), **how)
    shown = changes.to_pylist()
    assert all(row["partner"] is None for row in shown)
    return [
        f"{row['event_ts'].timestamp():g} {'-=+'[row['sign'] + 1]}{row['object']} {row['cause']}"
        for row in shown
    ]


ROWS = [
    fix("a", 1, 0, 0),
    fix("b", 1, 50, 0),
    fix("b", 2, 5, 0),
    fix("c", 3, 8, 0),
    fix("b", 4, 60, 0),
    gone("c", 5),
]


@pytest.mark.spec("G9", "X12")
@pytest.mark.parametrize("how", HOW)
def test_an_object_comes_with_its_first_partner_and_goes_with_its_last(how):
    assert told(f"SELECT * FROM s a WHERE {NEAR}", ROWS, **how) == [
        "2 +a enter",
        "2 +b enter",
        "3 +c enter",
        "4 -b leave",
        "5 -a leave",
        "5 -c gone",
    ]


@pytest.mark.spec("G9", "X12")
@pytest.mark.parametrize("how", HOW)
def test_an_object_is_alone_from_its_first_fix_or_when_its_last_partner_goes(how):
    assert told(f"SELECT * FROM s a WHERE NOT {NEAR}", ROWS, **how) == [
        "1 +a enter",
        "1 +b enter",
        "2 -a leave",
        "2 -b leave",
        "4 +b enter",
        "5 +a enter",
    ]


@pytest.mark.spec("X12", "W6")
def test_what_stands_above_members_stands_above_those_that_are_chosen():
    count = told(f"SELECT COUNT(*) FROM s a WHERE NOT {NEAR}", ROWS)
    assert [line.split()[0] for line in count] == ["1", "2", "2", "4", "4", "5", "5"]
    inside = f"SELECT * FROM s a WHERE NOT {NEAR} INSIDE ('M', 'a', 55)"
    assert told(inside, ROWS) == ["1 +b enter", "2 -b leave"]
    rows = f"SELECT COUNT(*) FROM (SELECT * FROM s a WHERE {NEAR}) r WHERE object = 'b'"
    assert len(told(rows, ROWS)) == 5
    again = told(f"SELECT RSTREAM(*) FROM s a WHERE {NEAR}", ROWS)
    assert "3 =a inside" in again


@pytest.mark.spec("X4", "X12")
@pytest.mark.parametrize(("word", "who"), [("", "ac"), ("NOT ", "b")])
def test_a_query_that_starts_or_stops_tells_who_is_chosen_and_no_pair(word, who):
    text = f"SELECT * FROM s a WHERE {word}{NEAR}"
    rows = [*ROWS[:-1], clock(6), register("late", plan_of(text)), drop("q")]
    shown = [line.split(maxsplit=1)[1] for line in told(text, rows)]
    starts = [line for line in shown if line.startswith("+") and "enter" not in line]
    stops = [line for line in shown if line.startswith("-") and "leave" not in line]
    assert starts == [f"+{name} registered" for name in who]
    assert stops == [f"-{name} dropped" for name in who]


@pytest.mark.spec("X12")
def test_what_is_asked_of_both_is_asked_in_it():
    text = (
        "SELECT * FROM s a WHERE a.x < 20 AND {}EXISTS (SELECT 1 FROM s b "
        "WHERE ST_DWithin(a, b, 10 m) AND b.x > 4 AND a.x < b.x AND distance(a, b) > 6)"
    )
    assert told(text.format(""), ROWS) == ["3 +a enter", "5 -a leave"]
    alone = told(text.format("NOT "), ROWS)
    assert alone[:2] == ["1 +a enter", "2 +b enter"]
    assert "3 -a leave" in alone


@pytest.mark.spec("B14", "B16", "X12")
def test_text_builder_and_json_say_the_same():
    text = (
        "SELECT * FROM s a WHERE NOT EXISTS (SELECT * FROM s b WHERE ST_DWithin(a, b, 5 m) AND a.line = b.line "
        "AND b.state = 'free' AND a.x > b.x) AND speed_mps > 1 INSIDE (0, 0, 9, 9)"
    )
    plan = plan_of(text)
    built = (
        query("s")
        .not_exists_other()
        .on_dwithin("5 m")
        .and_equal("line")
        .where("speed_mps > 1 AND other.state = 'free' AND x > other.x")
        .inside((0, 0, 9, 9))
    )
    assert built.build() == plan == plan_from_json(json.dumps(plan.to_json()))
    canonical = to_text(plan, "q")
    assert canonical.endswith(
        "WHERE speed_mps > 1 AND NOT EXISTS (SELECT 1 FROM s other WHERE ST_DWithin(s, other, 5 m) "
        "AND s.line = other.line AND other.state = 'free' AND s.x > other.x) INSIDE (0, 0, 9, 9)"
    )
    assert parse(canonical)[0].plan == plan
    shown = "\n".join(lines(explain(plan, "q")))
    words = "not exists objects without another one: within 5 m, equal line"
    assert words in shown
    assert "select of both: s.x > other.x" in shown
    assert query("s").exists_other().on_equal("line").build().pairs.how == "semi"


@pytest.mark.spec("P4", "X12")
@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        (
            "SELECT * FROM s a WHERE EXISTS (SELECT 1 FROM s b WHERE b.x > 1)",
            "expected a distance or a key in EXISTS",
            "b.x > 1",
        ),
        (
            f"SELECT * FROM s a WHERE {NEAR[:-1]} AND speed > 1)",
            "expected a column of one of the two",
            "speed > 1",
        ),
        (
            f"SELECT * FROM s a WHERE NOT {NEAR[:-1]} AND a.x > 1)",
            "in NOT EXISTS a condition names what is joined",
            "a.x > 1",
        ),
        (f"SELECT b.x FROM s a WHERE {NEAR}", "unknown name 'b'", "b.x"),
        (
            f"SELECT * FROM s a WHERE {NEAR} AND NOT {NEAR}",
            "a query joins one layer",
            "NOT",
        ),
        (
            "SELECT * FROM s a WHERE EXISTS (SELECT 1 FROM s b WHERE ST_Within(a, b))",
            "ST_Within needs a layer",
            "ST_Within",
        ),
    ],
)
def test_what_cannot_be_said_is_pointed_at(text, message, place):
    with pytest.raises(TextError) as refused:
        parse(f"REGISTER QUERY q AS {text}")
    problem = refused.value.problems[0]
    assert problem.message.startswith(message)
    assert problem.column == len("REGISTER QUERY q AS ") + text.rindex(place) + 1


@pytest.mark.spec("X12")
@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("KNN (1, 0, 0)", "KNN and EXISTS about the stream itself exclude each other"),
        ("WINDOW 5 s", "WINDOW and EXISTS about the stream itself exclude each other"),
        (
            "INSIDE (0, 0, 9, 9) DETECT ENTER",
            "EXISTS about the stream itself and DETECT",
        ),
        ("INSIDE (0, 0, 9, 9) FOR 5 s", "FOR and EXISTS about the stream itself"),
    ],
)
def test_what_has_no_meaning_is_refused_by_name(clause, message):
    plan = plan_of(f"SELECT * FROM s a WHERE {NEAR} {clause}")
    with pytest.raises(QueryError, match=message):
        plan_from_json(json.dumps(plan.to_json()))


@pytest.mark.spec("B8", "X12")
@pytest.mark.parametrize(
    "beside", ["COMPARE WITH (1, 0, 6, 6)", "USING key('c'), key('a')"]
)
def test_what_is_asked_of_the_box_of_a_fix_is_asked_in_a_region_that_moves(beside):
    near, pair = (
        f"SELECT * FROM s a WHERE {NEAR}",
        "SELECT * FROM s a JOIN s b ON ST_DWithin(a, b, 10 m)",
    )
    rows = [fix("a", 1, 8, 0.5), fix("c", 1, 6.5, 0), fix("e", 2, 5, 0)]
    inside = "INSIDE ('M', 'a', 7, 7)"
    who = ["2 +e enter"] if beside.startswith("COMPARE") else []
    assert told(f"{near} {inside} {beside}", rows) == who
    plan = plan_of(f"{pair} {inside} {beside}")
    case = Case(
        rows=tuple(log(register("q", plan), *rows, end())),
        layers={},
        rules=Rules(tick_us=1_000_000),
    )
    changes, _, _ = run_steps(case, Segmentation(cuts=(), batches=()))
    assert {row["object"] for row in changes.to_pylist()} == {line[3] for line in who}
