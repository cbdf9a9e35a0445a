"""The levels of storage beside an engine: `latest` flushed every T, snapshots when they are due."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.damage import tell_damage
from st_common.errors import TableError
from st_common.history.latest import Focals, flush_latest
from st_common.history.taking import take_due

MOST_SNAPSHOTS = 100  # at one time: the rest of a long replay waits for the next time, or for the job that takes them


@dataclass
class Levels:
    """Keeps the levels of storage of one stream (SPEC P2): the table `latest` and the snapshots.

    What they hold follows from other tables; only when it is written is decided here, by the machine's clock.

    Attributes:
        home: the home folder.
        stream: its `latest_flush_s` and `snapshot_s` count here.
        focals: the objects that live queries go with, read forward from the log.
    """

    home: Home
    stream: StreamSettings
    focals: Focals = field(init=False)
    _flushed_s: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.focals = Focals(self.stream.name)

    def keep(self, *, at_end: bool = False) -> None:
        """Writes what is due: `latest` after each `latest_flush_s`, and up to 100 snapshots that are due.

        Where a table that they follow from is not read, because another program has altered it, that is told of, and
        they wait: whoever reads them sees how old they are.

        Args:
            at_end: the run ends, so `latest` is flushed whatever time it is.
        """
        if at_end or time.monotonic() - self._flushed_s >= self.stream.latest_flush_s:
            with self._telling():
                flush_latest(self.home, self.stream, self.focals)
            self._flushed_s = time.monotonic()
        with self._telling():
            take_due(self.home, self.stream, most=MOST_SNAPSHOTS)

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except TableError as error:
            tell_damage(self.home, self.stream.name, str(error))
