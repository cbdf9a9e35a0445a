"""Several values of each group, and several keys: what is told, how it is said, what is refused, what is kept."""

import json

import numpy as np
import pyarrow as pa
import pytest

from st_common.errors import QueryError
from st_common.operators.aggregate.groups import Groups
from st_common.query.builder import query
from st_common.query.plan import MOST_COLLECTED, Aggregate, Plan, Value
from st_common.query.plan_json import plan_from_json
from st_common.query.text import TextError, parse, to_text
from st_common.regions.registry import Box
from tests.kit.by_hand import clock, drop, end, fix, gone, log, register
from tests.kit.laws import run_steps
from tests.kit.oracle import Rules
from tests.kit.statements import counted_statements
from tests.kit.strategies import Case, Segmentation

SECONDS = Rules(tick_us=1_000_000)
FROM = "FROM s INSIDE (0, 0, 10, 10)"
ROWS = [
    fix("a", 1, 1, 1, kind="bus", load=2.0),
    fix("b", 2, 1, 1, kind="bus", load=4.0),
    fix("c", 3, 1, 1),
    fix("b", 4, 50, 1, kind="bus", load=4.0),
    gone("a", 5),
    end(),
]


def plan_of(text):
    (statement,) = parse(f"REGISTER QUERY q AS {text}")
    return statement.plan


def told(rows, rules=SECONDS, **how):
    """What is told of the rows of a log: `second sign object value`, and the fields."""
    case = Case(rows=tuple(log(*rows)), layers={}, rules=rules)
    changes, _, _ = run_steps(case, Segmentation(cuts=frozenset(), batches=()), **how)
    return [
        (
            f"{row['event_ts'].timestamp():g} {'-=+'[row['sign'] + 1]}{row['object']}",
            row["value"],
            json.loads(row["fields"]),
        )
        for row in changes.to_pylist()
    ]


@pytest.mark.spec("G9")
def test_a_group_is_told_with_all_its_values_when_one_of_them_is_another():
    lines = plan_of(f"SELECT kind, COUNT(*) AS n, AVG(load) {FROM} GROUP BY kind")

    def bus(n, load):
        return {"kind": "bus", "n": n, "avg(load)": load}

    assert told([register("q", lines), *ROWS]) == [
        ("1 +bus", None, bus(1, 2.0)),
        ("2 -bus", None, bus(1, 2.0)),
        ("2 +bus", None, bus(2, 3.0)),
        ("3 +NULL", None, {"kind": None, "n": 1, "avg(load)": None}),
        ("4 -bus", None, bus(2, 3.0)),
        ("4 +bus", None, bus(1, 2.0)),
        ("5 -bus", None, bus(1, 2.0)),
    ]


@pytest.mark.spec("G9")
def test_how_the_values_of_a_group_spread():
    spread = plan_of(
        "SELECT STDDEV(load) AS s, VAR(load), MEDIAN(load) AS m, QUANTILE(load, 0.75) AS q"
        f" {FROM} HAVING QUANTILE(load, 0.75) > 0"
    )
    loads = [2.0, 4.0, 4.0, 10.0]
    rows = [fix(f"o{n}", n + 1, 1, 1, load=load) for n, load in enumerate(loads)]
    rows = told([register("q", spread), *rows, end()])
    assert rows[0][2] == {"s": None, "var(load)": None, "m": 2.0, "q": 2.0}
    assert rows[-1][2] == pytest.approx(
        {"s": 12**0.5, "var(load)": 12.0, "m": 4.0, "q": 5.5}
    )


@pytest.mark.spec("G9")
def test_the_first_the_last_and_different_values_keep_their_types():
    asked = plan_of(
        f"SELECT FIRST(kind) AS f, LAST(load) AS l, COLLECT(load) AS loads, LAST(load > 3) AS heavy {FROM}"
    )
    rows = [
        fix("b", 1, 1, 1, kind="bus", load=10.0),
        fix("a", 1, 1, 1, kind='a "tram"', load=9.0),
        fix("c", 1, 1, 1),
        fix("d", 1, 1, 1, load=float("inf")),
        fix("a", 2, 50, 1),
        fix("b", 3, 50, 1),
        end(),
    ]
    nothing = {"f": None, "l": None, "loads": [], "heavy": None}
    # Of one time: by the object's id. Infinity is no value.
    both = {"f": 'a "tram"', "l": 10.0, "loads": [9.0, 10.0], "heavy": True}
    b_alone = {**both, "f": "bus", "loads": [10.0]}
    lines = [row[2] for row in told([register("q", asked), *rows])]
    assert lines == [both, both, b_alone, b_alone, {**nothing, "heavy": True}]
    rows = [register("q", asked), fix("a", 1, 50, 1), end()]
    assert [row[2] for row in told(rows)] == [nothing]


