"""What joins with a layer ask of a fix and a feature together: `speed_mps > "other.maxspeed in m/s"` (SPEC X12)."""

import numpy as np

from st_common.operators.arrays.keys import MASK, SHIFT, packed
from st_common.operators.expressions.feature_readings import FeatureReadings
from st_common.operators.expressions.predicates import Predicates
from st_common.operators.expressions.screens import Asked
from st_common.operators.expressions.truth import truth_of
from st_common.operators.matching.layer import Layer


def hold_beside(
    asked_of: Predicates,
    asked: Asked,
    layer: Layer,
    point: np.ndarray,
    query: np.ndarray,
    feature: np.ndarray,
) -> np.ndarray:
    """Whether pairs of a fix and a feature satisfy what their query asks of both; bool[p].

    Each different pair of a fix and a feature is looked at once, whatever number of queries ask about it.

    Args:
        asked_of: the conditions of queries.
        asked: the fixes.
        layer: the layer.
        point: int64[p], places of fixes.
        query: int64[p], numbers of queries.
        feature: int64[p], places of features.
    """
    keep = np.ones(len(query), bool)
    mine = np.flatnonzero(asked_of.of[query] >= 0)
    if not len(mine):
        return keep
    pairs, at = np.unique(packed(point[mine], feature[mine]), return_inverse=True)
    readings = FeatureReadings(
        one=asked.readings.take(pairs >> SHIFT),
        feature=pairs & MASK,
        of=layer,
        names=asked_of.names,
    )
    ids, space = asked.objects.ids, asked.space
    truth = truth_of(asked_of.conditions, readings, ids, space=space)
    keep[mine] = truth.pairs(asked_of.of[query[mine]], at)
    return keep
