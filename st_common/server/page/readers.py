"""The readers of streams that somebody looks at: one for each stream, let go when nobody asked for a minute."""

import threading
import time
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from st_common.answers.live_places import LivePlaces
from st_common.answers.stream_state import is_much
from st_common.config.stream import StreamSettings
from st_common.operations.status import StreamStatus
from st_common.server.parameters import Parameters

_KEPT_S = 60.0
Floats = npt.NDArray[np.float64]


@dataclass(slots=True)
class _Held:
    stream: StreamSettings
    places: LivePlaces
    asked_s: float


class Lives:
    """Where the objects of streams are, for all who ask."""

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}
        self._lock = threading.Lock()

    def of(self, asked: Parameters, stream: StreamSettings) -> LivePlaces:
        """The reader of a stream; a new one where its settings are others than they were."""
        now_s = time.monotonic()
        with self._lock:
            held = self._held.get(stream.name)
            if held is None or held.stream != stream:
                places = LivePlaces(asked.place.home, stream)
                held = self._held[stream.name] = _Held(stream, places, now_s)
            held.asked_s = now_s
            return held.places

    def where(self, stream: str) -> tuple[Floats, Floats] | None:
        """X and y of the objects of a stream; None where nobody looks at it."""
        places = self.held(stream)
        return None if places is None else places.where()

    def held(self, stream: str) -> LivePlaces | None:
        """The reader of a stream; None where nobody looks at it."""
        with self._lock:
            held = self._held.get(stream)
            return None if held is None else held.places

    def rest(self) -> None:
        """Lets go of readers that nobody asked for a minute."""
        since_s = time.monotonic() - _KEPT_S
        with self._lock:
            old = [name for name, held in self._held.items() if held.asked_s < since_s]
            for name in old:
                del self._held[name]


def live_places(asked: Parameters, stream: StreamSettings) -> LivePlaces:
    """The reader of a stream that the server of a request keeps."""
    return asked.kept.of(Lives).of(asked, stream)


def answer_with_places(asked: Parameters, query: str, at: datetime | None) -> pa.Table:
    """The rows of an answer with `x` and `y`, by all that has come, not by what is archived; see `placed_answer`.

    Args:
        asked: the request.
        query: the query's name.
        at: the time of the answer; None: now.

    Raises:
        QueryError: no query was ever registered by that name.
    """
    from st_common.answers.member_places import placed_answer

    def now(stream: StreamSettings) -> pa.Table:
        return live_places(asked, stream).current()

    place = asked.place
    return placed_answer(place.home, place.streams(), query, at, now=now)


def late_warnings(
    asked: Parameters, stream: StreamSettings, said: StreamStatus | None
) -> list[str]:
    """What is said of a stream of which more than one fix in a hundred came too late, looked at once a minute."""
    if said is None or not is_much(said.late, said.fixes):
        return []
    from st_common.answers.lateness import Warnings

    kept = asked.kept.of(Warnings)
    return kept.of(asked.place.home, stream, late=said.late, fixes=said.fixes)
