"""Changes as they leave a shard, and their one order over all shards."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from st_common.operators.state.intern import Interner
from st_common.operators.state.registered import Queries, Registered, positions_of
from st_common.operators.state.targets import NO_PARTNER, Targets
from st_common.runs import is_first, ranks_of

CAUSES = (
    "enter",
    "leave",
    "inside",
    "gone",
    "expired",
    "registered",
    "dropped",
    "replaced",
    "layer",
    "aged",
    "value",
    "failed",
    "outside",
    "cross",
    "dwell",
    "area",
    "started",
    "ongoing",
    "ended",
    "gap",
    "backfilled",
)
CAUSE = {name: number for number, name in enumerate(CAUSES)}
TICK_RANK = (
    2  # of what is told at ticks: after expiries and fixes of the same event time
)

_DICTIONARY = pa.dictionary(pa.int32(), pa.string())
_NONE = pa.array([""])
"""The dictionary of a column that is null everywhere."""
SHARD_SCHEMA = pa.schema(
    [
        ("position", pa.int64()),
        ("event_ts", pa.int64()),
        ("fix_ts", pa.int64()),
        ("rank", pa.int8()),
        ("sign", pa.int8()),
        ("query_order", pa.int64()),
        ("query_version", pa.int32()),
        ("layer_version", pa.int64()),
        ("query", _DICTIONARY),
        ("object", _DICTIONARY),
        ("partner", _DICTIONARY),
        ("cause", _DICTIONARY),
        ("value", pa.float64()),
        ("fields", pa.string()),
        ("x", pa.float64()),
        ("y", pa.float64()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What the numbers in change rows stand for. Taken when a run is over: it may have given numbers to more."""

    queries: tuple[Registered, ...]
    targets: Targets
    objects: Interner
    partners: Interner


def _texts(codes: np.ndarray, texts: Sequence[str]) -> pa.DictionaryArray:
    """Texts by their places among some."""
    known = pa.array(texts, pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), known)


def _values(value: np.ndarray | None, count: int) -> pa.Array:
    """Values, null where NaN; null everywhere without any."""
    if value is None:
        return pa.nulls(count, pa.float64())
    return pa.array(value, pa.float64(), from_pandas=True)


def change_rows(
    names: Names,
    *,
    position: np.ndarray,
    event_ts: np.ndarray,
    fix_ts: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    rank: np.ndarray,
    objects: np.ndarray,
    target: np.ndarray,
    sign: np.ndarray,
    cause: np.ndarray,
    value: np.ndarray | None = None,
    fields: pa.Array | None = None,
) -> pa.Table:
    """The rows of changes of one shard, in any order.

    Args:
        names: the strings of all numbers below.
        position: int64[n], the row of the log that causes each change.
        event_ts: int64[n], the event time at which it is so, in microseconds.
        fix_ts: int64[n], the event time of the fix that shows it, in microseconds.
        x: float64[n], where the object was then (see `places.places_of`), null where NaN; `y` likewise.
        y: see `x`.
        rank: what comes first at one position and time: 0 an expiry, 1 a fix, 2 a tick.
        objects: int64[n], numbers of objects, `NO_PARTNER` for none (null).
        target: int64[n], numbers of targets: in the answer of what each object is.
        sign: +1 enters, -1 leaves, 0 tells of one that stays.
        cause: int64[n], places in `CAUSES`.
        value: float[n], null where NaN; None: null everywhere.
        fields: string[n], the selected columns as JSON texts; None: null everywhere.

    Returns:
        A table of `SHARD_SCHEMA` with n rows.
    """
    if not len(sign):  # as of most operators in most runs
        return SHARD_SCHEMA.empty_table()
    order = names.targets.query[target]
    # Only the queries that have changes are named: a stream may have a hundred thousand.
    numbers, query = np.unique(order, return_inverse=True)
    used = [names.queries[n] for n in numbers]
    layers = pa.array([q.layer_version for q in used], pa.int64())
    version = np.array([q.version for q in used], np.int32)
    columns = [
        position,
        event_ts,
        fix_ts,
        rank.astype(np.int8),
        sign.astype(np.int8),
        order,
        version[query],
        layers.take(pa.array(query)),
        _texts(query, [q.name for q in used]),
        named(objects, names.objects),
        named(names.targets.partner[target], names.partners),
        _texts(cause, CAUSES),
        _values(value, len(sign)),
        pa.nulls(len(sign), pa.string()) if fields is None else fields,
        _values(x, len(sign)),
        _values(y, len(sign)),
    ]
    return pa.Table.from_arrays(
        [pa.array(c) if isinstance(c, np.ndarray) else c for c in columns],
        schema=SHARD_SCHEMA,
    )


