"""What became of the queries of a shard, without the plans of those that stayed: for deltas."""

import json
import operator
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from st_common.operators.state.registered import (
    Queries,
    Registered,
    queries_from_arrays,
    queries_to_arrays,
)
from st_common.query.plain import plan_text
from st_common.query.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedQueries:
    """What became of earlier queries, and those that are new; k of the earlier ones changed.

    Attributes:
        numbers: int64[k], ascending, numbers of the earlier queries that changed.
        live: int8[k], 1 where it is live now.
        layer: int64[k], the version of the layer that it joins, -1 without.
        plan: string[k], the plan as text of those that have another one now, null for the others.
        added: queries that are numbered on behind the earlier ones.
    """

    numbers: np.ndarray
    live: np.ndarray
    layer: np.ndarray
    plan: pa.Array
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
        """The queries now, given those `before`: the changed ones replaced, the new ones behind."""
        changed: dict[int, Registered] = {}
        columns = (self.numbers, self.live, self.layer)
        numbers, lives, layers = (column.tolist() for column in columns)
        for number, live, layer, plan in zip(
            numbers, lives, layers, self.plan.to_pylist(), strict=True
        ):
            was = before[number]
            changed[number] = replace(
                was,
                live=bool(live),
                layer_version=None if layer < 0 else layer,
                plan=was.plan if plan is None else Plan.from_json(json.loads(plan)),
            )
        return before.with_changed(changed).with_more(self.added)


_OWN = ("numbers", "live", "layer", "plan")


def changed_queries(before: Queries, after: Queries) -> ChangedQueries | None:
    """What leads from the queries before to those after, for a delta.

    A query that stayed is the same object in both: nothing is compared but what was made anew.

    Args:
        before: the queries as they were.
        after: the same ones in their order, some of them changed, and more behind.

    Returns:
        The changes; None when `after` is not that: a query is gone, or has another name, version or place in time. Then
        only the whole state says what it is.
    """
    if len(after) < len(before):
        return None
    earlier = after[: len(before)]
    is_new = np.fromiter(map(operator.is_not, before, earlier), bool, len(before))
    numbers = np.flatnonzero(is_new)
    changed = [earlier[number] for number in numbers.tolist()]
    plans: list[str | None] = []
    for was, now in zip(
        (before[number] for number in numbers.tolist()), changed, strict=True
    ):
        # The number stands for another query: some before it were forgotten (see `retire`).
        if (was.name, was.version, was.since) != (now.name, now.version, now.since):
            return None
        plans.append(None if now.plan == was.plan else plan_text(now.plan))
    versions = [
        -1 if one.layer_version is None else one.layer_version for one in changed
    ]
    return ChangedQueries(
        numbers=numbers,
        live=np.array([one.live for one in changed], np.int8),
        layer=np.array(versions, np.int64),
        plan=pa.array(plans, pa.string()),
        added=Queries(after[len(before) :]),
    )
