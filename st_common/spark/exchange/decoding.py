"""A backlog that each task decodes a share of, and gives the others what is theirs (docs/adr/0085).

    segments of a plan       [ 40 41 42 43 | 44 45 46 47 ]
    decoded by                  task A         task B
    shards of A, 0 and 2     40 .. 43 of its own, 44 .. 47 asked of B
    shards of B, 1 and 3     40 .. 43 asked of A, 44 .. 47 of its own

Whoever does not answer is decoded for by the one who asks: every task can read the whole log.
"""

import threading
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from st_common.config.home import Home
from st_common.engine.archive_queue import end_of
from st_common.engine.cross_shard import Shards
from st_common.engine.damage import tell_damage
from st_common.engine.packets import packets_of
from st_common.log.log import Segment
from st_common.log.reader import Piece
from st_common.operators.events.packet import Packet
from st_common.spark.exchange.peers import Arrays, Ask, Peers
from st_common.spark.task_settings import TaskSettings

PACKETS = "packets"
"""What others are asked for."""
SHARED_FROM_BYTES = 1 << 20
"""From so many bytes on a part of the log is shared: below that asking takes longer than decoding."""
_HELD = 2
_NEWEST = 4
"""So many of the parts that were decoded last are kept for the archive, until they are taken."""

Slice = list[list[Packet]]
"""Of each part of some segments that was decoded together: a packet for each shard."""
_Key = tuple[int, int, Shards]


class Decoding:
    """Decodes segments for this task and for others, each time once; from several threads.

    Args:
        feed: the stream, and its shards.
    """

    def __init__(self, feed: TaskSettings) -> None:
        self._feed, self._log = feed, feed.log()
        self._notice = partial(tell_damage, Home(Path(feed.home)), feed.stream.name)
        self._held: OrderedDict[_Key, Slice] = OrderedDict()
        self._newest: deque[list[Piece]] = deque(maxlen=_NEWEST)
        self._lock = threading.Lock()

    def decoded(self, segments: Sequence[Segment], *, following: Shards) -> Slice:
        """The packets of all shards; those of the newest parts of the log are kept for whoever asks next.

        Args:
            segments: adjacent segments, in order; at least one.
            following: the shards that get all fixes.

        Raises:
            LogError: as `packets_of`.
        """
        key = segments[0].number, segments[-1].number + 1, following
        with self._lock:  # whoever asks for what is being decoded waits for that
            if key not in self._held:
                self._held[key] = self.decode(segments, following=following)
                while len(self._held) > _HELD:
                    self._held.popitem(last=False)
            return self._held[key]

    def decode(self, segments: Sequence[Segment], *, following: Shards) -> Slice:
        """The same, of which nothing is kept."""
        seen: list[Piece] = []
        made = packets_of(
            self._log,
            segments,
            self._feed.stream,
            shards=self._feed.shards,
            following=following,
            notice=self._notice,
            seen=seen.append,
        )
        packets = list(made)
        self._newest.append(seen)
        return packets

    def taken(self, start: int, end: int) -> list[Piece]:
        """What this task has decoded of some segments, each piece once: the archive of the driver stores it."""
        found = [some for some in list(self._newest) if _is_in(some, start, end)]
        for some in found:
            with suppress(ValueError):  # it has made room meanwhile
                self._newest.remove(some)
        return [piece for some in found for piece in some]

    def answer(
        self, asked: Mapping[str, Any], _arrays: Arrays
    ) -> tuple[list[int], dict[str, Any]]:
        """What another task asks for.

        Args:
            asked: `start` and `end` of the segments, and as lists `shards` and who is `following` all objects.

        Returns:
            How many packets each of these shards has; and these as blobs, shard after shard.

        Raises:
            LogError: as `packets_of`.
        """
        segments = self._log.segments(asked["start"], end=asked["end"])
        parts = self.decoded(segments, following=frozenset(asked["following"]))
        shards = asked["shards"]
        blobs = [part[shard].to_blob() for shard in shards for part in parts]
        counts = [len(parts)] * len(shards)
        return counts, {PACKETS: pa.array(blobs, pa.large_binary())}


def _is_in(some: Sequence[Piece], start: int, end: int) -> bool:
    return (
        bool(some) and start <= some[0].segments[0].number and end_of(some[-1]) <= end
    )


def shared_packets(
    decoding: Decoding,
    peers: Peers,
    segments: Sequence[Segment],
    shards: Sequence[int],
    *,
    following: Shards,
) -> dict[int, list[Packet]]:
    """The packets of some shards, of which others decode their share where there is enough to share.

    Args:
        decoding: what this task decodes by.
        peers: the tasks.
        segments: adjacent segments, in order.
        shards: the shards of this task.
        following: the shards that get all fixes.

    Returns:
        By shard, in log order.

    Raises:
        LogError: as `packets_of`, also where another task met it.
    """
    size, mine = sum(segment.size for segment in segments), peers.number
    is_little = not segments or size < SHARED_FROM_BYTES
    if mine is None or peers.count == 1 or is_little:
        parts = decoding.decode(segments, following=following)
        return {shard: [part[shard] for part in parts] for shard in shards}
    shares = _shares(segments, peers.count)
    own = []
    if shares[mine]:
        own = decoding.decoded(shares[mine], following=following)
    alike = [shard for shard in shards if shard in following]
    # Those that follow all objects get the same: one of them is enough.
    asked = [shard for shard in shards if shard not in alike[1:]]
    asks = {
        member: _ask(share, asked, following)
        for member, share in enumerate(shares)
        if share and member != mine
    }
    given = {
        member: _by_shard(asked, *answer) for member, answer in peers.ask(asks).items()
    }
    given[mine] = {shard: [part[shard] for part in own] for shard in asked}
    read = {
        shard: [packet for member in sorted(given) for packet in given[member][shard]]
        for shard in asked
    }
    return {shard: read[shard if shard in read else alike[0]] for shard in shards}


def _shares(segments: Sequence[Segment], members: int) -> list[Sequence[Segment]]:
    """Adjacent segments for each member, about equally many bytes; some may get none."""
    sizes = np.array([segment.size for segment in segments])
    middles = np.cumsum(sizes) - sizes / 2
    inner = sizes.sum() * np.arange(1, members) / members
    cuts = [0, *np.searchsorted(middles, inner).tolist(), len(segments)]
    return [segments[start:end] for start, end in pairwise(cuts)]


def _ask(segments: Sequence[Segment], shards: Sequence[int], following: Shards) -> Ask:
    place = {"start": segments[0].number, "end": segments[-1].number + 1}
    who = {"shards": list(shards), "following": sorted(following)}
    return Ask({"what": PACKETS, **who, **place}, {})


def _by_shard(
    shards: Sequence[int], counts: Sequence[int], arrays: Mapping[str, Any]
) -> dict[int, list[Packet]]:
    """The packets of an answer."""
    ends = np.cumsum(counts).tolist()
    starts = [0, *ends[:-1]]
    blobs = arrays[PACKETS]
    return {
        shard: [Packet.from_blob(blob.as_buffer()) for blob in blobs[start:end]]
        for shard, start, end in zip(shards, starts, ends, strict=True)
    }
