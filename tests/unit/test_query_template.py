"""Statements of one shape are parsed once: the law is that nothing shows it, neither in plans nor in errors."""

import threading
from dataclasses import fields
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.query import text as texts
from st_common.query.grammar import reading
from st_common.query.grammar import statements as reader
from st_common.query.pieces import CutError, literals_of, pattern_of
from st_common.query.problem import TextError
from st_common.query.text import parse
from tests.kit.effort import tries

NUMBERS = st.one_of(
    st.integers(0, 200).map(str),
    st.floats(0, 1e6, allow_nan=False).map(lambda value: f"{value:.6f}"),
    st.sampled_from(
        (
            "0",
            "007",
            "180",
            "1.",
            ".5",
            "-3",
            "+4",
            "1e3",
            "1e400",
            "1_0",
            "0x1F",
            "5m",
            "--2\n1",
            "'1'",
            "x",
            "12345678901234567",
            "/* 1 */ 2",
            "1 2",
            "(1)",
            "-0",
            "9182736450",
        )
    ),
)
STRINGS = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6).map(
        lambda value: "'" + value.replace("'", "''") + "'"
    ),
    st.sampled_from(
        (
            "'M'",
            "'m'",
            "'car7'",
            "''",
            "'it''s'",
            "'a;b'",
            "'--'",
            "N'a'",
            '"a"',
            "7",
            "'POINT (1 2)'",
            "'POLYGON ((0 0, 1 0, 1 1, 0 0))'",
            "'POLYGON ((0 0, 9 0, 9 9, 0 0))'",
            "E'a\\'b'",
            "'\\'",
        )
    ),
)
NAMES = st.one_of(
    st.integers(0, 99).map("q{}".format),
    st.sampled_from(
        (
            '"a b"',
            '" a"',
            '""',
            '"a""b"',
            "select",
            "SHOW",
            "inside1",
            "GROUP",
            "_",
            "é",
            "q-1",
            "home",
            "9a",
        )
    ),
)
UNITS = st.sampled_from(("m", "km", "s", "min", "", "parsec"))
SHAPES = (
    "REGISTER QUERY {name} AS SELECT * FROM cars INSIDE ({n}, {n}, {n}, {n})",
    "register query {name} as select * from cars inside ({n}, {n}, {n}, {n}) crossing 180",
    "REGISTER QUERY {name} AS SELECT * FROM cars INSIDE ({n}, -{n}, -{n}, {n})",
    "REGISTER QUERY {name} AS SELECT * FROM cars INSIDE CIRCLE ({n}, {n}, {n} {u})",
    "REGISTER QUERY {name} AS SELECT * FROM cars INSIDE ({s}, {s}, {n} {u})",
    "REGISTER QUERY {name} AS SELECT * FROM cars INSIDE ('M', {s}, {n}, {n})",
    "REPLACE QUERY {name} AS SELECT * FROM cars INSIDE {s}",
    "REGISTER QUERY {name} AS SELECT * FROM cars INSIDE {name}",
    "REGISTER QUERY {name} AS SELECT * FROM cars INSIDE home WHERE speed > {n}",
    "REGISTER QUERY {name} AS SELECT * FROM cars INSIDE FEATURE (districts, {s})",
    "REGISTER QUERY {name} AS SELECT * FROM cars KNN ({n}, {n}, {n})",
    "REGISTER QUERY {name} AS SELECT * FROM cars GROUP KNN ({n}, SUM, ({n}, {n}), ('M', {s}))",
    "REGISTER QUERY {name} AS SELECT * FROM cars WHERE kind = {s} AND speed > {n} INSIDE ({n}, {n}, {n}, {n})",
    "REGISTER QUERY {name} AS SELECT x, speed + {n} AS more FROM cars c WHERE c.speed >= -{n} OR kind IN ({s}, {s})",
    "REGISTER QUERY {name} AS SELECT * FROM cars WHERE speed BETWEEN {n} AND {n} {u} AND kind LIKE {s}",
    "REGISTER QUERY {name} AS SELECT * FROM cars WHERE speed_mps > {n} {u}",
    "REGISTER QUERY {name} AS SELECT COUNT(*) FROM cars WHERE round(x, {n}) > {n} GROUP BY kind",
    "REGISTER QUERY {name} AS SELECT * FROM cars [RANGE {n} {u}] INSIDE home",
    "REGISTER QUERY {name} AS SELECT * FROM cars INSIDE ({n}, {n}, {n}, {n}) WINDOW {n} {u}",
    "REGISTER QUERY {name} AS SELECT * FROM cars USING enlarge({n} {u}), key({s})",
    "REGISTER QUERY {name} AS SELECT * FROM cars JOIN roads ON ST_DWithin(cars, roads, {n} {u}) WHERE roads.kind = {s}",
    "REGISTER QUERY {name} AS SELECT * FROM cars JOIN roads ON cars.kind = roads.kind WHERE cars.kind = {s}",
    "CREATE AREA {name} AS ({n}, {n}, {n}, {n})",
    "CREATE AREA home AS CIRCLE ({n}, {n}, {n} {u})",
    "DROP AREA home",
    "DROP QUERY {name}",
    "SHOW QUERIES",
    "EXPLAIN SELECT * FROM cars INSIDE ({n}, {n}, {n}, {n})",
    "",
    "{s}",
    "REGISTER QUERY {name} AS SELECT * FROM cars INSIDE ({n}, {n}, {n}",
    "REGISTER QUERY {name} AS\n  SELECT *\n  FROM cars\tWHERE kind = {s} -- {s}\n",
)
GAPS = st.sampled_from(
    (";", ";\n", " ;\r\n  ", ";-- a; b\n", "; /* 'x;' */ ", "\n;\n;\n", ";\u00a0")
)


