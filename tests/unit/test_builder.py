"""The fluent builder: what each step says when it cannot do what was asked."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from st_common.errors import QueryError
from st_common.query.builder import QueryBuilder, around, box_around, circle, query
from st_common.query.frame import Extent
from st_common.query.problem import TextError
from st_common.regions.registry import Box, MovingBox

SHIPS = query("ships")


@pytest.mark.spec("B14")
@pytest.mark.parametrize(
    ("step", "says"),
    [
        (lambda: query("a b"), "query(..): 'a b' is no name for a stream"),
        (lambda: query(7), "query(..): the name of a stream is a text, not 7"),
        (
            lambda: SHIPS.in_space((0, 0, 1)),
            "in_space(..): expected a Box or (x1, y1, x2, y2), not (0, 0, 1)",
        ),
        (
            lambda: SHIPS.in_space((0, 0, 1, "2")),
            "in_space(..): a corner is a finite number, not '2'",
        ),
        (
            lambda: SHIPS.in_space((0, 0, 1, float("nan"))),
            "in_space(..): a corner is a finite number, not nan",
        ),
        (lambda: SHIPS.in_space("POLYGON ((0 0))"), "in_space(..): expected a Box"),
        (
            lambda: SHIPS.inside("POINT (1 2)"),
            "inside(..): expected a polygon or multipolygon, not a Point",
        ),
        (lambda: SHIPS.inside(circle(1, 2, -3)), "circle(..): a radius is 0 or more"),
        (
            lambda: SHIPS.inside(around("", 3)),
            "around(..): the id of an object is a text, not ''",
        ),
        (
            lambda: SHIPS.inside(box_around("a", "3 m", 3)),
            "box_around(..): both sides have a unit, or neither",
        ),
        (
            lambda: SHIPS.inside(box_around("a", 3, -3)),
            "box_around(..): a side is 0 or more",
        ),
        (
            lambda: SHIPS.enlarge_metres("5 parsec"),
            "enlarge_metres(..): unknown unit 'parsec'",
        ),
        (
            lambda: SHIPS.enlarge_metres("5 s"),
            "enlarge_metres(..): expected a distance, and 's' is a unit of time",
        ),
        (
            lambda: SHIPS.enlarge_metres("far"),
            "enlarge_metres(..): an enlargement is a number and perhaps a unit",
        ),
        (
            lambda: SHIPS.enlarge_factor(-1),
            "enlarge_factor(..): an enlargement is 0 or more, and not -1",
        ),
        (
            lambda: SHIPS.enlarge_value(float("inf")),
            "enlarge_value(..): a value is a finite number, not inf",
        ),
        (lambda: SHIPS.filter_key(""), "filter_key(..): a key is a text"),
        (
            lambda: SHIPS.filter("property", "a"),
            "filter(..): filter 'property': it needs 'attribute:value'",
        ),
        (
            SHIPS.negative_matches,
            "negative_matches(): there is nothing to compare with",
        ),
        (
            lambda: SHIPS.nearest(0, 1, 2),
            "nearest(..): k is a whole number from 1 to 10000",
        ),
        (lambda: SHIPS.nearest(1.5, 1, 2), "nearest(..): k is a whole number"),
        (lambda: SHIPS.nearest(2), "nearest(..): a place is needed"),
        (
            lambda: SHIPS.nearest(2, 1, 2, to="a"),
            "nearest(..): a place is (x, y) or an object, not both",
        ),
        (
            lambda: SHIPS.group_nearest(2, "mean", [(1, 2)]),
            "group_nearest(..): expected sum, max or min, not 'mean'",
        ),
        (
            lambda: SHIPS.group_nearest(2, "sum", []),
            "group_nearest(..): expected a list of at least one place",
        ),
        (
            lambda: SHIPS.nearest(2, 1, 2).exists_other().on_dwithin(5),
            "on_dwithin(..): KNN and EXISTS about the stream itself exclude",
        ),
        (
            lambda: SHIPS.join("ships").on_intersects(),
            "on_intersects(): this needs a layer",
        ),
        (lambda: SHIPS.join("p ks"), "join(..): 'p ks' is no name for a layer"),
        (
            lambda: SHIPS.join_layer("parks", "ships"),
            "join(..): two things are called 'ships'",
        ),
        (
            lambda: SHIPS.join("parks").on_equal("line"),
            "on_equal(..): the feature's key is missing",
        ),
        (
            lambda: SHIPS.join("ships").on_equal("1"),
            "on_equal(..): expected a column of the stream",
        ),
        (
            lambda: SHIPS.join("parks").on_dwithin(5).enlarge_metres(5),
            "ST_DWithin and an enlargement exclude",
        ),
        (
            lambda: SHIPS.join("parks").on_within().tag("fid", "a"),
            "tag(..): 'fid' is no tag (kinds(..) chooses features by their kind, fid(..) one by its id)",
        ),
        (
            lambda: SHIPS.join("parks").on_within().tag("kind", "a"),
            "tag(..): 'kind' is no tag",
        ),
        (
            lambda: SHIPS.join("parks").on_within().kinds(),
            "kinds(..): expected at least one kind",
        ),
        (lambda: SHIPS.kinds("park"), "kinds(..): the query joins no layer"),
        (
            lambda: SHIPS.and_equal("line"),
            "and_equal(..): the stream is not joined with itself",
        ),
        (lambda: SHIPS.last("50"), "last(..): the range needs a unit"),
        (lambda: SHIPS.last(50), "last(..): the range is a text with a unit, not 50"),
        (lambda: SHIPS.last("0 km"), "last(..): an extent is at least a micrometre"),
        (
            lambda: SHIPS.last("1.5 rows"),
            "last(..): a number of fixes is a whole number",
        ),
        (
            lambda: SHIPS.last("5 kmm"),
            "last(..): 'kmm' is no unit of the range (did you mean km?)",
        ),
        (lambda: SHIPS.last("50 km", every="-1 km"), "last(..): an extent is at least"),
        (
            lambda: SHIPS.fixes_in(around("a", 5)),
            "fixes_in(..): a region of a window stands still",
        ),
        (lambda: SHIPS.min_step("10 m"), "min_step(..): the query has no window"),
        (
            lambda: SHIPS.last("1 km").origin(datetime(2026, 1, 1)),  # noqa: DTZ001
            "origin(..): the time needs a zone",
        ),
        (SHIPS.average_speed, "average_speed(): AVGSPD needs a window"),
        (
            lambda: SHIPS.last("1 km").window("1 hour"),
            "window(..): WINDOW and a window in brackets exclude",
        ),
        (lambda: SHIPS.window("0 s"), "window(..): a window is at least a microsecond"),
        (lambda: SHIPS.group_by("line"), "group_by(..): GROUP BY needs an aggregate"),
        (lambda: SHIPS.count().group_by("parks.fid"), "unknown name 'parks'"),
        (
            lambda: SHIPS.select("x").count(),
            "count(..): columns and an aggregate exclude each other",
        ),
        (lambda: SHIPS.select("x", x="y"), "select(..): two columns are called"),
        (
            lambda: SHIPS.as_stream("stream"),
            "as_stream(..): expected one of istream, dstream, rstream",
        ),
        (lambda: SHIPS.plan_order("first"), "plan_order(..): expected one of auto,"),
        (SHIPS.valid_until, "valid_until(): WITH VALID UNTIL needs INSIDE"),
    ],
)
def test_a_step_says_what_is_wrong_at_once(step: Callable[[], QueryBuilder], says: str):
    with pytest.raises(QueryError) as caught:
        step()
    assert says in str(caught.value)


@pytest.mark.spec("B14", "P4")
@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("speed_mps >", 12, "expected an expression, not the end"),
        ("x > 1 AND sped(y) > 2", 11, "unknown function SPED"),
        ("x > 1 EMIT EVERY", 7, "not 'EMIT'"),
        ("(SELECT 1)", 2, "a query has no place"),
        ("COUNT(*) > 3", 1, "COUNT stands alone"),
        ("other.x > 3", 1, "unknown name 'other'"),
        ("x > 'a", 5, "' is not closed"),
        ("x > 1; DROP QUERY a", 6, "no ';'"),
    ],
)
def test_a_wrong_expression_is_pointed_at_as_in_a_text(
    text: str, column: int, says: str
):
    with pytest.raises(TextError) as caught:
        SHIPS.where(text)
    (problem,) = caught.value.problems
    assert (problem.file, problem.line, problem.column) == ("where(..)", 1, column)
    assert says in problem.message
    assert problem.snippet.split("\n")[0].strip() == text


def test_units_are_those_of_the_language():
    assert SHIPS.enlarge_metres("1 nmi").build().transforms[0].amount == 1852.0
    assert SHIPS.window("1 hour").build().window == SHIPS.window(3600).build().window
    frame = SHIPS.last("50 km", every="10 minutes").last("100 rows").build().frame
    assert frame is not None
    assert [(one.range, one.slide) for one in frame.sliding] == [
        (Extent(by="space", amount=50_000.0), Extent(by="time", amount=600.0)),
        (Extent(by="rows", amount=100.0), None),
    ]
    moving = SHIPS.inside(box_around("a", "1 km", "500 m")).build().inside
    assert moving == MovingBox(focal="a", width=1000.0, height=500.0, metres=True)


def test_corners_come_in_any_order_and_times_in_any_zone():
    assert SHIPS.in_space((5, 6, 1, 2)).build().inside == Box(
        minx=1.0, miny=2.0, maxx=5.0, maxy=6.0
    )
    frame = SHIPS.last("1 hour").origin(datetime(1970, 1, 2, tzinfo=UTC)).build().frame
    assert frame is not None
    assert frame.origin_s == 86_400.0


def test_of_the_same_method_the_last_call_counts():
    built = (
        SHIPS.where("x > 1")
        .in_space((0, 0, 1, 1))
        .count()
        .where("x > 2")
        .in_space((0, 0, 2, 2))
        .sum("load")
    )
    assert (
        built.build() == SHIPS.in_space((0, 0, 2, 2)).where("x > 2").sum("load").build()
    )
    matches = SHIPS.compare_with((0, 0, 1, 1)).negative_matches()
    assert (
        matches.positive_matches().build() == SHIPS.compare_with((0, 0, 1, 1)).build()
    )
    assert matches.compare_with((0, 0, 2, 2)).build().compare.negative
