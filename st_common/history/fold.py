"""Changes to answers: who is in, since when, and with which values."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_STAMP = pa.timestamp("us", tz="UTC")
MEMBERS = pa.schema(
    [
        ("query", pa.string()),
        ("object", pa.string()),
        ("partner", pa.string()),
        ("query_version", pa.int32()),
        ("position", pa.int64()),
        ("since_ts", _STAMP),
        ("value", pa.float64()),
        ("fields", pa.string()),
        ("x", pa.float64()),
        ("y", pa.float64()),
    ]
)
_NEEDED = pa.schema(
    [
        *(
            field.with_name("event_ts") if field.name == "since_ts" else field
            for field in MEMBERS
        ),
        ("seq", pa.int32()),
        ("sign", pa.int8()),
    ]
)
_SOURCES = {"since_ts": "event_ts"}


def fold(changes: pa.Table, members: pa.Table | None = None) -> pa.Table:
    """The answers that the changes of one stream lead to.

    A pair of object and partner is in the answer when its last change with a sign other than 0 has +1. Value and fields
    are the newest that a change gave since then: of a further fix of a member (sign 0), too.

        position  object  sign  value
        1         a       +1    2.0
        2         b       +1    5.0
        3         a        0    3.0
        4         b       -1                 ->   a, position 1, value 3.0

    Args:
        changes: rows of the contract `changes`, in any order: (position, seq) orders them.
        members: the answers before them, as this function gave them; None when the changes begin with the log.

    Returns:
        Rows of `MEMBERS`, in no order; `position`, `since_ts` (event time), `x` and `y` are those of the change that
        brought the pair in. A null partner is a partner of its own.
    """
    rows = (
        pa.concat_tables([_as_changes(members), _needed(changes)])
        if members is not None
        else _needed(changes)
    )
    rows = rows.combine_chunks()
    order = np.lexsort((rows["seq"].to_numpy(), rows["position"].to_numpy()))
    pair, sign = _pair_numbers(rows)[order], rows["sign"].to_numpy()[order]
    # Rows with sign 0 tell something of a member, and neither bring it in nor take it out.
    signed = np.flatnonzero(sign)
    pairs, at = _last(pair[signed])
    is_in = sign[signed[at]] > 0
    members_of, entered = pairs[is_in], signed[at[is_in]]
    columns = {
        name: rows[_SOURCES.get(name, name)].take(pa.array(order[entered]))
        for name in MEMBERS.names
    }
    for name in ("value", "fields"):
        told = np.flatnonzero(rows[name].is_valid().to_numpy()[order])
        newest = _newest(pair[told], told, members_of, entered)
        columns[name] = rows[name].take(pa.array(order[newest]))
    return pa.table(columns).cast(MEMBERS)


def _newest(
    pair: np.ndarray, told: np.ndarray, members: np.ndarray, entered: np.ndarray
) -> np.ndarray:
    """For each member the last row that tells something since it entered, else the row by which it entered."""
    distinct, at = _last(pair)
    if not len(distinct):
        return entered
    where = np.minimum(np.searchsorted(distinct, members), len(distinct) - 1)
    last = np.where(distinct[where] == members, told[at[where]], -1)
    newest: np.ndarray = np.maximum(last, entered)
    return newest


def _needed(changes: pa.Table) -> pa.Table:
    return changes.select(_NEEDED.names).cast(_NEEDED)


def _as_changes(members: pa.Table) -> pa.Table:
    """Members as the changes that brought them in; their order among each other does not matter."""
    signs, seqs = (
        pa.array(np.ones(len(members), np.int8)),
        pa.array(np.zeros(len(members), np.int32)),
    )
    return pa.table(
        [*(members[name] for name in MEMBERS.names), seqs, signs], schema=_NEEDED
    )


def _last(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct keys, rising, and where each stands for the last time."""
    distinct, from_back = np.unique(keys[::-1], return_index=True)
    return distinct, len(keys) - 1 - from_back


def _pair_numbers(changes: pa.Table) -> np.ndarray:
    """A number for every (query, object, partner), null being a partner of its own."""
    key = np.zeros(len(changes), np.int64)
    for name in ("query", "object", "partner"):
        codes = pc.dictionary_encode(
            changes[name], null_encoding="encode"
        ).combine_chunks()
        indices = codes.indices.to_numpy(zero_copy_only=False)
        # renumbered after each column, so that the product stays below rows x rows
        _, key = np.unique(
            key * max(len(codes.dictionary), 1) + indices, return_inverse=True
        )
    return key
