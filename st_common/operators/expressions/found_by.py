"""By which atoms the conditions of queries are found that nothing else finds (SPEC P8, X13).

condition                                       found by
speed > 5 AND ABS(load * x) < 2                 the range of speed, which it says itself
ABS(load * x - 7) < 2                           load * x, if at least eight compare it
class LIKE '%z12%' OR speed > 100               a part of class, and the range of speed
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

from st_common.operators.expressions.atom import Atom
from st_common.operators.expressions.simple import (
    Parts,
    alternatives_in,
    expressions_in,
    parts_of,
)

FEW = 8
"""Fewer conditions than these that compare one expression are evaluated one by one: that costs no more."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What many conditions ask about.

    Attributes:
        expressions: those that it pays to compute for all points, each with whether its parts are looked at.
        parts: by such an expression and a part of its text how many patterns have it.
    """

    expressions: frozenset[tuple[str, bool]]
    parts: Counter[tuple[str, str]]

    def parts_with(self, parts: Parts) -> Parts:
        """The parts of a condition, where what it asks of shared expressions are atoms too."""
        if parts.atoms or not self.expressions:
            return parts
        atoms, rest = list[Atom](), list[str]()
        for part in parts.rest:
            known = self._among(expressions_in(part))
            # What is asked only loosely must be asked itself as well.
            exact = [one for one in known if not one.loose]
            atoms += exact or map(self._rarest, known)
            rest += [] if exact else [part]
        return Parts(tuple(atoms), tuple(rest))

    def alternatives(self, condition: str) -> tuple[Atom, ...]:
        """Some atoms of which one holds at least where a condition does; nothing where nobody knows any."""
        for part in parts_of(condition).rest:
            of_each = [self.parts_with(one).atoms[:1] for one in alternatives_in(part)]
            if of_each and all(of_each):
                return tuple(chain.from_iterable(of_each))
        return ()

    def _among(self, atoms: Iterable[Atom]) -> list[Atom]:
        return [one for one in atoms if (one.column, one.is_parts) in self.expressions]

    def _rarest(self, atom: Atom) -> Atom:
        """The atom, which asks for that part of a text alone that the fewest others ask for."""
        if not atom.is_parts:
            return atom
        rarest = min(atom.texts, key=lambda text: self.parts[atom.column, text])
        return replace(atom, texts=(rarest,))


def shared_by(conditions: Iterable[str]) -> Shared:
    """What so many conditions ask about that it pays to compute it for all points."""
    counts, parts = Counter[tuple[str, bool]](), Counter[tuple[str, str]]()
    for condition in conditions:
        atoms = list(_asked(parts_of(condition)))
        counts.update({(atom.column, atom.is_parts) for atom in atoms})
        parts.update(
            (atom.column, text)
            for atom in atoms
            if atom.is_parts
            for text in atom.texts
        )
    many = frozenset(one for one, count in counts.items() if count >= FEW)
    return Shared(expressions=many, parts=parts)


def _asked(parts: Parts) -> Iterator[Atom]:
    """What a condition asks of expressions, also by an alternative; what a range says finds whom to ask already."""
    if parts.atoms:
        return
    for part in parts.rest:
        yield from expressions_in(part)
        for one in alternatives_in(part):
            yield from _asked(one)
