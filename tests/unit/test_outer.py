"""Queries about the rows of a query: what is told, what is refused, and that a thousand share their work."""

import json
from dataclasses import replace

import pyarrow as pa
import pytest

import fairway
from st_common.errors import QueryError
from st_common.query.builder import query
from st_common.query.plan import Aggregate, Box, Outer, Plan
from st_common.query.plan_json import plan_from_json
from st_common.query.text import TextError, parse, to_text
from tests.kit.by_hand import clock, drop, end, fix, gone, log, register
from tests.kit.laws import run_steps
from tests.kit.oracle import Rules
from tests.kit.statements import counted_statements
from tests.kit.strategies import Case, Segmentation

ROOM = Box(minx=0.0, miny=0.0, maxx=10.0, maxy=10.0)
GROUPS = "SELECT kind, COUNT(*) FROM s INSIDE (0, 0, 10, 10) GROUP BY kind"


def plan_of(text):
    (statement,) = parse(f"REGISTER QUERY q AS {text}")
    return statement.plan


def told(rows, cuts=(), batches=(), **how):
    """What is told of the rows of a log: `second sign object value cause`."""
    case = Case(rows=tuple(log(*rows)), layers={}, rules=Rules(tick_us=1_000_000))
    cut = Segmentation(cuts=frozenset(cuts), batches=tuple(batches))
    changes, _, _ = run_steps(case, cut, **how)
    return [
        f"{row['event_ts'].timestamp():g} {'-=+'[row['sign'] + 1]}{row['object']} {row['value']:g} {row['cause']}"
        for row in changes.to_pylist()
    ]


@pytest.mark.spec("G9")
def test_an_aggregate_stands_above_an_aggregate():
    biggest = plan_of(f"SELECT MAX(r.value) FROM ({GROUPS}) r")
    rows = [
        register("q", biggest),
        fix("a", 1, 1, 1, kind="bus"),
        fix("b", 2, 1, 1, kind="bus"),
        fix("c", 3, 1, 1, kind="tram"),
        fix("b", 4, 50, 1, kind="bus"),
        gone("a", 5),
        fix("c", 6, 50, 1, kind="tram"),
        end(),
    ]
    assert told(rows) == [
        "1 +* 1 enter",
        "2 -* 1 value",
        "2 +* 2 value",
        "4 -* 2 value",
        "4 +* 1 value",
        "6 -* 1 leave",
    ]


@pytest.mark.spec("G9")
def test_a_condition_stands_above_an_aggregate():
    crowded = plan_of(f"SELECT * FROM ({GROUPS}) r WHERE r.value > 1")
    rows = [
        fix("a", 1, 1, 1, kind="bus"),
        fix("b", 2, 1, 1, kind="bus"),
        clock(4),
        register("q", crowded),
        fix("c", 5, 1, 1, kind="bus"),
        fix("a", 6, 50, 1, kind="bus"),
        fix("b", 7, 50, 1, kind="bus"),
        clock(9),
        drop("q"),
        end(),
    ]
    assert told(rows) == [
        "4 +bus 2 registered",
        "5 -bus 2 value",
        "5 +bus 3 value",
        "6 -bus 3 value",
        "6 +bus 2 value",
        "7 -bus 2 leave",
    ]


@pytest.mark.spec("G9")
def test_columns_of_members_are_those_of_their_last_fix():
    loads = plan_of(
        "SELECT SUM(r.load) FROM (SELECT load FROM s KNN (2, 0, 0)) r WHERE r.load > 1"
    )
    rows = [
        register("q", loads),
        fix("a", 1, 1, 0, load=2.0),
        fix("b", 2, 2, 0, load=1.0),
        fix("b", 3, 2, 0, load=5.0),
        fix("c", 4, 1, 1, load=3.0),
        end(),
    ]
    assert told(rows) == [
        "1 +* 2 enter",
        "3 -* 2 value",
        "3 +* 7 value",
        "4 -* 7 value",
        "4 +* 5 value",
    ]


