"""Where errors of the clauses point and what they say: by the text alone, and on a stream."""

from pathlib import Path

import duckdb
import pytest

from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.query.cells import add_cells
from st_common.query.grammar.words import is_plain
from st_common.query.lowering.functions import FUNCTIONS
from st_common.query.problem import TextError
from st_common.query.registry import check
from st_common.query.text import parse

FROM = "REGISTER QUERY q AS SELECT * FROM s "
JOIN = FROM + "JOIN l ON ST_Intersects(s, l) "
PAIRS = FROM + "JOIN s b ON "
SELECT = "REGISTER QUERY q AS SELECT "


@pytest.mark.spec("P4")
@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        # INSIDE
        (FROM + "INSIDE CIRCLE (1, 2)", "1, 2", "expected 3 numbers, not 2"),
        (FROM + "INSIDE CIRCLE (1, 2, -5 m)", "-5", "a radius is 0 or more"),
        (FROM + "INSIDE CIRCLE (1, 2, 5 parsecs)", "parsecs", "one of m, km"),
        (FROM + "INSIDE CIRCLE (1 m, 2, 5)", "1 m", "without a unit"),
        (FROM + "INSIDE CIRCEL (1, 2, 5)", "CIRCEL", "expected (x1, y1, x2, y2)"),
        (FROM + "INSIDE (1, 2, 3, 1e)", "1e", "'1e' is no number"),
        (FROM + "INSIDE (1, 2, 3)", "1, 2, 3", "INSIDE CIRCLE (x, y, radius)"),
        (FROM + "INSIDE ('M', 'a')", "'M'", "expected 4 parts, not 2"),
        (FROM + "INSIDE ('M', a, 1, 2)", "a, 1", "'a'"),
        (FROM + "INSIDE ('M', '', 1, 2)", "''", "the id of an object"),
        (FROM + "INSIDE ('M', 'a', 1, -2)", "-2", "a side is 0 or more"),
        (FROM + "INSIDE ('M', 'a', 1 m, 2)", "2)", "a unit at both sides, or at none"),
        (FROM + "INSIDE ('M', 'a', -1)", "-1", "a radius is 0 or more"),
        (FROM + "INSIDE 'POLYGON((0 0, 1 1'", "'POLYGON", "no WKT"),
        (
            FROM + "INSIDE 'POINT(1 1)'",
            "'POINT",
            "expected a polygon or multipolygon, not a Point",
        ),
        (FROM + "INSIDE 'POLYGON EMPTY'", "'POLYGON", "not an empty area"),
        (
            FROM + "INSIDE 'POLYGON((0 0, 1 1, 1 0, 0 1, 0 0))'",
            "'POLYGON",
            "its border crosses itself at (0.5, 0.5)",
        ),
        (FROM + "INSIDE 'POLYGON((0 0, 1e999 0, 1 1, 0 0))'", "'POLYGON", ""),
        (FROM + "WITHIN (0, 0, 1, 1)", "WITHIN", "did you mean INSIDE?"),
        (FROM + "NEAREST (3, 1, 1)", "NEAREST", "did you mean KNN?"),
        (FROM + "INSIDE (0, 0, 1, 1) DWELL 2 min", "DWELL", "mean DETECT DWELL?"),
        (FROM + "WITHIN 300 m", "300", "did you mean INSIDE?"),
        # a clause that is half written, which would be an alias
        (FROM + "INS", "INS", "did you mean INSIDE? As an alias it is written AS INS"),
        (FROM + "in", "in", "did you mean INNER or INSIDE or INTERSECTS?"),
        (FROM + "insdie", "insdie", "did you mean INSIDE?"),
        (FROM + "NEARBY", "NEARBY", "did you mean KNN?"),
        (FROM + "GROUP EMIT EVERY", "GROUP", "did you mean GROUP BY or GROUP KNN?"),
        (FROM + "[RANGE 5 min] WHER", "WHER", "an alias that nothing uses"),
        (
            "REGISTER QUERY q AS SELECT * FROM (SELECT a FROM s whe)",
            "whe",
            "did you mean WHERE?",
        ),
        # KNN
        (FROM + "KNN (0, 1, 2)", "0, 1", "k is a whole number from 1 to 10000"),
        (FROM + "KNN (2.5, 1, 2)", "2.5", "whole number"),
        (FROM + "KNN (10001, 1, 2)", "10001", "to 10000"),
        (FROM + "KNN ('M', 'a', 3)", "'a'", "expected a number"),
        (FROM + "KNN (3, 1)", "3, 1", "KNN (k, x, y), or KNN ('M', k, 'id')"),
        (FROM + "KNM (3, 1, 2)", "KNM", "did you mean KNN?"),
        (FROM + "REVERSE KNN (3, 1, 2)", "3, 1, 2", "expected 2 numbers, not 3"),
        (FROM + "GROUP KNN (3, SUM)", "GROUP KNN", "at least one place"),
        (FROM + "GROUP KNN (3, SUMM, (1, 2))", "SUMM", "did you mean SUM?"),
        (FROM + "GROUP KNN (3, SUM, 1, 2)", "1, 2", "expected a place such as (x, y)"),
        (
            FROM + "GROUP KNN (3, SUM, (1, 2), ((1, 2)))",
            "(1, 2)))",
            "expected a number",
        ),
        (FROM + "KNN (1, 1, 2) REVERSE KNN (1, 2)", "REVERSE", "multiple"),
        # WHERE and other expressions
        (FROM + "WHERE speed >", None, "expected an expression, not the end"),
        (FROM + "WHERE lower(a", None, "expected ',', ')' or an operator, not the end"),
        (
            FROM + "WHERE a IN (SELECT 1)",
            "SELECT 1)",
            "no place inside of an expression",
        ),
        (
            FROM + "WHERE EXISTS (SELECT 1)",
            ")",
            "expected FROM",
        ),
        (
            FROM + "WHERE read_csv('/etc/passwd') = 'a'",
            "read_csv('",
            "unknown function READ_CSV",
        ),
        (FROM + "WHERE lenght(a) = 1", "lenght(a", "did you mean LENGTH?"),
        (FROM + "WHERE random() < 1", "random", "unknown function RANDOM"),
        (FROM + "WHERE now() > event_ts", "now", "unknown function NOW"),
        (
            FROM + "WHERE substr(a) = 'x'",
            "substr(a",
            "SUBSTR takes 2 to 3 arguments, not 1",
        ),
        (
            FROM + "WHERE COUNT(*) > 3",
            "COUNT(*",
            "stands alone in the list after SELECT",
        ),
        (FROM + "WHERE a = b = c", "a = b", "read in two ways"),
        (FROM + "WHERE a = b IS NULL", "b IS", "read in two ways"),
        (FROM + "WHERE ST_DWithin(s, l, 5 m)", "ST_DWithin", "it stands after ON"),
        (FROM + "WHERE a[1] = 2", "[1]", "or an operator, not '['"),
        (FROM + "WHERE a = 'x' 'y'", None, None),
        (FROM + "WHERE a IN ()", ")", "expected an expression, not ')'"),
        (
            FROM + "WHERE CAST(a AS money) > 3",
            "money",
            "expected a type such as BIGINT",
        ),
        (FROM + "WHERE CAST(a AS itn) > 3", "itn", "did you mean INT?"),
        (FROM + "WHERE t.speed > 3", "t.speed", "unknown name 't'"),
        (FROM + "WHERE s.a.b > 3", "s.a.b", "expected a column"),
        (FROM + "WHERE a > 1e999", "1e999", "too large"),
        (FROM + "WHERE lower(a) OVER () = 'x'", "OVER", "or an operator, not 'OVER'"),
        (JOIN + "WHERE l.kind = 'a' AND l.kind = 'b'", "l.kind = 'b'", "chosen twice"),
        (JOIN + "WHERE l.fid = speed", "speed", "a text in single quotes ('speed')"),
        (JOIN + "WHERE l.fid IN ('a', 'b')", "l.fid IN", "the fid equals one text"),
        (JOIN + "WHERE lower(l.kind) = 'a'", "lower(l.kind", "expected l.kind"),
        # SELECT and GROUP BY
        (SELECT + "*, a FROM s", ", a", "* stands alone"),
        (
            SELECT + "a b FROM s",
            "b FROM",
            "expected FROM, ',', AS or an operator, not 'b'",
        ),
        (SELECT + "a, FROM s", "FROM", "expected an expression, not 'FROM'"),
        (SELECT + "a, b AS a FROM s", "a FROM", "two columns are called 'a'"),
        (SELECT + "COUNT(*), AVGSPD(a) FROM s", "a) FROM", "AVGSPD is of a stream"),
        (SELECT + "COUNT(*) + 1 FROM s", "COUNT(*", "nothing is computed from it"),
        (
            SELECT + "a, COUNT(*) FROM s",
            "a, COUNT",
            "expected what the query is grouped by",
        ),
        (SELECT + "a, COUNT(*) FROM s GROUP BY b", "a, COUNT", "the keys are b"),
        (SELECT + "SUM(*) FROM s", "*) FROM", "SUM takes a number, not *"),
        (
            SELECT + "SUM(DISTINCT a) FROM s",
            "SUM",
            "DISTINCT takes one argument, of COUNT",
        ),
        (SELECT + "MAX(a, b) FROM s", "MAX", "MAX takes one argument, not 2"),
        (
            SELECT + "COUNT(*) FROM s GROUP BY 1",
            "1",
            "expected an expression to group by",
        ),
        (
            SELECT + "COUNT(*) FROM s GROUP BY (a, b)",
            ", b",
            "expected ')' or an operator, not ','",
        ),
        (
            SELECT + "COUNT(*) FROM s GROUP BY a, WHERE b",
            "WHERE",
            "expected an expression, not 'WHERE'",
        ),
        (SELECT + "DISTINCT a, b FROM s", "b FROM", "one expression after DISTINCT"),
        (SELECT + "DISTINCT a FROM s GROUP BY a", "a", "exclude each other"),
        (
            SELECT
            + "COUNT(*) FROM s JOIN l ON ST_Intersects(s, l) GROUP BY l.kind || a",
            "l.kind || a",
            "about the object, or about the feature",
        ),
        (
            SELECT + "COUNT(*) FROM s JOIN l ON ST_Intersects(s, l) GROUP BY partner",
            "partner",
            "GROUP BY layer.fid",
        ),
        (
            SELECT + 'DISTINCT l."Name" FROM s JOIN l ON ST_Intersects(s, l)',
            'l."Name"',
            "is in small letters",
        ),
        (
            SELECT + "COUNT(l.name) FROM s JOIN l ON ST_Intersects(s, l) WINDOW 1 s",
            "l.name",
            "l.fid in GROUP BY",
        ),
        # JOIN
        (FROM + "JOIN l ON s.a = s.b", "s.a", "expected a column of l at one side"),
        (FROM + "JOIN l ON a > 3 = l.fid", "a > 3", "read in two ways"),
        (
            FROM + "JOIN l ON ST_Intersects(s, l) AND ST_DWithin(s, l, 5 m)",
            "ST_DWithin",
            "one condition by place and one key",
        ),
        (PAIRS + "ST_DWithn(s, b, 1 km)", "ST_DWithn", "did you mean ST_DWithin?"),
        (PAIRS + "ST_Intersects(s, b)", "ST_Intersects", "JOIN LAYER"),
        (PAIRS + "ST_DWithin(s, c, 1 km)", "c,", "expected s and b, not 'c'"),
        (
            PAIRS + "ST_DWithin(s, b, 1 km) AND ST_DWithin(s, b, 2 km)",
            "ST_DWithin(s, b, 2",
            "a distance already",
        ),
        (PAIRS + "a = b.a", "a = b.a", "expected a column of one of the two"),
        (PAIRS + "s.a = s.b", "s.a", "both sides of this key are of 's'"),
        (PAIRS + "s.a = b.b", "s.a", "the sides of a key say the same, not a and b"),
        (PAIRS + "s.a < b.a", "s.a", "expected a distance or a key"),
        (PAIRS + "s.a + b.a = b.a", "s.a", "about one of the two"),
        (PAIRS + "s.a = b.a WHERE distance(s) > 3", "distance(s)", "of the two"),
        (PAIRS + "s.a = b.a WHERE bearing(b, s) > 3", "bearing(b, s)", "this order"),
        (PAIRS + "s.a = b.a WHERE b.speed_mps > 3 s", "3 s", "expected a speed"),
        (FROM + "WHERE distance(s, b) > 3", "distance(s, b)", "has no place here"),
        (
            FROM + "a, s b WHERE a.x > 1",
            "s b",
            "expected a condition in WHERE that joins b",
        ),
        (FROM + "a, l b, m WHERE a.x = b.x", "m WHERE", "joins one layer"),
        (
            FROM + ", l WHERE s.a = l.b AND s.c = l.d",
            "s.c",
            "one condition by place and one key",
        ),
        (
            FROM + "JOIN l ON ST_Within(l, s)",
            "l, s",
            "an object contains nothing (ST_Within(s, l)",
        ),
        (FROM + "JOIN l ON ST_Contains(s, l)", "l)", "an object contains nothing"),
        (
            FROM + "JOIN l ON ST_Intersects(s, l) AND l.name IN ('a', 'b')",
            "l.name",
            "a tag equals one text",
        ),
        (
            FROM + "JOIN l ON ST_Intersects(s, l) AND l.\"Name\" LIKE 'a'",
            'l."Name"',
            "is in small letters",
        ),
        (
            FROM + "JOIN l ON ST_Intersects(s, l) AND l.kind = 'a' AND l.kind = 'b'",
            "l.kind = 'b'",
            "chosen twice",
        ),
        (
            FROM + "JOIN l ON ST_Intersects(s, l) AND l.\"\" = 'a'",
            'l."',
            "expected the name of a tag",
        ),
        (
            FROM + "JOIN l ON speed > 3",
            "speed",
            "expected ST_Intersects, ST_Within, ST_Contains or ST_DWithin",
        ),
        (PAIRS + "ST_Contains(s, b)", "ST_Contains", "ST_Within needs a layer"),
        # windows in brackets
        (FROM + "[RANG 5 s]", "RANG", "did you mean RANGE?"),
        (FROM + "[5 s]", "5", "expected RANGE, ROWS or SESSION"),
        (FROM + "[RANGE 5 s", None, "expected ',' or ']', not the end"),
        (FROM + "[RANGE 5]", "5", "expected a time with its unit"),
        (FROM + "[RANGE 5 km]", "km", "'km' is a unit of distance"),
        (FROM + "[RANGE 'an hour']", "'an", "expected a time such as '60 minutes'"),
        (FROM + "[RANGE '60 minuts']", "minuts", "did you mean minutes?"),
        (FROM + "[RANGE '-60 minutes']", "-60", "at least a microsecond"),
        (FROM + "[RANGE 0 s]", "0 s", "an extent is at least a microsecond"),
        (FROM + "[RANGE 5 s, SLIDE 0 s]", "0 s", "an extent is at least a microsecond"),
        (FROM + "[RANGE 5 s, SLID 3 s]", "SLID", "did you mean SLIDE?"),
        (FROM + "[RANGE BY 5 km]", "]", "expected RATTR SPACE or RATTR TIME"),
        (
            FROM + "[RANGE BY 5 RATTR SPACE]",
            "5",
            "expected a distance with its unit (such as 50 km)",
        ),
        (FROM + "[RANGE BY 5 km RATTR SPCE]", "SPCE", "did you mean SPACE?"),
        (
            FROM + "[RANGE BY 5 km RATTR TIME]",
            "km",
            "expected a time, and 'km' is a unit of distance",
        ),
        (FROM + "[RANGE BY 0 km RATTR SPACE]", "0 km", "at least a micrometre"),
        (FROM + "[RANGE BY '-5 km' RATTR SPACE]", "-5 km", "at least a micrometre"),
        (
            FROM + "[RANGE BY 5 km RATTR SPACE, SLIDE BY 0 m SATTR SPACE]",
            "0 m",
            "at least a micrometre",
        ),
        (FROM + "[RANGE BY 5 km RATTR SPACE, SLIDE 1 km]", "1 km", "expected BY"),
        (
            FROM + "[RANGE BY 5 km RATTR SPACE, SLIDE BY (1, 2, 3, 4) SATTR SPACE]",
            "(1,",
            "expected an extent",
        ),
        (
            FROM + "[RANGE BY (1, 2, 3, 4) RATTR TIME]",
            "(1,",
            "a region is a range of SPACE",
        ),
        (
            FROM + "[RANGE BY (1, 2, 3, 4) RATTR SPACE, SLIDE BY 1 m SATTR SPACE]",
            "1 m",
            "it has no SLIDE",
        ),
        (
            FROM + "[RANGE BY ('M', 'a', 5 m) RATTR SPACE]",
            "('M'",
            "the region of a window stands still",
        ),
        (FROM + "[RANGE BY nowhere RATTR SPACE]", "nowhere", "unknown area 'nowhere'"),
        (FROM + "[ROWS 0]", "0", "a number of fixes is a whole number from 1"),
        (FROM + "[ROWS 5 m]", "5 m", "without a unit"),
        (FROM + "[ROWS]", "]", "expected a number of fixes"),
        (FROM + "[ROWS 5, SLIDE 2.5]", "2.5", "whole number"),
        (FROM + "r [ROWS 5]", "[ROWS", "a window stands before the alias"),
        (
            "REGISTER QUERY q AS SELECT * FROM a = s [ROWS 5] b",
            "b",
            "expected a window in brackets, FROM BEGINNING, ',', INNER, LEFT, JOIN, WHERE",
        ),
        (
            FROM + "JOIN l [ROWS 5] ON ST_Intersects(s, l)",
            "[ROWS",
            "a layer has no window",
        ),
        (
            PAIRS.replace("b ON", "[ROWS 5] b ON") + "s.a = b.a",
            "[ROWS",
            "behind the first stream",
        ),
        # streams of changes, and what CQL-S selects
        (SELECT + "ISTREAM(a FROM s", "FROM", "expected ',', ')', AS or an operator"),
        (SELECT + "ISTREAM(a), b FROM s", ", b", "expected FROM"),
        (SELECT + "ISTREM(a) FROM s", "ISTREM", "unknown function ISTREM"),
        (
            SELECT + "RSTREAM(*) FROM s EMIT EVERY",
            "EMIT",
            "RSTREAM and EMIT EVERY exclude each other",
        ),
        (SELECT + "STAMPS(a) FROM s", "STAMPS", "expected STAMPS(*)"),
        (
            SELECT + "STAMPS(*) AS p FROM s",
            "p FROM",
            "it gives the columns x, y, event_ts",
        ),
        (SELECT + "STAMPS(*), x FROM s", "x FROM", "two columns are called 'x'"),
        (SELECT + "AVGSPD(q) FROM r = s [ROWS 5]", "q) FROM", "AVGSPD(r)"),
        (
            SELECT + "AVGSPD(*), a + 1 FROM s [ROWS 5]",
            "a + 1",
            "beside AVGSPD stand literals",
        ),
        (
            SELECT + "AVGSPD(*) FROM s [ROWS 5] GROUP BY object",
            "object",
            "it is told for each object",
        ),
        # COMPARE WITH, USING
        (FROM + "COMPARE WITH (1, 2, 3)", "1, 2", "expected 4 numbers, not 3"),
        (FROM + "COMPARE WITH centre", "centre", "expected (x1, y1, x2, y2)"),
        (
            FROM + "WHERE a = 1 COMPARE (1, 2, 3, 4)",
            "COMPARE",
            "did you mean COMPARE WITH?",
        ),
        (
            FROM + "USING enlarge(5)",
            "5",
            "expected a distance with its unit (enlarge(50 m)",
        ),
        (FROM + "USING enlarge(-5 m)", "-5", "0 or more"),
        (FROM + "USING enlarge(5 s)", "s)", "'s' is a unit of time"),
        (
            FROM + "USING enlarge_factr(5)",
            "enlarge_factr",
            "did you mean enlarge_factor?",
        ),
        (FROM + "USING enlarge_factor(-1)", "-1", "a box is enlarged by 0 or more"),
        (FROM + "USING enlarge_value(1 m)", "1 m", "without a unit"),
        (FROM + "USING key(a)", "a)", "expected the id of an object in single quotes"),
        (FROM + "USING box(1, 2)", "1, 2", "expected 4 numbers"),
        (FROM + "USING filter(a)", "a)", "expected a text in single quotes"),
        (FROM + "USING filter('')", "'')", "expected the name of a filter"),
        (FROM + "USING filter('a', 'b', 'c')", "'a'", "expected 2 parts, not 3"),
        (FROM + "USING enlarge", None, "expected what it is given"),
        # units in conditions
        (FROM + "WHERE speed_mps > 50 km", "50 km", "expected a speed, not a distance"),
        (FROM + "WHERE 5 kn < elapsed_s", "5 kn", "expected a time, not a speed"),
        (
            FROM + "WHERE elapsed_s BETWEEN 5 s AND 6 m",
            "6 m",
            "expected a time, not a distance",
        ),
        # WINDOW, EMIT, WITH
        (
            FROM + "WITH (windows = 'full')",
            "windows",
            "an option of windows, and there is none",
        ),
        (FROM + "[ROWS 5] WITH (windows = 'fulll')", "'fulll'", "did you mean full?"),
        (FROM + "[ROWS 5] WITH (min_step = '10 s')", "s')", "'s' is a unit of time"),
        (FROM + "[ROWS 5] WITH (min_step = 'a')", "'a'", "expected a distance"),
        (FROM + "[ROWS 5] WITH (origin = '2026-13-01')", "'2026", "is no time"),
        (
            FROM + "[ROWS 5] WITH (origin = '2026-01-01')",
            "'2026",
            "a time with its zone",
        ),
        (FROM + "WINDOW hour", "hour", "expected a time such as 1 hour"),
        (FROM + "WINDOW 1", None, "expected a unit such as min"),
        (FROM + "WINDOW 1 hourr", "hourr", "did you mean hour"),
        (FROM + "WINDOW 0 s", "0 s", "at least a microsecond"),
        (FROM + "WINDOW -1 hour", "-1 hour", "at least a microsecond"),
        (FROM + "WINDOW 1e9 days", "1e9 days", "at most a hundred years"),
        (FROM + "WINDOW 1.5 TUPLES", "1.5", "whole number"),
        (FROM + "WINDOW 0 TUPLES", "0", "whole number"),
        (FROM + "EMIT CHANGES WITH VALID UNTL", "UNTL", "did you mean UNTIL?"),
        (FROM + "WITH plan = 'auto'", "plan", "expected (plan = '...')"),
        (FROM + "WITH (plna = 'auto')", "plna", "did you mean plan?"),
        (FROM + "WITH (plan = 'space')", "'space'", "did you mean space_first?"),
        (FROM + "WITH (plan = auto)", "auto)", "a text in single quotes"),
        (
            FROM + "WITH (plan = 'auto', plan = 'auto')",
            "plan = 'auto')",
            "there is a plan already",
        ),
    ],
)
def test_a_wrong_clause_is_pointed_at(text: str, at: str | None, says: str | None):
    with pytest.raises(TextError) as caught:
        parse("DROP QUERY a;\n" + text)
    (problem,) = caught.value.problems
    if says is not None:
        start = len(text) if at is None else text.rindex(at)
        assert says in str(problem)
        assert (problem.line, problem.column) == (2, start + 1), str(problem)
    assert problem.snippet.split("\n")[1].lstrip().startswith("^")


