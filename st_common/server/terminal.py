"""What a server says on its terminal beside its address: how each stream stands at the start, then what changes."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from st_common.config.stream import StreamSettings
from st_common.errors import ConfigError, FairwayError
from st_common.extras import require_engine
from st_common.log.log import Log
from st_common.operations.decide import ActionKind
from st_common.operations.launcher import find
from st_common.server.installation import Installation

Say = Callable[[str], None]
_LOG = logging.getLogger(__name__)


def has_begun(place: Installation, stream: StreamSettings) -> bool:
    """Whether a stream's log holds something, a fix or a query: from then on it needs an engine."""
    return Log(place.home.log(stream.name)).end() > 0


def stream_lines(place: Installation, *, runs_engines: bool) -> Iterator[str]:
    """A line for each stream that a server runs: `ships: engine local, starts; sources: gps (tcp)`.

    Args:
        place: where the server works.
        runs_engines: whether it runs engines and sources, or only answers.
    """
    for stream in place.served().values():
        how = _how(place, stream) if runs_engines else "not run here (--no-engines)"
        line = f"{stream.name}: engine {stream.engine}, {how}"
        sources = [f"{name} ({one.kind})" for name, one in stream.sources.items()]
        is_shown = sources and runs_engines
        yield f"{line}; sources: {', '.join(sources)}" if is_shown else line


def _how(place: Installation, stream: StreamSettings) -> str:
    try:
        require_engine(stream.engine, stream.name)
    except ConfigError as error:
        return f"cannot start: {error}"
    if not has_begun(place, stream):
        return "waits for its first fix or query"
    folder, now_us = place.home.stream(stream.name), time.time_ns() // 1000
    is_alive = find(folder, now_us=now_us) is not None
    return "runs" if is_alive else "starts"


def changes_of(told: Mapping[str, Any]) -> Iterator[str]:
    """A line for each engine or delivery that a look started, or whose condition it saw change.

    Args:
        told: what a look did and saw, `Look.told`.
    """
    for one in told["alerts"]:
        yield f"{one['stream']}: {one['text']}"
    said = {
        ActionKind.START: "it starts",
        ActionKind.RESTART: "it starts again",
        ActionKind.STOP: "it is asked to stop",
        ActionKind.KILL: "it is killed",
    }
    for one in told["actions"]:
        what = said.get(one["kind"])
        if what is not None:
            why = "" if one["kind"] == ActionKind.START else f": {one['reason']}"
            yield f"{one['stream']}: {what}{why}"


def told_of(error: Exception) -> str:
    """What went wrong in one line; of a defect its kind too, and all of it in the log."""
    if isinstance(error, (FairwayError, OSError)):
        return str(error)
    _LOG.error("a defect", exc_info=error)
    return f"a defect, {type(error).__name__}: {error}"


class Once:
    """Says a text again only after another one.

    Args:
        say: what says it.
    """

    def __init__(self, say: Say) -> None:
        self._say = say
        self._last: str | None = None

    def __call__(self, text: str) -> None:
        """Says a text, unless it is what was said last."""
        if text != self._last:
            self._say(text)
        self._last = text

    def over(self) -> None:
        """What was said last holds no more: the same text is news again."""
        self._last = None