@pytest.mark.spec("G9")
def test_first_and_last_of_windows_are_by_time_whatever_order_fixes_come_in():
    asked = "FIRST(load) AS f, LAST(load) AS l, COLLECT(kind) AS kinds"
    window = plan_of(f"SELECT {asked} {FROM} WINDOW 100 s")
    frame = plan_of(f"SELECT {asked} FROM s [RANGE 100 s]")
    rows = [
        fix("a", 3, 1, 1, load=2.0, kind="tram"),
        fix("b", 1, 1, 1, load=3.0, kind="bus"),
        fix("b", 2, 1, 1, load=4.0, kind="bus"),
        end(),
    ]
    rules = Rules(tick_us=1_000_000, lateness_us=5_000_000)
    for plan in (window, frame):
        given = [register("q", plan), *rows]
        lines = told(given, rules=rules, through_bytes=True)
        assert lines == told(given, rules=rules)
        assert lines[-1][2] == {"f": 3.0, "l": 2.0, "kinds": ["bus", "tram"]}


@pytest.mark.spec("G9")
def test_a_list_that_is_cut_ends_with_null():
    asked = plan_of(f"SELECT COLLECT(object) AS who, COLLECT(kind) AS k {FROM}")
    names = [f"o{n:03}" for n in range(MOST_COLLECTED + 2)]
    rows = [fix(name, 1, 1, 1, kind=name[:3]) for name in names]
    kinds = sorted({name[:3] for name in names})
    for count, cut in ((MOST_COLLECTED, []), (MOST_COLLECTED + 2, [None])):
        lines = told([register("q", asked), *rows[:count], end()])
        assert lines[-1][2]["who"] == [*names[:MOST_COLLECTED], *cut]
        assert lines[-1][2]["k"] == kinds[: count // 10 + (count % 10 > 0)]


@pytest.mark.spec("G9")
def test_a_query_about_groups_sees_first_last_and_lists_as_numbers_and_texts():
    heavy = f"SELECT kind, LAST(load) AS l, FIRST(object) AS who, COLLECT(load) AS loads {FROM} GROUP BY kind"
    having = plan_of(f"{heavy} HAVING l * 2 > 7 AND who = 'b' AND loads LIKE '[4%'")
    rows = [*ROWS[:1], fix("b", 4, 1, 1, kind="tram", load=4.0), end()]
    assert [row[0] for row in told([register("q", having), *rows])] == ["4 +tram"]
    above = plan_of(f"SELECT COLLECT(who) AS all_of_them FROM ({heavy}) r")
    lines = told([register("q", above), *rows])
    assert lines[-1][2] == {"all_of_them": ["a", "b"]}


@pytest.mark.spec("G9")
def test_keys_that_are_whole_numbers_are_told_without_a_point():
    keys = plan_of(f"SELECT seats, load, COUNT(*) AS n {FROM} GROUP BY seats, load")
    rows = [fix("a", 1, 1, 1, seats=2, load=2.0), fix("b", 1, 1, 1, load=2.0), end()]
    assert [row[0] for row in told([register("q", keys), *rows])] == [
        '1 +["2","2.0"]',
        '1 +[null,"2.0"]',
    ]


GREATEST = f"SELECT kind, load, COUNT(*) AS n {FROM} GROUP BY kind, load"


@pytest.mark.spec("G9")
@pytest.mark.parametrize(
    ("order", "names"),
    [
        ("n DESC LIMIT 2", ["bus1", "tram3"]),
        # Of the same value by name; "1.0" is before "2.0".
        ("n LIMIT 2", ["bus2", "tram4"]),
        ("n DESC LIMIT 1 PER kind", ["bus1", "tram3"]),
        ("n DESC LIMIT 1 PER load", ["bus1", "bus2", "tram3", "tram4"]),
        ("COUNT(*) DESC LIMIT 9", ["bus1", "bus2", "tram3", "tram4"]),
    ],
)
def test_the_greatest_groups_are_told_of_all_or_of_each_key(order, names):
    loads = {"bus": [1, 1, 2, 1], "tram": [4, 3, 3]}
    pairs = [(kind, load) for kind, some in loads.items() for load in some]
    rows = [
        fix(f"o{n}", 1, 1, 1, kind=k, load=float(v)) for n, (k, v) in enumerate(pairs)
    ]
    lines = told([register("q", plan_of(f"{GREATEST} ORDER BY {order}")), *rows, end()])
    assert (
        sorted(f"{row['kind']}{float(row['load']):g}" for _, _, row in lines) == names
    )


@pytest.mark.spec("G9")
def test_a_group_enters_and_leaves_by_how_great_others_are():
    first = plan_of(
        f"SELECT kind, SUM(load) {FROM} GROUP BY kind ORDER BY SUM(load) DESC LIMIT 1"
    )
    rows = [
        fix("a", 1, 1, 1, kind="bus", load=2.0),
        fix("b", 2, 1, 1, kind="tram", load=3.0),
        fix("c", 3, 1, 1, kind="taxi"),
        gone("b", 4),
        gone("a", 5),
        end(),
    ]
    assert [row[:2] for row in told([register("q", first), *rows])] == [
        ("1 +bus", 2.0),
        ("2 -bus", 2.0),
        ("2 +tram", 3.0),
        ("4 +bus", 2.0),
        ("4 -tram", 3.0),
        ("5 -bus", 2.0),
        ("5 +taxi", None),  # without a value it is behind all others
    ]


@pytest.mark.spec("G9")
def test_having_comes_before_the_limit():
    among = plan_of(
        f"SELECT kind, COUNT(*) AS n, AVG(load) AS v {FROM} GROUP BY kind "
        "HAVING AVG(load) < 5 AND kind <> 'taxi' ORDER BY n DESC LIMIT 1"
    )
    rows = [
        fix("a", 1, 1, 1, kind="bus", load=2.0),
        fix("b", 1, 1, 1, kind="bus", load=3.0),
        fix("c", 1, 1, 1, kind="tram", load=1.0),
        fix("d", 1, 1, 1, kind="taxi", load=1.0),
        fix("e", 1, 1, 1, kind="taxi", load=1.0),
        fix("f", 1, 1, 1, kind="taxi", load=1.0),
        fix("b", 2, 1, 1, kind="bus", load=9.0),
        fix("c", 3, 1, 1, kind="tram", load=8.0),
        end(),
    ]
    for how in ({}, {"through_bytes": True}):
        lines = told([register("q", among), *rows], **how)
        assert [(row[0], row[2]["n"]) for row in lines] == [
            ("1 +bus", 2),  # three taxis are more, and not asked for
            ("2 -bus", 2),  # their mean is 5.5 now: the trams are next
            ("2 +tram", 1),
            ("3 -tram", 1),
        ]


@pytest.mark.spec("B14", "P7")
def test_the_greatest_groups_among_those_of_having_can_be_asked_about():
    inner = f"{GREATEST} HAVING COUNT(*) > 2 ORDER BY n DESC LIMIT 3"
    plan = plan_of(f"SELECT * FROM ({inner}) r WHERE n < 9")
    assert plan.aggregate.top.having is not None
    assert plan.outer.where == "n < 9"
    assert parse(to_text(plan, "q"))[0].plan == plan


@pytest.mark.spec("G9")
def test_having_before_the_limit_asks_of_null_as_where_does():
    text = f"SELECT kind, SUM(load) AS v {FROM} GROUP BY kind"
    rows = [
        fix("a", 1, 1, 1, kind="bus"),
        fix("b", 1, 1, 1, load=2.0),
        fix("c", 1, 1, 1, kind="tram", load=1.0),
        end(),
    ]

    def names(having):
        plan = plan_of(f"{text} HAVING {having} ORDER BY v DESC LIMIT 9")
        return sorted(row[0][3:] for row in told([register("q", plan), *rows]))

    assert names("v > 0") == ["NULL", "tram"]
    assert names("v IS NULL") == ["bus"]
    assert names("kind IS NULL") == ["NULL"]
    assert names("kind <> 'bus'") == ["tram"]
    assert names("value > 1") == ["NULL"]


def test_having_before_the_limit_is_said_in_three_ways():
    text = plan_of(
        f"{GREATEST} HAVING COUNT(*) > 2 AND kind <> 'x' ORDER BY n DESC LIMIT 3"
    )
    assert text.outer is None
    assert text.aggregate.top.having == "n > 2 AND kind <> 'x'"
    box = query("s").inside(Box(minx=0, miny=0, maxx=10, maxy=10))
    counted = box.aggregate(n="count(*)").group_by("kind", "load")
    asked = "count(*) > 2 AND kind <> 'x'"
    assert counted.top(3, "n", having=asked).build() == text
    assert plan_from_json(json.dumps(text.to_json())) == text
    assert plan_of(to_text(text, "q").partition(" AS ")[2]) == text


@pytest.mark.spec("G9")
def test_the_greatest_of_objects_in_windows_are_found_among_all():
    frame = plan_of(
        "SELECT object, COUNT(*) AS n FROM s [RANGE 100 s] GROUP BY object ORDER BY n DESC LIMIT 1"
    )
    rows = [
        fix("a", 1, 1, 1),
        fix("b", 2, 1, 1),
        fix("b", 3, 1, 1),
        fix("a", 4, 1, 1),
        fix("a", 5, 1, 1),
        end(),
    ]
    lines = told([register("q", frame), *rows], through_bytes=True)
    assert [(row[0], row[2]["n"]) for row in lines] == [
        ("1 +a", 1),
        ("3 -a", 1),
        ("3 +b", 2),
        ("4 +a", 2),
        ("4 -b", 2),
        ("5 -a", 2),
        ("5 +a", 3),
    ]


@pytest.mark.spec("G9")
def test_a_query_asks_about_the_greatest_groups_and_finds_the_greatest_of_rows():
    above = plan_of(f"SELECT COUNT(*) AS c FROM ({GREATEST} ORDER BY n DESC LIMIT 2) r")
    rows = [fix(f"o{n}", 1, 1, 1, kind="bus", load=float(n % 4)) for n in range(8)]
    assert told([register("q", above), *rows, end()])[-1][2] == {"c": 2}
    rows_of = (
        "SELECT load, COUNT(*) AS c FROM (SELECT load FROM s INSIDE (0, 0, 9, 9)) r"
    )
    outer = plan_of(f"{rows_of} GROUP BY load ORDER BY c DESC LIMIT 1")
    lines = told([register("q", outer), *rows, fix("x", 1, 1, 1, load=3.0), end()])
    assert [row[2] for row in lines] == [{"load": "3.0", "c": 3}]


def test_the_greatest_groups_are_said_in_three_ways():
    text = plan_of(f"{GREATEST} ORDER BY n DESC LIMIT 3 PER kind")
    counted = (
        query("s").inside(Box(minx=0, miny=0, maxx=10, maxy=10)).aggregate(n="count(*)")
    )
    assert counted.group_by("kind", "load").top(3, "n", per="kind").build() == text
    assert plan_from_json(json.dumps(text.to_json())) == text
    assert plan_of(to_text(text, "q").partition(" AS ")[2]) == text
    least = plan_of(
        "SELECT kind, COUNT(*) FROM s GROUP BY kind ORDER BY COUNT(*) LIMIT 2"
    )
    built = query("s").count().group_by("kind").top(2, "count(*)", least=True).build()
    assert built == least == plan_of(to_text(least, "q").partition(" AS ")[2])
    with pytest.raises(QueryError, match="'m' is none of the numbers of the groups"):
        counted.group_by("kind").top(3, "m")
    with pytest.raises(QueryError, match="PER names one of several keys"):
        counted.group_by("kind").top(3, "n", per="kind")


@pytest.mark.spec("G9")
def test_groups_by_several_keys_are_named_by_a_list_of_texts():
    pairs = plan_of(f"SELECT kind, load AS l, COUNT(*) AS n {FROM} GROUP BY kind, load")
    assert [row[:2] for row in told([register("q", pairs), *ROWS])] == [
        ('1 +["bus","2.0"]', 1.0),
        ('2 +["bus","4.0"]', 1.0),
        ("3 +[null,null]", 1.0),
        ('4 -["bus","4.0"]', 1.0),
        ('5 -["bus","2.0"]', 1.0),
    ]


@pytest.mark.spec("G9")
def test_values_of_nothing_are_told_without_keys_from_the_registration_to_the_drop():
    both = plan_of(f"SELECT COUNT(*) AS n, MAX(load) AS top {FROM}")
    rows = [fix("a", 1, 50, 1), clock(3), register("q", both), drop("q"), end()]
    nothing = {"n": 0, "top": None}
    assert [row[2] for row in told(rows)] == [nothing, nothing]


@pytest.mark.spec("G9")
def test_a_query_about_groups_has_their_values_by_name_and_with_their_types():
    groups = f"SELECT kind, COUNT(*) AS n, AVG(load) AS v {FROM} GROUP BY kind"
    above = plan_of(f"SELECT SUM(n) AS objects, MAX(v) AS top FROM ({groups}) r")
    crowded = plan_of(f"SELECT * FROM ({groups}) r WHERE r.n > 1 AND r.kind = 'bus'")
    assert told([register("q", above), *ROWS])[-1] == (
        "5 +*",
        None,
        {"objects": 1.0, "top": None},
    )
    bus = {"kind": "bus", "n": 2, "v": 3.0}
    assert told([register("q", crowded), *ROWS]) == [
        ("2 +bus", None, bus),
        ("4 -bus", None, bus),
    ]


@pytest.mark.spec("G9")
def test_windows_keep_what_their_fixes_add_to_each_value():
    counted = "COUNT(*) AS n, COUNT(DISTINCT kind) AS kinds, SUM(load) AS loads"
    window = plan_of(f"SELECT {counted} {FROM} WINDOW 2 s")
    frame = plan_of(f"SELECT {counted} FROM s [ROWS 2] INSIDE (0, 0, 10, 10)")
    for plan in (window, frame):
        in_one = told([register("q", plan), *ROWS])
        assert in_one == told([register("q", plan), *ROWS], through_bytes=True)
        assert in_one[4] == ("3 +*", None, {"n": 3, "kinds": 1, "loads": 6.0})


@pytest.mark.spec("P8", "X13")
def test_a_thousand_queries_with_the_same_values_share_statements():
    counted = "SELECT kind, COUNT(*) AS n, AVG(load) AS v FROM s INSIDE (0, 0, {}, 9) GROUP BY kind"
    plans = [plan_of(counted.format(n / 100)) for n in range(1, 1001)]
    rows = [register(f"q{n}", one) for n, one in enumerate(plans)]
    rows += [fix(name, 5, 4.995, 1, kind="bus", load=2.0) for name in "abc"]
    with counted_statements() as evaluated:
        lines = told([*rows, end()])
    assert lines == [("5 +bus", None, {"kind": "bus", "n": 3, "v": 2.0})] * 501
    assert evaluated.call_count < 20


@pytest.mark.spec("G9")
def test_several_values_are_said_in_three_ways():
    text = plan_of(
        "SELECT p.fid AS park, kind, COUNT(*), AVG(load) AS v FROM s JOIN parks p ON ST_Intersects(s, p)"
        " GROUP BY p.fid, kind"
    )
    built = (
        query("s")
        .join("parks")
        .on_intersects()
        .aggregate("count(*)", v="avg(load)")
        .group_by(("park", "parks.fid"), "kind")
        .build()
    )
    assert built == text == plan_from_json(json.dumps(text.to_json()))
    assert plan_of(to_text(text, "q").partition(" AS ")[2]) == text
    assert text.aggregate == Aggregate(
        function="several",
        values=(
            Value(name="count(*)", function="count"),
            Value(name="v", function="avg", argument="load"),
        ),
        keys=(("park", "partner"), ("kind", "kind")),
    )


SPEED = "AVGSPD(*) AS v, COUNT(*) AS n, LAST(x) AS x FROM s [ROWS 3]"


@pytest.mark.spec("W6", "W7", "G9")
def test_an_average_speed_stands_beside_other_values_of_each_object():
    speeds = plan_of(f"SELECT {SPEED}")
    fixes = [fix("a", 0, 0), fix("b", 0, 0), fix("a", 2, 8), fix("b", 4, 4)]
    rows = told(
        [register("q", speeds), *fixes, fix("a", 6, 24), fix("a", 7, 25), end()]
    )
    kept = [(at, [one[name] for name in ("v", "n", "x")]) for at, _, one in rows]
    assert [row for row in kept if "+a" in row[0]] == [
        ("0 +a", [None, 1, 0.0]),
        ("2 +a", [4.0, 2, 8.0]),
        ("6 +a", [4.0, 3, 24.0]),
        ("7 +a", [3.4, 3, 25.0]),  # 17 m in 5 s: the first fix has left
    ]
    assert [row for row in kept if "+b" in row[0]] == [
        ("0 +b", [None, 1, 0.0]),
        ("4 +b", [1.0, 2, 4.0]),
    ]


@pytest.mark.spec("X12", "G9")
def test_how_far_an_object_came_is_of_its_fixes_in_the_window():
    ways = plan_of("SELECT TRAVELLED(*) AS way, AVGSPD(*) AS v FROM s [ROWS 3]")
    assert ways.aggregate.keys == (("object", "object"),)
    fixes = [fix("a", 0, 0), fix("a", 2, 8), fix("a", 6, 5), fix("a", 7, 6)]
    stay = [gone("a", 8), fix("a", 9, 90), fix("a", 10, 93)]
    rows = told([register("q", ways), *fixes, *stay, end()])
    assert [(at, one["way"]) for at, _, one in rows if "+a" in at] == [
        ("0 +a", 0.0),
        ("2 +a", 8.0),
        ("6 +a", 11.0),
        ("7 +a", 4.0),  # the first fix has left
        ("9 +a", 1.0),  # nobody knows how it came from 6 to 90
        ("10 +a", 3.0),
    ]


@pytest.mark.spec("X12", "W5")
def test_an_odometer_goes_on_behind_the_window_and_begins_anew_where_ways_do():
    fixes = [fix("a", 0, 0), fix("a", 2, 8), fix("a", 6, 5), fix("a", 7, 6)]
    stay = [gone("a", 8), fix("a", 9, 90), fix("a", 10, 93)]
    for window, metres in {
        "[ROWS 1]": [
            0,
            8,
            11,
            12,
            15,
        ],  # at 9 it is 12 still: from 6 to 90 nothing is added
        "[RANGE BY 2 m RATTR SPACE]": [0, 8, 11, 12, 0, 3],
    }.items():
        plan = plan_of(f"SELECT ODOMETER(*) AS m FROM s {window} EMIT CHANGES")
        rows = told([register("q", plan), *fixes, *stay, end()])
        assert [one["m"] for at, _, one in rows if "+a" in at] == metres, window
    far = plan_of("SELECT ODOMETER(*) AS m FROM s [ROWS 1] HAVING ODOMETER(*) > 10")
    rows = told([register("q", far), *fixes, end()])
    assert next((at, one["m"]) for at, _, one in rows) == ("6 +a", 11.0)


@pytest.mark.spec("P4", "X12")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT ODOMETER(*) AS way FROM s", "ODOMETER needs a window"),
        ("SELECT TRAVELLED(*) AS way FROM s", "TRAVELLED needs a window"),
        (
            "SELECT kind, TRAVELLED(*) AS w FROM s [ROWS 3] GROUP BY kind",
            "no other group",
        ),
        ("SELECT TRAVELLED(load) AS way FROM s [ROWS 3]", "TRAVELLED is of a stream"),
    ],
)
def test_a_way_is_of_each_object_in_a_window(text, message):
    with pytest.raises((TextError, QueryError), match=message):
        plan_from_json(json.dumps(plan_of(text).to_json()))


