"""How an installation is looked after, as `conf/operations.toml` says: the supervisor's limits, and who is alerted."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from st_common.errors import ConfigError
from st_common.ops.health import Limits
from st_common.toml_values import (
    Check,
    WrongError,
    checked,
    known,
    number,
    read_toml,
    takes,
    whole,
)

T = TypeVar("T")
_TABLES = ("supervisor", "alerts", "notifier", "lineage", "retention", "server")
_LEAST_SILENT_S = 15.0  # engines say something every five seconds


def limits_of(conf: Path) -> Limits:
    """The supervisor's limits: those of the table `[supervisor]`, and the defaults of the others.

    Args:
        conf: the folder of the settings; without a file `operations.toml` in it all limits are the defaults.

    Raises:
        ConfigError: the file is no TOML, or a key is unknown, wrong or does not go together with another; the message
            names file and key.
    """
    limits = operations_of(conf, "supervisor", LIMIT_KEYS, Limits)
    place = f"{conf / 'operations.toml'}: supervisor:"
    for least, most in _ORDERED:
        if getattr(limits, least) > getattr(limits, most):
            raise ConfigError(
                f"{place} {least} = {getattr(limits, least):g} is more than {most} = {getattr(limits, most):g}",
                hint="set both",
            )
    return limits


def operations_of(conf: Path, name: str, keys: Mapping[str, Check], kind: type[T]) -> T:
    """What one table of `conf`/operations.toml says; the defaults without the file or the table.

    Args:
        conf: the folder of the settings.
        name: of the table.
        keys: its keys, with their checks.
        kind: a dataclass with such fields, which all have defaults.

    Raises:
        ConfigError: the file is no TOML, or a key is unknown, of the wrong type or out of its range; the message names
            it.
    """
    place = f"{conf / 'operations.toml'}: {name}:"
    return kind(**checked(operations_table(conf, name) or {}, keys, kind, place))


def operations_table(conf: Path, name: str) -> Mapping[str, Any] | None:
    """One table of `conf`/operations.toml, as it stands there; None when there is no such table, or no file.

    Raises:
        ConfigError: the file is no TOML, or has another table than are known.
    """
    path = conf / "operations.toml"
    try:
        document = read_toml(path)
    except FileNotFoundError:
        return None
    known(document, _TABLES, f"{path}:")
    table = document.get(name)
    if table is not None and not isinstance(table, dict):
        raise ConfigError(f"{path}: {name} must be a table", hint=f"[{name}]")
    return table


def notifier_of(conf: Path) -> Mapping[str, Any] | None:
    """Which of Airflow's notifiers is told of errors: its `class` and `arguments`; None without `[notifier]`.

    Raises:
        ConfigError: a key is unknown, missing or of the wrong type. Whether there is such a class, only Airflow knows.
    """
    table = operations_table(conf, "notifier")
    if table is None:
        return None
    place = f"{conf / 'operations.toml'}: notifier:"
    values = checked(table, NOTIFIER_KEYS, None, place)
    if "class" not in values:
        raise ConfigError(
            f"{place} class is missing", hint='class = "package.module.Class"'
        )
    return {"arguments": {}, **values}


@takes("the path of a class, `package.module.Class`")
def _class_path(value: object) -> str:
    if not isinstance(value, str) or "." not in value:
        raise WrongError("must be the path of a class: package.module.Class")
    return value


@takes("a table")
def _table(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise WrongError('must be a table: { to = "..." }')
    return value


NOTIFIER_KEYS: Mapping[str, Check] = {"class": _class_path, "arguments": _table}
"""What each key of `[notifier]` may be."""


_ORDERED = (
    ("stuck_s", "batch_s"),
    ("batch_s", "rejoin_s"),
    ("stuck_s", "start_up_s"),
    ("back_off_s", "back_off_max_s"),
    ("back_off_max_s", "crash_pause_max_s"),
)  # a limit, and the one that is never shorter

_OWN_CHECKS: dict[str, Check] = {
    "silent_s": number(least=_LEAST_SILENT_S),
    "slow_looks": whole(most=1000),
    "breaker_starts": whole(most=1000),
    "back_off_s": number(least=0.0),
}
LIMIT_KEYS: dict[str, Check] = {
    field.name: _OWN_CHECKS.get(field.name, number(least=1.0))
    for field in dataclasses.fields(Limits)
}
"""What each key of `[supervisor]` may be; all have defaults."""
