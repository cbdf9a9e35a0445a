"""What of a stream's settings decides its answers, and which shard is at work."""

from dataclasses import dataclass, field

from st_common.geometry.space import PLANE, Space
from st_common.settings import PUBLIC_ID_KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Times in microseconds. `space` says what coordinates mean.

    `margin` is the width of the cache area around moving queries (share x max_speed x silence, SPEC G6), 0 without a
    cache; with `refills` off a cache is never made anew, as in the paper, and what it misses is counted. `window_rows`
    is how many of its newest fixes a query with windows keeps of each object at a tick. `id_key` is the key of the
    hashes of ids, the same for all shards and for ever. `unit_m` is how many metres a unit of a plane is.
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
    id_key: str = field(default=PUBLIC_ID_KEY, repr=False)
