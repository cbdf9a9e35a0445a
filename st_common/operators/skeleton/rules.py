"""What makes objects eligible for queries of a kind: their different rules, compiled (SPEC P8, X13)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from st_common.geometry.space import Space
from st_common.operators.arrays.numbered import numbered
from st_common.operators.expressions.comparing import NO_STEPS, Steps
from st_common.operators.expressions.conditions import Conditions, compile_conditions
from st_common.operators.matching.extents import Compiled, compiled_index
from st_common.operators.matching.query_set import QuerySet, compile_queries
from st_common.operators.state.registered import Registered
from st_common.query.plan import LayerJoin, Plan
from st_common.regions.region import MovingRegion, Region
from st_common.regions.registry import by_kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What makes an object eligible.

    Attributes:
        where: a predicate over its last fix, as canonical SQL.
        region: in which it must lie.
        steps: what is asked of its box (`USING`).
        join: the features of a layer by which it is chosen (`EXISTS`), in `layer_version`.
        beside: what it and such a feature are asked together, in the names of `pair_columns`.
    """

    where: str | None = None
    region: Region | None = None
    steps: Steps = NO_STEPS
    join: LayerJoin | None = None
    layer_version: int | None = None
    beside: str | None = None

    @property
    def moves(self) -> bool:
        """Whether its region goes with an object."""
        return isinstance(self.region, MovingRegion)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Different rules, which are counted from 1; 0 is that of all objects.

    Attributes:
        all: the rules from 1 on.
        conditions: the different predicates.
        condition: int64[1 + rules], the place of each rule's predicate in `conditions`, -1 without.
        stands: bool[1 + rules], whether it has a region that stands still.
        moves: bool[1 + rules], whether it has one that goes with an object.
        still: indexes of regions that stand still, each with the rules that its regions are of.
        stepped: int64, the rules that ask something of an object's box.
        joining: the rules that choose objects by the features of a layer, each as a query that has its number.
    """

    all: tuple[Rule, ...]
    conditions: Conditions
    condition: np.ndarray
    stands: np.ndarray
    moves: np.ndarray
    still: tuple[tuple[np.ndarray, Compiled], ...]
    stepped: np.ndarray
    joining: QuerySet


def compile_rules(rules: Sequence[Rule], *, space: Space) -> Rules:
    """Different rules as columns and indexes.

    Args:
        rules: each once; none of them is that of all objects.
        space: what coordinates mean.
    """
    texts = numbered(rule.where for rule in rules if rule.where)
    conditions = [-1, *(texts.get(rule.where or "", -1) for rule in rules)]
    # By number: 0 is the rule of all objects.
    moves = np.array([False, *(rule.moves for rule in rules)], bool)
    has_region = np.array([False, *(rule.region is not None for rule in rules)], bool)
    stands = has_region & ~moves
    stepped = [n for n, rule in enumerate(rules, 1) if rule.steps != NO_STEPS]
    return Rules(
        all=tuple(rules),
        conditions=compile_conditions(tuple(texts)),
        stands=stands,
        moves=moves,
        condition=np.array(conditions, np.int64),
        still=_indexes(rules, np.flatnonzero(stands), space=space),
        stepped=np.array(stepped, np.int64),
        joining=_joining(rules, space=space),
    )


def _joining(rules: Sequence[Rule], *, space: Space) -> QuerySet:
    """The rules with a layer as queries that ask for its features and for nothing else; no rule has the number 0."""
    queries = [
        Registered(
            name="",
            version=0,
            plan=Plan(stream="", join=rule.join, where=rule.beside),
            layer_version=rule.layer_version,
        )
        for rule in (Rule(), *rules)
    ]
    joining = [n for n, query in enumerate(queries) if query.plan.join is not None]
    return compile_queries(queries, joining, space=space)


def _indexes(
    rules: Sequence[Rule], numbers: np.ndarray, *, space: Space
) -> tuple[tuple[np.ndarray, Compiled], ...]:
    """The numbers of rules whose regions are of one kind, and the index of these regions; a pair for each kind."""
    regions = [rules[number - 1].region for number in numbers.tolist()]
    return tuple(
        (numbers[places], compiled_index([regions[at] for at in places], space=space))
        for places in by_kind(regions).values()
    )
