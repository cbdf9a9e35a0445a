"""The query language: what a text means, that its canonical form means the same, and where errors point."""

import json
import math
import pickle
from collections.abc import Collection
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from st_common.errors import QueryError
from st_common.query.frame import Extent, Frame, Sliding
from st_common.query.plan import LayerJoin, Plan
from st_common.query.problem import TextError
from st_common.query.text import parse, select_of, to_text
from st_common.regions.registry import Area, Box, Region

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
VOCABULARY = """
REGISTER REPLACE DROP QUERY q AS SELECT * FROM s l JOIN ON WHERE l.kind = 'a' IN ( ) , ; -- /* " ' {{ {# $$ @ % [ ::
NULL CASE WITH BETWEEN INTERVAL LIMIT OVER ST_DWithin 5 -1.5e3 1e999 nan m km INSIDE EMIT CHANGES EVERY é
KNN REVERSE GROUP GROUP_BY GPAC-IN CIRCLE 'M' WINDOW TUPLES hour VALID UNTIL plan = + - / % || :: [ ] COUNT SUM DISTINCT
AND OR NOT IN IS LIKE CAST INT EXISTS ANY ALL WHEN THEN END fid partner object speed > < LOWER LAYER s. 'POLYGON((0'
[ ] RANGE ROWS SLIDE BY RATTR SATTR SPACE TIME '50 km' R= ISTREAM( STAMPS(*) AVGSPD(s) COMPARE USING enlarge( filter(
CREATE AREA a FEATURE( SHOW QUERIES EXPLAIN min_step origin windows 'full' km/h kn ST_Within( [ROWS COMPARE_WITH tag
"""
START = "REGISTER QUERY q AS SELECT * FROM s "
PHRASES = (
    "COMPARE WITH (1, 2, 3, 4)",
    "[RANGE BY 5 km RATTR SPACE]",
    "[ROWS 5]",
    START,
)
WORDS = (
    *VOCABULARY.split(),
    *PHRASES,
    "(1, 2, 3, 4)",
    "ST_Intersects(s, l)",
    "\0",
    "\n",
    "\u2028",
)

numbers = st.floats(allow_nan=False, allow_infinity=False)


def plan_of(text: str) -> Plan:
    (statement,) = parse(text)
    assert statement.plan is not None
    return statement.plan


@pytest.mark.spec("P4")
@pytest.mark.parametrize(
    "path", sorted(GOLDEN.glob("*.sql")), ids=lambda path: path.stem
)
def test_a_golden_text_gives_its_plan_and_its_canonical_text(path: Path):
    text, plan, canonical = path.read_text(encoding="utf-8").strip().split("\n\n")
    *areas, statement = parse(text)
    assert {each.op for each in areas} <= {"create_area"}
    assert statement.plan is not None
    assert json.loads(json.dumps(statement.plan.to_json())) == json.loads(plan)
    assert to_text(statement.plan, statement.name) == canonical


@pytest.mark.spec("G4")
@given(x1=numbers, y1=numbers, x2=numbers, y2=numbers)
def test_two_corners_in_any_order_are_one_box(
    x1: float, y1: float, x2: float, y2: float
):
    found = {
        plan_of(
            f"REGISTER QUERY q AS SELECT * FROM s INSIDE ({a!r}, {b!r}, {c!r}, {d!r})"
        ).inside
        for a, b, c, d in (
            (x1, y1, x2, y2),
            (x2, y2, x1, y1),
            (x1, y2, x2, y1),
            (x2, y1, x1, y2),
        )
    }
    (box,) = found
    assert box is not None
    assert sorted((x1, x2)) == [box.minx, box.maxx]
    assert sorted((y1, y2)) == [box.miny, box.maxy]


