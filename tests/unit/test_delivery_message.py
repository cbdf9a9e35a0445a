"""Ids that stay, and lines that any JSON parser reads."""

import json
from urllib.parse import unquote

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.contracts import load_contract
from st_common.delivery.message import change_ids, messages

SCHEMA = load_contract("changes").arrow_schema()
TEXT = st.one_of(
    st.text(min_size=1, max_size=6), st.text("~/%25FE7", min_size=1, max_size=4)
)
KEYS = st.tuples(
    TEXT,
    st.integers(1, 99),
    TEXT,
    st.one_of(st.none(), st.just(""), TEXT),
    st.integers(0, 1 << 62),
    st.integers(0, (1 << 31) - 1),
)


def rows_of(keys, **more):
    names = ("query", "query_version", "object", "partner", "position", "seq")
    rest = {
        "event_ts": 1_367_408_523_500_000,
        "event_date": 15_826,
        "sign": 1,
        "cause": "enter",
        **more,
    }
    rows = [dict(zip(names, key, strict=True)) | rest for key in keys]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def read(own: str) -> tuple[object, ...]:
    """The six parts of an id, by nothing but its description."""
    query, version, object_, partner, position, seq = own.split("/")
    return (
        unquote(query),
        int(version),
        unquote(object_),
        None if partner == "~" else unquote(partner),
        int(position),
        int(seq),
    )


@pytest.mark.spec("X7")
@given(st.lists(KEYS, min_size=1, max_size=8))
def test_an_id_says_what_it_is_the_id_of(keys):
    assert [read(own) for own in change_ids(rows_of(keys)).to_pylist()] == keys


def test_ids_are_as_documented():
    keys = [
        ("centre", 1, "20000337", None, 16_777_431, 0),
        ("a/b", 2, "50%", "~", 7, 3),
    ]
    assert change_ids(rows_of(keys)).to_pylist() == [
        "centre/1/20000337/~/16777431/0",
        "a%2Fb/2/50%25/%7E/7/3",
    ]


@pytest.mark.spec("X7")
@given(st.lists(KEYS, min_size=1, max_size=4))
def test_a_line_is_one_object_with_the_id(keys):
    found = messages(rows_of(keys), "taxis")
    assert all(b"\n" not in line for line in found.lines)
    values = [json.loads(line) for line in found.lines]
    assert [value["id"] for value in values] == found.ids
    names = ("query", "query_version", "object", "partner", "position", "seq")
    assert [tuple(value[name] for name in names) for value in values] == keys
    assert found.queries == [key[0] for key in keys]


def test_a_line_is_as_documented():
    key = ("centre", 1, "é", None, 16_777_431, 0)
    rows = rows_of(
        [key, key],
        value=float("inf"),
        fields='{"speed": 3.5, "name": "a\\nb"}',
        layer_version=4,
        x=-8.61,
    )
    line = messages(rows, "taxis").lines[0].decode()
    assert line == (
        '{"id": "centre/1/é/~/16777431/0", "stream": "taxis", "query": "centre", "query_version": 1, '
        '"layer_version": 4, "object": "é", "partner": null, "sign": 1, "cause": "enter", '
        '"event_ts": "2013-05-01T11:42:03.500000Z", "fix_ts": null, "position": 16777431, "seq": 0, "value": "inf", '
        '"x": -8.61, "y": null, '
        '"fields": {"speed": 3.5, "name": "a\\nb"}}'
    )


def test_a_part_is_a_part_of_everything():
    found = messages(
        rows_of([("q", 1, str(n), None, n, 0) for n in range(5)]), "s"
    ).part(2, 4)
    assert (len(found), found.ids) == (2, ["q/1/2/~/2/0", "q/1/3/~/3/0"])
    assert found.rows["position"].to_pylist() == [2, 3]
    assert [json.loads(line)["object"] for line in found.lines] == ["2", "3"]
