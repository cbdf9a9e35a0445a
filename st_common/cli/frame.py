"""What all commands share: the options that stand anywhere on the line, and errors for people."""

import io
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import Abort, TyperException

from st_common.cli.context import plain_names
from st_common.config.redaction import redacted
from st_common.errors import ConfigError, FairwayError, one_line
from st_common.extras import missing, of_spark
from st_common.log_lines import log_in_lines
from st_common.storage import refused

SHARED = ("home", "conf", "debug")
ALONE = object()  # given by who runs one command and ends
_INTERRUPTED = 130
_UNEXPECTED = 1
_LASTING = frozenset({"run", "serve", "capture", "deliver"})
"""Commands of one stream, or of all that can run: they are supervised, and one wrong table ends none but its own."""
MOVED = {
    "backup": "fairway backup create FOLDER",
    "restore": "fairway backup restore FOLDER",
    "completion": "fairway --install-completion",
    "setup-jars": "fairway init --spark",
    "metrics": "fairway status --metrics FILE",
    "rejects replay": "fairway quality replay-rejects STREAM",
    "rejects": "fairway quality rejects STREAM",
    "report": "fairway streams report PAGE",
    "join": "fairway layer join STREAM LAYER",
    "simulate": "python -m demo.simulation STREAM",
    "layer join --kind": "fairway layer join --kinds KIND,..",
    "layer load --planar": "fairway layer load --crs planar",
}
"""What says now what a command, or an option, of an older version said, by the words that called it."""


@dataclass(slots=True)
class Options:
    """The options that every command takes, wherever they stand on the line; the last one counts."""

    home: str | None = None
    conf: str | None = None
    debug: bool = False
    is_alone: bool = False  # the process does nothing but this command
    broken: Mapping[str, ConfigError] = field(default_factory=dict)
    """The streams whose settings are wrong, of a command that has read them."""

    def take(self, params: dict[str, Any]) -> None:
        """Moves the shared options out of the parsed parameters of a command."""
        for name in SHARED:
            value = params.pop(name, None)
            if value is not None and value is not False:
                setattr(self, name, value)


