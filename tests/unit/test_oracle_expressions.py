"""The expressions of random plans mean in SQL what the table beside them says in Python."""

import json
from collections import Counter

import duckdb
import pyarrow as pa
import pytest

from st_common.query.cells import add_cells
from st_common.query.plan import Plan
from tests.kit.oracle_rows import (
    EXPRESSIONS,
    EXTENTS,
    PAIRS,
    Fix,
    Reading,
    fields_of,
    text_of,
    value_of,
)
from tests.kit.strategies import READINGS

FIXES = [
    Fix(
        position=0,
        object=name,
        event_us=1_700_000_000_000_000 + 500_000 * n,
        x=x,
        y=y,
        attributes=attributes,
    )
    for n, attributes in enumerate(READINGS)
    for name, x, y in (("a", 0.0, 8.0), ("b", 7.5, 0.0))
]
READ = [
    Reading(
        fix=fix,
        elapsed_s=elapsed,
        speed_mps=speed,
        heading_deg=heading,
        acceleration_mps2=change,
    )
    for fix in FIXES
    for elapsed, speed, heading, change in (
        (None, None, None, None),
        (2.0, 1.0, 45.0, None),
        (2.000001, 1.5, 359.5, 0.25),
        (2.0, 1.5, 359.5, 0.5),
    )
]


def table() -> pa.Table:
    fixes = [reading.fix for reading in READ]
    stamps = pa.array([fix.event_us for fix in fixes], pa.int64()).cast(
        pa.timestamp("us")
    )
    kinds = {
        "kind": pa.string(),
        "load": pa.float64(),
        "seats": pa.int64(),
        "free": pa.bool_(),
    }
    return pa.table(
        {
            "object": [fix.object for fix in fixes],
            "event_ts": stamps,
            "x": [fix.x for fix in fixes],
            "y": [fix.y for fix in fixes],
            "partner": ["w1"] * len(fixes),
            "elapsed_s": pa.array([r.elapsed_s for r in READ], pa.float64()),
            "speed_mps": pa.array([r.speed_mps for r in READ], pa.float64()),
            "heading_deg": pa.array([r.heading_deg for r in READ], pa.float64()),
            "acceleration_mps2": pa.array(
                [r.acceleration_mps2 for r in READ], pa.float64()
            ),
            **{
                name: pa.array([fix.attributes.get(name) for fix in fixes], kind)
                for name, kind in kinds.items()
            },
        }
    )


@pytest.mark.parametrize("text", [text for text in EXPRESSIONS if text not in EXTENTS])
def test_an_expression_means_the_same_in_sql_and_in_python(text: str) -> None:
    with duckdb.connect() as connection:
        add_cells(connection)
        connection.register("fixes", table())
        found = connection.sql(
            f"SELECT {text}, coalesce(CAST({text} AS VARCHAR), 'NULL') FROM fixes"
        ).fetchall()
    values = [value_of(text, reading, "w1") for reading in READ]
    assert [value for value, _ in found] == values
    assert [name for _, name in found] == [text_of(value) for value in values]
    assert len(set(values)) > 1 or text == "partner"


@pytest.mark.parametrize("text", PAIRS)
def test_an_expression_about_a_pair_means_the_same_in_sql_and_in_python(text):
    names = [f'fixes."{name}" AS "other.{name}"' for name in table().column_names]
    with duckdb.connect() as connection:
        connection.register("fixes", table())
        told = connection.sql(
            f"SELECT {text} FROM (SELECT one.*, other.* FROM fixes one, "
            f"(SELECT {', '.join(names)} FROM fixes) other)"
        ).fetchall()
    meant = [PAIRS[text](one, other) for one in READ for other in READ]
    assert Counter(value for (value,) in told) == Counter(meant)
    assert len(set(meant)) > 1


def test_columns_are_a_json_object_as_sql_makes_it() -> None:
    columns = (("c0", "kind"), ("it's", "load"), ("free", "free"))
    with duckdb.connect() as connection:
        connection.register("fixes", table())
        rows = connection.sql(
            "SELECT json_object('c0', kind, 'it''s', load, 'free', free) FROM fixes"
        ).fetchall()
    plan = Plan(stream="s", columns=columns)
    assert [json.loads(text) for (text,) in rows] == [
        json.loads(str(fields_of(plan, reading))) for reading in READ
    ]
    assert fields_of(Plan(stream="s"), READ[0]) is None
