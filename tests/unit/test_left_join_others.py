"""LEFT JOIN of a stream with itself: pairs, and objects without another one, which have no partner (G9, X12)."""

import json

import pytest

from st_common.query.builder import query
from st_common.query.explain import explain, lines
from st_common.query.plan_json import plan_from_json
from st_common.query.text import TextError, parse, to_text
from tests.kit.by_hand import (
    clock,
    drop,
    end,
    fix,
    gone,
    log,
    register,
)
from tests.kit.laws import run_steps
from tests.kit.oracle_rows import Rules
from tests.kit.rows_told import plan_of
from tests.kit.strategies import Case, Segmentation

pytestmark = pytest.mark.spec("G9", "X12")
HOW = [{}, {"cuts": (2, 4, 6)}, {"shards": 3, "restarts": frozenset({0, 1})}]
LEFT = "FROM s a LEFT JOIN s b ON ST_DWithin(a, b, 10 m)"
ROWS = [
    fix("a", 1, 0, 0, kind="bus"),
    fix("b", 1, 50, 0, kind="tram"),
    fix("b", 2, 5, 0, kind="tram"),
    fix("c", 3, 8, 0, kind="bus"),
    fix("b", 4, 60, 0, kind="tram"),
    gone("c", 5),
]


def said(row):
    shown = row["fields"] or ("" if row["value"] is None else f"{row['value']:g}")
    sign = "-=+"[row["sign"] + 1]
    who = f"{row['object']}|{row['partner'] or ''}"
    return f"{row['event_ts'].timestamp():g} {sign}{who} {shown}".rstrip()


def told(text, rows=ROWS, cuts=(), **how):
    steps = [register("q", plan_of(text)), *rows, end()]
    case = Case(rows=tuple(log(*steps)), layers={}, rules=Rules(tick_us=1_000_000))
    changes, _, _ = run_steps(case, Segmentation(cuts=cuts, batches=()), **how)
    return [said(row) for row in changes.to_pylist()]


@pytest.mark.parametrize("how", HOW)
def test_who_has_no_other_one_is_there_without(how):
    """`b` comes near to `a`, then `c` to both; `b` drives off, and `c` is gone."""
    assert told(f"SELECT b.kind, distance(a, b) AS m {LEFT}", **how) == [
        '1 +a| {"kind":null,"m":null}',
        '1 +b| {"kind":null,"m":null}',
        '2 -a| {"kind":null,"m":null}',
        '2 +a|b {"kind":"tram","m":5.0}',
        '2 -b| {"kind":null,"m":null}',
        '2 +b|a {"kind":"bus","m":5.0}',
        '3 +a|c {"kind":"bus","m":8.0}',
        '3 +b|c {"kind":"bus","m":3.0}',
        '3 +c|a {"kind":"bus","m":8.0}',
        '3 +c|b {"kind":"tram","m":3.0}',
        '4 -a|b {"kind":"tram","m":60.0}',
        '4 -b|a {"kind":"bus","m":60.0}',
        '4 -b|c {"kind":"bus","m":52.0}',
        '4 +b| {"kind":null,"m":null}',
        '4 -c|b {"kind":"tram","m":52.0}',
        '5 -a|c {"kind":"bus","m":8.0}',
        '5 +a| {"kind":null,"m":null}',
        '5 -c|a {"kind":"bus","m":8.0}',
    ]


@pytest.mark.parametrize("how", HOW)
def test_what_on_asks_of_others_leaves_no_object_out(how):
    """WHERE asks which objects there are."""
    text = f"SELECT * {LEFT} AND b.kind = 'bus' WHERE a.object <> 'c'"
    assert told(text, **how) == [
        *("1 +a|", "1 +b|"),
        *("2 -b|", "2 +b|a"),
        *("3 -a|", "3 +a|c", "3 +b|c"),
        *("4 -b|a", "4 -b|c", "4 +b|"),
        *("5 -a|c", "5 +a|"),
    ]


