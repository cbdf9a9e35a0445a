"""NEAREST in a JOIN of a stream with itself: the nearest others of each object, among those that pair with it."""

import json

import pytest

from st_common.errors import QueryError
from st_common.query.builder import query
from st_common.query.explain import explain, lines
from st_common.query.plan import PairJoin
from st_common.query.plan_json import plan_from_json
from st_common.query.text import TextError, parse, to_text
from tests.kit.by_hand import end, fix, gone, log, register
from tests.kit.laws import run_steps
from tests.kit.oracle_rows import Rules
from tests.kit.strategies import Case, Segmentation

NEAR = "FROM s a JOIN s b ON ST_DWithin(a, b, 10 m) AND NEAREST(a, b, 1)"
HOW = [{}, {"cuts": (2, 4, 6)}, {"shards": 3, "restarts": frozenset({0, 1})}]


def plan_of(text):
    (statement,) = parse(f"REGISTER QUERY q AS {text}")
    return statement.plan


def told(text, rows, cuts=(), **how):
    rows = [register("q", plan_of(text)), *rows, end()]
    case = Case(rows=tuple(log(*rows)), layers={}, rules=Rules(tick_us=1_000_000))
    changes, _, _ = run_steps(case, Segmentation(cuts=cuts, batches=()), **how)
    return [
        f"{row['event_ts'].timestamp():g} {'-=+'[row['sign'] + 1]}{row['object']}{row['partner']} {row['cause']}"
        for row in changes.to_pylist()
    ]


ROWS = [
    fix("a", 1, 0, 0),
    fix("b", 1, 6, 0),
    fix("c", 2, 2, 0),  # nearer to a than b is, and to b than a is
    fix("d", 3, 4, 0),  # b and c are as far: b is first by its id
    gone("c", 4),
    fix("d", 5, 50, 0),
]


@pytest.mark.spec("X12", "G5", "G9")
@pytest.mark.parametrize("how", HOW)
def test_each_object_pairs_with_the_nearest_other_one(how):
    assert told(f"SELECT * {NEAR}", ROWS, **how) == [
        "1 +ab enter",
        "1 +ba enter",
        "2 -ab leave",
        "2 +ac enter",
        "2 -ba leave",
        "2 +bc enter",
        "2 +ca enter",
        "3 -bc leave",
        "3 +bd enter",
        "3 +db enter",
        "4 -ac gone",
        "4 +ad enter",
        "4 -ca gone",
        "5 -ad leave",
        "5 +ab enter",
        "5 -bd leave",
        "5 +ba enter",
        "5 -db leave",
    ]


@pytest.mark.spec("X12", "G9")
def test_who_is_nearest_is_asked_among_those_of_whom_the_condition_holds():
    rows = [
        fix("a", 1, 0, 0, kind="taxi"),
        fix("b", 1, 2, 0, kind="bus"),
        fix("c", 1, 3, 0, kind="taxi"),
        fix("d", 1, 4, 0, kind="taxi", load=9.0),
    ]
    free = f"SELECT * {NEAR} WHERE b.kind = 'taxi'"
    assert told(free, rows) == [
        "1 +ac enter",
        "1 +bc enter",
        "1 +cd enter",
        "1 +dc enter",
    ]
    both = f"SELECT * {NEAR} WHERE a.kind = 'bus' AND distance(a, b) > 1"
    assert told(both, rows) == ["1 +ba enter"]  # c is nearer, and too near
    alike = "SELECT * FROM s a JOIN s b ON a.kind = b.kind AND NEAREST(a, b, 1)"
    assert told(alike, rows) == ["1 +ac enter", "1 +cd enter", "1 +dc enter"]
    counted = f"SELECT COUNT(*) {NEAR}"
    assert told(counted, rows)[-1].startswith("1 +*")


