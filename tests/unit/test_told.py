"""What shards write into files and what they leave to the driver make up all changes, in their one order (S7, X1)."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.contracts import load_contract
from st_common.operators.turn.changes import SHARD_SCHEMA, settled
from st_common.spark.exchange.results import Told, Untold, tell_by_files
from st_common.spark.shard import Ints
from tests.kit.effort import tries

pytestmark = pytest.mark.spec("S7", "X1")
CONTRACT = load_contract("changes")
SECOND_US = 1_000_000


def changes_of(rows):
    """Rows of `SHARD_SCHEMA`: (position, rank, sign, query, object) each."""
    rows = sorted(set(rows))
    columns = dict(
        zip(
            ("position", "rank", "sign", "query", "object"),
            zip(*rows, strict=True),
            strict=False,
        )
    )
    known = {
        "event_ts": [row[0] * SECOND_US for row in rows],
        "fix_ts": [row[0] * SECOND_US for row in rows],
        "query_order": [ord(row[3]) for row in rows],
        "query_version": [1] * len(rows),
        "cause": ["fix"] * len(rows),
        **columns,
    }
    arrays = []
    for field in SHARD_SCHEMA:
        values = known.get(field.name, [None] * len(rows))
        is_text = pa.types.is_dictionary(field.type)
        kind = pa.string() if is_text else field.type
        array = pa.array(list(values), kind)
        arrays.append(array.dictionary_encode().cast(field.type) if is_text else array)
    return pa.Table.from_arrays(arrays, schema=SHARD_SCHEMA)


def own(positions) -> Ints:
    return np.array(sorted(positions), np.int64)


ROW = st.tuples(
    st.integers(0, 11),
    st.integers(0, 2),
    st.sampled_from((-1, 1)),
    st.sampled_from("qr"),
    st.sampled_from("abc"),
)


@tries(60)
@given(
    owners=st.lists(st.integers(0, 2), min_size=12, max_size=12),
    rows=st.lists(st.lists(ROW, max_size=12), min_size=3, max_size=3),
    committed=st.sampled_from((-1, 4)),
)
def test_files_and_the_rest_are_all_changes_in_their_one_order(owners, rows, committed):
    """Objects of a shard have its number, so no two shards tell the same row."""
    shards = [
        changes_of([(*row[:4], f"{row[4]}{n}") for row in mine])
        for n, mine in enumerate(rows)
    ]
    untold = [
        Untold(
            plan=1,
            changes=changes,
            own=own(p for p, shard in enumerate(owners) if shard == n),
        )
        for n, changes in enumerate(shards)
    ]
    shared = np.unique(np.concatenate([one.foreign() for one in untold]))
    with tempfile.TemporaryDirectory() as folder:
        told = [
            tell_by_files(
                one, shared, table=Path(folder), contract=CONTRACT, committed=committed
            )
            for one in untold
        ]
        told = [Told.from_blob(one.to_blob()) for one in told]
        files = [Path(folder) / file.path for one in told for file in one.files]
        written = [pq.ParquetFile(file).read() for file in files]
    rest = settled([one.rest for one in told])
    wanted = settled(shards)
    names = ["position", "seq", "sign", "query", "object"]
    parts = [part.select(names) for part in (*written, rest.select(names))]
    everything = pa.concat_tables(
        [part.cast(rest.select(names).schema) for part in parts]
    )
    behind = [row for row in everything.to_pylist() if row["position"] > committed]
    behind.sort(key=lambda row: (row["position"], row["seq"]))
    assert behind == [
        row for row in wanted.select(names).to_pylist() if row["position"] > committed
    ]
    assert sum(one.rows for one in told) == sum(map(len, written))


def test_the_example_of_the_module(tmp_path):
    def row(position, name):
        return (position, 1, 1, "q", name)

    first = changes_of([row(40, "A"), row(42, "B"), row(43, "C")])
    second = changes_of([row(41, "D"), row(43, "E")])
    shards = [
        Untold(plan=1, changes=first, own=own([40, 42])),
        Untold(plan=1, changes=second, own=own([41, 43])),
    ]
    assert [one.foreign().tolist() for one in shards] == [[43], []]
    told = [
        tell_by_files(one, own([43]), table=tmp_path, contract=CONTRACT, committed=-1)
        for one in shards
    ]
    assert [one.rows for one in told] == [2, 1]
    assert [one.rest["object"].to_pylist() for one in told] == [["C"], ["E"]]