class FairwayCommand(TyperCommand):
    """A command that takes `--home`, `--conf` and `--debug` after its name too."""

    def get_params(self, ctx: typer.Context) -> list[Any]:  # type: ignore[override]
        """The command's parameters, then the shared options."""
        return _taking_plain(_with_shared(super().get_params(ctx), ctx))

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Reads the words; options of an older version are refused with what to write now."""
        path = " ".join(ctx.command_path.split()[1:])
        for word in args:
            _refuse_moved(f"{path} {word.partition('=')[0]}")
        return super().parse_args(ctx, args)

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        """Runs the command without the shared options, which are in `ctx.obj`, and with plain names of tables."""
        ctx.obj.take(ctx.params)
        plain_names(ctx)
        return super().invoke(ctx)


class FairwayGroup(TyperGroup):
    """A group of commands; the outermost one turns errors into one line and an exit code."""

    def get_params(self, ctx: typer.Context) -> list[Any]:  # type: ignore[override]
        """The group's parameters, then the shared options."""
        own = super().get_params(ctx)
        return _taking_plain(own if ctx.parent is None else _with_shared(own, ctx))

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        """Runs a command of the group."""
        ctx.obj.take(ctx.params)
        if ctx.parent is not None:
            return super().invoke(ctx)
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except (
            BrokenPipeError
        ):  # the reader of our output has gone, as in `fairway changes | head`
            _forget_output()
            return 0
        return result

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # type: ignore[override]
        """The command that the words call; those of an older version are refused with what to write now."""
        if args and args[0] not in self.commands:
            words = [*ctx.command_path.split()[1:], *args]
            _refuse_moved(" ".join(words[:2]))
            _refuse_moved(words[0])
        return super().resolve_command(ctx, args)

    def main(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        *,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Runs a command line and exits with its code; gives the code back when not `standalone_mode`."""
        log_in_lines()
        _stand_in()
        options = Options(is_alone=extra.pop("obj", None) is ALONE)
        try:
            result = super().main(args, standalone_mode=False, obj=options, **extra)
            code = result if isinstance(result, int) else 0
            code = code or _told_broken(options, args)
        except Exception as error:  # noqa: BLE001 - the outermost edge
            code = _report(error, debug=options.debug)
        if standalone_mode:
            sys.exit(code)
        return code


def _refuse_moved(old: str) -> None:
    """Raises a ConfigError where a command of an older version, or an option of one, was called so."""
    if old in MOVED:
        raise ConfigError(f"`fairway {old}` of older versions is `{MOVED[old]}` now")


def _stand_in() -> None:
    """Makes of the standard streams what commands take for granted.

    Who starts a command may have closed one, and then Python has none: nothing comes from it, and nothing is kept of
    what is written. A name of a file may be bytes that are no text: they are written as escapes, as errors are.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nothing = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115 - it lasts as long as the process
            setattr(sys, name, nothing)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _told_broken(options: Options, args: Sequence[str] | None) -> int:
    """Says which streams have wrong settings, where a command has read them, and gives the code to exit with.

    What it could do for the others is done. Whoever works on one stream for long exits by how that went.
    """
    given = sys.argv[1:] if args is None else args
    if not options.broken or not _LASTING.isdisjoint(given):
        return 0
    for error in options.broken.values():
        typer.echo(f"WRONG: {one_line(redacted(str(error)))}", err=True)
    return ConfigError.exit_code


def _with_shared(own: list[Any], ctx: typer.Context) -> list[Any]:
    root: Any = ctx.find_root().command
    shared = [param for param in root.params if param.name in SHARED]
    return [*own[:-1], *shared, *own[-1:]]  # the last one is --help


def _taking_plain(params: list[Any]) -> list[Any]:
    """The parameters; values that need no conversion stay as they are, for typer imports pydantic to convert any.

    That is what was left out, a text, and one of a choice of texts: all that most commands are given.
    """
    for param in params:
        if "process_value" not in vars(param):
            param.process_value = partial(_value_of, param, param.process_value)
    return params


def _value_of(
    param: Any, convert: Callable[..., Any], ctx: typer.Context, value: object
) -> Any:
    if not _is_plain(param, value):
        return convert(ctx, value)
    return value if param.callback is None else param.callback(ctx, param, value)


def _is_plain(param: Any, value: object) -> bool:
    """Whether a value is of the type that a parameter's is to be of."""
    if value is None:
        return not param.required
    kind = param.type_descriptor.annotation
    return isinstance(value, str) and (kind is str or value in get_args(kind))


def _report(error: Exception, *, debug: bool) -> int:
    if debug:
        typer.echo(
            redacted("".join(traceback.format_exception(error))), err=True, nl=False
        )
    error = of_spark(missing(refused(error)))
    if isinstance(error, FairwayError):
        _say(str(error))
        if details := getattr(error, "details", ""):
            typer.echo(details, err=True)
        return error.exit_code
    if (
        type(error).__name__ == "NoArgsIsHelpError"
    ):  # its message is the help; it has no public name
        typer.echo(str(error), err=True)
        return 2
    if isinstance(error, TyperException):  # a wrong option or argument
        _say(f"{error.format_message().rstrip('.')} ({_usage_hint(error)})")
        return error.exit_code
    if isinstance(error, Abort):
        return _INTERRUPTED
    _say(
        f"{type(error).__name__}: {' '.join(str(error).split())} (run with --debug to see where)"
    )
    return _UNEXPECTED


def _say(message: str) -> None:
    typer.echo(f"error: {one_line(redacted(message))}", err=True)


def _usage_hint(error: TyperException) -> str:
    ctx = getattr(error, "ctx", None)
    return f"see {ctx.command_path if ctx else 'fairway'} --help"


def _forget_output() -> None:
    """Points stdout to nowhere, so that the interpreter does not fail again when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
