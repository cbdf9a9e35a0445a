"""The levels of storage beside an engine: `latest` flushed every T, snapshots when they are due."""

import time
from dataclasses import dataclass, field

from st_common.home import Home
from st_common.levels.latest import Focals, flush_latest
from st_common.levels.snapshots import take_due
from st_common.settings import StreamSettings

MOST_SNAPSHOTS = 24  # at one time: the rest of a long replay waits for the next time, or for the job that takes them


@dataclass
class Levels:
    """Keeps the levels of one stream. What they hold follows from tables; only when it is written is decided here."""

    home: Home
    stream: StreamSettings
    focals: Focals = field(init=False)
    _flushed_s: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.focals = Focals(self.stream.name)

    def keep(self, *, at_end: bool = False) -> None:
        """Flushes `latest` when `latest_flush_s` have passed or the run ends, and takes snapshots that are due."""
        if at_end or time.monotonic() - self._flushed_s >= self.stream.latest_flush_s:
            flush_latest(self.home, self.stream, self.focals)
            self._flushed_s = time.monotonic()
        take_due(self.home, self.stream, most=MOST_SNAPSHOTS)