@given(
    text=st.one_of(
        st.text(),
        st.lists(st.sampled_from(WORDS)).map(" ".join),
        st.lists(st.sampled_from(WORDS)).map("".join),
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
@example("REGISTER QUERY q AS SELECT * FROM s " + "[ROWS 5] " * 500)
@example("CREATE AREA a AS " + "(" * 5000)
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
            parse(statement.text)[0] == statement
            for statement in statements
            if statement.line == 1 == statement.column
        )


@given(
    texts=st.lists(
        st.sampled_from(
            ("DROP QUERY a", "REGISTER QUERY b AS SELECT * FROM s INSIDE (0, 0, 1, 1)")
        ),
        min_size=1,
    )
)
def test_each_statement_knows_its_text_and_place(texts: list[str]):
    whole = " ;\n ".join(texts)
    statements = parse(whole)
    assert [statement.text for statement in statements] == texts
    lines = whole.split("\n")
    for statement in statements:
        assert lines[statement.line - 1][statement.column - 1 :].startswith(
            statement.text
        )


@pytest.mark.parametrize(
    ("unit", "metres"),
    [
        ("m", 7.0),
        ("km", 7000.0),
        ("ft", 2.1336),
        ("mi", 11265.408),
        ("nmi", 12964.0),
        ("KM", 7000.0),
    ],
)
def test_a_distance_is_stored_in_metres(unit: str, metres: float):
    plan = plan_of(
        f"REGISTER QUERY q AS SELECT * FROM s JOIN l ON ST_DWithin(s, l, 7 {unit})"
    )
    assert plan.join is not None
    assert math.isclose(plan.join.distance_m, metres, rel_tol=1e-12)


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("5 kms", 5000),
        ("2 metres", 2),
        ("0.5 Miles", 804.672),
        ("1 min", 60),
        ("2 hours", 7200),
        ("250 ms", 0.25),
        ("36 km/h", 10),
        ("10 kn", 18520 / 3600),
        ("1 mph", 1609.344 / 3600),
        ("7 m/s", 7),
        ("-3 m/s", -3),
        (".5 km", 500),
        ("90 ft/min", 0.4572),
    ],
)
def test_a_number_with_a_unit_is_in_metres_and_seconds(written: str, stored: float):
    where = plan_of(f"REGISTER QUERY q AS SELECT * FROM s WHERE a > {written}").where
    assert where is not None
    assert math.isclose(float(where.removeprefix("a > ")), stored, rel_tol=1e-12)


@pytest.mark.spec("W2")
@pytest.mark.parametrize(
    "window",
    [
        "[RANGE BY 50 km RATTR SPACE, SLIDE BY 10 km SATTR SPACE]",
        "[RANGE BY '50 kms' RATTR SPACE, SLIDE BY '10000m' SATTR SPACE]",
        "[range by 50000 M rattr space , slide by ' +1e1 km ' sattr space]",
    ],
)
def test_extents_of_windows_are_metres_in_any_spelling(window: str):
    frame = plan_of(f"REGISTER QUERY q AS SELECT * FROM s {window}").frame
    slide = Extent(by="space", amount=10_000.0)
    assert frame == Frame(
        sliding=(Sliding(range=Extent(by="space", amount=50_000.0), slide=slide),)
    )


WORDS_OF_WINDOWS = "range rows slide rattr sattr space compare area istream feature circle stamps explain key filter"


@pytest.mark.parametrize("word", [*WORDS_OF_WINDOWS.split(), "enlarge", "avgspd"])
def test_words_of_windows_stay_names_elsewhere(word: str):
    text = f"REGISTER QUERY {word} AS SELECT {word} FROM {word} {word} WHERE {word}.{word} = 1 INSIDE (1, 2, 3, 4)"
    plan = plan_of(text)
    assert (plan.stream, plan.columns, plan.where) == (
        word,
        ((word, word),),
        f"{word} = 1",
    )


def test_other_statements_say_what_they_are_about():
    statements = parse(
        "SHOW QUERIES; show areas; SHOW streams; EXPLAIN q; EXPLAIN SELECT * FROM s; DROP AREA a"
    )
    assert [(s.op, s.name, s.what) for s in statements] == [
        ("show", "", "queries"),
        ("show", "", "areas"),
        ("show", "", "streams"),
        ("explain", "q", None),
        ("explain", "", None),
        ("drop_area", "a", None),
    ]
    assert [statement.plan for statement in statements] == [
        None,
        None,
        None,
        None,
        Plan(stream="s"),
        None,
    ]


