"""The places of queries that go by several at once, in columns: those of groups, and of regions joined with others."""

import numpy as np

from st_common.operators.skeleton.world import Floats, Ints, Table, World, centres
from st_common.runs import ranges


def side_by_side(
    world: World, table: Table, which: Ints
) -> tuple[Floats, Floats, Ints]:
    """The places of each query in columns, and their focal objects; NaN and -1 where there is none.

    Args:
        world: the last fixes of all objects.
        table: the queries.
        which: int64[w], rows of the table.

    Returns:
        x and y, float64[w, places], NaN in the whole row of a query of which a focal object is not alive; and the focal
        objects, int64 alike.
    """
    place_x, place_y = centres(world, table.place_focal, table.place_x, table.place_y)
    start = np.searchsorted(table.place_row, which)
    counts = np.searchsorted(table.place_row, which, side="right") - start
    filled = np.arange(max(counts.max(initial=0), 1)) < counts[:, None]
    at = ranges(start, counts)
    x, y, focal = (
        np.full(filled.shape, np.nan),
        np.full(filled.shape, np.nan),
        np.full(filled.shape, -1),
    )
    x[filled], y[filled], focal[filled] = (
        place_x[at],
        place_y[at],
        table.place_focal[at],
    )
    # One focal object that is not alive leaves its whole query without members.
    x[(filled & np.isnan(x)).any(axis=1)] = np.nan
    return x, y, focal