def test_groups_of_fixes_in_windows_are_rows_that_change():
    loads = plan_of(
        "SELECT * FROM (SELECT AVG(load) FROM s [ROWS 2] GROUP BY kind) r WHERE r.value > 1"
    )
    rows = [
        register("q", loads),
        fix("a", 1, kind="bus", load=2.0),
        fix("a", 2, kind="bus", load=4.0),
        fix("a", 3, kind="bus", load=-8.0),
        end(),
    ]
    assert told(rows) == [
        "1 +bus 2 enter",
        "2 -bus 2 value",
        "2 +bus 3 value",
        "3 -bus 3 leave",
    ]


@pytest.mark.spec("G9")
def test_a_count_of_no_rows_is_told_where_the_query_begins_and_goes_with_it():
    nobody = plan_of("SELECT COUNT(*) FROM (SELECT * FROM s INSIDE (0, 0, 10, 10))")
    rows = [
        register("early", nobody),
        fix("a", 1, 50, 1),
        fix("a", 3, 50, 1),
        register("late", nobody),
        drop("early"),
        fix("a", 5, 50, 1),
        end(),
    ]
    assert told(rows) == ["1 +* 0 enter", "3 +* 0 registered", "3 -* 0 dropped"]


@pytest.mark.spec("P8", "X13")
def test_a_thousand_queries_about_rows_share_statements():
    plan = plan_of(
        "SELECT r.kind, COUNT(*) FROM (SELECT kind, load * 2 AS twice FROM s KNN (3, 0, 0)) r GROUP BY r.kind"
    )
    plans = [
        replace(plan, outer=replace(plan.outer, where=f"twice > {n}.5"))
        for n in range(1000)
    ]
    rows = [register(f"q{n}", one) for n, one in enumerate(plans)]
    rows += [fix(name, 1, 1, 1, kind="bus", load=250.0) for name in "abc"]
    with counted_statements() as evaluated:
        lines = told([*rows, end()])
    assert lines == ["1 +bus 3 enter"] * 500
    assert evaluated.call_count < 20


@pytest.mark.spec("P4")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * FROM (SELECT * FROM s) r KNN (1, 2, 3)", "KNN is about fixes"),
        (
            "SELECT * FROM (SELECT * FROM s) r INSIDE (0, 0, 9, 9)",
            "INSIDE is about fixes",
        ),
        (
            "SELECT * FROM (SELECT * FROM s) r JOIN l ON r.a = l.b",
            "joined with nothing",
        ),
        ("SELECT r.object FROM (SELECT * FROM s) r", "told as they are"),
        ("SELECT * FROM (SELECT * FROM s) r WHERE value > 3 m", "no unit"),
        ("SELECT * FROM (SELECT * FROM (SELECT * FROM s))", "once .CREATE STREAM x"),
        ("SELECT * FROM (SELECT * FROM s) r EMIT EVERY", "told by its changes"),
        ("SELECT * FROM (SELECT * FROM s WHERE) r", "expected"),
    ],
)
def test_what_is_about_fixes_is_refused_above_rows(text, message):
    with pytest.raises(TextError, match=message):
        plan_of(text)


@pytest.mark.spec("P4")
def test_a_query_about_rows_is_said_in_three_ways():
    text = (
        "SELECT MAX(value) FROM (SELECT COUNT(*) FROM s GROUP BY kind) WHERE value > 1"
    )
    built = query("s").count().group_by("kind").rows().where("value > 1").max("value")
    assert built.build() == plan_of(text)
    assert to_text(built.build(), "q") == f"REGISTER QUERY q AS {text}"
    as_json = (
        '{"v": 3, "stream": "s", "aggregate": {"function": "count", "group": "kind"}, '
        '"outer": {"where": "value > 1", "aggregate": {"function": "max", "argument": "value"}}}'
    )
    assert plan_from_json(as_json) == built.build()
    outer = Outer(
        where="value > 1", aggregate=Aggregate(function="max", argument="value")
    )
    assert Plan.from_json(built.build().to_json()).outer == outer


