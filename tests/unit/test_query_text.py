"""The query language: what a text means, that its canonical form means the same, and where errors point."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from st_common.errors import QueryError
from st_common.query.plan import Plan
from st_common.query.problem import TextError
from st_common.query.text import parse, to_text

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
VOCABULARY = """
REGISTER REPLACE DROP QUERY q AS SELECT * FROM s l JOIN ON WHERE l.kind = 'a' IN ( ) , ; -- /* " ' {{ {# $$ @ % [ ::
NULL CASE WITH BETWEEN INTERVAL LIMIT OVER ST_DWithin 5 -1.5e3 1e999 nan m km INSIDE EMIT CHANGES EVERY é
KNN REVERSE GROUP GROUP_BY GPAC-IN CIRCLE 'M' WINDOW TUPLES hour VALID UNTIL plan = + - / % || :: [ ] COUNT SUM DISTINCT
AND OR NOT IN IS LIKE CAST INT EXISTS ANY ALL WHEN THEN END fid partner object speed > < LOWER LAYER s. 'POLYGON((0'
"""
WORDS = (*VOCABULARY.split(), "(1, 2, 3, 4)", "ST_Intersects(s, l)", "\0", "\n", "\u2028")

numbers = st.floats(allow_nan=False, allow_infinity=False)


def plan_of(text: str) -> Plan:
    (statement,) = parse(text)
    assert statement.plan is not None
    return statement.plan


@pytest.mark.spec("P4")
@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.sql")), ids=lambda path: path.stem)
def test_a_golden_text_gives_its_plan_and_its_canonical_text(path: Path):
    text, plan, canonical = path.read_text(encoding="utf-8").strip().split("\n\n")
    (statement,) = parse(text)
    assert statement.plan is not None
    assert json.loads(json.dumps(statement.plan.to_json())) == json.loads(plan)
    assert to_text(statement.plan, statement.name) == canonical


@pytest.mark.spec("G4")
@given(x1=numbers, y1=numbers, x2=numbers, y2=numbers)
def test_two_corners_in_any_order_are_one_box(x1: float, y1: float, x2: float, y2: float):
    found = {plan_of(f"REGISTER QUERY q AS SELECT * FROM s INSIDE ({a!r}, {b!r}, {c!r}, {d!r})").inside
             for a, b, c, d in ((x1, y1, x2, y2), (x2, y2, x1, y1), (x1, y2, x2, y1), (x2, y1, x1, y2))}  # fmt: skip
    (box,) = found
    assert box is not None
    assert sorted((x1, x2)) == [box.minx, box.maxx]
    assert sorted((y1, y2)) == [box.miny, box.maxy]


@given(
    text=st.one_of(
        st.text(), st.lists(st.sampled_from(WORDS)).map(" ".join), st.lists(st.sampled_from(WORDS)).map("".join)
    )
)
@example("(" * 5000)
@example("REGISTER QUERY q AS SELECT * FROM s WHERE " + "(" * 5000)
@example("REGISTER QUERY q AS SELECT * FROM s JOIN l ON " + "f(" * 25)
@example("REGISTER QUERY q AS SELECT * FROM s JOIN l ON " + "CASE WHEN " * 25)
@example("\ud800")
@example("/* not closed")
@example("x{#")
@example("ELSE")
@example("BEGIN; END")
def test_any_text_gives_statements_or_one_error_that_points_into_it(text: str):
    try:
        statements = parse(text)
    except TextError as error:
        lines = text.split("\n")
        for problem in error.problems:
            assert 1 <= problem.line <= len(lines)
            assert 1 <= problem.column <= len(lines[problem.line - 1]) + 1
            assert "\n" not in str(problem)
    else:
        assert all(
            parse(statement.text)[0] == statement for statement in statements if statement.line == 1 == statement.column
        )


@given(
    texts=st.lists(
        st.sampled_from(("DROP QUERY a", "REGISTER QUERY b AS SELECT * FROM s INSIDE (0, 0, 1, 1)")), min_size=1
    )
)
def test_each_statement_knows_its_text_and_place(texts: list[str]):
    whole = " ;\n ".join(texts)
    statements = parse(whole)
    assert [statement.text for statement in statements] == texts
    lines = whole.split("\n")
    for statement in statements:
        assert lines[statement.line - 1][statement.column - 1 :].startswith(statement.text)


@pytest.mark.parametrize(
    ("unit", "metres"),
    [("m", 7.0), ("km", 7000.0), ("ft", 2.1336), ("mi", 11265.408), ("nmi", 12964.0), ("KM", 7000.0)],
)
def test_a_distance_is_stored_in_metres(unit: str, metres: float):
    plan = plan_of(f"REGISTER QUERY q AS SELECT * FROM s JOIN l ON ST_DWithin(s, l, 7 {unit})")
    assert plan.join is not None
    assert math.isclose(plan.join.distance_m, metres, rel_tol=1e-12)


def test_replace_and_drop_are_statements_and_blanks_are_none():
    statements = parse(";; DROP QUERY a; -- a comment\nREPLACE QUERY b AS SELECT * FROM s;;")
    assert [(s.op, s.name, s.plan) for s in statements] == [("drop", "a", None), ("replace", "b", Plan(stream="s"))]
    assert parse(" \n-- nothing") == []


REGISTER = "REGISTER QUERY q AS SELECT * FROM s "
JOIN = REGISTER + "JOIN l ON ST_Intersects(s, l) "


@pytest.mark.spec("P4")
@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        ("REGSTER QUERY q AS SELECT * FROM s", "REGSTER", "did you mean REGISTER?"),
        ("REGISTER QURY q AS SELECT * FROM s", "QURY", "did you mean QUERY?"),
        ("REGISTER QUERY AS SELECT * FROM s", "AS", "expected a name for the query, not 'AS'"),
        ("REGISTER QUERY q-1 AS SELECT * FROM s", "-1", "double quotes"),
        ("REGISTER QUERY q SELECT * FROM s", "SELECT", "expected AS"),
        ("REGISTER QUERY q AS SELECT FROM s", "FROM", "expected * or an expression"),
        ("REGISTER QUERY q AS SELECT DISTINCT * FROM s", "* FROM", "one expression after DISTINCT"),
        ("REGISTER QUERY q AS SELECT * FORM s", "FORM", "did you mean FROM?"),
        ("REGISTER QUERY q AS SELECT * FROM (SELECT 1)", "(", "expected the name of a stream"),
        ('REGISTER QUERY q AS SELECT * FROM "tax is"', '"tax is"', "small letters"),
        ("REGISTER QUERY q AS SELECT * FROM s, t", "t", "expected a condition in WHERE that joins t"),
        (REGISTER + "INSDE (1, 2, 3, 4)", "INSDE", "did you mean INSIDE?"),
        (REGISTER + "GROUP BY x", "x", "GROUP BY needs an aggregate"),
        (REGISTER + "LIMIT 5", "LIMIT", "not 'LIMIT'"),
        (REGISTER + "REGISTER QUERY r AS SELECT * FROM s", "REGISTER QUERY r", "a statement ends with ;"),
        (REGISTER + "INSIDE (1, 2, 3)", "1, 2, 3", "expected 4 numbers, not 3"),
        (REGISTER + "INSIDE (1, 2, 3, nan)", "nan", "expected a number, not 'nan'"),
        (REGISTER + "INSIDE (1, 2, 3, inf)", "inf", "expected a number, not 'inf'"),
        (REGISTER + "INSIDE (1, 2, 3, -1e999)", "-1e999", "too large"),
        (REGISTER + "INSIDE (1, 2, 3, '4')", "'4'", "expected a number"),
        (REGISTER + "INSIDE (1, 2, 3, 4", None, "expected ',' or ')', not the end"),
        (REGISTER + "INSIDE (1, 2, 3, 4) INSIDE (1, 2, 3, 4)", "INSIDE (1, 2, 3, 4)", "multiple 'INSIDE'"),
        (REGISTER + "EMIT CHANGE", "CHANGE", "did you mean CHANGES?"),
        (REGISTER + "JION l ON ST_Intersects(s, l)", "JION", "did you mean JOIN?"),
        (REGISTER + "LEFT JOIN l ON ST_Intersects(s, l)", "LEFT", "not 'LEFT'"),
        (REGISTER + "JOIN l", None, "expected ON and a condition"),
        (REGISTER + "JOIN l ON ST_Intersect(s, l)", "ST_Intersect(s, l", "did you mean ST_Intersects?"),
        (REGISTER + "JOIN l ON ST_Intersects(s, ll)", "ll", "expected the stream and the layer, not 'll'"),
        (REGISTER + "JOIN s ON ST_Intersects(s, s)", "s ON", "two things are called 's'"),
        (REGISTER + "JOIN l ON ST_DWithin(s, l)", ")", "expected ','"),
        (REGISTER + "JOIN l ON ST_DWithin(s, l, 5)", ")", "expected a unit"),
        (REGISTER + "JOIN l ON ST_DWithin(s, l, 5 parsecs)", "parsecs", "one of m, km, ft, mi, nmi"),
        (REGISTER + "JOIN l ON ST_DWithin(s, l, -5 m)", "-5", "0 or more"),
        (JOIN + "AND l.fid = s.a", "l.fid", "one condition joins a layer"),
        (JOIN + "JOIN m ON ST_Intersects(s, m)", "m ON", "one layer"),
        (JOIN + "WHERE l.kind = forest", "forest", "'forest'"),
        (JOIN + 'WHERE l.kind = "forest"', '"forest"', "single quotes"),
        (JOIN + "WHERE l.kid = 'forest'", "l.kid", "did you mean kind?"),
        (JOIN + "WHERE l.kind = 'forest' OR speed > 3", "l.kind", "chooses kinds and tags"),
        (JOIN + "WHERE l.kind NOT IN ('forest')", "l.kind", "chooses kinds and tags"),
        (JOIN + "WHERE l.kind IN ()", "l.kind", "at least one kind"),
        (JOIN + "WHERE", None, "expected a condition after WHERE"),
        (REGISTER + "WHERE l.kind = 'x'", "l.kind", "unknown name 'l'"),
        (REGISTER + "INSIDE (1, 2, 3, 'x", "'x", "' is not closed"),
        ("DROP TABLE x", "TABLE", "expected QUERY"),
        ("DROP QUERY a b", "b", "expected ';'"),
        ('DROP QUERY "\t"', '"\t"', "is no name for a query"),
        ("SELECT 1", "SELECT", "expected REGISTER QUERY, REPLACE QUERY, DROP QUERY, CREATE AREA, DROP AREA, SHOW or EXPLAIN"),
    ],
)
def test_an_error_points_at_the_place_and_says_what_was_expected(text: str, at: str | None, says: str | None):
    with pytest.raises(TextError) as caught:
        parse("DROP QUERY a;\n" + text)
    (problem,) = caught.value.problems
    start = len(text) if at is None else text.rindex(at)
    assert (problem.line, problem.column) == (2, start + 1)
    assert says is None or says in str(problem)
    assert problem.snippet.split("\n")[1].lstrip().startswith("^")


def test_the_place_is_underlined_also_in_a_long_line():
    text = "REGISTER QUERY q AS SELECT * FROM s INSIDE (1, 2," + " " * 300 + "3, four)"
    with pytest.raises(TextError) as caught:
        parse(text, file="queries.sql")
    above, below = caught.value.details.split("\n")
    assert above[below.index("^") :].startswith("four")
    assert below.count("^") == len("four")
    assert max(len(above), len(below)) <= 110
    assert str(caught.value).startswith("queries.sql:1:353: expected a number, not 'four'")


def test_all_problems_of_a_text_come_at_once():
    with pytest.raises(QueryError) as caught:
        parse("DROP QERY a;\nDROP QUERY b;\nDROP QUERY;\nINSIDE")
    error = caught.value
    assert isinstance(error, TextError)
    assert [(problem.line, problem.column) for problem in error.problems] == [(1, 6), (3, 11), (4, 1)]
    assert str(error).endswith("; 2 more problems")
    assert error.details.count("^") >= 3