@pytest.mark.parametrize(
    "alias", ["w", "AS ins", '"ins"', "ins WHERE ins.a = 1", "wagons", "r EMIT EVERY"]
)
def test_an_alias_that_is_no_half_of_a_clause_is_one(alias: str):
    (statement,) = parse(FROM + alias)
    assert statement.plan is not None
    assert statement.plan.stream == "s"


def stream(name: str, **more: object) -> StreamSettings:
    attributes = {
        "speed": "double",
        "state": "string",
        "seats": "long",
        "free": "bool",
        "order": "long",
    }
    return StreamSettings(
        name=name,
        format="csv",
        columns=Columns(object="id", x="x", y="y"),
        attributes=attributes,
        **more,
    )


STREAMS = {
    each.name: each
    for each in (
        stream("taxis"),
        stream("plane", crs="planar"),
        stream("sensors", moving=False),
    )
}
Q = "REGISTER QUERY q AS SELECT * FROM taxis "
SENSORS = "REGISTER QUERY q AS SELECT * FROM sensors "


@pytest.mark.spec("P4")
@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        (Q + "WHERE sped > 3", "sped", "unknown column 'sped' (did you mean speed?)"),
        (
            Q + "WHERE zz > 3",
            "zz",
            "known columns: acceleration_mps2, elapsed_s, event_ts, free, heading_deg, object",
        ),
        (Q + "WHERE taxis.sped > 3 AND free", "taxis.sped", "did you mean speed?"),
        (
            Q + "WHERE state > 3",
            "state",
            "state is a text, which is compared with a number",
        ),
        (Q + "WHERE lower(seats) = 'x'", "lower(seats", "lower(BIGINT)"),
        (
            Q + "WHERE speed",
            "speed",
            "WHERE needs a condition, not a value of type DOUBLE",
        ),
        (Q + "WHERE partner = 'x'", "partner", "unknown column 'partner'"),
        (
            "REGISTER QUERY q AS SELECT SUM(state) FROM taxis",
            "state",
            "an aggregate needs a number",
        ),
        (
            "REGISTER QUERY q AS SELECT MIN(event_ts) FROM taxis",
            "event_ts",
            "not a value of type TIMESTAMP",
        ),
        (
            "REGISTER QUERY q AS SELECT COLLECT(event_ts) FROM taxis",
            "event_ts",
            "FIRST, LAST and COLLECT need a number, a text or a truth value",
        ),
        (
            "REGISTER QUERY q AS SELECT COUNT(*), FIRST(value) AS f FROM (SELECT COUNT(*) FROM taxis)",
            "COUNT(*), FIRST",
            "FIRST is of fixes, by their times; rows of a query have none",
        ),
        (
            "REGISTER QUERY q AS SELECT sped AS a, stat AS b FROM taxis",
            "sped",
            "did you mean speed?",
        ),
        (
            "REGISTER QUERY q AS SELECT COUNT(*) FROM taxis GROUP BY stat",
            "stat",
            "did you mean state?",
        ),
        (Q + "JOIN taxis b ON taxis.lin = b.lin", "taxis.lin", "unknown column 'lin'"),
        (Q + "JOIN plane ON ST_Intersects(taxis, plane)", "plane ON", "it is a stream"),
        (
            Q + "INSIDE CIRCLE (200, 1, 5 km)",
            "INSIDE",
            "the centre of the circle lies off the Earth",
        ),
        (
            Q + "INSIDE 'POLYGON((200 1, 201 1, 201 2, 200 1))'",
            "INSIDE",
            "the area lies off the Earth",
        ),
        (Q + "KNN (3, 41.1, -108.6)", "KNN", "longitude first"),
        (
            Q + "GROUP KNN (3, SUM, (1, 1), (1, 91))",
            "GROUP KNN",
            "the place lies off the Earth",
        ),
        (
            Q + "KNN (3, 1, 1) WINDOW 5 TUPLES",
            "WINDOW",
            "a window of rows lasts for a time: TUPLES counts fixes",
        ),
        (Q + "KNN (3, 1, 1) JOIN taxis b ON taxis.state = b.state", "JOIN", None),
        (Q + "EMIT CHANGES WITH VALID UNTIL", "VALID", "WITH VALID UNTIL needs INSIDE"),
        (
            Q + "INSIDE (0, 0, 1, 1) KNN (3, 1, 1) EMIT CHANGES WITH VALID UNTIL",
            "VALID",
            "VALID UNTIL and KNN",
        ),
        (
            Q + "INSIDE (0, 0, 1, 1) WINDOW 1 s EMIT CHANGES WITH VALID UNTIL",
            "VALID",
            "VALID UNTIL and WINDOW",
        ),
        (
            Q.replace("*", "COUNT(*)")
            + "INSIDE (0, 0, 1, 1) EMIT EVERY WITH VALID UNTIL",
            "VALID",
            "an aggregate",
        ),
        (
            SENSORS + "INSIDE ('M', 'a', 1, 1)",
            "INSIDE",
            "a moving INSIDE needs a stream of moving objects",
        ),
        (SENSORS + "KNN (3, 1, 1)", "KNN", "moving = false"),
        (SENSORS + "WINDOW 1 hour", "WINDOW", "moving = false"),
        (
            SENSORS.replace("*", "COUNT(*)"),
            "COUNT(*)",
            "an aggregate needs a stream of moving objects",
        ),
        (
            SENSORS + "INSIDE (0, 0, 1, 1) EMIT CHANGES WITH VALID UNTIL",
            "VALID",
            "moving = false",
        ),
        (
            SENSORS + "a JOIN sensors b ON a.state = b.state",
            "sensors b",
            "JOIN of the stream with itself",
        ),
    ],
)
def test_what_does_not_fit_the_stream_is_pointed_at(
    tmp_path: Path, text: str, at: str, says: str | None
):
    with pytest.raises(TextError) as caught:
        check(Home(tmp_path), STREAMS, parse("\n" + text))
    problem = caught.value.problems[0]
    if says is not None:
        assert says in str(problem)
        assert (problem.line, problem.column) == (2, text.rindex(at) + 1), str(problem)


