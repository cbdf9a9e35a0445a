"""Which shards judge queries that ask where other objects are (docs/adr/0083, 0100).

A query that asks of anybody, as KNN does, has its shard follow all objects. One that asks who is near an object can be
judged by a shard that knows its guests (`operators.guests`).
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from st_common.controls.reading import chosen
from st_common.controls.rows import ControlRow, Register, Registration
from st_common.operators.guests.nearby import looks_nearby
from st_common.operators.runtime.compiling import is_spread, owners_of
from st_common.operators.state.registered import Queries
from st_common.operators.turn.flags import flags_of
from st_common.query.control import plan_of
from st_common.query.plan import Plan

Shards = frozenset[int]
NOBODY: Shards = frozenset()


class Asking(NamedTuple):
    """The shards that queries fall to by their names: of those that ask who is near an object, and of all others."""

    nearby: Shards
    anywhere: Shards

    @property
    def all(self) -> Shards:
        """The shards of either."""
        return self.nearby | self.anywhere


NOT_ASKING = Asking(NOBODY, NOBODY)


def everybody(shards: int) -> Shards:
    """All shards, by their numbers."""
    return frozenset(range(shards))


def asked_by(rows: Sequence[ControlRow], shards: int) -> Asking:
    """The shards that judge those queries of some control rows which ask where others are."""
    registered = (row for _, row in chosen(rows, Registration))
    return _asking(((row.query, plan_of(row, 0)) for row in registered), shards)


def changes_kind(rows: Sequence[ControlRow]) -> bool:
    """Whether queries that are there may come to ask where others are, anywhere, by some control rows."""
    changed = (
        row for _, row in chosen(rows, Registration) if not isinstance(row, Register)
    )
    plans = (plan_of(row, 0) for row in changed)
    return any(plan.by_ticks and not looks_nearby(plan) for plan in plans)


def asking_in(queries: Queries, shards: int) -> Asking:
    """The shards that judge a live query which asks where others are; kept with the queries."""
    kept: Asking | None = queries.derived.get((asking_in, shards))
    if kept is None:
        numbers = np.flatnonzero(flags_of(queries).ticking)
        asking = (queries[number] for number in numbers)
        live = ((one.name, one.plan) for one in asking if one.live)
        kept = queries.derived[asking_in, shards] = _asking(live, shards)
    return kept


def undealt_in(queries: Queries, since: int) -> tuple[int, int]:
    """How many queries that look nearby are judged where their names fall, though they could be dealt by place.

    Args:
        queries: all queries of the stream.
        since: the place in the log at which they were dealt last.

    Returns:
        How many were registered since; and how many there are. Both kept with the queries.
    """
    kept: tuple[int, int] | None = queries.derived.get((undealt_in, since))
    if kept is None:
        ticking = (queries[n] for n in np.flatnonzero(flags_of(queries).ticking))
        nearby = [one for one in ticking if one.live and looks_nearby(one.plan)]
        new = [
            one for one in nearby if one.position is not None and one.position >= since
        ]
        undealt = sum(one.dealt is None for one in new)
        kept = queries.derived[undealt_in, since] = undealt, len(nearby)
    return kept


def _asking(asked: Iterable[tuple[str, Plan]], shards: int) -> Asking:
    """The shards of queries: of each by ticks its owner, or all, each for its own objects."""
    nearby, anywhere = list[str](), list[str]()
    for name, plan in asked:
        if not plan.by_ticks:
            continue
        if is_spread(plan):
            return Asking(_owners(nearby, shards), everybody(shards))
        (nearby if looks_nearby(plan) else anywhere).append(name)
    return Asking(_owners(nearby, shards), _owners(anywhere, shards))


def _owners(names: Sequence[str], shards: int) -> Shards:
    return frozenset(owners_of(names, shards).tolist()) if names else NOBODY
