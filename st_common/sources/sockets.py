"""Lines from TCP, whether we connect or others do, and datagrams of UDP."""

import asyncio
from collections.abc import AsyncGenerator

from st_common.config.sources import host_and_port
from st_common.config.stream import StreamSettings
from st_common.sources.arrival import Arrival
from st_common.sources.framing import Lines, of_message
from st_common.sources.source import Resume, Source

_PORTION = 1 << 16
_WAITING = 64
"""Portions of all connections together that may wait here; more wait in their sockets, and so at who sends them."""


class Tcp(Source):
    """Lines, by connections that others make (`listen`) or one that we make (`connect`)."""

    def check(self) -> None:
        """Only lines."""
        self.require_lines()

    async def arrivals(self, places: Resume) -> AsyncGenerator[Arrival]:
        """See `Source.arrivals`. A last line without an end counts when its connection is closed."""
        if self.settings.connect is not None:
            reader, writer = await asyncio.open_connection(
                *host_and_port(self.settings.connect)
            )
            try:
                async for arrival in lines_of(reader, self.stream):
                    yield arrival
            finally:
                writer.close()
            return
        async for arrival in self._listened():
            yield arrival

    async def _listened(self) -> AsyncGenerator[Arrival]:
        given: asyncio.Queue[Arrival] = asyncio.Queue(_WAITING)

        async def serve(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            try:
                async for arrival in lines_of(reader, self.stream):
                    await given.put(arrival)
            except OSError:
                return  # it broke off: what was whole is taken
            finally:
                writer.close()

        host, port = host_and_port(self.settings.listen or "")
        async with await asyncio.start_server(serve, host, port):
            while True:
                yield await given.get()


async def lines_of(
    reader: asyncio.StreamReader, stream: StreamSettings
) -> AsyncGenerator[Arrival]:
    """The lines of one connection, until the other end closes it."""
    lines = Lines(stream)
    while data := await reader.read(_PORTION):
        arrival = lines.feed(data)
        if arrival is not None:
            yield arrival
    last = lines.end()
    if last is not None:
        yield last


class Udp(Source):
    """Datagrams, each a message. What comes faster than it is taken is lost by the system, and nobody knows of it."""

    def check(self) -> None:
        """No header."""
        self.refuse_header()

    async def arrivals(self, places: Resume) -> AsyncGenerator[Arrival]:
        """See `Source.arrivals`."""
        given: asyncio.Queue[bytes] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        place = host_and_port(self.settings.listen or "")
        transport, _ = await loop.create_datagram_endpoint(
            lambda: _Datagrams(given), local_addr=place
        )
        try:
            while True:
                message = await given.get()
                for arrival in of_message(message, self.stream):
                    yield arrival
        finally:
            transport.close()


class _Datagrams(asyncio.DatagramProtocol):
    """Puts each datagram into a queue."""

    def __init__(self, given: "asyncio.Queue[bytes]") -> None:
        self._given = given

    def datagram_received(self, data: bytes, addr: object) -> None:
        self._given.put_nowait(data)
