"""The notation in which the grammar is written: W3C's EBNF, as values.

name ::= 'WORD' other? ( one | another )*      WORD, NAME: kinds of tokens      /* what a reader should know */
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""\s*(?:(/\*.*?\*/)|('[^']*'|"[^"]*")|([A-Za-z_]\w*(?:\s*::=)?)|([()|?*+])|(.))""",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Word:
    """A word or a sign that stands in a text as it is, in any case."""

    text: str


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of tokens, such as NUMBER."""

    name: str


@dataclass(frozen=True, slots=True)
class Ref:
    """What the production of this name gives."""

    name: str


@dataclass(frozen=True, slots=True)
class Seq:
    """One after the other."""

    parts: "tuple[Part, ...]"


@dataclass(frozen=True, slots=True)
class Alt:
    """One of them."""

    parts: "tuple[Part, ...]"


@dataclass(frozen=True, slots=True)
class Many:
    """`?`, `*` or `+` behind a part."""

    part: "Part"
    least: int
    most: int | None


Part = Word | Kind | Ref | Seq | Alt | Many
_TIMES = {"?": (0, 1), "*": (0, None), "+": (1, None)}


def productions(text: str) -> Mapping[str, Part]:
    """The productions of a grammar by name, in their order.

    Raises:
        ValueError: the text is no grammar, or a production is named that is not there.
    """
    tokens = [
        found
        for found in _TOKEN.finditer(text)
        if found[1] is None and found[0].strip()
    ]
    reader = _Reader([found[0].strip() for found in tokens])
    made: dict[str, Part] = {}
    while reader.current:
        name = reader.name()
        made[name] = reader.alternatives()
    missing = {ref for part in made.values() for ref in _refs(part)} - set(made)
    if missing:
        raise ValueError(f"no production is called {', '.join(sorted(missing))}")
    return made


class _Reader:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def current(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def name(self) -> str:
        found = self.current
        if not found.endswith("::="):
            raise ValueError(f"expected a production, not {found!r}")
        self._at += 1
        return found.removesuffix("::=").strip()

    def alternatives(self) -> Part:
        parts = [self._sequence()]
        while self.current == "|":
            self._at += 1
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Alt(tuple(parts))

    def _sequence(self) -> Part:
        parts: list[Part] = []
        while (
            self.current
            and self.current not in "|)"
            and not self.current.endswith("::=")
        ):
            parts.append(self._repeated())
        return parts[0] if len(parts) == 1 else Seq(tuple(parts))

    def _repeated(self) -> Part:
        part = self._single()
        if self.current in _TIMES:
            least, most = _TIMES[self.current]
            self._at += 1
            return Many(part, least, most)
        return part

    def _single(self) -> Part:
        found = self.current
        self._at += 1
        if found == "(":
            part = self.alternatives()
            if self.current != ")":
                raise ValueError("a parenthesis is not closed")
            self._at += 1
            return part
        if found[0] in "'\"":
            return Word(found[1:-1])
        if not found[0].isalpha():
            raise ValueError(f"unexpected {found!r}")
        return Kind(found) if found.isupper() else Ref(found)


def words_of(part: Part) -> set[str]:
    """The words and signs that stand in a part itself."""
    if isinstance(part, Word):
        return {part.text}
    return {word for inner in _inner(part) for word in words_of(inner)}


def _refs(part: Part) -> set[str]:
    if isinstance(part, Ref):
        return {part.name}
    return {name for inner in _inner(part) for name in _refs(inner)}


def _inner(part: Part) -> "tuple[Part, ...]":
    if isinstance(part, Seq | Alt):
        return part.parts
    return (part.part,) if isinstance(part, Many) else ()
