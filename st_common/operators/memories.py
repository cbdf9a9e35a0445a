"""All kinds of component that a state may have; a stored state with another one is refused."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from st_common.errors import StateError
from st_common.operators import component
from st_common.operators.component import Change, Component, Numbers, Renumbering
from st_common.operators.entries import Entries
from st_common.operators.fence_visits import Visits
from st_common.operators.frame_rows import FrameRows, Tracks
from st_common.operators.groups import Groups

KINDS: tuple[type[Component], ...] = (
    Entries,
    Groups,
    FrameRows,
    Tracks,
    Visits,
)
_BY_NAME = {kind.LAYOUT.name: kind for kind in KINDS}

C = TypeVar("C", bound=Component)


class Memories(Mapping[type[Component], Component]):
    """The components of a state by their kind; those that have no rows are there as well."""

    __slots__ = ("_of",)

    def __init__(self, of: Mapping[type[Component], Component] | None = None) -> None:
        self._of = {kind: kind() for kind in KINDS} | dict(of or {})

    def __getitem__(self, kind: type[C]) -> C:
        return cast("C", self._of[kind])

    def __iter__(self) -> Any:
        return iter(self._of)

    def __len__(self) -> int:
        return len(self._of)

    def changed(self, changes: "Changes") -> "Memories":
        """These components after some changes."""
        after = {
            kind: self._of[kind].changed(change) for kind, change in changes.items()
        }
        return Memories(self._of | after) if after else self

    def change_to(self, after: "Memories") -> "Changes":
        """What leads from these components to others."""
        changes = {
            kind: mine.change_to(after[kind])
            for kind, mine in self._of.items()
            if mine is not after[kind]
        }
        return {kind: change for kind, change in changes.items() if len(change)}

    def renumbered(self, new: Renumbering) -> "Memories":
        """The same rows with other numbers."""
        return Memories({kind: one.renumbered(new) for kind, one in self._of.items()})

    def taken(self, which: Callable[[Component], np.ndarray]) -> "Memories":
        """The rows of each component that `which` says, as a mask."""
        return Memories({kind: one.take(which(one)) for kind, one in self._of.items()})

    @staticmethod
    def joined(parts: Sequence["Memories"]) -> "Memories":
        """The rows of several memories as one; at least one."""
        return Memories(
            {kind: component.joined([part[kind] for part in parts]) for kind in KINDS}
        )

    def numbers(self, of: Numbers) -> np.ndarray:
        """All numbers of one kind that stand in any component (int64), as often as they do."""
        return np.concatenate([one.numbers(of) for one in self._of.values()])


Changes = Mapping[type[Component], Change[Any]]
"""What becomes of components, by their kind; the others stay as they are."""


def kind_named(name: str) -> type[Component]:
    """The kind of component with this name in stored states.

    Raises:
        StateError: there is none.
    """
    if name not in _BY_NAME:
        raise StateError(
            f"the state holds {name!r}, which this version does not know",
            hint="run the stream with the version that wrote it, or start it anew from its log",
        )
    return _BY_NAME[name]


def memories_to_arrays(memories: Memories) -> dict[str, Any]:
    """All components as arrays for a blob."""
    arrays: dict[str, Any] = {}
    for one in memories.values():
        arrays |= one.to_arrays()
    return arrays


def memories_from_arrays(names: list[str], arrays: Mapping[str, Any]) -> Memories:
    """The components that `memories_to_arrays` gave, by their names.

    Raises:
        StateError: one of the names is unknown.
    """
    kinds = [kind_named(name) for name in names]
    return Memories({kind: kind.from_arrays(arrays) for kind in kinds})


def changes_to_arrays(changes: Changes) -> dict[str, Any]:
    """Changes as arrays for a blob."""
    arrays: dict[str, Any] = {}
    for change in changes.values():
        arrays |= change.to_arrays()
    return arrays


def changes_from_arrays(names: list[str], arrays: Mapping[str, Any]) -> Changes:
    """The changes that `changes_to_arrays` gave, by the names of their components.

    Raises:
        StateError: one of the names is unknown.
    """
    kinds = [kind_named(name) for name in names]
    return {kind: Change.from_arrays(kind, arrays) for kind in kinds}


def names_of(kinds: Mapping[type[Component], Any]) -> list[str]:
    """The names of kinds of component in stored states."""
    return [kind.LAYOUT.name for kind in kinds]
