"""Readings of objects: which fixes count, how they are numbered, and which of them are kept (PLACE 3.1)."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.contracts import load_contract
from st_common.operators.arrays.keys import MASK, packed
from st_common.operators.state.fixes import NEVER
from st_common.position import rows_of, segments_of
from st_common.runs import highest_before, is_first, is_last, shifted, starts_of

_OF_READING = ("segment", "row", "event_ts", "x", "y", "gone")


@dataclass(frozen=True, slots=True)
class _Readings:
    """Fixes that count, by object and then by place in the log.

    Attributes:
        fix: int64[n], the row of the fix.
        object: int64[n], the number of its object.
        number: int64[n], from 1 since the object came.
        is_gone: bool[n], whether it says that the object is gone.
    """

    fix: np.ndarray
    object: np.ndarray
    number: np.ndarray
    is_gone: np.ndarray


def readings_schema() -> pa.Schema:
    """The columns of the contract `latest` that say something of an object alone, without a query."""
    return pa.schema(
        [
            field
            for field in load_contract("latest").arrow_schema()
            if field.name not in ("query", "query_version")
        ]
    )


def advance(state: pa.Table, fixes: pa.Table, *, every: int) -> pa.Table:
    """The kept readings of objects after more fixes.

    A reading counts when it is newer than all before it of its object. Of those from when an object came until it is
    gone, the first is kept and every `every`-th after it, and the one that says that it is gone:

        every 3:   readings 1 2 3 4 5 6 7 gone   ->   kept in turn: 1, 4, 7, gone

    Args:
        state: rows of `readings_schema`, one for each object.
        fixes: fixes with their position, in any order; all stand later in the log than those before.
        every: which readings are kept.

    Returns:
        Rows of `readings_schema`, one for each object, sorted by object.
    """
    if not len(fixes):
        return state
    objects = pa.chunked_array([*state["object"].chunks, *fixes["object"].chunks])
    # Numbered as they come: those of the state are the numbers of its rows.
    coded = pc.dictionary_encode(objects).combine_chunks()
    number = coded.indices.to_numpy()[len(state) :].astype(np.int64)
    readings = _counted(state, fixes, number, len(coded.dictionary))
    columns = _columns(state, fixes, readings, every, coded.dictionary)
    order = pc.array_sort_indices(coded.dictionary)
    schema = readings_schema()
    return pa.table(columns).select(schema.names).cast(schema).take(order)


def _counted(
    state: pa.Table, fixes: pa.Table, number: np.ndarray, count: int
) -> _Readings:
    """The fixes that count.

    Args:
        state: as for `advance`.
        fixes: n fixes.
        number: int64[n], those of their objects.
        count: how many objects there are.
    """
    order = _by_object(number, fixes["position"].to_numpy())
    us, own = _us(fixes["event_ts"])[order], number[order]
    newest = _padded(_us(state["newest_ts"]), count, NEVER)
    counts = us > highest_before(own, us, newest[own])
    fix, own = order[counts], own[counts]
    is_gone = fixes["gone"].to_numpy()[fix]
    first = is_first(own)
    # A stay ends with the reading that says so; the first one goes on from the state.
    start = starts_of(first | shifted(is_gone, False))  # noqa: FBT003, the value
    state_gone = state["gone"].to_numpy()
    so_far = np.where(state_gone, 0, state["readings"].to_numpy())
    before = np.where(first[start], _padded(so_far, count, 0)[own], 0)
    return _Readings(fix, own, np.arange(len(own)) - start + 1 + before, is_gone)


def _by_object(number: np.ndarray, position: np.ndarray) -> np.ndarray:
    """The order by object and then by place; int64[n]. Packed keys are sorted in a third of the time of two columns."""
    # Fixes come in runs that are sorted by place, which timsort merges.
    placed = np.argsort(position, kind="stable")
    keys = np.sort(packed(number[placed], np.arange(len(placed))))
    order: np.ndarray = placed[keys & MASK]
    return order


def _columns(
    state: pa.Table, fixes: pa.Table, readings: _Readings, every: int, names: pa.Array
) -> dict[str, pa.ChunkedArray | pa.Array | np.ndarray]:
    """The columns of `readings_schema` by name, a row for each object in the order of their numbers."""
    last = np.flatnonzero(is_last(readings.object))
    kept = np.flatnonzero(readings.is_gone | ((readings.number - 1) % every == 0))
    kept = kept[is_last(readings.object[kept])]
    # What an object has kept stands in its row of the state, or behind all of these.
    place = np.arange(len(names))
    place[readings.object[kept]] = len(state) + np.arange(len(kept))
    newer = _read(fixes.take(pa.array(readings.fix[kept])))
    rows = pa.concat_tables([state.select(_OF_READING), newer]).take(pa.array(place))
    count = _padded(state["readings"].to_numpy(), len(names), 0)
    count[readings.object[last]] = readings.number[last]
    newest = _padded(_us(state["newest_ts"]), len(names), NEVER)
    newest[readings.object[last]] = _us(fixes["event_ts"])[readings.fix[last]]
    return {
        **{name: rows[name] for name in _OF_READING},
        "readings": count,
        "newest_ts": newest,
        "object": names,
    }


def _read(fixes: pa.Table) -> pa.Table:
    """Fixes with the columns of the state."""
    position = fixes["position"].to_numpy()
    columns = {name: fixes[name] for name in _OF_READING[2:]}
    columns |= {"segment": segments_of(position), "row": rows_of(position)}
    schema = readings_schema()
    return (
        pa.table(columns)
        .select(_OF_READING)
        .cast(pa.schema([schema.field(name) for name in _OF_READING]))
    )


def _us(times: pa.ChunkedArray) -> np.ndarray:
    us: np.ndarray = times.cast(pa.int64()).to_numpy()
    return us


def _padded(values: np.ndarray, count: int, filler: int) -> np.ndarray:
    """A copy of values, with more behind them up to a count."""
    return np.append(values, np.full(count - len(values), filler, np.int64))
