"""Ctrl-C for commands that go on until it: it ends them, whatever they are in the middle of."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def until_interrupted() -> Iterator[Callable[[], bool]]:
    """Gives what says whether Ctrl-C was pressed, which raises KeyboardInterrupt as well.

    Python drops an exception that a signal raises while a destructor or a callback of a library runs; so whoever goes
    on and on asks, too. In another thread than the main one Ctrl-C is left as it is.
    """
    over = threading.Event()

    def interrupted(_number: int, _frame: FrameType | None) -> None:
        over.set()
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield over.is_set
        return
    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield over.is_set
    finally:
        signal.signal(signal.SIGINT, before)
