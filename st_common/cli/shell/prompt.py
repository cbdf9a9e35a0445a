"""The prompt on a terminal: statements over several lines, completion, history, changes above it."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path

import typer
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.patch_stdout import patch_stdout

from st_common.answers.completion import Option, completions, fitting, readable
from st_common.answers.names_known import Known
from st_common.answers.typed_text import is_command, is_ended, statement_at, typed_at
from st_common.cli.shell.carrying_out import COMMANDS, NAMING, Shell
from st_common.errors import FairwayError

HISTORY_FILE = "shell_history"
PROMPT = "fairway> "


def run(work: Shell) -> None:
    """Asks for statements until the user leaves; an error is shown, and the prompt comes again."""
    session = _session(work)
    typer.echo(r"Statements end with ;   \h helps, \q leaves")
    with patch_stdout() if sys.stdout.isatty() else nullcontext():
        while not work.done:
            try:
                text = session.prompt(PROMPT)
            except KeyboardInterrupt:
                continue
            except EOFError:
                return
            _carry_out(work, text)


def _carry_out(work: Shell, text: str) -> None:
    try:
        if text.strip():
            work.carry_out(text, watch=True)
    except FairwayError as error:
        typer.echo(f"error: {error}")
        if details := getattr(error, "details", ""):
            typer.echo(details)


def _session(work: Shell) -> "PromptSession[str]":
    return PromptSession(
        history=FileHistory(str(_history_file(work.home.root))),
        completer=Completing(work.known),
        complete_in_thread=True,
        complete_while_typing=False,
        multiline=True,
        key_bindings=_keys(),
        prompt_continuation=lambda width, *_: "> ".rjust(width),
    )


def _history_file(root: Path) -> Path:
    """The file of what was typed before, which only its owner reads; it lies in the home folder."""
    root.mkdir(parents=True, exist_ok=True)
    path = root / HISTORY_FILE
    path.touch(mode=0o600)
    return path


def _keys() -> KeyBindings:
    """Enter ends the input behind `;`, on an empty line and behind a command; elsewhere it begins a new line."""
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if not buffer.text.strip() or is_ended(buffer.text) or is_command(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys


class Completing(Completer):
    """Completes statements and the shell's commands."""

    def __init__(self, known: Known) -> None:
        self._known = known

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        """The completions of what is typed before the cursor, names first."""
        del complete_event
        place = document.cursor_position
        start, options = self._options(document, place)
        for one in options:
            yield Completion(
                one.text, start_position=start - place, display_meta=one.about
            )

    def _options(self, document: Document, place: int) -> tuple[int, Iterable[Option]]:
        if not is_command(document.text):
            return completions(self._known, document.text, place)
        before, _ = statement_at(document.text, place)
        typed = typed_at(before)
        names = self._for_command(document.text_before_cursor)
        return place - len(typed), fitting(names, typed, "")

    def _for_command(self, before: str) -> Iterable[str]:
        command, _, rest = before.lstrip().partition(" ")
        if not rest and not before.endswith(" "):
            return [name.removeprefix("\\") for name in COMMANDS]
        return [name for _, names in readable(self._queries(command)) for name in names]

    def _queries(self, command: str) -> Iterator[tuple[str, Iterable[str]]]:
        if command in NAMING:
            yield "query", self._known.queries