@pytest.mark.parametrize(
    "text",
    [
        Q + "WHERE SPEED > 3 AND free AND (state = 'x' OR seats % 2 = 1)",
        Q + "WHERE speed_mps > 3 AND elapsed_s < 60 AND hour(event_ts) = 8",
        Q + 'WHERE "order" > 1',
        Q + "KNN (3, -180, 90) INSIDE CIRCLE (180, -90, 5 km)",
        "REGISTER QUERY q AS SELECT * FROM plane KNN (3, 1e6, 1e6) INSIDE ('M', 'a', 5 ft, 2 km)",
        SENSORS + "WHERE speed > 3 INSIDE CIRCLE (1, 1, 5)",
        "REGISTER QUERY q AS SELECT AVG(seats) FROM taxis GROUP BY state WINDOW 1 hour",
        "REGISTER QUERY q AS SELECT state, speed FROM taxis KNN (3, 1, 1)",
        "REGISTER QUERY q AS SELECT COUNT(*) FROM taxis a JOIN taxis b ON ST_DWithin(a, b, 1 km) GROUP BY state",
    ],
)
def test_what_fits_the_stream_passes(tmp_path: Path, text: str):
    check(Home(tmp_path), STREAMS, parse(text))


@pytest.mark.spec("X3")
def test_wkt_without_quotes_is_known_for_what_it_is():
    with pytest.raises(TextError) as caught:
        parse(FROM + "INSIDE POLYGON((0 0, 1 0, 1 1, 0 0))")
    assert all(
        "WKT stands in quotes: INSIDE 'POLYGON ((..))'" in problem.hint
        for problem in caught.value.problems
    )


