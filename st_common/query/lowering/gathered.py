"""All that is refused of one statement: its clauses are read one by one, and a wrong one does not hide the next."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from st_common.query.grammar.nodes import Refused

_Made = TypeVar("_Made")
_Other = TypeVar("_Other")


@dataclass(frozen=True, slots=True)
class Gathered:
    """What was refused so far, in the order in which it was found."""

    found: list[Refused] = field(default_factory=list)

    def attempt(self, make: Callable[[], _Made], otherwise: _Other) -> _Made | _Other:
        """What `make` gives; when that is refused, it is kept and `otherwise` stands for it."""
        try:
            return make()
        except Refused as refused:
            self.found.append(refused)
            return otherwise
