"""Making many values without the garbage collector, which would look at all of them again and again."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """No collection of garbage in this process while the body of a `with` runs.

    It is for making values that stay and hold no cycles, such as a million plans: the collector would look at all of
    them again and again. What is not needed any more goes by its count of references as ever.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