def test_all_that_is_wrong_with_a_statement_comes_at_once(tmp_path: Path):
    text = (
        Q.replace("*", "sped AS a, lower(stat) AS b")
        + "WHERE sped > 3 WINDOW 5 TUPLES KNN (3, 1, 1)"
    )
    with pytest.raises(TextError) as caught:
        check(Home(tmp_path), STREAMS, parse(text))
    assert len(caught.value.problems) == 4


def test_names_that_duckdb_reads_otherwise_are_quoted():
    found = duckdb.sql(
        "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category <> 'unreserved'"
    ).fetchall()
    assert [word for (word,) in found if is_plain(word)] == []
    assert all(
        is_plain(word)
        for word in (
            "object",
            "event_ts",
            "x",
            "y",
            "elapsed_s",
            "speed_mps",
            "partner",
            "type",
        )
    )


def test_every_function_that_is_let_through_exists_and_repeats_its_value():
    with duckdb.connect() as connection:
        add_cells(connection)
        rows = connection.sql(
            "SELECT upper(function_name), bool_or(stability = 'VOLATILE') FROM duckdb_functions() GROUP BY 1"
        )
        volatile = dict(rows.fetchall())
    grammar = {
        "COALESCE",
        "NULLIF",
        "IFNULL",
        "SUBSTRING",
        "TRIM",
    }  # DuckDB's grammar knows them, not its catalogue
    macros = {"GRID_CELL"}  # of functions that are in the list
    assert [
        name
        for name in FUNCTIONS
        if name not in grammar | macros and volatile.get(name) is not False
    ] == []
    assert macros <= set(volatile)


