"""What became of the queries of a shard, without the plans of those that stayed: for deltas."""

import operator
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from st_common.operators.state.registered import (
    Queries,
    queries_from_arrays,
    queries_to_arrays,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedQueries:
    """Earlier queries by their `numbers`, with whether each is `live` now and the version of its `layer` (-1: none).

    `added` are numbered on behind the earlier ones.
    """

    numbers: np.ndarray
    live: np.ndarray
    layer: np.ndarray
    added: Queries

    def to_arrays(self) -> dict[str, Any]:
        """As arrays for a blob."""
        own = {f"changed_{name}": getattr(self, name) for name in _OWN}
        return own | queries_to_arrays(self.added)

    @staticmethod
    def from_arrays(arrays: Mapping[str, Any]) -> "ChangedQueries":
        """What `to_arrays` gave."""
        own = {name: arrays[f"changed_{name}"] for name in _OWN}
        return ChangedQueries(**own, added=queries_from_arrays(arrays))

    def after(self, before: Queries) -> Queries:
        """The queries now, of those before."""
        queries = list(before)
        for number, live, layer in zip(
            self.numbers.tolist(), self.live.tolist(), self.layer.tolist(), strict=True
        ):
            queries[number] = replace(
                before[number],
                live=bool(live),
                layer_version=None if layer < 0 else layer,
            )
        return (*queries, *self.added)


_OWN = ("numbers", "live", "layer")


def changed_queries(before: Queries, after: Queries) -> ChangedQueries | None:
    """What leads from the queries before to those after; None when they are not the same ones and more.

    A query that stayed is the same object in both: nothing is compared but what was made anew.
    """
    if len(after) < len(before):
        return None
    earlier = after[: len(before)]
    is_new = np.fromiter(map(operator.is_not, before, earlier), bool, len(before))
    numbers = np.flatnonzero(is_new)
    changed = [earlier[number] for number in numbers.tolist()]
    for was, now in zip(
        (before[number] for number in numbers.tolist()), changed, strict=True
    ):
        if replace(was, live=now.live, layer_version=now.layer_version) != now:
            return None
    versions = [
        -1 if one.layer_version is None else one.layer_version for one in changed
    ]
    return ChangedQueries(
        numbers=numbers,
        live=np.array([one.live for one in changed], np.int8),
        layer=np.array(versions, np.int64),
        added=after[len(before) :],
    )
