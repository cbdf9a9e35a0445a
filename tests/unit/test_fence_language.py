"""DETECT in texts, in the builder and in JSON: what a fence can say, and what is refused (SPEC X3)."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from st_common.checks.sentences import Fix, Others, sentence
from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.errors import QueryError
from st_common.operators.expressions.fields import shown_columns
from st_common.query.builder import around, circle, query
from st_common.query.checks import complaints
from st_common.query.explain import explain, kind_in_words, lines
from st_common.query.fence import Debounce, Fence
from st_common.query.grammar.expecting import expected_after
from st_common.query.lengths import in_coordinates
from st_common.query.plain import is_plain, plan_text
from st_common.query.plan import Aggregate, Plan, Window
from st_common.query.plan_json import plan_from_json
from st_common.query.problem import TextError
from st_common.query.text import parse, to_text
from st_common.regions.registry import Box

BOX = Box.of_corners(0, 0, 1, 1)
ENTER_EXIT = Fence(events=("enter", "exit"))
STREAM = StreamSettings(
    name="s", format="csv", columns=Columns(object="id", x="x", y="y"), crs="planar"
)


def plan_of(clauses: str) -> Plan:
    (statement,) = parse(f"REGISTER QUERY q AS SELECT * FROM s {clauses}")
    assert statement.plan is not None
    return statement.plan


def fence_of(clauses: str) -> Fence:
    fence = plan_of(f"INSIDE (0, 0, 1, 1) {clauses}").fence
    assert fence is not None
    return fence


def refused(clauses: str) -> list[tuple[str, str]]:
    """What is wrong with the clauses: each place of the text, and what is said of it."""
    text = f"REGISTER QUERY q AS SELECT * FROM s {clauses}"
    with pytest.raises(TextError) as caught:
        parse(text)
    found = []
    for problem in caught.value.problems:
        width = problem.snippet.split("\n")[1].count("^")
        start = problem.column - 1
        found.append((text[start : start + width], str(problem).partition(": ")[2]))
    return found


@pytest.mark.spec("X3")
def test_every_event_and_option_of_a_fence_can_be_said():
    assert fence_of(
        "DETECT DWELL 5 min, CROSS, OUTSIDE, INSIDE, EXIT, ENTER WITH"
        " (enter_after = 2 fixes, exit_after = 10 s 3 fixes, hysteresis = 30 m, max_gap = 1 min)"
    ) == Fence(
        events=("enter", "exit", "inside", "outside", "cross", "dwell"),
        dwell_s=300.0,
        enter_after=Debounce(fixes=2),
        exit_after=Debounce(fixes=3, seconds=10.0),
        hysteresis_m=30.0,
        max_gap_s=60.0,
    )


@pytest.mark.spec("X3")
@pytest.mark.parametrize(
    "clauses",
    [
        "DETECT ENTER INSIDE (0, 0, 1, 1) WHERE speed > 3",
        "WHERE speed > 3 DETECT ENTER INSIDE (0, 0, 1, 1)",
        "INSIDE (0, 0, 1, 1) WHERE speed > 3 DETECT ENTER",
        "inside (0, 0, 1, 1) detect enter where speed > 3",
    ],
)
def test_detect_stands_in_any_place_among_the_clauses(clauses):
    assert plan_of(clauses) == Plan(
        stream="s",
        inside=BOX,
        where="speed > 3",
        fence=Fence(events=("enter",)),
    )


@pytest.mark.spec("X3")
@pytest.mark.parametrize(
    ("option", "debounce"),
    [
        ("1 fix", Debounce()),
        ("2 fixes", Debounce(fixes=2)),
        ("10 s", Debounce(seconds=10.0)),
        ("'10 s'", Debounce(seconds=10.0)),
        ("2 FIXES 1 min", Debounce(fixes=2, seconds=60.0)),
        ("1 min 2 fixes", Debounce(fixes=2, seconds=60.0)),
    ],
)
def test_a_row_of_fixes_is_a_number_a_time_or_both(option, debounce):
    assert fence_of(f"DETECT ENTER WITH (enter_after = {option})") == Fence(
        events=("enter",), enter_after=debounce
    )
    assert fence_of(f"DETECT EXIT WITH (exit_after = {option})").exit_after == debounce


def test_statements_alike_but_for_the_numbers_of_their_fence_are_not_confused():
    like = "REGISTER QUERY q{n} AS SELECT * FROM s INSIDE (0, 0, {n}, 1) DETECT DWELL {n} s WITH (hysteresis = {n} m)"
    found = parse("; ".join(like.format(n=n) for n in (1, 1, 2, 2, 3, 1)))
    assert [
        (one.plan.fence.dwell_s, one.plan.fence.hysteresis_m, one.plan.inside.maxx)
        for one in found
    ] == [(n, n, n) for n in (1, 1, 2, 2, 3, 1)]


@pytest.mark.spec("X3", "P4")
@pytest.mark.parametrize(
    ("clauses", "where", "says"),
    [
        ("DETECT ENTRE", "ENTRE", "did you mean ENTER?"),
        ("DETECT DWELL 5", "", "a unit such as min"),
        ("DETECT DWELL", "", "how long a visit lasts"),
        ("DETECT DWELL 5 km", "km", "is a unit of distance"),
        ("DETECT DWELL 0 s", "0 s", "at least a microsecond"),
        ("DETECT EXIT, ENTER, EXIT", "EXIT", "EXIT stands there twice"),
        ("DETECT DWELL 1 s, DWELL 2 s", "DWELL 2 s", "DWELL stands there twice"),
        ("DETECT ENTER WITH (hysterisis = 3 m)", "hysterisis", "mean hysteresis?"),
        ("DETECT ENTER WITH (hysteresis = 3)", "3", "a distance with its unit"),
        ("DETECT ENTER WITH (hysteresis = 3 s)", "s", "is a unit of time"),
        ("DETECT ENTER WITH (hysteresis = -3 m)", "-3", "0 or more"),
        ("DETECT ENTER WITH (enter_after = 0 fixes)", "0", "a whole number"),
        ("DETECT ENTER WITH (enter_after = 2 fxes)", "fxes", "did you mean fixes?"),
        ("DETECT ENTER WITH (enter_after = 2 s 3 s)", "2 s 3 s", "fixes and a time"),
        ("DETECT ENTER WITH (max_gap = 2 s 3 s)", "2 s 3 s", "a time alone"),
        ("DETECT ENTER WITH (plan = 2 s)", "2 s", "a text in single quotes"),
        ("WITH (max_gap = 2 s)", "max_gap = 2 s", "an option of DETECT"),
    ],
)
def test_a_wrong_fence_is_pointed_at(clauses, where, says):
    ((found, said),) = refused(f"INSIDE (0, 0, 1, 1) {clauses}")
    assert found.strip() == where
    assert says in said


def test_an_option_of_a_wrong_fence_is_not_said_to_have_none():
    found = refused(
        "INSIDE (0, 0, 1, 1) DETECT ENTRE WITH (hysteresis = 3 m, max_gap = 3 m)"
    )
    assert [where for where, _ in found] == ["ENTRE", "m"]


FENCE = Plan(stream="s", inside=BOX, fence=ENTER_EXIT)


@pytest.mark.spec("X3")
@pytest.mark.parametrize(
    ("clauses", "says"),
    [
        ("DETECT ENTER", "DETECT needs INSIDE, or a JOIN with a layer"),
        (
            "INSIDE ('M', 'a', 5 m) DETECT ENTER, CROSS",
            "CROSS and a region that goes with an object exclude",
        ),
        (
            "INSIDE ('M', 'a', 5 m) DETECT ENTER, OUTSIDE",
            "OUTSIDE and a region that goes with an object exclude",
        ),
        (
            "INSIDE ('M', 'a', 5 m) DETECT ENTER WITH (exit_after = 2 fixes)",
            "exit_after counts no fixes at a region that goes with an object",
        ),
        (
            "INSIDE ('M', 'a', 5 m) DETECT ENTER WITH (max_gap = 1 min)",
            "max_gap is about CROSS",
        ),
        (
            "JOIN parks ON ST_Intersects(s, parks) INSIDE (0, 0, 1, 1) DETECT ENTER",
            "is ambiguous",
        ),
        ("JOIN parks ON s.kind = parks.kind DETECT ENTER", "a join by place"),
        (
            "JOIN parks ON ST_Intersects(s, parks) DETECT OUTSIDE",
            "outside of which feature?",
        ),
        (
            "JOIN s o ON ST_DWithin(s, o, 5 m) INSIDE (0, 0, 1, 1) DETECT ENTER",
            "a JOIN of the stream with itself and DETECT exclude",
        ),
        ("INSIDE (0, 0, 1, 1) KNN (3, 0, 0) DETECT ENTER", "KNN and DETECT exclude"),
        ("INSIDE (0, 0, 1, 1) WINDOW 1 hour DETECT ENTER", "WINDOW and DETECT exclude"),
        (
            "[ROWS 5] INSIDE (0, 0, 1, 1) DETECT ENTER",
            "a window in brackets and DETECT exclude",
        ),
        (
            "INSIDE (0, 0, 1, 1) USING enlarge(5 m) DETECT ENTER",
            "USING and DETECT exclude",
        ),
        (
            "INSIDE (0, 0, 1, 1) COMPARE WITH (0, 0, 2, 2) DETECT ENTER",
            "COMPARE WITH and DETECT exclude",
        ),
        (
            "INSIDE (0, 0, 1, 1) EMIT EVERY DETECT ENTER",
            "EMIT EVERY and DETECT exclude",
        ),
        (
            "INSIDE (0, 0, 1, 1) EMIT CHANGES WITH VALID UNTIL DETECT ENTER",
            "WITH VALID UNTIL and DETECT exclude",
        ),
        (
            "INSIDE (0, 0, 1, 1) DETECT ENTER WITH (plan = 'space_first')",
            "the option plan and DETECT exclude",
        ),
    ],
)
def test_what_a_fence_cannot_stand_beside_is_named(clauses, says):
    (found,) = complaints(plan_of(clauses), STREAM)
    assert says in found.message
    assert found.hint


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        (replace(FENCE, emit="istream"), "ISTREAM and DETECT exclude"),
        (replace(FENCE, emit="rstream"), "RSTREAM and DETECT exclude"),
        (replace(FENCE, aggregate=Aggregate(function="count")), "an aggregate and"),
        (replace(FENCE, window=Window(tuples=3)), "WINDOW and DETECT"),
        (replace(FENCE, fence=Fence(events=())), "DETECT needs an event"),
        (replace(FENCE, fence=Fence(events=("dwell",))), "DWELL needs a time"),
        (
            replace(FENCE, fence=Fence(events=("enter",), dwell_s=3.0)),
            "no other event has one",
        ),
        (
            replace(FENCE, fence=Fence(events=("dwell",), dwell_s=0.0)),
            "DWELL is a time above 0",
        ),
        (
            replace(FENCE, fence=replace(ENTER_EXIT, hysteresis_m=-1.0)),
            "a hysteresis is 0 or more",
        ),
        (
            replace(FENCE, fence=replace(ENTER_EXIT, hysteresis_m=float("nan"))),
            "a hysteresis is 0 or more",
        ),
        (
            replace(FENCE, fence=replace(ENTER_EXIT, exit_after=Debounce(fixes=0))),
            "exit_after is at least 1 fix",
        ),
        (
            replace(FENCE, fence=replace(ENTER_EXIT, max_gap_s=0.0)),
            "max_gap is a time above 0",
        ),
    ],
)
def test_a_plan_that_no_text_says_is_refused_as_well(plan, says):
    assert any(says in found.message for found in complaints(plan, STREAM))


def test_an_event_that_is_none_makes_no_fence():
    with pytest.raises(ValueError, match="entre"):
        Plan.from_json({**FENCE.to_json(), "fence": {"events": ["entre"]}})


@pytest.mark.spec("X3", "B14")
def test_the_builder_says_a_fence_in_words_and_numbers():
    region = query("s").inside(circle(0, 0, "1 km"))
    built = region.detect(
        "enter",
        "exit",
        dwell="5 min",
        enter_after="2 fixes",
        exit_after=(3, "10 s"),
        hysteresis="30 m",
        max_gap=60,
    )
    assert built.build() == plan_of(
        "INSIDE CIRCLE (0, 0, 1 km) DETECT ENTER, EXIT, DWELL 5 min WITH"
        " (enter_after = 2 fixes, exit_after = 3 fixes 10 s, hysteresis = 30 m, max_gap = 60 s)"
    )
    assert region.detect(
        "cross", exit_after=2, enter_after="10 s"
    ).build().fence == Fence(
        events=("cross",),
        enter_after=Debounce(seconds=10.0),
        exit_after=Debounce(fixes=2),
    )


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda one: one.detect("entre"), "did you mean enter?"),
        (lambda one: one.detect("dwell"), "is its own argument"),
        (lambda one: one.detect("enter", "enter"), "stands there twice"),
        (lambda one: one.detect(), "DETECT needs an event"),
        (lambda one: one.detect(dwell="5 km"), "expected a time"),
        (lambda one: one.detect("enter", enter_after=0), "a number of fixes"),
        (lambda one: one.detect("enter", enter_after="2 rows"), "unknown unit"),
        (lambda one: one.detect("enter").nearest(3, 0, 0), "KNN and DETECT exclude"),
        (lambda one: one.detect("enter").count(), "an aggregate and DETECT exclude"),
        (
            lambda one: one.inside(around("a", "5 m")).detect("cross"),
            "CROSS and a region that goes with an object exclude",
        ),
    ],
)
def test_a_wrong_step_of_the_builder_is_refused(make, says):
    with pytest.raises(QueryError) as caught:
        make(query("s").inside(circle(0, 0, 5)))
    assert says in str(caught.value)


@pytest.mark.spec("B14")
@pytest.mark.parametrize(
    ("fence", "says"),
    [
        ({"events": []}, "$.fence.events"),
        ({"events": ["enter", "enter"]}, "$.fence.events"),
        ({"events": ["entre"]}, "$.fence.events[0]"),
        ({"events": ["dwell"]}, "dwell_s"),
        ({"events": ["enter"], "dwell_s": 3}, "$.fence.events"),
        ({"events": ["enter"], "hysteresis_m": -1}, "$.fence.hysteresis_m"),
        ({"events": ["enter"], "enter_after": {"fixes": 0}}, "$.fence.enter_after"),
        ({"events": ["enter"], "hysteresis": 1}, "unknown part 'hysteresis'"),
    ],
)
def test_wrong_json_is_refused_with_its_place(fence, says):
    with pytest.raises(QueryError) as caught:
        plan_from_json(json.dumps({**FENCE.to_json(), "fence": fence}))
    assert says in str(caught.value)


def test_a_fence_is_no_plain_rectangle():
    assert not is_plain(FENCE)
    assert json.loads(plan_text(FENCE)) == FENCE.to_json()


def test_a_hysteresis_on_a_plane_in_feet_is_so_many_metres():
    plan = replace(FENCE, fence=replace(ENTER_EXIT, hysteresis_m=30.48))
    found = in_coordinates(plan, 0.3048).fence
    assert found is not None
    assert found.hysteresis_m == pytest.approx(100.0)


def test_a_fence_shows_the_place_of_the_fix_beside_its_columns():
    assert shown_columns(FENCE) == (("x", "x"), ("y", "y"))
    chosen = replace(FENCE, columns=(("X", "x * 2"), ("line", "line")))
    assert shown_columns(chosen) == (*chosen.columns, ("y", "y"))


@pytest.mark.spec("X3", "G10")
def test_an_explanation_says_what_a_fence_tells_and_when():
    plan = plan_of(
        "INSIDE (0, 0, 1, 1) WHERE speed > 3 DETECT ENTER, EXIT, CROSS, DWELL 5 min WITH"
        " (enter_after = 2 fixes, exit_after = 10 s, hysteresis = 30 m, max_gap = 1 min)"
    )
    text = "\n".join(lines(explain(plan, "q")))
    assert kind_in_words(plan) == "fence at: box"
    assert "fix by fix, DWELL by the watermark" in text
    assert (
        "fence tells ENTER, EXIT, CROSS, DWELL after 300 s; in after 2 fixes in a row inside; out after fixes of 10 s"
        " in a row more than 30 m away; no CROSS over a gap above 60 s"
    ) in text
    assert "+ for ENTER and - for EXIT, 0 for other events" in text
    assert "order" not in text.replace("in one order", "")
    alone = explain(replace(FENCE, fence=Fence(events=("enter",))), "q")
    assert (
        "0, for there is no answer without both ENTER and EXIT"
        in alone.steps[-1].detail
    )


def test_an_explanation_says_that_a_border_moves_at_ticks():
    plan = plan_of(
        "INSIDE ('M', 'a', 500 m) DETECT ENTER, EXIT, DWELL 2 min"
        " WITH (enter_after = 10 s, hysteresis = 50 m)"
    )
    text = "\n".join(lines(explain(plan, "q")))
    assert kind_in_words(plan) == "fence at: moving circle"
    assert "at ticks of 1 s of event time, DWELL by the watermark" in text
    assert (
        "fence tells ENTER, EXIT, DWELL after 120 s; in after ticks of 10 s in a row inside;"
        " out after a tick more than 50 m away"
    ) in text


def test_completion_knows_the_events_and_the_options():
    start = "REGISTER QUERY q AS SELECT * FROM s INSIDE (0, 0, 1, 1) DETECT "
    found = expected_after(start)
    assert found is not None
    assert found.words == {"ENTER", "EXIT", "INSIDE", "OUTSIDE", "CROSS", "DWELL"}
    found = expected_after(start + "ENTER WITH (")
    assert found is not None
    assert {"enter_after", "exit_after", "hysteresis", "max_gap"} <= found.words


def change_of(cause: str, sign: int = 0, value: float | None = None) -> dict:
    at = datetime(2026, 1, 1, 10, 5, tzinfo=UTC)
    return {
        "query": "depot",
        "query_version": 1,
        "object": "truck 7",
        "partner": None,
        "cause": cause,
        "sign": sign,
        "event_ts": at,
        "fix_ts": at,
        "value": value,
        "layer_version": None,
    }


@pytest.mark.spec("X3", "X5")
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (change_of("enter", 1), "truck 7 came in: its fix of"),
        (change_of("enter", 1), "after 2 fixes in a row (version 1 of depot)"),
        (change_of("leave", -1, 420.0), "truck 7 went out after 7 minutes inside"),
        (change_of("leave", -1, 421.5), "more than 30 m away from it"),
        (change_of("dwell", 0, 300.0), "truck 7 has been inside for 5 minutes at"),
        (change_of("inside"), "truck 7 stayed in"),
        (change_of("outside"), "truck 7 was out"),
        (change_of("cross"), "the straight line between them passes there"),
        (change_of("gone", -1, 3600.0), "after 1 hour inside: the feed said"),
        (change_of("expired", -1, 90.0), "it said nothing for 2 minutes after"),
        (change_of("dropped", -1), "was dropped at"),
        (change_of("registered", 1), "was there when version 1 of depot"),
    ],
)
def test_an_event_is_said_in_a_sentence(change, says):
    plan = plan_of(
        "INSIDE (0, 0, 1, 1) DETECT ENTER, EXIT, INSIDE, OUTSIDE, CROSS, DWELL 5 min"
        " WITH (enter_after = 2 fixes, hysteresis = 30 m)"
    )
    others = Others(focals={}, newcomers={})
    said = sentence(change, plan, None, others, replace(STREAM, silence_s=120.0))
    assert says in said
    assert said.endswith(".")


@pytest.mark.spec("X3", "X5")
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (change_of("enter", 1), "truck 7 came in at the tick of"),
        (change_of("enter", 1), "within 500 m of a, after ticks of 10 s in a row"),
        (change_of("leave", -1, 420.0), "went out after 7 minutes inside at the tick"),
        (change_of("dwell", 0, 300.0), "truck 7 has been inside for 5 minutes at"),
        (change_of("inside"), "truck 7 stayed in"),
        (change_of("gone", -1, 3600.0), "the feed said that a is gone"),
        (change_of("expired", -1, 90.0), "it, or what the fence goes with, said"),
    ],
)
def test_an_event_at_a_border_that_moves_is_said_in_a_sentence(change, says):
    plan = plan_of(
        "INSIDE ('M', 'a', 500 m) DETECT ENTER, EXIT, INSIDE, DWELL 5 min"
        " WITH (enter_after = 10 s)"
    )
    is_gone = change["cause"] == "gone"
    focal = Fix(
        object="a",
        segment=0,
        row=0,
        event_ts=change["event_ts"],
        x=1.0,
        y=2.0,
        gone=is_gone,
        attributes={},
    )
    others = Others(focals={"a": focal}, newcomers={})
    said = sentence(change, plan, None, others, replace(STREAM, silence_s=120.0))
    assert says in said
    assert said.endswith(".")


def test_a_fence_in_the_text_of_a_plan_is_canonical():
    text = to_text(FENCE, "q")
    assert text == (
        "REGISTER QUERY q AS SELECT * FROM s INSIDE (0, 0, 1, 1) DETECT ENTER, EXIT"
    )


@pytest.mark.spec("X3", "X4")
def test_visits_are_kept_or_begin_anew():
    asked = "INSIDE (0, 0, 1, 1) DETECT ENTER, EXIT WITH (visits = '{}')"
    kept, anew = (plan_of(asked.format(word)) for word in ("kept", "anew"))
    assert kept == FENCE
    assert anew == replace(FENCE, fence=replace(ENTER_EXIT, restart=True))
    assert to_text(anew, "q").endswith("WITH (visits = 'anew')")
    assert "anew where it replaces another fence" in "\n".join(
        lines(explain(anew, "q"))
    )
    with pytest.raises(TextError, match="unknown way of visits 'new'"):
        plan_of(asked.format("new"))
