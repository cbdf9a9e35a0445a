"""The queries of a shard, compiled for evaluation (SPEC P8)."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from st_common.operators.fence_set import FenceSet, compile_fences
from st_common.operators.fixes import NEVER
from st_common.operators.flags import flags_of
from st_common.operators.frame_specs import (
    FrameSpecs,
    compile_frames,
    is_restricted,
    who_counts,
)
from st_common.operators.intern import hashes_of
from st_common.operators.kind_queries import KindQueries, kind_queries
from st_common.operators.pair_specs import (
    Moving,
    PairSpecs,
    compile_moving,
    compile_pairs,
)
from st_common.operators.placing import Placed, Source, placed, placed_anew
from st_common.operators.query_set import QuerySet, compile_queries
from st_common.operators.registered import Queries
from st_common.operators.settings import Settings
from st_common.query.neighbours import GroupNearest, Nearest
from st_common.query.plan import Plan
from st_common.query.region import MovingBox, MovingCircle


def kind_of(plan: Plan) -> str | None:
    """The kind of the skeleton that judges a plan, or `pairs`; None where it stands still and has no neighbours."""
    if plan.pairs is not None or (
        plan.join is not None and isinstance(plan.inside, MovingBox | MovingCircle)
    ):
        return "pairs"
    if plan.neighbours is not None:
        if isinstance(plan.neighbours, Nearest):
            return "nearest"
        return "group" if isinstance(plan.neighbours, GroupNearest) else "reverse"
    if isinstance(plan.inside, MovingBox):
        return "moving_box"
    return "moving_circle" if isinstance(plan.inside, MovingCircle) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """The live queries of a shard, by how they are judged; arrays of numbers of queries.

    `fixwise` are judged fix by fix, by the shard that owns the object, and so are `fences`. The others are judged at
    ticks by the shard that owns the query: `still` have a region that stands still, `windows` and `frames` hold fixes,
    `kinds` go through the skeleton, `pairs` join objects with objects (see `is_spread`), `moving_joins` with a layer
    below a region that moves; `following` are those of both that go with an object. What a frame asks of last fixes is
    among these. The other columns have a flag per query: further fixes of members are told, an aggregate stands above,
    there is a window or a frame, there is a frame, everything is told again at each result, columns are selected,
    members are told with the time until which they stay, objects are paired, different values are counted, the query
    is this shard's. Then, per query: its aggregate's `function` (a text, None without), its window in microseconds and
    in fixes (-1 without), and the largest event time when it was registered; `early` are those at ticks that were
    there before any. `order` says which operators stand below the spatial ones.
    """

    fixwise: QuerySet
    still: QuerySet
    windows: QuerySet
    fences: FenceSet
    frames: FrameSpecs
    kinds: dict[str, KindQueries]
    pairs: PairSpecs
    moving_joins: Moving
    following: KindQueries
    every: np.ndarray
    grouped: np.ndarray
    windowed: np.ndarray
    framed: np.ndarray
    retelling: np.ndarray
    selecting: np.ndarray
    valid_until: np.ndarray
    paired: np.ndarray
    counts_different: np.ndarray
    mine: np.ndarray
    function: np.ndarray
    window_us: np.ndarray
    window_tuples: np.ndarray
    since: np.ndarray
    early: np.ndarray
    order: Placed

    @property
    def ticking(self) -> bool:
        """Whether any query is judged at ticks."""
        moving = (
            bool(self.kinds)
            or bool(len(self.pairs.numbers))
            or bool(self.moving_joins.kinds)
        )
        return (
            moving
            or not self.still.empty
            or not self.windows.empty
            or bool(len(self.frames.numbers))
        )


_FLAGS = (
    "every",
    "grouped",
    "windowed",
    "framed",
    "retelling",
    "selecting",
    "valid_until",
    "paired",
    "counts_different",
    "function",
    "window_us",
    "window_tuples",
    "since",
)

_HOLDS = 64
"""For how many fixes an order of operators holds, for each reading that it was estimated on."""
_HOLDS_MOST = 1 << 17


@dataclass(slots=True)
class _Entry:
    """Compiled queries that were looked up lately; their order of operators `holds` so long, for `fixes` more."""

    queries: Queries
    settings: Settings
    known: Compiled
    holds: int = 0
    fixes: int = 0


_seen: list[_Entry] = []


def compiled(queries: Queries, settings: Settings, source: Source) -> Compiled:
    """The live ones of the queries, compiled; kept for the tuples seen last, for a batch rarely changes them.

    Tuples are told apart by identity: comparing ten thousand plans would cost more than a small batch. The fixes of
    `source` only suggest which operator comes first. That is looked at again after 64 fixes for each reading that it
    was estimated on, later and later: soon where little was known, as of a query that was there before all fixes.
    """
    entry = next(
        (
            entry
            for entry in _seen
            if entry.queries is queries and entry.settings == settings
        ),
        None,
    )
    if entry is None:
        entry = _Entry(queries, settings, compile_shard(queries, settings, source))
        _seen.insert(0, entry)
        del _seen[8:]
        _renew(entry)
    elif entry.known.order.open and entry.fixes <= 0 and len(source.run_fixes):
        entry.known = _placed_anew(entry, source)
        _renew(entry)
    entry.fixes -= len(source.run_fixes)
    return entry.known


def order_now(queries: Queries, settings: Settings) -> Placed | None:
    """The order of operators in which queries that were compiled lately run now; None for others."""
    return next(
        (
            e.known.order
            for e in _seen
            if e.queries is queries and e.settings == settings
        ),
        None,
    )


def _renew(entry: _Entry) -> None:
    entry.holds = min(
        max(_HOLDS * entry.known.order.readings, 2 * entry.holds), _HOLDS_MOST
    )
    entry.fixes = entry.holds


def _placed_anew(entry: _Entry, source: Source) -> Compiled:
    """The same queries with the order of operators that these fixes suggest; caches at ticks go by the same kinds."""
    known, settings = entry.known, entry.settings
    order = placed_anew(entry.queries, known.order, source, space=settings.space)
    if order.below == known.order.below:
        return replace(known, order=order)
    new = compile_shard(entry.queries, settings, source)
    kept = {
        name: getattr(known, name)
        for name in ("kinds", "pairs", "moving_joins", "following")
    }
    return replace(new, **kept)


def compile_shard(
    queries: Queries,
    settings: Settings,
    source: Source,
    only: frozenset[int] | None = None,
) -> Compiled:
    """The live ones of the queries (of those in `only`), compiled for one shard."""
    live = [
        n
        for n in (range(len(queries)) if only is None else sorted(only))
        if queries[n].live
    ]
    mine, flags = _owned(queries, settings), flags_of(queries)
    ticks = flags.ticking.tolist()
    fenced = [n for n in live if queries[n].plan.fence is not None]
    fixwise = [n for n in live if not ticks[n] and queries[n].plan.fence is None]
    ticking = [n for n in live if ticks[n] and (mine[n] or is_spread(queries[n].plan))]
    windows = [n for n in ticking if queries[n].plan.window is not None]
    frames = [n for n in ticking if queries[n].plan.frame is not None]
    below = _below_frames(queries, frames)
    rest = [
        n
        for n in ticking
        if queries[n].plan.window is None and _has_members(queries[n].plan)
    ]
    kinds: dict[str, list[int]] = {}
    for number in rest:
        plan = below[number].plan
        kinds.setdefault(kind_of(plan) or "still", []).append(number)
    parts = (fixwise, kinds.pop("still", []), windows, fenced)
    order = placed(
        below,
        [n for part in parts for n in part],
        source,
        space=settings.space,
    )
    sets = [
        compile_queries(below, of, space=settings.space, below=order.below)
        for of in parts[:3]
    ]
    joined = kinds.pop("pairs", [])
    paired = [n for n in joined if below[n].plan.pairs is not None]
    joining = [n for n in joined if below[n].plan.pairs is None]
    return Compiled(
        fixwise=sets[0],
        still=sets[1],
        windows=sets[2],
        fences=compile_fences(below, fenced, space=settings.space, below=order.below),
        pairs=compile_pairs(
            below,
            paired,
            spread=[n for n in paired if is_spread(queries[n].plan)],
            space=settings.space,
        ),
        moving_joins=compile_moving(below, joining, space=settings.space),
        following=kind_queries(
            below,
            [n for n in joined if below[n].plan.focals],
            space=settings.space,
        ),
        kinds={
            name: kind_queries(below, of, space=settings.space)
            for name, of in kinds.items()
        },
        frames=compile_frames(queries, frames, space=settings.space),
        mine=mine,
        order=order,
        **{name: getattr(flags, name) for name in _FLAGS},
        early=np.array(
            [n for n in ticking if mine[n] and queries[n].since == NEVER], np.int64
        ),
    )


def _has_members(plan: Plan) -> bool:
    """Whether a plan has an answer of its last fixes; a frame over all objects has none."""
    return plan.frame is None or is_restricted(plan)


def _below_frames(queries: Queries, frames: list[int]) -> Queries:
    """The queries, in place of those with a frame what says which objects count in it."""
    if not frames:
        return queries
    mine = frozenset(frames)
    return tuple(
        replace(q, plan=who_counts(q.plan)) if n in mine else q
        for n, q in enumerate(queries)
    )


def _owned(queries: Queries, settings: Settings) -> np.ndarray:
    """Which queries this shard owns."""
    owned: np.ndarray = owners(queries, settings.shards) == settings.shard
    return owned


def owners(queries: Queries, shards: int) -> np.ndarray:
    """The shard that owns each query, int64: by its name, so that every number of shards deals them out evenly."""
    if shards == 1 or not queries:
        return np.zeros(len(queries), np.int64)
    hashes = hashes_of(pa.array([q.name for q in queries], pa.string()))
    return (hashes % np.uint64(shards)).astype(np.int64)


def is_spread(plan: Plan) -> bool:
    """Whether a plan that is judged at ticks is judged by every shard for its own objects: pairs that nobody counts.

    A query that tells everything again when one of its members changed needs them all in one place (SPEC W6: RSTREAM).
    """
    return plan.pairs is not None and plan.aggregate is None and plan.emit != "rstream"
