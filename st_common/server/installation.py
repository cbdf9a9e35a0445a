"""Where a server works: its home folder, its settings, and what it was started with."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import Streams, load_streams, stream_of
from st_common.errors import ConfigError


class LastGood:
    """The streams of a settings file as they were when it could last be read, and what is wrong with it since."""

    def __init__(self) -> None:
        self._streams: dict[str, Streams] = {}
        self.error: ConfigError | None = None

    def of(self, what: str, load: Callable[[], Streams]) -> Streams:
        """What `load` gives; where the file cannot be read as a whole, what it gave last.

        Raises:
            ConfigError: it cannot be read, and never could.
        """
        try:
            streams = load()
        except ConfigError as error:
            if what not in self._streams:
                raise
            self.error = error
            return self._streams[what]
        self._streams[what], self.error = streams, None
        return streams


_MESSAGES = frozenset(("error", "warning", "why"))


@cache
def _other_paths() -> re.Pattern[str]:
    """What begins like a path of this machine; addresses of the server, such as `/v1/queries/q`, do not."""
    folders = "|".join(re.escape(one.name) for one in Path("/").iterdir())
    return re.compile(
        rf"(?<![\w./:-])/(?:{folders})(?:/[^\s'\"`,;:()\[\]]*|(?![\w.-]))"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """What every answer is made from.

    Attributes:
        home: the home folder.
        conf: the folder of the settings.
        engine: which engine runs all streams; None: what the settings say.
        only: the streams that this server runs; empty: all.
        last_good: what the settings were when their file could last be read: a server goes on by them.
    """

    home: Home
    conf: Path
    engine: str | None = None
    only: tuple[str, ...] = field(default=())
    last_good: LastGood = field(default_factory=LastGood, compare=False, repr=False)

    def streams(self) -> Streams:
        """The streams of the settings and those that were created, as of now."""
        from st_common.query.created_streams import known_streams

        load = partial(known_streams, self.home, self.conf)
        return self._as_they_run(self.last_good.of("all", load))

    def settings(self) -> Streams:
        """The streams of the settings alone, for a client, which knows by itself those that were created."""
        from st_common.query.created_streams import begun_on

        begun = partial(begun_on, self.home)
        load = partial(load_streams, self.conf, begun=begun)
        return self._as_they_run(self.last_good.of("settings", load))

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
        """A text without the paths of this machine; those of home and settings begin with `HOME` and `CONF`."""
        for path, shown in ((self.home.root, "HOME"), (self.conf, "CONF")):
            for one in (path.resolve(), path):
                known = rf"(?<![\w./-]){re.escape(str(one))}(?![\w.-])"
                text = re.sub(known, shown, text)
        return _other_paths().sub("PATH", text)

    def without_paths(self, value: Any) -> Any:
        """A value of JSON whose messages, `error`, `warning` and `why`, are `hidden`, however deep they stand."""
        if isinstance(value, list):
            return [self.without_paths(one) for one in value]
        if not isinstance(value, dict):
            return value
        return {
            key: self.hidden(one)
            if key in _MESSAGES and isinstance(one, str)
            else self.without_paths(one)
            for key, one in value.items()
        }
