"""Conditions on numbers at the ends of their types: engine, `verify` and arithmetic say the same (SPEC G9, X1)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.answers.answers import answer
from st_common.checks.verify import verify
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.engine.archive import Archive
from st_common.engine.local import LocalEngine
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.log_writer import bare_log

pytestmark = [pytest.mark.spec("G9"), pytest.mark.spec("X1")]

CONF = """
[streams.grid]
format = "csv"
crs = "planar"
time_unit = "s"
engine = "local"
max_ahead_s = "off"
attributes = { n = "long", m = "long", d = "double" }
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
"""
LEAST, GREATEST = -(2**63), 2**63 - 1
ENDS = (LEAST, LEAST + 1, -1, 0, 1, 2, GREATEST - 1, GREATEST)
FLOATS = (-1.7e308, -1.0, -0.0, 0.0, 5e-324, 0.5, 9.223372036854775e18, 1.7e308)

longs = st.one_of(
    st.sampled_from(ENDS), st.none(), st.integers(min_value=LEAST, max_value=GREATEST)
)
doubles = st.one_of(
    st.sampled_from((*FLOATS, "nan", "inf", "-inf")),
    st.none(),
    st.floats(allow_nan=False, allow_infinity=False),
)
rows = st.lists(st.tuples(longs, longs, doubles), min_size=1, max_size=12)


class OverflowingError(Exception):
    """An int64 does not hold the result: the whole condition has no value."""


@dataclass(frozen=True)
class Said:
    """An expression: its text, and what it is of a row (`n`, `m`, `d`); None is null."""

    text: str
    of: Callable[[dict], object]


def within(value: int) -> int:
    if not LEAST <= value <= GREATEST:
        raise OverflowingError
    return value


def both(function: Callable) -> Callable:
    """Null where one of two is null."""
    return lambda a, b: None if a is None or b is None else function(a, b)


OF_LONGS = {
    "+": both(lambda a, b: within(a + b)),
    "-": both(lambda a, b: within(a - b)),
    "*": both(lambda a, b: within(a * b)),
}
OF_DOUBLES = {
    "+": both(lambda a, b: a + b),
    "-": both(lambda a, b: a - b),
    "*": both(lambda a, b: a * b),
}


def ordered(value: float) -> tuple[bool, float]:
    """By what SQL compares: NaN is itself, and above all."""
    return (True, 0.0) if math.isnan(value) else (False, value)


COMPARE = {
    ">": both(lambda a, b: ordered(a) > ordered(b)),
    "<=": both(lambda a, b: ordered(a) <= ordered(b)),
    "=": both(lambda a, b: ordered(a) == ordered(b)),
    "<>": both(lambda a, b: ordered(a) != ordered(b)),
}


def column(name: str) -> Said:
    return Said(name, lambda row: row[name])


def constant(value: float) -> Said:
    return Said(repr(value), lambda _row: value)


def unary(of: Said, text: str, function: Callable) -> Said:
    def value(row: dict) -> object:
        found = of.of(row)
        return None if found is None else function(found)

    return Said(text.format(of.text), value)


def binary(one: Said, sign: str, other: Said, function: Callable) -> Said:
    text = f"({one.text} {sign} {other.text})"
    return Said(text, lambda row: function(one.of(row), other.of(row)))


def asks_columns(said: Said) -> bool:
    """What is of constants alone, and has no value, is refused when it is registered."""
    return any(name in said.text for name in "nmd")


# A literal at the least end is a sum that has none: SQL reads it as minus of what is too large.
long_constants = st.sampled_from([end for end in ENDS if end >= 0]).map(constant)
double_constants = st.sampled_from([1.5e308, 0.5, 2.0]).map(constant)


def long_expressions() -> st.SearchStrategy[Said]:
    leaves = st.one_of(st.sampled_from(["n", "m"]).map(column), long_constants)
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(
                lambda one, sign, other: binary(one, sign, other, OF_LONGS[sign]),
                inner,
                st.sampled_from(sorted(OF_LONGS)),
                inner,
            ).filter(asks_columns),
            inner.map(lambda one: unary(one, "(-{})", lambda value: within(-value))),
            inner.map(lambda one: unary(one, "abs({})", lambda one: within(abs(one)))),
        ),
        max_leaves=3,
    )


def double_expressions() -> st.SearchStrategy[Said]:
    leaves = st.one_of(st.just(column("d")), double_constants)
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(
                lambda one, sign, other: binary(one, sign, other, OF_DOUBLES[sign]),
                inner,
                st.sampled_from(sorted(OF_DOUBLES)),
                inner,
            ).filter(asks_columns),
            inner.map(lambda one: unary(one, "(-{})", lambda value: -value)),
        ),
        max_leaves=3,
    )


def compared(inner: st.SearchStrategy[Said]) -> st.SearchStrategy[Said]:
    made = st.builds(
        lambda one, sign, other: binary(one, sign, other, COMPARE[sign]),
        inner,
        st.sampled_from(sorted(COMPARE)),
        inner,
    )
    return made.filter(asks_columns)


def between(one: Said, low: Said, high: Said) -> Said:
    def value(row: dict) -> object:
        found = [each.of(row) for each in (low, one, high)]
        parts = [COMPARE["<="](found[0], found[1]), COMPARE["<="](found[1], found[2])]
        return False if False in parts else None if None in parts else True

    return Said(f"({one.text} BETWEEN {low.text} AND {high.text})", value)


def joined(one: Said, word: str, other: Said) -> Said:
    def value(row: dict) -> object:
        parts = [one.of(row), other.of(row)]
        decides = word == "OR"
        return decides if decides in parts else None if None in parts else not decides

    return Said(f"({one.text} {word} {other.text})", value)


def conditions() -> st.SearchStrategy[Said]:
    leaves = st.one_of(
        compared(long_expressions()),
        compared(double_expressions()),
        st.builds(
            between, long_expressions(), long_expressions(), long_expressions()
        ).filter(asks_columns),
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(joined, inner, st.sampled_from(["AND", "OR"]), inner),
            inner.map(lambda one: unary(one, "(NOT {})", lambda value: not value)),
        ),
        max_leaves=2,
    )


def holds(condition: Said, row: dict) -> bool:
    try:
        return condition.of(row) is True
    except OverflowingError:
        return False


def stored(home: Home, listed: list) -> list[dict]:
    """Puts rows into the log; what arrives of each, for NaN and infinities are no numbers of a feed."""
    lines, kept = ["id,t,x,y,n,m,d"], []
    for at, (n, m, d) in enumerate(listed):
        texts = ["" if value is None else str(value) for value in (n, m, d)]
        lines.append(f"o{at},1,1,1,{','.join(texts)}")
        kept.append({"n": n, "m": m, "d": None if isinstance(d, str) else d})
    bare_log(home.log("grid")).append("\n".join([*lines, ""]).encode(), arrival_us=1)
    return kept


@given(listed=rows, asked=st.lists(conditions(), min_size=1, max_size=6))
def test_engine_and_verify_say_what_arithmetic_says(listed, asked):
    with TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "conf").mkdir()
        (root / "conf" / "streams.toml").write_text(CONF)
        home, streams = Home(root), load_streams(root / "conf")
        text = ";\n".join(
            f"REGISTER QUERY q{at} AS SELECT * FROM grid WHERE {one.text}"
            for at, one in enumerate(asked)
        )
        register(home, streams, parse(text), owner="t", now_us=0)
        kept = stored(home, listed)
        engine = LocalEngine(home, streams["grid"])
        archive = Archive(home, streams["grid"])
        while engine.batch():
            pass
        engine.close()
        while archive.batch():
            pass
        for at, one in enumerate(asked):
            expected = {f"o{row}" for row, of in enumerate(kept) if holds(one, of)}
            told = set(answer(home, f"q{at}")["object"].to_pylist())
            assert told == expected, one.text
        wrong = [one for one in verify(home, streams["grid"]) if not one.holds]
        assert wrong == []
