"""Writes docs/commands.md, every command with its arguments and options, from the command line itself.

`--check` compares instead of writing.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from written_page import write_or_check

from st_common.cli import app
from st_common.cli.frame import SHARED

PAGE = Path("docs/commands.md")
HEAD = """# All commands and options

What `fairway COMMAND --help` says, in one place. `make generate` writes the page from the command line itself.
[cli.md](cli.md) explains the commands, with examples. `--home`, `--conf` and `--debug` may stand anywhere on the line.
"""


def page() -> str:
    """The page as it should be."""
    root = typer.main.get_command(app)
    lines = [HEAD]
    with typer.Context(root, info_name="fairway") as context:
        lines += _options(context, root.params)
        for path, command in commands(root):
            lines += _section(context, path, command)
    return "\n".join(lines).rstrip() + "\n"


def commands(
    command: TyperCommand | TyperGroup, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], TyperCommand | TyperGroup]]:
    """Every command that does something, with the words that call it, in the order of `--help`."""
    if not isinstance(command, TyperGroup):
        yield path, command
        return
    for name, part in command.commands.items():
        yield from commands(part, (*path, name))


def _section(
    context: typer.Context, path: tuple[str, ...], command: TyperCommand | TyperGroup
) -> Iterator[str]:
    words = " ".join(path)
    with typer.Context(command, info_name=words, parent=context) as own:
        arguments = [
            _argument(part)
            for part in command.params
            if isinstance(part, TyperArgument)
        ]
        yield from (f"## `{' '.join(('fairway', words, *arguments))}`", "")
        yield from (_in_paragraphs(command.help or ""), "")
        params = [part for part in command.params if not _is_shared(part)]
        yield from _options(own, params)


def _is_shared(param: TyperArgument | TyperOption) -> bool:
    """Whether each command has it: such options stand once, at the head of the page."""
    return param.name in SHARED or param.name == "help"


def _in_paragraphs(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _options(context: typer.Context, params: list[Any]) -> Iterator[str]:
    if not params:
        return
    yield from ("| | default | |", "|---|---|---|")
    for param in params:
        meaning = " ".join(str(getattr(param, "help", None) or "").split())
        cells = (_call(context, param), _default(param), meaning)
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    yield ""


def _argument(param: TyperArgument) -> str:
    return param.display_name_raw if param.required else f"[{param.display_name_raw}]"


def _call(context: typer.Context, param: TyperArgument | TyperOption) -> str:
    """How it is written: `--limit N`, `--purge` / `--no-purge`, or the word of an argument."""
    if isinstance(param, TyperArgument):
        return f"`{_argument(param)}`"
    names = [*param.opts, *param.secondary_opts]
    if getattr(param, "is_flag", False):
        return " / ".join(f"`{name}`" for name in names)
    value = param.metavar or param.display_type(context)
    return ", ".join(f"`{name} {value}`" for name in names)


def _default(param: TyperArgument | TyperOption) -> str:
    """What counts where it is left out; "" where nothing does, or its meaning says it."""
    if param.required:
        return "must be given"
    if param.secondary_opts:
        return f"`{(param.opts if param.default else param.secondary_opts)[0]}`"
    is_plain = isinstance(param.default, str | int | float) and param.default != ""
    return f"`{param.default}`" if is_plain and param.default is not False else ""


if __name__ == "__main__":
    sys.exit(
        write_or_check(PAGE, page(), target="generate ARGS=commands", about=__doc__)
    )
