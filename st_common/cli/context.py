"""Where a command works: the home folder, the settings and the streams, from the options that all commands share."""

from collections.abc import Mapping
from pathlib import Path

import typer

from st_common.errors import ConfigError
from st_common.home import Home
from st_common.settings import StreamSettings, conf_dir, home_dir, load_streams


def home(ctx: typer.Context, *, must_exist: bool = False) -> Home:
    """The home folder: `--home`, else FAIRWAY_HOME.

    Raises:
        ConfigError: neither is given, or the folder `must_exist` and does not.
    """
    root = home_dir(ctx.obj.home)
    if must_exist and not root.is_dir():
        raise ConfigError(f"there is no home folder {root}", hint="--home DIR names another")
    return Home(root)


def conf(ctx: typer.Context) -> Path:
    """The folder of the settings: `--conf`, else FAIRWAY_CONF, else `conf` in the home folder, else ./conf."""
    return conf_dir(home(ctx).root, ctx.obj.conf)


def streams(ctx: typer.Context) -> Mapping[str, StreamSettings]:
    """The streams that the settings describe, by name."""
    return load_streams(conf(ctx))
