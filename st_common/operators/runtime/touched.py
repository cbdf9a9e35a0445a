"""Whom another version of a layer may concern: the few near to what changed, or with its key (SPEC X4).

    features that changed     as they were   as they are       all objects, by their last fixes
                                  [a]            [a']     <-   who meets a or a' by a join of a query is judged anew;
                                                               all others met the same, and do so now

| queries that join the layer | judged anew where a few features changed |
|---|---|
| by place or key; LEFT JOIN, EXISTS, NOT EXISTS, boxes          | who meets one of these features, before or now |
| fences, incidents (`DETECT`, `FOR`)                            | these, and who is about to enter or leave |
| at ticks, with a region that stands still: counts, frames      | these, and who reported since the last tick |
| with a region that goes with an object, with neighbours        | everybody |
| windows (`WINDOW`)                                             | nobody, as ever: they tell of the past |
| by the nearest, or a predicate that is none of `BOUNDED`       | everybody, by all queries that join the layer |
"""

from collections.abc import Iterator
from itertools import product

import numpy as np

from st_common.errors import LayerError
from st_common.geometry.enlarged import Growth
from st_common.operators.expressions import readings
from st_common.operators.fence.specs import FenceSet
from st_common.operators.incident.specs import IncidentSet
from st_common.operators.matching.layer import Layer
from st_common.operators.matching.query_set import JoinGroup, QuerySet
from st_common.operators.state.fixes import ALIVE
from st_common.operators.state.state import State
from st_common.operators.turn.points import points_in
from st_common.operators.turn.swapping import Swap
from st_common.operators.turn.turn import Turn

BOUNDED = frozenset({"intersects", "within", "dwithin", "equals"})
"""Predicates of joins by which a feature matters to those who meet it, and to nobody else."""


def touched(state: State, turn: Turn, change: Swap) -> np.ndarray | None:
    """Who may have another answer by what changed in a layer; bool[objects], None: anybody.

    Args:
        state: the state before the swap.
        turn: a run without events, with the queries that are swapped.
        change: which queries.
    """
    joins = [group for _, groups in _joins(turn) for group in groups]
    if change.layer is None or not all(map(_is_bounded, joins)):
        return None
    try:
        changed = _changed(state, turn, change, change.layer)
        return None if changed is None else _met(state, turn, changed)
    except LayerError:
        # What it was cannot be read any more; what it is says for itself whether it can.
        return None


def _is_bounded(group: JoinGroup) -> bool:
    """Whether a feature matters to whom it meets alone; who has the nearest ones is a matter of all."""
    join = group.join
    return join.predicate in BOUNDED and getattr(join, "nearest", None) is None


def _met(state: State, turn: Turn, changed: list[Layer]) -> np.ndarray:
    """Who may meet one of the features that changed, by the place or by the key that joins ask for; bool[objects]."""
    is_met = np.zeros(len(turn.objects), bool)
    if not changed:
        return is_met
    alive = np.flatnonzero(state.fixes.status == ALIVE)
    last = readings.of_objects(state.fixes, alive)
    places = _places([group for _, groups in _joins(turn) for group in groups])
    for layer, (growth, distance_m) in product(changed, places):
        met, _ = layer.match(last.x, last.y, distance_m=distance_m, growth=growth)
        is_met[alive[met]] = True
    for queries, groups in _joins(turn):
        joins = [group.join for group in groups if group.join.predicate == "equals"]
        keys = points_in(turn, queries, last).keys if joins else {}
        asked = {(join.left or "", join.right or "fid") for join in joins}
        for layer, (left, right) in product(changed, asked):
            met, _ = layer.keyed(keys[left], right)
            is_met[alive[met]] = True
    return is_met


def _places(groups: list[JoinGroup]) -> list[tuple[Growth, float | None]]:
    """How far joins by place look: what boxes are made of points, and the greatest distance of each, None for none.

    Whoever meets a feature within a smaller distance, of one kind, or with a key too, is among those.
    """
    farthest: dict[tuple[Growth, bool], float] = {}
    for group in groups:
        join = group.join
        key = group.growth, join.predicate == "dwithin"
        if join.predicate != "equals":
            farthest[key] = max(farthest.get(key, 0.0), join.distance_m)
    return [
        (growth, metres if is_far else None)
        for (growth, is_far), metres in farthest.items()
    ]


def _changed(state: State, turn: Turn, change: Swap, name: str) -> list[Layer] | None:
    """What differs between the versions of a layer that the queries saw and see; None where that is not known."""
    layer = turn.layer_of(name, change.layers[name])
    changed: list[Layer] = []
    for version in {state.queries[n].layer_version for n in change.after.tolist()}:
        parts = None if version is None else layer.changed_since(version)
        if parts is None:
            return None
        changed += [part for part in parts if len(part.fids)]
    return changed


def _joins(turn: Turn) -> Iterator[tuple[QuerySet, list[JoinGroup]]]:
    """The sets of queries that are judged at their row, each with its joins."""
    known = turn.known
    fences, incidents = known.of(FenceSet), known.of(IncidentSet)
    sets = known.fixwise, known.still, fences.regions, fences.wider, incidents.openings
    for queries in sets:
        yield queries, [group for unit in queries.units for group in unit.joins]
