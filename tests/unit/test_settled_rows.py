"""FOR above what is judged at ticks: rows that count once they were there for a while (P7, X8, X12)."""

import pytest

from st_common.errors import QueryError
from st_common.query.builder import around, query
from st_common.query.plan import Plan
from st_common.query.text import TextError, to_text
from tests.kit.by_hand import clock, drop, fix, gone
from tests.kit.rows_told import plan_of, told

NEAREST = "SELECT * FROM s KNN (1, 0, 0) FOR 3 s"
TOGETHER = "SELECT * FROM s a JOIN s b ON ST_DWithin(a, b, 5 m) FOR 3 s"
HOW = [{}, {"cuts": (2, 4, 6)}, {"shards": 3, "restarts": frozenset({0, 1})}]


@pytest.mark.spec("P7", "X8")
@pytest.mark.parametrize("how", HOW)
def test_who_is_among_the_nearest_for_long_enough_enters_by_the_clock(how):
    rows = [
        fix("a", 1, 1, 0),
        fix("b", 2, 5, 0),
        fix("a", 3, 9, 0),  # `a` was nearest from 1 to 3: too short
        fix("c", 8, 2, 0),  # `b` from 3 to 8
        clock(20),
    ]
    assert told(NEAREST, rows, **how) == [
        "6 +b enter",
        "8 -b leave",
        "11 +c enter",
    ]


@pytest.mark.spec("P7", "X8")
@pytest.mark.parametrize("how", HOW)
def test_a_pair_that_parts_begins_anew(how):
    rows = [
        fix("a", 1, 0, 0),
        fix("b", 1, 3, 0),
        fix("b", 3, 30, 0),
        fix("b", 4, 3, 0),
        fix("b", 6, 4, 0),
        fix("b", 9, 40, 0),
        clock(20),
    ]
    assert told(TOGETHER, rows, **how) == [
        "7 +a enter",
        "7 +b enter",
        "9 -a leave",
        "9 -b leave",
    ]


@pytest.mark.spec("X8")
def test_who_leaves_at_the_very_tick_never_enters():
    rows = [fix("a", 1, 1, 0), fix("b", 2, 5, 0), fix("a", 4, 9, 0), clock(6)]
    assert told(NEAREST, rows) == []


@pytest.mark.spec("X8", "G9")
@pytest.mark.parametrize("how", HOW)
def test_groups_satisfy_a_condition_for_a_while_and_are_counted_while_their_values_change(
    how,
):
    groups = "SELECT kind, COUNT(*) FROM s INSIDE (0, 0, 9, 9) GROUP BY kind"
    rows = [
        fix("a", 1, 1, 0, kind="bus"),
        fix("b", 2, 5, 0, kind="bus"),
        fix("c", 4, 5, 0, kind="bus"),
        fix("d", 7, 5, 0, kind="bus"),
        fix("a", 9, 50, 0, kind="bus"),
        clock(20),
    ]
    text = f"SELECT * FROM ({groups}) r WHERE r.value > 1 FOR 3 s"
    assert told(text, rows, **how) == [
        "5 +bus 3",  # above 1 from 2 on
        "7 -bus 3",
        "7 +bus 4",
        "9 -bus 4",
        "9 +bus 3",
    ]
    counted = f"SELECT COUNT(*) FROM ({groups}) r WHERE r.value > 1 FOR 3 s"
    assert told(counted, rows, **how)[-1] == "5 +* 1"


@pytest.mark.spec("X8", "P1")
def test_who_is_gone_waits_no_more_and_all_go_with_their_query():
    rows = [fix("a", 1, 1, 0), gone("a", 2), clock(9)]
    assert told(NEAREST, rows) == []
    rows = [fix("a", 1, 1, 0), clock(3), drop("q"), clock(9)]
    assert told(NEAREST, rows) == []
    rows = [fix("a", 1, 1, 0), clock(6), drop("q"), clock(9)]
    assert told(NEAREST, rows) == ["4 +a enter", "6 -a dropped"]


@pytest.mark.spec("P7", "X8", "X12")
@pytest.mark.parametrize(
    ("said", "means"),
    [
        (NEAREST, "SELECT * FROM (SELECT * FROM s KNN (1, 0, 0)) FOR 3 s"),
        (
            TOGETHER,
            "SELECT * FROM (SELECT * FROM s a JOIN s b ON ST_DWithin(a, b, 5 m)) FOR 3 s",
        ),
        (
            "SELECT COUNT(*) FROM s INSIDE ('M', 'a', 2 m) FOR 3 s",
            "SELECT COUNT(*) FROM (SELECT * FROM s INSIDE ('M', 'a', 2 m)) FOR 3 s",
        ),
    ],
)
def test_it_stands_above_the_rows_of_what_is_judged_at_ticks(said, means):
    plan = plan_of(said)
    assert plan == plan_of(means)
    assert plan.outer.lasting_s == 3
    assert plan == plan_of(to_text(plan, "q").removeprefix("REGISTER QUERY q AS "))
    assert plan == Plan.from_json(plan.to_json())


@pytest.mark.spec("X8")
def test_a_builder_says_it_of_rows():
    built = query("s").inside(around("a", 2)).rows().lasting("3 s").build()
    assert built == plan_of("SELECT * FROM s INSIDE ('M', 'a', 2 m) FOR 3 s")
    rows = query("s").rows()
    for wrong in (
        lambda: rows.lasting((3, "5 s")),
        lambda: rows.lasting(until="x > 3", lasting="5 s"),
    ):
        with pytest.raises(QueryError, match="above rows it is a time alone"):
            wrong()
    with pytest.raises(QueryError, match="exclude each other"):
        rows.lasting("3 s").window("3 s")


@pytest.mark.spec("X8")
@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("FOR 5 fixes", "rows are not fixes"),
        ("FOR 5 min UNTIL x > 3", "UNTIL is about fixes"),
        ("FOR 5 min EMIT EVERY 1 min", "told by its changes"),
        ("FOR 5 m", "a time with its unit|rows are not fixes|a time"),
    ],
)
def test_what_is_of_fixes_alone_is_refused(said, message):
    with pytest.raises(TextError, match=message):
        plan_of(f"SELECT * FROM s KNN (1, 0, 0) {said}")


def test_incidents_of_fixes_stay_as_they_are():
    assert plan_of("SELECT * FROM s INSIDE (0, 0, 1, 1) FOR 3 s").outer is None
