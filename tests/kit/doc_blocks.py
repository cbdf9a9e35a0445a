"""The examples of a page of docs, and what their fences say about how they are tried.

```sh               commands that are run
```console          the same behind "$ ", with what they say
```sh endless       commands that end only when they are stopped: their words are checked
```sh elsewhere     commands that need a network, another program or this checkout: the same
```text             nothing that could be run: a drawing, a listing, a message
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.exceptions import TyperException

_FENCE = re.compile(r"^( *)```([^\n`]*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
_INDENTED = re.compile(
    r"^(?![ ]*(?:[-*+]|\d+\.) )\S.*\n\n((?: {4}.*\n)+)", re.MULTILINE
)
_INLINE = re.compile(r"`fairway ([^`\n]+)`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """An example of a page.

    Attributes:
        line: the line of its fence, from 1.
        kind: the words of the fence: "sql wrong".
        text: what is in it.
    """

    line: int
    kind: str
    text: str

    @property
    def commands(self) -> list[str]:
        """Its commands, one a line: those behind "$ " of a console, without comments and empty lines."""
        lines = self.text.replace("\\\n", " ").split("\n")
        if self.kind.startswith("console"):
            lines = [line[2:] for line in lines if line.startswith("$ ")]
        return [line for line in lines if line and not line.startswith("#")]


def blocks(page: Path) -> list[Block]:
    """All fenced examples of a page, in its order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            line=text.count("\n", 0, match.start()) + 1,
            kind=match[2].strip(),
            text=match[3],
        )
        for match in _FENCE.finditer(text)
    ]


def indented(page: Path) -> list[str]:
    """Code that is indented in place of fenced, of which nothing says how it is tried."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    return [match[1] for match in _INDENTED.finditer(text)]


def spoken_of(page: Path) -> Iterator[str]:
    """Commands of `fairway` that the sentences of a page name: "fairway run STREAM"."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    for match in _INLINE.finditer(text):
        yield f"fairway {match[1]}"


def wrong_words(command: str, program: Any) -> str:
    """What is wrong with the words of a command line, as the parser of its program sees it; "" when nothing is.

    Names that stand for something are words as any: `fairway run STREAM`. A `..` stands for what is left out.
    """
    try:
        words = [one for one in shlex.split(command, comments=True) if one != ".."]
        _parse(program, words[1:], None)
    except (TyperException, ValueError) as error:
        return f"{command}: {getattr(error, 'message', error)}"
    return ""


def _parse(program: Any, words: list[str], parent: Any) -> None:
    """Goes down to the command that the words name; TyperException: there is none, or it knows an option not."""
    context = program.context_class(program, parent=parent)
    _, left, _ = program.make_parser(context).parse_args(args=list(words))
    if left and hasattr(program, "commands"):
        _, command, rest = program.resolve_command(context, left)
        _parse(command, rest, context)
    elif left:
        raise ValueError(f"too many words: {' '.join(left)}")
