"""Whether a stream's log is the one that its tables were made from, and reaches as far as they do (SPEC S2).

A log that was restored from an older copy ends before the place at which its tables stand. What is appended then gets
numbers that the tables have passed, so it would be taken for done. Once it has grown past that place only the segment
at it tells that the log is another one: so a commit keeps, with its place, the mark of the segment it ends with.

    changes stands at 43.0, and says mark(42)
    the log ends at 20               older than its table
    the log ends at 50, mark(42) differs    another log: it was older, and has grown since
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from st_common import tables
from st_common.config.home import Home
from st_common.errors import StateError
from st_common.log.log import Log
from st_common.log.segment import marked_segment
from st_common.position import printed, segment_of, start_of

ENGINE, ARCHIVE = "engine", "archive"
_NOTE = "-log"  # behind the name of an app: the mark of the segment that its last commit ends with


def log_note(log: Log, app: str, last: int) -> dict[str, int]:
    """What a commit keeps of the log beside its place: see `tables.append`.

    Args:
        log: the log.
        app: the app transaction that commits.
        last: the last segment of which the table has everything then.
    """
    return {f"{app}{_NOTE}": log.mark(last)}


def check_log(home: Home, stream: str) -> None:
    """Makes sure that a stream's tables were made from the log that is there now.

    Raises:
        StateError: the log ends before the place at which a table stands, or is another one; both places are named.
        LogError: a segment is missing or damaged.
    """
    log = Log(home.log(stream))
    problem = next(_problems(home, stream, log), None)
    if problem is not None:
        raise StateError(
            f"the log of stream {stream!r} {problem}", hint=_way_out(stream, log)
        )


def _problems(home: Home, stream: str, log: Log) -> Iterator[str]:
    """What tells that the log is not the one that the tables were made from."""
    for table, app, following in positions(home, stream):
        mark = tables.committed(table, f"{app}{_NOTE}")
        departs = departure(log, following, mark)
        if departs is None:
            continue
        end = log.end()
        stands = (
            f"{table.relative_to(home.root)} stands at {printed(start_of(following))}"
        )
        if departs == "older":
            yield f"ends at {printed(start_of(end))}, but {stands}: it is older than what was made from it"
        else:
            yield (
                f"ends at {printed(start_of(end))} and {stands}, but its segment {following - 1} is not the one "
                "that was read then: it was put back to an older copy, and has grown since"
            )


def departure(
    log: Log, next_segment: int, mark: int | None
) -> Literal["older", "another"] | None:
    """Why a log is not the one that was read up to a segment; None where nothing tells so.

    Args:
        log: the log that is there now.
        next_segment: the segment that comes next for who has read it.
        mark: that of the segment in front, as it was read; None: it was not noted.

    Returns:
        "older": the log ends before; "another": the segment in front is another one.

    Raises:
        LogError: a segment is missing or damaged.
    """
    if next_segment > log.end():
        return "older"
    last = next_segment - 1
    # An older version commits without a note, and leaves that of an earlier place.
    if mark is None or last < 0 or marked_segment(mark) != last:
        return None
    if last < log.first() - 1:  # purged; of the last one in front the header stays
        return None
    found = log.mark(last)
    return "another" if found and found != mark else None


def positions(home: Home, stream: str) -> Iterator[tuple[Path, str, int]]:
    """How far the tables that are made from a log are: each with its app, and the segment that comes next."""
    for table, app in made_from_log(home, stream):
        if (following := next_segment(table, app)) is not None:
            yield table, app, following


def made_from_log(home: Home, stream: str) -> list[tuple[Path, str]]:
    """The tables that say how much of a stream's log they have, each with the app that notes it."""
    archive = f"{ARCHIVE}-{stream}"
    return [
        (home.table("changes", stream), ENGINE),
        (home.table("positions", stream), archive),
        (home.table("rejects"), archive),
    ]


def next_segment(table: Path, app: str) -> int | None:
    """The segment that comes next for a table; None where it has none yet.

    Raises:
        TableError: the table's log cannot be read.
    """
    done = tables.committed(table, app)
    if done is None or done < 0:
        return None
    return segment_of(done + 1) if app == ENGINE else done + 1


def _way_out(stream: str, log: Log) -> str:
    whole = f"restore all of the home from one backup (`fairway backup restore`), or the log that {stream} had"
    if not log.end() or log.purged_before():
        return whole
    return f"{whole}; or `fairway streams reset {stream}` makes all tables of {stream} again from this log"
