"""Which queries ask where others are: while there are some, every shard must follow all objects (docs/adr/0083)."""

from collections.abc import Sequence

import numpy as np

from st_common.controls.reading import chosen
from st_common.controls.rows import ControlRow, Registration
from st_common.operators.state.registered import Queries
from st_common.operators.turn.flags import flags_of
from st_common.query.control import plan_of


def asks_for_others(rows: Sequence[ControlRow]) -> bool:
    """Whether control rows register a query that asks where other objects are."""
    return any(plan_of(row, 0).by_ticks for _, row in chosen(rows, Registration))


def needs_others(queries: Queries) -> bool:
    """Whether a live query asks where other objects are."""
    numbers = np.flatnonzero(flags_of(queries).ticking)
    return any(queries[number].live for number in numbers)
