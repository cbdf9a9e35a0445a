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
        """The bytes of an object, or some of them.

        Args:
            key: the object.
            start: the first byte, from 0.
            length: how many bytes at most; None: all from `start` on.

        Raises:
            MissingError: there is no such object.
            StorageError: the system refuses.
        """
        ...

    def exists(self, key: str) -> bool:
        """Whether there is an object of this key."""
        ...

    def names(self, folder: str) -> list[str]:
        """The last parts of the keys directly below `folder`, objects and folders, sorted; none for no folder."""
        ...

    def create(self, key: str, data: bytes | Iterable[bytes]) -> bool:
        """Makes an object, durable when this returns; never over another.

        Args:
            key: the object.
            data: its bytes, whole or in parts that are taken one after the other.

        Returns:
            Whether it was made; False when there is one of this key already.

        Raises:
            StorageError: the disk is full, or refuses; nothing was made.
        """
        ...

    def create_all(self, objects: Iterable[tuple[str, bytes]]) -> bool:
        """Makes several objects, visible in their order, and none before all of them are stored.

        Args:
            objects: pairs of key and bytes.

        Returns:
            False when the first key is taken; nothing was made then.

        Raises:
            ConflictError: a later key is taken; those before it were made.
            StorageError: the disk is full, or refuses.
        """
        ...

    def tagged(self, key: str) -> tuple[bytes, str] | None:
        """The bytes of an object and a tag that names that very content, None when there is no such object."""
        ...

    def replace(self, key: str, data: bytes, *, tag: str | None) -> str:
        """Puts bytes in the place of a content that was read before: compare-and-set. Durable when this returns.

        Args:
            key: the object.
            data: its new content.
            tag: of the content that is replaced, as `tagged` gave it; None: there must be no object.

        Returns:
            The tag of the new content.

        Raises:
            ConflictError: the content is another one by now.
        """
        ...

    def put(self, key: str, data: bytes, *, private: bool = False) -> None:
        """Puts bytes in the place of whatever is there: the last one wins.

        Readers see the old bytes or the new ones. Durable when this returns.

        Args:
            key: the object.
            data: its new content.
            private: only its owner may read it.
        """
        ...

    def delete(self, key: str) -> None:
        """Removes an object, if it is there."""
        ...

    def forget(self, folder: str) -> None:
        """Removes a folder in which nothing lies any more, where folders are things of their own."""
        ...

    def sync(self, folder: str) -> None:
        """Makes the names directly below a folder survive a power cut, whoever made them."""
        ...

    def locked(self, name: str) -> AbstractContextManager[None]:
        """Keeps others who ask for this lock waiting while the body of a `with` runs.

        It only spares writers who would lose a race a second try: whether data are right does not rely on it.
        """
        ...