@pytest.mark.parametrize(
    "text",
    [
        "JOIN l ON line = l.ref AND l.kind = 'a' AND l.t = 'x' AND s.a > 1 WHERE b",
        "JOIN l ON l.kind = 'a' AND s.a > 1 AND line = l.ref WHERE b AND l.t = 'x'",
        "JOIN L x ON X.t = 'x' AND X.ref = S.line AND s.a > 1 AND b AND x.KIND IN ('a')",
        ", l x WHERE x.kind = 'a' AND a > 1 AND b AND x.t = 'x' AND line = x.ref",
    ],
)
def test_conditions_join_or_choose_in_any_order_and_place(text: str):
    plan = plan_of(f"REGISTER QUERY q AS SELECT * FROM s {text}")
    assert plan.join is not None
    join = LayerJoin(
        layer=plan.join.layer,
        predicate="equals",
        kinds=("a",),
        left="line",
        right="ref",
        tags=(("t", "x"),),
    )
    assert (plan.join, plan.where) == (join, "a > 1 AND b")


class Home:
    """Areas and layers of a home."""

    def named(self, name: str) -> Region | None:
        return BOX if name.lower() == "centre" else None

    def as_it_is(self, name: str) -> Region | None:
        return self.named(name)

    def why_not(self, *_: str) -> str:
        return ""

    def feature(self, layer: str, fid: str) -> Region | None:
        return (
            Area(wkt="POLYGON ((0 0, 0 1, 1 1, 0 0))")
            if (layer, fid) == ("parks", "p1")
            else None
        )

    def names(self) -> Collection[str]:
        return ["centre"]

    def layers(self) -> Collection[str]:
        return ["parks"]


BOX = Box(minx=1.0, miny=2.0, maxx=3.0, maxy=4.0)


@pytest.mark.spec("P4")
def test_a_named_area_is_the_region_that_it_names_there():
    text = """REGISTER QUERY a AS SELECT * FROM s INSIDE Centre;
        CREATE AREA "Centre" AS (5, 6, 7, 8); CREATE AREA again AS CENTRE;
        REGISTER QUERY b AS SELECT * FROM s [RANGE BY centre RATTR SPACE] INSIDE Again;
        CREATE AREA p AS FEATURE (Parks, 'p1')"""
    first, created, again, second, feature = parse(text, areas=Home())
    assert first.plan is not None
    assert first.plan.inside == BOX
    new = Box(minx=5.0, miny=6.0, maxx=7.0, maxy=8.0)
    assert (created.op, created.name, created.region, again.region) == (
        "create_area",
        "Centre",
        new,
        new,
    )
    assert second.plan is not None
    assert (second.plan.inside, second.plan.frame) == (new, Frame(regions=(new,)))
    assert feature.region == Home().feature("parks", "p1")


@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        (
            "REGISTER QUERY q AS SELECT * FROM s INSIDE centr",
            "centr",
            "unknown area 'centr' (did you mean centre?)",
        ),
        (
            "REGISTER QUERY q AS SELECT * FROM s INSIDE zz",
            "zz",
            "CREATE AREA zz AS (x1, y1, x2, y2)",
        ),
        (
            "DROP AREA centre; REGISTER QUERY q AS SELECT * FROM s INSIDE centre",
            "centre",
            "unknown area 'centre'",
        ),
        (
            "CREATE AREA a AS FEATURE (park, 'p1')",
            "park,",
            "unknown layer 'park' (did you mean parks?)",
        ),
        (
            "CREATE AREA a AS FEATURE (parks, 'p2')",
            "'p2'",
            "layer parks has no feature 'p2'",
        ),
        ("CREATE AREA a AS FEATURE (parks)", "parks", "expected 2 parts, not 1"),
        (
            "CREATE AREA a AS FEATURE ('parks', 'p1')",
            "'parks'",
            "expected the name of a layer",
        ),
        ("CREATE AREA a (1, 2, 3, 4)", "(1", "expected AS, not '('"),
        (
            "CREATE AREA a AS SELECT",
            "SELECT",
            "expected (x1, y1, x2, y2), or another region",
        ),
        ("CREATE AREA a AS (1, 2, 3)", "1, 2", "expected 4 numbers, not 3"),
        ("CREATE AREA a AS (1, 2, 3, 4) WHERE x", "WHERE", "expected CROSSING or ';'"),
        ("SHOW QUERY", "QUERY", "did you mean QUERIES?"),
        ("EXPLAIN", None, "expected the name of a query, ANALYZE or SELECT"),
        ("DROP ARIA a", "ARIA", "did you mean AREA?"),
    ],
)
def test_an_error_of_an_area_points_at_its_place(text: str, at: str | None, says: str):
    with pytest.raises(TextError) as caught:
        parse(text, areas=Home())
    (problem,) = caught.value.problems
    assert says in str(problem)
    assert problem.column == (len(text) if at is None else text.rindex(at)) + 1


