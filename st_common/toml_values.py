"""Values of TOML tables, checked: what is unknown, missing or wrong is an error that names place, key and value."""

import difflib
import math
import re
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar

from st_common.errors import ConfigError

Check = Callable[[Any], Any]
C = TypeVar("C", bound=Check)
OFF = "off"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class WrongError(Exception):
    """What is wrong with a value; `checked` adds the place and the key."""


def takes(words: str) -> Callable[[C], C]:
    """Makes a decorator that notes what a check takes, in words for the page of the settings."""

    def noted(check: C) -> C:
        check.__dict__["takes"] = words
        return check

    return noted


def taken_by(check: Check) -> str:
    """What a check takes, in words.

    Raises:
        KeyError: nobody has noted it by `takes`.
    """
    words: str = check.__dict__["takes"]
    return words


def checked(
    table: Mapping[str, Any],
    keys: Mapping[str, Check],
    kind: type | None,
    place: str,
) -> dict[str, Any]:
    """The values of a table, each as the check of its key gives it back.

    Args:
        table: what the file says.
        keys: the keys that are known, with their checks.
        kind: a dataclass; those of its fields that have no default must be there. None: no key must be.
        place: where the table stands, for errors.

    Raises:
        ConfigError: a key is unknown or missing, or a value is wrong.
    """
    known(table, tuple(keys), place)
    for wanted in fields(kind) if kind is not None else ():
        optional = (
            wanted.default is not MISSING or wanted.default_factory is not MISSING
        )
        if wanted.name in keys and not optional and wanted.name not in table:
            raise ConfigError(f"{place} {wanted.name} is missing")
    values = {}
    for key, value in table.items():
        try:
            values[key] = keys[key](value)
        except WrongError as error:
            raise ConfigError(f"{place} {key} = {value!r} {error}") from None
        except ConfigError as error:
            raise ConfigError(
                f"{place} {key}: {error.message}", hint=error.hint
            ) from None
    return values


def known(
    table: Mapping[str, Any],
    keys: tuple[str, ...],
    place: str,
    *,
    above: Collection[str] = (),
    below: Mapping[str, Collection[str]] | None = None,
) -> None:
    """Makes sure that every key of a table is known.

    Args:
        table: what the file says.
        keys: those that are known.
        place: where the table stands, for errors.
        above: those of the table that this one belongs to; TOML gives a line to the table that is named last above it.
        below: of a stream, those of the tables that belong to it, by the heads of these.

    Raises:
        ConfigError: one is not; with a guess at what was meant.
    """
    for key in table:
        if key in above and key not in keys:
            raise ConfigError(
                f"{place} {key!r} is a key of the stream",
                hint="put it above the table of its first source",
            )
        for head, its_keys in (below or {}).items():
            if key in its_keys and key not in keys:
                raise ConfigError(
                    f"{place} {key!r} is no key of the stream",
                    hint=f"put it into {head}",
                )
        if key not in keys:
            near = difflib.get_close_matches(key, keys, n=1, cutoff=0.5)
            hint = (
                f"did you mean {near[0]!r}?"
                if near
                else f"known keys: {', '.join(keys)}"
            )
            raise ConfigError(f"{place} unknown key {key!r}", hint=hint)


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file.

    Raises:
        FileNotFoundError: there is none.
        ConfigError: it is no TOML, or cannot be read.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except (ValueError, RecursionError, OSError) as error:  # too long a number too
        raise ConfigError(f"{path} cannot be read: {error}") from None


def one_of(*choices: str) -> Check:
    """Makes a check that a value is one of some words."""

    @takes(_either([f"`{choice}`" for choice in choices]))
    def check(value: object) -> str:
        if value in choices:
            return str(value)
        near = difflib.get_close_matches(str(value), choices, n=1)
        raise WrongError(
            f"is none of {', '.join(choices)}"
            + (f" (did you mean {near[0]!r}?)" if near else "")
        )

    return check


def _either(words: Sequence[str]) -> str:
    """Words as in "a, b or c"."""
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def number(*, least: float, above: bool = False, off: bool = False) -> Check:
    """Makes a check that a value is a number in a range, which becomes a float.

    Args:
        least: the least number.
        above: the number must be more than `least`.
        off: "off" may stand there too, and becomes None.
    """
    smallest = f"{least:.6f}".rstrip("0").rstrip(".")
    limit = f"a number{' above' if above else ', at least'} {smallest}"

    @takes(f"{limit}, or `off`" if off else limit)
    def check(value: object) -> float | None:
        if off and value == OFF:
            return None
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            raise WrongError('is no number or "off"' if off else "is no number")
        if value < least or (above and value == least):
            raise WrongError(f"must be {'above' if above else 'at least'} {least:g}")
        return float(value)

    return check


def whole(*, least: int = 1, most: int) -> Check:
    """Makes a check that a value is a whole number from `least` to `most`."""

    @takes(f"a whole number, {least:,} to {most:,}")
    def check(value: object) -> int:
        if (
            isinstance(value, bool)
            or not isinstance(value, int)
            or not least <= value <= most
        ):
            raise WrongError(f"must be a whole number from {least} to {most}")
        return value

    return check


@takes("`true` or `false`")
def flag(value: object) -> bool:
    """The value, when it is true or false."""
    if not isinstance(value, bool):
        raise WrongError("must be true or false")
    return value


@takes("a list of texts")
def words(value: object) -> tuple[str, ...]:
    """The words of a list that is not empty."""
    if (
        not isinstance(value, list)
        or not value
        or not all(isinstance(word, str) for word in value)
    ):
        raise WrongError("must be a list of strings")
    return tuple(value)


@takes("a text")
def text(value: object) -> str:
    """The value, when it is a text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise WrongError("must be a text")
    return value


@takes("the name of an environment variable")
def variable(value: object) -> str:
    """The value, when it is the name of an environment variable."""
    if not isinstance(value, str) or not _VARIABLE.fullmatch(value):
        raise ConfigError(
            "is no name of an environment variable",
            hint="the variable holds the secret, not this file",
        )
    return value
