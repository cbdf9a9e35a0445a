"""Groups by tags of features: the values of keys by the partners of rows, of each different feature once (SPEC X12).

row         its feature     GROUP BY r.name
a, lane     name: null      NULL
a, town     name: High St   High St
b, town     name: High St   High St
"""

import numpy as np
import pyarrow as pa

from st_common.operators.expressions import evaluation as expressions
from st_common.operators.turn.tagged import Tagged, tagged, versions_of
from st_common.operators.turn.turn import Turn
from st_common.query.pair_columns import pair_names


def groups_by_tags(turn: Turn, text: str, target: np.ndarray) -> np.ndarray:
    """The groups that a key makes, as numbers of partners; int64[p]. The group of null is named NULL.

    Args:
        turn: the run.
        text: the key, over columns of features.
        target: int64[p], whose partners are features.
    """
    beside = _beside(turn, text, target)
    (names,) = expressions.groups([text], beside.table)
    numbers = turn.numbering.partners_of(names.fill_null("NULL"))
    named: np.ndarray = numbers[beside.row]
    return named


def texts_of_tags(
    turn: Turn, text: str, target: np.ndarray
) -> tuple[np.ndarray, pa.Array]:
    """The values of a key as texts: int64[p], places among the texts that come with it, -1 for null.

    Args:
        turn: the run.
        text: the key, over columns of features.
        target: int64[p], whose partners are features.
    """
    beside = _beside(turn, text, target)
    (texts,) = expressions.values_as_text([text], beside.table)
    encoded = texts.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return codes.astype(np.int64)[beside.row], encoded.dictionary


def _beside(turn: Turn, text: str, target: np.ndarray) -> Tagged:
    query = turn.numbering.targets.query[target]
    version = versions_of(turn.queries, query)
    return tagged(turn, pair_names(text), query=query, target=target, version=version)
