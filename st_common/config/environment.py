"""What the environment says: where home, conf, contracts and jars lie, and secrets. Nothing else reads it."""

import os
import re
from pathlib import Path

from st_common.config.redaction import keep_secret
from st_common.errors import ConfigError
from st_common.installed import own_jars, shipped

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # as in s3://bucket/home
DEFAULT_CONF = Path("conf")  # where nobody names a folder and the home has none
PARENT_VARIABLE = "FAIRWAY_LINEAGE_PARENT"
OUTCOME_VARIABLE = "FAIRWAY_OUTCOME"


def home_dir(given: Path | str | None = None) -> Path:
    """The home folder: `given`, else FAIRWAY_HOME.

    Raises:
        ConfigError: neither is set; there is no default, so that nobody writes tables where they happen to stand. Or it
            is the address of something else than a folder.
    """
    value = given or os.environ.get("FAIRWAY_HOME")
    if not value:
        raise ConfigError(
            "no home folder is given", hint="use --home DIR or set FAIRWAY_HOME"
        )
    if _SCHEME.match(str(value)):
        raise ConfigError(
            f"a home cannot lie at {value}",
            hint="give a folder of a local disk; shared storage is planned",
        )
    return Path(value)


def conf_dir(home: Path | None = None, given: Path | str | None = None) -> Path:
    """The folder of the settings: `given`, else FAIRWAY_CONF, else `home`/conf when it exists, else ./conf."""
    value = given or os.environ.get("FAIRWAY_CONF")
    if value:
        return Path(value)
    if home is not None and (home / "conf").is_dir():
        return home / "conf"
    return DEFAULT_CONF


def contracts_dir(given: Path | str | None = None) -> Path:
    """The folder of the data contracts: `given`, else FAIRWAY_CONTRACTS, else those that came with the package."""
    value = given or os.environ.get("FAIRWAY_CONTRACTS")
    return Path(value) if value else shipped("data_contracts")


def jars_dir() -> Path:
    """The folder of the jars that Spark is given: FAIRWAY_JARS, else the installation's own."""
    value = os.environ.get("FAIRWAY_JARS")
    return Path(value) if value else own_jars()


def lineage_parent() -> str:
    """What the task of Airflow that started this process says of itself; "" when none did."""
    return os.environ.get(PARENT_VARIABLE, "")


def take_outcome_file() -> Path | None:
    """The file in which this process leaves how it ended, and none that it starts; None where nobody waits for it."""
    value = os.environ.pop(OUTCOME_VARIABLE, None)
    return Path(value) if value else None


def secret_of(variable: str) -> str | None:
    """The secret in an environment variable that settings name; None when it is not set, or empty.

    From now on this process writes it nowhere: see `redaction`.
    """
    value = os.environ.get(variable, "").strip() or None
    if value is not None:
        keep_secret(value)
    return value
