"""Laws of the query language: text and plan are two forms of one thing, canonical text stays as it is."""

import json
import re
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
import shapely
from hypothesis import assume, given
from hypothesis import strategies as st

from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.query.binding import bound, columns_of
from st_common.query.comparing import Compare, Transform
from st_common.query.frame import Extent, Frame, Sliding
from st_common.query.grammar.words import quoted
from st_common.query.neighbours import GroupNearest, Nearest, Place, ReverseNearest
from st_common.query.plan import Aggregate, LayerJoin, PairJoin, Plan, Window
from st_common.query.problem import TextError
from st_common.query.registry import check
from st_common.query.text import parse, to_text
from st_common.regions.region import MovingRegion
from st_common.regions.registry import (
    Area,
    Box,
    Circle,
    MovingBox,
    MovingCircle,
    Region,
)

names = st.one_of(
    st.from_regex(r"[a-z][a-z0-9_-]{0,20}", fullmatch=True),
    st.sampled_from(
        (
            "select",
            "inside",
            "emit",
            "register",
            "m",
            "layer",
            "other",
            "features",
            "object",
            "knn",
            "to",
        )
    ),
)
query_names = (
    st.text(
        st.characters(codec="utf-8", exclude_categories=("C", "Z")),
        min_size=1,
        max_size=20,
    )
    | names
)
texts = st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8
)
numbers = st.floats(allow_nan=False, allow_infinity=False)
lengths = st.floats(0, 1e9).map(abs)  # no -0.0

# --- expressions: text as people write it, and what `parse` makes of it

columns = st.sampled_from(
    (
        "speed",
        "kind",
        "n",
        "ok",
        "object",
        "x",
        "elapsed_s",
        '"to"',
        "date",
        '"a b"',
        "event_ts",
    )
)
literals = st.one_of(
    st.sampled_from(
        ("1", "2.50", "0.5", "1e3", "TRUE", "NULL", "'a'", "'it''s'", "''", "-1")
    ),
    st.integers(0, 99).map(str),
)
_CALLS = (
    "LOWER({0})",
    "COALESCE({0}, {1})",
    "round({0}, 2)",
    "Substr({0}, 1, 2)",
    "PI()",
    "GREATEST({0}, {1})",
)
_FORMS = (
    "{0} + {1}",
    "{0} - {1}",
    "{0} * {1}",
    "{0} / {1}",
    "{0} % {1}",
    "{0} || {1}",
    "-{0}",
    "({0})",
    "({0} = {1})",
    "({0} <> {1})",
    "({0} != {1})",
    "({0} < {1})",
    "({0} IS NULL)",
    "({0} IS NOT NULL)",
    "({0} IN ({1}, 2))",
    "({0} NOT IN ({1}))",
    "({0} BETWEEN {1} AND 3)",
    "({0} NOT LIKE 'a%')",
    "({0} ILIKE 'a%')",
    "({0} IS DISTINCT FROM {1})",
    "(NOT {0})",
    "({0} AND {1})",
    "({0} OR {1})",
    "CAST({0} AS text)",
    "{0}::DOUBLE",
    "TRY_CAST({0} AS int)",
    "CASE WHEN {0} THEN {1} END",
    "CASE {0} WHEN {1} THEN 1 ELSE 2 END",
    "EXTRACT(hour FROM event_ts)",
)


def _combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(str.format, st.sampled_from(_FORMS + _CALLS), inner, inner)


expressions = st.recursive(columns | literals, _combined, max_leaves=6)
conditions = st.lists(
    st.builds(
        str.format, st.sampled_from(("{0}", "{0} = 1", "({0} OR ok)")), expressions
    ),
    min_size=1,
    max_size=3,
).map(" AND ".join)


def where_of(text: str) -> str:
    plan = parse(f"REGISTER QUERY q AS SELECT * FROM s WHERE {text}")[0].plan
    assert plan is not None
    assert plan.where is not None
    return plan.where


def column_of(text: str) -> str:
    plan = parse(f"REGISTER QUERY q AS SELECT {text} AS v FROM s")[0].plan
    assert plan is not None
    return plan.columns[0][1]


def _or_none(text: str) -> str | None:
    try:
        return column_of(text)
    except TextError:
        return None


