"""`fairway metrics`: what an installation is watched by, for Prometheus."""

import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from st_common.cli import context
from st_common.errors import ConfigError
from st_common.written import whole_number

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_LOOPBACK = ("127.0.0.1", "localhost")


def metrics(
    ctx: typer.Context,
    *,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Serve them at http://HOST:PORT/metrics until interrupted; a port of 0 is any that is free.",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write them to a file, whole or not at all, for node_exporter's textfile collector.",
        ),
    ] = None,
) -> None:
    """Write metrics of streams, queries, tables and deliveries as Prometheus reads them."""
    from prometheus_client import generate_latest, write_to_textfile

    if listen is not None and file is not None:
        raise ConfigError("--listen and --file do not go together", hint="choose one")
    address = _address(listen) if listen is not None else None
    registry = _registry(ctx)
    if address is not None:
        _serve(registry, *address)
    elif file is not None:
        write_to_textfile(str(file), registry)
    else:
        typer.echo(generate_latest(registry).decode(), nl=False)


def _registry(ctx: typer.Context) -> "CollectorRegistry":
    from st_common.delivery.settings import wanted
    from st_common.serving.metrics import Metrics, registry_of

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
