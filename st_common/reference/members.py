"""Who satisfies a plan below its window and its aggregate (docs/how-it-works.md), by the last fixes of all alive."""

from collections.abc import Callable

import numpy as np

from st_common.query.plan import Plan
from st_common.reference.columns import Features, Fixes
from st_common.reference.layer_join import of_which_features, with_features
from st_common.reference.metric import Members, certain, everyone
from st_common.reference.nearest import neighbours
from st_common.reference.pair_join import Joined, asks_of_pairs, of_which, pairs
from st_common.reference.ranges import inside
from st_common.reference.steps import stepped

_NOBODY = Joined(
    row=np.empty(0, np.int64),
    partner=np.empty(0, np.object_),
    sure=np.empty(0, np.bool_),
)
FeaturesOf = Callable[[], Features]
"""The features of the layer that a plan joins; not asked without a join."""


def members(plan: Plan, fixes: Fixes, features: FeaturesOf) -> Joined:
    """The pairs of an object and its partner (None without a join) that satisfy a plan.

    A focal object that does not live empties the answer, and none is in the answer of its own query.
    """
    is_focal = fixes.is_one_of(plan.focals)
    if np.count_nonzero(is_focal) < len(plan.focals):
        return _NOBODY
    eligible = qualified(plan, fixes) & certain(~is_focal)
    if plan.neighbours is not None:
        eligible = neighbours(plan.neighbours, fixes, eligible)
    if plan.pairs is not None:
        near = pairs(plan.pairs, fixes, eligible)
        return of_which(plan.where or "", fixes, near) if _asks_pairs(plan) else near
    return joined(plan, fixes, eligible, features)


def qualified(plan: Plan, fixes: Fixes) -> Members:
    """The fixes that are inside the plan's region, get through its steps and satisfy its condition.

    A condition that names what they are joined with is one of pairs, which is asked later.
    """
    members = everyone(len(fixes))
    if plan.inside is not None:
        members &= inside(plan.inside, fixes)
    if plan.transforms or plan.compare is not None:
        members &= stepped(plan, fixes).members
    if plan.where is not None and not _asks_pairs(plan):
        members &= certain(fixes.is_true(plan.where))
    return members


def _asks_pairs(plan: Plan) -> bool:
    """Whether the condition of a plan is about pairs."""
    is_joined = plan.pairs is not None or plan.join is not None
    return is_joined and asks_of_pairs(plan.where)


def joined(plan: Plan, fixes: Fixes, eligible: Members, features: FeaturesOf) -> Joined:
    """The eligible fixes, each with every feature that it is joined with; all of them once where none is asked for."""
    kept = np.flatnonzero(eligible.maybe)
    if plan.join is None:
        nobody = np.full(len(kept), None, np.object_)
        return Joined(row=kept, partner=nobody, sure=eligible.sure[kept])
    known = features()
    pairs = with_features(plan, fixes.take(kept), known)
    if _asks_pairs(plan):
        pairs = of_which_features(plan.where or "", fixes.take(kept), known, pairs)
    row = kept[pairs.row]
    return Joined(row=row, partner=pairs.partner, sure=pairs.sure & eligible.sure[row])
