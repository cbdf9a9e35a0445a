"""Changes to answers: folding, times, and the union of the Delta table with the local engine's journal."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import CommitProperties, Transaction, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from st_common.answers.answers import answer, fold
from st_common.answers.changes import passed_changes, stream_changes
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.contracts import load_contract
from st_common.engine.journal import Journal
from st_common.errors import QueryError
from st_common.query.registry import register
from st_common.query.text import parse

SCHEMA = load_contract("changes").arrow_schema()
T0 = datetime(2024, 5, 1, 12, tzinfo=UTC)
STREAMS = {
    name: StreamSettings(
        name=name, format="csv", columns=Columns(object="id", x="x", y="y")
    )
    for name in ("taxis", "ships")
}


def change(
    position: int,
    sign: int,
    obj: str = "a",
    partner: str | None = None,
    *,
    query: str = "q",
    seq: int = 0,
) -> dict[str, Any]:
    """A change whose event time is `position` seconds after T0."""
    ts = T0 + timedelta(seconds=position)
    cause = {1: "enter", -1: "leave", 0: "inside"}[sign]
    return {
        "event_date": ts.date(),
        "position": position,
        "seq": seq,
        "event_ts": ts,
        "fix_ts": ts,
        "query_version": 1,
        "layer_version": None,
        "sign": sign,
        "value": None,
        "query": query,
        "object": obj,
        "partner": partner,
        "cause": cause,
    }


def table(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)


def store(
    home: Home, stream: str, *rows: dict[str, Any], committed: int | None = None
) -> None:
    properties = (
        None
        if committed is None
        else CommitProperties(app_transactions=[Transaction("engine", committed)])
    )
    write_deltalake(
        home.table("changes", stream),
        table(*rows),
        mode="append",
        partition_by=["event_date"],
        commit_properties=properties,
    )


def journal(home: Home, stream: str, *rows: dict[str, Any]) -> None:
    kept = Journal(home, stream, epoch=1)
    kept.append(table(*rows), behind=-1)
    kept.close()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    register(
        home, STREAMS, parse("REGISTER QUERY q AS SELECT * FROM taxis"), owner="ada"
    )
    return home


def members(found: pa.Table) -> list[tuple[str, str | None, int]]:
    """Object, partner and seconds after T0."""
    return [
        (row["object"], row["partner"], (row["since_ts"] - T0).seconds)
        for row in found.to_pylist()
    ]


signs = st.lists(
    st.tuples(
        st.sampled_from("pq"),
        st.sampled_from(("a", "b")),
        st.sampled_from((None, "", "w1", "w2")),
    )
)


@pytest.mark.spec("P6")
@given(pairs=signs, seed=st.randoms(use_true_random=False))
def test_the_fold_is_the_sum_of_signs_whatever_order_the_rows_come_in(
    pairs: list[tuple[str, str, str | None]], seed: Any
):
    count: Counter[tuple[str, str, str | None]] = Counter()
    since: dict[tuple[str, str, str | None], int] = {}
    rows = []
    for number, pair in enumerate(pairs):
        sign = -1 if count[pair] else 1
        count[pair] += sign
        since[pair] = number
        position, seq = divmod(number, 2)
        rows.append(change(position, sign, pair[1], pair[2], query=pair[0], seq=seq))
        rows.append(
            change(position, 0, pair[1], pair[2], query=pair[0], seq=seq + 2)
        )  # EMIT EVERY says nothing about membership
    seed.shuffle(rows)
    found = {
        (row["query"], row["object"], row["partner"]): row["since_ts"]
        for row in fold(table(*rows)).to_pylist()
    }
    assert found == {
        pair: T0 + timedelta(seconds=since[pair] // 2)
        for pair, total in count.items()
        if total
    }


@pytest.mark.spec("P6")
def test_the_answer_is_who_is_in_and_since_when(home: Home):
    store(
        home,
        "taxis",
        change(1, 1, "b"),
        change(2, 1, "a", "w1"),
        change(2, 1, "a", "w2", seq=1),
    )
    store(
        home,
        "taxis",
        change(3, -1, "b"),
        change(4, 1, "b"),
        change(5, -1, "a", "w1"),
        change(6, 0, "b"),
        change(7, 1, "c", query="r"),
    )
    assert members(answer(home, "q")) == [("a", "w2", 2), ("b", None, 4)]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, []),
        (1, [("b", None, 1)]),
        (2, [("b", None, 1)]),
        (3, []),
        (4, [("b", None, 4)]),
    ],
)
def test_the_answer_at_a_time_counts_changes_up_to_then(
    home: Home, seconds: int, expected: list
):
    store(home, "taxis", change(1, 1, "b"), change(3, -1, "b"), change(4, 1, "b"))
    assert members(answer(home, "q", T0 + timedelta(seconds=seconds))) == expected


def test_long_names_are_found(home: Home):
    """Delta's statistics cut texts; reading must not take the cut for the text."""
    name = "x" * 100
    register(
        home,
        STREAMS,
        parse(f"REGISTER QUERY {name} AS SELECT * FROM taxis"),
        owner="ada",
    )
    store(home, "taxis", change(1, 1, "o" * 300, query=name))
    assert stream_changes(home, "taxis", name).num_rows == 1
    assert answer(home, name)["object"].to_pylist() == ["o" * 300]


