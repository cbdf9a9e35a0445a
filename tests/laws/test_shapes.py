"""Conditions that differ in literals alone: over pairs, with literals as columns, they say what each says by itself."""

import math
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.geometry.space import PLANE
from st_common.operators.expressions import evaluation as expressions
from st_common.operators.expressions import general as general_conditions
from st_common.operators.expressions import shaped
from st_common.operators.expressions.failures import noting
from st_common.operators.expressions.general import (
    General,
    Source,
    schema_of,
    shapes_of,
)
from st_common.operators.expressions.readings import Readings
from st_common.operators.state.fixes import NEVER, READING
from st_common.query.grammar.nodes import Refused
from st_common.query.grammar.statements import expression_of, text_of
from tests.kit.effort import tries

ALIKE = 12  # conditions of one template: more than have a shape at least
IDS = pa.array(["o1", "O2", "", "3"])
LOADS = (
    None,
    0.0,
    -0.0,
    5.0,
    2.5,
    0.1,
    0.1 + 0.2,
    -2.0,
    math.nan,
    math.inf,
    -math.inf,
    1.7976931348623157e308,
    5e-324,
    9007199254740993.0,
)
SEATS = (
    None,
    0,
    5,
    -2,
    1,
    127,
    2**31 - 1,
    2**53 + 1,
    2**63 - 1,
    -(2**63),
)
KINDS = (None, "taxi", "bus", "it's", "", "5", "2.5", "a%b", "a_b", "\\", "2024-01-01")
TIMES_US = (0, 1, -1, 1_704_067_200_000_000, 2**62, -(2**62), 2**63 - 1, -(2**63) + 1)
LITERALS = {
    "whole": ("0", "1", "2", "5", "127", "128", "255", "2147483647"),
    "long": ("2147483648", "9007199254740993", "9223372036854775807"),
    "huge": ("9223372036854775808", "99999999999999999999"),
    "decimal": ("0.1", "2.5", "0.30", "5.0", "123456789.125", "0.0"),
    "double": ("1e0", "25e-1", "1e308", "1e400", "0e0"),
    "text": ("'taxi'", "'bus'", "'it''s'", "''", "'5'", "'a%'", "'%'", "'_'", "'\\'"),
    "zone": ("'Europe/Berlin'", "'Asia/Kolkata'", "'America/St_Johns'"),
    "hour": ("'22:00'", "'02:30:00'", "'taxi'"),
    "time": ("'2024-01-01'", "'2024-01-01 00:00:00'", "'infinity'", "'1970-01-01'"),
}
LOCAL = "event_ts AT TIME ZONE 'UTC' AT TIME ZONE {zone}"
NUMBERS = ("whole", "long", "huge", "decimal", "double")
NUMERIC = ("load", "seats", "x", "LOAD", "elapsed_s", "speed_mps")
TEXTUAL = ("kind", "object")
SIGNS = st.sampled_from(("=", "<>", "<", ">", "<=", ">="))
FUNCTIONS = ("ABS({})", "-{}", "FLOOR({})", "SIGN({})", "CAST({} AS DOUBLE)")


