"""Time while the feed is quiet: the engine that owns a live stream writes clock rows into its log (SPEC S1, ADR 0013).

A clock row says that the event time T has come. It is written only when something waits for a time before T, and when
all fixes before T have come, as far as the feed shows: the wall clock, less the delay with which fixes come, is past T.
After the rows of a replay time stands still, and after an end mark too.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from st_common.config.stream import StreamSettings
from st_common.controls.reading import chosen
from st_common.controls.rows import Clock, End
from st_common.engine.packets import packets_of
from st_common.errors import LogError
from st_common.log.control import write_clock
from st_common.log.log import Log, Segment
from st_common.operations.awaited import awaited_us
from st_common.operators.events.packet import Packet
from st_common.operators.state.fixes import NEVER
from st_common.position import segments_of
from st_common.runs import is_last

SETTLE_US = 1_000_000  # longer than the shown delay: what was stamped may still be on its way into the log
PAUSE_US = 1_000_000  # between two clock rows at least, by the wall clock
MINUTES = (
    10  # in which something came: the delay that a feed shows is the largest of them
)
LOOK_BACK = 64  # segments, and bytes of them, that a start reads to find how long fixes were under way
LOOK_BACK_BYTES = 8 << 20
_MINUTE_US = 60_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What one segment says about time.

    Attributes:
        segment: its number.
        highest_us: its largest event time, us UTC; None where no fix is newer than all before it in its packet.
        ended: it holds the mark that a finite stream has ended.
        delay_us: the delay that the feed had when a clock row in it was written; None without one.
    """

    segment: int
    highest_us: int | None
    ended: bool = False
    delay_us: int | None = None


def heard(read: Iterable[Packet]) -> list[Heard]:
    """What some packets say about time.

    Args:
        read: packets in log order, each of one segment or of several that were decoded together.

    Returns:
        One entry per segment in which the largest event time grows or control rows are, in log order. Other segments
        say nothing about time and are left out.
    """
    return [
        one
        for packet in read
        for one in (_heard_control(packet) if packet.controls else _heard_fixes(packet))
    ]


def _heard_fixes(packet: Packet) -> list[Heard]:
    segments = segments_of(packet.clock_positions())
    last = np.flatnonzero(is_last(segments))
    newest = zip(segments[last].tolist(), packet.clock_max[last].tolist(), strict=True)
    return [
        Heard(segment=segment, highest_us=highest_us) for segment, highest_us in newest
    ]


