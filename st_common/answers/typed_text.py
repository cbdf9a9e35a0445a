"""Where a statement ends, and which stream it is about, in a text that is still being written."""

import re

_LEX = re.compile(
    r"""\s+|--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|"(?:[^"]|"")*"|(?P<open>'|"|/\*)|(?P<end>;)|.""",
    re.DOTALL,
)
_FROM = re.compile(
    r'\bFROM\s+(?:[\w"]+\s*=\s*)?(?:(?:"[^"]+"|\w+)\s*\.\s*)?'
    r'(?:"(?P<quoted>[^"]+)"|(?P<plain>\w+))',
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d]\w*$")
_BLANK = re.compile(r"(?:\s+|--[^\n]*|/\*.*?\*/)*", re.DOTALL)


def is_command(text: str) -> bool:
    r"""Whether a text is a command of the shell: it begins with a backslash."""
    return text.lstrip().startswith("\\")


def is_ended(text: str) -> bool:
    """Whether the last statement of a text has its `;`, which is neither in quotes nor in a comment."""
    ended = False
    for token in _LEX.finditer(text):
        if token["open"]:
            return False
        if token["end"]:
            ended = True
        elif not _BLANK.fullmatch(token[0]):
            ended = False
    return ended


def statement_at(text: str, place: int) -> tuple[str, str]:
    """The statement around a place of a text: what stands before the place, and all of it."""
    start, end = 0, len(text)
    for token in _LEX.finditer(text):
        if token["end"] and token.start() < place:
            start = token.end()
        elif token["end"]:
            end = token.start()
            break
    return text[start:place], text[start:end]


def typed_at(before: str) -> str:
    """The word or the name in double quotes that a text ends with, unfinished; empty when it ends with neither."""
    opened = next((token for token in _LEX.finditer(before) if token["open"]), None)
    if opened is not None:
        return before[opened.start() :] if opened["open"] == '"' else ""
    token = _WORD.search(before)
    return token[0] if token else ""


def stream_of(statement: str) -> str | None:
    """The name after FROM, without that of its group; None where there is none."""
    match = _FROM.search(statement)
    return (match["quoted"] or match["plain"]) if match else None
