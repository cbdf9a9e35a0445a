"""Conditions about expressions are found by ranges of their columns, and by values that are computed once."""

import math
from random import Random

import duckdb
import pyarrow as pa
import pytest

from bench.forms import cars
from bench.oldenburg import STREAM
from bench.ticks import Work, run
from st_common.operators.expressions.conditions import compile_conditions
from st_common.operators.expressions.differences import difference_atom
from st_common.operators.expressions.grams import find_parts, gram_atom
from st_common.operators.expressions.loosened import loose_expressions, loose_ranges
from st_common.operators.expressions.negated import negated
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


DIFFERENCES = {
    "load > x + 3": 3,
    "x + 3 <= load - 2": 5,
    "load - 2 < x": -2,
    "2 * load > ABS(x) + y - 1": -1,
    "load > x": None,  # all who ask so ask the same
    "load = x + 3": 3,
    "load - x = 1 / 4": 0.25,
    "load = x": None,
    "load = 3": None,
    "load = CAST(x AS FLOAT) + 3": None,  # rounded by more than is looked for
    "load = x + 1e12": None,  # nor is it told so exactly
    "load > 3": None,
    "load > x + 2 * 3 - 1 / 4": 5.75,
    "load > x + 1 / 0": None,
    "load > x || 'a'": None,
}


@pytest.mark.spec("X13")
@pytest.mark.parametrize("condition", DIFFERENCES)
def test_a_comparison_of_columns_says_how_far_apart_they_are(condition: str):
    atom = difference_atom(condition)
    least = DIFFERENCES[condition]
    assert (atom is None) == (least is None)
    assert atom is None or float(atom.low) == pytest.approx(least, abs=2e-4)
    assert atom is None or atom.or_unknown == (" = " in condition)


NEGATED = {
    "NOT (load > 3 OR kind = 'bus')": "load <= 3",
    "NOT load BETWEEN 3 AND 5": "(load < 3 OR load > 5)",
    "NOT (load < 3 AND x > 2)": "(load >= 3 OR x <= 2)",
    "NOT (NOT load > 3)": "load > 3",
    "NOT UPPER(kind) <> 'A'": "UPPER(kind) = 'A'",
    "NOT (\"900001\" > 3 OR kind <> '900001')": "(\"900001\" <= 3 AND kind = '900001')",
    "NOT (load < 3 AND kind LIKE 'a%')": None,
    "NOT kind = 'bus'": None,
    "NOT load IS NULL": None,
    "load > 3": None,
}


@pytest.mark.spec("X13")
@pytest.mark.parametrize("condition", NEGATED)
def test_what_not_leaves_of_columns_is_known(condition: str):
    assert negated(condition) == NEGATED[condition]


HOSTILE = (0.0, -0.0, 3.0, 1e17, -1e17, 1e300, math.nan, math.inf, -math.inf, None)


@pytest.mark.spec("X13", "P8")
def test_whoever_satisfies_a_comparison_or_a_not_is_found_by_what_is_known_of_it():
    rng, asked = Random(4), 0
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (load DOUBLE, x DOUBLE, y BIGINT)")
        rows = [
            [
                rng.choice((*HOSTILE, rng.uniform(-9, 9))),
                rng.choice((*HOSTILE, rng.uniform(-9, 9))),
                rng.choice((None, 0, 4, 2**62, -(2**63), rng.randint(-9, 9))),
            ]
            for _ in range(3_000)
        ]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        for _ in range(80):
            text = text_of(expression_of(_about_columns(rng)))
            known = _known_of(text)
            asked += known is not None
            if known is not None:
                lost = f"TRY({text}) AND TRY({known}) IS NOT TRUE"
                found = connection.execute(f"SELECT * FROM t WHERE {lost} LIMIT 1")
                assert found.fetchone() is None, text
    assert asked > 60


def _known_of(text: str) -> str | None:
    """What must hold where a condition does, as SQL."""
    atom = difference_atom(text)
    if atom is None:
        return negated(text)
    if atom.or_unknown:
        return f"coalesce({atom.column} BETWEEN {atom.low} AND {atom.high}, true)"
    return f"{atom.column} >= {atom.low}"


def _about_columns(rng: Random) -> str:
    """A comparison of two columns and a number, or NOT of comparisons."""
    sign, other = (rng.choice(("<", "<=", ">", ">=")) for _ in range(2))
    one, two = rng.sample(("load", "x", "y"), 2)
    number = round(rng.uniform(-9, 9), rng.choice((0, 2)))
    return rng.choice(
        (
            f"{one} {sign} {two} + {number}",
            f"{number} - {one} {sign} abs({two}) * 2",
            f"{one} - {number} {sign} {two} + 3",
            f"{one} - {number} = {two} + 3",
            f"{one} = {two} * 2 + {number} / 4",
            f"{one} {sign} {two} - 3 * {number} + 1 / 8",
            f"NOT ({one} {sign} {number} AND {two} {other} 2)",
            f"NOT ({one} {sign} {number} OR {two} IS NULL)",
            f"NOT {one} BETWEEN {number} AND 7",
        )
    )


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


