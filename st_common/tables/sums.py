"""The checksums of a table's commits and checkpoints: neither JSON nor Parquet says that a byte was changed (SPEC S2).

    TABLE/_sums    00000000000000000041.json 89abcdef        a line for each file of the log; the last one counts

Written behind each commit, under the table's lock, and not synced: a file without a line is not judged.
"""

import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

SUMS = "_sums"
_LOG = "_delta_log"


def note_sums(table: Path, names: Iterable[str], *, known: bool) -> None:
    """Notes the checksums of files of a table's log; of those that are not there none.

    Args:
        table: the table's folder; its lock is held.
        names: of the files.
        known: some of them may have been noted; these stay as they were noted.
    """
    noted = sums(table) if known else {}
    lines = [
        f"{name} {checksum:08x}\n"
        for name in names
        if name not in noted
        and (checksum := _checksum(table / _LOG / name)) is not None
    ]
    if lines:
        with (table / SUMS).open("a", encoding="ascii") as file:
            file.write("".join(lines))


def sums(table: Path) -> dict[str, int]:
    """The checksums that were noted, by the names of the files; of a line that cannot be read none."""
    try:
        text = (table / SUMS).read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return {}
    return dict(_read(text))


def _read(text: str) -> Iterator[tuple[str, int]]:
    for line in text.splitlines():
        name, _, checksum = line.partition(" ")
        if len(checksum) == 8 and all(one in "0123456789abcdef" for one in checksum):
            yield name, int(checksum, 16)


def changed_in_log(table: Path) -> list[str]:
    """The files of a table's log whose bytes are not those that were written, by name, rising."""
    return sorted(
        name
        for name, checksum in sums(table).items()
        if _checksum(table / _LOG / name) not in (None, checksum)
    )


def trim_sums(table: Path) -> None:
    """Forgets the checksums of files that are gone; called under the table's lock."""
    kept = {
        name: checksum
        for name, checksum in sums(table).items()
        if (table / _LOG / name).exists()
    }
    draft = table / f".{SUMS}"
    draft.write_text(
        "".join(f"{name} {checksum:08x}\n" for name, checksum in kept.items()),
        encoding="ascii",
    )
    draft.replace(table / SUMS)


def _checksum(path: Path) -> int | None:
    try:
        return zlib.crc32(path.read_bytes())
    except FileNotFoundError:
        return None
