"""What a program takes, declared once: its command line is parsed by it, and forms and bodies can be made of it.

Parameter("regions", WHOLE, "how many are wanted", default=40, least=1)   ->   --regions 40
Parameter("group", NAME, "whose streams and layers", is_word=True)        ->   default
"""

import argparse
import keyword
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from st_common.errors import ConfigError
from st_common.home import NAME_PATTERN

Kind = Literal[
    "text", "name", "whole", "number", "flag", "day", "time", "file", "names"
]
TIME_PATTERN = r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d([.]\d+)?)?(Z|[+-]\d\d:\d\d))?"
"""How a form knows a day, or a time with its zone."""


def _time(text: str) -> datetime:
    """The beginning of a day (UTC), or a time in UTC; one without a zone stays without."""
    try:
        return datetime.combine(date.fromisoformat(text), time(tzinfo=UTC))
    except ValueError:
        at = datetime.fromisoformat(text)
    return at if at.tzinfo is None else at.astimezone(UTC)


_OF_KIND: Mapping[Kind, Callable[[str], Any]] = MappingProxyType(
    {
        "text": str,
        "name": str,
        "whole": int,
        "number": float,
        "day": date.fromisoformat,
        "time": _time,
        "file": Path,
        "names": lambda text: [one.strip() for one in text.split(",") if one.strip()],
    }
)
_WORDS: Mapping[Kind, str] = MappingProxyType(
    {
        "text": "a text",
        "name": "a name such as parks",
        "whole": "a whole number",
        "number": "a number",
        "day": "a day such as 2024-01-31",
        "time": "a day such as 2024-01-31 (UTC), or a time with its zone such as 2024-01-31T10:00Z",
        "file": "a file",
        "names": "names with commas between them",
    }
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One value that a program takes.

    Attributes:
        name: as the option has it, without its dashes.
        kind: what it is.
        text: what it says, for people; the first letter small.
        default: where nobody gives it; None: there is none, and what `text` says counts. A flag is set by True.
        title: what a form calls it; "": the name, with a capital letter.
        unit: of a number, such as `hours`.
        choices: what it may be.
        pattern: what a text must match.
        least: the least number.
        above: what a number must exceed.
        most: the greatest number.
        is_word: it stands for itself, without the name; such words come in the order in which they are declared.
        is_required: the program cannot do without it.
    """

    name: str
    kind: Kind
    text: str
    default: Any = None
    title: str = ""
    unit: str = ""
    choices: tuple[str, ...] = ()
    pattern: str = ""
    least: float = -math.inf
    above: float = -math.inf
    most: float = math.inf
    is_word: bool = False
    is_required: bool = False

    @property
    def key(self) -> str:
        """Its name in Python, and in forms: `source_crs`, `from_`."""
        name = self.name.replace("-", "_")
        return f"{name}_" if keyword.iskeyword(name) else name

    @property
    def option(self) -> str:
        """What says it on a command line; of a flag that is set what takes it back: `--no-purge`."""
        is_set = self.kind == "flag" and self.default
        return f"--no-{self.name}" if is_set else f"--{self.name}"

    def read(self, text: str) -> Any:
        """The value that a text says; the default for the empty text, as a form leaves it.

        Raises:
            ConfigError: it says none, or one that is not allowed; the parameter and what it may be are named.
        """
        if not text and not self.is_required:
            return self.default
        try:
            value = _OF_KIND[self.kind](text)
        except (ValueError, OverflowError):
            raise self._wrong(text) from None
        if self.choices and value not in self.choices:
            raise self._wrong(text)
        pattern = NAME_PATTERN if self.kind == "name" else self.pattern
        if pattern and not re.fullmatch(pattern, text):
            raise self._wrong(text)
        if self.kind in ("whole", "number") and not self._is_within(value):
            raise self._wrong(text)
        if isinstance(value, datetime) and value.tzinfo is None:
            raise ConfigError(
                f"{self.name} is {text!r}, a time without its zone",
                hint=f"{text}Z for UTC, or another zone, as {text}+02:00",
            )
        return value

    def _is_within(self, value: float) -> bool:
        return self.least <= value <= self.most and value > self.above

    def _wrong(self, text: str) -> ConfigError:
        return ConfigError(f"{self.name} is {text!r}", hint=self.takes)

    @property
    def takes(self) -> str:
        """What it may be, in words: `a whole number, at least 1`."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        words = [_WORDS.get(self.kind, "")]
        bounds = (
            ("at least", self.least),
            ("above", self.above),
            ("at most", self.most),
        )
        words += [f"{said} {bound:g}" for said, bound in bounds if math.isfinite(bound)]
        return ", ".join(filter(None, [*words, self.unit]))


@dataclass(frozen=True, slots=True)
class Program:
    """A program that has parameters.

    Attributes:
        name: of the job.
        text: what it does, in a sentence.
        parameters: in the order in which help and forms have them.
        module: what Python runs; "": the job of its name.
    """

    name: str
    text: str
    parameters: tuple[Parameter, ...]
    module: str = ""

    def __getitem__(self, name: str) -> Parameter:
        """The parameter of a name.

        Raises:
            KeyError: there is none.
        """
        return {one.name: one for one in self.parameters}[name]

    def parser(self) -> argparse.ArgumentParser:
        """What parses its command line; what is wrong there is told in a line, with exit code 2."""
        module = self.module or f"jobs.{self.name}"
        parser = _Parser(prog=f"python -m {module}", description=self.text)
        parser.set_defaults(job=self.name)
        for one in self.parameters:
            _add(parser, one)
        return parser


class _Parser(argparse.ArgumentParser):
    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Words may stand between options, as `parks --group=g parks.geojson`."""
        return super().parse_intermixed_args(args, namespace)

    def error(self, message: str) -> Any:
        self.exit(2, f"error: {message} ({self.prog} --help says what it takes)\n")


def _add(parser: argparse.ArgumentParser, one: Parameter) -> None:
    if one.kind == "flag":
        parser.add_argument(
            one.option,
            dest=one.key,
            action="store_false" if one.default else "store_true",
            help=one.text,
        )
        return
    default = "" if one.default in (None, (), []) else f"; default: {one.default}"
    help_text = f"{one.text} ({one.takes}){default}".replace("%", "%%")
    given: dict[str, Any] = {"type": _typed(one), "default": one.default}
    if not one.is_word:
        given |= {"dest": one.key, "required": one.is_required}
        given["metavar"] = one.unit.upper() or one.kind.upper()
    elif not one.is_required:
        given["nargs"] = "?"
    name = one.key if one.is_word else f"--{one.name}"
    parser.add_argument(name, help=help_text, **given)


def _typed(one: Parameter) -> Callable[[str], Any]:
    """Reads a text as argparse wants it: what is wrong is an error of its own."""

    def read(text: str) -> Any:
        try:
            return one.read(text)
        except ConfigError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read
