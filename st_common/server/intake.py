"""Fixes that are sent by HTTP: gathered for some milliseconds, and durable before anybody is told so."""

import asyncio
from collections import OrderedDict
from dataclasses import replace

from st_common.capture.files import wall_clock
from st_common.errors import TransientError
from st_common.feeds.arrival import Arrival
from st_common.feeds.buffer import Buffer
from st_common.feeds.writer import HERE, Writer
from st_common.server.bodies import arrival_of
from st_common.server.place import Place
from st_common.settings import StreamSettings

_SOURCE = "http-server"
_GATHER_S = 0.005
_BATCH_BYTES = 4 << 20
_WAITING_BYTES = 64 << 20
_KEYS = 1000
"""So many of the newest keys are known after a kill."""
_MOST_KEYS = 100_000
"""So many are known while the server lives."""
_KEY = "key:"


class Intake:
    """What is sent for one stream, on its way into the log; for one event loop.

    Args:
        place: where the server works.
        stream: the stream.
    """

    def __init__(self, place: Place, stream: StreamSettings) -> None:
        self._stream = stream
        self._writer = Writer(place.home, stream, _SOURCE)
        self._buffer = Buffer(_WAITING_BYTES)
        known = self._writer.places.read()
        self._keys = OrderedDict(
            (part, position) for part, position in known.items() if _KEY in part
        )
        self._waiting: dict[str, asyncio.Future[int]] = {}
        self._pending: set[asyncio.Future[int]] = set()
        self._failed: Exception | None = None
        self._task = asyncio.create_task(self._store())

    @property
    def warning(self) -> str | None:
        """Why most of what is sent cannot be read; None: it can."""
        return self._writer.judge.warning(now_us=wall_clock())

    async def put(
        self, body: bytes, media: str, key: str | None, *, is_live: bool = True
    ) -> tuple[int, int]:
        """Stores fixes; what comes with a key that is known is not stored again.

        Args:
            body: the fixes.
            media: of which kind it is.
            key: names this request, whenever it is made again.
            is_live: whether they happen now, so that time goes on after them.

        Returns:
            How many records were sent, and the position of the first one in the log.

        Raises:
            UnsupportedError: bodies of this kind are not taken.
            ConfigError: there is nothing in it.
            StorageError: the disk is full, or refuses.
        """
        told = await asyncio.to_thread(arrival_of, body, media, self._stream)
        arrival = replace(told, is_live=is_live)
        part = None if key is None else f"{_KEY}{key}"
        if part is not None and part in self._keys:
            return arrival.records, self._keys[part]
        if part is not None and part in self._waiting:
            return arrival.records, await asyncio.shield(self._waiting[part])
        return arrival.records, await self._stored(arrival, part)

    async def _stored(self, arrival: Arrival, part: str | None) -> int:
        if self._failed is not None:
            raise self._failed
        stored: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._pending.add(stored)
        if part is not None:
            self._waiting[part] = stored
        try:
            await self._buffer.put(_waited_for(arrival, part, stored))
            position = await asyncio.shield(stored)
        finally:
            self._pending.discard(stored)
            if part is not None:
                self._waiting.pop(part, None)
        if part is not None:
            self._keys[part] = position
            if len(self._keys) > _MOST_KEYS:
                self._keys.popitem(last=False)
        return position

    async def _store(self) -> None:
        """Stores what is in the buffer until it is closed."""
        while arrivals := await self._buffer.take(
            most_bytes=_BATCH_BYTES, gather_s=_GATHER_S
        ):
            try:
                positions = await asyncio.to_thread(self._writer.write, arrivals)
            except Exception as error:  # noqa: BLE001 - it is told to all who wait
                await self._fail(error)
                return
            for one, position in zip(arrivals, positions, strict=True):
                one.stored(position)
            await self._forget_old_keys()

    async def _fail(self, error: Exception) -> None:
        self._failed = error
        for one in self._pending:
            if not one.done():
                one.set_exception(error)

    async def _forget_old_keys(self) -> None:
        """Lets go of keys that are old, when there are twice as many as are kept."""
        known = [part for part in self._writer.places.known if _KEY in part]
        if len(known) >= 2 * _KEYS:
            old = set(known[:-_KEYS])
            await asyncio.to_thread(self._writer.places.forget, old)

    async def close(self) -> None:
        """Stores what has come."""
        await self._buffer.close()
        await self._task


def _waited_for(
    arrival: Arrival, part: str | None, told: "asyncio.Future[int]"
) -> Arrival:
    """An arrival that tells its position once it is durable."""

    def tell(position: int | None) -> None:
        if not told.done():
            told.set_result(HERE if position is None else position)

    places = {} if part is None else {part: HERE}
    return replace(arrival, places=places, stored=tell)


class Intakes:
    """The intakes of all streams, each made when it is first needed.

    Args:
        place: where the server works.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._known: dict[str, Intake] = {}
        self._lock = asyncio.Lock()
        self._is_over = False

    async def of(self, stream: StreamSettings) -> Intake:
        """The intake of a stream.

        Raises:
            TransientError: the server ends.
        """
        async with self._lock:
            if self._is_over:
                raise TransientError("the server ends", hint="try again")
            if stream.name not in self._known:
                self._known[stream.name] = Intake(self._place, stream)
            return self._known[stream.name]

    async def close(self) -> None:
        """Stores what has come; nothing more is taken."""
        async with self._lock:
            self._is_over = True
        for one in self._known.values():
            await one.close()
