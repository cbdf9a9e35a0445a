"""Arguments and options that several commands share: one name, one help text; those of tasks as jobs have them."""

import inspect
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Annotated, Any

import typer

from st_common.cli.output import Format
from st_common.config.parameters import Parameter, Program
from st_common.config.values import names
from st_common.errors import QualityError
from st_common.programs import OF_COMMANDS

Command = Callable[..., None]

Stream = Annotated[
    str,
    typer.Argument(metavar="STREAM", help="The name of a stream in conf/streams.toml."),
]
QueryName = Annotated[str, typer.Argument(metavar="QUERY", help="The name of a query.")]
Form = Annotated[
    Format,
    typer.Option(
        "--format", help="A table for people, JSON lines or CSV for programs."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="JSON lines, for programs.")]
JsonLines = Annotated[
    bool, typer.Option("--json", help="JSON lines: the same as --format jsonl.")
]
Explain = Annotated[
    bool, typer.Option("--explain", help="Say on standard error which rows were read.")
]
Follow = Annotated[
    bool, typer.Option("--follow", help="Go on: show changes as they are committed.")
]
ForSeconds = Annotated[
    float | None,
    typer.Option(
        "--for", metavar="SECONDS", min=0, help="With --follow: end after this time."
    ),
]
UntilIdle = Annotated[
    bool,
    typer.Option(
        "--until-idle",
        help="With --follow: end when the engines have done what the logs hold.",
    ),
]
ObjectColumn = Annotated[
    str | None,
    typer.Option(
        "--object", metavar="COLUMN", help="The column of objects, if its name is rare."
    ),
]
TimeColumn = Annotated[
    str | None, typer.Option("--time", metavar="COLUMN", help="The column of times.")
]
XColumn = Annotated[
    str | None,
    typer.Option("--x", metavar="COLUMN", help="The column of x, or longitude."),
]
YColumn = Annotated[
    str | None,
    typer.Option("--y", metavar="COLUMN", help="The column of y, or latitude."),
]
PlaceColumn = Annotated[
    str | None,
    typer.Option(
        "--place", metavar="COLUMN", help="The column of points, in place of x and y."
    ),
]


def named_columns(
    *,
    time: str | None = None,
    x: str | None = None,
    y: str | None = None,
    place: str | None = None,
) -> dict[str, str]:
    """The columns that options name, by their keys in a stream's `columns`; without the one of objects."""
    given = {"event_ts": time, "x": x, "y": y, "place": place}
    return {key: name for key, name in given.items() if name is not None}


def taking(program: Program) -> Callable[[Command], Command]:
    """Gives a command what a program takes, all of it in one argument, as its job gets it.

        @taking(PARTITION)
        def partition(ctx: typer.Context, given: Namespace) -> None:   # given.regions is 40

    Whatever else the command takes stands behind a `*`. What is wrong is a ConfigError that names the parameter.
    """
    taken = [as_command(one) for one in program.parameters]

    def wrap(command: Command) -> Command:
        ctx, _, *others = inspect.signature(command, eval_str=True).parameters.values()

        @wraps(command)
        def read(**values: Any) -> None:
            own = values["ctx"].obj
            given = Namespace(job=program.name, home=own.home, conf=own.conf)
            for one in taken:
                name = one.identifier
                setattr(given, name, one.of_line(values.pop(name)))
            command(given=given, **values)

        shown = (ctx, *map(_shown, taken), *others)
        read.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined] # what Typer asks for
        return read

    return wrap


def as_command(one: Parameter) -> Parameter:
    """A parameter of a program as its command has it: with the default of commands."""
    if one.default is None or one.name not in OF_COMMANDS:
        return one
    return replace(one, default=OF_COMMANDS[one.name])


def _shown(one: Parameter) -> inspect.Parameter:
    """A parameter as Typer knows it: a text, which `taking` reads, a flag, or texts that stand several times."""
    kind: Any = str
    default: Any = one.shown_default or None
    if one.is_flag:
        kind, default = bool, bool(one.default)
        option = f"--{one.name}/--no-{one.name}" if default else f"--{one.name}"
        info = typer.Option(option, help=one.sentence)
    elif one.is_word:
        info = typer.Argument(metavar=one.name.upper(), help=one.sentence)
    else:
        kind = list[str] if one.type is names else str
        info = typer.Option(f"--{one.name}", metavar=one.metavar, help=one.sentence)
    return inspect.Parameter(
        one.identifier,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if one.is_required else default,
        annotation=Annotated[kind, info],
    )


def told(command: Command) -> Command:
    """Tells lineage of each call of a command, which `taking` gives what its job gets, as of a run of that job."""

    @wraps(command)
    def run(*, given: Namespace, **others: Any) -> None:
        from st_common.processes.entry import telling_of  # imports delivery

        code = 0
        with telling_of(given) as ending:
            try:
                command(given=given, **others)
            except typer.Exit as end:
                code = end.exit_code
            if code not in (0, QualityError.exit_code):
                ending.failure = f"it ended with exit code {code}"
        if code:
            raise typer.Exit(code)

    return run
