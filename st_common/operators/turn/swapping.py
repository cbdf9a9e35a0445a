"""Which queries start, stop or see another version of a layer at a row of the log (SPEC X4)."""

from dataclasses import dataclass

import numpy as np

from st_common.operators.state.registered import Queries


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """Queries that stop (`-` with a cause) and queries that are judged anew from all last fixes.

    `before` are the queries whose answer is taken from the state, `after` are looked up in `queries`. What is in both
    answers under one name stays without a change where `keeps` says so (a layer that was loaded anew).
    """

    queries: Queries
    layers: dict[str, int]
    before: np.ndarray
    after: np.ndarray
    position: np.ndarray
    minus: str
    plus: str
    keeps: bool