def test_an_area_that_was_refused_is_not_refused_again_where_it_is_used():
    text = "CREATE AREA a AS (1, 2); REGISTER QUERY q AS SELECT * FROM s INSIDE a; REGISTER QUERY r AS SELECT * FROM s"
    with pytest.raises(TextError) as caught:
        parse(text)
    assert len(caught.value.problems) == 1
    assert [statement.name for statement in caught.value.understood] == ["q", "r"]


def test_a_select_alone_is_read_for_who_explains_it():
    statement = select_of("SELECT a FROM s INSIDE centre;", areas=Home())
    assert (statement.op, statement.name) == ("explain", "")
    assert statement.plan == Plan(stream="s", inside=BOX, columns=(("a", "a"),))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "DROP QUERY a",
        "SELECT * FROM s; SELECT * FROM s",
        "SELECT * FROM s x y",
        "SELECT * FROM s INSIDE b",
    ],
)
def test_what_is_no_select_is_none(text: str):
    with pytest.raises(TextError):
        select_of(text)


@pytest.mark.spec("P4")
def test_all_that_is_wrong_with_the_clauses_of_a_statement_comes_at_once():
    text = """REGISTER QUERY q AS SELECT a + now(), lower(), b AS a FROM s [RANGE BY 5 min RATTR SPACE] [RANGE 0 s]
        JOIN l [ROWS 5] ON ST_Intersects(s, ll) WHERE rand() > 1 AND speed_mps > 5 km AND l.kid = 'x' AND l.fid = 5
        INSIDE (1, 2) KNN (0, 1, 1) WINDOW 5 kn COMPARE WITH (1, 2, 3) USING enlarge(5), enlrge(5 m), filter(5)
        EMIT EVERY WITH (plan = 'x', pln = 'y', min_step = 'z', origin = 'w', windows = 'v', plan = 'auto')"""
    with pytest.raises(TextError) as caught:
        parse(text)
    places = [(problem.line, problem.column) for problem in caught.value.problems]
    assert places == sorted(places)
    assert [sum(line == at for at, _ in places) for line in (1, 2, 3, 4)] == [
        4,
        6,
        7,
        7,
    ]


@pytest.mark.spec("P4")
@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("SELECT a b FROM s INSIDE (1, 2) KNN (0, 1, 1)", ("b", "1, 2)", "0, 1")),
        (
            "SELECT EXTRACT(foo, FROM t), 1 + FROM s WHERE a = l.b WINDOW 5",
            (", FROM t", None),
        ),
        (
            "SELECT * FROM s JOIN l ON ST_Intersect(s, l) WHERE l.kind = 'x' INSIDE (1, 2",
            ("ST_Intersect", None),
        ),
        (
            "SELECT * FROM s INSDE (1, 2) WHERE a = EMIT EVRY WITH (plan = x)",
            ("INSDE", "EMIT", "EVRY", "x)"),
        ),
        ("SELECT * FROM s EMIT CHANGE WITH VALID UNTIL KNN (3, 1)", ("CHANGE", "3, 1")),
        (
            "SELECT * FROM s INSIDE (1, 2, 3, 4) INSIDE (1, 2, 3, 4) WINDOW 5 kn",
            ("INSIDE (1, 2, 3, 4) W", "kn"),
        ),
        ("SELECT * FROM s [ROWS] WHERE", ("]",)),
        ("SELECT * FROM s WHERE a > 5 kmm INSIDE x", ("kmm", "x")),
        ("SELECT COUNT(*), a FROM s GROUP BY INSIDE (1, 2, 3)", ("INSIDE", "1, 2")),
        ("SELECT * FROM s INSIDE (1, 2 DROP QUERY a", ("DROP",)),
    ],
)
def test_behind_a_clause_that_cannot_be_read_the_next_one_is(
    text: str, places: tuple[str | None, ...]
):
    with pytest.raises(TextError) as caught:
        parse("REGISTER QUERY q AS\n" + text)
    found = [problem.column for problem in caught.value.problems]
    assert found == [
        len(text) + 1 if place is None else text.rindex(place) + 1 for place in places
    ]