@pytest.mark.spec("W7", "G9")
def test_the_fastest_is_told_and_who_is_fast_enough():
    fixes = [fix("a", 0, 0), fix("b", 0, 0), fix("a", 1, 2), fix("b", 2, 6), end()]
    top = plan_of(f"SELECT {SPEED} GROUP BY object ORDER BY v DESC LIMIT 1")
    rows = told([register("q", top), *fixes])
    assert [(at, one["v"]) for at, _, one in rows] == [
        ("0 +a", None),
        ("1 -a", None),
        ("1 +a", 2.0),
        ("2 -a", 2.0),
        ("2 +b", 3.0),
    ]
    fast = plan_of(f"SELECT {SPEED} HAVING AVGSPD(*) > 2")
    rows = told([register("q", fast), *fixes])
    assert [(at, one["v"]) for at, _, one in rows] == [("2 +b", 3.0)]


@pytest.mark.spec("W7", "G9")
def test_an_average_speed_among_values_is_said_in_three_ways():
    text = plan_of("SELECT object, AVGSPD(*) AS v, LAST(x) FROM s [RANGE 60 s]")
    built = query("s").last("60 s").aggregate("last(x)", v="avgspd(*)").build()
    values = text.aggregate.values
    assert (values[1], values[0]) == built.aggregate.values
    assert text.aggregate.keys == built.aggregate.keys == (("object", "object"),)
    assert plan_from_json(json.dumps(text.to_json())) == text
    assert plan_of(to_text(text, "q").partition(" AS ")[2]) == text
    only = plan_of("SELECT AVGSPD(*) AS v FROM s [RANGE 60 s]")
    assert plan_of(to_text(only, "q").partition(" AS ")[2]) == only


