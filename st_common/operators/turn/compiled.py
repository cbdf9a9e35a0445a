"""The queries of a shard as a run sees them: compiled, by how they are judged (SPEC P8)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np

from st_common.operators.matching.placing import Placed
from st_common.operators.matching.query_set import QuerySet
from st_common.operators.skeleton.kind_queries import KindQueries
from st_common.operators.turn.flags import Flags

Specs = TypeVar("Specs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled(Flags):
    """The live queries of a shard, by how they are judged; arrays of numbers of queries, and a flag for each query.

    Attributes:
        fixwise: queries that are judged fix by fix, by the shard that owns the object. All others are judged at ticks,
            by the shard that owns the query (docs/adr/0008).
        still: at ticks, with a region that stands still.
        windows: at ticks, with a `WINDOW`: they hold fixes.
        kinds: at ticks, by kind of the skeleton: regions that move, neighbours.
        following: those of pairs and joins that go with an object.
        specs: what the other operators compiled for themselves, by its type; ask by `of`. What a frame asks of last
            fixes is among the query sets above.
        early: int64, own queries at ticks that were registered before the stream had a time.
        has_ticks: whether any query is judged at ticks.
        mine: bool[queries], whether each query of the stream is this shard's.
        holds_by_object: bool[queries], whether each group of a query's frame is one object.
        order: which operators stand below the spatial ones (SPEC G10).
    """

    fixwise: QuerySet
    still: QuerySet
    windows: QuerySet
    kinds: Mapping[str, KindQueries]
    following: KindQueries
    specs: Mapping[type, Any]
    early: np.ndarray
    has_ticks: bool
    mine: np.ndarray
    holds_by_object: np.ndarray
    order: Placed

    def of(self, kind: type[Specs]) -> Specs:
        """What the operator with this type of specs compiled, such as `known.of(FenceSet)`.

        Raises:
            KeyError: no operator compiles such specs.
        """
        return cast("Specs", self.specs[kind])