@st.composite
def numbers(draw, depth=2):
    """A number, with a hole `{kind}` for each literal."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        kinds = st.sampled_from(NUMBERS).map("{{{}}}".format)
        return draw(st.one_of(st.sampled_from(NUMERIC), kinds))
    one, other = draw(numbers(depth=depth - 1)), draw(numbers(depth=depth - 1))
    sign = draw(st.sampled_from("+-*/%"))
    return draw(
        st.sampled_from(
            (
                f"({one} {sign} {other})",
                draw(st.sampled_from(FUNCTIONS)).format(f"({one})"),
                f"COALESCE({one}, {other})",
                f"ROUND({one}, 1)",
                f"CASE WHEN {one} > {other} THEN {one} ELSE {other} END",
                f"CAST({draw(texts())} AS DOUBLE)",
            )
        )
    )


@st.composite
def texts(draw):
    """A text, or what should be one, with holes."""
    column = draw(st.sampled_from(TEXTUAL))
    return draw(
        st.sampled_from(
            (column, f"LOWER({column})", "{text}", f"SUBSTR({column}, 1, {{whole}})")
        )
    )


@st.composite
def templates(draw, depth=2):
    """A condition with holes; of any types, so that some cannot be evaluated at all."""
    if depth and draw(st.booleans()):
        one, other = draw(templates(depth=depth - 1)), draw(templates(depth=depth - 1))
        joined = (f"({one}) AND ({other})", f"({one}) OR ({other})", f"NOT ({one})")
        return draw(st.sampled_from(joined))
    number, other, text = draw(numbers()), draw(numbers()), draw(texts())
    sign, kind = draw(SIGNS), draw(st.sampled_from(NUMBERS))
    return draw(
        st.sampled_from(
            (
                f"{number} {sign} {other}",
                f"{number} {sign} {{{kind}}}",
                f"{{{kind}}} {sign} {number}",
                f"{number} {sign} -{{{kind}}}",
                f"{number} BETWEEN {{{kind}}} AND {other}",
                f"{number} IN ({{{kind}}}, {{whole}}, {{decimal}})",
                f"{number} IS DISTINCT FROM {{{kind}}}",
                f"{text} {sign} {{text}}",
                f"{text} IN ({{text}}, {{text}})",
                f"{text} LIKE {{text}}",
                f"{text} ILIKE {{text}}",
                f"STARTS_WITH({text}, {{text}})",
                f"REGEXP_MATCHES({text}, {{text}})",
                f"{text} {sign} {number}",
                f"event_ts {sign} {{time}}",
                f"event_ts {sign} {{text}}",
                f"{LOCAL} {sign} {{time}}",
                f"EXTRACT(HOUR FROM {LOCAL}) {sign} {{{kind}}}",
                f"CAST({LOCAL} AS TIME) {sign} {{hour}}",
                f"event_ts {sign} CAST({{time}} AS TIMESTAMP)",
                f"EXTRACT(YEAR FROM event_ts) {sign} {{{kind}}}",
                f"free = ({number} {sign} {{{kind}}})",
            )
        )
    )


@st.composite
def conditions(draw):
    """Different conditions that differ in literals alone, as the parser writes them."""
    template, found = draw(templates()), {}
    for _ in range(ALIKE):
        values = iter(
            draw(st.sampled_from(LITERALS[part.partition("}")[0]]))
            for part in template.split("{")[1:]
        )
        parts = template.split("{")
        text = parts[0] + "".join(
            next(values) + part.partition("}")[2] for part in parts[1:]
        )
        try:
            found[text_of(expression_of(text))] = None
        except Refused:
            return draw(conditions())
    return list(found)


@st.composite
def readings(draw):
    count = draw(st.integers(1, 8))

    def some(values):
        return draw(st.lists(st.sampled_from(values), min_size=count, max_size=count))

    attributes = {
        "load": pa.array(some(LOADS), pa.float64(), from_pandas=False),
        "seats": pa.array(some(SEATS), pa.int64()),
        "kind": pa.array(some(KINDS), pa.string()),
        "free": pa.array(some((None, True, False)), pa.bool_()),
    }
    return Readings(
        object=np.array(some(range(len(IDS)))),
        ts=np.array(some(TIMES_US), np.int64),
        x=np.array(some((0.0, -0.0, 2.5, math.nan))),
        y=np.array(some((0.0, 1e300))),
        before_ts=np.array(some((NEVER, 0, 1)), np.int64),
        before_x=np.array(some((0.0, math.nan))),
        before_y=np.array(some((0.0, 5.0))),
        earlier_ts=np.array(some((NEVER, -1)), np.int64),
        earlier_x=np.array(some((0.0, math.nan))),
        earlier_y=np.array(some((0.0, 5.0))),
        attributes=attributes,
    )


def general(found, fixes, table):
    """The conditions by pairs, as far as they have a shape, and their shapes."""
    shapes = shapes_alike(found, fixes)
    source = Source(
        readings=fixes.take,
        ids=IDS,
        space=PLANE,
        size=len(fixes),
        dense=lambda some: expressions.masks(some, table),
        spent_us={},
    )
    return General(found, shapes, source), shapes


@pytest.mark.spec("X13", "P8", "G9", "S3")
@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@tries(150)
@given(conditions(), readings())
def test_a_literal_as_a_column_says_what_the_literal_says(found, fixes):
    table = fixes.table(IDS, space=PLANE)
    with noting() as noted:
        alone = np.concatenate([expressions.masks([text], table) for text in found])
    with (
        noting() as noted_by_pairs,
        patch.object(general_conditions, "STATEMENT_US", 0.0),
        patch.object(general_conditions, "PAIR_US", 0.0),
    ):
        conditions, shapes = general(found, fixes, table)
        conditions.evaluate(np.flatnonzero(shapes.shape < 0))
        number, point = np.divmod(np.arange(alone.size), len(fixes))
        by_pairs = conditions.pairs(number, point).reshape(alone.shape)
    assert (by_pairs == alone).all()
    assert set(noted_by_pairs) == set(noted)


@pytest.mark.spec("S3", "X13")
@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@tries(150)
@given(conditions(), readings())
def test_what_cannot_be_evaluated_at_all_shows_without_a_row(found, fixes):
    table = fixes.table(IDS, space=PLANE)
    for text in found:
        with noting() as noted:
            expressions.masks([text], table)
        is_bound = expressions.types_of([text], table[:0]) is not None
        assert is_bound == (not noted)


SHAPED = {
    "ABS(load - {}) > {} + 17 / 1e6": 'ABS(load - "literal 0") > "literal 1"',
    "kind LIKE 'a{}%' OR x * {} > 3.5": (
        'kind LIKE "literal 0" OR x * "literal 1" > "literal 2"'
    ),
    "ROUND(load, 2) = {} AND {} < seats / 2": (
        'ROUND(load, 2) = "literal 0" AND "literal 1" < seats / "literal 2"'
    ),
    "LOWER(object) IN ('{}', '{}b')": 'LOWER(object) IN ("literal 0", "literal 1")',
    "CAST('200{}-01-01' AS TIMESTAMP) > event_ts AND {} + x < 3": (
        '"literal 0" > event_ts AND "literal 1" + x < "literal 2"'
    ),
    "SIGN(load) + 1 > x - {}": 'SIGN(load) + 1 > x - "literal 1"',
    "REGEXP_MATCHES(kind, 'a') AND seats = {}": (
        "REGEXP_MATCHES(kind, 'a') AND seats = \"literal 0\""
    ),
}
NOBODY = np.empty(0)
COLUMNS = Readings(
    **dict.fromkeys(("object", "ts", "before_ts", "earlier_ts"), NOBODY.astype(int)),
    **dict.fromkeys([name for name in READING if name[-1] in "xy"], NOBODY),
    attributes={
        "load": pa.array([], pa.float64()),
        "seats": pa.array([], pa.int64()),
        "kind": pa.array([], pa.string()),
    },
)


def shapes_alike(found, like=COLUMNS):
    which = np.ones(len(found), bool)
    return shapes_of(found, which, schema_of(like, space=PLANE))


@pytest.mark.spec("X13")
@pytest.mark.parametrize("template", SHAPED)
def test_what_stands_beside_an_operator_becomes_a_column(template):
    found = shapes_alike([template.format(n, n + 1, n + 2) for n in range(10, 30)])
    assert [shape.text for shape in found.shapes] == [SHAPED[template]]
    assert (found.shape == 0).all()
    assert sorted(found.row) == list(range(20))


@pytest.mark.spec("X13")
def test_types_of_literals_tell_shapes_apart():
    texts = ["1", "2.5", "2.55", "25e-1", "3000000000"]
    found = shapes_alike(
        [f"seats + {text} > {n} + load" for text in texts for n in range(10)]
    )
    kinds = [shape.literals.schema.types[0] for shape in found.shapes]
    assert [str(kind) for kind in kinds] == [
        "int64",
        "decimal128(2, 1)",
        "decimal128(3, 2)",
        "double",
        "int64",
    ]


@pytest.mark.spec("X13", "S3")
@pytest.mark.parametrize(
    "template",
    [
        "ABS(lode - {}) > 3",
        "STRFTIME(event_ts, kind) = '{}'",
        "kind + {} > 3",
        "load > CAST('a{}' AS DOUBLE)",
        "load > {} / 0 AND missing = 1",
    ],
)
def test_what_cannot_be_evaluated_has_no_shape(template):
    assert not shapes_alike([template.format(n) for n in range(20)]).shapes


@pytest.mark.spec("X13")
@pytest.mark.parametrize("name", ["Load", "LOAD", "literal 7"])
def test_columns_that_could_be_taken_for_others_make_no_shapes(name):
    odd = {**COLUMNS.attributes, name: pa.array([], pa.float64())}
    like = replace(COLUMNS, attributes=odd)
    assert not shapes_alike([f"seats + 1 > {n} + x" for n in range(20)], like).shapes


@pytest.mark.spec("X13")
def test_few_conditions_have_no_shape():
    assert not shaped.shaped(
        ("load + 1 > 2",) * 3, pa.schema({"load": pa.float64()})
    ).shapes
