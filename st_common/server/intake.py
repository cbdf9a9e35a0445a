"""Fixes that are sent by HTTP: gathered for some milliseconds, and durable before anybody is told so."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any

from st_common.capture.files import wall_clock
from st_common.errors import LogError, MissingError, TransientError
from st_common.feeds.arrival import Arrival, Written
from st_common.feeds.buffer import Buffer
from st_common.feeds.writer import HERE, Writer
from st_common.formats.said_before import said_before
from st_common.position import row_of, segment_of
from st_common.server.asked import RejectedError
from st_common.server.bodies import Body, body_of
from st_common.server.place import Place
from st_common.server.verdict import Verdict, verdict_of
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


class ClosedError(TransientError):
    """An intake takes nothing more: there is another one, by other settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What was stored of a body.

    Attributes:
        position: of the first record in the log.
        records: how many were sent.
        verdict: what they are; None where only records that came before could say it.
    """

    position: int
    records: int
    verdict: Verdict | None

    @property
    def shown(self) -> dict[str, Any]:
        """As JSON values."""
        told = {"records": self.records} if self.verdict is None else self.verdict.shown
        return {**told, "position": self.position}


class Intake:
    """What is sent for one stream, on its way into the log; for one event loop.

    Args:
        place: where the server works.
        stream: the stream.
    """

    def __init__(self, place: Place, stream: StreamSettings) -> None:
        self.stream = stream
        self._writer = Writer(place.home, stream, _SOURCE)
        self._buffer = Buffer(_WAITING_BYTES)
        known = self._writer.places.read()
        self._keys = OrderedDict(
            (part, position) for part, position in known.items() if _KEY in part
        )
        self._waiting: dict[str, asyncio.Future[Written]] = {}
        self._pending: set[asyncio.Future[Written]] = set()
        self._failed: Exception | None = None
        self._is_closed = False
        self._task = asyncio.create_task(self._store())

    @property
    def warning(self) -> str | None:
        """Why most of what is sent cannot be read; None: it can."""
        return self._writer.judge.warning(now_us=wall_clock())

    @property
    def has_failed(self) -> bool:
        """Whether it stores nothing more."""
        return self._failed is not None

    async def put(
        self, body: bytes, media: str, key: str | None, *, is_live: bool = True
    ) -> Stored:
        """Stores fixes; what comes with a key that is known is not stored again.

        Of records some of which are fixes all are stored, the others as rejects.

        Args:
            body: the fixes.
            media: of which kind it is.
            key: names this request, whenever it is made again.
            is_live: whether they happen now, so that time goes on after them.

        Raises:
            UnsupportedError: bodies of this kind are not taken.
            ConfigError: there is nothing in it.
            RejectedError: none of its records can be read; nothing is stored, and the key is free.
            ClosedError: the settings were changed meanwhile: the next intake takes it.
            StorageError: the disk is full, or refuses.
        """
        sent, verdict = await asyncio.to_thread(_judged, body, media, self.stream)
        part = None if key is None else f"{_KEY}{key}"
        if part is not None and part in self._keys:
            at = await asyncio.to_thread(self._written, self._keys[part], sent)
        elif part is not None and part in self._waiting:
            at = await asyncio.shield(self._waiting[part])
        elif verdict is not None and verdict.is_refused:
            raise RejectedError(verdict.message, hint=verdict.mend, told=verdict.shown)
        else:
            arrival = replace(sent.arrival, is_live=is_live)
            at = await self._stored(arrival, part)
        if at.ahead:
            verdict = verdict_of(sent, body, self.stream, ahead=at.ahead)
        return Stored(position=at.position, records=sent.records, verdict=verdict)

    def _written(self, position: int, sent: Body) -> Written:
        """What the log says of a body that it has already."""
        first = row_of(position)
        try:
            segment = self._writer.log.segment(segment_of(position))
            before, _ = said_before(self._writer.log.raw(segment))
        except (LogError, MissingError):
            return Written(position=position)  # it was purged
        rows = range(first, first + sent.arrival.records)
        ahead = [row - first for row in before.ahead if row in rows]
        return Written(position=position, ahead=ahead)

    async def _stored(self, arrival: Arrival, part: str | None) -> Written:
        if self._failed is not None:
            raise self._failed
        if self._is_closed:
            raise ClosedError("the settings were changed", hint="try again")
        stored: asyncio.Future[Written] = asyncio.get_running_loop().create_future()
        self._pending.add(stored)
        if part is not None:
            self._waiting[part] = stored
        try:
            await self._buffer.put(_waited_for(arrival, part, stored))
            at = await asyncio.shield(stored)
        finally:
            self._pending.discard(stored)
            if part is not None:
                self._waiting.pop(part, None)
        if part is not None:
            self._keys[part] = at.position
            if len(self._keys) > _MOST_KEYS:
                self._keys.popitem(last=False)
        return at

    async def _store(self) -> None:
        """Stores what is in the buffer until it is closed."""
        while arrivals := await self._buffer.take(
            most_bytes=_BATCH_BYTES, gather_s=_GATHER_S
        ):
            try:
                written = await asyncio.to_thread(self._writer.write, arrivals)
            except Exception as error:  # noqa: BLE001 - it is told to all who wait
                await self._fail(error)
                return
            for one, at in zip(arrivals, written, strict=True):
                one.stored(at)
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
        self._is_closed = True
        await self._buffer.close()
        await self._task


def _judged(
    body: bytes, media: str, stream: StreamSettings
) -> tuple[Body, Verdict | None]:
    sent = body_of(body, media, stream)
    return sent, verdict_of(sent, body, stream)


def _waited_for(
    arrival: Arrival, part: str | None, told: "asyncio.Future[Written]"
) -> Arrival:
    """An arrival that tells where it stands once it is durable."""

    def tell(at: Written | None) -> None:
        if not told.done():
            told.set_result(Written(position=HERE) if at is None else at)

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
            known = self._known.get(stream.name)
            if known is not None and (known.has_failed or known.stream != stream):
                await known.close()  # settings were changed, or the disk has room again
                del self._known[stream.name]
            if stream.name not in self._known:
                self._known[stream.name] = Intake(self._place, stream)
            return self._known[stream.name]

    async def close(self) -> None:
        """Stores what has come; nothing more is taken."""
        async with self._lock:
            self._is_over = True
        for one in self._known.values():
            await one.close()
