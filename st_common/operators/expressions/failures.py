"""What could not be judged while a step ran: expressions, filters, layers (SPEC S3).

Operators work on arrays and know no queries: they note what fails, and the step asks whose that was (`failed`).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

Key = tuple[str, ...]
"""`("expression", text)`, `("filter", name, custom value)` or `("layer", name, version)`."""


_noted: ContextVar[dict[Key, str] | None] = ContextVar("noted", default=None)


@contextmanager
def noting() -> Iterator[dict[Key, str]]:
    """A context in which what fails is noted instead of raised.

    Yields:
        A dict that is filled while the context lasts: by what failed the first reason, in words for people.
    """
    noted: dict[Key, str] = {}
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


def note(key: Key, why: str, error: Exception) -> None:
    """Notes that something fails, with the reason; the first one stands.

    Args:
        key: what fails; queries that use it are found by it.
        why: in words for people.
        error: what is raised where nobody is `noting`.
    """
    noted = _noted.get()
    if noted is None:
        raise error
    noted.setdefault(key, why)


def each_alone(
    judge: Callable[[np.ndarray], np.ndarray], total: int, raised: list[Exception]
) -> np.ndarray:
    """What is judged of rows that may raise, of each as if it were alone; false where even a row by itself raises.

    Rows are judged together, and halved where that raises. So the result depends on the rows and not on how they come
    together.

    Args:
        judge: gives bool[k] for k numbers of rows (int64).
        total: how many rows there are.
        raised: what is raised for single rows is added to it, in their order.

    Returns:
        bool[total].

    Raises:
        MemoryError: it is never taken for a fault of a row.

    Example:
        four rows, of which a judge refuses number 2, and passes those above 0:  false, true, false, true
    """
    out = np.zeros(total, bool)
    waiting = [np.arange(total)]
    while waiting:
        rows = waiting.pop()
        try:
            out[rows] = judge(rows)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - what others wrote may raise anything
            if len(rows) == 1:
                raised.append(error)
            else:
                half = len(rows) // 2
                waiting += [rows[half:], rows[:half]]
    return out
