"""What is the same for ever and asked again and again, as the value of a constant: remembered by its text."""

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
_MOST = 1 << 18


class Remembered(Generic[K, V]):
    """A cache of a pure function of many keys at once.

    Args:
        plain: the value of a key that is known without asking; None of others.
        asked: the values of keys that nobody knew, in their order; called once for all of them.
        most: behind so many keys all are forgotten.
    """

    def __init__(
        self,
        plain: Callable[[K], V | None],
        asked: Callable[[Sequence[K]], Sequence[V]],
        most: int = _MOST,
    ) -> None:
        self._plain, self._asked, self._most = plain, asked, most
        self._known: dict[K, V] = {}

    def of(self, keys: Sequence[K]) -> dict[K, V]:
        """The value of each key, by the key."""
        known = self._known
        if len(known) > self._most:
            known.clear()
        new = [key for key in dict.fromkeys(keys) if key not in known]
        plain = {key: self._plain(key) for key in new}
        known.update((key, value) for key, value in plain.items() if value is not None)
        rest = [key for key in new if key not in known]
        known.update(zip(rest, self._asked(rest), strict=True))
        return {key: known[key] for key in keys}
