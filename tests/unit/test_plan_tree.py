"""A plan as a tree of operators: the same plan comes back, and each node says what its rows are."""

from dataclasses import dataclass, fields
from inspect import isabstract
from random import Random
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.errors import QueryError
from st_common.query import explain_nodes
from st_common.query.comparing import Transform
from st_common.query.fence import Fence
from st_common.query.neighbours import Nearest, Place
from st_common.query.plan import Aggregate, PairJoin, Plan, Window
from st_common.query.text import parse
from st_common.query.tree.boxes import Transformed
from st_common.query.tree.detected import Detected
from st_common.query.tree.fusing import plan_of
from st_common.query.tree.growing import tree_of
from st_common.query.tree.node import Above, Column, Node, complaints_of_tree, walk
from st_common.query.tree.relational import Group, Select, Source, Told
from st_common.query.tree.spatial import Inside, Near, WithObjects
from st_common.query.tree.windows import Recent
from st_common.regions.registry import Box, MovingCircle
from tests.kit.random_plans import plan_of as random_plan

CARS = StreamSettings(
    name="cars",
    format="csv",
    columns=Columns(object="id", x="x", y="y"),
    crs="planar",
    attributes={"kind": "string", "load": "double"},
    units={"load": "t"},
)
FENCE = Fence(events=("enter", "exit"))
BOX = Box(minx=0, miny=0, maxx=1, maxy=1)


def plan(text):
    (statement,) = parse(f"REGISTER QUERY q AS {text}")
    return statement.plan


def nouns(text):
    return [type(node).__name__ for node in walk(tree_of(plan(text)))]


@given(st.integers(0, 1 << 32))
def test_a_tree_is_fused_into_the_plan_that_it_was_made_from(seed):
    drawn = random_plan(Random(seed), layers=True)
    tree = tree_of(drawn)
    assert plan_of(tree) == drawn
    assert tree.by_ticks == drawn.by_ticks
    gives_events = any(node.gives_events for node in walk(tree))
    assert gives_events == drawn.tells_events
    assert all(len(node.inputs) <= 2 for node in walk(tree))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM cars", ["Source", "Told"]),
        (
            "SELECT * FROM cars WHERE load > 3 INSIDE (0, 0, 9, 9)",
            ["Source", "Select", "Inside", "Told"],
        ),
        (
            "SELECT * FROM cars INSIDE ('M', 'a', 5 m) KNN (2, 0, 0)",
            ["Source", "Inside", "Near", "Told"],
        ),
        (
            "SELECT kind, COUNT(*) FROM cars INSIDE (0, 0, 9, 9) GROUP BY kind WINDOW 1 hour",
            ["Source", "Inside", "Recent", "Group", "Told"],
        ),
        (
            "SELECT * FROM cars [RANGE 5 min] WHERE load > 3 INSIDE (0, 0, 9, 9)",
            ["Source", "Travelled", "Select", "Source", "Inside", "Counting", "Told"],
        ),
    ],
)
def test_operators_stand_where_the_language_has_them(text, expected):
    assert nouns(text) == expected


@pytest.mark.parametrize(
    ("text", "key", "by_ticks"),
    [
        ("SELECT * FROM cars INSIDE (0, 0, 9, 9)", ("object",), False),
        ("SELECT * FROM cars INSIDE ('M', 'a', 5 m)", ("object",), True),
        (
            "SELECT * FROM cars c, zones z WHERE ST_Intersects(c, z)",
            ("object", "feature"),
            False,
        ),
        (
            "SELECT * FROM cars a, cars b WHERE ST_DWithin(a, b, 5 m)",
            ("object", "other object"),
            True,
        ),
        ("SELECT * FROM cars [RANGE 5 min]", ("object", "fix"), True),
        ("SELECT COUNT(*) FROM cars", (), True),
        ("SELECT kind, COUNT(*) FROM cars GROUP BY kind", ("kind",), True),
    ],
)
def test_what_a_row_is_and_when_it_changes(text, key, by_ticks):
    try:
        tree = tree_of(plan(text))
    except QueryError as error:
        pytest.fail(str(error))
    assert (tree.key, tree.by_ticks) == (key, by_ticks)