def named(numbers: np.ndarray, interner: Interner) -> pa.DictionaryArray:
    """The names of some numbers; null for `NO_PARTNER`.

    Under a null stands the place of a name, too: where Arrow unifies dictionaries it looks up what stands there, and
    leaves what it reads in front of the names, or behind them, to be looked up the next time.
    """
    used, code = np.unique(numbers, return_inverse=True)
    is_none = used == NO_PARTNER
    ids = interner.ids.take(pa.array(used[~is_none])) if not is_none.all() else _NONE
    # NO_PARTNER sorts first, and has no name: without it codes count from 0, with it from -1, which is null.
    codes = code - int(is_none.any())
    return pa.DictionaryArray.from_arrays(
        pa.array(np.maximum(codes, 0), pa.int32(), mask=codes < 0), ids
    )


def ordered_by_position(changes: pa.Table, queries: Queries) -> pa.Table:
    """Changes of one shard, whose queries are ordered by where they were registered.

    Numbers of queries are those of a shard: what one has forgotten may have a number in another.

    Args:
        changes: rows of `SHARD_SCHEMA` with numbers in `query_order`.
        queries: those of the shard.
    """
    column = SHARD_SCHEMA.get_field_index("query_order")
    order = positions_of(queries)[changes["query_order"].to_numpy()]
    return changes.set_column(column, SHARD_SCHEMA.field(column), pa.array(order))


def settled(shards: list[pa.Table]) -> pa.Table:
    """All shards' changes in their one order (docs/adr/0008), with `seq` numbering those of one position from 0.

    The order is position, event time, expiry before fix before tick, object, - before + before 0, query in order of
    registration, partner, cause; objects and partners as texts. It depends neither on batches, nor on shards, nor on
    how they were cut, so a fold never sees a + before the - that makes room for it.

    Args:
        shards: a table of `SHARD_SCHEMA` each, rows in any order; none at all gives an empty table.

    Returns:
        The columns of the contract `changes`, but for `event_date`; event times are timestamps in microseconds, UTC.
    """
    table = (
        pa.concat_tables([*shards, SHARD_SCHEMA.empty_table()])
        # Each shard numbers names for itself: from here on a number means one name.
        .unify_dictionaries()
        .combine_chunks()
    )
    position = table["position"].to_numpy()
    order = order_of(table)
    table, position = table.take(pa.array(order)), position[order]
    seq = ranks_of(is_first(position))
    return _as_contract(table, seq.astype(np.int32))


def order_of(table: pa.Table) -> np.ndarray:
    """The places of rows in the one order of changes (see `settled`); int64[n].

    Args:
        table: rows of `SHARD_SCHEMA` in one chunk, whose names are numbered together.
    """
    minor = _minor(table)
    major = [table[name].to_numpy() for name in ("rank", "event_ts", "position")]
    if all(
        len(key) and (key == key[0]).all() for key in major
    ):  # one tick: there is nothing else to sort by
        return np.argsort(minor[0]) if len(minor) == 1 else np.lexsort(minor)
    return np.lexsort([*minor, *major])


def _rank(values: np.ndarray) -> np.ndarray:
    """The rank of each value among the different ones, which are few; int64[n]."""
    code, different = pd.factorize(values)
    rank = np.empty(len(different), np.int64)
    rank[np.argsort(different)] = np.arange(len(different))
    return rank[code]


def _minor(table: pa.Table) -> list[np.ndarray]:
    """Sort keys within a position, time and rank, the least important first; as one number where 63 bits are enough."""
    sign = table["sign"].to_numpy()
    keys = [
        _text_rank(table["object"]),
        np.where(sign == 0, 2, sign) + 1,
        _rank(table["query_order"].to_numpy()),
        _text_rank(table["partner"]),
        table["cause"].chunk(0).indices.to_numpy() if len(table) else sign,
    ]
    widths = [int(key.max(initial=0)) + 1 for key in keys]
    # One number is sorted once; of five keys lexsort sorts by each.
    if math.prod(widths) >= 1 << 63:
        return keys[::-1]
    packed = np.zeros(len(sign), np.int64)
    for key, width in zip(keys, widths, strict=True):
        packed *= width
        packed += key
    return [packed]


def _text_rank(column: pa.ChunkedArray) -> np.ndarray:
    """The rank of each value among the column's texts; none comes first."""
    if not len(column):
        return np.empty(0, np.int64)
    array = column.chunk(0)
    # One more for null, which comes first.
    rank = np.empty(len(array.dictionary) + 1, np.int64)
    rank[pc.array_sort_indices(array.dictionary).to_numpy()] = np.arange(1, len(rank))
    rank[-1] = 0
    ranks: np.ndarray = rank[
        array.indices.fill_null(len(rank) - 1).to_numpy(zero_copy_only=False)
    ]
    return ranks


def _as_contract(table: pa.Table, seq: np.ndarray) -> pa.Table:
    stamp = pa.timestamp("us", tz="UTC")
    text = {
        name: table[name].cast(pa.string())
        for name in ("query", "object", "partner", "cause")
    }
    return pa.table(
        {
            "position": table["position"],
            "seq": seq,
            "event_ts": table["event_ts"].cast(stamp),
            "fix_ts": table["fix_ts"].cast(stamp),
            "query_version": table["query_version"],
            "layer_version": table["layer_version"],
            "sign": table["sign"],
            "value": table["value"],
            **text,
            "fields": table["fields"],
            "x": table["x"],
            "y": table["y"],
        }
    )
