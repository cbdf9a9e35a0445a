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

    `fixwise` are judged fix by fix, by the shard that owns the object. The others are judged at ticks by the shard
    that owns the query: `still` have a region that stands still, `windows` hold fixes, `kinds` go through the
    skeleton; `following` are those of pairs and joins that go with an object. What a frame asks of last fixes is among
    these. `specs` are what the other operators compiled for themselves, by its type (see `of`). `early` are the
    queries at ticks that were there before any; `has_ticks` says whether any is judged at ticks. `mine` says of each
    query of the stream whether it is this shard's, `holds_by_object` whether each group of its frame is one object.
    `order` says which operators stand below the spatial ones.
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
        """What the operator with this type of specs compiled.

        Raises:
            KeyError: no operator compiles such specs.
        """
        return cast("Specs", self.specs[kind])
