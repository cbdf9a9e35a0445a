"""Where a command works: the home folder, the settings and the streams, from the options that all commands share."""

from pathlib import Path

import typer

from st_common.errors import ConfigError
from st_common.home import Home
from st_common.settings import (
    Streams,
    StreamSettings,
    conf_dir,
    home_dir,
    stream_of,
)


def home(ctx: typer.Context, *, must_exist: bool = False) -> Home:
    """The home folder: `--home`, else FAIRWAY_HOME.

    Raises:
        ConfigError: neither is given, or the folder `must_exist` and does not.
    """
    root = home_dir(ctx.obj.home)
    if must_exist and not root.is_dir():
        raise ConfigError(
            f"there is no home folder {root}", hint="--home DIR names another"
        )
    return Home(root)


def conf(ctx: typer.Context) -> Path:
    """The folder of the settings: `--conf`, else FAIRWAY_CONF, else `conf` in the home folder, else ./conf."""
    return conf_dir(home(ctx).root, ctx.obj.conf)


def streams(ctx: typer.Context) -> Streams:
    """The streams of the settings and those that were created, by name; where tables are wrong they are `broken`."""
    from st_common.query.created_streams import known_streams

    return known_streams(home(ctx), conf(ctx))


def stream(ctx: typer.Context, name: str) -> StreamSettings:
    """The settings of one stream.

    Raises:
        ConfigError: there is no such stream, or its table is wrong.
    """
    return stream_of(streams(ctx), name)


def write_broken(ctx: typer.Context) -> None:
    """Says on stderr which streams cannot run because of their settings, and why."""
    for error in streams(ctx).broken.values():
        typer.echo(f"WRONG: {error}", err=True)
