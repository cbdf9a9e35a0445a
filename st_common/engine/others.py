"""Which shards follow all objects: those that judge a query which asks where others are (docs/adr/0083)."""

from collections.abc import Iterable, Sequence

import numpy as np

from st_common.controls.reading import chosen
from st_common.controls.rows import ControlRow, Registration
from st_common.operators.runtime.compiling import is_spread, owners_of
from st_common.operators.state.registered import Queries
from st_common.operators.turn.flags import flags_of
from st_common.query.control import plan_of
from st_common.query.plan import Plan

Shards = frozenset[int]
NOBODY: Shards = frozenset()


def everybody(shards: int) -> Shards:
    """All shards, by their numbers."""
    return frozenset(range(shards))


def asked_by(rows: Sequence[ControlRow], shards: int) -> Shards:
    """The shards that judge those queries of some control rows which ask where others are."""
    registered = (row for _, row in chosen(rows, Registration))
    plans = ((row.query, plan_of(row, 0)) for row in registered)
    return _judging(((name, plan) for name, plan in plans if plan.by_ticks), shards)


def needed_by(queries: Queries, shards: int) -> Shards:
    """The shards that judge a live query which asks where others are; kept with the queries."""
    kept: Shards | None = queries.derived.get((needed_by, shards))
    if kept is None:
        numbers = np.flatnonzero(flags_of(queries).ticking)
        asking = (queries[number] for number in numbers)
        live = ((one.name, one.plan) for one in asking if one.live)
        kept = queries.derived[needed_by, shards] = _judging(live, shards)
    return kept


def _judging(asked: Iterable[tuple[str, Plan]], shards: int) -> Shards:
    """The shards that judge some queries by ticks: of each its owner, or all, each for its own objects."""
    names = []
    for name, plan in asked:
        if is_spread(plan):
            return everybody(shards)
        names.append(name)
    return frozenset(owners_of(names, shards).tolist()) if names else NOBODY
