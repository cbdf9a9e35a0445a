"""Whether changes say where their objects were: each place against the fixes in the table `positions`."""

from collections import Counter

import numpy as np
import pandas as pd

from st_common.serving.verify_events import FIX

_PLACE = ["x", "y"]


def misplaced(changes: pd.DataFrame, events: pd.DataFrame) -> dict[str, int]:
    """How many changes of each query name another place than the object's last fix that counted, up to `fix_ts`.

        fixes of a (time: x)   10: 1   20: 5   30: 9
        a change of fix_ts 20 says 5   ->   right;   one of fix_ts 25 says 9   ->   wrong, it is 5

    Where `fix_ts` is null, no fix of its own caused the change: the last one that had taken effect by then is meant.
    Changes without a place are groups, or were told before places were stored; they are passed over.

    Args:
        changes: rows of the table `changes`.
        events: what `events_of` gives.

    Returns:
        By query; those that have none are left out.
    """
    told = changes[changes["x"].notna()]
    fixes = events[events["kind"] == FIX]
    has_fix = told["fix_ts"].notna()
    fix_us = told["fix_ts"][has_fix].dt.as_unit("us").astype(np.int64)
    by_time = told[has_fix].assign(key=fix_us)
    by_place = told[~has_fix].assign(key=told["position"][~has_fix])
    wrong = [
        *_differing(by_time, fixes.assign(key=fixes["event"])),
        *_differing(by_place, fixes.assign(key=fixes["effect"])),
    ]
    return dict(Counter(wrong))


def _differing(told: pd.DataFrame, fixes: pd.DataFrame) -> list[str]:
    """The queries of rows that have another place than the last fix of their object whose key is not larger."""
    if told.empty:
        return []
    ordered = fixes.sort_values("key", kind="stable")[["key", "object", *_PLACE]]
    both = pd.merge_asof(
        told[["key", "object", "query", *_PLACE]].sort_values("key", kind="stable"),
        ordered,
        on="key",
        by="object",
        suffixes=("", "_of_fix"),
    )
    same = (both["x"] == both["x_of_fix"]) & (both["y"] == both["y_of_fix"])
    return list(both["query"][~same])
