"""How the queries of a shard are dealt out to operators and compiled, and what of that is kept (SPEC P8).

    a plan with                                  is judged       by the shard that owns
    a region that stands still, a layer          fix by fix      the object                 `fixwise`
    a fence at such a region, an incident        fix by fix      the object                 `fences`, `incidents`
    the same below an aggregate                  at ticks        the query                  `still`
    WINDOW                                       at ticks        the query                  `windows`
    windows in brackets                          at ticks        the query                  `frames`
    a region that goes with an object, KNN       at ticks        the query                  `kinds`
    a layer above a region that goes, or KNN     at ticks        the query                  `joining`
    pairs of objects                             at ticks        the first object           `paired`

Pairs that are counted, told again as a whole, or choose objects are judged by the query's shard (`is_spread`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from st_common.config.filters import require_filter
from st_common.operators.expressions.filters import FILTERS
from st_common.operators.fence.moving_specs import MovingFences, compile_moving_fences
from st_common.operators.fence.specs import FenceSet, compile_fences
from st_common.operators.incident.specs import IncidentSet, compile_incidents
from st_common.operators.matching.placing import Placed, Source, placed, placed_anew
from st_common.operators.matching.query_set import compile_queries
from st_common.operators.outer.specs import OuterSpecs, outer_of
from st_common.operators.pairs.specs import (
    MovingJoins,
    PairSpecs,
    compile_moving_joins,
    compile_pairs,
    moves,
)
from st_common.operators.skeleton.kind_queries import KindQueries, kind_queries
from st_common.operators.state.fixes import NEVER
from st_common.operators.state.intern import hashes_of, shards_of
from st_common.operators.state.registered import Queries, Registered
from st_common.operators.state.settings import Settings
from st_common.operators.travelled.specs import (
    FrameSpecs,
    compile_frames,
    is_restricted,
    who_counts,
)
from st_common.operators.turn.compiled import Compiled
from st_common.operators.turn.flags import Flags, flags_of
from st_common.query.neighbours import Nearest
from st_common.query.neighbours import kind_of as kind_of_neighbours
from st_common.query.plan import Plan
from st_common.regions.region import MovingRegion

_PAIRS = "pairs"
_STILL = "still"

_HOLDS = 64
"""For how many fixes an order of operators holds, for each reading that it was estimated on."""
_HOLDS_MOST = 1 << 17


def kind_of(plan: Plan) -> str | None:
    """The kind of the skeleton that judges a plan, or `pairs`; None where it stands still and has no neighbours."""
    if plan.pairs is not None or (plan.gives_pairs and moves(plan)):
        return _PAIRS
    if plan.neighbours is not None:
        kind = kind_of_neighbours(plan.neighbours)
        by_shapes = isinstance(plan.neighbours, Nearest) and plan.neighbours.extent
        return f"{kind}_extent" if by_shapes else kind
    return plan.inside.kind if isinstance(plan.inside, MovingRegion) else None


def owners(queries: Queries, shards: int) -> np.ndarray:
    """The shard that owns each query; int64[queries].

    It is decided by a hash of the name, so that every number of shards deals queries out evenly (docs/adr/0008); but
    where a query was dealt to a shard by its place (docs/adr/0100).

    Args:
        queries: all queries of the stream.
        shards: how many there are.
    """
    if shards == 1 or not queries:
        return np.zeros(len(queries), np.int64)
    of_names = owners_of([query.name for query in queries], shards)
    dealt = [query.dealt for query in queries]
    said = np.flatnonzero([shard is not None for shard in dealt])
    of_names[said] = [shard for shard in dealt if shard is not None]
    return of_names


def owners_of(names: Sequence[str], shards: int) -> np.ndarray:
    """The shard that owns a query of each of these names; int64[names]."""
    return shards_of(hashes_of(pa.array(names, pa.string())), shards)


def is_spread(plan: Plan) -> bool:
    """Whether a plan that is judged at ticks is judged by every shard for its own objects: pairs that nobody counts.

    A query that tells everything again when one of its members changed needs them all in one place (SPEC W6: RSTREAM),
    and so does one about whose rows another one asks. Who has a partner, or none, is told as any member is.
    """
    return (
        plan.pairs is not None
        and plan.pairs.how == "inner"
        and plan.neighbours is None
        and plan.aggregate is None
        and plan.emit != "rstream"
        and plan.outer is None
    )


@dataclass(slots=True)
class _Running:
    """What runs of queries in a shard; the order of operators `holds` for so many fixes, for `fixes` more."""

    known: Compiled
    holds: int = 0
    fixes: int = 0

    def renew(self) -> None:
        """Lets the order hold again, longer than before."""
        estimated_on = _HOLDS * self.known.order.readings
        self.holds = min(max(estimated_on, 2 * self.holds), _HOLDS_MOST)
        self.fixes = self.holds


def compiled(queries: Queries, settings: Settings, source: Source) -> Compiled:
    """The live ones of the queries, compiled; kept with them, for a batch rarely changes them.

    The fixes of `source` only suggest which operator comes first. That is looked at again after 64 fixes for each
    reading that it was estimated on, later and later: soon where little was known, as of a query that was there before
    all fixes.

    Args:
        queries: all queries of the stream.
        settings: which shard this is, and the space.
        source: fixes by which is estimated whether a region or a condition is looked at first.

    Raises:
        ConfigError: a query names a filter of users that is not here: nobody is asked before all can be.
    """
    running = _running(queries, settings)
    if running is None:
        running = _Running(compile_shard(queries, settings, source))
        _require_filters(running.known, settings)
        queries.derived[_Running, settings] = running
        running.renew()
    elif running.known.order.open and running.fixes <= 0 and len(source.run_fixes):
        running.known = _placed_anew(running.known, queries, settings, source)
        running.renew()
    running.fixes -= len(source.run_fixes)
    return running.known


def _require_filters(known: Compiled, settings: Settings) -> None:
    sets = known.fixwise, known.still, known.windows
    names = {one.name for of in sets for one in of.screens.filters}
    for name in names - FILTERS.keys():
        require_filter(name, settings.filters)


def order_now(queries: Queries, settings: Settings) -> Placed | None:
    """The order of operators in which queries run now in a shard; None for those that never ran there.

    Args:
        queries: all queries of the stream.
        settings: which shard.
    """
    running = _running(queries, settings)
    return None if running is None else running.known.order


def _running(queries: Queries, settings: Settings) -> _Running | None:
    running: _Running | None = queries.derived.get((_Running, settings))
    return running


def _placed_anew(
    known: Compiled, queries: Queries, settings: Settings, source: Source
) -> Compiled:
    """The same queries with the order of operators that these fixes suggest; caches at ticks go by the same kinds."""
    order = placed_anew(queries, known.order, source, space=settings.space)
    if order.below == known.order.below:
        return replace(known, order=order)
    new = compile_shard(queries, settings, source)
    kept: dict[type, Any] = {
        kind: known.specs[kind] for kind in (PairSpecs, MovingJoins)
    }
    return replace(
        new,
        kinds=known.kinds,
        following=known.following,
        specs={**new.specs, **kept},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Dealt:
    """The numbers of queries, by what judges them; those with a frame that asks who counts are also among the others.

    `kinds` are those of the skeleton, `paired` join objects with objects, `joining` a layer below a region that moves.
    """

    fixwise: list[int]
    fences: list[int]
    incidents: list[int]
    ticking: list[int]
    windows: list[int]
    frames: list[int]
    still: list[int]
    kinds: dict[str, list[int]]
    paired: list[int]
    joining: list[int]

    @property
    def matched(self) -> list[int]:
        """Those whose regions stand still."""
        return [
            *self.fixwise,
            *self.still,
            *self.windows,
            *self.fences,
            *self.incidents,
        ]


def _specs(
    queries: Sequence[Registered], dealt: Dealt, order: Placed, settings: Settings
) -> dict[type, Any]:
    """What operators compile for themselves of the queries dealt to them, by type; frames are not among them."""
    space, below = settings.space, order.below
    return {
        FenceSet: compile_fences(queries, dealt.fences, space=space, below=below),
        IncidentSet: compile_incidents(
            queries, dealt.incidents, space=space, below=below
        ),
        PairSpecs: _pairs(queries, dealt.paired, settings),
        MovingJoins: compile_moving_joins(queries, dealt.joining, space=space),
        MovingFences: compile_moving_fences(queries, dealt.ticking, space=space),
    }


def compile_shard(
    queries: Queries,
    settings: Settings,
    source: Source,
    only: Iterable[int] | None = None,
) -> Compiled:
    """Deals the live queries out to operators, and compiles them for one shard.

    Args:
        queries: all queries of the stream, by their numbers.
        settings: which shard this is, and the space.
        source: fixes by which is estimated whether a region or a condition is looked at first.
        only: the numbers of those that are wanted; None: all.

    Returns:
        What operators need of the queries; numbers stay those of the stream.
    """
    numbers = range(len(queries)) if only is None else sorted(only)
    live = [n for n in numbers if queries[n].live]
    mine = _owned(queries, settings)
    flags = flags_of(queries)
    dealt = deal_out(queries, live, mine, flags)
    below = _below_frames(queries, dealt.frames)
    space = settings.space
    order = placed(below, dealt.matched, source, space=space)
    frames = compile_frames(queries, dealt.frames, space=space)
    holds_by_object = np.zeros(len(queries), bool)
    holds_by_object[frames.numbers[frames.by_object]] = True
    matching = partial(compile_queries, below, space=space, below=order.below)
    return Compiled(
        fixwise=matching(dealt.fixwise),
        still=matching(dealt.still),
        windows=matching(dealt.windows),
        kinds=_of_kinds(below, dealt.kinds, settings),
        following=_following(below, [*dealt.paired, *dealt.joining], settings),
        specs={
            FrameSpecs: frames,
            OuterSpecs: outer_of(queries),
            **_specs(below, dealt, order, settings),
        },
        early=_early(queries, dealt.ticking, mine),
        has_ticks=bool(dealt.ticking),
        mine=mine,
        holds_by_object=holds_by_object,
        order=order,
        **{field.name: getattr(flags, field.name) for field in fields(Flags)},
    )


def deal_out(
    queries: Queries, live: list[int], mine: np.ndarray, flags: Flags
) -> Dealt:
    """Who judges each of the queries `live`; those at ticks that other shards judge are left out.

    Args:
        queries: all queries of the stream, by their numbers.
        live: the numbers of those that are dealt out.
        mine: bool[queries], which of them this shard owns.
        flags: of the queries.
    """
    at_ticks = flags.ticking.tolist()
    plans = {number: queries[number].plan for number in live}
    # Pairs are spread over shards by their first objects; all else at ticks is judged by the owner of the query.
    ticking = [n for n in live if at_ticks[n] and (mine[n] or is_spread(plans[n]))]
    frames = [n for n in ticking if plans[n].frame is not None]
    below = _below_frames(queries, frames)
    kinds: dict[str, list[int]] = {}
    for number in ticking:
        if plans[number].window is None and _has_members(plans[number]):
            # Of a query with a frame by what is asked of last fixes.
            kind = kind_of(below[number].plan) or _STILL
            kinds.setdefault(kind, []).append(number)
    still, joined = kinds.pop(_STILL, []), kinds.pop(_PAIRS, [])
    fixwise = [n for n in live if not at_ticks[n]]
    return Dealt(
        fixwise=[n for n in fixwise if not plans[n].tells_events],
        fences=[n for n in fixwise if plans[n].fence is not None],
        incidents=[n for n in live if plans[n].incident is not None],
        ticking=ticking,
        windows=[n for n in ticking if plans[n].window is not None],
        frames=frames,
        still=still,
        kinds=kinds,
        paired=[n for n in joined if below[n].plan.pairs is not None],
        joining=[n for n in joined if below[n].plan.pairs is None],
    )


def _of_kinds(
    queries: Sequence[Registered], kinds: dict[str, list[int]], settings: Settings
) -> dict[str, KindQueries]:
    return {
        name: kind_queries(queries, numbers, space=settings.space)
        for name, numbers in kinds.items()
    }


def _following(
    queries: Sequence[Registered], numbers: list[int], settings: Settings
) -> KindQueries:
    """Those that go with an object."""
    following = [n for n in sorted(numbers) if queries[n].plan.focals]
    return kind_queries(queries, following, space=settings.space)


def _pairs(
    queries: Sequence[Registered], numbers: list[int], settings: Settings
) -> PairSpecs:
    spread = [n for n in numbers if is_spread(queries[n].plan)]
    return compile_pairs(queries, numbers, spread=spread, space=settings.space)


def _early(
    queries: Sequence[Registered], ticking: list[int], mine: np.ndarray
) -> np.ndarray:
    """Own queries at ticks that were there before the stream had a time."""
    return np.array(
        [n for n in ticking if mine[n] and queries[n].since == NEVER], np.int64
    )


def _has_members(plan: Plan) -> bool:
    """Whether a plan has an answer of its last fixes; a frame over all objects has none."""
    return plan.frame is None or is_restricted(plan)


def _below_frames(
    queries: Sequence[Registered], frames: list[int]
) -> Sequence[Registered]:
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
