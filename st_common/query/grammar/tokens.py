"""A token of a text: a word, a name in quotes, a number, a text, a sign, with its place.

It knows only what it looks like. Which terminal of the grammar it is depends on where it stands: see `language`.
"""

from collections.abc import Iterator, Sequence

SEMICOLON = ";"


class Token(str):
    """A token of `source` from `start_pos` to `end_pos`.

    `kind` is what it looks like, `type` the terminal that it is at its place.
    """

    __slots__ = ("end_pos", "kind", "source", "start_pos", "type")

    kind: str
    type: str
    source: str
    start_pos: int
    end_pos: int
    line = column = end_line = end_column = (
        None  # which Lark asks for, and nobody reads
    )

    @property
    def span(self) -> tuple[int, int]:
        """Its offsets in the source: where it begins, and behind its end."""
        return self.start_pos, self.end_pos


class UnclosedError(Exception):
    """Something that begins at an offset is not closed: a text, a name in quotes, a comment."""

    def __init__(self, start: int, mark: str) -> None:
        super().__init__(mark)
        self.start, self.mark = start, mark


def chunks_of(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """The tokens of each statement, without the semicolons between them."""
    chunk: list[Token] = []
    for token in tokens:
        if token != SEMICOLON:
            chunk.append(token)
        elif chunk:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
