"""A state of many objects: CPU milliseconds of writing, reading, a first look-up, a step of 2,000 fixes; its delta.

.venv/bin/python -m bench.large_state [OBJECTS]
"""

import sys
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pyarrow as pa

from st_common.operators.events.packet import Packet, pack
from st_common.operators.runtime.stages import step
from st_common.operators.runtime.stored import state_from_blob
from st_common.operators.state.fixes import LastFixes
from st_common.operators.state.intern import Interner, hashes_of
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State

FIXES = 2_000
START_US = 1_700_000_000_000_000
T = TypeVar("T")


def timed(what: str, call: Callable[[], T]) -> T:
    """What the call gives; tells its processor time."""
    begun_s = time.process_time()
    found = call()
    sys.stdout.write(f"{what}: {(time.process_time() - begun_s) * 1e3:.1f} ms\n")
    return found


def state_of(objects: int) -> State:
    """So many objects, all of them alive."""
    ids = pa.array([f"object-{n}" for n in range(objects)])
    place = np.linspace(0.0, 1.0, objects)
    fixes = LastFixes(
        ts=np.full(objects, START_US),
        x=place,
        y=place,
        status=np.ones(objects, np.int8),
        before_ts=np.full(objects, START_US - 1),
        before_x=place,
        before_y=place,
        earlier_ts=np.full(objects, START_US - 2),
        earlier_x=place,
        earlier_y=place,
    )
    return State(
        objects=Interner.empty().with_new(hashes_of(ids), ids),
        fixes=fixes,
        max_event=START_US,
    )


def packet(segment: int) -> Packet:
    """Fixes of the first objects."""
    rows = pa.table(
        {
            "row": pa.array(range(FIXES), pa.int32()),
            "object": pa.array(
                [f"object-{n}" for n in range(FIXES)]
            ).dictionary_encode(),
            "event_ts": pa.array(
                START_US + (segment + 1) * 1_000_000 + np.arange(FIXES)
            ),
            "x": pa.array(np.full(FIXES, 0.5)),
            "y": pa.array(np.full(FIXES, 0.5)),
            "gone": pa.array(np.zeros(FIXES, bool)),
        }
    )
    return pack(segment, rows, rows=FIXES, rejects=0, shards=1)[0]


def main() -> None:
    """Prints the figures."""
    whole = state_of(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
    blob = timed("write", whole.to_blob)
    state = timed("read", lambda: state_from_blob(blob))
    timed("first look-up", lambda: state.objects.number_of("object-7"))
    sys.stdout.write(f"{len(blob) / 1e6:.1f} MB\n")
    for silence_us in (None, 3_600_000_000):
        settings = Settings(silence_us=silence_us)
        for segment in range(3):
            name = (
                f"step of {FIXES} fixes{'' if silence_us is None else ' with silence'}"
            )
            done = timed(
                name,
                lambda at=segment, of=settings, now=state: step(
                    now, [packet(at)], of, lambda *_: None
                ),
            )  # type: ignore[misc]
            state = done.state
        sys.stdout.write(f"delta of {len(done.deltas[0].to_blob()) / 1e3:.1f} kB\n")
        state = state_from_blob(blob)


if __name__ == "__main__":
    main()
