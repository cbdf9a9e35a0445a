"""Roads of a layer, written by hand, and what is told of objects beside them."""

from collections.abc import Callable, Sequence
from typing import Any

import shapely

from st_common.query.plan import Plan
from st_common.query.text import parse
from tests.kit.by_hand import log
from tests.kit.laws import run_steps
from tests.kit.oracle_rows import Feature, Layers, Rules
from tests.kit.strategies import Case, Segmentation

JOIN = "FROM s t JOIN roads r ON ST_DWithin(t, r, 5 m)"
"""The objects beside a road, at most 5 m from it."""


def plan_of(text: str) -> Plan:
    """The plan of a SELECT."""
    (statement,) = parse(f"REGISTER QUERY q AS {text}")
    assert statement.plan is not None
    return statement.plan


def road(fid: str, y: float, **tags: str) -> Feature:
    """A road of a kilometre from x = 0 to the east."""
    line = shapely.LineString([(0, y), (1000, y)])
    return Feature(fid, "road", line, tags)


def told_of(
    rows: Sequence[Any],
    layers: Layers,
    said: Callable[[dict[str, Any]], str],
    *,
    cuts: Sequence[int] = (),
    **how: Any,
) -> list[str]:
    """What the engine tells of rows, ticks being of a second.

    Args:
        rows: as `by_hand` makes them.
        layers: the features of each version of a layer.
        said: what of a change follows its time and its sign (`+`, `-`, `=`).
        cuts: where runs end.
        how: shards and restarts, as `run_steps` takes them.

    Example:
        2 +a|lane enter
    """
    case = Case(rows=tuple(log(*rows)), layers=layers, rules=Rules(tick_us=1_000_000))
    changes, _, _ = run_steps(case, Segmentation(cuts=tuple(cuts), batches=()), **how)
    return [
        f"{row['event_ts'].timestamp():g} {'-=+'[row['sign'] + 1]}{said(row)}"
        for row in changes.to_pylist()
    ]
