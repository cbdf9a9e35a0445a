"""What a task takes, declared once: job, command, form of a DAG and HTTP read it alike and say the same of it.

Parameter("regions", whole(), "how many are wanted", default=40)            ->   --regions 40
Parameter("group", named(), "whose streams and layers", is_word=True)       ->   default
"""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from st_common.config.keys import Key
from st_common.config.values import WrongError, named, names
from st_common.errors import ConfigError

_CLEAR = ("a text", "a file", named().takes, names.takes)
"""What is not said again: it says no more than the text of who takes it."""


@dataclass(frozen=True, slots=True)
class Parameter(Key):
    """One value that a program takes. A flag, of which nobody says a default, is set by being there.

    Names may stand with commas between them, or each behind an option of its own.

    Attributes:
        title: what a form calls it; "": the name, with a capital letter.
        is_word: it stands for itself, without the name; such words come in the order in which they are declared.
    """

    title: str = ""
    is_word: bool = False

    @property
    def is_flag(self) -> bool:
        """Whether it is true or false, and so has no value on a command line."""
        return self.type.schema.get("type") == "boolean"

    @property
    def option(self) -> str:
        """What says it on a command line; of a flag that is set what takes it back: `--no-purge`."""
        is_set = self.is_flag and self.default
        return f"--no-{self.name}" if is_set else f"--{self.name}"

    @property
    def sentence(self) -> str:
        """What people are told of it, by help, forms and OpenAPI: what it says, and what it may be."""
        is_clear = self.is_flag or "enum" in self.type.schema or self.takes in _CLEAR
        end = "" if self.text.endswith(".") else "."
        takes = end if is_clear else f" ({self.takes})."
        return f"{self.text[0].upper()}{self.text[1:]}{takes}"

    @property
    def shown_default(self) -> str:
        """The text that says its default; "" where there is none."""
        return "" if self.default in (None, ()) else str(self.default)

    @property
    def metavar(self) -> str:
        """What stands for its value in help: `DAY`, `SECONDS`, `rows|mb`; else its name."""
        choices = "|".join(self.type.schema.get("enum", ()))
        return choices or (self.unit or self.type.word or self.name).upper()

    def read(self, text: str) -> Any:
        """The value that a text says; the default for the empty text, as a form leaves it.

        Raises:
            ConfigError: it says none, or one that is not allowed; the parameter and what it may be are named.
        """
        if not text and not self.is_required:
            return self.default
        try:
            return self.type.check(self.type.read(text))
        except WrongError as error:
            said = f", {error}" if error.hint else ""
            hint = error.hint or self.takes
            raise ConfigError(f"{self.name} is {text!r}{said}", hint=hint) from None
        except (ValueError, OverflowError, ConfigError):
            raise ConfigError(f"{self.name} is {text!r}", hint=self.takes) from None

    def of_line(self, given: Any) -> Any:
        """The value that a command line gives: a text, texts that stand several times, a flag, or None for nothing."""
        if isinstance(given, bool):
            return given
        if isinstance(given, list):
            return [name for text in given for name in self.read(text)]
        return self.read(given or "")


@dataclass(frozen=True, slots=True)
class Program:
    """A program that has parameters.

    Attributes:
        name: of the job.
        text: what it does, in a sentence.
        parameters: in the order in which help and forms have them.
        module: what Python runs; "": the job of its name.
        moved: options of an older version, and what to write now.
    """

    name: str
    text: str
    parameters: tuple[Parameter, ...]
    module: str = ""
    moved: Mapping[str, str] = field(default_factory=dict)

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
        parser.program = self
        for one in self.parameters:
            _add(parser, one)
        return parser


class _Parser(argparse.ArgumentParser):
    program: Program

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """What each parameter is. Words may stand between options, as `parks --group=g parks.geojson`."""
        words = sys.argv[1:] if args is None else args
        for old in {word.partition("=")[0] for word in words} & {*self.program.moved}:
            self.error(f"{old} of older versions is {self.program.moved[old]} now")
        given = super().parse_intermixed_args(words, namespace)
        try:
            for one in self.program.parameters:
                name = one.identifier
                setattr(given, name, one.of_line(getattr(given, name)))
        except ConfigError as error:
            self.error(str(error))
        return given

    def error(self, message: str) -> Any:
        self.exit(2, f"error: {message} ({self.prog} --help says what it takes)\n")


def _add(parser: argparse.ArgumentParser, one: Parameter) -> None:
    """Adds a parameter to a command line."""
    default = f" Default: {one.shown_default}." if one.shown_default else ""
    given: dict[str, Any] = {"help": one.sentence.replace("%", "%%")}
    if one.is_flag:
        is_set = argparse.BooleanOptionalAction  # --purge, --no-purge
        given |= {"action": is_set if one.default else "store_true"}
        parser.add_argument(f"--{one.name}", default=bool(one.default), **given)
        return
    given["help"] += default
    if one.type is names:
        given["action"] = "append"
    if one.is_word:
        given |= {} if one.is_required else {"nargs": "?"}
        parser.add_argument(one.identifier, **given)
        return
    given |= {"required": one.is_required, "metavar": one.metavar}
    parser.add_argument(one.option, dest=one.identifier, **given)
