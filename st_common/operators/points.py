"""Readings as points for matching: where predicates are true, and the keys of joins."""

import numpy as np
import pyarrow as pa

from st_common.operators import expressions
from st_common.operators.course import Course
from st_common.operators.intern import Interner
from st_common.operators.match import Points, QuerySet
from st_common.operators.present import Present
from st_common.operators.readings import Readings
from st_common.operators.screens import Asked


def points_of(queries: QuerySet, readings: Readings, objects: Interner, *, geographic: bool) -> Points:
    """The readings as points for a set of queries; expressions are evaluated once for all of them."""
    asked = Asked(readings=readings, objects=objects, geographic=geographic)
    if not queries.predicates and not queries.keys:
        return Points(x=readings.x, y=readings.y, masks=np.empty((0, len(readings)), bool), keys={}, asked=asked)
    table = readings.table(objects.ids, geographic=geographic)
    return Points(
        x=readings.x, y=readings.y, masks=expressions.masks(queries.predicates, table),
        keys=dict(zip(queries.keys, expressions.values_as_text(queries.keys, table), strict=True)),
        asked=asked,
    )  # fmt: skip


def points_at(
    queries: QuerySet, fixes: Present | Course, of: np.ndarray, objects: Interner, *, geographic: bool
) -> Points:
    """The last fixes of some objects (`of`) at a tick as points for a set of queries."""
    readings = fixes.readings(of)
    return Points(
        x=readings.x, y=readings.y, masks=fixes.masks(queries.predicates, of),
        keys={text: _texts(*fixes.values.texts(text, fixes.place[of])) for text in queries.keys},
        asked=Asked(readings=readings, objects=objects, geographic=geographic),
    )  # fmt: skip


def _texts(codes: np.ndarray, names: pa.Array) -> pa.Array:
    return names.take(pa.array(codes, mask=codes < 0))
