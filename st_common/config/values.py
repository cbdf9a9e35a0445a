"""What a value may be, as a file of settings or a word of a command line has it.

whole(least=1, most=256)    a whole number, at least 1, at most 256
    4   ->   4              0   ->   must be a whole number from 1 to 256
"""

import difflib
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

from st_common.config.home import NAME_PATTERN, checked_name
from st_common.errors import ConfigError
from st_common.written import whole_number

OFF = "off"
_LARGEST = (1 << 63) - 1
TIME_PATTERN = r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d([.]\d+)?)?(Z|[+-]\d\d:\d\d))?"
"""How a form knows a day, or a time with its zone."""
_VARIABLE = "[A-Za-z_][A-Za-z0-9_]*"
_DAY = "a day such as 2024-01-31"


class WrongError(Exception):
    """What is wrong with a value, and a hint; whoever knows its key and its place adds them."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Type:
    """What a value may be.

    Attributes:
        takes: in words.
        check: gives a value of TOML as programs take it; a WrongError or a ConfigError says what is wrong with it.
        schema: what JSON Schema can say of it.
        read: makes of a word of a command line what `check` takes; a ValueError says that it is none.
        word: what stands for a value in help, such as `DAY`; "": the name of what takes it.
    """

    takes: str
    schema: Mapping[str, Any]
    check: Callable[[Any], Any] = lambda value: value
    read: Callable[[str], Any] = str
    word: str = ""

    def __call__(self, value: object) -> Any:
        """See `check`."""
        return self.check(value)


def takes(
    words: str, *, read: Callable[[str], Any] = str, **schema: Any
) -> Callable[[Callable[[Any], Any]], Type]:
    """Makes a decorator that makes a type of its check.

    Args:
        words: what it takes.
        read: see `Type`.
        **schema: what JSON Schema can say of it.
    """
    return lambda check: Type(takes=words, check=check, schema=schema, read=read)


def number(
    *,
    least: float = -math.inf,
    above: float = -math.inf,
    most: float = math.inf,
    off: bool = False,
) -> Type:
    """A number within bounds, which becomes a float; with `off` also "off", which becomes None."""
    none = f'is no number or "{OFF}"' if off else "is no number"

    def check(value: object) -> float | None:
        if off and value == OFF:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise WrongError(none)
        if not math.isfinite(value):
            raise WrongError(none)
        return _bounded(float(value), least=least, above=above, most=most)

    schema = {"type": "number", **_bounds(least, above, most)}
    return Type(
        takes=_within("a number", least, above, most)
        + (f', or "{OFF}"' if off else ""),
        check=check,
        schema={"anyOf": [schema, {"const": OFF}]} if off else schema,
        read=float,
    )


def _bounded(value: float, *, least: float, above: float, most: float) -> float:
    if value < least:
        raise WrongError(f"must be at least {least:g}")
    if value <= above:
        raise WrongError(f"must be above {above:g}")
    if value > most:
        raise WrongError(f"must be at most {most:g}")
    return value


def whole(*, least: float = 1, most: float = math.inf) -> Type:
    """A whole number within bounds."""
    said = f"from {least} to {most}" if most < math.inf else f"of at least {least}"

    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise WrongError(f"must be a whole number {said}")
        if not least <= value <= most:
            raise WrongError(f"must be a whole number {said}")
        return value

    return Type(
        takes=_within("a whole number", least, -math.inf, most),
        check=check,
        schema={"type": "integer", **_bounds(least, -math.inf, most)},
        read=lambda word: whole_number(word, _LARGEST),
    )


def _within(what: str, least: float, above: float, most: float) -> str:
    bounds = (("at least", least), ("above", above), ("at most", most))
    said = [f"{word} {_plain(it)}" for word, it in bounds if math.isfinite(it)]
    return ", ".join([what, *said])


def _plain(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".")


def _bounds(least: float, above: float, most: float) -> dict[str, float]:
    bounds = {"minimum": least, "exclusiveMinimum": above, "maximum": most}
    return {name: bound for name, bound in bounds.items() if math.isfinite(bound)}


def one_of(*choices: str) -> Type:
    """One of some words."""

    def check(value: object) -> str:
        if value in choices:
            return str(value)
        near = difflib.get_close_matches(str(value), choices, n=1)
        guess = f" (did you mean {near[0]!r}?)" if near else ""
        raise WrongError(f"is none of {', '.join(choices)}{guess}")

    return Type(
        takes=f"one of {', '.join(choices)}",
        check=check,
        schema={"type": "string", "enum": list(choices)},
    )


@takes("true or false", read={"true": True, "false": False}.get, type="boolean")
def flag(value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise WrongError("must be true or false")
    return value


@takes("a text", type="string", minLength=1)
def text(value: object) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise WrongError("must be a text")
    return value


def matching(pattern: str, takes: str = "a text", *, word: str = "") -> Type:
    """A text of which all matches a pattern; `takes` says what that is, and `word` stands for it in help."""

    def check(value: object) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise WrongError(f"must match {pattern}")
        return value

    return Type(
        takes=takes,
        check=check,
        schema={"type": "string", "pattern": f"^({pattern})$"},
        word=word,
    )


def named(what: str = "name") -> Type:
    """What streams, layers and groups may be called, and `what` of them it is."""

    def check(value: object) -> str:
        if not isinstance(value, str):
            raise WrongError("must be a name")
        return checked_name(value, what)

    return Type(
        takes="a name such as parks",
        check=check,
        schema={"type": "string", "pattern": f"^({NAME_PATTERN})$"},
    )


@takes("a list of texts", type="array", items={"type": "string"}, minItems=1)
def words(value: object) -> tuple[str, ...]:
    """Texts, in a list that is not empty."""
    listed = value if isinstance(value, list) else []
    if not listed or not all(isinstance(word, str) for word in listed):
        raise WrongError("must be a list of strings")
    return tuple(listed)


@takes("a table", type="object")
def table(value: object) -> dict[str, Any]:
    """A table, whose keys are looked at elsewhere."""
    if not isinstance(value, dict):
        raise WrongError("must be a table")
    return value


@takes("the name of an environment variable", type="string", pattern=f"^({_VARIABLE})$")
def variable(value: object) -> str:
    """The name of an environment variable; what else stands there may be the secret itself, and is not shown."""
    if not isinstance(value, str) or not re.fullmatch(_VARIABLE, value):
        raise ConfigError(
            "is no name of an environment variable",
            hint="the variable holds the secret, not this file",
        )
    return value


def _time(word: str) -> datetime:
    """The beginning of a day (UTC), or a time in UTC."""
    try:
        return datetime.combine(date.fromisoformat(word), time(tzinfo=UTC))
    except ValueError:
        instant = datetime.fromisoformat(word)
    if instant.tzinfo is None:
        raise WrongError(
            "a time without its zone",
            hint=f"{word}Z for UTC, or another zone, as {word}+02:00",
        )
    return instant.astimezone(UTC)


day = Type(
    takes=_DAY,
    schema={"type": "string", "format": "date"},
    read=date.fromisoformat,
    word="DAY",
)
instant = Type(
    takes=f"{_DAY} (UTC), or a time with its zone such as 2024-01-31T10:00Z",
    schema={"type": "string", "pattern": f"^({TIME_PATTERN})$"},
    read=_time,
    word="TIME",
)
file = Type(
    takes="a file",
    schema={"type": "string", "minLength": 1},
    read=Path,
    word="FILE",
)
names = Type(
    takes="names with commas between them",
    schema={"type": "array", "items": {"type": "string"}},
    read=lambda word: [one.strip() for one in word.split(",") if one.strip()],
    word="NAME,..",
)
