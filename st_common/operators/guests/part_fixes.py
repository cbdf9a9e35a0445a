"""The fixes of some objects in a part of the log, whatever packets they came in, and packets with more fixes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from st_common.operators.events.packet import Packet
from st_common.operators.state.codec import attributes_of, flat_attributes
from st_common.operators.state.taken import Attributes, joined_attributes
from st_common.position import position_of, segments_of

_COLUMNS = ("position", "code", "ts", "x", "y", "gone")
_PART = "part/"
_NAMES = ("objects", "hashes", *_COLUMNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFixes:
    """Fixes of some objects; n of them, in any order.

    Attributes:
        objects: string, the ids of objects; one may stand there more than once.
        hashes: uint64, their hashes.
        position: int64[n], places in the log.
        code: int64[n], places in `objects`.
        ts: int64[n], event time in microseconds.
        x: float64[n]; `y` likewise.
        gone: int8[n], 1 where the feed says that the object has left.
        attributes: other columns, n values each.
    """

    objects: pa.Array
    hashes: np.ndarray
    position: np.ndarray
    code: np.ndarray
    ts: np.ndarray
    x: np.ndarray
    y: np.ndarray
    gone: np.ndarray
    attributes: Attributes

    def __len__(self) -> int:
        return len(self.position)

    @property
    def hash_of_each(self) -> np.ndarray:
        """The hash of the object of each fix; uint64[n]."""
        return np.asarray(self.hashes[self.code])

    @staticmethod
    def of(packets: Sequence[Packet]) -> "PartFixes":
        """The fixes of packets."""
        return joined([_of_packet(packet) for packet in packets if len(packet.ts)])

    def at(self, rows: np.ndarray) -> "PartFixes":
        """Those at some rows (int64), with their objects alone."""
        is_used = np.zeros(len(self.hashes), bool)
        is_used[self.code[rows]] = True
        used = np.flatnonzero(is_used)
        code = (np.cumsum(is_used) - 1)[self.code[rows]]
        places = pa.array(rows)
        columns = {name: getattr(self, name)[rows] for name in _COLUMNS}
        return PartFixes(
            **{**columns, "code": code},
            objects=self.objects.take(pa.array(used)),
            hashes=self.hashes[used],
            attributes={
                n: values.take(places) for n, values in self.attributes.items()
            },
        )

    def to_arrays(self) -> dict[str, Any]:
        """As arrays for a blob."""
        columns = {_PART + name: getattr(self, name) for name in _NAMES}
        named = {_PART + name: values for name, values in self.attributes.items()}
        return columns | flat_attributes(named)

    @staticmethod
    def from_arrays(arrays: Mapping[str, Any]) -> "PartFixes":
        """What `to_arrays` gave, among others or not; none where there is nothing of it."""
        if f"{_PART}position" not in arrays:
            return joined([])
        columns = {name: arrays[_PART + name] for name in _NAMES}
        attributes = {
            name.removeprefix(_PART): values
            for name, values in attributes_of(arrays).items()
            if name.startswith(_PART)
        }
        return PartFixes(**columns, attributes=attributes)


def _of_packet(packet: Packet) -> PartFixes:
    return PartFixes(
        objects=packet.objects.cast(pa.string()),
        hashes=packet.hashes,
        position=packet.positions(),
        code=packet.code.astype(np.int64),
        ts=packet.ts,
        x=packet.x,
        y=packet.y,
        gone=packet.gone,
        attributes=packet.attributes,
    )


def joined(parts: Sequence[PartFixes]) -> PartFixes:
    """Some fixes, then others; attributes are null where a part lacks one."""
    starts = np.cumsum([0, *(len(part.hashes) for part in parts)])
    codes = [part.code + start for part, start in zip(parts, starts, strict=False)]
    empty = {name: np.empty(0, kind) for name, kind in _KINDS.items()}
    columns = {
        name: np.concatenate([empty[name], *(getattr(part, name) for part in parts)])
        for name in ("hashes", "position", "ts", "x", "y", "gone")
    }
    none = pa.array([], pa.string())
    return PartFixes(
        objects=pa.concat_arrays([none, *(part.objects for part in parts)]),
        code=np.concatenate([empty["code"], *codes]),
        attributes=joined_attributes([(len(p), p.attributes) for p in parts]),
        **columns,
    )


_KINDS = {
    "hashes": np.uint64,
    "position": np.int64,
    "code": np.int64,
    "ts": np.int64,
    "x": np.float64,
    "y": np.float64,
    "gone": np.int8,
}


def packets_with(packets: Sequence[Packet], more: PartFixes) -> list[Packet]:
    """Packets with fixes of other objects among their own, in log order.

    Args:
        packets: of one shard, of adjacent segments in log order.
        more: fixes of these segments, of objects that none of the packets has.
    """
    if not len(more):
        return list(packets)
    order = np.argsort(more.position, kind="stable")
    position = more.position[order]
    starts = [position_of(packet.segment, 0) for packet in packets]
    cuts = np.append(np.searchsorted(position, starts), len(position)).tolist()
    return [
        _packet_with(packet, more.at(order[start:end])) if end > start else packet
        for packet, start, end in zip(packets, cuts, cuts[1:], strict=False)
    ]


def _packet_with(packet: Packet, more: PartFixes) -> Packet:
    """A packet with more fixes of its segments."""
    every = joined([_of_packet(packet), more])
    order = np.argsort(every.position, kind="stable")
    position, places = every.position[order], pa.array(order)
    columns = {name: getattr(every, name)[order] for name in ("ts", "x", "y", "gone")}
    segment = segments_of(position)
    starts = position_of(segment, np.zeros_like(segment))
    at = (segment - packet.segment).astype(np.int32)
    return replace(
        packet,
        objects=every.objects,
        hashes=every.hashes,
        code=every.code[order].astype(np.int32),
        row=(position - starts).astype(np.int32),
        at=at if packet.segments > 1 else at[:0],
        attributes={
            name: values.take(places) for name, values in every.attributes.items()
        },
        **columns,
    )
