"""`fairway serve`: HTTP in and out, the sources of streams and their engines, in one process tree."""

from typing import TYPE_CHECKING, Annotated

import typer

from st_common.cli import context
from st_common.errors import ConfigError
from st_common.installed import own_version
from st_common.loopback import SERVE_PORT

if TYPE_CHECKING:
    from st_common.server.installation import Installation

_ENGINE = Annotated[
    str | None,
    typer.Option(help="local or spark for all streams; else what the settings say."),
]
_HOST = Annotated[
    str,
    typer.Option(metavar="ADDRESS", help="The address to listen on."),
]
_PORT = Annotated[
    int,
    typer.Option(min=0, max=65535, help="The port; 0 is any that is free."),
]
_TOKEN = Annotated[
    str | None,
    typer.Option(
        "--token-env",
        metavar="NAME",
        help="The environment variable with the token that requests must show.",
    ),
]
_STREAMS = Annotated[
    list[str] | None,
    typer.Option(
        "--stream", metavar="S", help="Run only this stream; may be given again."
    ),
]
_ANSWER_ONLY = Annotated[
    bool,
    typer.Option("--no-engines", help="Only answer: start no engine and no source."),
]
_RATE = Annotated[
    float | None,
    typer.Option(
        "--max-rate", min=1.0, metavar="N", help="Requests a second of one host."
    ),
]


def serve(
    ctx: typer.Context,
    *,
    engine: _ENGINE = None,
    host: _HOST = "127.0.0.1",
    port: _PORT = SERVE_PORT,
    token_env: _TOKEN = None,
    stream: _STREAMS = None,
    no_engines: _ANSWER_ONLY = False,
    max_rate: _RATE = None,
) -> None:
    """Serve fixes in, queries, answers and changes out by HTTP, and run streams with their sources, until Ctrl-C."""
    import asyncio  # slow to import

    from st_common.server.guard import Limits
    from st_common.server.serve import listening, require_token, serve_until_signal

    place = _place(ctx, engine, tuple(stream or ()))
    token = _token(token_env)
    require_token(host, token)
    for error in context.streams(ctx).broken.values():
        typer.echo(f"WRONG: {error}", err=True)
    running = serve_until_signal(
        place,
        listening(host, port),
        version=own_version(),
        token=token,
        limits=Limits(requests_per_s=max_rate),
        runs_engines=not no_engines,
        told=typer.echo,
    )
    asyncio.run(running)


def _place(
    ctx: typer.Context, engine: str | None, only: tuple[str, ...]
) -> "Installation":
    """Where it works; what is wrong with settings is told, and concerns no other stream.

    Raises:
        ConfigError: there is no such engine, or no such stream.
    """
    from st_common.server.installation import Installation

    if engine not in (None, "spark", "local"):
        raise ConfigError(f"there is no engine {engine!r}", hint="spark or local")
    for name in only:
        context.stream(ctx, name)
    return Installation(
        home=context.home(ctx), conf=context.conf(ctx), engine=engine, only=only
    )


def _token(variable: str | None) -> str | None:
    from st_common.config.environment import secret_of

    if variable is None:
        return None
    token = secret_of(variable)
    if token is None:
        raise ConfigError(
            f"the environment variable {variable} is not set",
            hint="--token-env names the variable that holds the token",
        )
    return token
