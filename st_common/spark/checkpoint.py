"""Spark's checkpoint as a cache of the log: one that is torn, or ahead of the table, is made again (SPEC S2)."""

import json
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path

from st_common.errors import StateError
from st_common.position import position_of

_SUMS, _SUMS_MAGIC = ".crc", b"crc\0"
_TEMPORARY = ".tmp"  # what a driver that died was writing


def discard_unusable(checkpoint: Path, *, start: int, committed: int) -> str | None:
    """Removes a checkpoint from which a stream cannot go on without a gap.

    The stream then begins at segment `start` of its log, and what the table holds already is not written again.

        the checkpoint stands behind the table, or where it does   kept: what comes twice is left out at the commit
        it stands ahead: the table was restored from a copy        removed
        its files are torn or do not match their sums              removed

    Args:
        checkpoint: the folder that Spark keeps; nothing happens where there is none.
        start: the segment from which the stream's generation reads.
        committed: the last position that the table of changes holds, -1 for none.

    Returns:
        Why it was removed, as a line for people; None when nothing was wrong.

    Raises:
        StateError: the generation began behind what the table holds: nothing here leads from one to the other.
    """
    if not checkpoint.exists():
        return None
    problem = _problem(checkpoint, committed, start)
    if problem is None:
        return None
    if position_of(start, 0) - 1 > committed:
        raise StateError(
            f"{checkpoint}: {problem}, and its generation began behind that, at segment {start}",
            hint="restore a newer copy of the table, or `fairway streams reset` begins the stream anew",
        )
    shutil.rmtree(checkpoint)
    return f"{checkpoint}: {problem}; the stream is read again from segment {start} of its log"


def _problem(checkpoint: Path, committed: int, start: int) -> str | None:
    try:
        done = _numbers(checkpoint / "commits")
        for folder in ("offsets", "commits"):
            for number in _numbers(checkpoint / folder)[-2:]:
                _lines(checkpoint / folder / str(number))
        reached = _segment(checkpoint / "offsets" / str(done[-1])) if done else start
    except (OSError, ValueError, KeyError, IndexError):
        return "Spark's record of its batches is torn"
    # The table was restored from an older copy: Spark would go on behind a gap.
    if position_of(reached, 0) - 1 > committed:
        return f"it stands at segment {reached}, the table of changes before that"
    damaged = next(_damaged(checkpoint), None)
    return None if damaged is None else f"{damaged} is damaged"


def _damaged(checkpoint: Path) -> Iterator[Path]:
    """The files that are not what the sums beside them say, or that are gone; what has no sums is not judged.

    Spark looks at them too, but only when it comes to a file, and then it ends with a text of a hundred lines.
    """
    for sums in sorted(checkpoint.rglob(f".*{_SUMS}")):
        file = sums.with_name(sums.name.removeprefix(".").removesuffix(_SUMS))
        if not file.name.endswith(_TEMPORARY) and not _agree(file, sums):
            yield file


def _agree(file: Path, sums: Path) -> bool:
    """Whether a file is as Hadoop's file system wrote it: it keeps a CRC-32 for each chunk, big endian."""
    head = len(_SUMS_MAGIC)
    told = sums.read_bytes()
    chunk = int.from_bytes(told[head : head + 4], "big")
    if not told.startswith(_SUMS_MAGIC) or not chunk or not file.exists():
        return False
    with file.open("rb") as data:
        checksums = b"".join(
            zlib.crc32(part).to_bytes(4, "big")
            for part in iter(lambda: data.read(chunk), b"")
        )
    return checksums == told[head + 4 :]


def last_planned(checkpoint: Path, start: int) -> int:
    """The segment after the newest batch that Spark planned, `start` when it planned none.

    Raises:
        OSError, ValueError, KeyError, IndexError: Spark's record of it is torn; see `discard_unusable`.
    """
    planned = _numbers(checkpoint / "offsets")
    return _segment(checkpoint / "offsets" / str(planned[-1])) if planned else start


def _numbers(folder: Path) -> list[int]:
    return sorted(
        int(path.name) for path in folder.glob("[0-9]*") if path.name.isdigit()
    )


def _lines(path: Path) -> list[object]:
    """The lines of a file of Spark's log: a version, then JSON."""
    version, *lines = path.read_text(encoding="utf-8").splitlines()
    if not version.startswith("v") or not lines:
        raise ValueError(path)
    return [json.loads(line) for line in lines if line.startswith(("{", "["))]


def _segment(path: Path) -> int:
    """The segment after a batch: the last line of its offsets."""
    return int(json.loads(path.read_text(encoding="utf-8").splitlines()[-1])["segment"])