canonical = expressions.map(_or_none).filter(lambda text: text is not None)
groups = canonical.filter(
    lambda text: (
        text not in ("NULL", "TRUE") and not text[0].isdigit() and text[0] != "'"
    )
)
arguments = canonical.filter(lambda text: text.lower() != "object")

# --- plans: every field

boxes = st.builds(Box.of_corners, numbers, numbers, numbers, numbers)
circles = st.builds(Circle, x=numbers, y=numbers, radius_m=lengths)
moving_boxes = st.builds(
    MovingBox, focal=texts, width=lengths, height=lengths, metres=st.booleans()
)
moving_circles = st.builds(MovingCircle, focal=texts, radius_m=lengths)
points = st.tuples(st.floats(-180, 180), st.floats(-90, 90))
places = st.builds(Place, x=numbers, y=numbers) | st.builds(Place, focal=texts)
ks = st.integers(1, 10_000)
totals = st.sampled_from(("sum", "max", "min"))
neighbours = st.one_of(
    st.builds(Nearest, k=ks, place=places),
    st.builds(ReverseNearest, place=places),
    st.builds(
        GroupNearest,
        k=ks,
        total=totals,
        places=st.lists(places, min_size=1, max_size=3).map(tuple),
    ),
)
kinds = st.lists(texts, max_size=3).map(tuple)
tag_names = st.one_of(texts, st.sampled_from(("KIND", "kinds", "Fid", "name"))).filter(
    lambda name: name not in ("kind", "fid")
)
tags = st.lists(st.tuples(tag_names, texts | st.just("")), max_size=2).map(tuple)
extents = st.one_of(
    st.builds(Extent, by=st.just("space"), amount=st.floats(1e-6, 1e12)),
    st.builds(Extent, by=st.just("time"), amount=st.floats(1e-6, 3.2e9)),
    st.builds(Extent, by=st.just("rows"), amount=st.integers(1, 10**9).map(float)),
)
sliding = st.lists(
    st.builds(Sliding, range=extents, slide=st.none() | extents), max_size=3
).map(tuple)
amounts = st.floats(0, 1e300).map(abs)
filters = st.builds(
    Transform, kind=st.just("filter"), name=texts, text=st.none() | texts | st.just("")
)
transforms = st.lists(
    st.one_of(
        st.builds(
            Transform,
            kind=st.sampled_from(("factor", "value", "metres")),
            amount=amounts,
        ),
        st.builds(Transform, kind=st.just("key"), text=texts),
        st.builds(Transform, kind=st.just("box"), box=st.deferred(lambda: boxes)),
        filters,
    ),
    max_size=3,
).map(tuple)
windows = st.builds(Window, seconds=st.floats(1e-6, 3.2e9)) | st.builds(
    Window, tuples=st.integers(1, 10**9)
)


@st.composite
def areas(draw: st.DrawFn) -> Area:
    hull = shapely.convex_hull(
        shapely.MultiPoint(draw(st.lists(points, min_size=3, max_size=6, unique=True)))
    )
    assume(hull.geom_type == "Polygon" and hull.is_valid)
    text = f"REGISTER QUERY q AS SELECT * FROM s INSIDE '{shapely.to_wkt(hull, rounding_precision=-1)}'"
    plan = parse(text)[0].plan
    assert plan is not None
    assert isinstance(plan.inside, Area)
    return plan.inside


compares = st.builds(Compare, box=boxes, negative=st.booleans())
origins = st.one_of(
    numbers, st.integers(-(10**10), 10**11).map(float), st.floats(-1e10, 1e10)
).map(lambda s: s or 0.0)
frames = st.builds(
    Frame,
    sliding=sliding,
    regions=st.lists(boxes | circles | areas(), max_size=2).map(tuple),
    full=st.booleans(),
    min_step_m=lengths,
    origin_s=origins,
).filter(lambda frame: frame.sliding or frame.regions) | st.builds(
    Frame,
    session_s=st.floats(1e-6, 3.2e9),
    regions=st.lists(boxes | circles | areas(), max_size=2).map(tuple),
    min_step_m=lengths,
)


