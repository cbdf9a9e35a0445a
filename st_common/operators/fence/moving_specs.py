"""Fences on regions that move, compiled: where they are, and what each of them wants to be told (SPEC X3)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from st_common.geometry.space import Space
from st_common.operators.fence.specs import Detections, columns_of
from st_common.operators.matching.query_set import QuerySet
from st_common.operators.pairs.specs import compile_moving
from st_common.operators.skeleton.kind_queries import KindQueries
from st_common.operators.state.registered import Registered
from st_common.operators.turn.lookups import Lookups


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingFences(Detections):
    """Fences on regions that go with an object, which this shard judges.

    `kinds` are their regions by kind, `conditions` what else an object has to satisfy.
    """

    kinds: dict[str, KindQueries]
    conditions: QuerySet

    def focals(self, lookups: Lookups) -> np.ndarray:
        """The number of the object that the region of each fence goes with, -1 as long as it never reported."""
        focal = np.full(len(self), -1)
        for queries in self.kinds.values():
            focal[self.place[queries.numbers]] = lookups.table(queries).focal
        return focal


def compile_moving_fences(
    queries: Sequence[Registered], which: Sequence[int], *, space: Space
) -> MovingFences:
    """The fences among the queries with the numbers `which`, all on regions that move, compiled."""
    numbers = [n for n in which if queries[n].plan.fence is not None]
    bare = list(queries)
    for number in numbers:
        plan = replace(queries[number].plan, fence=None)
        bare[number] = replace(queries[number], plan=plan)
    moving = compile_moving(bare, numbers, space=space)
    return MovingFences(
        kinds=moving.kinds,
        conditions=moving.screened,
        **columns_of(queries, numbers),
    )