@pytest.mark.spec("X13", "P8")
def test_whoever_matches_a_pattern_has_a_part_of_it():
    rng, asked = Random(5), 0
    letters = (
        "abAB%_'é" + "\u212a\u0130ßk"
    )  # of which some are other letters in lower case
    texts = [None, "", "x" * 300 + "ab"]
    texts += ["".join(rng.choices(letters, k=rng.randint(0, 7))) for _ in range(400)]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (n INTEGER, kind VARCHAR)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate(texts)))
        for _ in range(300):
            pattern = "".join(rng.choices(letters + "%%__", k=rng.randint(0, 7)))
            word = rng.choice(("LIKE", "ILIKE"))
            text = text_of(expression_of(f"kind {word} {quoted_text(pattern)}"))
            atom = gram_atom(text)
            if atom is None:
                continue
            asked += 1
            rows = connection.execute(f"SELECT n FROM t WHERE {text}").fetchall()
            values = connection.execute(f"SELECT {atom.column} FROM t ORDER BY n")
            values = pa.array([value for (value,) in values.fetchall()], pa.string())
            for part in atom.texts:
                found, _ = find_parts(values, pa.array([part]))
                assert {n for (n,) in rows} <= set(found.tolist()), text
    assert asked > 150


def quoted_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def test_texts_are_cut_into_parts():
    values = pa.array(["abcab", None, "abc", "", "cab"])
    point, part = find_parts(values, pa.array(["abc", "cab", "b", "zz"]))
    assert list(zip(point.tolist(), part.tolist(), strict=True)) == [
        (0, 0),
        (0, 1),
        (0, 2),
        (2, 0),
        (2, 2),
        (4, 1),
        (4, 2),
    ]


EXPRESSIONS = {
    "ABS(load * x - 7) < 2": {"load * x": (5, 9)},
    "2 * HASH(kind) + 1 > 7": {"HASH(kind)": (3, math.inf)},
    "ABS(load * 2 * x) < 2": {"load * 2 * x": (-2, 2)},
    "ABS(load - 7) < 2": {},  # a range of the column
    "load * x > 3": {},  # a comparison of the expression itself
}


@pytest.mark.spec("X13")
@pytest.mark.parametrize("condition", EXPRESSIONS)
def test_a_condition_says_in_which_range_an_expression_lies(condition: str):
    found = {text: ends for text, *ends in loose_expressions(condition)}
    assert {
        text: tuple(round(end, 5) for end in ends) for text, ends in found.items()
    } == EXPRESSIONS[condition]


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
    end = found_so([f"kind LIKE '%{n}s'" for n in range(8)])
    assert end.columns == ("RIGHT(kind, 2)",)
    apart = found_so([f"load > x + {n}" for n in range(8)])
    assert (len(apart.columns), apart.computed) == (1, {0})
    assert apart.half.all()
    assert all(apart.loose)
    inside = found_so([f"kind LIKE '%{n}_%'" for n in range(8)])
    assert (inside.columns, inside.parts) == (("kind",), {0})
    assert found_so(["kind LIKE '%__%'"] * 8).columns == ()
    equal = found_so([f"load = x + {n}" for n in range(8)])
    assert (len(equal.columns), all(equal.or_unknown)) == (1, True)
    inner = found_so([f"ABS(load * x - {n}) < 2" for n in range(8)])
    assert inner.columns == ("load * x",)
    either = found_so([f"(ABS(load * x - {n}) < 2 OR y > {n})" for n in range(8)])
    assert set(either.columns) == {"load * x", "y"}
    turned = found_so([f"NOT load >= x + {n}" for n in range(8)])
    assert (len(turned.columns), all(turned.loose)) == (1, True)
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
        "class LIKE '%z{n}'",
        "class LIKE '%z{n}%'",
        "class ILIKE '_%Z{n}'",
        "class LIKE '%z{n}%' OR load < {n} / 1e3",
        "y = x + {n}",
        "NOT y <> x + {n}",
        "x > y + 33000 * 3 - {n}",
        "abs(x * y - {n} * 5e7) < 1e6",
        "x > y + 99000 - {n}",
        "NOT (load >= {n} / 1e3 OR class IS NULL)",
        "NOT load BETWEEN {n} / 1e3 AND 1e6",
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