def test_one_value_without_a_name_stays_the_value_of_a_change():
    assert plan_of(
        f"SELECT kind, COUNT(*) {FROM} GROUP BY kind"
    ).aggregate == Aggregate(function="count", group="kind")


def test_a_plan_of_one_value_called_as_it_is_written_is_read_from_its_text():
    only = (Value(name="count(*)", function="count"),)
    plan = Plan(stream="s", aggregate=Aggregate(function="several", values=only))
    assert plan_of(to_text(plan, "q").partition(" AS ")[2]) == plan


@pytest.mark.parametrize(
    ("having", "around"),
    [
        (
            f"SELECT kind, COUNT(*) {FROM} GROUP BY kind HAVING count(*) > 1 AND kind = 'bus'",
            f"SELECT * FROM (SELECT kind, COUNT(*) {FROM} GROUP BY kind) WHERE value > 1 AND object = 'bus'",
        ),
        (
            f"SELECT lower(kind) AS k, AVG(load) AS v, COUNT(*) {FROM} GROUP BY lower(kind)"
            " HAVING avg(LOAD) > 2 OR v < COUNT(*) AND lower(Kind) = 'bus' OR K IS NULL",
            f"SELECT * FROM (SELECT lower(kind) AS k, AVG(load) AS v, COUNT(*) {FROM} GROUP BY lower(kind))"
            """ WHERE v > 2 OR v < "count(*)" AND k = 'bus' OR k IS NULL""",
        ),
        (
            "SELECT p.fid, kind, COUNT(*) AS n FROM s JOIN p ON ST_Intersects(s, p) GROUP BY p.fid, kind"
            " HAVING n > 2 AND p.fid = 'a'",
            "SELECT * FROM (SELECT p.fid, kind, COUNT(*) AS n FROM s JOIN p ON ST_Intersects(s, p)"
            " GROUP BY p.fid, kind) WHERE n > 2 AND fid = 'a'",
        ),
        (
            "SELECT MEDIAN(load) AS m, QUANTILE(load, 0.25) FROM s HAVING QUANTILE(load, 0.25) < MEDIAN(load)",
            'SELECT * FROM (SELECT MEDIAN(load) AS m, QUANTILE(load, 0.25) FROM s) WHERE "quantile(load, 0.25)" < m',
        ),
    ],
)
def test_having_asks_about_the_rows_of_groups(having, around):
    assert plan_of(having) == plan_of(around)
    assert plan_of(having.replace("2", "5")) == plan_of(around.replace("2", "5"))


