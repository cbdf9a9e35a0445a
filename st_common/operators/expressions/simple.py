"""Conditions that say no more than where columns lie: `speed > 5 AND kind IN ('taxi', 'bus')` (SPEC P8, X13).

They need no database: a range of numbers or a set of texts for each column that a condition names. Whatever else a
condition may say is DuckDB's. It may be the rest of one that is simple by half: `kind = 'taxi' AND ABS(load - 3) > 9`.
Trees of expressions are imported where a rest is read: sqlglot is slow to import, and simple conditions need none.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from math import isfinite

from st_common.operators.expressions.atom import Atom
from st_common.operators.expressions.computed import computed_atom
from st_common.operators.expressions.evaluation import constants
from st_common.operators.expressions.grams import gram_atom
from st_common.operators.expressions.remembered import Remembered

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<text>'(?:[^']|'')*')|(?P<name>[A-Za-z_]\w*)"
    r'|"(?P<quoted>[^"]+)"|(?P<sign><=|>=|=|<|>|[-+*/(),]))'
)
_SIGNS = {"=", "<", ">", "<=", ">="}
_TURNED = {"=": "=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_WORDS = {"AND", "IN", "BETWEEN"}
_PART = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[A-Za-z_]\w*|[()]")
_OPENING, _CLOSING = {"(", "CASE"}, {")", "END"}
_MOST_DIGITS = 15  # a decimal number of so many is read as a double without a doubt

Token = tuple[str, str]


class _OtherError(Exception):
    """The condition is not a simple one."""


@lru_cache(maxsize=1 << 17)
def atoms_of(condition: str) -> tuple[Atom, ...]:
    """What a condition asks, all of it; nothing when it is not a simple one.

    Example:
        speed > 5 AND kind IN ('taxi', 'bus')      speed from 5 (open), kind of two texts
    """
    try:
        parser = _Parser(_tokens(condition))
        atoms = parser.conjunction()
        parser.end()
    except _OtherError:
        return ()
    return tuple(atoms)


@dataclass(frozen=True, slots=True)
class Parts:
    """What a condition asks of columns, and the parts of it that are left, which must hold as well.

    Attributes:
        atoms: what it asks of columns, also loosely what the rest asks by arithmetic.
        rest: the parts that AND joins and that are no atom; none of a simple condition.
    """

    atoms: tuple[Atom, ...]
    rest: tuple[str, ...] = ()


@lru_cache(maxsize=1 << 17)
def parts_of(condition: str) -> Parts:
    """What a condition asks of columns, and the rest.

    Example:
        kind = 'taxi' AND ABS(load - 3) > 9      kind of one text; the rest ABS(load - 3) > 9
        ABS(load - 3) < 9                        load about from -6 to 12, and all of it as the rest
    """
    whole = atoms_of(condition)
    if whole:
        return Parts(whole)
    atoms, rest = list[Atom](), list[str]()
    for part in _conjuncts(condition):
        of_part = atoms_of(part)
        atoms += of_part
        rest += [] if of_part else [part]
    atoms += chain.from_iterable(map(_loosely, rest))
    return Parts(tuple(atoms), tuple(rest))


@lru_cache(maxsize=1 << 17)
def expressions_in(part: str) -> tuple[Atom, ...]:
    """What a part of the rest asks of expressions as of columns; nothing where it does not.

    Example:
        ABS(load * x - 7) < 2        the column load * x: about from 5 to 9
        NOT x >= y + 3               what x < y + 3 asks
    """
    from st_common.operators.expressions.differences import difference_atom

    turned = _negated(part)
    if turned is not None:
        of_each = map(expressions_in, parts_of(_without_parentheses(turned)).rest)
        return tuple(replace(one, loose=True) for one in chain.from_iterable(of_each))
    asked = (
        computed_atom(part, atoms_of),
        difference_atom(part),
        gram_atom(part),
        _loose_expression(part),
    )
    return tuple(one for one in asked if one is not None)


@lru_cache(maxsize=1 << 17)
def alternatives_in(part: str) -> tuple[Parts, ...]:
    """What OR joins in a part of the rest: one of these holds where it does; nothing where it joins nothing.

    Example:
        (kind = 'taxi' OR load > 9 AND x > 0)      kind of one text; load from 9 on and x above 0
    """
    disjuncts = _split(_without_parentheses(_negated(part) or part), "OR")
    return tuple(map(parts_of, disjuncts)) if len(disjuncts) > 1 else ()


def _negated(part: str) -> str | None:
    """As `negated.negated`."""
    from st_common.operators.expressions.negated import negated

    return negated(part)


def _without_parentheses(part: str) -> str:
    """A part without parentheses around all of it."""
    inner = part[1:-1]
    is_around = part[:1] == "(" and part[-1:] == ")" and _is_closed(inner)
    return inner if is_around else part


def _is_closed(text: str) -> bool:
    """Whether no parenthesis closes that was not opened before."""
    depth = 0
    for match in _PART.finditer(text):
        depth += (match[0] == "(") - (match[0] == ")")
        if depth < 0:
            return False
    return depth == 0


def _loosely(part: str) -> list[Atom]:
    """What is asked of columns where a part of a condition holds, which must be asked itself as well."""
    from st_common.operators.expressions.loosened import loose_ranges

    turned = _negated(part)
    if turned is not None:
        atoms = parts_of(_without_parentheses(turned)).atoms
        return [replace(atom, loose=True) for atom in atoms]
    return [_loose_atom(*range_) for range_ in loose_ranges(part)]


def _loose_expression(part: str) -> Atom | None:
    """What a part asks of the first expression that a range follows for."""
    from st_common.operators.expressions.loosened import loose_expressions

    ranges = loose_expressions(part)
    return replace(_loose_atom(*ranges[0]), is_computed=True) if ranges else None


def _loose_atom(column: str, *ends: float) -> Atom:
    """An atom of a range whose ends are written with fewer digits than a double has: they are read at once.

    The range is wider by more than these leave out.
    """
    low, high = (f"{end:.12g}" if isfinite(end) else "" for end in ends)
    return Atom(column=column, low=low, high=high, loose=True)


def _conjuncts(condition: str) -> list[str]:
    """What a condition joins by AND outside of parentheses and CASE; the whole where OR stands there."""
    is_either = len(_split(condition, "OR")) > 1
    return [condition] if is_either else _split(condition, "AND")


def _split(condition: str, by: str) -> list[str]:
    """What a condition joins by AND, or by OR, outside of parentheses and CASE."""
    cuts, depth, is_between = [0], 0, False
    for match in _PART.finditer(condition):
        word = match[0].upper()
        depth += (word in _OPENING) - (word in _CLOSING)
        if depth == 0 and word == by and not (by == "AND" and is_between):
            cuts += match.span()
        if depth == 0 and word in ("AND", "BETWEEN"):
            is_between = word == "BETWEEN"
    ends = [*cuts, len(condition)]
    return [
        condition[start:end].strip()
        for start, end in zip(ends[::2], ends[1::2], strict=True)
    ]


def values_of(texts: Sequence[str]) -> dict[str, float | None]:
    """The value of each constant as a double, as DuckDB says; None for one that is not a finite number, as 1/0."""
    return _VALUES.of(texts)


def is_whole(constant: str) -> bool:
    """Whether a constant is written as a whole number: 5 is, 5.0 is not; "" (no end) counts as one."""
    return not constant or constant.removeprefix("-").isdecimal()


def _plain_value(text: str) -> float | None:
    """The value of a number that is a double without a doubt; None of other constants."""
    digits = text.removeprefix("-").replace(".", "", 1)
    is_plain = digits.isdecimal() and len(digits) <= _MOST_DIGITS
    return float(text) if is_plain else None


_VALUES: Remembered[str, float | None] = Remembered(_plain_value, constants)


def _tokens(condition: str) -> list[Token]:
    """The words and signs of a condition with their kinds; what is none of them makes it no simple one."""
    tokens, at = list[Token](), 0
    text = condition.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise _OtherError
        kind, value = match.lastgroup, match[match.lastgroup]
        if kind == "name" and value.upper() in _WORDS:
            kind, value = "word", value.upper()
        tokens.append(("name" if kind == "quoted" else kind, value))
        at = match.end()
    return tokens


class _Parser:
    """Reads a conjunction of atoms."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens, self._at = [*tokens, ("end", "")], 0

    def conjunction(self) -> list[Atom]:
        atoms = self._item()
        while self._next == ("word", "AND"):
            self._at += 1
            atoms += self._item()
        return atoms

    def end(self) -> None:
        if self._next[0] != "end":
            raise _OtherError

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self, *wanted: Token) -> Token:
        token = self._next
        if wanted and token not in wanted:
            raise _OtherError
        self._at += 1
        return token

    def _item(self) -> list[Atom]:
        """A comparison, or a conjunction in parentheses."""
        start = self._at
        # A parenthesis opens a conjunction, or else a constant such as `(1 + 2) * 3`.
        if self._next == ("sign", "("):
            try:
                return self._in_parentheses()
            except _OtherError:
                self._at = start
        if self._next[0] == "name":
            return [self._of_column(self._take()[1])]
        low = self._constant()
        sign = self._sign()
        kind, name = self._take()
        if kind != "name":
            raise _OtherError
        # Written the other way around: 5 < speed is speed > 5.
        return [_compared(name, _TURNED[sign], low)]

    def _in_parentheses(self) -> list[Atom]:
        """A conjunction in parentheses, if nothing behind it makes it part of an expression."""
        self._take(("sign", "("))
        atoms = self.conjunction()
        self._take(("sign", ")"))
        if self._next not in (("word", "AND"), ("sign", ")"), ("end", "")):
            raise _OtherError
        return atoms

    def _sign(self) -> str:
        kind, sign = self._take()
        if kind != "sign" or sign not in _SIGNS:
            raise _OtherError
        return sign

    def _of_column(self, name: str) -> Atom:
        """What is asked of a column: BETWEEN, IN, or one comparison."""
        if self._next == ("word", "BETWEEN"):
            self._at += 1
            low = self._constant()
            self._take(("word", "AND"))
            return Atom(column=name, low=low, high=self._constant())
        if self._next == ("word", "IN"):
            self._at += 1
            return Atom(column=name, texts=self._texts())
        sign = self._sign()
        if self._next[0] == "text" and sign == "=":
            return Atom(column=name, texts=(_unquoted(self._take()[1]),))
        return _compared(name, sign, self._constant())

    def _texts(self) -> tuple[str, ...]:
        """The texts of a list in parentheses."""
        self._take(("sign", "("))
        texts = []
        while True:
            kind, text = self._take()
            if kind != "text":
                raise _OtherError
            texts.append(_unquoted(text))
            if self._take(("sign", ","), ("sign", ")"))[1] == ")":
                return tuple(texts)

    def _constant(self) -> str:
        """A number, or what is made of numbers alone, as it is written."""
        start, depth = self._at, 0
        while True:
            kind, value = self._next
            if kind == "sign" and value in "+-*/":
                pass
            elif (kind, value) == ("sign", "("):
                depth += 1
            elif (kind, value) == ("sign", ")") and depth:
                depth -= 1
            elif kind != "number":
                break
            self._at += 1
        parts = [value for _, value in self._tokens[start : self._at]]
        if not parts or depth:
            raise _OtherError
        return (
            parts[0] + parts[1]
            if len(parts) == 2 and parts[0] == "-"
            else " ".join(parts)
        )


def _compared(name: str, sign: str, constant: str) -> Atom:
    if sign == "=":
        return Atom(column=name, low=constant, high=constant)
    if sign[0] == "<":
        return Atom(column=name, high=constant, open_high=sign == "<")
    return Atom(column=name, low=constant, open_low=sign == ">")


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'")
