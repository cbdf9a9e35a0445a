"""Conditions that need no database say what DuckDB says, wherever they stand, and cost what qualifies."""

import math
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.forms import cars
from bench.ticks import Work, packets_of
from st_common.operators.expressions import evaluation as expressions
from st_common.operators.expressions.simple import parts_of
from st_common.operators.runtime.stages import step
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.query.neighbours import GroupNearest, Nearest, Place
from st_common.query.plan import PairJoin, Plan
from st_common.regions.registry import Box, MovingCircle
from tests.kit.asked_by import WAYS, asked_by
from tests.kit.effort import tries

SPACE = Box(minx=-1.0, miny=-1.0, maxx=1e6, maxy=1e6)
AROUND = MovingCircle(focal="o1", radius_m=3.0)
PLACES = (Place(x=1.0, y=0.0), Place(focal="o2"))
TEXTS = ("taxi", "bus", "it's", "", "Taxi", "5")
SIGNS = st.sampled_from(("=", "<", ">", "<=", ">="))
NUMBERS = st.sampled_from(
    (
        "0",
        "5",
        "-2",
        "2.5",
        "0.1",
        "1e6",
        "3 + 17 / 1e6",
        "0.1 + 0.2",
        "1 / 3",
        "-(2 - 4)",
        "9007199254740993",
        "1152921504606846976",
        "0.30000000000000004",
        "1 / 0",
        "-0",
    )
)
COLUMNS = st.sampled_from(
    ("load", "seats", "x", "LOAD", '"load"', "elapsed_s", "speed_mps")
)


@st.composite
def atoms(draw):
    column, number, other, sign = (
        draw(COLUMNS),
        draw(NUMBERS),
        draw(NUMBERS),
        draw(SIGNS),
    )
    texts = [
        draw(st.sampled_from(("kind", "object"))),
        *(
            "'" + text.replace("'", "''") + "'"
            for text in draw(
                st.lists(st.sampled_from((*TEXTS, "o1", "o2")), min_size=1, max_size=3)
            )
        ),
    ]
    return draw(
        st.sampled_from(
            (
                f"{column} {sign} {number}",
                f"{number} {sign} {column}",
                f"{column} BETWEEN {number} AND {other}",
                f"{texts[0]} = {texts[1]}",
                f"{texts[0]} IN ({', '.join(texts[1:])})",
            )
        )
    )


@st.composite
def conditions(draw):
    parts = draw(st.lists(atoms(), min_size=1, max_size=3))
    parts = [f"({part})" if draw(st.booleans()) else part for part in parts]
    return " AND ".join(parts)


LOADS = st.sampled_from(
    (
        None,
        0.0,
        -0.0,
        5.0,
        2.5,
        0.1,
        0.1 + 0.2,
        1 / 3,
        math.nan,
        math.inf,
        -math.inf,
        -2.0,
        3 + 17 / 1e6,
    )
)
SEATS = st.sampled_from(
    (
        None,
        0,
        5,
        -2,
        2,
        1_000_000,
        9007199254740992,
        9007199254740993,
        1152921504606846976,
    )
)
KINDS = st.sampled_from((None, *TEXTS))


@st.composite
def fixes(draw):
    count = draw(st.integers(1, 12))
    columns = [
        draw(st.lists(of, min_size=count, max_size=count))
        for of in (LOADS, SEATS, KINDS)
    ]
    names = pa.array([f"o{n % 4}" for n in range(count)]).dictionary_encode()
    return pa.table(
        {
            "row": pa.array(range(count), pa.int32()),
            "object": names,
            "event_ts": np.arange(count) * 1_000_000 + 1_000_000,
            "x": np.arange(count) % 7.0,
            "y": np.zeros(count),
            "gone": np.zeros(count, bool),
            "load": pa.array(columns[0], pa.float64(), from_pandas=False),
            "seats": pa.array(columns[1], pa.int64()),
            "kind": pa.array(columns[2], pa.string()),
        }
    )


def told(work):
    """The rows of changes by query, and the state after them."""
    state, rows = State(), {}
    for packets in packets_of(work):
        done = step(state, packets, work.settings, lambda *_: None)
        for row in done.changes.to_pylist():
            rows.setdefault(row["query"], []).append(
                (row["object"], row["partner"], row["event_ts"], row["sign"])
            )
        state = done.state
    return [
        sorted(rows.get(f"q{number}", []), key=repr)
        for number in range(len(work.plans))
    ]


FORMS = (
    lambda where: Plan(stream="load", where=where),
    lambda where: Plan(stream="load", where=where, inside=SPACE),
    lambda where: Plan(stream="load", where=where, inside=SPACE, order="select_first"),
    lambda where: Plan(stream="load", where=where, inside=AROUND),
    lambda where: Plan(
        stream="load",
        where=where,
        neighbours=Nearest(k=2, place=Place(x=1.0, y=0.0)),
    ),
    lambda where: Plan(
        stream="load",
        where=where,
        neighbours=Nearest(k=2, place=Place(focal="o1")),
        inside=SPACE,
    ),
    lambda where: Plan(
        stream="load",
        where=where,
        neighbours=GroupNearest(k=2, total="sum", places=PLACES),
    ),
    lambda where: Plan(stream="load", where=where, pairs=PairJoin(distance_m=2.0)),
    lambda where: Plan(
        stream="load", where=where, pairs=PairJoin(distance_m=2.0), inside=AROUND
    ),
)


