"""Which laws a long search still has to try: one that is broken off goes on where it was, or takes a tenth of them."""

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tests.kit.effort import DEEP


@dataclass(frozen=True, slots=True)
class Note:
    """One search of one law: what it was (pytest's node id), cases that it tried, seconds, whether one failed."""

    law: str
    cases: int
    seconds: float
    has_failed: bool


def read_notes(file: Path) -> dict[str, Note]:
    """What each law has tried, all its searches together; nothing where there is no file.

    Its cases are those since it last failed: a law that was mended has to show them all.
    """
    notes: dict[str, Note] = {}
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    for line in lines:
        note = Note(**json.loads(line))
        if (before := notes.get(note.law)) and not note.has_failed:
            cases = note.cases + (0 if before.has_failed else before.cases)
            note = replace(note, cases=cases, seconds=note.seconds + before.seconds)
        notes[note.law] = note
    return notes


def add_note(file: Path, note: Note) -> None:
    """Appends a line."""
    with file.open("a", encoding="utf-8") as target:
        target.write(json.dumps(asdict(note)) + "\n")


def left_to_try(laws: Iterable[str], notes: Mapping[str, Note]) -> list[str]:
    """Those that have not had all their cases: first those never tried, then the cheapest, by what a case took."""

    def costs(law: str) -> float:
        note = notes.get(law)
        return note.seconds / max(1, note.cases) if note else 0.0

    return sorted((law for law in laws if missing(law, notes)), key=costs)


def missing(law: str, notes: Mapping[str, Note]) -> int:
    """How many cases a law has not had yet; all of them since it failed."""
    note = notes.get(law)
    return DEEP if note is None or note.has_failed else max(0, DEEP - note.cases)


def tenth_of(laws: Iterable[str], seed: int) -> list[str]:
    """A tenth of laws, in their order: ten seeds one after the other have each of them once.

    Args:
        laws: pytest's node ids, as they are before xdist adds the group of a test.
        seed: which tenth.
    """
    return [law for law in laws if zlib.crc32(law.encode()) % 10 == seed % 10]