@st.composite
def filled(draw, shape):
    """A statement of a shape."""
    text = ""
    for part in shape.split("{"):
        slot, brace, rest = part.partition("}")
        value = (
            {"n": NUMBERS, "s": STRINGS, "name": NAMES, "u": UNITS}[slot]
            if brace
            else None
        )
        text += draw(value) + rest if value is not None else part
    return text


@st.composite
def statements(draw):
    """Texts in which a few shapes come again and again, with other names and literals each time."""
    shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3))
    text = draw(st.sampled_from(("", "\n", "-- of; mine\n", "  ")))
    for _ in range(draw(st.integers(1, 8))):
        text += draw(filled(draw(st.sampled_from(shapes)))) + draw(GAPS)
    return text[: draw(st.sampled_from((None, None, None, -1, -3)))]


def _seen(text):
    try:
        found, problems = parse(text, file="f.sql"), []
    except TextError as error:
        found, problems = error.understood, error.problems
    said = [
        {field.name: getattr(one, field.name) for field in fields(one)} for one in found
    ]
    return [{**one, "spans": dict(one["spans"])} for one in said], list(problems)


@pytest.mark.spec("P8", "S4")
@tries(400)
@given(statements())
def test_a_statement_says_what_it_says_when_it_is_parsed_alone(text):
    with patch.object(texts, "cut", side_effect=CutError):
        plain = _seen(text)
    assert _seen(text) == plain


@pytest.mark.spec("S4")
@tries(400)
@given(st.data())
def test_what_has_the_pattern_of_a_statement_has_its_literals_where_they_are_looked_for(
    data,
):
    shape = data.draw(st.sampled_from(SHAPES))
    first, other = (data.draw(filled(shape)) for _ in range(2))
    kinds, literals, between = literals_of(first)
    other_kinds, others, _ = literals_of(other)
    varying = data.draw(st.sets(st.integers(0, len(literals))))
    found = pattern_of(literals, between, varying).fullmatch(other)
    if kinds == other_kinds and all(
        one == others[n] for n, one in enumerate(literals) if n not in varying
    ):
        assert found is not None
        assert list(found.groups()) == others
    else:
        assert found is None


@pytest.mark.spec("S4")
def test_statements_of_one_shape_are_parsed_twice_however_many_there_are():
    shape = "REGISTER QUERY q{0} AS SELECT * FROM cars WHERE kind = 'k{0}' INSIDE ({0}, 1.5, {0}.5, 7);\n"
    text = "".join(shape.format(n) for n in range(1, 200))
    real, calls = reading.tree_of, []

    def counted(*given):
        calls.append(given)
        return real(*given)

    def parsed():
        with (
            patch.object(reader, "tree_of", counted),
            patch.object(texts, "tree_of", counted),
        ):
            found.extend(parse(text))

    found = []
    thread = threading.Thread(target=parsed)  # templates are those of a thread
    thread.start()
    thread.join()
    assert [one.name for one in found] == [f"q{n}" for n in range(1, 200)]
    assert found[-1].plan.where == "kind = 'k199'"
    assert found[-1].line == 199
    assert len(calls) == 3  # twice as they come, and once for the template
