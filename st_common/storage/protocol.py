"""What the log, the states of engines and small records ask of the place where they lie (SPEC S2).

    create   a new object, whole and durable when the call returns; never over another
    replace  an object for one that was read before (compare-and-set by its tag); `put` asks for no tag
    sync     what is visible now is durable when the call returns

Objects are named by keys, relative paths with `/`. An object that `create` made is never changed again. The operations
are those of an object store (conditional put, ranged get), so that a home may lie on one later.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Protocol


class Storage(Protocol):
    """One folder of objects."""

    def read(self, key: str, *, start: int = 0, length: int | None = None) -> bytes:
        """The bytes of an object from `start` on, at most `length` of them.

        Raises:
            MissingError: there is no such object.
        """
        ...

    def exists(self, key: str) -> bool:
        """Whether there is an object of this key."""
        ...

    def names(self, folder: str) -> list[str]:
        """The last parts of the keys directly below `folder`, objects and folders, sorted; none for no folder."""
        ...

    def create(self, key: str, data: bytes) -> bool:
        """Whether the object was made; False when there is one of this key. Durable when it returns."""
        ...

    def create_all(self, objects: Iterable[tuple[str, bytes]]) -> bool:
        """Makes several objects, visible in their order, and none before all of them are stored.

        Returns:
            False when the first key is taken; nothing was made then.

        Raises:
            ConflictError: a later key is taken; those before it were made.
        """
        ...

    def tagged(self, key: str) -> tuple[bytes, str] | None:
        """An object with the tag of its present content, None when there is none."""
        ...

    def replace(self, key: str, data: bytes, *, tag: str | None) -> str:
        """Puts `data` in the place of the content with this tag, None for no object; gives the new tag. Durable.

        Raises:
            ConflictError: the content is another one by now.
        """
        ...

    def put(self, key: str, data: bytes, *, private: bool = False) -> None:
        """Puts `data` in the place of whatever is there: the last one wins. Whole at any time, durable on return.

        What is private can be read by its owner alone.
        """
        ...

    def delete(self, key: str) -> None:
        """Removes an object, if it is there."""
        ...

    def sync(self, folder: str) -> None:
        """Makes durable that the objects directly below `folder` are there, whoever made them."""
        ...

    def locked(self, name: str) -> AbstractContextManager[None]:
        """Keeps others who ask for this name waiting, so that they need not try twice. Nothing relies on it."""
        ...
