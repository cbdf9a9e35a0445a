"""What has arrived and is not stored yet: so much at most, and who brings more waits, or is passed over."""

import asyncio
from collections import deque
from collections.abc import Sequence

from st_common.sources.arrival import Arrival


class Buffer:
    """Arrivals on their way to the log, in their order; for one event loop.

    Args:
        most_bytes: how much may wait.
        skips: what is more is left out and counted; else whoever brings it waits.
    """

    def __init__(self, most_bytes: int, *, skips: bool = False) -> None:
        self._most, self._skips = most_bytes, skips
        self._waiting: deque[Arrival] = deque()
        self._size, self.skipped, self.taken = 0, 0, 0
        self._has_changed = asyncio.Condition()
        self._is_closed = self._is_held = False

    @property
    def size(self) -> int:
        """Bytes that wait."""
        return self._size

    async def put(self, arrival: Arrival) -> None:
        """Brings some records; waits where there is no room, or leaves them out.

        One arrival always has room in an empty buffer, however large it is.
        """
        async with self._has_changed:
            if self._skips and not self._has_room(arrival):
                self.skipped += arrival.records
                arrival.stored(None)
                return
            await self._has_changed.wait_for(lambda: self._has_room(arrival))
            self._waiting.append(arrival)
            self._size += arrival.size
            self._has_changed.notify_all()

    async def take(self, *, most_bytes: int, gather_s: float) -> Sequence[Arrival]:
        """The next arrivals: what comes within so many seconds of the first, and is not too much.

        Whoever takes them has stored those that it took before.

        Args:
            most_bytes: what has come to so much is taken at once.
            gather_s: how long is waited for more.

        Returns:
            At least one; none at the end, once the buffer was closed.
        """
        async with self._has_changed:
            self._is_held = False
            self._has_changed.notify_all()
            await self._has_changed.wait_for(lambda: self._waiting or self._is_closed)
            try:
                async with asyncio.timeout(gather_s):
                    await self._has_changed.wait_for(
                        lambda: self._size >= most_bytes or self._is_closed
                    )
            except TimeoutError:
                pass  # what has come by now is enough
            return self._taken(most_bytes)

    async def drained(self) -> None:
        """Waits until nothing waits, and what was taken is stored."""
        async with self._has_changed:
            await self._has_changed.wait_for(
                lambda: not (self._waiting or self._is_held)
            )

    async def close(self) -> None:
        """Nothing more will come; what waits can still be taken."""
        async with self._has_changed:
            self._is_closed = True
            self._has_changed.notify_all()

    def _has_room(self, arrival: Arrival) -> bool:
        return not self._waiting or self._size + arrival.size <= self._most

    def _taken(self, most_bytes: int) -> Sequence[Arrival]:
        taken: list[Arrival] = []
        size = 0
        while self._waiting and (not taken or size < most_bytes):
            taken.append(self._waiting.popleft())
            size += taken[-1].size
        self._size -= size
        self.taken += len(taken)
        self._is_held = bool(taken)
        self._has_changed.notify_all()
        return taken
