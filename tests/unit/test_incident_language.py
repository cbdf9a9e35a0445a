"""Incidents as texts, builders and JSON; their explanation, and sentences about what was told (SPEC X8)."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from st_common.checks.sentences import Others, sentence
from st_common.errors import QueryError
from st_common.query.builder import around, query
from st_common.query.built import statement_of
from st_common.query.explain import explain, lines
from st_common.query.fence import Debounce
from st_common.query.incident import Incident, Worst
from st_common.query.plan import Plan
from st_common.query.plan_json import plan_from_json
from st_common.query.printed import to_text
from st_common.query.problem import TextError
from st_common.query.text import parse

FAST = "SELECT * FROM cars WHERE speed > 50"


def plan_of(text):
    (statement,) = parse(f"REGISTER QUERY q AS {text}")
    return statement.plan


@pytest.mark.spec("X8", "P4")
@pytest.mark.parametrize(
    ("text", "incident"),
    [
        (f"{FAST} FOR 30 s", Incident(lasting=Debounce(seconds=30))),
        (f"{FAST} for 3 fixes", Incident(lasting=Debounce(fixes=3))),
        (f"{FAST} FOR 1 min 3 fixes", Incident(lasting=Debounce(fixes=3, seconds=60))),
        (
            f"{FAST} FOR 30 s UNTIL speed < 40 AND x > 3 WITH (max_gap = 2 min)",
            Incident(
                lasting=Debounce(seconds=30),
                until="speed < 40 AND x > 3",
                max_gap_s=120,
            ),
        ),
        (
            "SELECT MAX(speed) FROM cars UNTIL y > 1 FOR 30 s WHERE speed > 50",
            Incident(
                lasting=Debounce(seconds=30),
                until="y > 1",
                worst=Worst(function="max", argument="speed", name="max(speed)"),
            ),
        ),
    ],
)
def test_what_is_said_of_an_incident_is_read_and_printed(text, incident):
    plan = plan_of(text)
    assert plan == Plan(stream="cars", where="speed > 50", incident=incident)
    assert plan_of(to_text(plan, "q").partition(" AS ")[2]) == plan
    assert Plan.from_json(plan.to_json()) == plan


@pytest.mark.spec("X8", "P4")
def test_columns_a_worst_value_and_an_interval_stand_beside_each_other():
    plan = plan_of(
        f"SELECT line, MIN(fuel) AS least {FAST[8:]} FOR 9 s EMIT EVERY 5 min"
    )
    assert plan.columns == (("line", "line"),)
    assert plan.emit == "every"
    worst = Worst(function="min", argument="fuel", name="least")
    lasting = Debounce(seconds=9)
    assert plan.incident == Incident(lasting=lasting, every_s=300, worst=worst)
    assert to_text(plan, "q") == (
        "REGISTER QUERY q AS SELECT line, MIN(fuel) AS least FROM cars WHERE speed > 50 FOR 9 s EMIT EVERY 300 s"
    )


@pytest.mark.spec("X8", "P4")
@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        (f"{FAST} UNTIL speed < 40", "UNTIL", "UNTIL ends what FOR begins"),
        (f"{FAST} EMIT EVERY 3 s", "3 s", "EMIT EVERY has an interval with FOR alone"),
        (f"{FAST} FOR 30", "30", "a number of fixes or a time with its unit"),
        (f"{FAST} FOR 30 m", "m", "'m' is a unit of distance"),
        (f"{FAST} FOR 0 s", "0", "at least a microsecond"),
        (f"{FAST} FOR 3 s 4 s", "FOR", "expected a number of fixes and a time"),
        (f"{FAST} WITH (max_gap = 3 s)", "max_gap", "an option of DETECT"),
        (
            f"{FAST} FOR 3 s WITH (exit_after = 3 s)",
            "exit_after",
            "an option of DETECT",
        ),
        ("SELECT AVG(speed) FROM cars WHERE x > 1 FOR 3 s", "AVG", "AVG is not told"),
        (
            "SELECT MAX(x), MIN(x) FROM cars WHERE x > 1 FOR 3 s",
            "MIN",
            "one worst value",
        ),
        ("SELECT MAX(*) FROM cars WHERE x > 1 FOR 3 s", "MAX", "MAX takes one number"),
        (
            "SELECT x, MAX(y) AS x FROM cars WHERE x > 1 FOR 3 s",
            "MAX",
            "are called 'x'",
        ),
    ],
)
def test_a_wrong_incident_is_pointed_at(text, place, says):
    with pytest.raises(TextError) as caught:
        plan_of(text)
    (problem,) = caught.value.problems
    assert says in problem.message
    behind = f"REGISTER QUERY q AS {text}"[problem.column - 1 :]
    assert re.match(rf"{place}\b", behind)


@pytest.mark.spec("X8", "B14")
def test_the_builder_says_an_incident_in_words_and_numbers():
    built = (
        query("cars")
        .where("speed > 50")
        .select("line")
        .lasting((3, "30 s"), until="speed < 40", max_gap="1 min", every="5 min")
    )
    text = f"SELECT line {FAST[8:]} FOR 3 fixes 30 s UNTIL speed < 40 EMIT EVERY 5 min"
    assert built.build() == plan_of(f"{text} WITH (max_gap = 60 s)")
    worst = query("cars").where("x > 1").lasting(2, worst=("max", "x + y", "top"))
    assert worst.build() == plan_of(
        "SELECT MAX(x + y) AS top FROM cars WHERE x > 1 FOR 2 fixes"
    )
    statement = statement_of(worst, "q")
    assert [term.text for term in statement.terms] == ["x > 1", "x + y"]


@pytest.mark.spec("X8", "B14")
@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda q: q.lasting("30 s"), "FOR needs a condition"),
        (lambda q: q.where("x > 1").lasting("30 m"), "is a unit of distance"),
        (
            lambda q: q.where("x > 1").lasting("3 s", worst=("avg", "x")),
            "expected one of max, min",
        ),
        (lambda q: q.where("x > 1").lasting("3 s", until="x >"), "expected"),
        (
            lambda q: q.inside(around("a", 5)).lasting("3 s"),
            "FOR and a moving INSIDE exclude each other",
        ),
        (
            lambda q: q.where("x > 1").lasting("3 s").nearest(3, 1, 1),
            "KNN and FOR exclude each other",
        ),
        (
            lambda q: q.where("x > 1").lasting("3 s").window("1 h"),
            "WINDOW and FOR exclude each other",
        ),
        (
            lambda q: q.where("x > 1").lasting("3 s").count(),
            "an aggregate and FOR exclude each other",
        ),
        (
            lambda q: q.where("x > 1").lasting("3 s").as_stream("istream"),
            "ISTREAM and FOR exclude each other",
        ),
        (
            lambda q: q.inside((0, 0, 1, 1)).lasting("3 s").detect("enter"),
            "FOR and DETECT exclude each other",
        ),
    ],
)
def test_what_an_incident_cannot_stand_beside_is_named(build, says):
    with pytest.raises(QueryError) as caught:
        build(query("cars"))
    assert says in str(caught.value)


@pytest.mark.spec("X8", "B14")
def test_json_says_an_incident_and_its_mistakes_with_their_places():
    plan = plan_of(f"SELECT MAX(x) {FAST[8:]} FOR 3 s UNTIL x < 4 EMIT EVERY 9 s")
    assert plan_from_json(json.dumps(plan.to_json())) == plan
    value = plan.to_json()
    value["incident"]["max_gap_s"] = 0
    with pytest.raises(QueryError, match=r"\$\.incident\.max_gap_s"):
        plan_from_json(json.dumps(value))
    value = plan.to_json()
    value["emit"] = "changes"
    with pytest.raises(QueryError, match="an interval needs EMIT EVERY"):
        plan_from_json(json.dumps(value))


@pytest.mark.spec("X8", "S7")
def test_an_explanation_says_what_begins_and_ends_one_and_what_is_told():
    plan = plan_of(
        f"SELECT MAX(speed) {FAST[8:]} FOR 30 s UNTIL speed < 40 EMIT EVERY 5 min WITH (max_gap = 1 min)"
    )
    text = "\n".join(lines(explain(plan, "q")))
    for part in (
        "judged    fix by fix, gaps by the watermark",
        "kind      incidents of: all objects",
        "cause (text), value (number in s, or null), x (number), y (number), started (time), max(speed)",
        "begins after fixes of 30 s in a row; ends by speed < 40; or by a gap above 60 s",
        "ONGOING told by the first fix after each 300 s; worst value max of speed",
        "+ for STARTED and - for what ends one, 0 for ONGOING",
    ):
        assert part in text


CHANGE = {
    "query": "fast",
    "query_version": 2,
    "object": "a",
    "partner": None,
    "event_ts": datetime(2026, 5, 1, 12, 0, 40, tzinfo=UTC),
    "fix_ts": datetime(2026, 5, 1, 12, 0, 40, tzinfo=UTC),
    "value": 40.0,
    "fields": '{"x":1.0,"y":2.0,"max(speed)":71.5}',
}


@pytest.mark.spec("X8", "S7")
@pytest.mark.parametrize(
    ("cause", "until", "says"),
    [
        (
            "started",
            None,
            "a began an incident at 2026-05-01 12:00:00 UTC, where speed > 50; its fix of 2026-05-01 12:00:40 UTC "
            "confirmed it after fixes of 30 s in a row, max(speed) was 71.5 (version 2 of fast).",
        ),
        (
            "ongoing",
            None,
            "went on with its fix of 2026-05-01 12:00:40 UTC, after 40 s",
        ),
        (
            "ended",
            None,
            "ended after 40 s: its fix of 2026-05-01 12:00:40 UTC was so no more",
        ),
        (
            "ended",
            "speed < 40",
            "of its fix of 2026-05-01 12:00:40 UTC speed < 40 was true",
        ),
        ("gap", None, "no fix came within 1 minute of its fix of"),
        ("gone", None, "the feed said that it is gone"),
        ("expired", None, "it said nothing for too long after its fix"),
        ("dropped", None, "dropped"),
    ],
)
def test_what_happened_is_said_in_a_sentence(cause, until, says):
    plan = plan_of(f"SELECT MAX(speed) {FAST[8:]} FOR 30 s WITH (max_gap = 1 min)")
    plan = replace(plan, incident=replace(plan.incident, until=until))
    others = Others(focals={}, newcomers={})
    assert says in sentence({**CHANGE, "cause": cause}, plan, None, others, None)