@pytest.mark.spec("X13", "P8", "G10")
@tries(60)
@given(st.lists(conditions(), min_size=1, max_size=4), fixes())
def test_a_condition_that_needs_no_database_holds_where_duckdb_says(texts, table):
    plain = [form(text) for text in texts for form in FORMS]
    by_database = [form(f"({text}) AND NOT false") for text in texts for form in FORMS]
    with patch.object(expressions, "evaluated", wraps=expressions.evaluated) as asked:
        found = told(
            Work(plans=[*plain, *by_database], batches=[table], settings=Settings())
        )
    assert any(
        "NOT FALSE" in text.upper()
        for call in asked.call_args_list
        for text in call.args[0]
    )
    assert found[: len(plain)] == found[len(plain) :]


RESTS = (
    "abs(load - {}) > 1",
    "kind LIKE '%{}%'",
    "seats % {} = 1",
    "seats / {} < load",
    "CAST(kind AS INT) > {}",
    "load IN ({}, 2.5)",
    "(load > {} OR free)",
)


@pytest.mark.spec("X13", "P8", "G10")
@tries(15)
@given(conditions(), st.sampled_from(RESTS), fixes())
def test_whichever_way_the_database_is_asked_it_says_the_same(simple, rest, table):
    texts = [
        join.format(simple, rest.format(number))
        for number in range(2)
        for join in ("{0} AND {1}", "{1} AND ({0} AND free)", "{1}")
    ]
    free = [
        None if number % 5 == 0 else number % 2 == 0 for number in range(len(table))
    ]
    table = table.append_column("free", pa.array(free, pa.bool_()))
    plans = [form(text) for text in texts for form in FORMS]
    work = Work(plans=plans, batches=[table], settings=Settings())
    found = []
    for way in WAYS:
        with asked_by(way):
            found.append(told(work))
    assert found[0] == found[1] == found[2]


def bytes_asked(monkeypatch, plans, rounds):
    """How many conditions the database was asked, and how many pairs were found before conditions were tested."""
    asked, matched, state = [], 0, State()
    inner = expressions.evaluated
    monkeypatch.setattr(
        expressions,
        "evaluated",
        lambda texts, *more, **given: (
            asked.extend(texts) or inner(texts, *more, **given)
        ),
    )
    for packets in packets_of(Work(plans=plans, batches=rounds, settings=Settings())):
        done = step(state, packets, Settings(), lambda *_: None)
        state, matched = done.state, matched + done.counters.matched
    return len(asked), matched


@pytest.mark.spec("X13")
def test_conditions_of_many_queries_cost_what_qualifies(monkeypatch):
    rounds, count = list(cars(500, 2)), 400
    for where in (
        [f"object = 'o{number}'" for number in range(count)],
        [f"x BETWEEN {number} * 10 AND {number} * 10 + 20" for number in range(count)],
        [
            f"kind = 'taxi' AND object IN ('o{number}', 'o{number + 1}')"
            for number in range(count)
        ],
    ):
        asked, matched = bytes_asked(
            monkeypatch, [Plan(stream="load", where=text) for text in where], rounds
        )
        assert asked == 0
        assert matched < 10 * count


@pytest.mark.spec("X13")
def test_a_condition_that_is_simple_by_half_is_found_by_that_half(monkeypatch):
    rounds, count = list(cars(500, 2)), 400
    where = [
        f"object = 'o{number}' AND abs(load - {number % 9}) > {number % 7}"
        for number in range(count)
    ]
    plans = [Plan(stream="load", where=text) for text in where]
    alone = [Plan(stream="load", where="object = 'o7' AND power(load, 2) > 9")]
    assert bytes_asked(monkeypatch, plans, rounds) == (0, 2 * count)
    _, matched = bytes_asked(monkeypatch, plans + alone, rounds)
    assert matched == 2 * (count + 1)  # of that one the database says it of all fixes


@pytest.mark.spec("X13")
@pytest.mark.parametrize(
    ("condition", "rest"),
    [
        ("x > 5", ""),
        ("x > 5 AND ABS(y - 3) > 1", "ABS(y - 3) > 1"),
        ("ABS(y - 3) > 1 AND x > 5 AND free", "ABS(y - 3) > 1 AND free"),
        ("x > 5 AND (ABS(y) > 1 OR free)", "(ABS(y) > 1 OR free)"),
        ("x > 5 AND ABS(y) > 1 OR free", None),
        ("x + 1 BETWEEN 1 AND 2 AND kind = 'a AND b'", "x + 1 BETWEEN 1 AND 2"),
        ("x BETWEEN 1 AND 2 AND y + 1 BETWEEN 3 AND 4", "y + 1 BETWEEN 3 AND 4"),
        (
            'CASE WHEN x > 1 AND free THEN 1 ELSE 2 END = 1 AND "A AND B" = 1',
            "CASE WHEN x > 1 AND free THEN 1 ELSE 2 END = 1",
        ),
        ("NOT free AND x > 5", "NOT free"),
        ("NOT (x > 5 AND free)", None),
        ("free AND seats % 2 = 1", None),
    ],
)
def test_a_condition_is_parted_into_what_is_simple_and_the_rest(condition, rest):
    parts = parts_of(condition)
    assert " AND ".join(parts.rest) == (condition if rest is None else rest)
    assert any(not atom.loose for atom in parts.atoms) == (rest is not None)