def test_a_query_without_changes_has_an_empty_answer_and_an_unknown_one_is_an_error(
    home: Home,
):
    assert answer(home, "q").num_rows == 0
    with pytest.raises(QueryError, match="unknown query 'qq'"):
        answer(home, "qq")


def test_a_query_that_moved_to_another_stream_is_folded_stream_by_stream(home: Home):
    store(home, "taxis", change(9, 1, "a"), change(20, -1, "a"))
    register(
        home,
        STREAMS,
        parse("DROP QUERY q; REGISTER QUERY q AS SELECT * FROM ships"),
        owner="ada",
    )
    store(home, "ships", change(3, 1, "a"))
    assert members(answer(home, "q")) == [("a", None, 3)]


def test_the_journal_continues_the_table(home: Home):
    store(home, "taxis", change(1, 1, "a"), committed=1)
    journal(home, "taxis", change(2, 1, "b"), change(3, -1, "a"))
    assert stream_changes(home, "taxis")["position"].to_pylist() == [1, 2, 3]
    assert members(answer(home, "q")) == [("b", None, 2)]


@pytest.mark.parametrize("committed", [1, 2, 3, 8])
def test_what_the_table_has_already_is_not_taken_from_the_journal(
    home: Home, committed: int
):
    rows = [change(position, 1, f"o{position}") for position in (1, 2, 3)]
    store(
        home,
        "taxis",
        *(row for row in rows if row["position"] <= committed),
        committed=committed,
    )
    journal(home, "taxis", *rows[1:])
    assert stream_changes(home, "taxis")["position"].to_pylist() == [1, 2, 3]


def test_a_journal_without_a_table_is_read_alone(home: Home):
    journal(home, "taxis", change(2, 1, "b"))
    assert stream_changes(home, "taxis").num_rows == 1
    assert stream_changes(home, "ships").num_rows == 0


def test_changes_are_in_log_order_and_can_be_narrowed(home: Home):
    store(home, "taxis", change(2, 1, seq=1), change(3, -1, query="r"))
    store(home, "taxis", change(1, 1, query="r"), change(2, -1, seq=0))
    found = stream_changes(home, "taxis")
    assert found.schema == SCHEMA
    assert list(
        zip(found["position"].to_pylist(), found["seq"].to_pylist(), strict=True)
    ) == [
        (1, 0),
        (2, 0),
        (2, 1),
        (3, 0),
    ]
    assert stream_changes(home, "taxis", "r")["position"].to_pylist() == [1, 3]
    assert stream_changes(home, "taxis", since=1)["position"].to_pylist() == [2, 2, 3]
    assert passed_changes(home, "q")["position"].to_pylist() == [2, 2]
    assert passed_changes(home).num_rows == 4


def test_many_queries_and_objects_fold_without_mixing_up():
    count, objects = 100_000, 5_000
    number = np.arange(count)
    big = pa.table(
        {
            "query": pa.array(np.char.add("q", (number % 1000).astype(str))),
            "object": pa.array(np.char.add("o", (number % objects).astype(str))),
            "partner": pa.nulls(count, pa.string()),
            "event_ts": pa.array(number, pa.timestamp("us", "UTC")),
            "position": number,
            "query_version": pa.array(np.ones(count), pa.int32()),
            "value": pa.nulls(count, pa.float64()),
            "fields": pa.nulls(count, pa.string()),
            "x": pa.array(number, pa.float64()),
            "y": pa.nulls(count, pa.float64()),
            "seq": pa.array(np.zeros(count), pa.int32()),
            "sign": pa.array(1 - number // objects % 2 * 2, pa.int8()),
        }
    )
    assert fold(big).num_rows == 0
    left = fold(big.slice(0, count - 1000))
    assert left.num_rows == 1000
    assert [f"o{int(x) % objects}" for x in left["x"].to_pylist()] == left[
        "object"
    ].to_pylist()
    assert {int(name[1:]) for name in left["object"].to_pylist()} == set(
        range(objects - 1000, objects)
    )
    assert fold(big.slice(0, 0)).num_rows == 0
