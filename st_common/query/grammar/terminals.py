"""Text as tokens, and which terminals of the grammar a token may be."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from st_common.query.grammar.kept import automaton
from st_common.query.grammar.tokens import Token, UnclosedError

_CLASSES = ("LENGTH", "TIME", "SPEED", "COUNTED", "TYPE")  # of words
_KINDS = ("NUMBER", "STRING", "QUOTED")  # tokens that look like nothing else
_ODD = r"(?P<ODD>(?i:(\d+\.?\d*|\.\d+)e([+-](?!\d)|(?![\w+-]))))"
_AHEAD = {
    "LAYER": "LAYER",
    "ANALYZE": "ANALYZE",
    "BETWEEN": "DURING",
}  # terminals that look out behind a word
_BEFORE_NAMES = ("LAYER", "ANALYZE")  # elsewhere they are names
_OPEN = r"(?P<OPEN>['\"]|/\*)"


def tokens_in(text: str, start: int = 0, end: int | None = None) -> list[Token]:
    """The tokens of a part of a text, in order; a character that begins none is one.

    Raises:
        UnclosedError: a text, a name in quotes or a comment does not end there.
    """
    tokens = []
    behind = len(text) if end is None else end
    for match in terminals().splitter.finditer(text, start, behind):
        kind = match.lastgroup
        if kind is None:
            break  # blanks at the end
        if kind == "OPEN":
            raise UnclosedError(match.start(kind), match[kind])
        token = Token(match[kind])
        token.kind, token.source = kind, text
        token.start_pos, token.end_pos = match.span(kind)
        tokens.append(token)
    return tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminals:
    """What the terminals look like.

    `words` has those that stand in the grammar as they are, by their text in capitals, and `shown` has their text;
    `classes` are words of one use, such as units; `splitter` cuts a text into tokens.
    """

    words: Mapping[str, str]
    shown: Mapping[str, str]
    classes: Mapping[str, Sequence[str]]
    reserved: frozenset[str]
    patterns: Mapping[str, re.Pattern[str]]
    splitter: re.Pattern[str]

    def words_of(self, terminal: str) -> Sequence[str]:
        """The words and signs that a terminal stands for; none for a kind of tokens, such as numbers."""
        if terminal in self.shown:
            return (self.shown[terminal],)
        return self.classes.get(terminal, ())

    def meanings_of(self, token: Token) -> Sequence[str]:
        """The terminals that a token may be: the first one that may stand at its place is meant."""
        kind = token.kind
        if kind == "NAME":
            known = _meanings_of(token)
            if known[0] in _BEFORE_NAMES and not self._is_ahead(known[0], token):
                return known[1:]
            if known[0] == "DURING" and not self._is_ahead("DURING", token):
                return (*known[1:], "DURING")
            return known
        if kind == "SIGN":
            sign = self.words.get(token, str(token))
            return ("STROKE", sign) if self._is_ahead("STROKE", token) else (sign,)
        if kind == "STRING" and self.patterns["EXTENT"].fullmatch(token):
            return ("EXTENT", kind)
        if kind == "NUMBER" and token in self.words:
            return (self.words[token], kind)
        return (kind,)

    def _is_ahead(self, name: str, token: Token) -> bool:
        """Whether behind the token stands what the terminal looks out for."""
        return self.patterns[name].match(token.source, token.start_pos) is not None


@lru_cache(maxsize=8192)
def _meanings_of(written: str) -> tuple[str, ...]:
    """What a word may be: a word of the grammar, one of a class of words, a name."""
    known, word = terminals(), written.upper()
    own = [_AHEAD[word]] if word in _AHEAD else []
    own += [known.words[word]] if word in known.words else []
    own += [name for name in _CLASSES if word in map(str.upper, known.classes[name])]
    if word in known.reserved:
        return (*own, "RESERVED")
    if known.patterns["ALIAS"].fullmatch(word):
        own.append("ALIAS")
    return (*own, "NAME")


@cache
def terminals() -> Terminals:
    """The terminals of the grammar."""
    known = automaton().terminals
    shown = {each.name: each.text for each in known if each.text is not None}
    words = {text.upper(): name for name, text in shown.items()}
    patterns = {each.name: each.pattern for each in known}
    classes = {name: re.findall(r"\w+", patterns[name]) for name in _CLASSES}
    phrases = [each.name for each in known if each.priority > 0]
    ahead = {name: word for word, name in (*_AHEAD.items(), ("/", "STROKE"))}
    return Terminals(
        words=words,
        shown=shown | ahead | {name: _spelled(name) for name in phrases},
        classes=classes,
        reserved=frozenset(re.findall(r"\w+", patterns["RESERVED"])),
        patterns={name: re.compile(pattern) for name, pattern in patterns.items()},
        splitter=_splitter(patterns, phrases, shown.values()),
    )


def _spelled(phrase: str) -> str:
    """How a phrase is written: the papers' words with a stroke, others with a blank."""
    return phrase.replace("_", "-" if phrase.startswith("GPAC") else " ")


def _splitter(
    patterns: Mapping[str, str], phrases: Sequence[str], shown: Iterable[str]
) -> re.Pattern[str]:
    """What cuts a text into tokens: phrases, words, numbers, what is in quotes, signs, with blanks before them."""
    ignored = "|".join(patterns[name] for name in automaton().ignored)
    signs = sorted((text for text in shown if not text[0].isalnum()), key=len)
    groups = [
        *(f"(?P<{name}>{patterns[name]})" for name in (*phrases, "NAME")),
        _ODD,
        *(f"(?P<{name}>{patterns[name]})" for name in _KINDS),
        _OPEN,
        f"(?P<SIGN>{'|'.join(map(re.escape, reversed(signs)))}|.)",
    ]
    return re.compile(f"(?:{ignored})*+(?:{'|'.join(groups)}|$)", re.DOTALL)
