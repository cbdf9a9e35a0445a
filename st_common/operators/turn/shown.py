"""The columns that queries select, beside rows of changes."""

import numpy as np
import pyarrow as pa

from st_common.operators.expressions.fields import fields_of
from st_common.operators.expressions.readings import Readings
from st_common.operators.turn.turn import Turn


def shown_fields(
    turn: Turn,
    *,
    query: np.ndarray,
    reading: np.ndarray,
    readings: Readings,
    wanted: np.ndarray | None = None,
    other: np.ndarray | None = None,
) -> pa.Array | None:
    """The selected columns of rows of changes, as JSON texts.

    Args:
        turn: the run.
        query: int64[n], the number of each row's query.
        reading: int64[n], the place among `readings` of what the row shows.
        readings: fixes as expressions see them.
        wanted: bool[n], which rows show columns; None: those of queries that select any.
        other: int64[n], the place of the reading of the other object of a pair; None: nothing shows one.

    Returns:
        string[n], null where no columns are shown; None where no row shows any, and nothing was evaluated.
    """
    shows = turn.known.selecting[query] if wanted is None else wanted
    if not shows.any():
        return None
    return fields_of(
        turn.queries,
        turn.objects,
        query=query,
        reading=reading,
        wanted=shows,
        readings=readings,
        space=turn.settings.space,
        other=other,
    )
