"""Fixes that came too late: how many, whose, which fix moved the watermark past them, and what would take them in.

    s: 180 of 200 fixes came too late: v0 45, v1 45, v2 45 and 1 more
    s: v0 at 2019-06-26T08:00:00Z (segment 1, row 20) moved the watermark past 180 of them
    s: lateness_s = 31536000 would take them in

A fix is late by the order of the log, as the engine judges it: with `lateness_s` it is older than the watermark, else
older than its own object's last fix, or so old that its object was silent already (`silence_s`). Rows that only say how
late it is are not in the tables: what they alone made late counts as on time here.
"""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from st_common.answers.stream_state import is_much, stamp
from st_common.asking import asking
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.history.stored import archived_end, fixes
from st_common.position import segment_of, start_of

_SHOWN = 3
_FRESH_S = 60.0
_LONG_WAIT_S = 86_400
_MOST_SEGMENTS = 4096
"""Of a long log the newest segments are looked at."""

_JUDGED = """
    WITH told AS (
        SELECT position, CAST(object AS VARCHAR) AS object, epoch_us(event_ts) AS ts FROM fixes
    ), judged AS (
        SELECT *, max(ts) OVER (ORDER BY position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS high,
               max(ts) OVER (PARTITION BY object ORDER BY position
                             ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS own
        FROM told
    )
    SELECT *, coalesce(CASE WHEN $lateness > 0 THEN ts < high - $lateness
                            ELSE ts < own OR ts + $silence < high END, false) AS is_late,
           CASE WHEN $lateness = 0 AND ts < own THEN own ELSE high END AS past
    FROM judged
"""
_NEVER_SILENT = 1 << 60
_BY_OBJECT = """
    SELECT object, count(*) FILTER (is_late) AS late, count(*) AS fixes, max(ts) AS newest,
           max(high) - max(ts) AS behind
    FROM judged GROUP BY object HAVING count(*) FILTER (is_late) > 0 ORDER BY late DESC, object
"""
_MOVER = """
    SELECT past, count(*) AS passed FROM judged WHERE is_late GROUP BY past ORDER BY passed DESC, past LIMIT 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LateObject:
    """An object with late fixes: how many of its fixes are, its newest event time, and how far that is behind (us)."""

    name: str
    late: int
    fixes: int
    newest_us: int
    behind_us: int

    @property
    def is_always_late(self) -> bool:
        """Whether none of its fixes was in time: its clock is wrong, or it is told long after."""
        return self.late == self.fixes


@dataclass(frozen=True, slots=True, kw_only=True)
class Mover:
    """The fix that moved the watermark past most late ones: whose, when (us), where in the log, and past how many."""

    object: str
    ts_us: int
    position: int
    passed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lateness:
    """The late fixes of a stream.

    Attributes:
        fixes: how many fixes were looked at.
        late: how many of them are late.
        objects: theirs, those with most first.
        mover: see `Mover`; None without late fixes.
        needed_s: the `lateness_s` that would take in all of them but those of objects that are always late.
    """

    fixes: int
    late: int
    objects: tuple[LateObject, ...]
    mover: Mover | None
    needed_s: int

    def to_json(self) -> Mapping[str, Any]:
        """A JSON object, with the first objects."""
        mover = self.mover
        return {
            "fixes": self.fixes,
            "late": self.late,
            "objects": [
                {
                    "object": one.name,
                    "late": one.late,
                    "fixes": one.fixes,
                    "newest": stamp(one.newest_us),
                    "behind_s": one.behind_us / 1e6,
                }
                for one in self.objects[:10]
            ],
            "moved_by": mover
            and {
                "object": mover.object,
                "event_ts": stamp(mover.ts_us),
                "position": mover.position,
                "passed": mover.passed,
            },
            "lateness_s": self.needed_s,
        }


def lateness_of(home: Home, stream: StreamSettings) -> Lateness:
    """Which archived fixes of a stream came too late, of the newest 4,096 segments.

    Args:
        home: where the tables lie.
        stream: the settings; its lateness and silence count here.
    """
    end = archived_end(home, stream.name)
    start = start_of(max(segment_of(end) - _MOST_SEGMENTS, 0))
    rows = fixes(home, stream.name, start, end, ("object", "event_ts"), accepted=False)
    if not len(rows):
        return Lateness(fixes=0, late=0, objects=(), mover=None, needed_s=0)
    silence_s = stream.silence_s
    given = {
        "lateness": round(stream.lateness_s * 1e6),
        "silence": _NEVER_SILENT if silence_s is None else round(silence_s * 1e6),
    }
    with asking() as connection:
        connection.register("fixes", rows)
        connection.execute(f"CREATE TEMP TABLE judged AS {_JUDGED}", given)
        objects = tuple(
            LateObject(name=name, late=late, fixes=of, newest_us=ts, behind_us=behind)
            for name, late, of, ts, behind in connection.execute(_BY_OBJECT).fetchall()
        )
        mover = _mover(connection)
        needed_s = _needed_s(connection, [o.name for o in objects if o.is_always_late])
        connection.execute("DROP TABLE judged")
    late = sum(one.late for one in objects)
    return Lateness(
        fixes=len(rows), late=late, objects=objects, mover=mover, needed_s=needed_s
    )


def _mover(connection: Any) -> Mover | None:
    found = connection.execute(_MOVER).fetchone()
    if found is None:
        return None
    past, passed = found
    name, position = connection.execute(
        "SELECT object, position FROM judged WHERE ts = ? ORDER BY position LIMIT 1",
        [past],
    ).fetchone()
    return Mover(object=name, ts_us=past, position=position, passed=passed)


def _needed_s(connection: Any, always_late: list[str]) -> int:
    (needed_us,) = connection.execute(
        "SELECT max(past - ts) FROM judged WHERE is_late AND NOT list_contains(?, object)",
        [always_late],
    ).fetchone()
    return math.ceil((needed_us or 0) / 1e6)


def warnings_of(
    home: Home, stream: StreamSettings, *, late: int, fixes: int
) -> list[str]:
    """What is said of a stream of which more than one fix in a hundred came too late; nothing else.

    Args:
        home: where the tables lie.
        stream: the settings.
        late: how many fixes came too late, as its engine counts.
        fixes: how many there are.
    """
    if not is_much(late, fixes):
        return []
    share = f"{late:,} of {fixes:,} fixes ({100 * late / fixes:.0f} %) came too late and changed no answer"
    seen = lateness_of(home, stream)
    return [share, *_told(seen)]


class Warnings:
    """The warnings of many streams, each looked at once a minute at most: for whoever shows them again and again."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, list[str]]] = {}

    def of(
        self, home: Home, stream: StreamSettings, *, late: int, fixes: int
    ) -> list[str]:
        """As `warnings_of`, as they were a minute ago or later."""
        seen_s, lines = self._known.get(stream.name, (-math.inf, []))
        if time.monotonic() - seen_s > _FRESH_S:
            lines = warnings_of(home, stream, late=late, fixes=fixes)
            self._known[stream.name] = (time.monotonic(), lines)
        return lines


