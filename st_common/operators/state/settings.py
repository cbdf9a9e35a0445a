"""What of a stream's settings decides its answers, and which shard is at work."""

from dataclasses import dataclass, field

from st_common.config.filters import Filters
from st_common.config.stream import PUBLIC_ID_KEY
from st_common.geometry.space import PLANE, Space


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What of a stream's settings decides its answers, and which shard is at work.

    Attributes:
        lateness_us: how far the clock stands behind the largest event time.
        silence_us: after how long without a fix an object leaves all answers; None: never.
        tick_us: the time between two ticks.
        space: what coordinates mean.
        margin: the width of the cache area around moving queries (share x max_speed x silence, SPEC G6), 0 without a
            cache; metres, or the unit of the plane.
        refills: whether caches are made anew when a query went too far; if not, as in the paper, what they miss is
            counted.
        window_rows: how many of its newest fixes a query with windows keeps of each object at a tick.
        unit_m: how many metres a unit of a plane is.
        shard: the number of this shard, from 0.
        shards: how many there are.
        hosted: whether other shards may ask for what this one knows of its objects (docs/adr/0100): then it keeps what
            happened in the tick that is open, also without queries of its own that are judged at ticks.
        id_key: the key of the hashes of ids, the same for all shards and for ever.
        filters: the filters of users that settings declare, by name.
    """

    lateness_us: int = 0
    silence_us: int | None = None
    tick_us: int = 1_000_000
    space: Space = PLANE
    margin: float = 0.0
    refills: bool = True
    window_rows: int = 10_000
    unit_m: float = 1.0
    shard: int = 0
    shards: int = 1
    hosted: bool = False
    id_key: str = field(default=PUBLIC_ID_KEY, repr=False)
    filters: Filters = field(default_factory=dict, hash=False)
