"""ISTREAM, DSTREAM, RSTREAM of rows, beside HAVING too; ranks that another query asks about (SPEC W6, X12)."""

import json

import pytest

from st_common.answers.outlets import PASSED
from st_common.errors import QueryError
from st_common.query.builder import query
from st_common.query.plan_json import plan_from_json
from st_common.query.text import TextError, parse, to_text
from tests.kit.by_hand import clock, drop, fix
from tests.kit.rows_told import plan_of, told

HOW = [{}, {"cuts": (2, 4, 6)}, {"shards": 3, "restarts": frozenset({0, 1})}]
ROWS = [
    fix("a", 1, 1, 0, kind="bus"),
    fix("b", 2, 5, 0, kind="bus"),
    fix("c", 4, 2, 0, kind="tram"),
    fix("d", 7, 5, 0, kind="bus"),
    fix("a", 9, 50, 0, kind="bus"),
    fix("b", 10, 6, 0, kind="bus"),
    fix("c", 12, 90, 0, kind="tram"),
    clock(20),
]
COUNTS = "SELECT kind, COUNT(*) FROM s INSIDE (0, 0, 9, 9) GROUP BY kind"
HAVING = (
    "SELECT RSTREAM(kind, COUNT(*)) FROM s INSIDE (0, 0, 9, 9) GROUP BY kind"
    " HAVING COUNT(*) > 0"
)


@pytest.mark.spec("W6", "G9")
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(
    "text", [HAVING, f"SELECT RSTREAM(*) FROM ({COUNTS}) r WHERE r.value > 0"]
)
def test_rstream_tells_all_groups_that_stay_where_one_has_changed(text, how):
    assert told(text, ROWS, **how) == [
        "1 +bus 1",
        "2 -bus 1",
        "2 +bus 2",
        "4 =bus 2",
        "4 +tram 1",
        "7 -bus 2",
        "7 +bus 3",
        "7 =tram 1",
        "9 -bus 3",
        "9 +bus 2",
        "9 =tram 1",  # at 10 `b` moves in the region, and no count changes
        "12 =bus 2",
        "12 -tram 1",
    ]


@pytest.mark.spec("W6")
@pytest.mark.parametrize("how", HOW)
def test_rstream_tells_all_values_of_groups_of_rows_that_stay(how):
    text = f"SELECT RSTREAM(value, COUNT(*)) FROM ({COUNTS}) GROUP BY value"
    assert told(text, ROWS, **how) == [
        "1 +1.0 1",
        "2 -1.0 1",
        "2 +2.0 1",
        "4 +1.0 1",
        "4 =2.0 1",
        "7 =1.0 1",
        "7 -2.0 1",
        "7 +3.0 1",
        "9 =1.0 1",
        "9 +2.0 1",
        "9 -3.0 1",
        "12 -1.0 1",
        "12 =2.0 1",
    ]


@pytest.mark.spec("W6")
def test_where_the_query_goes_nothing_stays():
    text = f"SELECT RSTREAM(*) FROM ({COUNTS}) r WHERE r.value > 0"
    rows = [*ROWS[:3], clock(6), drop("q")]
    assert told(text, rows)[-2:] == ["6 -bus 2", "6 -tram 1"]


@pytest.mark.spec("W6")
@pytest.mark.parametrize("kind", ["istream", "dstream", "rstream"])
def test_a_stream_of_rows_is_said_in_text_builder_and_json(kind):
    text = f"SELECT {kind.upper()}(*) FROM (SELECT * FROM s KNN (3, 1, 2)) FOR 300 s"
    plan = plan_of(text)
    assert plan.emit == kind
    assert kind in PASSED
    assert to_text(plan, "q") == f"REGISTER QUERY q AS {text}"
    built = query("s").nearest(3, 1, 2).rows().lasting("5 min").as_stream(kind)
    assert built.build() == plan
    assert plan_from_json(json.dumps(plan.to_json())) == plan


