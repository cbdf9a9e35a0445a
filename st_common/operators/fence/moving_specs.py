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
        """The numbers of the objects that the region of each fence goes with, -1 as long as they never reported.

        Returns:
            int64[fences, f], the first one again beyond those that a region has.
        """
        parts = [_side_by_side(of, lookups) for of in self.kinds.values()]
        width = max((part.shape[1] for part in parts), default=1)
        focals = np.full((len(self), width), -1)
        for queries, part in zip(self.kinds.values(), parts, strict=True):
            of_kind = np.repeat(part[:, :1], width, axis=1)
            of_kind[:, : part.shape[1]] = part
            focals[self.place[queries.numbers]] = of_kind
        return focals


def _side_by_side(queries: KindQueries, lookups: Lookups) -> np.ndarray:
    """The objects that each query goes with, the first one again beyond those that it has; int64[m, f]."""
    numbers = lookups.focals(queries)[queries.focal_at]
    row, start = (
        queries.focal_row,
        np.searchsorted(queries.focal_row, queries.focal_row),
    )
    nth = np.arange(len(row)) - start
    first = np.full(len(queries.numbers), -1)
    first[row[nth == 0]] = numbers[nth == 0]
    focals = np.repeat(first[:, None], int(nth.max(initial=0)) + 1, axis=1)
    focals[row, nth] = numbers
    return focals


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
