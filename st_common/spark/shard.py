"""What one shard on Spark gives for a batch, as a blob."""

import dataclasses
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from st_common.engine.cross_shard import NOT_ASKING, Asking
from st_common.engine.timekeeper import heard
from st_common.operators.events.packet import Packet, filtered_out_of, nulled_in
from st_common.operators.runtime.failed import Failure
from st_common.operators.runtime.stages import Step
from st_common.operators.skeleton.cache_counts import to_json
from st_common.operators.state.codec import (
    from_blob,
    table_from_blob,
    table_to_blob,
    to_blob,
)
from st_common.spark.exchange.results import Untold

Ints = npt.NDArray[np.int64]


class Notes(NamedTuple):
    """What the driver must know of a shard beside its changes.

    Attributes:
        wanted: the time that the shard waits for, us UTC (see `operators.wanted`); None: it waits for none.
        asking: the shards that judge live queries which ask where other objects are.
        undealt: how many queries could be dealt by place, of how many; see `undealt_in`.
    """

    wanted: int | None = None
    asking: Asking = NOT_ASKING
    undealt: tuple[int, int] = (0, 0)


def result_blob(
    done: Step,
    read: list[Packet],
    notes: Notes = Notes(),  # noqa: B008 - immutable
    *,
    untold: Untold | None = None,
    is_kept: bool = False,
    decoded: tuple[dict[str, Any], dict[str, Any]] = ({}, {}),
) -> bytes:
    """What a shard gives for a batch, as one blob: changes, counters, and what the engine must know beside them.

    Args:
        done: what the step did.
        read: the packets that it read; what decoding counted in them, and what they say about time, goes along.
        notes: what the driver must know beside.
        untold: what others must know of the changes where shards may write them into files.
        is_kept: whether the shard keeps the changes, which then are not given.
        decoded: what it hands over for the archive, as `decoded.arrays_of` gives it.
    """
    told = done.changes.slice(0, 0) if is_kept else done.changes
    changes = table_to_blob(told.unify_dictionaries())
    foreign = np.empty(0, np.int64) if untold is None else untold.foreign()
    counters = {
        name: getattr(done.counters, name)
        for name in done.counters.__dataclass_fields__
    }
    meta: dict[str, Any] = {
        "next_segment": done.state.next_segment,
        "max_event": int(done.state.max_event),
    }
    meta |= {
        "rejects": sum(packet.rejects for packet in read),
        "nulled": nulled_in(read),
        "filtered_out": filtered_out_of(read),
    }
    meta["is_kept"] = is_kept
    meta |= {
        "heard": [dataclasses.asdict(one) for one in heard(read)],
        "wanted": notes.wanted,
        "asking": sorted(notes.asking.nearby),
        "needed": sorted(notes.asking.anywhere),
        "undealt": list(notes.undealt),
    }
    meta |= {
        "failures": [(one.query, one.version, one.why) for one in done.failures],
        "counters": counters,
        "caches": to_json(done.caches),
    }
    arrays = {"changes": pa.array([changes], pa.binary()), "foreign": foreign}
    return to_blob(arrays | decoded[0], meta | decoded[1])


def read_result(blob: bytes) -> tuple[pa.Table, dict[str, Any]]:
    """The changes and the other values of a `result_blob`, those by their names."""
    arrays, meta = from_blob(blob)
    return table_from_blob(arrays["changes"][0].as_buffer()), meta


def foreign_in(blobs: Iterable[bytes]) -> Ints:
    """The positions that some shards tell something at which are no fixes of their own; int64, ascending, each once."""
    parts = [np.asarray(from_blob(blob)[0]["foreign"]) for blob in blobs]
    return np.unique(np.concatenate(parts))


def failures_in(metas: Iterable[dict[str, Any]]) -> list[Failure]:
    """The queries that failed by what shards say beside their changes, each version once."""
    failures = {
        (query, version): Failure(query=query, version=version, why=why)
        for meta in metas
        for query, version, why in meta["failures"]
    }
    return list(failures.values())
