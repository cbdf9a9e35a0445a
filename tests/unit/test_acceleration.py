"""`acceleration_mps2` of a fix: the change of its speed since the reading before, by the time since then (SPEC X12)."""

import json

import numpy as np
import pytest

from st_common.operators.state.fixes import FILLERS, LastFixes
from st_common.operators.state.state import fixes_from_arrays
from st_common.query.lengths import in_coordinates
from st_common.query.text import TextError, parse
from tests.kit.by_hand import end, fix, gone, log, register
from tests.kit.laws import run_steps
from tests.kit.oracle_rows import Rules
from tests.kit.roads import plan_of
from tests.kit.strategies import Case, Segmentation

HOW = [
    {},
    {"cuts": (2,)},
    {"cuts": (2, 3, 4, 5, 6, 7)},
    {"cuts": (3, 5), "shards": 3, "restarts": frozenset({0, 1})},
]


def told(rows, *, cuts=(), silence_us=None, **how):
    rules = Rules(tick_us=1_000_000, silence_us=silence_us)
    case = Case(rows=tuple(log(*rows)), layers={}, rules=rules)
    changes, _, _ = run_steps(case, Segmentation(cuts=tuple(cuts), batches=()), **how)
    return [
        f"{row['event_ts'].timestamp():g} {'-=+'[row['sign'] + 1]}{row['object']} "
        f"{json.loads(row['fields'] or '{}').get('a', '')}"
        for row in changes.to_pylist()
    ]


SHOWN = "SELECT acceleration_mps2 AS a FROM s EMIT EVERY"


@pytest.mark.spec("X12")
@pytest.mark.parametrize("how", HOW)
def test_it_is_the_change_of_speed_by_the_time_since_the_reading_before(how):
    rows = [
        register("q", plan_of(SHOWN)),
        fix("a", 1, 0, 0),
        fix("a", 2, 3, 4),
        fix("b", 2, 9, 9),
        fix("a", 6, 3, 32),
        fix("a", 8, 3, 32),
        end(),
    ]
    assert told(rows, **how) == [
        "1 +a None",
        "2 =a None",
        "2 +b None",
        "6 =a 0.5",
        "8 =a -3.5",
    ]


@pytest.mark.spec("X12")
@pytest.mark.parametrize("how", HOW)
def test_who_was_gone_begins_anew(how):
    rows = [
        register("q", plan_of(SHOWN)),
        fix("a", 1, 0, 0),
        fix("a", 2, 1, 0),
        fix("a", 3, 3, 0),
        gone("a", 4),
        fix("a", 5, 0, 0),
        fix("a", 6, 4, 0),
        fix("a", 7, 9, 0),
        end(),
    ]
    assert told(rows, **how) == [
        "1 +a None",
        "2 =a None",
        "3 =a 1.0",
        "4 -a None",
        "5 +a None",
        "6 =a None",
        "7 =a 1.0",
    ]


@pytest.mark.spec("X12")
@pytest.mark.parametrize("how", HOW)
def test_who_was_silent_begins_anew(how):
    rows = [
        register("q", plan_of(SHOWN)),
        fix("a", 1, 0, 0),
        fix("a", 2, 1, 0),
        fix("b", 20, 0, 0),
        fix("a", 21, 2, 0),
        fix("a", 22, 9, 0),
        fix("a", 23, 9, 0),
        end(),
    ]
    shown = told(rows, silence_us=5_000_000, **how)
    assert [row for row in shown if "a" in row.split()[1]] == [
        "1 +a None",
        "2 =a None",
        "7 -a None",
        "21 +a None",
        "22 =a None",
        "23 =a -7.0",
    ]


@pytest.mark.spec("X12")
@pytest.mark.parametrize("how", HOW)
def test_neighbours_are_chosen_by_it_at_ticks(how):
    rows = [
        register(
            "q", plan_of("SELECT * FROM s WHERE acceleration_mps2 > 1 KNN (1, 0, 0)")
        ),
        *(fix(name, ts, x, 0) for ts, x, name in BRAKING),
        end(),
    ]
    assert told(rows, **how) == ["3 +b ", "4 +a ", "4 -b "]


BRAKING = [
    (1, 0, "a"),
    (1, 0, "b"),
    (2, 1, "a"),
    (2, 1, "b"),
    (3, 2, "a"),
    (3, 4, "b"),
    (4, 6, "a"),
    (4, 4, "b"),
]


def test_a_state_of_before_there_was_one_is_read():
    known = LastFixes(
        ts=np.array([5]),
        x=np.array([1.0]),
        y=np.array([2.0]),
        status=np.array([1], np.int8),
        before_ts=np.array([4]),
        before_x=np.array([0.0]),
        before_y=np.array([2.0]),
        earlier_ts=np.array([3]),
        earlier_x=np.array([0.0]),
        earlier_y=np.array([0.0]),
        seen_ts=np.array([5]),
    ).to_arrays()
    assert fixes_from_arrays(known).earlier_ts.tolist() == [3]
    old = {name: column for name, column in known.items() if "earlier" not in name}
    read = fixes_from_arrays(old)
    assert read.earlier_ts.tolist() == [FILLERS["earlier_ts"]]
    assert np.isnan([read.earlier_x, read.earlier_y]).all()
    assert read.earlier_ts.dtype == np.int64
    assert (read.before_ts.tolist(), read.before_x.tolist()) == ([4], [0.0])


def test_it_is_metres_where_coordinates_are_feet():
    feet = in_coordinates(
        plan_of("SELECT * FROM s WHERE acceleration_mps2 < -3"), 0.3048
    )
    assert feet.where == "(acceleration_mps2 * 0.3048) < -3"


def test_a_unit_of_another_kind_is_refused():
    text = "REGISTER QUERY q AS SELECT * FROM s WHERE acceleration_mps2 < -3 km/h"
    with pytest.raises(TextError, match="a number with a unit beside acceleration"):
        parse(text)
