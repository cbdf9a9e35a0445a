"""WINDOW above what is judged at ticks: rows that count on for a while after they left (P5, W6)."""

import pytest

from st_common.errors import QueryError
from st_common.query.builder import around, query
from st_common.query.plan import Plan
from st_common.query.text import TextError, to_text
from tests.kit.by_hand import clock, drop, end, fix, gone, log, register
from tests.kit.laws import holds
from tests.kit.oracle import Rules
from tests.kit.rows_told import plan_of, told
from tests.kit.strategies import Case, Course, Segmentation

NEAREST = "SELECT * FROM s KNN (1, 0, 0) WINDOW 3 s"
HOW = [{}, {"cuts": (2, 4, 6)}, {"shards": 3, "restarts": frozenset({0, 1})}]
ROWS = [
    fix("a", 1, 1, 0),
    fix("b", 2, 5, 0),
    fix("a", 3, 9, 0),
    fix("c", 4, 2, 0),
    fix("b", 6, 1, 0),
    clock(20),
]


@pytest.mark.spec("P5", "P7")
@pytest.mark.parametrize("how", HOW)
def test_who_was_among_the_nearest_is_there_until_that_is_too_long_ago(how):
    """`a` leaves at 3 and counts at 6 still; `b` leaves at 4 and is back at 6, so that nothing is told of it."""
    assert told(NEAREST, ROWS, **how) == [
        "1 +a enter",
        "3 +b enter",
        "4 +c enter",
        "7 -a aged",
        "10 -c aged",
    ]


@pytest.mark.spec("P5", "P7", "G9")
@pytest.mark.parametrize("how", HOW)
def test_aggregates_count_who_was_there_lately(how):
    counted = told(NEAREST.replace("*", "COUNT(*)"), ROWS, **how)
    assert [line for line in counted if "+" in line] == [
        "1 +* 1",
        "3 +* 2",
        "4 +* 3",
        "7 +* 2",
        "10 +* 1",
    ]


@pytest.mark.spec("P5", "P1")
def test_what_has_left_goes_with_its_query_as_it_was_then_though_it_has_another_value_below():
    """The count is 2, then 1, so the row lasts until 7; its query goes at 6, and it is told with the time of 4."""
    plan = plan_of(
        "SELECT * FROM (SELECT COUNT(*) FROM s INSIDE (0, 0, 9, 9)) r"
        " WHERE r.value > 1 WINDOW 3 s"
    )
    rows = [
        register("q", plan),
        *(fix("a", 1, 1, 0), fix("b", 2, 5, 0), fix("b", 4, 50, 0)),
        *(clock(6), drop("q"), end()),
    ]
    case = Case(rows=tuple(log(*rows)), layers={}, rules=Rules(tick_us=1_000_000))
    course = Course(
        cut=Segmentation(cuts=(), batches=()),
        shards=1,
        restarts=frozenset(),
        margin=0.0,
    )
    last = holds(case, course)[-1]
    assert "dropped" in last


@pytest.mark.spec("P5", "P1")
def test_who_is_gone_stays_until_it_is_too_old_and_all_go_with_their_query():
    rows = [fix("a", 1, 1, 0), gone("a", 2), clock(4), drop("q"), clock(9)]
    assert told(NEAREST, rows) == ["1 +a enter", "4 -a dropped"]
    assert told(NEAREST, [*rows[:2], clock(9)]) == ["1 +a enter", "6 -a aged"]


@pytest.mark.spec("P5", "X12")
def test_a_window_above_a_condition_holds_what_satisfied_it():
    groups = "SELECT kind, COUNT(*) FROM s INSIDE (0, 0, 9, 9) GROUP BY kind"
    text = f"SELECT * FROM ({groups}) r WHERE r.value > 1 WINDOW 2 s"
    rows = [
        fix("a", 1, 1, 0, kind="bus"),
        fix("b", 2, 5, 0, kind="bus"),
        fix("a", 3, 50, 0, kind="bus"),
        clock(9),
    ]
    assert told(text, rows) == ["2 +bus 2", "6 -bus 2"]


@pytest.mark.spec("P5", "P7", "X12")
@pytest.mark.parametrize(
    ("said", "means"),
    [
        (NEAREST, "SELECT * FROM (SELECT * FROM s KNN (1, 0, 0)) WINDOW 3 s"),
        (
            "SELECT kind, AVG(x) AS far FROM s INSIDE ('M', 'a', 2 m) GROUP BY kind WINDOW 3 s",
            "SELECT kind, AVG(x) AS far FROM (SELECT x, kind FROM s INSIDE ('M', 'a', 2 m)) GROUP BY kind WINDOW 3 s",
        ),
        (
            "SELECT b.kind, COUNT(*) FROM s a JOIN s b ON ST_DWithin(a, b, 5 m) GROUP BY b.kind WINDOW 3 s",
            'SELECT "b.kind", COUNT(*) FROM (SELECT b.kind AS "b.kind" FROM s a JOIN s b ON ST_DWithin(a, b, 5 m))'
            ' GROUP BY "b.kind" WINDOW 3 s',
        ),
    ],
)
def test_it_stands_above_the_rows_of_what_is_judged_at_ticks(said, means):
    plan = plan_of(said)
    assert plan == plan_of(means)
    assert plan == plan_of(to_text(plan, "q").removeprefix("REGISTER QUERY q AS "))
    assert plan == Plan.from_json(plan.to_json())


@pytest.mark.spec("P5")
def test_a_builder_says_it_of_rows():
    built = query("s").inside(around("a", 2)).rows().window("3 s").count().build()
    assert built == plan_of("SELECT COUNT(*) FROM s INSIDE ('M', 'a', 2 m) WINDOW 3 s")
    with pytest.raises(QueryError, match=r"rows\(\) lets it stand above rows"):
        query("s").inside(around("a", 2)).window("3 s")


@pytest.mark.spec("P5")
def test_windows_of_fixes_stay_as_they_are_and_count_no_rows():
    assert plan_of("SELECT * FROM s INSIDE (0, 0, 1, 1) WINDOW 3 s").outer is None
    with pytest.raises(QueryError, match="a window of rows lasts for a time"):
        query("s").rows().window("3 tuples")
    with pytest.raises(TextError, match="expected a time"):
        plan_of("SELECT * FROM s KNN (1, 0, 0) WINDOW 3 m")
