"""Where a server works: its home folder, its settings, and what it was started with."""

import re
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from st_common.home import Home
from st_common.settings import (
    Streams,
    StreamSettings,
    load_streams,
    stream_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What every answer is made from.

    Attributes:
        home: the home folder.
        conf: the folder of the settings.
        engine: which engine runs all streams; None: what the settings say.
        only: the streams that this server runs; empty: all.
    """

    home: Home
    conf: Path
    engine: str | None = None
    only: tuple[str, ...] = field(default=())

    def streams(self) -> Streams:
        """The streams of the settings and those that were created, as of now."""
        from st_common.query.created_streams import known_streams

        return self._as_they_run(known_streams(self.home, self.conf))

    def settings(self) -> Streams:
        """The streams of the settings alone, for a client, which knows by itself those that were created."""
        from st_common.query.created_streams import begun_on

        begun = partial(begun_on, self.home)
        return self._as_they_run(load_streams(self.conf, begun=begun))

    def served(self) -> Streams:
        """The streams that this server runs."""
        known = self.streams()
        only = self.only or tuple(known)
        chosen = {name: stream for name, stream in known.items() if name in only}
        return Streams(chosen, known.broken)

    def _as_they_run(self, known: Streams) -> Streams:
        if self.engine is None:
            return known
        chosen = {
            name: replace(stream, engine=self.engine)  # type: ignore[arg-type]
            for name, stream in known.items()
        }
        return Streams(chosen, known.broken)

    def stream(self, name: str) -> StreamSettings:
        """The settings of one stream.

        Raises:
            ConfigError: there is no such stream, or its table is wrong.
        """
        return stream_of(self.streams(), name)

    def hidden(self, text: str) -> str:
        """A text without the paths of this machine."""
        for path, shown in ((self.home.root, "HOME"), (self.conf, "CONF")):
            for one in (path.resolve(), path):
                text = re.sub(rf"(?<![\w./-]){re.escape(str(one))}(?=/)", shown, text)
        return text
