"""What operators remember beside the answers: the components of a state, by their kind."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from st_common.errors import StateError
from st_common.operators.state import component
from st_common.operators.state.component import (
    Change,
    Component,
    Numbers,
    Renumbering,
)

Kind = type[Component]
C = TypeVar("C", bound=Component)


class Memories(Mapping[Kind, Component]):
    """The components of a state that have rows, by their kind; asked for another kind it gives one without rows.

    So who asks for `memories[Entries]` needs not know whether any window was ever registered, and the same state is the
    same bytes whoever has looked at it.
    """

    __slots__ = ("_of",)

    def __init__(self, of: Mapping[Kind, Component] | None = None) -> None:
        given = of or {}
        self._of = {
            kind: given[kind] for kind in _in_order({*given}) if len(given[kind])
        }

    def __getitem__(self, kind: type[C]) -> C:
        one = self._of.get(kind)
        return kind() if one is None else cast("C", one)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._of)

    def __len__(self) -> int:
        return len(self._of)

    def changed(self, changes: "Changes") -> "Memories":
        """These components after some changes."""
        after = {kind: self[kind].changed(change) for kind, change in changes.items()}
        return Memories(self._of | after) if after else self

    def change_to(self, after: "Memories") -> "Changes":
        """What leads from these components to others; only kinds in which something changed."""
        mine, others = dict(self), dict(after)
        changes = {
            kind: self[kind].change_to(after[kind])
            for kind in _in_order({*mine, *others})
            if mine.get(kind) is not others.get(kind)
        }
        return {kind: change for kind, change in changes.items() if len(change)}

    def renumbered(self, new: Renumbering) -> "Memories":
        """The same rows with other numbers; see `Component.renumbered`."""
        return Memories({kind: one.renumbered(new) for kind, one in self._of.items()})

    def taken(self, which: Callable[[Component], np.ndarray]) -> "Memories":
        """The rows of each component that `which` says.

        Args:
            which: gives for a component a mask, bool[n].
        """
        return Memories({kind: one.take(which(one)) for kind, one in self._of.items()})

    @staticmethod
    def joined(parts: Sequence["Memories"]) -> "Memories":
        """The rows of several memories as one."""
        kinds = _in_order({kind for part in parts for kind in part})
        return Memories(
            {kind: component.joined([part[kind] for part in parts]) for kind in kinds}
        )

    def numbers(self, of: Numbers) -> np.ndarray:
        """All numbers of one kind that stand in any component; int64, as often as they do, in no order."""
        parts = [one.numbers(of) for one in self._of.values()]
        return np.concatenate([np.empty(0, np.int64), *parts])


Changes = Mapping[Kind, Change[Any]]
"""What becomes of components, by their kind; the others stay as they are."""


def kinds_named(names: Sequence[str], known: Sequence[Kind]) -> list[Kind]:
    """The kinds of component with these names in stored states, in that order.

    Args:
        names: as `names_of` gave them.
        known: all kinds that there are; see `operators.runtime.stored`.

    Raises:
        StateError: a name is not that of a known kind, as in a state that a later version wrote.
    """
    by_name = {kind.LAYOUT.name: kind for kind in known}
    for name in names:
        if name not in by_name:
            raise StateError(
                f"the state holds {name!r}, which this version does not know",
                hint="run the stream with the version that wrote it, or start it anew from its log",
            )
    return [by_name[name] for name in names]


def memories_to_arrays(memories: Memories) -> dict[str, Any]:
    """All components as arrays for a blob."""
    arrays: dict[str, Any] = {}
    for one in memories.values():
        arrays |= one.to_arrays()
    return arrays


def memories_from_arrays(kinds: Sequence[Kind], arrays: Mapping[str, Any]) -> Memories:
    """The components of these kinds that `memories_to_arrays` gave."""
    return Memories({kind: kind.from_arrays(arrays) for kind in kinds})


def changes_to_arrays(changes: Changes) -> dict[str, Any]:
    """Changes as arrays for a blob."""
    arrays: dict[str, Any] = {}
    for change in changes.values():
        arrays |= change.to_arrays()
    return arrays


def changes_from_arrays(kinds: Sequence[Kind], arrays: Mapping[str, Any]) -> Changes:
    """The changes of components of these kinds that `changes_to_arrays` gave.

    Args:
        kinds: those that changed, as `kinds_named` finds them.
        arrays: the arrays of a blob.
    """
    return {kind: Change.from_arrays(kind, arrays) for kind in kinds}


def names_of(kinds: Mapping[Kind, Any]) -> list[str]:
    """The names of kinds of component in stored states."""
    return [kind.LAYOUT.name for kind in kinds]


def _in_order(kinds: set[Kind]) -> list[Kind]:
    """Kinds by their names, so that the same state is always the same bytes."""
    return sorted(kinds, key=lambda kind: kind.LAYOUT.name)
