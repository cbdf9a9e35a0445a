"""The columns that queries select, beside rows of changes."""

import numpy as np
import pyarrow as pa

from st_common.operators.expressions.fields import fields_of
from st_common.operators.expressions.readings import Readings
from st_common.operators.turn.nearness import Nearness
from st_common.operators.turn.tagged import (
    distances_of,
    nearest_of,
    tagged,
    versions_of,
)
from st_common.operators.turn.turn import Turn
from st_common.query.pair_columns import (
    BORDER,
    DISTANCE,
    NEAREST,
    OF_FEATURES,
    pair_names,
)


def shown_fields(
    turn: Turn,
    *,
    query: np.ndarray,
    reading: np.ndarray,
    readings: Readings,
    wanted: np.ndarray | None = None,
    other: np.ndarray | None = None,
    target: np.ndarray | None = None,
    version: np.ndarray | None = None,
    near: Nearness | None = None,
) -> pa.Array | None:
    """The selected columns of rows of changes, as JSON texts.

    Args:
        turn: the run.
        query: int64[n], the number of each row's query.
        reading: int64[n], the place among `readings` of what the row shows.
        readings: fixes as expressions see them.
        wanted: bool[n], which rows show columns; None: those of queries that select any.
        other: int64[n], the place of the reading of the other object of a pair; None: nothing shows one.
        target: int64[n]; its partner is the feature of a pair; None: nothing shows tags.
        version: int64[n], the versions of the layers of features; None: those that the queries have now.
        near: which of the nearest each row is; None: none of them is any more.

    Returns:
        string[n], null where no columns are shown; None where no row shows any, and nothing was evaluated.
    """
    shows = turn.known.selecting[query] if wanted is None else wanted
    if not shows.any():
        return None
    beside = {}
    if target is not None:
        beside = _beside(turn, query, target, version, readings, reading)
    places = {}
    if turn.known.showing_near[query].any():
        places = (near or Nearness.nothing(len(query))).columns()
    return fields_of(
        turn.queries,
        turn.objects,
        query=query,
        reading=reading,
        wanted=shows,
        readings=readings,
        space=turn.settings.space,
        beside={**beside, **places},
        other=other,
    )


def _beside(
    turn: Turn,
    query: np.ndarray,
    target: np.ndarray,
    version: np.ndarray | None,
    readings: Readings,
    reading: np.ndarray,
) -> dict[str, pa.Array]:
    """The tags and distances that rows show, by name; null for rows without a feature."""
    mine = np.flatnonzero(turn.known.showing_tags[query])
    if not len(mine):
        return {}
    plans = [turn.queries[number].plan for number in np.unique(query[mine])]
    names = {
        name for plan in plans for _, text in plan.columns for name in pair_names(text)
    }
    versions = versions_of(turn.queries, query) if version is None else version
    measures = {*OF_FEATURES.values()}
    tags = tagged(
        turn, sorted(names - measures), query=query, target=target, version=versions
    ).columns()
    if not names & measures:
        return tags
    rows = _shows_any(turn, query, names & measures)
    seen = readings.placed().take(reading[rows])
    pairs = {"query": query[rows], "target": target[rows], "version": versions[rows]}
    measured = dict[str, np.ndarray]()
    for name in names & {DISTANCE, BORDER}:
        far = distances_of(turn, seen.x, seen.y, **pairs, to_border=name == BORDER)
        measured[name] = far
    if names & {*NEAREST}:
        places = nearest_of(turn, seen.x, seen.y, **pairs)
        measured |= dict(zip(NEAREST, places, strict=True))
    return {**tags, **_spread(measured, rows, len(query))}


def _spread(
    columns: dict[str, np.ndarray], rows: np.ndarray, count: int
) -> dict[str, pa.Array]:
    """Columns of some rows (float64) as columns of all, null elsewhere."""
    spread = dict[str, pa.Array]()
    for name, values in columns.items():
        whole = np.full(count, np.nan)
        whole[rows] = values
        spread[name] = pa.array(whole, from_pandas=True)
    return spread


def _shows_any(turn: Turn, query: np.ndarray, names: set[str]) -> np.ndarray:
    """The rows whose queries select one of some columns; int64, ascending."""
    numbers, at = np.unique(query, return_inverse=True)
    columns = [
        turn.queries[number].plan.columns if turn.known.showing_tags[number] else ()
        for number in numbers
    ]
    shows = [any(names & {*pair_names(text)} for _, text in one) for one in columns]
    return np.flatnonzero(np.array(shows, bool)[at])