def _told(seen: Lateness) -> Iterator[str]:
    """Whose they are, what moved the watermark, and what would take them in."""
    if not seen.late:
        return
    names = [f"{one.name} {one.late:,}" for one in seen.objects[:_SHOWN]]
    more = len(seen.objects) - _SHOWN
    yield f"late are those of {', '.join(names)}" + (
        f" and {more:,} others" if more > 0 else ""
    )
    yield from (words_of(one) for one in seen.objects[:_SHOWN] if one.is_always_late)
    mover = seen.mover
    if mover is not None and seen.needed_s:
        where = f"segment {segment_of(mover.position)}, row {mover.position - start_of(segment_of(mover.position))}"
        yield f"{mover.object} at {stamp(mover.ts_us)} ({where}) moved the watermark past {mover.passed:,} of them"
        yield _way_out(seen.needed_s, mover)


def _way_out(needed_s: int, mover: Mover) -> str:
    """What takes late fixes in: to wait for them, unless that would be for days."""
    if needed_s > _LONG_WAIT_S:
        return (
            f"lateness_s = {needed_s} would take them in, but is the clock of {mover.object} right? "
            f"max_jump_s = {_LONG_WAIT_S} leaves out fixes that leap ahead"
        )
    return (
        f"lateness_s = {needed_s} takes them in; fairway replay sorts a file, "
        "unless it is asked for --as-they-stand"
    )


def words_of(one: LateObject) -> str:
    """What is said of an object with late fixes: that of a wrong clock, how far it is behind."""
    newest = f"the newest is of {stamp(one.newest_us)}, {_length(one.behind_us)} behind the stream"
    if one.is_always_late:
        return f"{one.name!r} sent {one.fixes:,} fixes, all late: {newest}"
    return f"{one.name!r} sent {one.fixes:,} fixes, {one.late:,} late: {newest}"


_UNITS = (
    ("weeks", 7 * 86_400, 8 * 7 * 86_400),
    ("days", 86_400, 2 * 86_400),
    ("hours", 3_600, 2 * 3_600),
    ("minutes", 60, 120),
    ("seconds", 1, 0),
)


def _length(us: int) -> str:
    """A length of time in words: `1,024 weeks`."""
    seconds = max(us, 0) / 1e6
    name, unit = next((name, unit) for name, unit, least in _UNITS if seconds >= least)
    return f"{round(seconds / unit):,} {name}"
