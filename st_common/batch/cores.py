"""A sharded fold on the cores of this machine: a process for each, begun when the first interval is folded.

this process    | reads day 1's changes | counts day 1       | counts day 2
two others      | pack and fold day 1   | pack and fold day 2 | ..             (see `ahead`)
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from st_common.batch.folding import Fold, fold_here
from st_common.batch.sharded import ShardedFold, Work
from st_common.errors import TransientError

Item = TypeVar("Item")


@contextmanager
def fold_on(cores: int) -> Iterator[Fold]:
    """A fold by so many processes, which end with the block; 1 folds in this one.

    Changes are the same for any number. Memory holds a slice of fixes, and a part of the state, in each process.

    Args:
        cores: how many, at least 1.
    """
    if cores == 1:
        yield fold_here
        return
    # A fork of this process would copy locks that threads of Arrow hold; the server has imported all, and runs nothing.
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload([__name__])
    with ProcessPoolExecutor(cores, mp_context=server, initializer=_begin) as pool:
        yield ShardedFold(_OnCores(pool), cores)


@dataclass(frozen=True)
class _OnCores:
    """Runs tasks in a pool of processes; see `batch.sharded.RunTasks`.

    Args:
        pool: of processes.
    """

    pool: Executor

    def __call__(self, tasks: Sequence[tuple[Any, ...]], work: Work) -> list[Any]:
        """What a function gives for each task, in their order."""
        try:
            begun = [self.pool.submit(work, *task) for task in tasks]
            return [one.result() for one in begun]
        except BrokenProcessPool:
            raise TransientError(
                "a process that folded was killed",
                hint="where memory is short, --cores 1 needs the least",
            ) from None


def _begin() -> None:
    """Lets a process live no longer than the one that began it, which alone is told of Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The items, each of which is made in a thread while the one before it is used.

    An error comes when its item is asked for.
    """
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(_next, items)
        while made := coming.result():
            coming = thread.submit(_next, items)
            yield from made


def _next(items: Iterator[Item]) -> tuple[Item, ...]:
    """The next item; none behind the last."""
    return tuple(islice(items, 1))
