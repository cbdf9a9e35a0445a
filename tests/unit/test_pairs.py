"""Pairs of objects: columns and conditions of both sides, what is measured between them, and what they cost."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyproj import Geod

from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.geometry.space import GLOBE, PLANE
from st_common.query.builder import query
from st_common.query.built import statement_of
from st_common.query.lengths import in_coordinates
from st_common.query.plan import PairJoin, Plan
from st_common.query.plan_json import plan_from_json
from st_common.query.sides import Sides, sides_of
from st_common.query.terms import problems_of, types_of
from st_common.query.text import parse, to_text
from tests.kit.by_hand import clock, drop, end, fix, gone, log, register
from tests.kit.laws import run_steps
from tests.kit.oracle import Rules
from tests.kit.statements import counted_statements
from tests.kit.strategies import Case, Segmentation

PAIRS = "FROM s a JOIN s b ON ST_DWithin(a, b, 10 m)"
GEOD = Geod(ellps="WGS84")


def plan_of(text):
    (statement,) = parse(f"REGISTER QUERY q AS {text}")
    return statement.plan


def changes(rows, *, geographic=False, cuts=(), batches=(), **how):
    rules = Rules(tick_us=1_000_000, geographic=geographic)
    case = Case(rows=tuple(log(*rows)), layers={}, rules=rules)
    cut = Segmentation(cuts=frozenset(cuts), batches=tuple(batches))
    told, _, _ = run_steps(case, cut, **how)
    return told.to_pylist()


def told(rows, **how):
    """What is told of the rows of a log: `second sign object|partner cause columns`."""
    return [
        f"{row['event_ts'].timestamp():g} {'-=+'[row['sign'] + 1]}{row['object']}|{row['partner']} "
        f"{row['cause']} {' '.join(map(str, json.loads(row['fields'] or '{}').values()))}".rstrip()
        for row in changes(rows, **how)
    ]


FREE_AND_BUSY = plan_of(
    f"SELECT a.load, b.load AS other {PAIRS} "
    "WHERE a.kind = 'free' AND b.kind = 'busy' AND a.load > b.load"
)


@pytest.mark.spec("X12", "G9")
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"cuts": (2, 5), "batches": (1,)},
        {"shards": 3, "cuts": (4,), "restarts": frozenset({1})},
    ],
)
def test_a_pair_is_judged_again_when_either_of_the_two_reports(how):
    rows = [
        register("q", FREE_AND_BUSY),
        fix("a", 1, 0, 0, kind="free", load=5.0),
        fix("b", 1, 1, 0, kind="busy", load=3.0),
        fix("c", 1, 90, 0, kind="busy", load=1.0),
        fix("b", 2, 1, 0, kind="busy", load=7.0),
        fix("a", 3, 0, 0, kind="free", load=9.0),
        fix("b", 4, 1, 0, kind="free", load=1.0),
        fix("c", 5, 2, 0, kind="busy", load=2.0),
        gone("c", 6),
        end(),
    ]
    assert told(rows, **how) == [
        "1 +a|b enter 5.0 3.0",
        "2 -a|b leave 5.0 7.0",
        "3 +a|b enter 9.0 7.0",
        "4 -a|b leave 9.0 1.0",
        "5 +a|c enter 9.0 2.0",
        "6 -a|c gone 9.0 2.0",
    ]


@pytest.mark.spec("X12")
def test_further_fixes_of_both_are_told_where_the_other_is_shown():
    rows = [
        fix("a", 1, 0, 0, load=5.0),
        fix("b", 1, 1, 0, load=3.0),
        fix("b", 2, 1, 0, load=4.0),
        fix("a", 3, 0, 0, load=6.0),
        end(),
    ]
    first = "WHERE a.object = 'a' EMIT EVERY"
    of_both = plan_of(f"SELECT b.load {PAIRS} {first}")
    assert told([register("q", of_both), *rows]) == [
        "1 +a|b enter 3.0",
        "2 =a|b inside 4.0",
        "3 =a|b inside 4.0",
    ]
    of_one = plan_of(f"SELECT a.load {PAIRS} {first}")
    assert told([register("q", of_one), *rows]) == [
        "1 +a|b enter 5.0",
        "3 =a|b inside 6.0",
    ]


@pytest.mark.spec("X12")
def test_registration_and_drop_show_both_objects_as_they_are():
    rows = [
        fix("a", 1, 0, 0, kind="free", load=5.0),
        fix("b", 1, 1, 0, kind="busy", load=3.0),
        clock(3),
        register("q", FREE_AND_BUSY),
        fix("b", 4, 1, 0, kind="busy", load=2.0),
        clock(6),
        drop("q"),
    ]
    assert [line.split(" ", 1)[1] for line in told(rows)] == [
        "+a|b registered 5.0 3.0",
        "-a|b dropped 5.0 2.0",
    ]


PLACES = st.tuples(st.floats(-179, 179), st.floats(-85, 85))


@pytest.mark.spec("X12")
@given(PLACES, st.tuples(st.floats(-1e-3, 1e-3), st.floats(-1e-3, 1e-3)))
@pytest.mark.parametrize("geographic", [False, True], ids=["plane", "degrees"])
def test_distance_and_bearing_are_those_of_the_space(geographic, place, step):
    x, y = place
    to_x, to_y = x + step[0], y + step[1]
    join = PairJoin(distance_m=1e6)
    columns = (("far", '"pair.distance_m"'), ("way", '"pair.bearing_deg"'))
    plan = Plan(stream="s", pairs=join, columns=columns, where="object = 'a'")
    rows = [register("q", plan), fix("a", 1, x, y), fix("b", 1, to_x, to_y), end()]
    (row,) = changes(rows, geographic=geographic)
    shown = json.loads(row["fields"])
    if geographic:
        way, _, far = GEOD.inv(x, y, to_x, to_y)
    else:
        far = np.hypot(to_x - x, to_y - y)
        way = 90 - np.degrees(np.arctan2(to_y - y, to_x - x))
    assert shown["far"] == pytest.approx(far, abs=1e-6)
    if far > 1e-3:
        assert 0 <= shown["way"] < 360
        assert abs((shown["way"] - way + 180) % 360 - 180) < 1e-6


@pytest.mark.spec("X12")
@pytest.mark.parametrize("space", [PLANE, GLOBE])
def test_there_is_no_direction_from_a_place_to_itself(space):
    here, north = np.array([24.9, 24.9]), np.array([60.1, 60.2])
    way = space.bearing(here, np.array([60.1, 60.1]), here, north)
    assert np.isnan(way[0])
    assert way[1] == 0


@pytest.mark.spec("X12")
def test_a_distance_is_metres_where_coordinates_are_feet():
    plan = plan_of(
        f"SELECT distance(a, b) {PAIRS} WHERE b.speed_mps > 3 AND distance(a, b) < 5 m"
    )
    feet = in_coordinates(plan, 0.3048)
    assert feet.columns == (("distance", '("pair.distance_m" * 0.3048)'),)
    assert feet.where == (
        '("other.speed_mps" * 0.3048) > 3 AND ("pair.distance_m" * 0.3048) < 5'
    )


@pytest.mark.parametrize(
    ("where", "sides"),
    [
        ("a > 1 AND b > 2", Sides(first="a > 1 AND b > 2")),
        (
            'a > 1 AND "other.a" > 2 AND a < "other.a"',
            Sides(first="a > 1", other="a > 2", both='a < "other.a"'),
        ),
        ('"other.a" > 1 OR a > 1', Sides(both='"other.a" > 1 OR a > 1')),
        (
            '("other.a" > 1 OR "other.to" > 1) AND "other.b" = 1',
            Sides(other='(a > 1 OR "to" > 1) AND b = 1'),
        ),
        ('"pair.distance_m" > 1', Sides(both='"pair.distance_m" > 1')),
    ],
)
def test_a_condition_is_cut_by_what_it_is_about(where, sides):
    assert replace(sides_of(where), beside=None) == sides


@pytest.mark.spec("X12", "B14")
def test_text_builder_and_json_say_the_same():
    text = (
        "SELECT a.kind, b.speed_mps AS speed, distance(b, a), bearing(a, b) AS way "
        f"{PAIRS} AND a.seats = b.seats WHERE a.speed_mps > b.speed_mps AND b.kind = 'busy'"
    )
    plan = plan_of(text)
    built = (
        query("s")
        .join("s")
        .on_dwithin("10 m")
        .and_equal("seats")
        .where("speed_mps > other.speed_mps AND other.kind = 'busy'")
        .select(
            "kind",
            ("speed", "other.speed_mps"),
            "distance(s, other)",
            way="bearing(s, other)",
        )
    )
    assert built.plan == plan
    assert plan_from_json(json.dumps(plan.to_json())) == plan
    (again,) = parse(to_text(plan, "q"))
    assert again.plan == plan


def test_a_layer_in_the_place_of_the_pair_leaves_no_other_object():
    pairs = query("s").join("s").on_dwithin(5).where("other.load > 3")
    statement = statement_of(pairs.join("parks").on_intersects(), "q")
    streams = {
        "s": StreamSettings(
            name="s",
            format="csv",
            columns=Columns(object="id", x="x", y="y"),
            attributes={"load": "double"},
        )
    }
    (problem,) = problems_of(statement, streams["s"], types_of([statement], streams))
    assert "joined with itself" in problem.message


@pytest.mark.spec("X13", "X12")
def test_many_queries_share_what_is_asked_of_a_pair():
    """Conditions that differ in literals alone are a few statements, however many they are."""
    wheres = [
        f"a.kind = 'free' AND b.load > {number} AND abs(a.load - b.load) > {number}"
        for number in range(200)
    ]
    plans = [plan_of(f"SELECT * {PAIRS} WHERE {where}") for where in wheres]
    rows = [
        *(register(f"q{number}", plan) for number, plan in enumerate(plans)),
        fix("a", 1, 0, 0, kind="free", load=0.0),
        fix("b", 1, 1, 0, kind="busy", load=30.5),
        end(),
    ]
    with counted_statements() as evaluated:
        answer = told(rows)
    assert len(answer) == 31
    assert evaluated.call_count < 20


@pytest.mark.spec("X12")
@pytest.mark.parametrize("geographic", [False, True], ids=["plane", "degrees"])
def test_a_heading_is_the_direction_from_the_reading_before(geographic):
    plan = plan_of("SELECT heading_deg FROM s EMIT EVERY")
    places = [(10.0, 50.0), (10.0, 50.5), (11.0, 50.5), (11.0, 50.5), (10.5, 50.0)]
    fixes = [fix("a", time, *place) for time, place in enumerate(places, start=1)]
    rows = changes([register("q", plan), *fixes, end()], geographic=geographic)
    shown = [json.loads(row["fields"])["heading_deg"] for row in rows]
    if geographic:
        steps = pairwise(places)
        meant = [GEOD.inv(*one, *other)[0] % 360 for one, other in steps]
    else:
        meant = [0.0, 90.0, None, 225.0]
    meant[2] = None
    assert shown == [None, *(one and pytest.approx(one, abs=1e-9) for one in meant)]