def test_a_builder_refuses_what_is_about_fixes_behind_rows():
    rows = query("s").inside(ROOM).rows()
    with pytest.raises(QueryError, match="'neighbours' is about fixes"):
        rows.nearest(3, 1.0, 2.0)
    with pytest.raises(QueryError, match="already"):
        rows.rows()
    with pytest.raises(QueryError, match="DETECT exclude each other"):
        query("s").inside(ROOM).detect("enter").rows()


CHOSEN = f"SELECT value, COUNT(*) AS n FROM ({GROUPS}) r GROUP BY value HAVING n > 1"


@pytest.mark.spec("G9", "X12")
@pytest.mark.parametrize("how", [{}, {"cuts": (2, 4)}, {"shards": 3}])
def test_having_chooses_among_the_groups_of_rows(how):
    """How many kinds have as many members: told where that is more than one."""
    rows = [
        register("q", plan_of(CHOSEN)),
        fix("a", 1, 1, 1, kind="bus"),
        fix("b", 2, 1, 1, kind="tram"),
        fix("c", 3, 1, 1, kind="bus"),
        gone("c", 4),
        end(),
    ]
    case = Case(rows=tuple(log(*rows)), layers={}, rules=Rules(tick_us=1_000_000))
    cut = Segmentation(cuts=frozenset(how.get("cuts", ())), batches=())
    changes, _, _ = run_steps(case, cut, shards=how.get("shards", 1))
    told_rows = [
        (row["event_ts"].timestamp(), row["sign"], row["fields"])
        for row in changes.to_pylist()
    ]
    two = '{"value":"1.0","n":2}'
    assert told_rows == [(2, 1, two), (3, -1, two), (4, 1, two)]


@pytest.mark.spec("G9", "X12")
@pytest.mark.parametrize(
    "text",
    [
        CHOSEN,
        f"{CHOSEN} ORDER BY n DESC LIMIT 2",
        "SELECT b.kind, AVG(distance(a, b)) AS m FROM s a JOIN s b"
        " ON ST_DWithin(a, b, 9 m) GROUP BY b.kind HAVING m > 3",
    ],
)
def test_having_above_rows_is_said_in_text_and_json(text):
    plan = plan_of(text)
    (again,) = parse(to_text(plan, "q"))
    assert again.plan == plan
    assert plan_from_json(json.dumps(plan.to_json())) == plan


@pytest.mark.spec("G9")
def test_a_builder_asks_about_groups_of_rows():
    below = query("s").inside(ROOM).count().group_by("kind").rows()
    built = below.aggregate(n="count(*)").group_by("value").having("n > 1")
    assert built.build() == plan_of(CHOSEN)
    with pytest.raises(QueryError, match="HAVING needs an aggregate"):
        below.having("value > 1")
    with pytest.raises(QueryError, match="HAVING above rows needs a GROUP BY"):
        below.count().having("value > 1")


def test_the_object_may_be_selected_beside_other_columns_of_rows():
    """It is the key of the rows, so only the others have types of their own."""
    fixes = pa.table(
        {
            "object": ["a", "b", "a"],
            "time": pa.array([10**9, 10**9, 10**9 + 60], pa.timestamp("s", "UTC")),
            "lon": [1.0, 2.0, 3.0],
            "lat": [1.0, 1.0, 1.0],
        }
    )
    text = "SELECT * FROM (SELECT object, x AS px FROM data) WHERE px > 1.5 AND object <> 'c'"
    seen = pa.table(fairway.evaluate(fixes, text).changes).to_pylist()
    assert [(one["sign"], one["fields"]) for one in seen if one["object"] == "a"] == [
        (1, '{"object":"a","px":3.0}')
    ]
