"""Readings as points for matching: where predicates are true, and the keys of joins."""

from functools import lru_cache

import numpy as np
import pyarrow as pa

from st_common.geometry.space import Space
from st_common.operators.expressions import evaluation as expressions
from st_common.operators.expressions.general import Dense, Source
from st_common.operators.expressions.readings import Readings
from st_common.operators.expressions.screens import Asked
from st_common.operators.expressions.truth import Truth
from st_common.operators.matching.match import Hits, match
from st_common.operators.matching.meeting import Points
from st_common.operators.matching.query_set import QuerySet
from st_common.operators.state.intern import Interner
from st_common.operators.turn.course import Course
from st_common.operators.turn.present import Present
from st_common.operators.turn.turn import Turn


def points_of(
    queries: QuerySet, readings: Readings, objects: Interner, *, space: Space
) -> Points:
    """Readings as points for a set of queries; expressions are evaluated once for all of them, and only when asked for.

    Args:
        queries: the queries that will be matched.
        readings: n fixes.
        objects: the ids of objects, which expressions can name.
        space: by which distances and directions are measured.

    Returns:
        n points, in the order of the readings.
    """
    asked = Asked(readings=readings, objects=objects, space=space)
    # Made once, and only when an expression is asked for.
    table = lru_cache(lambda: readings.table(objects.ids, space=space))
    keys = []
    if queries.keys:
        named = readings.table(objects.ids, space=space, texts=queries.keys)
        keys = expressions.values_as_text(queries.keys, named)
    return Points(
        x=readings.x,
        y=readings.y,
        keys=dict(zip(queries.keys, keys, strict=True)),
        asked=asked,
        truth=_truth(
            queries, asked, lambda texts: expressions.masks(texts, table()), {}
        ),
    )


def points_in(turn: Turn, queries: QuerySet, readings: Readings) -> Points:
    """The readings as points for a set of queries of a run; see `points_of`."""
    return points_of(queries, readings, turn.objects, space=turn.settings.space)


def look_up(turn: Turn, queries: QuerySet, readings: Readings) -> Hits:
    """What each of the readings satisfies of a set of queries: pairs of its place among them and a target."""
    return match_in(turn, queries, points_in(turn, queries, readings))


def match_in(turn: Turn, queries: QuerySet, points: Points) -> Hits:
    """What each of the points satisfies of a set of queries of a run; partners and targets that are new get numbers."""
    return match(queries, points, layer_of=turn.layer_of, numbering=turn.numbering)


def points_at(
    queries: QuerySet,
    fixes: Present | Course,
    of: np.ndarray,
    objects: Interner,
    *,
    space: Space,
) -> Points:
    """The last fixes of objects at a tick as points for a set of queries.

    Args:
        queries: the queries that will be matched.
        fixes: the last fixes, at one tick or over several.
        of: int64[n], the objects (places of versions, over several ticks).
        objects: the ids of objects.
        space: by which distances and directions are measured.

    Returns:
        n points. What expressions said of a fix at an earlier tick is not asked again.
    """
    asked = Asked(readings=fixes.readings(of), objects=objects, space=space)
    among = len(queries.conditions.texts)
    return Points(
        x=asked.readings.x,
        y=asked.readings.y,
        asked=asked,
        truth=_truth(
            queries,
            asked,
            lambda texts: fixes.masks(texts, of, among=among),
            fixes.values.spent_us(among),
        ),
        keys={
            text: _texts(*fixes.values.texts(text, fixes.place[of]))
            for text in queries.keys
        },
    )


def _truth(
    queries: QuerySet, asked: Asked, dense: Dense, spent_us: dict[str, float]
) -> Truth | None:
    if not queries.conditions.texts:
        return None
    readings = asked.readings
    return Truth(
        queries.conditions,
        readings,
        Source(
            readings=readings.take,
            ids=asked.objects.ids,
            space=asked.space,
            size=len(readings),
            dense=dense,
            spent_us=spent_us,
        ),
    )


def _texts(codes: np.ndarray, names: pa.Array) -> pa.Array:
    return names.take(pa.array(codes, mask=codes < 0))
