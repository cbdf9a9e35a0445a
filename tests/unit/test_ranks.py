"""Which of the nearest a member is, and how far away: columns of queries with KNN (SPEC G5, G9)."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyproj import Geod

from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.errors import QueryError
from st_common.query.builder import query
from st_common.query.built import statement_of
from st_common.query.lengths import in_coordinates
from st_common.query.plan_json import built_from_json, plan_from_json
from st_common.query.registry import check
from st_common.query.text import TextError, parse, to_text
from st_common.regions.registry import Box
from tests.kit.by_hand import clock, end, fix, gone, layer, log, register
from tests.kit.effort import tries
from tests.kit.laws import holds, run_steps
from tests.kit.oracle import Rules
from tests.kit.roads import plan_of, road, told_of
from tests.kit.strategies import Case, Segmentation, cases, courses

pytestmark = pytest.mark.spec("G5", "G9")
HOW = [
    {},
    {"cuts": (2, 4, 5)},
    {"cuts": (3, 5), "shards": 3, "restarts": frozenset({0})},
]
STREAMS = {
    "taxis": StreamSettings(
        name="taxis", format="csv", columns=Columns(object="id", x="x", y="y")
    )
}
PLACED = "SELECT rank() AS n, distance() AS m FROM s"


def said(row):
    return f"{row['object']} {row['fields']}"


def told(rows, layers=None, **how):
    return told_of(rows, layers or {}, said, **how)


@pytest.mark.parametrize("how", HOW)
def test_who_enters_says_its_rank_then_and_who_leaves_has_none(how):
    rows = [
        register("q", plan_of(f"{PLACED} KNN (2, 0, 0)")),
        fix("far", 1, 3, 4),
        fix("near", 1, 0, 2),
        fix("between", 3, 0, 3),
        gone("near", 5),
        end(),
    ]
    assert told(rows, **how) == [
        '1 +far {"n":2,"m":5.0}',
        '1 +near {"n":1,"m":2.0}',
        '3 +between {"n":2,"m":3.0}',
        '3 -far {"n":null,"m":null}',
        '5 +far {"n":2,"m":5.0}',
        '5 -near {"n":null,"m":null}',
    ]


@pytest.mark.parametrize("how", HOW)
def test_of_equally_far_ones_the_first_is_that_whose_id_comes_first(how):
    rows = [
        register("q", plan_of(f"{PLACED} KNN (3, 0, 0)")),
        fix("b", 1, 0, 2),
        fix("ab", 1, 2, 0),
        fix("a", 1, -2, 0),
        end(),
    ]
    assert told(rows, **how) == [
        '1 +a {"n":1,"m":2.0}',
        '1 +ab {"n":2,"m":2.0}',
        '1 +b {"n":3,"m":2.0}',
    ]


@pytest.mark.parametrize("how", HOW)
def test_every_fix_of_a_member_and_of_the_object_that_the_query_goes_with_tells_anew(
    how,
):
    rows = [
        register("q", plan_of(f"{PLACED} KNN ('M', 2, 'me') EMIT EVERY")),
        fix("me", 1, 0, 0),
        fix("a", 1, 1, 0),
        fix("b", 1, 9, 0),
        fix("b", 2, 8, 0),
        fix("me", 4, 8, 0),
        end(),
    ]
    assert told(rows, **how) == [
        '1 +a {"n":1,"m":1.0}',
        '1 +b {"n":2,"m":9.0}',
        '2 =b {"n":2,"m":8.0}',
        '4 =a {"n":2,"m":7.0}',
        '4 =b {"n":1,"m":0.0}',
    ]


def test_rstream_tells_all_ranks_whenever_one_may_differ():
    rows = [
        register("q", plan_of("SELECT RSTREAM(rank() AS n) FROM s KNN (2, 0, 0)")),
        fix("a", 1, 1, 0),
        fix("b", 1, 5, 0),
        fix("a", 3, 7, 0),
        end(),
    ]
    assert told(rows)[-2:] == [
        '3 =a {"n":2,"x":7.0,"y":0.0}',
        '3 =b {"n":1,"x":5.0,"y":0.0}',
    ]


@pytest.mark.parametrize("how", [{}, {"cuts": (4,), "restarts": frozenset({0})}])
def test_a_query_that_is_registered_late_and_one_whose_layer_is_replaced_have_ranks(
    how,
):
    chosen = "t WHERE EXISTS (SELECT 1 FROM roads r WHERE ST_DWithin(t, r, 5 m))"
    rows = [
        layer("roads", 1),
        fix("a", 1, 1, 0),
        fix("b", 1, 2, 20),
        fix("c", 1, 3, 0),
        clock(3),
        register("q", plan_of(f"{PLACED} {chosen} KNN (3, 9, 0)"), layer_version=1),
        layer("roads", 2),
        end(),
    ]
    layers = {
        ("roads", 1): [road("r", 0)],
        ("roads", 2): [road("r", 0), road("s", 20)],
    }
    assert [line.partition(" ")[2] for line in told(rows, layers, **how)] == [
        '+a {"n":2,"m":8.0}',
        '+c {"n":1,"m":6.0}',
        '+b {"n":3,"m":21.18962010041709}',
    ]


def test_on_degrees_the_distance_is_that_of_the_geodesic():
    plan = plan_of("SELECT distance() AS m FROM s KNN (1, 24.9, 60.2)")
    rules = Rules(tick_us=1_000_000, geographic=True)
    rows = log(register("q", plan), fix("a", 1, 24.95, 60.17), end())
    case = Case(rows=tuple(rows), layers={}, rules=rules)
    changes, _, _ = run_steps(case, Segmentation(cuts=(), batches=()))
    (row,) = changes.to_pylist()
    _, _, far = Geod(ellps="WGS84").inv(24.9, 60.2, 24.95, 60.17)
    assert json.loads(row["fields"])["m"] == pytest.approx(far, abs=1e-6)


@pytest.mark.spec("X12", "G9")
def test_a_query_that_follows_an_area_leaves_the_ranks_of_others_alone():
    """The members of `other` are not asked for: nobody swaps it, so where it measures from is not looked up."""
    inside = Box(minx=0.0, miny=0.0, maxx=9.0, maxy=9.0)
    wider = replace(inside, maxx=20.0)
    plan = plan_of("SELECT rank() FROM s KNN (2, 0, 0)")
    rows = [
        register("follower", replace(plan, inside=inside)),
        register("other", plan),
        fix("a", 1, 5, 5),
        fix("b", 1, 15, 5),
        clock(3),
        register("follower", replace(plan, inside=wider), op="follow"),
        end(),
    ]
    case = Case(rows=tuple(log(*rows)), layers={}, rules=Rules(tick_us=1_000_000))
    changes, _, _ = run_steps(case, Segmentation(cuts=(), batches=()))
    told = [
        (row["query"], row["object"], row["cause"], row["fields"])
        for row in changes.to_pylist()
    ]
    assert told[-1] == ("follower", "b", "area", '{"rank":2}')


@tries(20)
@given(st.data())
def test_ranks_are_those_of_brute_force_however_it_is_run(data):
    case = data.draw(cases(kind="neighbours", rows=40))
    holds(case, data.draw(courses(len(case.rows))))


def test_text_builder_and_json_say_the_same():
    text = (
        "REGISTER QUERY q AS SELECT rank(), round(distance() / 1000, 1) AS km "
        "FROM taxis KNN ('M', 3, 'car7')"
    )
    (statement,) = parse(text)
    said = to_text(statement.plan, "q")
    assert "SELECT RANK() AS rank, ROUND(DISTANCE() / 1000, 1) AS km" in said
    assert parse(said)[0].plan == statement.plan
    built = query("taxis").nearest(3, to="car7")
    built = built.select("rank()", km="round(distance() / 1000, 1)")
    assert built.plan == statement.plan
    assert plan_from_json(json.dumps(statement.plan.to_json())) == statement.plan
    assert statement.plan.columns[0] == ("rank", '"near.rank"')


def test_on_a_plane_in_feet_distances_are_in_metres():
    plan = plan_of("SELECT distance() AS m FROM taxis KNN (3, 0, 0)")
    assert in_coordinates(plan, 0.3048).columns == (
        ("m", '("near.distance_m" * 0.3048)'),
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("SELECT rank() FROM taxis", "rank() and distance() need KNN (k, ..)"),
        (
            "SELECT distance() FROM taxis REVERSE KNN (1, 2)",
            "rank() and distance() need KNN (k, ..)",
        ),
        (
            "SELECT * FROM taxis WHERE rank() < 2 KNN (3, 1, 2)",
            "rank() has no place here",
        ),
        (
            "SELECT AVG(distance()) FROM taxis REVERSE KNN (1, 2)",
            "rank() and distance() need KNN (k, ..)",
        ),
        (
            "SELECT rank() FROM taxis [ROWS 3] KNN (3, 1, 2)",
            "rank() and distance() and a window in brackets exclude each other",
        ),
        (
            "SELECT distance() > 100 s AS near FROM taxis KNN (3, 1, 2)",
            "expected a distance, not a time",
        ),
    ],
)
def test_what_has_no_place_among_the_nearest_is_refused(tmp_path, text, error):
    with pytest.raises(TextError) as caught:
        check(Home(tmp_path), STREAMS, parse(f"REGISTER QUERY q AS {text}"))
    assert error in str(caught.value)


def test_a_plan_that_asks_for_ranks_without_neighbours_or_in_where_is_refused(tmp_path):
    plan = plan_of("SELECT rank() FROM taxis KNN (3, 1, 2)")
    with pytest.raises(QueryError, match=r"rank\(\) and distance\(\) need KNN"):
        plan_from_json(json.dumps(replace(plan, neighbours=None).to_json()))
    asking = replace(plan, columns=(), where='"near.rank" < 2')
    statement = statement_of(built_from_json(json.dumps(asking.to_json())), "q")
    with pytest.raises(TextError, match=r"unknown column 'near\.rank'"):
        check(Home(tmp_path), STREAMS, [statement])
