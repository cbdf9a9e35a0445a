"""Fixes that are sent by HTTP: gathered for some milliseconds, and durable before anybody is told so.

Nothing that goes wrong stays: what could not be stored is told to whoever sent it, and the next request begins with
what the log says. A request that is refused changes nothing of what is answered to others that came with it.
"""

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from st_common.config.stream import StreamSettings
from st_common.errors import (
    ConfigError,
    LogError,
    MissingError,
    StorageError,
    TransientError,
)
from st_common.formats.said_before import said_before
from st_common.log.log import Log
from st_common.position import row_of, segment_of
from st_common.replay.files import wall_clock
from st_common.server.bodies import Body, body_of
from st_common.server.installation import Installation
from st_common.server.parameters import RejectedError, ReusedKeyError
from st_common.server.verdict import Verdict, verdict_of
from st_common.sources.arrival import Arrival, Written
from st_common.sources.buffer import Buffer
from st_common.sources.offsets import MovedError
from st_common.sources.reject_rate import RejectRate
from st_common.sources.writer import HERE, Writer, here, place_of, segments_of
from st_common.storage import failed

_SOURCE = "http-server"
_GATHER_S = 0.005
_BATCH_BYTES = 4 << 20
_WAITING_BYTES = 64 << 20
_KEYS = 1000
"""So many of the newest keys are known after a kill."""
_MOST_KEYS = 100_000
"""So many are known while the server lives."""
_LONGEST_KEY = 255
_KEY = "key:"
"""Before a key in the log's places: they have the position of what came with it, and what its request makes."""
_TRIES = 3
"""So often another server may be quicker with a key before its sender is asked to come again."""
_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")


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


class _Known(NamedTuple):
    """What came with a key: the position of its first record, and its fingerprint; None: a version before had none."""

    position: int
    fingerprint: int | None


class _Sending(NamedTuple):
    """What is on its way with a key: its fingerprint, and where it stands once it is durable."""

    fingerprint: int
    stored: "asyncio.Task[Written]"


