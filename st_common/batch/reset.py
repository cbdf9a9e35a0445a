"""A stream begun anew from its log: what was made from the log goes, and the next run makes it with new settings (S3).

The log stays with all its rows, so queries stay registered, and begin at the same places as they did.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from st_common import tables
from st_common.batch.processed import FOLDER
from st_common.batch.trial import trial_tables
from st_common.config.home import TOPOLOGY_FILE, Home
from st_common.engine.archive import READER
from st_common.engine.export import export_folder
from st_common.engine.owner import RESET_FILE, now_us, owned
from st_common.engine.recovery import OF_STREAM
from st_common.errors import LogError
from st_common.log.log import Log
from st_common.log.record_settings import begin_anew
from st_common.operations.records import write_record
from st_common.operations.status import status_files

_STATE = ("local", "spark", "resident", "g[0-9]*", "archive", FOLDER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """What a reset leaves for the next run to read.

    Attributes:
        stream: the name of the stream.
        segments: the number of segments in its log.
        kept: how many of them stay as they were decoded at capture, for their raw bytes are gone.
    """

    stream: str
    segments: int
    kept: int


def reset(
    home: Home, stream: str, *, between: Callable[[], None] = lambda: None
) -> Reset:
    """Removes the state of a stream's engines, and the tables and rows that were made from its log.

    A marker goes in first and out last: after a crash in between no engine starts until a reset has come to its end.
    Each step can be done twice.

    Args:
        home: the home folder.
        stream: the name of the stream.
        between: called after each step; tests interrupt by it.

    Raises:
        FencedError: the stream is running.
        LogError: the stream has no log, or the log lacks segments: what they held could never be made again.
    """
    folder, log = home.stream(stream), Log(home.log(stream))
    kept: list[int] = []
    with owned(home, stream, engine="reset") as owner:
        segments = _whole(log, stream)
        write_record(folder / RESET_FILE, {"begun_ts": now_us()})
        steps = [
            *(
                _gone(path)
                for pattern in _STATE
                for path in sorted(folder.glob(pattern))
            )
        ]
        steps += [_gone(export_folder(home, stream)), lambda: _read_anew(log)]
        steps += [lambda: kept.append(begin_anew(log))]
        made = [home.table(name, stream) for name in OF_STREAM]
        steps += [_gone_table(path) for path in [*made, *trial_tables(home, stream)]]
        steps += [lambda: _without_rejects(home, stream)]
        files = [folder / TOPOLOGY_FILE, *status_files(folder), folder / RESET_FILE]
        steps += [_unlinked(path) for path in files]
        for step in steps:
            owner.check()
            step()
            between()
    return Reset(stream=stream, segments=segments, kept=kept[0])


def _whole(log: Log, stream: str) -> int:
    """The number of segments of a log that has them all."""
    end = log.end()
    if not end:
        raise LogError(f"stream {stream!r} has no log", hint="nothing was captured yet")
    if log.purged_before():
        raise LogError(
            f"the log of stream {stream!r} was purged before segment {log.purged_before()}",
            hint="what its records told could never be made again; begin a stream of another name",
        )
    count = sum(1 for _ in log.segments(0))
    if count != end:
        raise LogError(
            f"the log of stream {stream!r} has {count} of {end} segments",
            hint="restore the others",
        )
    return end


def _gone(path: Path) -> Callable[[], None]:
    """Removes a folder: renamed first, so that nobody finds half of it."""

    def remove() -> None:
        if path.exists():
            aside = path.with_name(f".{path.name}.reset")
            shutil.rmtree(aside, ignore_errors=True)
            path.replace(aside)
            shutil.rmtree(aside, ignore_errors=True)

    return remove


def _gone_table(path: Path) -> Callable[[], None]:
    """Removes a table; one that is made in its place may get the same inode, by which open ones are known."""

    def remove() -> None:
        _gone(path)()
        tables.forget(path)

    return remove


def _unlinked(path: Path) -> Callable[[], None]:
    return lambda: path.unlink(missing_ok=True)


def _read_anew(log: Log) -> None:
    for reader in log.reader_positions():
        log.publish(reader, 0)


def _without_rejects(home: Home, stream: str) -> None:
    path = home.table("rejects")
    if tables.exists(path):
        tables.begin_anew(
            path, app=f"{READER}-{stream}", predicate=f"stream = '{stream}'"
        )
