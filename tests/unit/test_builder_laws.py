"""Text, builder and JSON are three ways to one plan; a builder's steps are checked, and change no other builder."""

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import shapely
from hypothesis import assume, example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.errors import QueryError
from st_common.query.builder import QueryBuilder, query
from st_common.query.builder.replay import rebuilt
from st_common.query.checks import complaints
from st_common.query.comparing import Compare, Transform
from st_common.query.fence import Debounce, Fence
from st_common.query.frame import Extent, Frame, Sliding
from st_common.query.incident import Incident, Worst
from st_common.query.neighbours import GroupNearest, Nearest, Place, ReverseNearest
from st_common.query.plan import Aggregate, LayerJoin, PairJoin, Plan, Window
from st_common.query.plan_expressions import expressions_of, with_expressions
from st_common.query.plan_json import plan_from_json
from st_common.query.schema import plan_schema
from st_common.query.text import parse, to_text
from st_common.regions.registry import Area, Box, Circle, MovingBox, MovingCircle
from tests.kit.random_plans import plan_of

GOLDEN = {
    path.stem: Plan.from_json(
        json.loads(path.read_text(encoding="utf-8").strip().split("\n\n")[1])
    )
    for path in sorted((Path(__file__).resolve().parents[1] / "golden").glob("*.sql"))
}
ANY = StreamSettings(
    name="any", format="csv", columns=Columns(object="id", x="x", y="y"), crs="planar"
)
SCHEMA = Draft202012Validator(plan_schema())

# --- plans that could be registered, with every field

numbers = st.floats(allow_nan=False, allow_infinity=False).map(
    lambda value: value + 0.0
)
lengths = st.floats(0, 1e7).map(abs)
texts = st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6
)
names = st.sampled_from(
    ("ships", "select", "a-b", "features", "m", "other", "partner", "knn")
)
conditions = st.sampled_from(
    (
        "speed_mps > 3",
        "line = 'a' AND NOT ok",
        "(a OR b) AND x < 1.5",
        "LOWER(line) LIKE 'b%'",
    )
)
expressions = st.sampled_from(
    ("line", "speed * 3.6", '"a b"', "ROUND(x, 1)", "CASE WHEN ok THEN 1 END")
)
boxes = st.builds(Box.of_corners, numbers, numbers, numbers, numbers)
areas = st.sampled_from(
    ("POLYGON ((0 0, 0 1, 1 0, 0 0))", "MULTIPOLYGON (((0 0, 0 2, 3.5 0, 0 0)))")
).map(
    lambda wkt: Area(
        wkt=shapely.to_wkt(
            shapely.normalize(shapely.from_wkt(wkt)), rounding_precision=-1
        )
    )
)
still = boxes | st.builds(Circle, x=numbers, y=numbers, radius_m=lengths) | areas
moving = st.builds(
    MovingBox, focal=texts, width=lengths, height=lengths, metres=st.booleans()
) | st.builds(MovingCircle, focal=texts, radius_m=lengths)
places = st.builds(Place, x=numbers, y=numbers) | st.builds(Place, focal=texts)
ks = st.integers(1, 10_000)
neighbours = st.one_of(
    st.builds(Nearest, k=ks, place=places),
    st.builds(ReverseNearest, place=places),
    st.builds(
        GroupNearest,
        k=ks,
        total=st.sampled_from(("sum", "max", "min")),
        places=st.lists(places, min_size=1).map(tuple),
    ),
)
pairs = st.tuples(
    texts.filter(lambda name: name.casefold() not in ("fid", "kind")), texts
)
layers = st.builds(
    lambda layer, how, kinds, tags: LayerJoin(
        layer=layer, kinds=tuple(kinds), tags=tuple(tags), **how
    ),
    names,
    st.one_of(
        st.sampled_from(({"predicate": "intersects"}, {"predicate": "within"})),
        lengths.map(lambda far: {"predicate": "dwithin", "distance_m": far}),
        st.builds(
            lambda left, right: {"predicate": "equals", "left": left, "right": right},
            expressions,
            texts,
        ),
    ),
    st.lists(texts, max_size=2),
    st.lists(pairs, max_size=2, unique_by=lambda pair: pair[0].casefold()),
)
own_pairs = st.builds(
    PairJoin, distance_m=lengths, keys=st.lists(expressions, max_size=2).map(tuple)
) | st.builds(PairJoin, keys=st.lists(expressions, min_size=1, max_size=2).map(tuple))
extents = st.builds(
    Extent, by=st.sampled_from(("space", "time")), amount=st.floats(1e-3, 1e6)
) | st.builds(Extent, by=st.just("rows"), amount=st.integers(1, 9_999).map(float))
slidings = st.lists(
    st.builds(Sliding, range=extents, slide=st.none() | extents), max_size=2
).map(tuple)
frames = st.builds(
    Frame,
    sliding=slidings,
    regions=st.lists(still, max_size=2).map(tuple),
    full=st.booleans(),
    min_step_m=st.just(0.0) | st.floats(0, 1000).map(abs),
    origin_s=st.just(0.0) | st.integers(0, 10**9).map(float),
).filter(lambda frame: frame.sliding or frame.regions)
enlargements = st.builds(
    Transform, kind=st.sampled_from(("factor", "value", "metres")), amount=lengths
)
filters = st.one_of(
    st.builds(Transform, kind=st.just("key"), text=texts),
    st.builds(Transform, kind=st.just("box"), box=boxes),
    st.builds(
        Transform,
        kind=st.just("filter"),
        name=st.just("property"),
        text=st.sampled_from(("a:b", "c:d e")),
    ),
)
transforms = st.lists(
    enlargements, max_size=3, unique_by=lambda step: step.kind
).flatmap(
    lambda grows: st.lists(filters, max_size=2).flatmap(
        lambda more: st.permutations([*grows, *more]).map(tuple)
    )
)