class Intake:
    """What is sent for one stream, on its way into the log; for one event loop.

    Args:
        place: where the server works.
        stream: the stream.
    """

    def __init__(self, place: Installation, stream: StreamSettings) -> None:
        self.stream = stream
        self._home, self._judge = place.home, RejectRate(stream, _SOURCE)
        self._writer: Writer | None = None
        self._opening = asyncio.Lock()
        self._buffer = Buffer(_WAITING_BYTES)
        self._keys: OrderedDict[str, _Known] = OrderedDict()
        self._sending: dict[str, _Sending] = {}
        self._is_closed = False
        self._task = asyncio.create_task(self._store())

    @property
    def warning(self) -> str | None:
        """Why most of what is sent cannot be read; None: it can."""
        return self._judge.warning(now_us=wall_clock())

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
            ConfigError: there is nothing in it, or the key is too long.
            RejectedError: none of its records can be read; nothing is stored, and the key is free.
            ReusedKeyError: the key came with another request before; nothing is stored.
            ClosedError: the settings were changed meanwhile: the next intake takes it.
            StorageError: the disk is full, or refuses.
        """
        if key is not None and not 0 < len(key) <= _LONGEST_KEY:
            raise ConfigError(
                f"an idempotency key of {len(key)} characters",
                hint=f"1 to {_LONGEST_KEY}",
            )
        sent, verdict = await asyncio.to_thread(_judged, body, media, self.stream)
        await self._opened()
        arrival, mark = replace(sent.arrival, is_live=is_live), 0
        if key is not None:
            mark = await asyncio.to_thread(_fingerprint, body, media, is_live=is_live)
        if key is not None and key in self._keys:
            at = await self._said_before(key, mark, sent.arrival)
        elif key is not None and key in self._sending:
            _require_same(key, mark, self._sending[key].fingerprint)
            at = await asyncio.shield(self._sending[key].stored)
        elif verdict is not None and verdict.is_refused:
            raise RejectedError(verdict.message, hint=verdict.mend, told=verdict.shown)
        elif key is None:
            at = await self._stored(arrival)
        else:
            at = await self._stored_once(arrival, key, mark)
        if at.ahead:
            verdict = verdict_of(sent, body, self.stream, ahead=at.ahead)
        return Stored(position=at.position, records=sent.records, verdict=verdict)

    async def _opened(self) -> Writer:
        """What stores, with the keys that the log has; made anew after a failure."""
        async with self._opening:
            if self._writer is None:
                self._writer = await self._at_disk(
                    Writer, self._home, self.stream, _SOURCE
                )
                self._writer.judge = self._judge
                self._learn(self._writer)
            return self._writer

    def _learn(self, writer: Writer) -> None:
        """Knows from now on the keys that the log has."""
        for part, place in writer.places.known.items():
            if part.startswith(_KEY):
                position, mark = place_of(place)
                self._keys[part.removeprefix(_KEY)] = _Known(position, mark or None)
        while len(self._keys) > _MOST_KEYS:
            self._keys.popitem(last=False)

    async def _said_before(self, key: str, mark: int, arrival: Arrival) -> Written:
        """What the log says of a request that it has already.

        Raises:
            ReusedKeyError: it was another one.
        """
        known = self._keys[key]
        _require_same(key, mark, known.fingerprint)
        writer = await self._opened()
        records = arrival.records
        return await self._at_disk(_written, writer.log, known.position, records)

    async def _at_disk(self, work: Callable[..., _T], *given: Any) -> _T:
        """What a thread gives that reads or writes.

        Raises:
            StorageError: the system refuses.
        """
        try:
            return await asyncio.to_thread(work, *given)
        except OSError as error:
            raise _told(error, self._home.root) from error

    async def _stored_once(self, arrival: Arrival, key: str, mark: int) -> Written:
        """Where a request with a key stands; whoever makes it again meanwhile waits for the same.

        It goes on when its sender goes: what he sends again must find it, or wait for it.
        """
        trying = asyncio.create_task(self._tried(arrival, key, mark))
        self._sending[key] = _Sending(mark, trying)

        def over(_: object) -> None:
            del self._sending[key]

        trying.add_done_callback(over)
        trying.add_done_callback(_looked_at)
        return await asyncio.shield(trying)

    async def _tried(self, arrival: Arrival, key: str, mark: int) -> Written:
        """As `_stored_once`; another server may be quicker with the key.

        Raises:
            ReusedKeyError: that one came with another request.
            TransientError: others were quicker again and again, and nothing is there.
        """
        places = {f"{_KEY}{key}": here(mark)}
        for _ in range(_TRIES):
            try:
                at = await self._stored(replace(arrival, places=places))
            except MovedError:
                await self._opened()  # it knows what the other one has stored
                if key in self._keys:
                    return await self._said_before(key, mark, arrival)
            else:
                self._keys[key] = _Known(at.position, mark)
                if len(self._keys) > _MOST_KEYS:
                    self._keys.popitem(last=False)
                return at
        raise TransientError("another server takes the same keys", hint="try again")

    async def _stored(self, arrival: Arrival) -> Written:
        if self._is_closed:
            raise ClosedError("the settings were changed", hint="try again")
        stored = _future()
        stored.add_done_callback(_looked_at)
        await self._buffer.put(_with_waiting(arrival, stored))
        return await asyncio.shield(stored)

    async def _store(self) -> None:
        """Stores what is in the buffer until it is closed, whatever goes wrong with some of it."""
        while arrivals := await self._buffer.take(
            most_bytes=_BATCH_BYTES, gather_s=_GATHER_S
        ):
            for some in segments_of(arrivals):
                await self._store_together(some)
            await self._forget_old_keys()

    async def _store_together(self, arrivals: Sequence[Arrival]) -> None:
        """Stores what goes into one segment; where some of it is refused, each by itself."""
        try:
            writer = await self._opened()
            written = await asyncio.to_thread(writer.store, arrivals)
        except Exception as error:  # noqa: BLE001 - whoever waits is told, and the next one begins anew
            self._writer = None  # it knows of records that the log does not have
            is_of_one = not isinstance(error, (OSError, StorageError))
            if is_of_one and len(arrivals) > 1:
                for one in arrivals:
                    await self._store_together([one])
            else:
                for one in arrivals:
                    one.failed(_told(error, self._home.root))
            return
        try:
            await asyncio.to_thread(writer.look, arrivals)
        except Exception:  # noqa: BLE001 - it is stored, whatever may be said about it
            _LOG.warning("what came last cannot be judged", exc_info=True)
        for one, at in zip(arrivals, written, strict=True):
            one.stored(at)

    async def _forget_old_keys(self) -> None:
        """Lets go of keys that are old, when there are twice as many as are kept."""
        if self._writer is None:
            return
        known = [part for part in self._writer.places.known if part.startswith(_KEY)]
        if len(known) < 2 * _KEYS:
            return
        try:
            await asyncio.to_thread(self._writer.places.forget, set(known[:-_KEYS]))
        except (OSError, StorageError) as error:
            _LOG.warning("old keys are kept for now: %s", error)

    async def close(self) -> None:
        """Stores what has come."""
        self._is_closed = True
        await self._buffer.close()
        await asyncio.shield(self._task)  # who waits may go; what has come is stored


def _written(log: Log, position: int, records: int) -> Written:
    """What a log has of a request: where it stands, and which of its records are ahead of the stream.

    Raises:
        ReusedKeyError: the log ends before it.
    """
    first, end = row_of(position), log.end()
    if segment_of(position) >= end:
        raise ReusedKeyError(
            f"segment {segment_of(position)} had what came with this idempotency key, and the log ends before {end}",
            hint="the log lost segments, or is an older copy: send the request again with another key",
        )
    try:
        segment = log.segment(segment_of(position))
        log.sync([segment])  # who stored it may have died before it was durable
        before, _ = said_before(log.raw(segment))
    except (LogError, MissingError):
        return Written(position=position)  # it was purged
    rows = range(first, first + records)
    ahead = [row - first for row in before.ahead if row in rows]
    return Written(position=position, ahead=ahead)


def _judged(
    body: bytes, media: str, stream: StreamSettings
) -> tuple[Body, Verdict | None]:
    sent = body_of(body, media, stream)
    return sent, verdict_of(sent, body, stream)


def _fingerprint(body: bytes, media: str, *, is_live: bool) -> int:
    """A number above 0 that a request makes; another request makes another one."""
    sent = hashlib.sha256(f"{media} {is_live} ".encode() + body)
    return int.from_bytes(sent.digest()[:7]) or 1


def _require_same(key: str, mark: int, known: int | None) -> None:
    """Refuses a key that names another request; of one that an earlier version took nothing is known.

    Raises:
        ReusedKeyError: it does.
    """
    if known is not None and mark != known:
        raise ReusedKeyError(
            f"the idempotency key {key!r} came with another request before",
            hint="each request has a key of its own; with the same key the same one is made again",
        )


def _told(error: Exception, root: Path) -> Exception:
    """An error as it is told: what the system refuses is no defect of ours."""
    if not isinstance(error, OSError):
        return error
    return failed(error, Path(error.filename) if error.filename else root)


def _looked_at(stored: "asyncio.Future[Written]") -> None:
    """Nobody may be there any more to look at what went wrong."""
    if not stored.cancelled():
        stored.exception()


def _future() -> "asyncio.Future[Written]":
    return asyncio.get_running_loop().create_future()


def _with_waiting(arrival: Arrival, told: "asyncio.Future[Written]") -> Arrival:
    """An arrival that tells where it stands once it is durable, or why it is not."""

    def tell(at: Written | None) -> None:
        if not told.done():
            told.set_result(Written(position=HERE) if at is None else at)

    def fail(error: Exception) -> None:
        if not told.done():
            told.set_exception(error)

    return replace(arrival, stored=tell, failed=fail)


class Intakes:
    """The intakes of all streams, each made when it is first needed.

    Args:
        place: where the server works.
    """

    def __init__(self, place: Installation) -> None:
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
            if known is not None and known.stream != stream:
                await known.close()  # settings were changed
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