@pytest.mark.spec("S3", "P4")
@pytest.mark.parametrize(
    ("where", "at", "says"),
    [
        (
            "object IN (1, 2)",
            "object",
            "object is a text, which is compared with a number (put the number in quotes",
        ),
        (
            "state = -3",
            "state",
            "put the number in quotes: '-3'; for the value of a text TRY_CAST(state AS DOUBLE)",
        ),
        ("state BETWEEN 1 AND 3", "state", "put the number in quotes: '1', '3'"),
        (
            "UPPER(state) <> n",
            "state",
            "UPPER(state) is a text, which is compared with a number (CAST(... AS VARCHAR)",
        ),
        (
            "n = 'fast'",
            "n = ",
            "this fails for every fix: could not convert string 'fast' to INT64",
        ),
        (
            "CAST('a' AS INT) = 1",
            "CAST",
            "this fails for every fix: could not convert string 'a' to INT32",
        ),
    ],
)
def test_a_condition_that_could_never_have_a_value_is_refused_at_its_place(
    tmp_path: Path, where, at, says
):
    text = f"{FROM}WHERE n > 1 AND {where}"
    with pytest.raises(TextError) as error:
        check(Home(tmp_path), {"s": TEXTS}, parse(text))
    (problem,) = error.value.problems
    assert says in str(problem)
    assert problem.column in (
        text.index("n > 1") + 1,
        text.index(at, text.index("AND ")) + 1,
    )


@pytest.mark.spec("S3")
def test_a_condition_without_a_value_for_usual_fixes_is_noticed_and_others_are_not(
    tmp_path: Path,
):
    text = f"{FROM}WHERE CAST(state AS INT) IN (1, 2)"
    (notice,) = check(Home(tmp_path), {"s": TEXTS}, parse(text))
    assert (
        "CAST(state AS INT) IN (1, 2) has no value where state is 'abc': could not convert"
        in str(notice)
    )
    for quiet in (
        "n * 10 IN (10, 20)",
        "ABS(n) = 1",
        "TRY_CAST(state AS INT) IN (1, 2)",
        "state IN ('1', '2')",
    ):
        assert check(Home(tmp_path), {"s": TEXTS}, parse(f"{FROM}WHERE {quiet}")) == ()


TEXTS = StreamSettings(
    name="s",
    format="csv",
    columns=Columns(object="id", x="x", y="y"),
    attributes={"state": "string", "n": "long"},
)
