"""Which operator judges a query, and which others it judges together with it (SPEC P8)."""

from collections.abc import Sequence

import numpy as np

from st_common.operators.runtime.compiling import deal_out
from st_common.operators.state.registered import Queries, Registered
from st_common.operators.turn.flags import flags_of
from st_common.query.plan import Plan

_OF_LISTS = {
    "frames": "windows in brackets",
    "windows": "WINDOW",
    "fences": "fences",
    "incidents": "incidents",
    "paired": "pairs of objects",
    "joining": "a layer at regions that go with objects",
    "still": "regions that stand still, at ticks",
    "fixwise": "regions and layers that stand still, fix by fix",
}
"""In words the operators of `compiling`, by the field of those dealt to them; the first that has a query is told."""

_OF_KINDS = {
    "moving_box": "boxes that go with objects",
    "moving_circle": "circles that go with objects",
    "moving_combined": "AND, OR, NOT of regions that go with objects",
    "nearest": "k nearest",
    "nearest_extent": "k nearest elements with an extent",
    "group": "k nearest to groups",
    "reverse": "reverse nearest",
}


def operator_of(plan: Plan, others: Sequence[Plan]) -> tuple[str, int]:
    """The operator that judges a plan, and how many plans it judges together.

    Args:
        plan: the plan.
        others: all other live plans of its stream.

    Returns:
        The operator in words, and how many plans it has, `plan` among them.
    """
    queries = Queries(
        Registered(name=str(number), version=1, plan=one)
        for number, one in enumerate([plan, *others])
    )
    mine = np.ones(len(queries), bool)
    of = deal_out(queries, list(range(len(queries))), mine, flags_of(queries))
    for name, words in _OF_LISTS.items():
        if 0 in getattr(of, name):
            return words, len(getattr(of, name))
    ((kind, numbers),) = (each for each in of.kinds.items() if 0 in each[1])
    return _OF_KINDS[kind], len(numbers)
