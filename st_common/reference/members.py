"""Who satisfies a plan below its window and its aggregate (docs/how-it-works.md), by the last fixes of all alive."""

from collections.abc import Callable

import numpy as np

from st_common.query.plan import PairJoin, Plan
from st_common.reference.columns import Features, Fixes
from st_common.reference.layer_join import of_which_features, with_features
from st_common.reference.metric import Members, certain, everyone
from st_common.reference.nearest import neighbours
from st_common.reference.pair_join import (
    Joined,
    asks_of_pairs,
    cut,
    nearest_of,
    of_which,
    pairs,
)
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
        eligible &= _chosen(plan, fixes, features)
        eligible = neighbours(plan.neighbours, fixes, eligible)
    if plan.pairs is not None:
        return _with_others(plan, plan.pairs, fixes, eligible)
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
    for text in conditions_of_fixes(plan):
        members &= certain(fixes.is_true(text))
    return members


def conditions_of_fixes(plan: Plan) -> tuple[str, ...]:
    """What a plan asks of a fix alone; where a condition is about pairs all of it is asked of these.

    Of EXISTS, NOT EXISTS and LEFT JOIN that which is about fixes stands beside them, and the nearest are those of which
    it is true.
    """
    if plan.where is None:
        return ()
    if plan.chooses or _is_outer(plan):
        return cut(plan.where)[0]
    if not _asks_pairs(plan):
        return (plan.where,)
    return () if plan.neighbours is None else cut(plan.where)[0]


def _asks_pairs(plan: Plan) -> bool:
    """Whether the condition of a plan is about pairs."""
    is_joined = plan.pairs is not None or plan.join is not None
    return is_joined and asks_of_pairs(plan.where)


def _with_others(plan: Plan, join: PairJoin, fixes: Fixes, eligible: Members) -> Joined:
    """The pairs of eligible fixes with others; where others only choose, the fixes that have one, or none."""
    near = pairs(join, fixes, eligible)
    if _asks_pairs(plan):
        asked = plan.where or ""
        is_beside = join.chooses or join.is_outer
        both = " AND ".join(cut(asked)[1]) if is_beside else asked
        near = of_which(both, fixes, near)
    if join.nearest is not None:
        near = nearest_of(join.nearest, fixes, near)
    if join.is_outer:
        return _with_lonely(near, eligible)
    if not join.chooses:
        return near
    chosen = eligible & _some(near, len(fixes), anti=join.how == "anti")
    kept = np.flatnonzero(chosen.maybe)
    nobody = np.full(len(kept), None, np.object_)
    return Joined(row=kept, partner=nobody, sure=chosen.sure[kept])


def _some(near: Joined, count: int, *, anti: bool) -> Members:
    """Which of some fixes are in a pair at least, or in none."""
    some, surely = np.zeros((2, count), np.bool_)
    some[near.row] = True
    surely[near.row[near.sure]] = True
    return (
        Members(sure=~some, maybe=~surely) if anti else Members(sure=surely, maybe=some)
    )


def joined(plan: Plan, fixes: Fixes, eligible: Members, features: FeaturesOf) -> Joined:
    """The eligible fixes, each with every feature that it is joined with; each once where features only choose."""
    eligible &= _chosen(plan, fixes, features)
    kept = np.flatnonzero(eligible.maybe)
    if plan.join is None or plan.join.chooses:
        nobody = np.full(len(kept), None, np.object_)
        return Joined(row=kept, partner=nobody, sure=eligible.sure[kept])
    pairs = _with_features(plan, fixes.take(kept), features())
    row = kept[pairs.row]
    both = Joined(row=row, partner=pairs.partner, sure=pairs.sure & eligible.sure[row])
    return _with_lonely(both, eligible) if _is_outer(plan) else both


def _is_outer(plan: Plan) -> bool:
    joined = plan.joined_with
    return joined is not None and joined.is_outer


def _with_lonely(both: Joined, eligible: Members) -> Joined:
    """The pairs, and the eligible fixes that are in none, without a partner."""
    lonely = eligible & _some(both, len(eligible.maybe), anti=True)
    rows = np.flatnonzero(lonely.maybe)
    nobody = np.full(len(rows), None, np.object_)
    return Joined(
        row=np.concatenate([both.row, rows]),
        partner=np.concatenate([both.partner, nobody]),
        sure=np.concatenate([both.sure, lonely.sure[rows]]),
    )


def _chosen(plan: Plan, fixes: Fixes, features: FeaturesOf) -> Members:
    """The fixes that are joined with a feature at least (EXISTS), or with none (NOT EXISTS); else all."""
    if plan.chosen_by is None:
        return everyone(len(fixes))
    pairs = _with_features(plan, fixes, features())
    return _some(pairs, len(fixes), anti=plan.chosen_by.how == "anti")


def _with_features(plan: Plan, fixes: Fixes, known: Features) -> Joined:
    """Fixes with the features that the plan joins, by all that it asks of both."""
    pairs = with_features(plan, fixes, known)
    if not _asks_pairs(plan):
        return pairs
    asked = plan.where or ""
    if plan.chosen_by is not None or _is_outer(plan):
        asked = " AND ".join(cut(asked)[1])
    return of_which_features(asked, fixes, known, pairs)