@pytest.mark.spec("W6")
def test_a_stream_beside_having_is_said_in_text_and_builder():
    plan = plan_of(HAVING)
    (again,) = parse(to_text(plan, "q"))
    assert again.plan == plan
    room = query("s").inside(plan.inside).count().group_by("kind")
    assert room.as_stream("rstream").having("count(*) > 0").build() == plan
    assert room.having("count(*) > 0").as_stream("rstream").build() == plan


@pytest.mark.spec("W6", "P4")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "SELECT * FROM (SELECT ISTREAM(*) FROM s)",
            "ISTREAM and FROM .* exclude each other .what stands in parentheses",
        ),
        (
            "SELECT * FROM (SELECT * FROM s EMIT EVERY)",
            "EMIT EVERY and FROM .* exclude each other .what stands in parentheses",
        ),
        (
            "SELECT COUNT(*) FROM (SELECT * FROM s) EMIT EVERY",
            "RSTREAM .* tells what stays",
        ),
        (
            "SELECT COUNT(*) FROM (SELECT b.kind, AVG(distance(a, b)) AS m"
            " FROM s a JOIN s b ON ST_DWithin(a, b, 5 m) GROUP BY b.kind)",
            "line 2, column 30: .* this is about rows already .*CREATE STREAM",
        ),
        (
            "SELECT COUNT(*) FROM (SELECT * FROM s KNN (3, 1, 2) WINDOW 10 min)",
            "line 2, column 53: .* this is about rows already .*CREATE STREAM",
        ),
    ],
)
def test_what_is_told_or_asked_below_rows_is_refused_with_a_way_out(text, message):
    with pytest.raises(TextError, match=message):
        parse(f"REGISTER QUERY q AS\n{text}")


def test_a_builder_tells_of_rows_and_not_of_what_is_below():
    with pytest.raises(QueryError, match=r"RSTREAM and FROM .* exclude each other"):
        query("s").nearest(3, 1, 2).as_stream("rstream").rows()
    with pytest.raises(QueryError, match=r"EMIT EVERY and FROM .* exclude each other"):
        query("s").nearest(3, 1, 2).rows().emit_every()


@pytest.mark.spec("X12", "P7")
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "SELECT rank(), COUNT(*) FROM s KNN (3, 0, 0) GROUP BY rank()",
            ["1 +1 1", "2 +2 1", "4 +3 1"],
        ),
        (
            "SELECT MAX(distance()) FROM s KNN (3, 0, 0)",
            ["1 +* 1", "2 -* 1", "2 +* 5", "10 -* 5", "10 +* 6", "12 -* 6", "12 +* 50"],
        ),
        (
            # `a` leaves at 9, so `b` is second; it goes behind `d` at 10, and `c` goes at 12.
            "SELECT * FROM (SELECT rank() AS nth FROM s KNN (3, 0, 0)) WHERE nth = 2",
            [
                *("2 +b enter", "4 -b leave", "4 +c enter"),
                *("9 +b enter", "9 -c leave"),
                *("10 -b leave", "10 +d enter"),
                *("12 +b enter", "12 -d leave"),
            ],
        ),
    ],
)
def test_ranks_and_distances_are_those_of_now_though_others_move(text, expected, how):
    assert told(text, ROWS, **how) == expected


@pytest.mark.spec("X12")
@pytest.mark.parametrize("how", HOW)
def test_ranks_follow_the_object_that_they_are_measured_from(how):
    text = "SELECT * FROM (SELECT rank() AS nth FROM s KNN ('M', 2, 'a')) WHERE nth = 1"
    rows = [
        fix("a", 1, 0, 0),
        fix("b", 1, 2, 0),
        fix("c", 1, 9, 0),
        fix("a", 3, 8, 0),
        clock(9),
    ]
    assert told(text, rows, **how) == ["1 +b enter", "3 -b leave", "3 +c enter"]