@st.composite
def aggregates(draw: st.DrawFn, partner: bool) -> Aggregate:
    group = draw(expressions | st.just("partner")) if partner else draw(expressions)
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
        draw(expressions | st.none())
        if function.startswith("count")
        else draw(expressions)
    )
    return Aggregate(
        function=function, argument=argument, group=draw(st.sampled_from((group, None)))
    )


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    join = draw(st.none() | layers)
    if draw(st.integers(0, 5)) == 0:
        return draw(fenced() | fenced_around())
    plan = Plan(
        stream=draw(names),
        inside=draw(st.none() | still | moving),
        neighbours=draw(st.none() | neighbours) if join is None else None,
        join=join,
        where=draw(st.none() | conditions),
        emit=draw(
            st.sampled_from(("changes", "every", "istream", "dstream", "rstream"))
        ),
        order=draw(st.sampled_from(("auto", "space_first", "select_first"))),
        **draw(above(join is not None)),
    )
    assume(not list(complaints(plan, ANY)))
    return plan


debounces = st.builds(
    Debounce,
    fixes=st.integers(1, 99),
    seconds=st.just(0.0) | st.floats(1e-3, 1e6),
)
events = st.lists(
    st.sampled_from(("enter", "exit", "inside", "cross")), min_size=1, unique=True
).map(tuple)


@st.composite
def fenced_around(draw: st.DrawFn) -> Plan:
    plan = draw(fenced())
    assume(plan.fence is not None)
    times = {
        name: replace(getattr(plan.fence, name), fixes=1)
        for name in ("enter_after", "exit_after")
    }
    asked = tuple(event for event in plan.fence.events if event != "cross")
    fence = replace(plan.fence, events=asked or ("enter",), max_gap_s=None, **times)
    plan = replace(plan, inside=draw(moving), join=None, fence=fence)
    assume(not list(complaints(plan, ANY)))
    return plan


