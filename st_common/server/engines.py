"""The engines of a server: the supervisor's ticks, until the server ends.

One supervisor acts on a home at a time: who holds its lease. While a server holds it the ticks of others do nothing,
and while another server does, this one answers and captures, but starts no engine.
"""

import asyncio
import time
from dataclasses import replace

from st_common.config.stream import StreamSettings
from st_common.config.streams import Streams
from st_common.delivery.look import look_after
from st_common.delivery.settings import wanted
from st_common.engine.topology import frozen, topology_of
from st_common.errors import FairwayError, FencedError
from st_common.operations import lease
from st_common.operations.forgiving import forgive_all
from st_common.operations.launcher import find, kill_launched
from st_common.operations.stop import clear_marker, place_marker
from st_common.operations.supervising import supervising
from st_common.server.installation import Installation
from st_common.server.sources import waited
from st_common.server.terminal import Once, Say, changes_of, has_begun, told_of

_TICK_S = 2.0
_END_S = 30.0


def _now_us() -> int:
    return time.time_ns() // 1000


class Engines:
    """Keeps engines running, one for each stream, as the supervisor does.

    Args:
        place: where the server works.
        say: is told of engines that start, end or cannot start, a line each.
    """

    def __init__(self, place: Installation, say: Say) -> None:
        self._place = place
        self._lease: lease.Lease | None = None
        self._say = say
        self._trouble = Once(say)
        self._settings: dict[str, StreamSettings] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Ticks until it is asked to stop, and stops what it runs then."""
        try:
            while not stop.is_set():
                try:
                    await asyncio.to_thread(self._tick)
                except Exception as error:  # noqa: BLE001 - whatever it is, the server goes on
                    self._trouble(f"engines: {told_of(error)}")
                await waited(stop, _TICK_S)
        finally:
            await asyncio.to_thread(self._end)

    def streams(self) -> Streams:
        """The streams that run here; those of the settings that are wrong are left as they are.

        An engine runs from when a stream's log holds something, a fix or a query: what the settings merely describe
        costs nothing.
        """
        known = self._place.served()
        chosen = {
            name: replace(stream, running=has_begun(self._place, stream))
            for name, stream in known.items()
        }
        return Streams(chosen, known.broken)

    def _tick(self) -> None:
        """Looks at every stream once."""
        if not self._holds():
            return
        home, conf, streams = self._place.home, self._place.conf, self.streams()
        for stream in streams.values():
            self._renew(stream)
        look = look_after(home, conf, streams, now_us=_now_us(), by=self._lease)
        self._trouble.over()
        for line in changes_of(look.told):
            self._say(line)

    def _renew(self, stream: StreamSettings) -> None:
        """Asks an engine to stop whose settings were changed; the supervisor starts it again by those of now.

        One that could not start by them goes on by those that it has.
        """
        settings = replace(stream, sources={}, running=False)
        before = self._settings.setdefault(stream.name, settings)
        self._settings[stream.name] = settings
        folder = self._place.home.stream(stream.name)
        if before == settings or find(folder, now_us=_now_us()) is None:
            return
        try:
            self._check(stream)
        except FairwayError as error:
            self._say(
                f"{stream.name}: its engine goes on by the settings that it has: {error}"
            )
            return
        place_marker(folder, now_us=_now_us())
        self._say(f"{stream.name}: its settings were changed: its engine starts anew")

    def _check(self, stream: StreamSettings) -> None:
        """Makes sure that a stream that has begun can go on by its settings.

        Raises:
            StateError: it was begun with others that cannot be changed while it runs.
        """
        home = self._place.home
        if topology_of(home, stream.name) is not None:
            shards = 1 if stream.engine == "local" else stream.shards
            frozen(home, stream, engine=stream.engine, shards=shards)

    def _holds(self) -> bool:
        """Whether this server is the supervisor of its home; it becomes it when nobody is.

        Then it tries everything anew: whoever starts a server may have mended what was wrong.
        """
        folder = supervising(self._place.home)
        try:
            if self._lease is None:
                self._lease = lease.take(folder, now_us=_now_us())
                forgive_all(self._place.home)
            else:
                self._lease = lease.beat(self._lease, now_us=_now_us())
        except FencedError as error:
            self._lease = None
            self._trouble(f"engines are started by somebody else: {error}")
            return False
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