@st.composite
def joins(draw: st.DrawFn) -> dict[str, object]:
    layer, which = (
        draw(names),
        draw(
            st.sampled_from(
                ("none", "intersects", "within", "dwithin", "equals", "pairs")
            )
        ),
    )
    if which == "none":
        return {}
    if which == "pairs":
        keys = tuple(draw(st.lists(columns, max_size=2)))
        far = draw(lengths if not keys else st.none() | lengths)
        return {
            "pairs": PairJoin(
                distance_m=far, keys=tuple(column_of(key) for key in keys)
            )
        }
    more: dict[str, object] = (
        {"distance_m": draw(lengths)} if which == "dwithin" else {}
    )
    if which == "equals":
        more = {"left": draw(canonical), "right": draw(texts)}
    return {
        "join": LayerJoin(
            layer=layer, predicate=which, kinds=draw(kinds), tags=draw(tags), **more
        )
    }


@st.composite
def aggregates(draw: st.DrawFn, partner: bool) -> Aggregate:
    group = draw(groups | (st.just("partner") if partner else groups))
    function = draw(
        st.sampled_from(
            (
                "count",
                "count_distinct",
                "sum",
                "avg",
                "min",
                "max",
                "distinct",
                "avgspd",
            )
        )
    )
    if function == "avgspd":
        return Aggregate(function=function)
    if function == "distinct":
        return Aggregate(function=function, group=group)
    argument = (
        draw(arguments | st.none())
        if function in ("count", "count_distinct")
        else draw(arguments)
    )
    return Aggregate(
        function=function, argument=argument, group=draw(st.sampled_from((group, None)))
    )


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    joined = draw(joins())
    nearest = draw(st.none() | neighbours)
    if nearest is not None and "join" in joined:
        # Above a join with a layer KNN chooses objects, which have no partner, and the text says no less.
        joined["join"] = replace(joined["join"], how="semi")
    has_partner = "join" in joined and nearest is None
    chosen: dict[str, object] = draw(st.sampled_from(({}, {"a": 1}, {"c": 1})))
    if "a" in chosen:
        chosen = {"aggregate": draw(aggregates(has_partner))}
    elif "c" in chosen:
        chosen = {
            "columns": tuple(
                draw(st.dictionaries(texts, canonical, min_size=1, max_size=3)).items()
            )
        }
    stream = draw(names)
    inside = draw(st.none() | boxes | circles | areas() | moving_boxes | moving_circles)
    # Above these a window is one of rows, and the text says no less.
    is_moving = isinstance(inside, MovingRegion)
    at_ticks = nearest is not None or is_moving or "pairs" in joined
    return Plan(
        stream=stream,
        inside=inside,
        neighbours=nearest,
        where=draw(st.none() | conditions.map(_where_or_none)),
        window=None if at_ticks else draw(st.none() | windows),
        valid_until=draw(st.booleans()),
        order=draw(st.sampled_from(("auto", "space_first", "select_first"))),
        frame=draw(st.none() | frames),
        transforms=draw(transforms),
        compare=draw(st.none() | compares),
        emit=draw(
            st.sampled_from(("changes", "every", "istream", "dstream", "rstream"))
        ),
        **joined,
        **chosen,
    )


def _where_or_none(text: str) -> str | None:
    try:
        return where_of(text)
    except TextError:
        return None


@pytest.mark.spec("P4")
@pytest.mark.spec("W2")
@pytest.mark.spec("B10")
@given(plan=plans(), name=query_names)
def test_the_canonical_text_of_a_plan_means_the_plan(plan: Plan, name: str):
    text = to_text(plan, name)
    (statement,) = parse(text)
    assert (statement.op, statement.name) == ("register", name)
    assert statement.plan == plan, text
    assert to_text(statement.plan, name) == text


@given(
    region=boxes | circles | areas() | moving_boxes | moving_circles, name=query_names
)
def test_a_named_area_survives_text(region: Region, name: str):
    (created,) = parse(f"CREATE AREA {quoted(name)} AS {region.text()}")
    assert (created.name, created.region) == (name, region)


@pytest.mark.spec("B14")
@given(plan=plans())
def test_a_plan_survives_json(plan: Plan):
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


@given(text=conditions)
def test_the_canonical_form_of_a_condition_is_its_own_canonical_form(text: str):
    found = _where_or_none(text)
    assume(found is not None)
    assert where_of(found) == found


