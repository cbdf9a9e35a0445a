"""Columns that have types already are judged as their texts would be."""

import json
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.decode.columns import judge_columns
from st_common.decode.decoded import Decoded
from st_common.decode.interpret import interpret, one_arrival
from st_common.formats.records import Records

NOW = 1_700_000_000_000_000
LONGS = st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 200)
DOUBLES = st.floats() | st.floats(-200, 200) | st.integers(-200, 200).map(float)
BOOLS = st.booleans()
TEXTS = st.text(max_size=3) | st.sampled_from(["", " ", "7", "true", "nan"])
TYPES = {"string": TEXTS, "double": DOUBLES, "long": LONGS, "bool": BOOLS}
ARROW = {
    "string": pa.string(),
    "double": pa.float64(),
    "long": pa.int64(),
    "bool": pa.bool_(),
}
TIMES = st.integers(-5, 8_000_000_000) | LONGS
ATTRIBUTES = {"speed": "double", "kind": "string", "count": "long", "on": "bool"}
NAMES = ("id", "ts", "x", "y", "gone", *ATTRIBUTES)


def python_text(value: object) -> str | None:
    """How a value is written in a file of texts; None for what is missing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, float):
        is_short = value.is_integer() and abs(value) < 100  # as words for nothing are
        return str(int(value)) if is_short else repr(value)
    return json.dumps(value) if isinstance(value, bool) else str(value)


def judged(fields: dict[str, pa.Array], stream: StreamSettings, count: int) -> Decoded:
    records = Records(
        fault=np.zeros(count, np.int8),
        fields=fields,
        raw=lambda rows: pa.repeat(pa.scalar(b""), len(rows)),
    )
    return interpret(records, stream, one_arrival(NOW, records))


@st.composite
def columns(draw: st.DrawFn, count: int) -> dict[str, tuple[str, list]]:
    """Columns by name: their type and values; an id and a text are no floats, for a float has many texts."""
    drawn = {}
    for name in NAMES:
        kinds = ["string", "long", "bool"]
        if name not in ("id", "kind"):
            kinds.append("double")
        kind = draw(st.sampled_from(kinds))
        values = TIMES if (name, kind) == ("ts", "long") else TYPES[kind]
        drawn[name] = (
            kind,
            draw(st.lists(st.none() | values, min_size=count, max_size=count)),
        )
    return drawn


@pytest.mark.spec("B7")
@given(
    st.integers(1, 5).flatmap(columns),
    st.sampled_from(["s", "ms", "us", "iso", "%Y%m%d"]),
    st.sampled_from([(), ("7", "-1"), ("true", "x")]),
    st.sampled_from([None, 60.0]),
)
def test_typed_columns_give_what_their_texts_give(drawn, time_unit, nulls, ahead):
    named = Columns(object="id", event_ts="ts", x="x", y="y", gone="gone")
    stream = StreamSettings(
        name="s",
        format="csv",
        columns=named,
        attributes=ATTRIBUTES,
        time_unit=time_unit,
        nulls=nulls,
        max_ahead_s=ahead,
    )
    typed = {
        name: pa.array(values, ARROW[kind]) for name, (kind, values) in drawn.items()
    }
    texts = {
        name: pa.array([python_text(value) for value in values], pa.string())
        for name, (_, values) in drawn.items()
    }
    count = len(typed["id"])
    found, expected = judged(typed, stream, count), judged(texts, stream, count)
    assert repr(found.fixes.to_pylist()) == repr(expected.fixes.to_pylist())
    assert found.rejects.equals(expected.rejects)
    assert found.nulled == expected.nulled
    assert found.fixes.schema == expected.fixes.schema


@given(st.lists(st.none() | TIMES, min_size=1, max_size=5), st.booleans())
def test_known_instants_are_the_same_in_every_time_unit(times, zone):
    stream = StreamSettings(
        name="s",
        format="csv",
        columns=Columns(object="id", event_ts="ts", x="x", y="y"),
        time_unit="us",
        max_ahead_s=None,
    )
    same = {name: pa.array([1.0] * len(times)) for name in ("id", "x", "y")}
    texts = pa.array([python_text(value) for value in times], pa.string())
    expected = judged(same | {"ts": texts}, stream, len(times))
    known = pa.array(times, pa.timestamp("us", "UTC" if zone else None))
    for unit in ("s", "iso", "%d/%m/%Y"):
        other = StreamSettings(
            **{name: getattr(stream, name) for name in ("name", "format", "columns")},
            time_unit=unit,
            max_ahead_s=None,
        )
        found = judged(same | {"ts": known}, other, len(times))
        assert found.fixes.equals(expected.fixes)
        assert found.rejects.equals(expected.rejects)


def test_rows_of_a_frame_are_judged_as_records_are():
    """None of them is too far ahead, a gone object needs no place, and a number that is none is missing."""
    stream = StreamSettings(
        name="s",
        format="csv",
        columns=Columns(object="elsewhere", x="a", y="b"),
        attributes={"speed": "double"},
        nulls=("7",),
    )
    rows = pa.table(
        {
            "object": ["7", " ", "b", "c", "d"],
            "event_ts": pa.array([2 * NOW, 1, None, 1, 1], pa.int64()),
            "x": [1.0, 1.0, 1.0, math.nan, None],
            "y": [7.0] * 5,
            "gone": [False, None, False, False, True],
            "speed": [7.0, 1.0, 1.0, 1.0, math.inf],
        }
    )
    decoded = judge_columns(rows, stream)
    assert [tuple(row.values())[:3] for row in decoded.fixes.to_pylist()] == [
        (0, "7", 2 * NOW),
        (4, "d", 1),
    ]
    assert decoded.fixes["speed"].to_pylist() == [7.0, None]
    assert decoded.rejects.drop_columns(["line"]).to_pylist() == [
        {"row": 1, "reason": "missing_object", "raw": b""},
        {"row": 2, "reason": "missing_time", "raw": b""},
        {"row": 3, "reason": "missing_position", "raw": b""},
    ]
    assert len(judge_columns(rows.slice(0, 0), stream).fixes) == 0
