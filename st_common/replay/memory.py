"""What objects have said in records before, put in front of each payload on its way into a log.

    payload 1    MSG,1,..,A955D1,..,N700NY,..
    payload 2    #said {"objects":{"A955D1":{"callsign":"N700NY"}},..}
                 MSG,3,..,A955D1,..,48.43,9.71,..

So each segment says all that its records need, whenever and by whomever it is decoded (docs/adr/0091). Formats whose
records need no others have none of this.
"""

import json
import logging
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace

from st_common.config.stream import StreamSettings
from st_common.decode.gzipped import MAGIC
from st_common.formats.registry import format_of
from st_common.formats.said_before import (
    NOTHING,
    Said,
    SaidBefore,
    Value,
    put_in_front,
)
from st_common.log.log import SEGMENT_LIMIT

MOST_OBJECTS = 100_000
MOST_AGE_S = 3600
LONGEST_TEXT = 64
"""Characters; a longer text counts as none, for nobody's name has so many."""
_KEPT_FREE = 2 << 20
"""Bytes of a segment, beside its records and what objects said: for all else that stands in front."""
_LOG = logging.getLogger(__name__)


class Memory:
    """What the objects of one feed have said: of at most `MOST_OBJECTS`, those that spoke last, for `MOST_AGE_S`.

    Args:
        stream: how the records of the feed are read; columns that it does not name are not kept.
    """

    def __init__(self, stream: StreamSettings) -> None:
        self._stream, self._form = stream, format_of(stream.format)
        self.forget()

    def forget(self) -> None:
        """Begins anew: what comes next does not follow on what came last."""
        # By object when it spoke last, and what it has said; who has been silent for longest stands first.
        self._known: OrderedDict[str, tuple[int, Mapping[str, Value]]] = OrderedDict()
        self._open = SaidBefore()

    def put_in_front(self, payload: bytes, *, arrival_us: int) -> bytes:
        """A payload with what its records need of those before, all of which is kept in mind.

        Args:
            payload: whole records, the next ones of the feed.
            arrival_us: when they came, us UTC.
        """
        if not self._form.remembers or payload.startswith(MAGIC):
            return put_in_front(payload, NOTHING)
        said = self._form.said(put_in_front(payload, self._open), self._stream)
        if said is None:
            return payload
        self._drop_old(arrival_us)
        room = SEGMENT_LIMIT - _KEPT_FREE - len(payload)
        before = replace(self._open, objects=self._needed(said, room))
        self._learn(said, arrival_us)
        return put_in_front(payload, before)

    def _needed(self, said: Said, room: int) -> Mapping[str, Mapping[str, Value]]:
        """What is known of the objects that a payload has positions of, as far as there is room for it (bytes)."""
        needed: dict[str, Mapping[str, Value]] = {}
        for number, name in enumerate(said.asking):
            if name not in self._known:
                continue
            _, known = self._known[name]
            room -= len(json.dumps({name: known}))
            if room < 0:
                left_out = len(said.asking) - number
                _LOG.warning("no room for what %d objects said before", left_out)
                break
            needed[name] = known
        return needed

    def _learn(self, said: Said, arrival_us: int) -> None:
        for name, more in said.objects.items():
            _, known = self._known.pop(name, (0, {}))
            both = {**known, **more}
            short = {key: value for key, value in both.items() if _is_short(value)}
            self._known[name] = (arrival_us, short)
        self._open = SaidBefore(unfinished=said.unfinished, received=said.received)

    def _drop_old(self, arrival_us: int) -> None:
        """Forgets who has been silent for too long, and of too many those who have been for longest."""
        since_us = arrival_us - MOST_AGE_S * 1_000_000
        while self._known:
            name = next(iter(self._known))
            spoke_us, _ = self._known[name]
            if spoke_us >= since_us and len(self._known) <= MOST_OBJECTS:
                return
            del self._known[name]


def _is_short(value: Value) -> bool:
    return not isinstance(value, str) or len(value) <= LONGEST_TEXT
