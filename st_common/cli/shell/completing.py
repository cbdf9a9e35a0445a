"""What may be typed next, for the prompt: the shell's commands, and what completes statements everywhere."""

from collections.abc import Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from st_common.cli.shell.carrying_out import COMMANDS, NAMING
from st_common.serving.completion import Option, completions, fitting, readable
from st_common.serving.names_known import Known
from st_common.serving.typed_text import is_command, statement_at, typed_at


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
