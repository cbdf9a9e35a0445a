"""What a plan cannot be: everything that is wrong is said at once, at its clause, and nothing is registered."""

import pytest

from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.query.lookup import queries
from st_common.query.problem import TextError
from st_common.query.registry import carry_out, check
from st_common.query.text import parse

STREAMS = {
    "cars": StreamSettings(
        name="cars",
        format="csv",
        columns=Columns(object="id", x="x", y="y"),
        attributes={"kind": "string"},
    ),
    "plane": StreamSettings(
        name="plane",
        format="csv",
        columns=Columns(object="id", x="x", y="y"),
        crs="planar",
    ),
    "sensors": StreamSettings(
        name="sensors",
        format="csv",
        columns=Columns(object="id", x="x", y="y"),
        moving=False,
    ),
}
WAY = "[RANGE BY 50 km RATTR SPACE, SLIDE BY 10 km SATTR SPACE]"
HOUR = "[RANGE '60 minutes', SLIDE '10 minutes']"
pytestmark = pytest.mark.spec("P4")


def problems(
    home: Home, select: str, layers: tuple[str, ...] = ()
) -> list[tuple[str, str]]:
    """What is wrong with a SELECT: the text from the place on, and the message."""
    text = f"REGISTER QUERY q AS {select}"
    try:
        statements = parse(text)
        check(home, STREAMS, statements)
        carry_out(home, STREAMS, statements, owner="ada")
    except TextError as error:
        assert queries(home) == []
        return [
            (text[problem.column - 1 :], str(problem)) for problem in error.problems
        ]
    return []


@pytest.mark.parametrize(
    "select",
    [
        f"SELECT * FROM cars {WAY}",
        f"SELECT RSTREAM(AVGSPD(*)) FROM cars {WAY} WHERE kind = 'bus' INSIDE (0, 0, 1, 1)",
        f"SELECT COUNT(*) FROM cars {WAY} {HOUR} GROUP BY kind",
        "SELECT RSTREAM(STAMPS(*)) FROM cars [RANGE BY (0, 0, 1, 1) RATTR SPACE]",
        "SELECT * FROM cars [ROWS 10, SLIDE 5] KNN (3, 0, 0)",
        f"SELECT * FROM cars {WAY} WITH (windows = 'full', min_step = '10 m')",
        "SELECT * FROM cars COMPARE WITH NOT (0, 0, 1, 1) USING enlarge(50 m), key('a'), box(0, 0, 1, 1)",
        "SELECT * FROM cars KNN (3, 0, 0) COMPARE WITH (0, 0, 1, 1) USING enlarge_factor(0.5), enlarge_value(0)",
        f"SELECT * FROM cars {HOUR} COMPARE WITH (0, 0, 1, 1) USING enlarge(1 km)",
        "SELECT * FROM cars USING filter('geojson', 'kind:bus'), filter('wkt', 'POINT(0 0)')",
    ],
)
def test_what_makes_sense_passes(tmp_path, select):
    assert problems(Home(tmp_path), select) == []