def test_a_builder_has_groups_of_which_a_condition_holds():
    built = query("s").count().group_by("kind").having("count(*) > 1").build()
    text = "SELECT kind, COUNT(*) FROM s GROUP BY kind HAVING COUNT(*) > 1"
    assert built == plan_of(text)


@pytest.mark.spec("G9")
def test_a_group_enters_and_leaves_by_having():
    crowded = plan_of(f"SELECT kind, COUNT(*) AS n {FROM} GROUP BY kind HAVING n > 1")
    assert told([register("q", crowded), *ROWS]) == [
        ("2 +bus", 2.0, {"kind": "bus", "n": 2}),
        ("4 -bus", 2.0, {"kind": "bus", "n": 2}),
    ]


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("SELECT COUNT(*) AS n, SUM(a) AS N FROM s", 22, "two columns are called 'N'"),
        ("SELECT a, COUNT(*) AS a FROM s GROUP BY a", 10, "two columns are called 'a'"),
        (
            "SELECT b, COUNT(*) AS n FROM s GROUP BY a",
            7,
            "what the query is grouped by",
        ),
        ("SELECT COUNT(*), AVGSPD(a) FROM s [ROWS 5]", 24, "AVGSPD is of a stream"),
        ("SELECT COUNT(*), SUM(a + ) FROM s", 25, "expected an expression"),
        ("SELECT QUANTILE(a, 1.5) FROM s", 19, "a share from 0 to 1"),
        ("SELECT QUANTILE(a) FROM s", 7, "a share from 0 to 1"),
        ("SELECT MEDIAN(*) FROM s", 14, "MEDIAN takes a number, not *"),
        ("SELECT MEDIAN(a, b) FROM s", 7, "MEDIAN takes one argument, not 2"),
        ("SELECT COUNT(*), LAST(*) FROM s", 22, "LAST takes a value, not *"),
        ("SELECT COLLECT(a, b) FROM s", 7, "COLLECT takes one argument, not 2"),
        (
            "SELECT a, COUNT(*) AS n FROM s GROUP BY a ORDER BY m LIMIT 3",
            51,
            "is selected",
        ),
        (
            "SELECT a, COLLECT(b) AS n FROM s GROUP BY a ORDER BY n LIMIT 3",
            53,
            "n is no number",
        ),
        (
            "SELECT a, COUNT(*) AS n FROM s GROUP BY a ORDER BY n LIMIT 0",
            59,
            "LIMIT is a whole number",
        ),
        (
            "SELECT a, COUNT(*) AS n FROM s GROUP BY a ORDER BY n LIMIT 3 PER a",
            65,
            "a second key",
        ),
        (
            "SELECT a, COUNT(*) AS n FROM s GROUP BY a, b ORDER BY n LIMIT 3 PER c",
            68,
            "a key of the groups",
        ),
        ("SELECT COUNT(*) AS n FROM s ORDER BY n LIMIT 3", 28, "needs a GROUP BY"),
        ("SELECT * FROM s ORDER BY x LIMIT 3", 16, "needs an aggregate"),
        (
            "SELECT a, LAST(b) AS l, COUNT(*) AS n FROM s GROUP BY a HAVING l > 1 ORDER BY n LIMIT 3",
            63,
            "l is no number, and HAVING beside LIMIT asks about numbers and keys",
        ),
        ("SELECT * FROM s HAVING a > 3", 23, "HAVING needs an aggregate"),
        ("SELECT COUNT(*) FROM s HAVING SUM(a) > 3", 30, "values that are selected"),
        ("SELECT COUNT(*) FROM s HAVING a > 3", 30, "a is no value and no key"),
        ("SELECT COUNT(*) FROM s HAVING COUNT(*) > 3 m", 41, "has no unit"),
        (
            "SELECT COUNT(*) FROM (SELECT COUNT(*) FROM s HAVING value > 2)",
            52,
            "exclude",
        ),
        ("SELECT * FROM (SELECT * FROM s) HAVING a > 2", 39, "needs an aggregate"),
        (
            "SELECT DISTINCT a FROM (SELECT * FROM s) HAVING a > 2",
            48,
            "needs values of groups",
        ),
    ],
)
def test_what_is_wrong_with_one_of_several_is_pointed_at(text, at, message):
    with pytest.raises(TextError) as caught:
        plan_of(text)
    (problem,) = caught.value.problems
    assert message in problem.message
    assert problem.column == len("REGISTER QUERY q AS ") + at + 1


def test_a_builder_points_into_the_value_that_is_wrong():
    with pytest.raises(QueryError, match="expected an aggregate"):
        query("s").aggregate(n="count(*)", m="mean(load)")
    with pytest.raises(QueryError, match="expected an aggregate"):
        query("s").aggregate("load + 1")


def test_groups_of_a_state_from_before_have_no_texts():
    groups = Groups(target=np.array([3, 7]), value=np.array([1.0, 2.0]))
    arrays = groups.to_arrays()
    assert arrays.pop("groups/text").tolist() == [-1, -1]
    again = Groups.from_arrays(arrays)
    assert again.text.tolist() == [-1, -1]
    assert pa.array(again.value).equals(pa.array(groups.value))
