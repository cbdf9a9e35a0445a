"""`fairway status --metrics`: what an installation is watched by, for Prometheus."""

import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from st_common.cli import context
from st_common.errors import ConfigError
from st_common.written import whole_number

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_OUTPUT = Path("-")
_LOOPBACK = ("127.0.0.1", "localhost")


def write_metrics(ctx: typer.Context, file: Path) -> None:
    """Writes metrics of streams, queries, tables and deliveries as Prometheus reads them; `-` is stdout."""
    from prometheus_client import generate_latest, write_to_textfile

    registry = _registry(ctx)
    if file == _OUTPUT:
        typer.echo(generate_latest(registry).decode(), nl=False)
    else:
        write_to_textfile(str(file), registry)


def serve_metrics(ctx: typer.Context, listen: str) -> None:
    """Serves the same at http://HOST:PORT/metrics, anew at each request, until SIGTERM or Ctrl-C.

    Raises:
        ConfigError: `listen` is no address of this machine, or it is taken.
    """
    address = _address(listen)
    _serve(_registry(ctx), *address)


def _registry(ctx: typer.Context) -> "CollectorRegistry":
    from st_common.answers.metrics import Metrics, registry_of
    from st_common.delivery.settings import wanted

    home, conf = context.home(ctx, must_exist=True), context.conf(ctx)
    return registry_of(
        Metrics(
            home=home,
            streams=lambda: context.streams(ctx),
            deliveries=lambda: wanted(conf, context.streams(ctx)),
        )
    )


def _address(listen: str) -> tuple[str, int]:
    """Host and port; the host is this machine, for metrics name streams and queries and ask for no password."""
    host, _, port = listen.rpartition(":")
    number = whole_number(port, 65535)
    if host not in _LOOPBACK or number is None:
        raise ConfigError(
            f"--listen {listen!r} is not 127.0.0.1:PORT",
            hint="metrics are served to this machine alone; a proxy with a password may pass them on",
        )
    return host, number


def _serve(registry: "CollectorRegistry", host: str, port: int) -> None:
    from prometheus_client import start_http_server

    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    try:
        server, thread = start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        raise ConfigError(
            f"--listen {host}:{port}: {error.strerror}", hint="choose another port"
        ) from None
    typer.echo(f"http://{host}:{server.server_port}/metrics")
    try:
        ended.wait()
    finally:
        server.shutdown()
        thread.join()
