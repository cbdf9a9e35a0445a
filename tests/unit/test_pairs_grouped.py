"""Aggregates and keys about the other object of a pair: short for a query about the rows of the pairs."""

import pytest

from st_common.query.text import TextError, parse, to_text
from tests.kit.by_hand import end, fix, log, register
from tests.kit.laws import run_steps
from tests.kit.oracle_rows import Rules
from tests.kit.strategies import Case, Segmentation

J = "FROM s a JOIN s b ON ST_DWithin(a, b, 10 m)"
ROWS = [
    fix("a", 1, 0, 0, kind="bus", load=1.0),
    fix("b", 1, 3, 0, kind="taxi", load=2.0),
    fix("c", 1, 9, 0, kind="taxi", load=6.0),
    fix("c", 2, 50, 0, kind="taxi", load=6.0),
]


def plan_of(text):
    (statement,) = parse(f"REGISTER QUERY q AS {text}")
    return statement.plan


def told(text):
    rows = [register("q", plan_of(text)), *ROWS, end()]
    case = Case(rows=tuple(log(*rows)), layers={}, rules=Rules(tick_us=1_000_000))
    changes, _, _ = run_steps(case, Segmentation(cuts=(), batches=()))
    return [
        (row["event_ts"].timestamp(), row["sign"], row["object"], row["value"])
        for row in changes.to_pylist()
    ]


@pytest.mark.spec("X12", "G9")
@pytest.mark.parametrize(
    ("short", "rows", "above"),
    [
        (
            f"SELECT b.kind, AVG(distance(a, b)) AS m {J} WHERE b.load > 3 GROUP BY b.kind",
            'SELECT distance(a, b) AS "DISTANCE(a, b)", b.kind AS "b.kind" '
            f"{J} WHERE b.load > 3",
            'SELECT "b.kind", AVG("DISTANCE(a, b)") AS m FROM (%s) r GROUP BY "b.kind"',
        ),
        (
            f"SELECT AVG(b.load - a.load) {J} INSIDE (0, 0, 9, 9)",
            f'SELECT b.load - a.load AS "b.load - a.load" {J} INSIDE (0, 0, 9, 9)',
            'SELECT AVG("b.load - a.load") FROM (%s)',
        ),
        (
            f"SELECT DISTINCT b.kind {J}",
            f'SELECT b.kind AS "b.kind" {J}',
            'SELECT DISTINCT "b.kind" FROM (%s)',
        ),
        (
            f"SELECT a.kind, MIN(distance(a, b)) AS gap {J} GROUP BY a.kind ORDER BY gap LIMIT 3",
            f'SELECT distance(a, b) AS "DISTANCE(a, b)", a.kind AS "a.kind" {J}',
            'SELECT "a.kind", MIN("DISTANCE(a, b)") AS gap FROM (%s) '
            'GROUP BY "a.kind" ORDER BY gap LIMIT 3',
        ),
    ],
)
def test_it_is_short_for_a_query_about_the_pairs(short, rows, above):
    plan = plan_of(short)
    assert plan == plan_of(above % rows)
    assert plan_of(to_text(plan, "q").partition(" AS ")[2]) == plan


@pytest.mark.spec("X12", "G9")
def test_groups_are_by_the_other_object_and_values_of_both():
    assert told(f"SELECT b.kind, COUNT(*) {J} GROUP BY b.kind") == [
        (1, 1, "bus", 2.0),  # of b and of c
        (1, 1, "taxi", 4.0),
        (2, -1, "bus", 2.0),
        (2, 1, "bus", 1.0),
        (2, -1, "taxi", 4.0),
        (2, 1, "taxi", 1.0),
    ]
    assert told(f"SELECT MAX(distance(a, b)) {J}")[-2:] == [
        (2, -1, "*", 9.0),
        (2, 1, "*", 3.0),
    ]


@pytest.mark.spec("G9")
def test_what_is_of_the_first_alone_stands_as_it_did():
    plan = plan_of(f"SELECT a.kind, SUM(load) {J} GROUP BY a.kind")
    assert (plan.outer, plan.columns) == (None, ())


@pytest.mark.spec("G9")
def test_groups_of_pairs_are_chosen_by_their_values():
    text = f"SELECT b.kind, COUNT(*) AS n {J} GROUP BY b.kind HAVING n > 2"
    rows = f'SELECT b.kind AS "b.kind" {J}'
    above = 'SELECT "b.kind", COUNT(*) AS n FROM (%s) GROUP BY "b.kind" HAVING n > 2'
    assert plan_of(text) == plan_of(above % rows)
    assert [row[:3] for row in told(text)] == [(1, 1, "taxi"), (2, -1, "taxi")]


@pytest.mark.spec("P4", "X12")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"SELECT AVG(distance(a, c)) {J}", "DISTANCE is of the two of a pair"),
        (f"SELECT AVG(b.load) {J} EMIT EVERY", "told by its changes"),
        (
            f"SELECT COUNT(EXISTS (SELECT 1 FROM z WHERE ST_Intersects(a, z)) <> b.load) {J}",
            "EXISTS",
        ),
    ],
)
def test_what_stands_above_rows_alone_is_refused(text, message):
    with pytest.raises(TextError, match=message):
        plan_of(text)