@st.composite
def fenced(draw: st.DrawFn) -> Plan:
    asked = draw(events)
    dwell_s = draw(st.none() | st.floats(1e-3, 1e6))
    fence = Fence(
        events=asked if dwell_s is None else (*asked, "dwell"),
        dwell_s=dwell_s,
        enter_after=draw(debounces),
        exit_after=draw(debounces),
        hysteresis_m=draw(lengths),
        max_gap_s=draw(st.none() | st.floats(1e-3, 1e6)),
    )
    join = draw(st.none() | layers.filter(lambda one: one.predicate != "equals"))
    columns = draw(st.just(()) | st.tuples(st.tuples(texts, expressions)))
    plan = Plan(
        stream=draw(names),
        inside=draw(still) if join is None else None,
        join=join,
        fence=fence,
        where=draw(st.none() | conditions),
        columns=columns,
    )
    assume(not list(complaints(plan, ANY)))
    return plan


@st.composite
def above(draw: st.DrawFn, joined: bool) -> dict[str, Any]:
    """What stands above: windows, transformations, columns or an aggregate, a join of the stream with itself."""
    found: dict[str, Any] = {
        "window": draw(
            st.none()
            | st.builds(Window, seconds=st.floats(1e-3, 1e6))
            | st.builds(Window, tuples=ks)
        ),
        "frame": draw(st.none() | frames),
        "transforms": draw(st.just(()) | transforms),
        "compare": draw(
            st.none() | st.builds(Compare, box=boxes, negative=st.booleans())
        ),
        "valid_until": draw(st.booleans()),
        "pairs": None if joined else draw(st.none() | own_pairs),
    }
    if draw(st.booleans()):
        found["aggregate"] = draw(aggregates(joined))
    elif draw(st.booleans()):
        chosen = draw(st.lists(st.tuples(texts, expressions), min_size=1, max_size=3))
        found["columns"] = tuple(
            {name.casefold(): (name, text) for name, text in chosen}.values()
        )
    if draw(st.booleans()):  # most combinations exclude each other
        keep = draw(st.sampled_from(tuple(found)))
        found = {keep: found[keep]}
    return found


def through_json(plan: Plan) -> Plan:
    return plan_from_json(json.dumps(plan.to_json()))


def through_text(plan: Plan) -> Plan:
    (statement,) = parse(to_text(plan, "q"))
    assert statement.plan is not None
    return statement.plan


WAYS = {
    "builder": lambda plan: rebuilt(plan).build(),
    "json": through_json,
    "text": through_text,
}


@pytest.mark.spec("B14")
@pytest.mark.parametrize("way", WAYS)
@given(plan=plans())
def test_a_plan_comes_back_the_same_by_every_way(way: str, plan: Plan):
    assert WAYS[way](plan) == plan


@pytest.mark.spec("B14")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", GOLDEN)
def test_a_golden_plan_comes_back_the_same_by_every_way(way: str, name: str):
    assert WAYS[way](GOLDEN[name]) == GOLDEN[name]


@pytest.mark.spec("B14")
@given(seed=st.integers(0, 10**6), layers=st.booleans())
def test_the_plans_of_the_other_laws_are_equal_by_every_way(seed: int, layers: bool):
    plan = plan_of(Random(seed), layers=layers)
    of_plan = [text for _, text in expressions_of(plan)]
    assume(not any("epoch_us" in text for text in of_plan))  # the oracle's own
    assume(
        plan.join is None or "kind" not in dict(plan.join.tags)
    )  # a tag by this name is no tag in texts
    assume(not list(complaints(plan, ANY)))
    canonical = rebuilt(plan).build()
    assert {name: way(canonical) for name, way in WAYS.items()} == dict.fromkeys(
        WAYS, canonical
    )


INCIDENT = Plan(
    stream="cars",
    where="speed_mps > 30",
    incident=Incident(
        lasting=Debounce(seconds=30.0),
        until="speed_mps < 20",
        worst=Worst(function="max", argument="speed_mps", name="max(speed_mps)"),
    ),
)


@example(plan=INCIDENT)
@given(plan=plans())
def test_every_expression_of_a_plan_can_be_changed(plan: Plan):
    before = [text for _, text in expressions_of(plan)]
    changed = with_expressions(plan, lambda text: f"({text})")
    assert [text for _, text in expressions_of(changed)] == [f"({t})" for t in before]
    given = rebuilt(plan).given.values()
    assert {(one.part, one.text) for one in given} == set(expressions_of(plan))