@pytest.mark.spec("X12", "G9", "P13")
@pytest.mark.parametrize("how", HOW)
def test_without_a_distance_or_a_key_all_others_are_looked_at(how):
    """Nobody is near to e, and its nearest is far; of d alone holds what is asked of the other one."""
    rows = [fix("e", 1, 5_000, 0), *ROWS]
    alone = "SELECT * FROM s a JOIN s b ON NEAREST(a, b, 1)"
    assert told(alone, rows[:2], **how) == ["1 +ae enter", "1 +ea enter"]
    assert "5 +ed enter" in told(alone, rows, **how)
    many = [fix(f"n{n:02}", 1, n, 0) for n in range(40)]
    far = [*many, fix("z", 1, 900, 0, kind="taxi")]
    kept = told(f"{alone} WHERE b.kind = 'taxi'", far, **how)
    assert kept == [f"1 +n{n:02}z enter" for n in range(40)]


@pytest.mark.spec("X12", "B14")
def test_it_is_said_in_texts_in_json_and_in_python():
    said = plan_of(
        "SELECT * FROM s a JOIN s b ON ST_DWithin(a, b, 10 m) AND a.kind = b.kind AND NEAREST(a, b, 2)"
    )
    assert said.pairs == PairJoin(distance_m=10.0, keys=("kind",), nearest=2)
    assert plan_from_json(json.dumps(said.to_json())) == said
    assert plan_of(to_text(said, "q").partition(" AS ")[2]) == said
    built = query("s").join("s").on_dwithin(10).and_equal("kind").and_nearest(2)
    assert built.build() == said
    alone = query("s").join("s").on_nearest(2).build()
    assert plan_of("SELECT * FROM s a JOIN s b ON NEAREST(a, b, 2)") == alone
    assert plan_from_json(json.dumps(alone.to_json())) == alone
    assert plan_of(to_text(alone, "q").partition(" AS ")[2]) == alone
    assert any("the 2 nearest" in line for line in lines(explain(said, "q")))


@pytest.mark.spec("P4", "X12")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"SELECT * {NEAR.replace('1)', '0)')}", "a number from 1 to 10,000"),
        (
            f"SELECT * {NEAR.replace('NEAREST(a, b', 'NEAREST(a, c')}",
            "NEAREST is of the two",
        ),
        (f"SELECT * {NEAR} AND NEAREST(a, b, 2)", "expected a distance or a key"),
        (f"SELECT * {NEAR} INSIDE ('M', 'x', 5 m)", "exclude each other"),
        (
            "SELECT * FROM s a WHERE EXISTS (SELECT 1 FROM s b WHERE ST_DWithin(a, b, 9 m) AND NEAREST(a, b, 1))",
            "NEAREST",
        ),
    ],
)
def test_what_has_no_meaning_is_refused(text, message):
    with pytest.raises((TextError, QueryError), match=message):
        plan_from_json(json.dumps(plan_of(text).to_json()))


@pytest.mark.spec("P4")
def test_a_builder_refuses_what_a_text_would():
    near = query("s").join("s").on_dwithin(10)
    with pytest.raises(QueryError, match="whole number from 1"):
        near.and_nearest(0)
    with pytest.raises(QueryError, match="not joined with itself"):
        query("s").and_nearest(1)


def test_a_query_for_the_nearest_takes_no_pairs_from_one_whose_region_moved():
    moving = (
        "SELECT * FROM s a JOIN s b ON ST_DWithin(a, b, 10 m) INSIDE ('M', 'f', 20 m)"
    )
    rows = [
        fix("f", 1, 100, 0),
        fix("a", 2, 0, 0),
        fix("b", 2, 2, 0),
        fix("f", 3, 0, 15),  # no other fix: the circle comes to a and b
    ]
    alone = told(moving, rows)
    assert alone == ["3 +ab enter", "3 +ba enter"]
    beside = [register("near", plan_of(f"SELECT * {NEAR}"))]
    assert [row for row in told(moving, [*beside, *rows]) if row in alone] == alone
