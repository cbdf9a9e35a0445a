"""The command itself: a prompt on a terminal, else statements from standard input."""

import sys
from typing import TextIO

import typer

from st_common.answers.typed_text import is_command, is_ended
from st_common.cli import context
from st_common.cli.shell.carrying_out import Shell


def shell(ctx: typer.Context) -> None:
    r"""Carry out statements at a prompt; \h says what else can be done. Without a terminal: from standard input."""
    home = context.home(ctx)
    with Shell(ctx, home, context.streams(ctx)) as work:
        if sys.stdin.isatty():
            from st_common.cli.shell.prompt import run

            run(work)
        else:
            read_all(work, sys.stdin)


def read_all(work: Shell, source: TextIO) -> None:
    r"""Carries out the statements of a text, each as its `;` comes, and its commands; the first error ends it."""
    waiting = ""
    for line in source:
        waiting = line if not waiting.strip() else waiting + line
        if is_ended(waiting) or is_command(waiting):
            work.carry_out(waiting)
            waiting = ""
        if work.done:
            return
    if waiting.strip():
        work.carry_out(waiting)