@pytest.mark.parametrize("quote", ["\u2018", "\u2019", "\u201d", "\u00b4"])
def test_a_quote_as_papers_print_it_is_named(quote: str):
    with pytest.raises(TextError) as caught:
        parse(
            f"REGISTER QUERY q AS SELECT * FROM s WHERE a = {quote}b{quote} AND b = '{quote}'"
        )
    assert [problem.column for problem in caught.value.problems] == [47]
    assert f"{quote} is no quote here" in str(caught.value)


def test_replace_and_drop_are_statements_and_blanks_are_none():
    statements = parse(
        ";; DROP QUERY a; -- a comment\nREPLACE QUERY b AS SELECT * FROM s;;"
    )
    assert [(s.op, s.name, s.plan) for s in statements] == [
        ("drop", "a", None),
        ("replace", "b", Plan(stream="s")),
    ]
    assert parse(" \n-- nothing") == []


REGISTER = "REGISTER QUERY q AS SELECT * FROM s "
JOIN = REGISTER + "JOIN l ON ST_Intersects(s, l) "


@pytest.mark.spec("P4")
@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        ("REGSTER QUERY q AS SELECT * FROM s", "REGSTER", "did you mean REGISTER?"),
        ("REGISTER QURY q AS SELECT * FROM s", "QURY", "did you mean QUERY?"),
        (
            "REGISTER QUERY AS SELECT * FROM s",
            "AS",
            "expected a name for the query or IF NOT EXISTS, not 'AS'",
        ),
        ("REGISTER QUERY q-1 AS SELECT * FROM s", "-1", "double quotes"),
        ("REGISTER QUERY q SELECT * FROM s", "SELECT", "expected AS"),
        ("REGISTER QUERY q AS SELECT FROM s", "FROM", "expected * or an expression"),
        (
            "REGISTER QUERY q AS SELECT DISTINCT * FROM s",
            "* FROM",
            "one expression after DISTINCT",
        ),
        ("REGISTER QUERY q AS SELECT * FORM s", "FORM", "did you mean FROM?"),
        (
            "REGISTER QUERY q AS SELECT * FROM (SELECT 1)",
            ")",
            "expected FROM",
        ),
        ('REGISTER QUERY q AS SELECT * FROM "tax is"', '"tax is"', "small letters"),
        (
            "REGISTER QUERY q AS SELECT * FROM s, t",
            "t",
            "expected a condition in WHERE that joins t",
        ),
        (REGISTER + "INSDE (1, 2, 3, 4)", "INSDE", "did you mean INSIDE?"),
        (REGISTER + "GROUP BY x", "x", "GROUP BY needs an aggregate"),
        (REGISTER + "LIMIT 5", "LIMIT", "not 'LIMIT'"),
        (
            REGISTER + "REGISTER QUERY r AS SELECT * FROM s",
            "REGISTER QUERY r",
            "a statement ends with ;",
        ),
        (REGISTER + "INSIDE (1, 2, 3)", "1, 2, 3", "expected 4 numbers, not 3"),
        (REGISTER + "INSIDE (1, 2, 3, nan)", "nan", "expected a number, not 'nan'"),
        (REGISTER + "INSIDE (1, 2, 3, inf)", "inf", "expected a number, not 'inf'"),
        (REGISTER + "INSIDE (1, 2, 3, -1e999)", "-1e999", "too large"),
        (REGISTER + "INSIDE (1, 2, 3, '4')", "'4'", "expected a number"),
        (
            REGISTER + "INSIDE (1, 2, 3, 4",
            None,
            "expected a unit such as min, ',' or ')', not the end",
        ),
        (
            REGISTER + "INSIDE (1, 2, 3, 4) INSIDE (1, 2, 3, 4)",
            "INSIDE (1, 2, 3, 4)",
            "multiple 'INSIDE'",
        ),
        (REGISTER + "EMIT CHANGE", "CHANGE", "did you mean CHANGES?"),
        (REGISTER + "JION l ON ST_Intersects(s, l)", "JION", "did you mean JOIN?"),
        (REGISTER + "RIGHT JOIN l ON ST_Intersects(s, l)", "RIGHT", "not 'RIGHT'"),
        (REGISTER + "JOIN l", None, "or ON and a condition, not the end"),
        (
            REGISTER + "JOIN l ON ST_Intersect(s, l)",
            "ST_Intersect(s, l",
            "did you mean ST_Intersects?",
        ),
        (
            REGISTER + "JOIN l ON ST_Intersects(s, ll)",
            "ll",
            "expected the stream and the layer, not 'll'",
        ),
        (
            REGISTER + "JOIN s ON ST_Intersects(s, s)",
            "s ON",
            "two things are called 's'",
        ),
        (REGISTER + "JOIN l ON ST_DWithin(s, l)", ")", "expected ','"),
        (REGISTER + "JOIN l ON ST_DWithin(s, l, 5)", ")", "expected a unit"),
        (
            REGISTER + "JOIN l ON ST_DWithin(s, l, 5 parsecs)",
            "parsecs",
            "one of m, km, ft, mi, nmi",
        ),
        (REGISTER + "JOIN l ON ST_DWithin(s, l, -5 m)", "-5", "0 or more"),
        (JOIN + "AND ST_Within(s, l)", "ST_Within", "one condition by place"),
        (JOIN + "JOIN m ON ST_Intersects(s, m)", "m ON", "one layer"),
        (JOIN + "WHERE l.kind = forest", "forest", "'forest'"),
        (JOIN + 'WHERE l.kind = "forest"', '"forest"', "single quotes"),
        (JOIN + "WHERE l.kid = 'forest'", "l.kid", "did you mean kind?"),
        (JOIN + "WHERE l.kind IN ()", ")", "expected an expression, not ')'"),
        (JOIN + "WHERE", None, "expected a condition, not the end"),
        (REGISTER + "WHERE l.kind = 'x'", "l.kind", "unknown name 'l'"),
        (REGISTER + "INSIDE (1, 2, 3, 'x", "'x", "' is not closed"),
        ("DROP VIEW x", "VIEW", "expected QUERY"),
        ("DROP QUERY a b", "b", "expected ';'"),
        ('DROP QUERY "\t"', '"\t"', "is no name for a query"),
        (
            "LIST QUERIES",
            "LIST",
            "expected REGISTER, REPLACE, DROP, CREATE, SHOW, EXPLAIN or SELECT, not 'LIST'",
        ),
    ],
)
def test_an_error_points_at_the_place_and_says_what_was_expected(
    text: str, at: str | None, says: str | None
):
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
    assert str(caught.value).startswith(
        "queries.sql:1:353: expected a number, not 'four'"
    )


def test_all_problems_of_a_text_come_at_once():
    with pytest.raises(QueryError) as caught:
        parse("DROP QERY a;\nDROP QUERY b;\nDROP QUERY;\nINSIDE")
    error = caught.value
    assert isinstance(error, TextError)
    assert [(problem.line, problem.column) for problem in error.problems] == [
        (1, 6),
        (3, 11),
        (4, 1),
    ]
    assert str(error).endswith("; 2 more problems")
    assert error.details.count("^") >= 3


def test_what_is_wrong_goes_to_another_process_with_its_places():
    with pytest.raises(TextError) as wrong:
        parse("REGISTER QUERY q AS SELECT * FORM taxis; DROP QUERY 7")
    sent = pickle.loads(pickle.dumps(wrong.value))
    assert str(sent) == str(wrong.value)
    assert sent.details == wrong.value.details
