"""How far a command is: a line on stderr, and nothing where stderr is no terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

    from st_common.layers.features import Progress as Stages


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
def progress_of_bytes(
    title: str, size: int | None
) -> Iterator[Callable[[int, int], None]]:
    """A line with how many records and how much of a file is read; gives what is to be told (records, bytes).

    Args:
        title: what is read.
        size: the bytes of the file, None where they are not known.
    """
    from rich.progress import BarColumn, DownloadColumn

    with _line(BarColumn(), DownloadColumn()) as line:
        task = line.add_task(title, total=size)
        yield lambda records, read: line.update(
            task, completed=read, description=f"{title}: {records:,} records"
        )


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
