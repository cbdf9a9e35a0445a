"""What a part of a step brings: rows of changes, counts, and what becomes of the state."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from st_common.operators.arrays.summed import Summed
from st_common.operators.skeleton.cache_counts import Caches
from st_common.operators.state.limits import REASONS
from st_common.operators.state.memories import Changes
from st_common.operators.state.state import State
from st_common.operators.turn.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters(Summed):
    """What a step counted; sums over steps and shards mean the same.

    Attributes:
        fixes: fixes of the shard's own objects, as are all counts down to `expired`.
        late: too old to change an answer.
        double: of an object and a time that were there already.
        filtered_accuracy: stored, and changing nothing, because of the reason in the name (`limits.REASONS`; SPEC X11).
            So are the other `filtered_..`.
        filtered_speed: see above.
        filtered_distance: see above.
        filtered_within_accuracy: see above.
        gone: objects that left by their feed's word.
        expired: objects that were silent for too long.
        stays: GPAC's Case I of queries judged fix by fix: a member stays.
        leaves: Case II, a member leaves.
        enters: Case III, a newcomer.
        probed: points that were looked up in an index.
        matched: pairs that came out of the spatial operators, before the predicates.
        ticks: ticks that were judged.
        touched: objects and pairs that were looked at there.
        refills: caches that were filled anew.
        misses: members that a cache did not have, where caches are not filled anew.
        cut: fixes beyond what a frame keeps of one object.
    """

    fixes: int = 0
    late: int = 0
    double: int = 0
    filtered_accuracy: int = 0
    filtered_speed: int = 0
    filtered_distance: int = 0
    filtered_within_accuracy: int = 0
    gone: int = 0
    expired: int = 0
    stays: int = 0
    leaves: int = 0
    enters: int = 0
    probed: int = 0
    matched: int = 0
    ticks: int = 0
    touched: int = 0
    refills: int = 0
    misses: int = 0
    cut: int = 0

    @property
    def filtered(self) -> dict[str, int]:
        """How many fixes were filtered, by reason; only those reasons that were met."""
        return filtered_of(asdict(self))


def filtered_of(counters: Mapping[str, int]) -> dict[str, int]:
    """How many fixes were filtered, by reason; only those reasons that were met.

    Args:
        counters: fields of `Counters` by name, as a status file has them; what is not in it counts as 0.
    """
    counts = {name: counters.get(f"filtered_{name}", 0) for name in REASONS}
    return {name: count for name, count in counts.items() if count}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one operator (or a group of them) makes of a run of log rows, or of queries that start and stop.

    Attributes:
        changes: tables of `SHARD_SCHEMA`, rows in any order.
        counters: what it counted.
        memories: what becomes of its components; those that are not named stay.
        delta: other fields of the state's `Delta` by their names, each of one part alone.
        caches: by kind of query what caches cost.
        memo: what the next run can build on; it is never stored.
        first_tick: the event time in microseconds, and the row of the log, of the first tick since this process has the
            state; None where none was judged, or not for the first time.
    """

    changes: tuple[pa.Table, ...] = ()
    counters: Counters = field(default_factory=Counters)
    memories: Changes = field(default_factory=dict)
    delta: Mapping[str, Any] = field(default_factory=dict)
    caches: Caches = field(default_factory=dict)
    memo: Any = None
    first_tick: tuple[int, int] | None = None


Phase = Callable[[State, Turn], Part]
"""A part of every run of log rows."""
