"""Fences of a shard, compiled: where they are, and what each of them wants to be told (SPEC X3)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from st_common.geometry.space import Space
from st_common.operators.fence.machine import Rules
from st_common.operators.matching.query_set import QuerySet, compile_queries
from st_common.operators.state.registered import Registered
from st_common.query.fence import EVENTS, Fence
from st_common.query.plan import LayerJoin, Plan
from st_common.regions.region import Borders
from st_common.regions.registry import borders_of, by_kind

FOREVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True)
class Detections:
    """What fences tell, by their place in `numbers`, the numbers of their queries (ascending).

    `place` has the place of each query of the stream, -1 for what is no fence of these. `rules` are the machines' of
    each fence, `hysteresis_m` and `dwell_us` (`FOREVER` without) its other numbers; `wants` (bool[events, fences]) says
    which events it tells, `has_answer` whether they have signs.
    """

    numbers: np.ndarray
    place: np.ndarray
    rules: Rules
    hysteresis_m: np.ndarray
    dwell_us: np.ndarray
    wants: np.ndarray
    has_answer: np.ndarray

    def __len__(self) -> int:
        return len(self.numbers)

    def wanting(self, event: str) -> np.ndarray:
        """Which fences tell of an event; bool[fences]."""
        which: np.ndarray = self.wants[EVENTS.index(event)]
        return which


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceSet(Detections):
    """Fences on what stands still.

    `regions` finds what fixes lie in, `wider` what features they lie near to. `borders` are those of regions, by kind,
    with the places of theirs. `max_gap_us` is `FOREVER` without one.
    """

    regions: QuerySet
    wider: QuerySet
    borders: tuple[tuple[np.ndarray, Borders], ...]
    max_gap_us: np.ndarray


def compile_fences(
    queries: Sequence[Registered],
    which: Sequence[int],
    *,
    space: Space,
    below: frozenset[int] = frozenset(),
) -> FenceSet:
    """The fences among the queries with the numbers `which`, compiled; `below` as of `compile_queries`."""
    numbers = [n for n in which if queries[n].plan.fence is not None]
    fences = fences_of(queries, numbers)
    return FenceSet(
        regions=compile_queries(queries, numbers, space=space, below=below),
        wider=_wider(queries, numbers, space=space),
        borders=_borders([queries[n].plan for n in numbers], space=space),
        max_gap_us=microseconds([fence.max_gap_s for fence in fences]),
        **columns_of(queries, numbers),
    )


def fences_of(queries: Sequence[Registered], numbers: Sequence[int]) -> list[Fence]:
    """The fences of queries that have one."""
    return [fence for n in numbers if (fence := queries[n].plan.fence) is not None]


def columns_of(queries: Sequence[Registered], numbers: Sequence[int]) -> dict[str, Any]:
    """The columns of `Detections` of the fences with these numbers."""
    fences = fences_of(queries, numbers)
    place = np.full(len(queries), -1)
    place[numbers] = np.arange(len(numbers))
    wants = [[event in fence.events for fence in fences] for event in EVENTS]
    return {
        "numbers": np.array(numbers, np.int64),
        "place": place,
        "rules": _rules(fences),
        "hysteresis_m": np.array([fence.hysteresis_m for fence in fences], float),
        "dwell_us": microseconds([fence.dwell_s for fence in fences]),
        "wants": np.array(wants, bool).reshape(len(EVENTS), len(fences)),
        "has_answer": np.array([fence.has_answer for fence in fences], bool),
    }


def _rules(fences: Sequence[Fence]) -> Rules:
    enters = [fence.enter_after for fence in fences]
    exits = [fence.exit_after for fence in fences]
    return Rules(
        enter_fixes=np.array([after.fixes for after in enters], np.int64),
        enter_us=microseconds([after.seconds for after in enters]),
        exit_fixes=np.array([after.fixes for after in exits], np.int64),
        exit_us=microseconds([after.seconds for after in exits]),
    )


def microseconds(seconds: Sequence[float | None]) -> np.ndarray:
    """Whole microseconds, `FOREVER` for None."""
    return np.array(
        [FOREVER if each is None else round(each * 1e6) for each in seconds], np.int64
    )


def _wider(
    queries: Sequence[Registered], numbers: Sequence[int], *, space: Space
) -> QuerySet:
    """Features, grown by the hysteresis of their fences."""
    widened = list(queries)
    grown = []
    for number in numbers:
        plan = queries[number].plan
        by_m = plan.fence.hysteresis_m if plan.fence else 0.0
        if by_m and plan.join is not None:
            near = replace(plan, join=_near(plan.join, by_m))
            widened[number] = replace(queries[number], plan=near)
            grown.append(number)
    return compile_queries(widened, grown, space=space)


def _near(join: LayerJoin, by_m: float) -> LayerJoin:
    return replace(join, predicate="dwithin", distance_m=join.distance_m + by_m)


def _borders(
    plans: Sequence[Plan], *, space: Space
) -> tuple[tuple[np.ndarray, Borders], ...]:
    """The borders of fences around a region that ask how far it is or who crosses it, by kind, with their places."""
    alone = [
        n
        for n, plan in enumerate(plans)
        if plan.join is None and plan.fence is not None and plan.fence.asks_for_border
    ]
    regions = [plans[n].inside for n in alone]
    return tuple(
        (
            np.array(alone)[places],
            borders_of([regions[at] for at in places], space=space),
        )
        for places in by_kind(regions).values()
    )
