"""What an engine did since it started."""

from collections import Counter
from dataclasses import dataclass, field

from st_common.operators.skeleton.cache_counts import Caches
from st_common.operators.turn.part import Counters


@dataclass
class Totals:
    """What an engine did since it started; rows that a restart only made again are not counted twice.

    Attributes:
        counters: fixes, late and double fixes, and tuples per operator, as `step` counts them.
        segments: segments of the log that were read.
        rejects: records that could not be read.
        changes: rows of changes that were told.
        nulled: by attribute, in how many fixes its text was of another type, so that it is null there.
        filtered_out: by clause of the stream's `where`, how many records it stopped.
        caches: by kind of moving query, what its caches cost (SPEC G6).
    """

    counters: Counters = field(default_factory=Counters)
    segments: int = 0
    rejects: int = 0
    changes: int = 0
    nulled: Counter[str] = field(default_factory=Counter)
    filtered_out: Counter[str] = field(default_factory=Counter)
    caches: Caches = field(default_factory=dict)
