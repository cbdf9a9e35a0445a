"""What this process reads and writes, noted where it happens: lineage names what was touched, not what a list says.

with observing() as seen:        nobody observes: a note costs a look at an empty list
    tables.read(positions)       seen.reads   {positions: 41}
    tables.append(visits, ..)    seen.writes  {visits: 7}
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a check said of a rule about a table: its name, whether it holds, and how much it matters."""

    rule: str
    passed: bool
    severity: str


@dataclass(slots=True)
class Observed:
    """What was touched since the observing began, by all threads of the process.

    Attributes:
        reads: folders of tables and logs, and files, each with the newest version that was read; None where there are
            no versions.
        writes: the same of what was written.
        verdicts: by a table's folder, what checks said of it.
    """

    reads: dict[Path, int | None] = field(default_factory=dict)
    writes: dict[Path, int | None] = field(default_factory=dict)
    verdicts: dict[Path, tuple[Verdict, ...]] = field(default_factory=dict)


_observers: list[Observed] = []


@contextmanager
def observing() -> Iterator[Observed]:
    """Yields what is noted while the body of a `with` runs."""
    seen = Observed()
    _observers.append(seen)
    try:
        yield seen
    finally:
        _observers[:] = [each for each in _observers if each is not seen]


def note_read(path: Path, version: int | None = None) -> None:
    """Notes that a table, a log or a file is read.

    Args:
        path: its folder, or the file.
        version: of a table.
    """
    for seen in _observers:
        _raise(seen.reads, path, version)


def note_written(path: Path, version: int | None = None) -> None:
    """Notes that a table or a log was written; `version` is the one that came of it."""
    for seen in _observers:
        _raise(seen.writes, path, version)


def note_verdicts(path: Path, verdicts: Iterable[Verdict]) -> None:
    """Notes what a check said of a table, behind what others said of it."""
    told = tuple(verdicts)
    for seen in _observers:
        seen.verdicts[path] = (*seen.verdicts.get(path, ()), *told)


def _raise(noted: dict[Path, int | None], path: Path, version: int | None) -> None:
    before = noted.get(path)
    noted[path] = version if before is None else max(before, version or 0)
