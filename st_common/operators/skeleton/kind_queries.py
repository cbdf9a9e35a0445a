"""The queries of one kind of the skeleton as columns, and the table that the kind judges (SPEC P8)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from st_common.geometry.space import Space
from st_common.operators.arrays.numbered import numbered
from st_common.operators.expressions.comparing import steps_of
from st_common.operators.skeleton.combined_forms import Forms, compile_forms
from st_common.operators.skeleton.rules import Rule, Rules, compile_rules
from st_common.operators.skeleton.world import Table
from st_common.operators.state.intern import Interner, Sought
from st_common.operators.state.registered import Registered
from st_common.query.neighbours import GroupNearest, Nearest, Place, places_of
from st_common.query.plan import Plan
from st_common.query.sides import alone, sides_of
from st_common.regions.moving_combined import MovingCombined
from st_common.regions.region import AroundObject, Extents, MovingRegion, Region

_TOTALS = {"sum": 0, "max": 1, "min": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class KindQueries:
    """Columns over the m queries of one kind.

    Attributes:
        numbers: int64[m], numbers of the queries.
        ids: the ids of focal objects, each once.
        focal: int64[m], the place of each query's focal object in `ids`, -1 without.
        place_row: int64[p], of groups and combined regions: the row of each place, ascending.
        place_focal: int64[p], the place of its focal object in `ids`, -1 for one that stands still.
        focal_row: int64, with `focal_at`: pairs of a row and an object that it goes with, places of groups included.
        eligible: int64[m], the number of each query's rule, 0 for that of all objects.
        rules: which objects are eligible.
        moving_rules: rules with a region that goes with an object, by kind, as if each were a query with the rule's
            number.
        columns: those of `Table` that never change.
        forms: what combined regions are made of; None of other kinds.
    """

    numbers: np.ndarray
    ids: Sought
    focal: np.ndarray
    place_row: np.ndarray
    place_focal: np.ndarray
    focal_row: np.ndarray
    focal_at: np.ndarray
    eligible: np.ndarray
    rules: Rules
    moving_rules: "dict[str, KindQueries]"
    columns: dict[str, np.ndarray]
    forms: Forms | None

    def find(self, objects: Interner) -> np.ndarray:
        """The object numbers of the focal objects, int64 as `ids`; -1 for those that never reported."""
        return objects.places_of(self.ids)

    def table(self, focal: np.ndarray) -> Table:
        """The table that the kind judges, for focal objects with the given numbers (int64, as `find` gives them)."""
        # The last one is found at -1: no focal object.
        numbers = np.append(focal, -1)
        return Table(
            focal=numbers[self.focal],
            eligible=self.eligible,
            place_row=self.place_row,
            place_focal=numbers[self.place_focal],
            forms=self.forms,
            **self.columns,
        )

    def moved(self, focal: np.ndarray, changed: np.ndarray) -> np.ndarray:
        """Which queries have a focal object among the changed ones; bool[m].

        Args:
            focal: int64, the numbers of the focal objects, as `find` gives them.
            changed: bool[objects].
        """
        moved = np.zeros(len(self.numbers), bool)
        if len(focal):
            is_moved = np.append(changed, False)[focal]  # -1: not known, not moved
            moved[self.focal_row[is_moved[self.focal_at]]] = True
        return moved


def kind_queries(
    queries: Sequence[Registered], numbers: list[int], *, space: Space
) -> KindQueries:
    """The columns of some queries of one kind.

    Args:
        queries: all queries of the stream.
        numbers: those that are meant, in the order of the rows.
        space: what coordinates mean, for regions that stand still.
    """
    plans = [queries[n].plan for n in numbers]
    # Each focal object once: many queries may go with one.
    at = numbered(focal for plan in plans for focal in plan.focals)
    goes_with = [
        (row, at[focal]) for row, plan in enumerate(plans) for focal in plan.focals
    ]
    places = [
        (row, place) for row, plan in enumerate(plans) for place in _several(plan)
    ]
    # 0 is the rule of all objects.
    asked = [_rule(queries[n]) for n in numbers]
    ruled = numbered([Rule(), *asked])
    rules = tuple(ruled)[1:]
    focals = [_focal(plan) for plan in plans]
    return KindQueries(
        numbers=np.array(numbers, np.int64),
        ids=Sought(pa.array(list(at), pa.string())),
        rules=compile_rules(rules, space=space),
        moving_rules=_moving(queries, rules, space=space),
        focal=_places_in(at, focals),
        place_row=np.array([row for row, _ in places], np.int64),
        place_focal=_places_in(at, [place.focal for _, place in places]),
        focal_row=np.array([row for row, _ in goes_with], np.int64),
        focal_at=np.array([focal for _, focal in goes_with], np.int64),
        eligible=np.array([ruled[rule] for rule in asked], np.int64),
        columns=_columns(plans, [place for _, place in places]),
        forms=_forms(plans, space=space),
    )


def _places_in(numbers: Mapping[str, int], names: Sequence[str | None]) -> np.ndarray:
    """The number of each name, -1 for none; int64[n]."""
    places = [-1 if name is None else numbers[name] for name in names]
    return np.array(places, np.int64)


def _moving(
    queries: Sequence[Registered], rules: Sequence[Rule], *, space: Space
) -> dict[str, KindQueries]:
    """The rules whose region goes with an object, by kind of region."""
    kinds: dict[str, list[int]] = {}
    for number, rule in enumerate(rules, 1):
        if isinstance(rule.region, MovingRegion):
            kinds.setdefault(rule.region.kind, []).append(number)
    if not kinds:
        return {}
    # The region of each rule as a query of its own, which has the number of the rule.
    bare = [
        replace(
            queries[0], plan=Plan(stream=queries[0].plan.stream, inside=rule.region)
        )
        for rule in rules
    ]
    by_number = (bare[0], *bare)  # of 0 nobody asks
    return {
        name: kind_queries(by_number, of, space=space) for name, of in kinds.items()
    }


def _columns(plans: list[Plan], places: list[Place]) -> dict[str, Any]:
    """The columns of `Table` that never change."""
    neighbours = [plan.neighbours for plan in plans]
    sizes = [_extents(plan) for plan in plans]
    single = [_single(plan) for plan in plans]
    counts = [n.k if isinstance(n, Nearest | GroupNearest) else 1 for n in neighbours]
    totals = [
        _TOTALS[n.total] if isinstance(n, GroupNearest) else 0 for n in neighbours
    ]
    return {
        "x": _standing(single, "x"),
        "y": _standing(single, "y"),
        "width": np.array([size.width for size in sizes], float),
        "height": np.array([size.height for size in sizes], float),
        "metres": np.array([size.metres for size in sizes], bool),
        "radius": np.array([size.radius_m for size in sizes], float),
        "k": np.array(counts, np.int64),
        "total": np.array(totals, np.int8),
        "form": np.arange(len(plans)),
        "place_x": _standing(places, "x"),
        "place_y": _standing(places, "y"),
    }


def _extents(plan: Plan) -> Extents:
    """How large the region around an object is; nothing where a plan has none."""
    return plan.inside.extents if isinstance(plan.inside, AroundObject) else Extents()


def _standing(places: list[Place], axis: str) -> np.ndarray:
    """A coordinate of places that stand still; NaN of others: without their focal object they are nowhere."""
    return np.array(
        [
            np.nan if place.focal is not None else getattr(place, axis)
            for place in places
        ],
        float,
    )


def _several(plan: Plan) -> tuple[Place, ...]:
    """The places that a plan goes by side by side: of a group, or of what a combined region is made of."""
    if isinstance(plan.neighbours, GroupNearest):
        return places_of(plan.neighbours)
    if plan.neighbours is None and isinstance(plan.inside, MovingCombined):
        return tuple(map(_place_of, plan.inside.leaves()))
    return ()


def _place_of(leaf: Region) -> Place:
    """Where a part of a combined region has its middle; one that stands still knows itself where it is."""
    return (
        Place(focal=leaf.focal) if isinstance(leaf, AroundObject) else Place(x=0, y=0)
    )


def _forms(plans: Sequence[Plan], *, space: Space) -> Forms | None:
    """What the combined regions of plans are made of, which all have one or none has."""
    regions = [
        plan.inside.of
        for plan in plans
        if plan.neighbours is None and isinstance(plan.inside, MovingCombined)
    ]
    return compile_forms(regions, space=space) if regions else None


def _single(plan: Plan) -> Place:
    """The one place that a plan goes by which has not several."""
    if plan.neighbours is not None:
        return places_of(plan.neighbours)[0]
    return Place(focal=plan.focals[0] if plan.focals else None)


def _focal(plan: Plan) -> str | None:
    return None if _several(plan) else _single(plan).focal


def _rule(query: Registered) -> Rule:
    """What else an object must satisfy: the kinds of moving regions know their own."""
    plan = query.plan
    is_chosen = plan.chosen_by is not None
    return Rule(
        where=alone(plan),
        region=plan.inside if plan.neighbours is not None else None,
        steps=steps_of(plan),
        join=plan.chosen_by,
        layer_version=query.layer_version if is_chosen else None,
        beside=sides_of(plan.where).beside if is_chosen else None,
    )
