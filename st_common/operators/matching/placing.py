"""Where the spatial operator stands: below or above the selection, by what the fixes suggest (SPEC G10).

    of a sample      the condition holds for 5 %, 2 % lie in the region       the region first
                     5 %, 64 %                                                the condition first

Both orders give the same changes, so that an order may be chosen anew at any run. Where it is, and how many points are
looked up, depends on how the log is cut into runs; what is told does not.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from st_common.geometry.space import Space
from st_common.operators.expressions import evaluation as expressions
from st_common.operators.expressions import readings
from st_common.operators.state.fixes import ALIVE, LastFixes
from st_common.operators.state.intern import Interner
from st_common.operators.state.registered import Registered
from st_common.query.order import choose
from st_common.query.plan import Plan
from st_common.regions.registry import index_of

_SAMPLE = 2_000
_MOST_PREDICATES = 256  # to estimate more costs longer than it can save


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What shares can be estimated on.

    Attributes:
        fixes: the last fixes.
        objects: all objects that are known then.
        run: the readings after the events of a run; None without one.
        run_fixes: int64, the places of fixes among these.
    """

    fixes: LastFixes
    objects: Interner
    run: readings.Readings | None = None
    run_fixes: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    def sample(self) -> readings.Readings:
        """At most some 2,000 readings, evenly spread: of the last fixes, or of those of the run where that has more."""
        alive = np.flatnonzero(self.fixes.status == ALIVE)
        if self.run is not None and len(self.run_fixes) > len(alive):
            return self.run.take(_some(self.run_fixes))
        return readings.of_objects(self.fixes, _some(alive))


def _some(index: np.ndarray) -> np.ndarray:
    # Every n-th, not by chance: the same fixes give the same sample.
    return index[:: max(1, -(-len(index) // _SAMPLE))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """How many readings of a sample satisfy a query's selection, how many lie in its region, by share (0 to 1).

    Attributes:
        where: the share that satisfies the selection.
        space: the share that lies in the region.
        readings: how many the sample has.
        alike: how many queries have this selection; they share what it costs, and stand in one order.
        space_alike: the share that lies in the region of one of these, on average.
    """

    where: float
    space: float
    readings: int
    alike: int
    space_alike: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Which queries have their selection below the spatial operator (SPEC G10).

    Attributes:
        fixed: the numbers of queries whose plan says so.
        open: those of queries where it is chosen, by what is cheaper.
        shares: the estimates by which it was, by number.
        readings: on how many readings they were made.
    """

    fixed: frozenset[int]
    open: tuple[int, ...]
    shares: dict[int, Shares] = field(default_factory=dict)
    readings: int = 0

    @property
    def below(self) -> frozenset[int]:
        """The numbers of the queries whose selection stands below the spatial operator."""
        chosen = {
            n
            for n, of in self.shares.items()
            if choose(of.where, of.space_alike, alike=of.alike) == "select_first"
        }
        return self.fixed | chosen


def placed(
    queries: Sequence[Registered], numbers: list[int], source: Source, *, space: Space
) -> Placed:
    """The order of operators of some queries; without a reading to estimate by, the spatial operator comes first.

    Args:
        queries: all queries of the stream.
        numbers: those that are meant; only such with a condition, a region and no join can be chosen for.
        source: what shares are estimated on.
        space: what coordinates mean.
    """
    fixed = frozenset(
        n
        for n in numbers
        if queries[n].plan.where and queries[n].plan.order == "select_first"
    )
    undecided = [n for n in numbers if _is_open(queries[n].plan)]
    if len({queries[n].plan.where for n in undecided}) > _MOST_PREDICATES:
        undecided = []
    return placed_anew(
        queries,
        Placed(fixed=fixed, open=tuple(undecided)),
        source,
        space=space,
    )


def _is_open(plan: Plan) -> bool:
    """Whether selection or region may come first; ways and extents do, for places alone give no estimate of them."""
    if not plan.where or plan.inside is None or plan.inside.asks_beyond_place:
        return False
    return plan.order == "auto" and plan.join is None


def placed_anew(
    queries: Sequence[Registered], before: Placed, source: Source, *, space: Space
) -> Placed:
    """The same choice, made on what is known now; without a reading it stays as it was.

    Args:
        queries: all queries of the stream.
        before: the choice before.
        source: what shares are estimated on.
        space: what coordinates mean.
    """
    sample = source.sample() if before.open else None
    if sample is None or not len(sample):
        return before
    shares = _shares(queries, before.open, sample, source.objects, space=space)
    return replace(before, shares=shares, readings=len(sample))


def _shares(
    queries: Sequence[Registered],
    numbers: Sequence[int],
    sample: readings.Readings,
    objects: Interner,
    *,
    space: Space,
) -> dict[int, Shares]:
    texts = list(dict.fromkeys(queries[n].plan.where or "" for n in numbers))
    table = sample.table(objects.ids, space=space, texts=texts)
    masks = expressions.masks(texts, table)
    where = dict(zip(texts, masks.mean(axis=1).tolist(), strict=True))
    inside = _shares_inside(queries, numbers, sample, space=space)
    shares: dict[int, Shares] = {}
    for text, alike in _alike(queries, numbers).items():
        of_all = Shares(
            where=where[text],
            space=0.0,
            readings=len(sample),
            alike=len(alike),
            space_alike=sum(inside[n] for n in alike) / len(alike),
        )
        shares |= {n: replace(of_all, space=inside[n]) for n in alike}
    return shares


def _alike(
    queries: Sequence[Registered], numbers: Sequence[int]
) -> dict[str, list[int]]:
    """The queries with each selection."""
    alike: dict[str, list[int]] = {}
    for number in numbers:
        alike.setdefault(queries[number].plan.where or "", []).append(number)
    return alike


def _shares_inside(
    queries: Sequence[Registered],
    numbers: Sequence[int],
    sample: readings.Readings,
    *,
    space: Space,
) -> dict[int, float]:
    """The share of the sample that lies in each query's region."""
    kinds: dict[type, list[int]] = {}
    for number in numbers:
        kinds.setdefault(type(queries[number].plan.inside), []).append(number)
    shares: dict[int, float] = {}
    for of in kinds.values():
        index = index_of([queries[n].plan.inside for n in of], space=space)
        _, row = index.probe(sample.x, sample.y)
        counts = np.bincount(row, minlength=len(of)) / len(sample)
        shares |= dict(zip(of, counts.tolist(), strict=True))
    return shares
