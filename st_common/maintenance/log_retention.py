"""How long the records of a stream's log are kept: `log_days`, behind all who may read them again.

log_days 30, now day 100      arrived before day 70: segments up to 7,000
readers                       engine 9,100, archive 9,050, a feed into this log 6,500
purged                        records before 6,500; the feed holds the others
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.archive import READER
from st_common.engine.committing import APP
from st_common.log.log import Log
from st_common.log.log_purging import Cut, arrived_before, purge_records, to_cut
from st_common.log.packing import pack_when_due
from st_common.maintenance.readers import readers_of_log

_US_PER_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRetained:
    """What retention did to the log of a stream, or would do.

    Attributes:
        stream: its name.
        cut: what went, or would go.
        before: the segment before which no records are left.
        held_by: why older ones are kept all the same; "" for nothing.
    """

    stream: str
    cut: Cut
    before: int
    held_by: str = ""

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {
            "stream": self.stream,
            "segments": self.cut.segments,
            "bytes": self.cut.bytes,
            "before": self.before,
            "held_by": self.held_by,
        }


def retain_logs(
    home: Home,
    streams: Mapping[str, StreamSettings],
    *,
    now_us: int,
    purge: bool = True,
) -> Iterator[LogRetained]:
    """Packs what has lain in logs for a while, and takes records out of those of streams that have `log_days`.

    Args:
        home: the home folder.
        streams: the settings by name.
        now_us: now, us UTC.
        purge: whether they go; else it is only said what would.

    Yields:
        What was done to each such log.

    Raises:
        LogError: a log is damaged.
    """
    for stream in streams.values():
        log = Log(home.log(stream.name))
        if not log.end():
            continue
        retained = None
        if stream.log_days is not None:
            retained = _retain(home, log, stream, now_us=now_us, purge=purge)
        if purge:  # behind what goes: that ends where a pack does
            pack_when_due(log, now_us=now_us)
        if retained is not None:
            yield retained


def _retain(
    home: Home, log: Log, stream: StreamSettings, *, now_us: int, purge: bool
) -> LogRetained:
    wanted = arrived_before(log, now_us - round((stream.log_days or 0) * _US_PER_DAY))
    before, held_by = wanted, ""
    for reader, place in _readers(home, log, stream):
        if place < before:
            before, held_by = place, f"{reader} stands at segment {place}"
    cut = purge_records(log, before) if purge else to_cut(log, before)
    return LogRetained(
        stream=stream.name,
        cut=cut,
        before=max(before, log.purged_before()) if purge else log.purged_before(),
        held_by=held_by,
    )


def _readers(home: Home, log: Log, stream: StreamSettings) -> Iterator[tuple[str, int]]:
    """Who may read records of a log again, with the first segment that each needs; who has not begun needs all."""
    positions = {APP: 0, READER: 0} | log.reader_positions()
    yield from positions.items()
    if stream.position_filter is not None:
        yield "the position filter, which the archive judges from the log,", 0
    yield from readers_of_log(home, stream.name)
