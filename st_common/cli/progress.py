"""How far a command is: a line on stderr, and nothing where stderr is no terminal."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from st_common.position import segment_of

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

    from st_common.layers.features import Progress as Stages
    from st_common.operations.status import StreamStatus


@contextmanager
def progress_of_stages(title: str, unit: str) -> Iterator["Stages"]:
    """A line with what is being done, and how much of it is done; gives what is to be told (stage, count)."""
    from rich.progress import BarColumn, TextColumn

    done = TextColumn("{task.fields[done]}")
    with _line(BarColumn(pulse_style="cyan"), done) as line:
        task = line.add_task(title, total=None, done="")
        yield lambda doing, count: line.update(
            task, description=f"{title}: {doing}", done=f"{count:,} {unit}"
        )


@contextmanager
def progress_of_records(title: str) -> Iterator[Callable[[int], None]]:
    """A line with how many records are written; gives what is to be told how many."""
    from rich.progress import BarColumn

    with _line(BarColumn(pulse_style="cyan")) as line:
        task = line.add_task(title, total=None)
        yield lambda records: line.update(
            task, description=f"{title}: {records:,} records"
        )


@contextmanager
def progress_of_many(title: str, total: int) -> Iterator[Callable[[int, str], None]]:
    """A bar with how many of so many are done; gives what is to be told how many, and which one was the last."""
    from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

    with _line(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()) as line:
        task = line.add_task(title, total=total)
        yield lambda count, name: line.update(
            task, completed=count, description=f"{title}: {name}"
        )


@contextmanager
def progress_of_run(
    stream: str, status: Callable[[], "StreamStatus | None"]
) -> Iterator[None]:
    """A line that says while the body runs how a stream goes, by what its engine says of itself.

    Args:
        stream: its name.
        status: what the engine said last.
    """
    if not sys.stderr.isatty():
        yield
        return
    from rich.progress import SpinnerColumn

    first, begun_s = status(), time.monotonic()
    with _line(SpinnerColumn()) as line:
        task = line.add_task(stream, total=None)

        def show() -> None:
            told = words_of_run(status(), first, time.monotonic() - begun_s)
            line.update(task, description=f"{stream}: {told}")

        with _again_and_again(show):
            yield


@contextmanager
def _again_and_again(show: Callable[[], None]) -> Iterator[None]:
    """Calls something twice a second while the body runs, and once when that has ended."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_LOOK_S):
            show()

    watcher = threading.Thread(target=watch, name="progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        show()


def words_of_run(
    status: "StreamStatus | None", first: "StreamStatus | None", seconds: float
) -> str:
    """How a stream goes, in words: fixes and changes since the beginning, the rate of this run, what is left.

    1,204,000 fixes (32,500/s), 410 segments behind, 85,416 changes, at 2024-06-11 00:09:59

    Args:
        status: what its engine said last; None when it has said nothing.
        first: the same when this run began.
        seconds: since then.
    """
    if status is None:
        return "starting"
    before = 0 if first is None else first.fixes
    rate = round(max(status.fixes - before, 0) / seconds) if seconds > 0 else 0
    behind = segment_of(status.end_position) - segment_of(status.position)
    left = f"{behind:,} segments behind" if behind > 0 else "at the log's end"
    words = f"{status.fixes:,} fixes ({rate:,}/s), {left}, {status.changes:,} changes"
    if status.now_ts is None:
        return words
    clock = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(status.now_ts // 1_000_000))
    return f"{words}, at {clock}"


_LOOK_S = 0.5


def _line(*columns: "ProgressColumn") -> "Progress":
    """A line that goes when it ends: what is done, the columns, the time that it took so far."""
    from rich.console import Console
    from rich.progress import Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        *columns,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
