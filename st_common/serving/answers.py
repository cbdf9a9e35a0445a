"""Changes to answers: who is in the answer of a query, now or at a time."""

from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.home import Home
from st_common.query.registry import find, history
from st_common.serving.changes import stream_changes

ANSWER = pa.schema([("object", pa.string()), ("partner", pa.string()), ("since_ts", pa.timestamp("us", "UTC"))])


def answer(home: Home, query: str, at: datetime | None = None) -> pa.Table:
    """The answer of a query: object, partner (null without a join) and since when, by object and partner.

    `since_ts` is the event time of the change that brought the pair into the answer. `at` (with a time zone) takes the
    changes with event times up to then. The answer of a dropped query is empty now, and was not before its drop.

    Raises:
        QueryError: no query was ever registered by that name.
    """
    find(home, query)
    streams = sorted({row.stream for row in history(home, query)})  # dropped here, registered there: one at a time
    found = [fold(_until(stream_changes(home, stream, query), at)).select(ANSWER.names) for stream in streams]
    return pa.concat_tables(found).cast(ANSWER).sort_by([("object", "ascending"), ("partner", "ascending")])


def fold(changes: pa.Table) -> pa.Table:
    """The answers that changes of one stream lead to: query, object, partner, since_ts; rows in no special order.

    The changes may come in any order: (position, seq) orders them. A pair is in the answer when its last change with a
    sign other than 0 has +1.
    """
    signed = changes.filter(pc.not_equal(changes["sign"], 0)).combine_chunks()
    order = np.lexsort((signed["seq"].to_numpy(), signed["position"].to_numpy()))
    key = _pair_numbers(signed)[order]
    # the first occurrence from the back is the last change of each pair
    _, from_back = np.unique(key[::-1], return_index=True)
    last = order[len(order) - 1 - from_back]
    members = last[signed["sign"].to_numpy()[last] > 0]
    return (
        signed.take(pa.array(members))
        .select(["query", "object", "partner", "event_ts"])
        .rename_columns(["query", "object", "partner", "since_ts"])
    )


def _pair_numbers(changes: pa.Table) -> np.ndarray:
    """A number for every (query, object, partner), null being a partner of its own."""
    key = np.zeros(len(changes), np.int64)
    for name in ("query", "object", "partner"):
        codes = pc.dictionary_encode(changes[name], null_encoding="encode").combine_chunks()
        indices = codes.indices.to_numpy(zero_copy_only=False)
        # renumbered after each column, so that the product stays below rows x rows
        _, key = np.unique(key * max(len(codes.dictionary), 1) + indices, return_inverse=True)
    return key


def _until(changes: pa.Table, at: datetime | None) -> pa.Table:
    if at is None:
        return changes
    return changes.filter(pc.less_equal(changes["event_ts"], pa.scalar(at, pa.timestamp("us", "UTC"))))
