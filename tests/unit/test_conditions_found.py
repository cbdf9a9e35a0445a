"""Conditions about expressions are found by ranges of their columns, and by values that are computed once."""

import math
from random import Random

import duckdb
import pytest

from bench.forms import cars
from bench.oldenburg import STREAM
from bench.ticks import Work, run
from st_common.operators.expressions.conditions import compile_conditions
from st_common.operators.expressions.loosened import loose_ranges
from st_common.operators.state.settings import Settings
from st_common.query.grammar.statements import expression_of, text_of
from st_common.query.text import parse

RANGES = {
    "ABS(load - 3) <= 2": {"load": (1, 5)},
    "2 * load + 1 > 7": {"load": (3, math.inf)},
    "7 > load / -2": {"load": (-14, math.inf)},
    "load - 1 BETWEEN 3 AND 5": {"load": (4, 6)},
    "FLOOR(load / 10) = 4": {"load": (30, 50)},
    "ABS(load - 3) < 9 + 17 / 2": {"load": (-14.5, 20.5)},
    "ABS(x - 5) + ABS(y - 8) < 2": {"x": (3, 7), "y": (6, 10)},
    "SQRT((x - 1) * (x - 1) + (y - 2) * (y - 2)) <= 5": {"x": (-4, 6), "y": (-3, 7)},
    "(x - 1) * (x - 2) < 4": {},  # no square
    "x * x + y < 4": {},  # y may be below 0
    "10 - load >= 3": {},  # also of what is no number, which is greater than all
    "ABS(load) > 1": {},
    "load * x > 7": {},
    "load * 0 > 1": {},
    "load / 0 > 1": {},
    "load > 3": {},  # it is simple itself
    "ABS(load) < -3": {},
    "kind = 'a'": {},
}


@pytest.mark.spec("X13")
@pytest.mark.parametrize("condition", RANGES)
def test_a_condition_says_in_which_ranges_columns_lie(condition: str):
    found = {name: ends for name, *ends in loose_ranges(condition)}
    assert {
        name: tuple(round(end, 5) for end in ends) for name, ends in found.items()
    } == RANGES[condition]


@pytest.mark.spec("X13", "P8")
def test_whoever_satisfies_a_condition_lies_in_its_ranges():
    rng, asked = Random(3), 0
    numbers = [*(rng.uniform(-20, 20) for _ in range(300)), math.nan, math.inf, 1e300]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (load DOUBLE, x DOUBLE, y DOUBLE)")
        rows = [[rng.choice(numbers) for _ in range(3)] for _ in range(2_000)]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        for _ in range(60):
            text = text_of(expression_of(_drawn(rng)))
            for column, low, high in loose_ranges(text):
                asked += 1
                outside = f"TRY({text}) AND NOT {column} BETWEEN {low!r} AND {high!r}"
                outside = outside.replace("-inf", "'-inf'::DOUBLE").replace(
                    " inf", " 'nan'::DOUBLE"
                )
                (count,) = connection.execute(
                    f"SELECT count(*) FROM t WHERE {outside}"
                ).fetchone()
                assert count == 0, text
    assert asked > 40


def _drawn(rng: Random) -> str:
    """A condition about arithmetic with one column or two."""

    def number() -> str:
        return repr(round(rng.uniform(-9, 9), rng.choice((0, 2, 9))))

    def part(column: str) -> str:
        for _ in range(rng.randint(1, 3)):
            column = rng.choice(
                (
                    f"({column} + {number()})",
                    f"({number()} - {column})",
                    f"({column} * {number()})",
                    f"({column} / {number()})",
                    f"abs({column})",
                    f"floor({column})",
                    f"(-{column})",
                )
            )
        return column

    whole = (
        part("load") if rng.random() < 0.6 else f"abs({part('x')}) + abs({part('y')})"
    )
    return f"{whole} {rng.choice(('<', '<=', '>', '>=', '='))} {number()}"


def found_so(texts):
    """The conditions of queries that nothing else can find."""
    return compile_conditions(texts, frozenset(texts))


@pytest.mark.spec("X13")
def test_what_many_compare_is_a_column_and_what_few_do_is_not():
    texts = [f"UPPER(kind) = 'K{n}'" for n in range(8)]
    many, few = found_so(texts), found_so(texts[:7])
    assert (many.columns, many.computed) == (("UPPER(kind)",), {0})
    assert many.simple.all()
    assert not few.columns
    begin = found_so([f"kind LIKE 'it''s {n}%'" for n in range(8)])
    assert begin.columns == ("LEFT(kind, 6)",)
    assert found_so([f"kind LIKE '{n}_%'" for n in range(8)]).columns == ()
    beside = found_so([f"{text} AND load > 3" for text in texts])
    assert beside.columns == ("load",)  # which finds them, too
    assert compile_conditions(texts).columns == ()  # regions find them


@pytest.mark.spec("X13", "P8")
@pytest.mark.parametrize(
    "where",
    [
        "abs(x - {x}) + abs(y - {y}) < 1000",
        "abs(load - {n}) < 0.5",
        "upper(class) = 'C{n}'",
        "class LIKE 'c{n}%'",
        "load < {n} / 1e3 OR class = 'c{n}'",
        "grid_cell(1000) = '{n}:{n}'",
    ],
)
def test_queries_look_at_the_fixes_that_may_qualify(where: str):
    """Of 200 queries with such a condition and no region most fixes are looked at by few."""
    texts = [
        where.format(n=n, x=n * 7919 % 100_000, y=n * 104_729 % 100_000)
        for n in range(200)
    ]
    plans = [
        parse(f"REGISTER QUERY q AS SELECT * FROM {STREAM} WHERE {text}")[0].plan
        for text in texts
    ]
    work = Work(
        plans=plans, batches=list(cars(500, 2)), settings=Settings(), layer=None
    )
    _, _, counters = run(work)
    assert counters.matched < 200 * 1_000 / 10
