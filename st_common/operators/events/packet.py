"""One segment of the log as one shard gets it: fixes, and the clock that all fixes of the segment drive."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from st_common.config.stream import PUBLIC_ID_KEY
from st_common.controls.reading import rows_of
from st_common.controls.rows import ControlRow
from st_common.operators.state.codec import (
    attributes_of,
    flat_attributes,
    from_blob,
    to_blob,
)
from st_common.operators.state.fixes import Attributes
from st_common.operators.state.intern import hashes_of, shards_of
from st_common.operators.state.limits import Limits, limits_from_json
from st_common.position import position_of


def _nowhere() -> np.ndarray:
    return np.empty(0, np.int32)


def _positions(segment: int, at: np.ndarray, row: np.ndarray) -> np.ndarray:
    segments = segment + at.astype(np.int64) if len(at) else segment
    positions: np.ndarray = position_of(segments, row.astype(np.int64))
    return positions


@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    """What one shard needs of one segment of the log, or of some adjacent ones.

    Columns have a row per fix: of the shard's own objects, or of all where queries move (every shard must know where
    every object is then, docs/adr/0008).

    Attributes:
        segment: the number of the first segment.
        rows: how many records the segments have.
        rejects: how many of these are no fixes.
        controls: the rows of a control segment, in their order; of a data segment none.
        objects: string, ids of the objects in the packet, each once.
        hashes: uint64, their hashes.
        row: int32[n], the row of each fix in its segment; fixes stand in log order.
        code: int32[n], places in `objects`.
        ts: int64[n], event time in microseconds.
        x: float64[n]; `y` likewise.
        gone: int8[n], 1 where the feed says that the object has left.
        clock_row: int32, the rows at which the largest event time of *all* fixes of the segment grows; every shard gets
            them, so that all agree on the clock at every row of the log (docs/adr/0008).
        clock_max: int64, to what it grows there.
        attributes: other columns, n values each.
        nulled: by attribute in how many fixes it could not be read.
        filtered_out: by clause of the stream's `where`, how many records it stopped.
        segments: how many segments these are.
        limits: what filters the fixes, None for nothing.
        at: int32[n], where there is more than one segment: in which each fix is, from 0; else empty.
        clock_at: int32, the same of clock rows.
        payload: the bytes of a control segment.
        seeds: what queries know that are registered in it, by their names (`runtime.seeds`).
    """

    segment: int
    rows: int
    rejects: int
    controls: Sequence[ControlRow]
    objects: pa.Array
    hashes: np.ndarray
    row: np.ndarray
    code: np.ndarray
    ts: np.ndarray
    x: np.ndarray
    y: np.ndarray
    gone: np.ndarray
    clock_row: np.ndarray
    clock_max: np.ndarray
    attributes: Attributes = field(default_factory=dict)
    nulled: dict[str, int] = field(default_factory=dict)
    filtered_out: dict[str, int] = field(default_factory=dict)
    segments: int = 1
    limits: Limits | None = None
    at: np.ndarray = field(default_factory=_nowhere)
    clock_at: np.ndarray = field(default_factory=_nowhere)
    payload: bytes = b""
    seeds: Mapping[str, bytes] = field(default_factory=dict)

    def positions(self) -> np.ndarray:
        """The place of each fix in the log; int64[n], ascending."""
        return _positions(self.segment, self.at, self.row)

    def clock_positions(self) -> np.ndarray:
        """The places in the log at which the largest event time grows; int64, ascending."""
        return _positions(self.segment, self.clock_at, self.clock_row)

    def to_blob(self) -> bytes:
        """The packet as bytes."""
        meta = {name: getattr(self, name) for name in _META}
        meta |= {"limits": None if self.limits is None else asdict(self.limits)}
        arrays = {n: getattr(self, n) for n in _ARRAYS}
        arrays[_PAYLOAD] = np.frombuffer(self.payload, np.uint8)
        for number, seed in enumerate(self.seeds.values()):
            arrays[f"{_SEED}{number}"] = np.frombuffer(seed, np.uint8)
        meta["seeds"] = list(self.seeds)
        return to_blob(arrays | flat_attributes(self.attributes), meta)

    @staticmethod
    def from_blob(blob: bytes) -> "Packet":
        """The packet that `to_blob` gave."""
        arrays, meta = from_blob(blob)
        seeds = {
            name: arrays[f"{_SEED}{number}"].tobytes()
            for number, name in enumerate(meta.pop("seeds"))
        }
        fields: dict[str, Any] = {name: arrays[name] for name in _ARRAYS} | meta
        payload = arrays[_PAYLOAD].tobytes()
        controls = rows_of(payload, stream="", segment=meta["segment"])
        return Packet(
            **{**fields, "limits": limits_from_json(meta["limits"])},
            controls=controls,
            payload=payload,
            attributes=attributes_of(arrays),
            seeds=seeds,
        )


_ARRAYS = (
    "objects",
    "hashes",
    "row",
    "code",
    "ts",
    "x",
    "y",
    "gone",
    "clock_row",
    "clock_max",
    "at",
    "clock_at",
)
_META = ("segment", "rows", "rejects", "nulled", "filtered_out", "segments")
_PAYLOAD, _SEED = "payload", "seed/"
_OWN_COLUMNS = frozenset({"row", "object", "event_ts", "x", "y", "gone"})


def control_packet(
    segment: int,
    payload: bytes,
    *,
    stream: str = "",
    seeds: Mapping[str, bytes] | None = None,
) -> Packet:
    """The packet of a control segment, the same for every shard.

    Args:
        segment: its number.
        payload: its bytes, a line of JSON for each row.
        stream: the name of the stream, for errors.
        seeds: what queries know that are registered there, by their names.

    Raises:
        LogError: a row that this version does not know; see `rows_of`.
    """
    controls = rows_of(payload, stream=stream, segment=segment)
    empty = np.empty(0, np.int64)
    return Packet(
        segment=segment,
        rows=len(controls),
        rejects=0,
        controls=controls,
        objects=pa.array([], pa.string()),
        hashes=np.empty(0, np.uint64),
        row=empty.astype(np.int32),
        code=empty.astype(np.int32),
        ts=empty,
        x=np.empty(0),
        y=np.empty(0),
        gone=empty.astype(np.int8),
        clock_row=empty.astype(np.int32),
        clock_max=empty,
        payload=payload,
        seeds=seeds or {},
    )


def nulled_in(packets: Iterable[Packet]) -> dict[str, int]:
    """In how many fixes of these segments each attribute could not be read; only those with some."""
    total: Counter[str] = Counter()
    for packet in packets:
        total.update(packet.nulled)
    return dict(total)


def filtered_out_of(packets: Iterable[Packet]) -> dict[str, int]:
    """How many records of these segments each clause of `where` stopped; only those with some."""
    total: Counter[str] = Counter()
    for packet in packets:
        total.update(packet.filtered_out)
    return dict(total)


def _objects(column: pa.ChunkedArray, id_key: str) -> dict[str, Any]:
    """The objects of fixes: ids with their hashes, each once, and by fix the place of its id."""
    objects = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    ids = objects.dictionary.cast(pa.string())
    codes = objects.indices.to_numpy(zero_copy_only=False)
    return {
        "objects": ids,
        "hashes": hashes_of(ids, id_key),
        "code": codes.astype(np.int32, copy=False),
    }


def _readings(fixes: pa.Table) -> dict[str, Any]:
    """The columns of fixes, with attributes."""
    others = (name for name in fixes.column_names if name not in _OWN_COLUMNS)
    return {
        "row": fixes["row"].to_numpy(),
        "ts": fixes["event_ts"].to_numpy(),
        "x": fixes["x"].to_numpy(),
        "y": fixes["y"].to_numpy(),
        "gone": fixes["gone"].to_numpy().astype(np.int8),
        "attributes": {name: _one(fixes[name]) for name in others},
    }


def _clock(fixes: pa.Table, at: np.ndarray) -> dict[str, Any]:
    """Where the clock moves: where the largest event time grows, and nowhere else. `at`: the segment of each fix."""
    ts, row = fixes["event_ts"].to_numpy(), fixes["row"].to_numpy()
    grows = _rising(ts)
    return {
        "clock_row": row[grows],
        "clock_max": ts[grows],
        "clock_at": at[grows] if len(at) else at,
    }


def pack(
    segment: int,
    fixes: pa.Table,
    *,
    rows: int,
    rejects: int,
    shards: int,
    following: Collection[int] | None = None,
    nulled: Mapping[str, int] | None = None,
    filtered_out: Mapping[str, int] | None = None,
    id_key: str = PUBLIC_ID_KEY,
    segments: int = 1,
    at: np.ndarray | None = None,
    limits: Limits | None = None,
) -> list[Packet]:
    """The decoded fixes of data segments as packets, one per shard; an object's shard is its hash modulo `shards`.

    Args:
        segment: the number of the first segment.
        fixes: as decoders give them.
        rows: how many records the segments have.
        rejects: how many of these are no fixes.
        shards: the number of shards.
        following: the shards that get all fixes, the same packet; the others get their own alone. None: all.
        nulled: how often each attribute was made null because it could not be read.
        filtered_out: how many records each clause of `where` stopped.
        id_key: by which ids are hashed.
        segments: how many segments these are.
        at: int64, of which of these each fix is, from 0; None where there is one.
        limits: by which the fixes are filtered; None: by none.

    Returns:
        A packet for each shard, in their order.
    """
    fixes = fixes.combine_chunks()
    place = np.empty(0, np.int32) if at is None else at
    whole = Packet(
        segment=segment,
        rows=rows,
        rejects=rejects,
        controls=(),
        nulled=dict(nulled or {}),
        filtered_out=dict(filtered_out or {}),
        segments=segments,
        limits=limits,
        at=place,
        **_objects(fixes["object"], id_key),
        **_readings(fixes),
        **_clock(fixes, place),
    )
    # Every shard needs all fixes: they share one packet.
    if following is None or shards == 1:
        return [whole] * shards
    shard_of = shards_of(whole.hashes, shards)
    return [
        whole if shard in following else _part(whole, shard_of, shard)
        for shard in range(shards)
    ]


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)


def _part(whole: Packet, shard_of: np.ndarray, shard: int) -> Packet:
    """What of a packet one shard gets where shards know their own objects alone; the clock goes to all."""
    mine, local, own = _own(shard_of, whole.code, shard)
    kept = {
        name: getattr(whole, name)[mine] for name in ("row", "ts", "x", "y", "gone")
    }
    kept |= {"at": whole.at[mine]} if len(whole.at) else {}
    attributes = whole.attributes
    if not isinstance(mine, slice):
        attributes = {
            name: values.filter(pa.array(mine)) for name, values in attributes.items()
        }
    return replace(
        whole,
        objects=whole.objects.filter(pa.array(own)),
        hashes=whole.hashes[own],
        code=local[whole.code][mine],
        attributes=attributes,
        **kept,
    )


def _own(
    shard_of: np.ndarray, code: np.ndarray, shard: int
) -> tuple[np.ndarray | slice, np.ndarray, np.ndarray]:
    """Which fixes are of the shard, the ids' numbers within the shard, and which ids are of the shard."""
    own = shard_of == shard
    local = (np.cumsum(own) - 1).astype(np.int32)
    return (slice(None) if own.all() else own[code]), local, own


def _rising(ts: np.ndarray) -> np.ndarray:
    """Where the running maximum of `ts` grows; bool[n]."""
    highest = np.maximum.accumulate(ts)
    return np.r_[True, highest[1:] > highest[:-1]] if len(ts) else np.empty(0, bool)
