"""Incidents of a shard, compiled: what opens and ends them, and what each wants to be told (SPEC X8)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from st_common.geometry.space import Space
from st_common.operators.fence.machine import Rules
from st_common.operators.fence.specs import microseconds
from st_common.operators.matching.query_set import QuerySet, compile_queries
from st_common.operators.state.registered import Registered
from st_common.query.incident import Incident
from st_common.query.plan import Plan

_SENSE = {"max": 1.0, "min": -1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentSet:
    """Incidents by their place in `numbers`, the numbers of their queries (ascending).

    `place` has the place of each query of the stream, -1 for what is none. `openings` finds the fixes that satisfy a
    condition, `endings` has the conditions of UNTIL of those that `have_until`. `rules` are the machines'.
    `max_gap_us` (`FOREVER` without) ends an incident. `goes_on` says which tell that they go on, at most once in
    `every_us` (0: with each fix). `worst` are the expressions of worst values (None without), `sense` is 1 for the
    greatest and -1 for the least.
    """

    numbers: np.ndarray
    place: np.ndarray
    openings: QuerySet
    endings: QuerySet
    have_until: np.ndarray
    rules: Rules
    max_gap_us: np.ndarray
    goes_on: np.ndarray
    every_us: np.ndarray
    worst: tuple[str | None, ...]
    sense: np.ndarray

    def __len__(self) -> int:
        return len(self.numbers)


def compile_incidents(
    queries: Sequence[Registered],
    which: Sequence[int],
    *,
    space: Space,
    below: frozenset[int] = frozenset(),
) -> IncidentSet:
    """The incidents of the queries with the numbers `which`, compiled; `below` as of `compile_queries`."""
    plans = [queries[n].plan for n in which]
    incidents = [plan.incident for plan in plans if plan.incident is not None]
    place = np.full(len(queries), -1)
    place[list(which)] = np.arange(len(which))
    worst = [incident.worst for incident in incidents]
    return IncidentSet(
        numbers=np.array(which, np.int64),
        place=place,
        openings=compile_queries(queries, which, space=space, below=below),
        endings=_endings(queries, which, space=space),
        have_until=np.array([each.until is not None for each in incidents], bool),
        rules=_rules(incidents),
        max_gap_us=microseconds([each.max_gap_s for each in incidents]),
        goes_on=np.array([plan.emit == "every" for plan in plans], bool),
        every_us=microseconds([each.every_s or 0.0 for each in incidents]),
        worst=tuple(one.argument if one else None for one in worst),
        sense=np.array([_SENSE[one.function] if one else 1.0 for one in worst]),
    )


def _rules(incidents: Sequence[Incident]) -> Rules:
    """As long as FOR says to begin; the first fix that ends one ends it."""
    count = len(incidents)
    return Rules(
        enter_fixes=np.array([each.lasting.fixes for each in incidents], np.int64),
        enter_us=microseconds([each.lasting.seconds for each in incidents]),
        exit_fixes=np.ones(count, np.int64),
        exit_us=np.zeros(count, np.int64),
    )


def _endings(
    queries: Sequence[Registered], which: Sequence[int], *, space: Space
) -> QuerySet:
    """The conditions of UNTIL, as conditions of queries without a region."""
    ending = list(queries)
    having = []
    for number in which:
        plan = queries[number].plan
        until = plan.incident.until if plan.incident else None
        if until is not None:
            only = Plan(stream=plan.stream, where=until)
            ending[number] = replace(queries[number], plan=only)
            having.append(number)
    return compile_queries(ending, having, space=space)