def _heard_control(packet: Packet) -> list[Heard]:
    ended = any(chosen(packet.controls, End))
    delays_us = (row.delay_us for _, row in chosen(packet.controls, Clock))
    delay_us = next((each for each in delays_us if each is not None), None)
    return [
        Heard(segment=packet.segment, highest_us=None, ended=ended, delay_us=delay_us)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """How long fixes were under way: arrival less event time (us) of those that are newer than all before them.

    Others came out of order: `lateness` is for them, and one device with a wrong clock does not hold up the rest. Kept
    is the largest of each minute of arrival, of the last `MINUTES` in which any came. In seconds, for example:

        arrival   newest event time   delay   minutes kept       largest
        100       97                  3       {1: 3}             3
        101       99                  2       {1: 3}             3
        102       98                  -       {1: 3}             3          older than 99: not counted
        130       125                 5       {1: 3, 2: 5}       5

    Attributes:
        highest_us: the largest event time so far, `NEVER` at first.
        minutes: pairs of a minute of arrival (since 1970) and the largest delay shown in it (us), ascending.
    """

    highest_us: int = NEVER
    minutes: tuple[tuple[int, int], ...] = ()

    def seen(self, arrival_us: int, highest_us: int) -> "Delays":
        """The delays after one more segment with a fix; the same when its largest event time is not a new one.

        Args:
            arrival_us: when the segment arrived, us UTC.
            highest_us: the largest event time in it, us UTC.
        """
        if highest_us <= self.highest_us:
            return self
        return replace(self, highest_us=highest_us).with_delay(
            arrival_us, arrival_us - highest_us
        )

    def with_delay(self, arrival_us: int, delay_us: int) -> "Delays":
        """The delays with one more; a negative one (a device's clock is ahead) counts as 0.

        Args:
            arrival_us: when the delay was shown, us UTC.
            delay_us: the delay.
        """
        kept = dict(self.minutes)
        minute = arrival_us // _MINUTE_US
        kept[minute] = max(kept.get(minute, 0), delay_us)
        return replace(self, minutes=tuple(sorted(kept.items())[-MINUTES:]))

    @property
    def largest_us(self) -> int:
        """The delay that the feed shows: the largest that is kept, 0 when there is none."""
        return max((delay for _, delay in self.minutes), default=0)


class SteadyWall:
    """The wall clock as it was when data last came, and the time that has passed since by a clock that nobody sets.

    So a wall clock that is set while the feed is quiet moves nobody's time: event times would jump with it. The steady
    clock goes on while the machine is suspended.
    """

    def __init__(self) -> None:
        self.look()

    def look(self) -> None:
        """Starts again from what the wall clock says now."""
        self._wall_us, self._since_us = time.time_ns() // 1000, _running_us()

    def now_us(self) -> int:
        """Now, in us UTC."""
        return self._wall_us + _running_us() - self._since_us


def _running_us() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """What a timekeeper knows of a feed.

    Attributes:
        live: the newest records came as they happened, and no end mark has followed them.
        delays: how long fixes were under way.
    """

    live: bool = False
    delays: Delays = Delays()

    def after(self, segment: Segment, told: Heard) -> "Feed":
        """The feed after one more segment.

        Args:
            segment: data make the feed live or not, as their writer said; control rows end it at most.
            told: what the segment says about time; of data without a new event time only `live` counts.
        """
        if segment.control:
            return replace(self, live=self.live and not told.ended)
        if not segment.live or told.highest_us is None:
            return replace(self, live=segment.live)
        return Feed(
            live=True, delays=self.delays.seen(segment.arrival_us, told.highest_us)
        )


class Timekeeper:
    """Writes the clock rows of one stream, for the engine that owns it (docs/adr/0013).

    The engine says what it has read (`saw`) and, when it has read everything, asks for a clock row (`write_if_due`).

    Args:
        log: the log of the stream, read at the start and appended to.
        stream: its `lateness_s` counts here, and how its records are read.
        start: the segment at which the engine goes on; up to 64 segments before it show what the delay is.
        now_us: the wall clock, us UTC; `SteadyWall` when None.
        folder: that of the stream, where streams that it feeds say what they wait for; None: none does.
    """

    def __init__(
        self,
        log: Log,
        stream: StreamSettings,
        *,
        start: int,
        now_us: Callable[[], int] | None = None,
        folder: Path | None = None,
    ) -> None:
        self._folder = folder
        self._log, self._lateness_us = log, round(stream.lateness_s * 1e6)
        self._wall = SteadyWall()
        self._now_us = now_us or self._wall.now_us
        self._asked_us = NEVER
        self.feed = _feed_before(log, stream, start)

    def saw(self, segments: Sequence[Segment], told: Sequence[Heard]) -> None:
        """Takes note of segments that the engine has read, and of what they say about time.

        Args:
            segments: the next segments of the log, in order, all of them.
            told: as `heard` gave it for them.
        """
        self.feed = _after(self.feed, segments, told)
        if any(not segment.control for segment in segments):
            self._wall.look()

    def write_if_due(
        self,
        wanted_us: Callable[[], int | None],
        check: Callable[[], None] = lambda: None,
        *,
        max_event: int,
    ) -> bool:
        """Writes a clock row when one is due; whether it did.

        The row says that the event time `now - delay - 1 s` has come. The clock of the operators is behind that by the
        lateness; only a wish that lies before the clock is worth a row. With a delay of 3 s and a lateness of 2 s:

            wall clock 12:00:10   ->   row 12:00:06   ->   clock 12:00:04   ->   due if something waits for 12:00:03

        Args:
            wanted_us: the first time at which something happens once the clock is past it (see `operators.wanted`);
                asked at most once a second.
            check: called before a row is written; raises when another has taken the stream over.
            max_event: the largest event time that the log says so far, `NEVER` when none.

        Raises:
            FencedError: what `check` raises.
        """
        now_us = self._now_us()
        if (
            not self.feed.live
            or max_event == NEVER
            or now_us - self._asked_us < PAUSE_US
        ):
            return False
        self._asked_us = now_us
        delay_us = self.feed.delays.largest_us
        # What happened before this time has been logged by now, if fixes are under way for no longer than shown.
        ts = now_us - delay_us - SETTLE_US
        wanted = self._first(wanted_us(), max_event) if ts > max_event else None
        if wanted is None or wanted >= ts - self._lateness_us:
            return False
        check()
        write_clock(self._log, ts, arrival_us=now_us, delay_us=delay_us)
        return True

    def _first(self, wanted_us: int | None, max_event: int) -> int | None:
        """The first time that the step, or a stream that is fed by this one, waits for."""
        clock_us = max_event - self._lateness_us
        awaited = None if self._folder is None else awaited_us(self._folder, clock_us)
        return min((us for us in (wanted_us, awaited) if us is not None), default=None)


def _after(feed: Feed, segments: Sequence[Segment], told: Sequence[Heard]) -> Feed:
    """The feed after some segments, given what they tell."""
    by_number = {one.segment: one for one in told}
    for segment in segments:
        feed = feed.after(
            segment,
            by_number.get(segment.number)
            or Heard(segment=segment.number, highest_us=None),
        )
    return feed


def _feed_before(log: Log, stream: StreamSettings, start: int) -> Feed:
    """What the log tells of its feed before segment `start`: for an engine that goes on there."""
    recent = _newest_segments(log, start)
    if not any(segment.live for segment in recent):
        return Feed()
    told = heard(made[0] for made in packets_of(log, recent, stream, shards=1))
    feed = _after(Feed(), recent, told)
    by_number = {one.segment: one.delay_us for one in told}
    written = [
        (segment.arrival_us, by_number.get(segment.number)) for segment in recent
    ]
    delay = next(
        ((at, delay_us) for at, delay_us in reversed(written) if delay_us is not None),
        None,
    )
    return (
        feed if delay is None else replace(feed, delays=feed.delays.with_delay(*delay))
    )


def _newest_segments(log: Log, start: int) -> list[Segment]:
    """The segments before `start`: as many as a start may read, and at least all from the newest data on."""
    first, step, oldest = start, LOOK_BACK, log.first()
    segments: list[Segment] = []
    while first > oldest and all(segment.control for segment in segments):
        first, step = max(oldest, first - step), 2 * step
        try:
            segments = log.segments(first, end=start)
        except (
            LogError
        ):  # what is that old may be gone; the engine itself needs none of it
            break
    newest = next(
        (
            at
            for at, segment in reversed(list(enumerate(segments)))
            if not segment.control
        ),
        0,
    )
    # From the newest data backwards, as many segments as fit.
    sizes = np.cumsum([segment.size for segment in segments[: newest + 1]][::-1])
    fits = int(np.searchsorted(sizes, LOOK_BACK_BYTES, side="right"))
    return segments[max(0, newest + 1 - max(1, min(fits, LOOK_BACK))) :]