TEXTS = [
    path.read_text(encoding="utf-8").split("\n\n")[0].partition("\n")[2]
    for path in sorted((Path(__file__).resolve().parents[1] / "golden").glob("*.sql"))
]
GOLDEN = [re.findall(r"'[^']*'|\"[^\"]*\"|[\w.]+|\S", text) for text in TEXTS]
WORDS = sorted({word for words in GOLDEN for word in words})


@st.composite
def nearly_right(draw: st.DrawFn) -> str:
    """A right statement with some words dropped, replaced, doubled or put in."""
    words = list(draw(st.sampled_from(GOLDEN)))
    for _ in range(draw(st.integers(1, 3))):
        at, length = draw(st.integers(4, len(words))), draw(st.integers(0, 2))
        words[at : at + length] = draw(st.lists(st.sampled_from(WORDS), max_size=2))
    return " ".join(words)


@pytest.mark.spec("P4")
@given(text=nearly_right())
def test_a_text_that_is_nearly_right_gives_plans_or_an_error_that_points_into_it(
    text: str,
):
    try:
        statements = parse(text)
        check(Home(Path("nowhere")), STREAMS, statements)
    except TextError as error:
        for problem in error.problems:
            assert problem.line == 1
            assert 1 <= problem.column <= len(text) + 1
    else:
        for statement in statements:
            if statement.plan is not None:
                again = parse(to_text(statement.plan, statement.name))[0]
                assert again.plan == statement.plan


LETTERS = "".join(sorted(set("".join(TEXTS)))) + "\0\t\u2028é\u2018\u201d{}#$@^~`|\\;"


@st.composite
def misspelt(draw: st.DrawFn) -> str:
    """A golden text with some of its letters dropped, replaced, doubled or put in."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 4))):
        at, length = draw(st.integers(0, len(text))), draw(st.integers(0, 3))
        text = (
            text[:at]
            + draw(st.text(st.sampled_from(LETTERS), max_size=2))
            + text[at + length :]
        )
    return text


@pytest.mark.spec("P4")
@given(text=misspelt())
def test_a_misspelt_text_gives_statements_or_errors_that_point_into_it(text: str):
    try:
        statements = parse(text)
    except TextError as error:
        lines = text.split("\n")
        for problem in error.problems:
            assert 1 <= problem.line <= len(lines)
            assert 1 <= problem.column <= len(lines[problem.line - 1]) + 1
            assert problem.message
            assert problem.snippet.split("\n")[1].strip("^ ") == ""
    else:
        for statement in statements:
            if statement.plan is not None:
                assert (
                    parse(to_text(statement.plan, statement.name or "q"))[0].plan
                    == statement.plan
                )


STREAMS = {
    name: StreamSettings(
        name=name,
        format="csv",
        columns=Columns(object="id", x="x", y="y"),
        crs="planar",
        attributes={
            "state": "string",
            "type": "string",
            "line": "string",
            "size": "long",
            "order": "long",
        },
    )
    for name in ("taxis", "moving_objects", "ships", "ships-dk", "buses", "table")
}
COLUMNS = columns_of(
    {
        "speed": "double",
        "kind": "string",
        "n": "long",
        "ok": "bool",
        "to": "long",
        "a b": "string",
        "date": "string",
    }
)


@given(text=expressions)
def test_the_canonical_form_means_what_was_written(text: str):
    """DuckDB, which is the judge, gives both forms the same type and the same values."""
    found = _or_none(text)
    assume(found is not None)
    assert bound([found], COLUMNS)[0].kind == bound([text], COLUMNS)[0].kind
    rows = """SELECT 1.5::DOUBLE AS speed, 'Bus' AS kind, 3::BIGINT AS n, true AS ok, 4::BIGINT AS "to", 'z' AS "a b",
        'd' AS date, 'car' AS object, 2.0::DOUBLE AS x, NULL::DOUBLE AS elapsed_s,
        TIMESTAMP '2020-01-02 03:04:05' AS event_ts"""
    values = [_value(each, rows) for each in (text, found)]
    assert repr(values[0]) == repr(values[1])


def _value(expression: str, rows: str) -> object:
    try:
        return duckdb.sql(f"SELECT TRY({expression}) FROM ({rows})").fetchall()
    except duckdb.Error as error:
        return type(error).__name__
