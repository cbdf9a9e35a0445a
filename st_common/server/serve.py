"""A server from its start to its end: requests, engines and sources in one process tree."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from starlette.applications import Starlette

from st_common.errors import ConfigError
from st_common.loopback import LOOPBACK
from st_common.server.app import application
from st_common.server.connections import (
    Bounds,
    Gate,
    bounds_here,
    quiet_when_short,
    with_connection,
)
from st_common.server.engines import Engines
from st_common.server.guard import Limits
from st_common.server.installation import Installation
from st_common.server.sources import Sources
from st_common.server.terminal import Once, stream_lines

_GRACE_S = 3
_BACKLOG = 2048


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Args:
        host: the address.
        port: 0: any that is free.

    Raises:
        ConfigError: it cannot be had.
    """
    try:
        return socket.create_server((host, port), backlog=_BACKLOG)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {host}:{port}: {error.strerror}",
            hint="--port names another",
        ) from None


def require_token(host: str, token: str | None) -> None:
    """Refuses to let other machines ask without a token.

    Raises:
        ConfigError: see above.
    """
    if host not in LOOPBACK and token is None:
        raise ConfigError(
            f"others could ask {host} for everything",
            hint="--token-env NAME: the variable with a token that they must show",
        )


async def serve(
    place: Installation,
    listener: socket.socket,
    *,
    version: str,
    token: str | None = None,
    limits: Limits | None = None,
    bounds: Bounds | None = None,
    runs_engines: bool = True,
    stop: asyncio.Event,
    told: Callable[[str], None] = lambda _: None,
) -> None:
    """Serves until it is asked to stop; engines and sources that it started have ended then.

    Args:
        place: where it works.
        listener: what it listens on.
        version: of the program.
        token: what every request must show; None: nothing.
        limits: of bodies and requests.
        bounds: of connections; None: what this process has room for.
        runs_engines: whether it runs engines and sources, or only answers.
        stop: set when it shall end.
        told: is given the address once it answers, and then a line for each stream, and for what changes.
    """
    app = application(place, version=version, token=token, limits=limits)
    quiet_when_short(asyncio.get_running_loop(), Once(told))
    server = _Server(app, listener, bounds or bounds_here())
    engines = Engines(place, told)
    work = [asyncio.create_task(server.serve(sockets=[listener]))]
    told(_address(listener))
    for line in stream_lines(place, runs_engines=runs_engines):
        told(line)
    if runs_engines:
        work.append(asyncio.create_task(engines.run(stop)))
        work.append(asyncio.create_task(Sources(place, told).run(stop)))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait((*work, stopping), return_when=asyncio.FIRST_COMPLETED)
    stop.set()
    app.state.server.hubs.close()  # or the end would wait for who listens
    server.should_exit = True
    await asyncio.gather(*work, stopping)


async def serve_until_signal(
    place: Installation, listener: socket.socket, **how: Any
) -> None:
    """Serves, as `serve`, until SIGINT or SIGTERM."""
    stop = asyncio.Event()
    loop, signals = asyncio.get_running_loop(), (signal.SIGINT, signal.SIGTERM)
    for one in signals:
        loop.add_signal_handler(one, stop.set)
    try:
        await serve(place, listener, stop=stop, **how)
    finally:
        for one in signals:
            loop.remove_signal_handler(one)


class _Server(uvicorn.Server):
    """A server that leaves signals to us, and bounds its connections."""

    def __init__(self, app: Starlette, listener: socket.socket, bounds: Bounds) -> None:
        gate = Gate(bounds)
        config = uvicorn.Config(
            with_connection(app),
            http=gate.protocol,  # type: ignore[arg-type]  # it is called as a type would be
            ws="none",
            backlog=bounds.step,
            log_config=None,  # as all else is logged
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=_GRACE_S,
            server_header=False,
        )
        super().__init__(config)
        self._listener = listener

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts to accept, few at once; the others wait in the kernel."""
        await super().startup(sockets=sockets)
        self._listener.listen(_BACKLOG)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Takes none."""
        yield


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{host}:{port}"
