"""Where the spatial operator stands: below or above the selection, by what the last fixes suggest (SPEC G10)."""

import numpy as np

from st_common.operators import expressions, readings
from st_common.operators.fixes import ALIVE, LastFixes
from st_common.operators.intern import Interner
from st_common.operators.match import index_of
from st_common.operators.registered import Queries
from st_common.query.order import choose

_SAMPLE = 2_000
_MOST_PREDICATES = 256  # to estimate more costs longer than it can save


def selections_below(
    queries: Queries, numbers: list[int], fixes: LastFixes, objects: Interner, *, geographic: bool
) -> frozenset[int]:
    """The queries (of `numbers`) whose selection comes first; both orders give the same changes.

    Selectivities are estimated on a sample of the last fixes. Without any the spatial operator comes first.
    """
    chosen = {n for n in numbers if queries[n].plan.where and queries[n].plan.order == "select_first"}
    open_ones = [n for n in numbers if queries[n].plan.where and queries[n].plan.order == "auto"
                 and queries[n].plan.inside is not None and queries[n].plan.join is None]  # fmt: skip
    texts = list(dict.fromkeys(queries[n].plan.where or "" for n in open_ones))
    alive = np.flatnonzero(fixes.status == ALIVE)
    if not len(alive) or not texts or len(texts) > _MOST_PREDICATES:
        return frozenset(chosen)
    sample = readings.of_objects(fixes, alive[:: max(1, len(alive) // _SAMPLE)])
    masks = expressions.masks(texts, sample.table(objects.ids, geographic=geographic))
    where = dict(zip(texts, masks.mean(axis=1).tolist(), strict=True))
    for number, share in _shares_inside(queries, open_ones, sample, geographic=geographic).items():
        if choose(where[queries[number].plan.where or ""], share) == "select_first":
            chosen.add(number)
    return frozenset(chosen)


def _shares_inside(
    queries: Queries, numbers: list[int], sample: readings.Readings, *, geographic: bool
) -> dict[int, float]:
    """The share of the sample that lies in each query's region."""
    kinds: dict[type, list[int]] = {}
    for number in numbers:
        kinds.setdefault(type(queries[number].plan.inside), []).append(number)
    shares: dict[int, float] = {}
    for of in kinds.values():
        index = index_of([queries[n].plan.inside for n in of], geographic=geographic)
        _, row = index.probe(sample.x, sample.y)
        counts = np.bincount(row, minlength=len(of)) / len(sample)
        shares |= dict(zip(of, counts.tolist(), strict=True))
    return shares