def test_columns_have_types_units_and_may_be_null():
    tree = tree_of(plan("SELECT kind, load, load * 2 AS twice FROM cars"), CARS)
    assert tree.columns() == (
        Column(name="kind", type="VARCHAR"),
        Column(name="load", type="DOUBLE", unit="t"),
        Column(name="twice", type="DOUBLE"),
    )
    average = tree_of(plan("SELECT kind, AVG(load) FROM cars GROUP BY kind"), CARS)
    assert average.columns() == (
        Column(name="kind", type="VARCHAR"),
        Column(name="avg", type="DOUBLE", unit="t"),
    )


@pytest.mark.parametrize(
    ("tree", "says"),
    [
        (
            lambda at: Near(
                input=WithObjects(
                    input=at, other=at, join=PairJoin(distance_m=5.0, how="semi")
                ),
                neighbours=Nearest(k=2, place=Place(x=0, y=0)),
            ),
            "KNN and EXISTS about the stream itself exclude each other",
        ),
        (
            lambda at: Recent(
                input=Inside(input=at, region=MovingCircle(focal="a", radius_m=5.0)),
                window=Window(seconds=5),
            ),
            "WINDOW and a moving INSIDE exclude each other",
        ),
        (
            lambda at: Inside(input=Inside(input=at, region=BOX), region=BOX),
            "one query has INSIDE once",
        ),
        (
            lambda at: Group(
                input=Group(input=at, aggregate=Aggregate(function="count")),
                aggregate=Aggregate(function="count"),
            ),
            "one query has an aggregate once",
        ),
        (
            lambda at: Near(
                input=Detected(input=Inside(input=at, region=BOX), fence=FENCE),
                neighbours=Nearest(k=2, place=Place(x=0, y=0)),
            ),
            "KNN and DETECT exclude each other",
        ),
        (
            lambda at: Detected(
                input=Inside(
                    input=Transformed(
                        input=at, transforms=(Transform(kind="key", text="a"),)
                    ),
                    region=BOX,
                ),
                fence=FENCE,
            ),
            "USING and DETECT exclude each other",
        ),
        (
            lambda at: Detected(
                input=Inside(input=Inside(input=at, region=BOX), region=BOX),
                fence=FENCE,
            ),
            "is ambiguous",
        ),
    ],
)
def test_a_tree_that_no_kernel_runs_says_why(tree, says):
    rows = Select(input=Source(stream="cars"), where="load > 3")
    assert says in why_not(Told(input=tree(rows)))


def why_not(tree):
    """Why a tree is refused: by an operator, or else since no kernel runs it."""
    messages = [one.message for one in complaints_of_tree(tree)]
    if messages:
        return messages[0]
    with pytest.raises(QueryError) as caught:
        plan_of(tree)
    return str(caught.value)


def kinds_below(kind):
    """All operators that can be made, by their names: with slots a class is made twice."""
    known = {}
    for one in kind.__subclasses__():
        known |= kinds_below(one)
        if not isabstract(one) and one.__module__.startswith("st_common."):
            known[one.__name__] = one
    return known


def test_every_part_of_a_plan_is_said_by_one_operator():
    kinds = kinds_below(Node).values()
    # What stands above rows alone is a part of what is asked about them.
    of_fixes = [kind for kind in kinds if not kind.at.startswith("outer")]
    said = [part for kind in of_fixes for part in kind.parts]
    of_rows = ["outer"]  # a tree of its own above the rows of the others
    assert sorted(said + of_rows) == sorted(part.name for part in fields(Plan))


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest(Above):
    """An operator that nobody has thought of yet."""

    at: ClassVar[str] = "newest"

    @property
    def noun(self) -> str:
        return "NEWEST"


def test_a_new_operator_stands_above_members_and_not_above_events():
    region = Inside(input=Source(stream="cars"), region=BOX)
    assert not list(complaints_of_tree(Told(input=Newest(input=region))))
    events = Detected(input=region, fence=FENCE)
    (found,) = complaints_of_tree(Told(input=Newest(input=events)))
    assert found.message == "NEWEST and DETECT exclude each other"
    assert found.at == "newest"


def test_pairs_have_two_inputs():
    drawn = Plan(stream="cars", where="load > 3", pairs=PairJoin(distance_m=5.0))
    pairs = tree_of(drawn).input
    assert [type(node).__name__ for node in pairs.inputs] == ["Select", "Source"]


def test_an_explanation_has_words_for_every_operator():
    told_with_their_tuples = {Source, Select, Inside, Near}
    known = set(kinds_below(Node).values()) - told_with_their_tuples
    assert set(explain_nodes.WORDS) == known
    assert not told_with_their_tuples & set(explain_nodes.WORDS)
