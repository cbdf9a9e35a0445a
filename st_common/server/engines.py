"""The engines of a server: the supervisor's ticks, and the sources of streams, until the server ends.

One supervisor acts on a home at a time: who holds its lease. While a server holds it the ticks of others do nothing,
and while another server does, this one answers and captures, but starts no engine.
"""

import asyncio
import logging
import time
from dataclasses import replace

from st_common.capture.log import Log
from st_common.delivery.look import look_after
from st_common.delivery.settings import wanted
from st_common.errors import FairwayError, FencedError
from st_common.feeds.capture import capture_all
from st_common.ops import lease
from st_common.ops.launcher import find, kill_launched
from st_common.ops.stop import clear_marker, place_marker
from st_common.ops.supervising import supervising
from st_common.server.place import Place
from st_common.settings import Streams, StreamSettings

_LOG = logging.getLogger(__name__)
_TICK_S = 2.0
_END_S = 30.0
_AGAIN_S = 5.0


def _now_us() -> int:
    return time.time_ns() // 1000


class Engines:
    """Keeps engines running, one for each stream, as the supervisor does.

    Args:
        place: where the server works.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._lease: lease.Lease | None = None
        self._is_waiting = False

    async def run(self, stop: asyncio.Event) -> None:
        """Ticks until it is asked to stop, and stops what it runs then."""
        try:
            while not stop.is_set():
                try:
                    await asyncio.to_thread(self._tick)
                except (FairwayError, OSError) as error:
                    _LOG.warning("engines: %s", error)
                await _waited(stop, _TICK_S)
        finally:
            await asyncio.to_thread(self._end)

    def streams(self) -> Streams:
        """The streams that run here; those of the settings that are wrong are left as they are.

        An engine runs from when a stream's log holds something, a fix or a query: what the settings merely describe
        costs nothing.
        """
        known = self._place.served()
        chosen = {
            name: replace(stream, running=self._has_begun(stream))
            for name, stream in known.items()
        }
        return Streams(chosen, known.broken)

    def _has_begun(self, stream: StreamSettings) -> bool:
        return Log(self._place.home.log(stream.name)).end() > 0

    def _tick(self) -> None:
        """Looks at every stream once."""
        if not self._holds():
            return
        home, conf = self._place.home, self._place.conf
        look_after(home, conf, self.streams(), now_us=_now_us(), by=self._lease)

    def _holds(self) -> bool:
        """Whether this server is the supervisor of its home; it becomes it when nobody is."""
        folder = supervising(self._place.home)
        try:
            if self._lease is None:
                self._lease = lease.take(folder, now_us=_now_us())
            else:
                self._lease = lease.beat(self._lease, now_us=_now_us())
        except FencedError as error:
            self._lease = None
            if not self._is_waiting:
                _LOG.warning("engines are started by somebody else: %s", error)
            self._is_waiting = True
            return False
        self._is_waiting = False
        return True

    def _end(self) -> None:
        """Asks all engines to stop, waits for them, and gives the lease back."""
        if self._lease is None:
            return
        home, streams = self._place.home, self.streams()
        folders = [home.stream(name) for name in streams]
        folders += [home.delivery(name) for name in wanted(self._place.conf, streams)]
        running = [one for one in folders if find(one, now_us=_now_us())]
        for folder in running:
            place_marker(folder, now_us=_now_us())
        until_s = time.monotonic() + _END_S
        while time.monotonic() < until_s:
            if not any(find(folder, now_us=_now_us()) for folder in running):
                break
            time.sleep(0.05)
        for folder in running:
            kill_launched(folder)
            clear_marker(folder)
        lease.release(self._lease)


async def capture(place: Place, stream: StreamSettings, stop: asyncio.Event) -> None:
    """Runs the sources of a stream until it is asked to stop; one that cannot go on is told, and tried again later."""
    while not stop.is_set():
        over = asyncio.Event()
        ending = asyncio.create_task(_passed_on(stop, over))
        try:
            names = tuple(stream.sources)
            await capture_all(place.home, stream, names, over)
        except (FairwayError, OSError) as error:
            _LOG.error("stream %s: its sources: %s", stream.name, error)
            await _waited(stop, _AGAIN_S)
        finally:
            ending.cancel()


async def _passed_on(stop: asyncio.Event, over: asyncio.Event) -> None:
    await stop.wait()
    over.set()


async def _waited(stop: asyncio.Event, seconds: float) -> None:
    """Waits so long, or until it is asked to stop."""
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return