@pytest.mark.parametrize(
    ("select", "at", "says"),
    [
        (
            f"SELECT * FROM cars {WAY} WINDOW 1 hour",
            "WINDOW",
            "WINDOW and a window in brackets exclude each other",
        ),
        (
            f"SELECT * FROM cars {WAY} EMIT EVERY",
            "EMIT EVERY",
            "RSTREAM tells what stays",
        ),
        (
            f"SELECT * FROM cars {WAY} INSIDE (0, 0, 1, 1) EMIT CHANGES WITH VALID UNTIL",
            "VALID",
            "WITH VALID UNTIL and",
        ),
        (
            f"SELECT * FROM cars {WAY} a JOIN cars b ON ST_DWithin(a, b, 1 km)",
            "cars b",
            "a JOIN of the stream with",
        ),
        ("SELECT AVGSPD(*) FROM cars", "AVGSPD", "AVGSPD needs a window in brackets"),
        (
            f"SELECT kind, AVGSPD(*) FROM cars {WAY}",
            "kind",
            "literals and the object alone",
        ),
        ("SELECT AVGSPD(*) AS v FROM cars", "AVGSPD", "needs a window in brackets"),
        (
            f"SELECT kind, AVGSPD(*) AS v FROM cars {WAY} GROUP BY kind",
            "kind",
            "AVGSPD is of each object",
        ),
        (
            f"SELECT COUNT(*), AVGSPD(*) FROM cars {WAY} GROUP BY object, kind",
            "object",
            "AVGSPD is of each object",
        ),
        (
            f"SELECT AVGSPD(*) AS v FROM (SELECT x FROM cars {WAY}) r GROUP BY object",
            "x FROM",
            "AVGSPD needs a window in brackets",
        ),
        ("SELECT * FROM cars [RANGE BY 0 km RATTR SPACE]", "[RANGE", "0"),
        (
            "SELECT * FROM cars [RANGE BY 5 km RATTR SPACE, SLIDE BY 0 s SATTR TIME]",
            "[RANGE",
            "at least a microsecond",
        ),
        ("SELECT * FROM cars [RANGE BY 5 km RATTR TIME]", "[RANGE", "expected a time"),
        (
            "SELECT * FROM cars [RANGE BY 5 s RATTR SPACE]",
            "[RANGE",
            "expected a distance",
        ),
        ("SELECT * FROM cars [ROWS 0]", "[ROWS", "0"),
        ("SELECT * FROM cars [ROWS 2.5]", "[ROWS", "a whole number"),
        (
            "SELECT * FROM cars [RANGE BY ('M', 'a', 5 m) RATTR SPACE]",
            "[RANGE",
            "stands still",
        ),
        (
            "SELECT * FROM cars [RANGE BY (200, 0, 201, 1) RATTR SPACE]",
            "[RANGE",
            "off the Earth",
        ),
        (
            f"SELECT * FROM sensors {WAY}",
            "[RANGE",
            "a window in brackets needs a stream of moving objects",
        ),
        (
            "SELECT RSTREAM(*) FROM sensors",
            "RSTREAM",
            "RSTREAM needs a stream of moving objects",
        ),
        (
            "SELECT * FROM cars COMPARE WITH (200, 0, 201, 1)",
            "COMPARE",
            "off the Earth",
        ),
        ("SELECT * FROM cars USING box(0, 100, 1, 101)", "USING", "off the Earth"),
        ("SELECT * FROM cars USING enlarge(-5 m)", "USING", "0 or more"),
        (
            "SELECT * FROM cars USING enlarge(30000 km)",
            "USING",
            "half around the Earth",
        ),
        (
            "SELECT * FROM cars USING filter('geojsn', 'a:b')",
            "USING",
            "did you mean geojson?",
        ),
        ("SELECT * FROM cars USING filter('wkt', 'PINT(0 0)')", "USING", "no WKT"),
        (
            "SELECT * FROM cars USING filter('property', 'kind')",
            "USING",
            "attribute:value",
        ),
        ("SELECT kind, KIND FROM cars", "kind", "two columns are called 'kind'"),
        (
            "SELECT kind AS X FROM cars INSIDE (0, 0, 1, 1) DETECT ENTER",
            "kind",
            "every row of DETECT has 'x' of its own",
        ),
        (
            "SELECT x, kind AS started FROM cars WHERE x > 3 FOR 30 s",
            "x",
            "every row of FOR has 'started' of its own",
        ),
        (
            "SELECT MAX(x) AS y FROM cars WHERE x > 3 FOR 30 s",
            "MAX",
            "every row of FOR has 'y' of its own",
        ),
    ],
)
def test_what_makes_none_is_pointed_at_its_clause(tmp_path, select, at, says):
    found = problems(Home(tmp_path), select)
    assert len(found) == 1, found
    assert says in found[0][1]
    clause = f"REGISTER QUERY q AS {select}"
    assert len(found[0][0]) <= len(clause[clause.index(at) :]), found


def test_all_that_is_wrong_with_a_query_is_said_at_once(tmp_path):
    select = (
        f"SELECT COUNT(*) FROM cars {WAY} WHERE knd = 'bus' INSIDE (200, 0, 201, 1) WINDOW 1 hour "
        "COMPARE WITH (200, 0, 201, 1) USING filter('keys', 'a')"
    )
    said = [message for _, message in problems(Home(tmp_path), select)]
    for what in (
        "did you mean kind?",
        "the box lies off the Earth",
        "WINDOW and a window",
        "unknown filter 'keys'",
    ):
        assert any(what in message for message in said), said
    assert len(said) == 5


def test_a_plane_has_no_end(tmp_path):
    select = "SELECT * FROM plane [RANGE BY (900, 900, 901, 901) RATTR SPACE] USING enlarge(1000000 km)"
    assert problems(Home(tmp_path), select) == []
