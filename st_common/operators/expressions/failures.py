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
    """What fails within goes into the dict, each thing once with the first reason; else `note` raises."""
    noted: dict[Key, str] = {}
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


def note(key: Key, why: str, error: Exception) -> None:
    """Notes that something fails; where nobody is `noting` the error is raised."""
    noted = _noted.get()
    if noted is None:
        raise error
    noted.setdefault(key, why)


def each_alone(
    judge: Callable[[np.ndarray], np.ndarray], total: int, raised: list[Exception]
) -> np.ndarray:
    """bool[n] of rows that are judged alone or in parts: false where even a row by itself raises.

    `judge` gives bool[k] for k numbers of rows. What it raised for single rows goes into `raised`, in their order. So
    the result depends on the rows and not on how they come together.
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
