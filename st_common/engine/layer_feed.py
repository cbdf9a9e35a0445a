"""The features of a layer as fixes of the stream that FROM means by the layer's name: each version as what it changes.

    log of stations      version 3: a, b, c    clock    version 5: b as it is now, c gone    clock
    last fixes           a  b  c                         a  b'

The engine that owns the stream feeds it, and nobody else: once it has read all of the log, it holds its last fixes
against the newest version, and appends a record for each feature that is another one, or that has gone. So the log
itself says what was fed; an engine that dies in between leaves its successor the rest. Versions that come faster than
they are read are told together. Behind the records stands a clock row, so that what is judged at ticks is judged.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import stream_of_table
from st_common.decode import decode
from st_common.formats.arrow_rows import packed
from st_common.layers.relation import records_of, records_of_gone
from st_common.layers.table import newest_version
from st_common.log.control import write_clock
from st_common.log.record_settings import log_for
from st_common.operators.state.fixes import ALIVE
from st_common.operators.state.intern import hashes_of
from st_common.operators.state.state import State
from st_common.query.created_streams import FILE, created_streams

Bools = npt.NDArray[np.bool_]

LOOK_S = 1.0
"""Between two looks while an engine runs on."""
_SEGMENT_BYTES = 4 << 20
_OF_FIXES = frozenset({"row", "object", "event_ts", "x", "y", "gone"})


class LayerFeed:
    """Feeds the stream of a layer's features, for the engine that owns it.

    Args:
        home: the home folder.
        stream: the settings of the stream, as the engine has them.
    """

    def __init__(self, home: Home, stream: StreamSettings) -> None:
        self._home, self._stream = home, stream
        self._log = log_for(home, stream)
        self._fed: int | None = None
        self._next_s = 0.0

    def look(self, state: State, *, at_once: bool) -> bool:
        """Appends what the newest version of the layer changes; whether anything was.

        Args:
            state: that of the engine, which has read all of the log.
            at_once: look also where the last look was a moment ago.

        Raises:
            LayerError: the layer cannot be read.
            TransientError: it cannot be read now.
            StorageError: the disk is full, or refuses.
        """
        now_s = time.monotonic()
        if not at_once and now_s < self._next_s:
            return False
        self._next_s = now_s + LOOK_S
        has_more_tags = self._take_settings()
        layer = self._stream.layer or self._stream.name
        version = newest_version(self._home, layer)
        if version is None or (version == self._fed and not has_more_tags):
            return False
        self._fed = version
        return self._append(state, version)

    def _take_settings(self) -> bool:
        """Takes the tags that queries have named since; whether there are any."""
        table = created_streams(self._home).get(self._stream.name)
        if table is None:
            return False
        now = stream_of_table(self._stream.name, table, Path(FILE))
        now = replace(now, id_key=self._stream.id_key)
        if now.attributes.keys() <= self._stream.attributes.keys():
            return False
        self._stream = now
        self._log = log_for(self._home, now)
        return True

    def _append(self, state: State, version: int) -> bool:
        at_us = max(time.time_ns() // 1000, state.max_event + 1)
        records = records_of(self._home, self._stream, version, at_us=at_us)
        fixes = decode(
            b"".join(packed(records)), self._stream, arrival_us=at_us
        ).fixes.combine_chunks()
        parts = []
        changed, gone = differences(fixes, state.of_key(self._stream.id_key))
        if changed.any():
            rows = fixes["row"].to_numpy()[changed]
            parts.append(records.take(pa.array(rows)))
        if len(gone):
            parts.append(records_of_gone(gone, self._stream, at_us=at_us))
        if not parts:
            return False
        payloads = [one for part in parts for one in _segments(part)]
        self._log.append_all(payloads, arrival_us=at_us)
        tick_us = round(self._stream.tick_s * 1_000_000)
        over_us = (at_us // tick_us + 1) * tick_us + 1
        write_clock(self._log, over_us, arrival_us=at_us)
        return True


def differences(fixes: pa.Table, state: State) -> tuple[Bools, list[str]]:
    """What the features of a version have that the last fixes have not.

    Args:
        fixes: n features as fixes, each once.
        state: has the last fixes.

    Returns:
        bool[n], which features are other ones, or new; and the ids of objects that are alive, and no features.
    """
    ids = fixes["object"].combine_chunks().cast(pa.string())
    numbers = state.objects.find(hashes_of(ids, state.objects.key), ids)
    last = state.fixes
    alive = np.append(last.status == ALIVE, [False])
    same = alive[numbers]  # -1: not known
    known = np.flatnonzero(same)
    at = pa.array(numbers[known])
    for name in (name for name in fixes.column_names if name not in _OF_FIXES):
        mine = fixes[name].combine_chunks().take(pa.array(known))
        before = last.attributes.get(name, pa.nulls(len(last), mine.type)).take(at)
        same[known] &= _equal(mine, before.cast(mine.type))
    here = np.zeros(len(last), np.bool_)
    here[numbers[numbers >= 0]] = True
    gone = np.flatnonzero((last.status == ALIVE) & ~here)
    return ~same, state.objects.ids.take(pa.array(gone)).to_pylist()


def _equal(one: pa.Array, other: pa.Array) -> Bools:
    """Where values are equal, or both null."""
    both_null = pc.and_(one.is_null(), other.is_null())
    equal = pc.fill_null(pc.equal(one, other), fill_value=False)
    result: Bools = np.asarray(pc.or_(equal, both_null))
    return result


def _segments(records: pa.Table) -> Iterator[bytes]:
    """Records as payloads of some megabytes."""
    rows = max(1, len(records) * _SEGMENT_BYTES // max(records.nbytes, 1))
    for start in range(0, len(records), rows):
        yield b"".join(packed(records.slice(start, rows)))