@pytest.mark.spec("B14")
@given(plan=plans())
def test_every_plan_satisfies_the_schema(plan: Plan):
    assert list(SCHEMA.iter_errors(json.loads(json.dumps(plan.to_json())))) == []


@pytest.mark.parametrize("name", GOLDEN)
def test_every_golden_plan_satisfies_the_schema(name: str):
    assert (
        list(SCHEMA.iter_errors(json.loads(json.dumps(GOLDEN[name].to_json())))) == []
    )


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The paths of all values that are no objects or lists."""
    if isinstance(value, dict):
        return [
            leaf for name, part in value.items() for leaf in leaves(part, (*path, name))
        ]
    if isinstance(value, list):
        return [
            leaf
            for number, part in enumerate(value)
            for leaf in leaves(part, (*path, number))
        ]
    return [path]


@pytest.mark.spec("B14")
@given(plan=plans() | st.sampled_from(tuple(GOLDEN.values())), data=st.data())
def test_a_value_of_the_wrong_type_is_refused_with_its_place(
    plan: Plan, data: st.DataObject
):
    value = json.loads(json.dumps(plan.to_json()))
    *above, last = data.draw(st.sampled_from(leaves(value)))
    holder = value
    for part in above:
        holder = holder[part]
    holder[last] = {"no": "such value"}
    with pytest.raises(QueryError) as caught:
        plan_from_json(json.dumps(value))
    place = "$" + "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in (*above, last)
    )
    assert f"{place}: " in caught.value.message


# --- the rules of calls

calls = st.sampled_from(
    (
        lambda builder: builder.in_space((0, 0, 5, 5)),
        lambda builder: builder.enlarge_metres(5),
        lambda builder: builder.enlarge_factor(0.5),
        lambda builder: builder.filter_key("a"),
        lambda builder: builder.where("x > 1"),
        lambda builder: builder.last("50 km", every="10 km"),
        lambda builder: builder.count(),
        lambda builder: builder.select("x"),
        lambda builder: builder.nearest(3, to="a"),
        lambda builder: builder.join("parks").on_intersects(),
        lambda builder: builder.compare_with((0, 0, 1, 1)),
        lambda builder: builder.negative_matches(),
        lambda builder: builder.window("1 hour"),
        lambda builder: builder.valid_until(),
        lambda builder: builder.group_by("line"),
    )
)


@pytest.mark.spec("B14")
@given(steps=st.lists(calls, max_size=6))
def test_a_call_gives_a_new_builder_or_an_error_and_what_a_builder_holds_could_be_registered(
    steps: list[Any],
):
    builder = query("ships")
    for step in steps:
        before = builder.build()
        kept = builder
        with suppress(
            QueryError
        ):  # a clause that excludes another, or that needs one before
            builder = step(builder)
        assert kept.build() == before
        assert list(complaints(builder.build(), ANY)) == []
        assert through_json(builder.build()) == builder.build()


GROWS = {
    "factor": QueryBuilder.enlarge_factor,
    "value": QueryBuilder.enlarge_value,
    "metres": QueryBuilder.enlarge_metres,
}
steps_of_theta = st.lists(
    st.tuples(st.sampled_from((*GROWS, "key")), st.integers(0, 9)), max_size=8
)


@pytest.mark.spec("B10")
@given(steps=steps_of_theta)
def test_of_one_way_to_enlarge_the_last_call_counts_and_filters_add_up(
    steps: list[tuple[str, int]],
):
    builder = query("ships")
    for kind, amount in steps:
        builder = (
            builder.filter_key(str(amount))
            if kind == "key"
            else GROWS[kind](builder, amount)
        )
    last = {kind: number for number, (kind, _) in enumerate(steps)}
    kept = [
        step
        for number, step in enumerate(steps)
        if step[0] == "key" or last[step[0]] == number
    ]
    found = [
        (step.kind, step.text or str(int(step.amount)))
        for step in builder.build().transforms
    ]
    assert found == [(kind, str(amount)) for kind, amount in kept]
