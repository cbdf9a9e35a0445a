"""What a program takes, declared once: its command line is parsed by it, and forms and bodies can be made of it.

Parameter("regions", whole(), "how many are wanted", default=40)            ->   --regions 40
Parameter("group", named(), "whose streams and layers", is_word=True)       ->   default
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from st_common.config.keys import Key
from st_common.config.values import WrongError
from st_common.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Parameter(Key):
    """One value that a program takes. A flag, of which nobody says a default, is set by being there.

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
    if one.is_flag:
        parser.add_argument(
            one.option,
            dest=one.identifier,
            action="store_false" if one.default else "store_true",
            help=one.text,
        )
        return
    default = "" if one.default in (None, (), []) else f"; default: {one.default}"
    help_text = f"{one.text} ({one.takes}){default}".replace("%", "%%")
    given: dict[str, Any] = {"type": _typed(one), "default": one.default}
    if not one.is_word:
        given |= {"dest": one.identifier, "required": one.is_required}
        given["metavar"] = (one.unit or one.name).upper()
    elif not one.is_required:
        given["nargs"] = "?"
    name = one.identifier if one.is_word else f"--{one.name}"
    parser.add_argument(name, help=help_text, **given)


def _typed(one: Parameter) -> Callable[[str], Any]:
    """Reads a text as argparse wants it: what is wrong is an error of its own."""

    def read(text: str) -> Any:
        try:
            return one.read(text)
        except ConfigError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read
