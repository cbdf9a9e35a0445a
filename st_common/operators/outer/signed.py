"""Rows with signs: what is told of a query, as another one takes it that asks about its rows."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.operators.turn.changes import CAUSES, order_of
from st_common.operators.turn.turn import Turn
from st_common.runs import is_first, is_last

FIX = ("fix_ts", "x", "y")
"""What is known of the fix that a row is told with: its time, and where the object was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """Rows in the order in which changes are settled; n of them, at k instants.

    Attributes:
        rows: as they were told, with the columns of `SHARD_SCHEMA`; none once rows are among them that go by
            themselves (`lingering`).
        query: int64[n], the number of the query.
        target: int64[n], the key: the query and what names the row among its rows (see `names_of`).
        weight: int64[n], -1 for one that leaves, 1 for one that comes or that has other values now.
        at: int64[n], the place of its instant.
        cause: int64[n], why: places in `CAUSES`.
        fix_ts: int64[n], the time of the fix that each is told with.
        x: float64[n], where that was, NaN for nowhere; `y` likewise.
        y: see `x`.
        rank: int64[n], its place in the order of what is told at one time.
        position: int64[k], the row of the log of each instant, rising.
        tick: int64[k], its event time in microseconds, rising among those of one position.
        others: int64, the places of those instants that were asked for.
    """

    rows: pa.Table
    query: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    at: np.ndarray
    cause: np.ndarray
    fix_ts: np.ndarray
    x: np.ndarray
    y: np.ndarray
    rank: np.ndarray
    position: np.ndarray
    tick: np.ndarray
    others: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Instants:
    """Rows of the log (int64[k]) and event times in microseconds (int64[k]), in any order."""

    position: np.ndarray
    tick: np.ndarray


def signed(turn: Turn, told: pa.Table, also: Instants) -> Signed:
    """What was told of queries as rows with signs; of each key and instant the last one, which says what is then.

    Args:
        turn: the run.
        told: rows of `SHARD_SCHEMA` in any order, all of them of queries whose rows are asked about.
        also: instants that are among the others, though no row may be of them.
    """
    told = told.unify_dictionaries().combine_chunks()
    rows = told.take(pa.array(order_of(told)))
    query = rows["query_order"].to_numpy().astype(np.int64)
    names = turn.numbering.partners_of(names_of(rows))
    target = turn.numbering.targets_of(query, names)
    own = Instants(
        position=rows["position"].to_numpy(), tick=rows["event_ts"].to_numpy()
    )
    instants = instants_of(own, also)
    at, others = instants.at[: len(rows)], instants.at[len(rows) :]
    # Stable: what was settled last of a key and an instant stands last.
    order = np.lexsort((at, target))
    kept = np.sort(order[is_last(target[order], at[order])])
    rows = rows.take(pa.array(kept))
    return Signed(
        rows=rows,
        query=query[kept],
        target=target[kept],
        weight=np.where(rows["sign"].to_numpy() < 0, -1, 1),
        at=at[kept],
        cause=pc.index_in(
            rows["cause"].cast(pa.string()), value_set=pa.array(CAUSES)
        ).to_numpy(),
        **{name: rows[name].to_numpy() for name in FIX},
        rank=rows["rank"].to_numpy(),
        position=instants.position,
        tick=instants.tick,
        others=others,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered:
    """Different instants in their order, `position` and `tick`; `at` are the places among them of those given."""

    position: np.ndarray
    tick: np.ndarray
    at: np.ndarray


def instants_of(own: Instants, also: Instants) -> Ordered:
    """The instants in their order, and the places of the own ones, then of the others."""
    position = np.concatenate([own.position, also.position])
    ts = np.concatenate([own.tick, also.tick])
    order = np.lexsort((ts, position))
    starts = is_first(position[order], ts[order])
    at = np.empty(len(order), np.int64)
    at[order] = np.cumsum(starts) - 1
    kept = order[starts]
    return Ordered(position=position[kept], tick=ts[kept], at=at)


def names_of(rows: pa.Table) -> pa.Array:
    """What tells each row from all others of its query: its object, and its partner, which of a fix is its time.

    Args:
        rows: with the columns of `SHARD_SCHEMA`.

    Example:
        object 'bus 1', partner 'a'         5:bus 1 1:a
        object 'bus 1', no partner          5:bus 1 0:
    """
    parts = [_measured(rows[name]) for name in ("object", "partner")]
    return pc.binary_join_element_wise(*parts, " ").combine_chunks()


def _measured(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts behind their lengths, so that no two pairs of them are one text; null as an empty one."""
    known = pc.fill_null(texts.cast(pa.string()), "")
    lengths = pc.utf8_length(known).cast(pa.string())
    return pc.binary_join_element_wise(lengths, known, ":")
