"""What tasks decoded and filtered, for the archive of their driver: with what each shard answers for a plan.

segments of a plan       [ 40 41 42 43 | 44 45 46 47 ]
decoded by                  task A         task B            each hands over its share, once
late, filtered by        every shard, of its own objects
the driver               40 .. 47 in order; a part that nobody handed over, as its task broke off, it decodes itself
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from st_common.config.stream import StreamSettings
from st_common.decode.batch import Part
from st_common.decode.decoded import Decoded
from st_common.engine.archive_queue import cut, decided_by, end_of, filtered_by
from st_common.log.log import Log, Segment
from st_common.log.reader import Piece, pieces
from st_common.log.record_settings import Readings
from st_common.operators.position_filter.filter import Filtered
from st_common.operators.runtime.stages import Step
from st_common.operators.state.codec import from_blob, table_from_blob, table_to_blob
from st_common.operators.state.settings import Settings

_AT, _FILTERED = "at", ("position", "reason", "value")


def arrays_of(
    done: Step, decoded: Sequence[Piece], settings: Settings
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a shard hands over, as arrays and JSON values for a blob.

    Args:
        done: what its step did.
        decoded: what its task decoded, and hands over by this shard.
        settings: which shard it is.
    """
    filtered = filtered_by(done, settings)
    arrays: dict[str, Any] = {
        f"filtered/{name}": getattr(filtered, name) for name in _FILTERED
    }
    arrays["late"] = done.late
    of = [(one, one.part) for one in decoded if one.part is not None]
    for name, rows in (
        ("fixes", [_marked(part.decoded.fixes, part.fix_at) for _, part in of]),
        ("rejects", [_marked(part.decoded.rejects, part.reject_at) for _, part in of]),
    ):
        blobs = [table_to_blob(one.unify_dictionaries()) for one in rows]
        arrays[f"decoded/{name}"] = pa.array(blobs, pa.large_binary())
    places = [(one.segments[0].number, part.segments) for one, part in of]
    rows = [part.decoded.rows for _, part in of]
    return arrays, {"decided": decided_by(done.state), "places": places, "rows": rows}


def _marked(rows: pa.Table, at: np.ndarray) -> pa.Table:
    """Rows with the segment of each, counted from the first."""
    return rows.append_column(_AT, pa.array(at))


def handed_over(
    blobs: Iterable[bytes],
    segments: Sequence[Segment],
    log: Log,
    stream: StreamSettings,
) -> tuple[list[Piece], list[Filtered], np.ndarray, int]:
    """What all shards hand over of a plan: pieces without a gap, what is filtered and late, up to where it is known.

    Args:
        blobs: what each shard answered.
        segments: of the plan; at least one.
        log: the log.
        stream: the settings of the stream.
    """
    read = [from_blob(blob) for blob in blobs]
    readings = Readings(log, stream)
    found = [
        one
        for arrays, meta in read
        for one in _pieces(arrays, meta, segments, readings)
    ]
    filtered = [
        Filtered(
            object=np.zeros(len(arrays["filtered/position"]), np.int64),
            **{name: np.asarray(arrays[f"filtered/{name}"]) for name in _FILTERED},
        )
        for arrays, _ in read
    ]
    decided = min(meta["decided"] for _, meta in read)
    late = np.concatenate([np.asarray(arrays["late"]) for arrays, _ in read])
    return _whole(found, segments, log, stream), filtered, late, decided


def _pieces(
    arrays: Any, meta: Any, segments: Sequence[Segment], readings: Readings
) -> Iterable[Piece]:
    first = segments[0].number
    fixes, rejects = arrays["decoded/fixes"], arrays["decoded/rejects"]
    for number, ((start, count), rows) in enumerate(
        zip(meta["places"], meta["rows"], strict=True)
    ):
        of = segments[start - first : start - first + count]
        of_fixes, fix_at = _unmarked(fixes[number])
        of_rejects, reject_at = _unmarked(rejects[number])
        decoded = Decoded(fixes=of_fixes, rejects=of_rejects, rows=rows)
        part = Part(segments=count, decoded=decoded, fix_at=fix_at, reject_at=reject_at)
        yield Piece(segments=of, part=part, stream=readings.of(of[0]))


def _unmarked(blob: Any) -> tuple[pa.Table, np.ndarray]:
    rows = table_from_blob(blob.as_buffer())
    return rows.drop_columns([_AT]), rows[_AT].to_numpy()


def _whole(
    found: Sequence[Piece],
    segments: Sequence[Segment],
    log: Log,
    stream: StreamSettings,
) -> list[Piece]:
    """Pieces in order, each segment once; what is missing, control rows among it, is read from the log."""
    whole: list[Piece] = []
    first, end = segments[0].number, segments[-1].number + 1
    at = first
    ordered = sorted(((one.segments[0].number, n) for n, one in enumerate(found)))
    for start, n in [*ordered, (end, -1)]:
        if start > at:
            whole += pieces(log, segments[at - first : start - first], stream)
            at = start
        if n >= 0 and end_of(found[n]) > at:
            whole += cut([found[n]], at, end)
            at = end_of(found[n])
    return whole
