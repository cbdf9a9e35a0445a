"""Where a command works: the home folder, the settings and the streams, from the options that all commands share."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from st_common.config.environment import conf_dir, home_dir
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import Streams, stream_of
from st_common.errors import ConfigError

if TYPE_CHECKING:
    from st_common.query.group_names import Tables


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


def at_home(ctx: typer.Context) -> str:
    """The options that say where, as they were given, with a blank in front: for commands that are shown."""
    given = (("--home", ctx.obj.home), ("--conf", ctx.obj.conf))
    return "".join(
        f" {option} {shlex.quote(value)}"
        for option, value in given
        if value is not None
    )


def streams(ctx: typer.Context) -> Streams:
    """The streams of the settings and those that were created, by name; where tables are wrong they are `broken`."""
    from st_common.query.created_streams import known_streams

    known = known_streams(home(ctx), conf(ctx))
    ctx.obj.broken = known.broken
    return known


def stream(ctx: typer.Context, name: str) -> StreamSettings:
    """The settings of one stream.

    Raises:
        ConfigError: there is no such stream, or its table is wrong.
    """
    return stream_of(streams(ctx), name)


def plain_names(ctx: typer.Context) -> None:
    """Takes the group away from what a command was given as `stream` or `layer`: metro.buses becomes buses.

    Raises:
        ConfigError: it is in another group, or there is none.
    """
    for what, known in (("stream", _streams_by_group), ("layer", _layers_by_group)):
        given = ctx.params.get(what)
        if isinstance(given, str) and "." in given:
            ctx.params[what] = _table_name(given, known(ctx))
        elif isinstance(given, list) and any("." in one for one in given):
            tables = known(ctx)
            ctx.params[what] = [_table_name(one, tables) for one in given]


def _streams_by_group(ctx: typer.Context) -> "Tables":
    from st_common.query.names import stream_tables

    return stream_tables(streams(ctx))


def _layers_by_group(ctx: typer.Context) -> "Tables":
    from st_common.layers.announce import layer_group
    from st_common.query.group_names import Tables
    from st_common.query.lookup import layers

    own = home(ctx)
    return Tables(
        what="layer", names=layers(own), group_of=lambda name: layer_group(own, name)
    )


def _table_name(value: str, known: "Tables") -> str:
    from st_common.query.group_names import found_table, why_unknown

    name = found_table(value, known)
    if name not in known.names:
        message, hint = why_unknown(value, known)
        raise ConfigError(message, hint=hint)
    return name