@pytest.mark.spec("G5")
@pytest.mark.parametrize("how", HOW)
def test_the_nearest_other_one_or_none(how):
    text = f"SELECT * {LEFT} AND NEAREST(a, b, 1)"
    assert told(text, **how) == [
        *("1 +a|", "1 +b|"),
        *("2 -a|", "2 +a|b", "2 -b|", "2 +b|a"),
        *("3 -b|a", "3 +b|c", "3 +c|b"),
        *("4 -a|b", "4 +a|c", "4 -b|c", "4 +b|", "4 -c|b", "4 +c|a"),
        *("5 -a|c", "5 +a|", "5 -c|a"),
    ]


@pytest.mark.parametrize("how", HOW)
def test_objects_without_another_one_are_a_group(how):
    text = f"SELECT b.kind, COUNT(*) AS n {LEFT} GROUP BY b.kind"
    counts = [line for line in told(text, **how) if "+" in line]
    assert counts == [
        '1 +NULL| {"b.kind":null,"n":2}',
        '2 +bus| {"b.kind":"bus","n":1}',
        '2 +tram| {"b.kind":"tram","n":1}',
        '3 +bus| {"b.kind":"bus","n":4}',
        '3 +tram| {"b.kind":"tram","n":2}',
        '4 +NULL| {"b.kind":null,"n":1}',
        '4 +bus| {"b.kind":"bus","n":2}',
        '5 +NULL| {"b.kind":null,"n":2}',
    ]


@pytest.mark.spec("X4")
def test_a_query_that_starts_or_stops_tells_pairs_and_who_is_alone():
    text = f"SELECT * {LEFT}"
    rows = [*ROWS[:4], clock(4), register("late", plan_of(text)), drop("q")]
    rows += [fix("d", 5, 99, 0), clock(6), drop("late")]
    pairs = ["a|b", "a|c", "b|a", "b|c", "c|a", "c|b"]
    last = told(text, rows)[-20:]
    assert sorted(last[:12]) == sorted(
        f"4 {sign}{two}" for sign in "+-" for two in pairs
    )
    assert last[12] == "5 +d|"
    assert sorted(last[13:]) == [f"6 -{row}" for row in [*pairs, "d|"]]


def test_text_builder_and_json_say_the_same():
    text = (
        f"SELECT b.object AS near {LEFT} AND a.kind = b.kind AND NEAREST(a, b, 2)"
        " AND b.load > 1 WHERE a.kind = 'bus'"
    )
    plan = plan_of(text)
    assert plan.pairs.how == "left"
    (again,) = parse(to_text(plan, "q"))
    assert again.plan == plan
    assert plan_from_json(json.dumps(plan.to_json())) == plan
    pairs = query("s").left_join_others().on_dwithin(10).and_equal("kind")
    chosen = pairs.and_nearest(2).where("kind = 'bus' AND other.load > 1")
    assert chosen.select(near="other.object").plan == plan
    assert plan == plan_of(text.replace("LEFT JOIN", "left outer join"))


def test_a_condition_of_both_says_which_column_is_whose():
    plan = plan_of(f"SELECT * {LEFT} AND a.kind <> b.kind")
    text = to_text(plan, "q")
    assert "AND s.kind <> other.kind" in text
    (again,) = parse(text)
    assert again.plan == plan


def test_explain_says_who_is_there():
    said_of_it = "\n".join(lines(explain(plan_of(f"SELECT * {LEFT}"), "q")))
    assert "pairs of objects, and objects without another one" in said_of_it
    assert "with the other objects, or without one: within 10 m" in said_of_it


@pytest.mark.spec("P4")
@pytest.mark.parametrize(
    ("rest", "says"),
    [
        ("WHERE b.kind IS NULL", "in WHERE of LEFT JOIN a condition is about the obj"),
        ("AND a.kind = 'bus'", "in ON of LEFT JOIN a condition names b, and this does"),
        ("AND kind = 'bus'", "expected a column of one of the two"),
    ],
)
def test_what_belongs_to_the_other_clause_is_refused(rest, says):
    with pytest.raises(TextError, match=says):
        plan_of(f"SELECT * {LEFT} {rest}")
