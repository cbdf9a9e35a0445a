"""Windows and aggregates by brute force, over fixes that qualified."""

from collections.abc import Sequence

import duckdb
import numpy as np
import pandas as pd

from st_common.geometry.space import Space
from st_common.query.plan import Aggregate, Window
from st_common.serving.verify_events import FIX, Clock
from st_common.serving.verify_expressions import values_of


def counting(
    entries: pd.DataFrame, window: Window, clock: Clock, tick_us: int
) -> pd.DataFrame:
    """The entries that count at the last tick that was judged; columns as `events_of` gives them, and `partner`."""
    entries = entries[entries["kind"] == FIX]
    if window.seconds is not None:
        end = entries["ts"].to_numpy(np.int64) + round(window.seconds * 1e6)
        too_old = (end // tick_us + 1) * tick_us  # the first tick after it
        kept: pd.DataFrame = entries[
            (too_old > entries["tick"].to_numpy())
            & (too_old >= clock.now)
            & ~_passed(entries, end)
        ]
        return kept
    newest = entries.sort_values(
        ["ts", "effect", "object", "partner"], kind="stable", na_position="first"
    )
    return newest.tail(window.tuples or 0)


def _passed(entries: pd.DataFrame, end: np.ndarray) -> np.ndarray:
    """Entries that were too old at some tick that was judged because something happened then (at an end mark)."""
    last = entries["judged"].to_numpy(np.int64)
    return np.asarray(end < last)


def groups(
    aggregate: Aggregate,
    counted: pd.DataFrame,
    attributes: Sequence[str],
    *,
    space: Space,
) -> dict[str, float | None]:
    """The value of every group by its text; None for DISTINCT."""
    texts = [aggregate.argument or "1", _name_of(aggregate.group or "'*'")]
    rows = counted[["object"]].assign(v=None, g=None)
    if len(counted):
        values = values_of(counted, texts, attributes, space=space)
        rows = rows.assign(v=values["0"].to_numpy(), g=values["1"].to_numpy())
    found = _grouped(aggregate, rows) if len(rows) else {}
    if aggregate.group is None and aggregate.function in ("count", "count_distinct"):
        found.setdefault("*", 0.0)
    return found


def _name_of(group: str) -> str:
    """The expression of a group's name: NULL for null, and in quotes what is called so or begins with a quote."""
    text = f"CAST({group} AS VARCHAR)"
    if group == "partner":
        return text
    quoted = f"concat(chr(39), replace({text}, chr(39), chr(39) || chr(39)), chr(39))"
    return (
        f"CASE WHEN {text} IS NULL THEN 'NULL' WHEN {text} = 'NULL' OR starts_with({text}, chr(39)) "
        f"THEN {quoted} ELSE {text} END"
    )


def _grouped(aggregate: Aggregate, rows: pd.DataFrame) -> dict[str, float | None]:
    value = (
        "object"
        if aggregate.function == "count_distinct" and aggregate.argument is None
        else "v"
    )
    made = {
        "count": "count({0})",
        "count_distinct": "count(DISTINCT {0})",
        "distinct": "NULL",
    }
    function = made.get(aggregate.function, aggregate.function + "({0})").format(value)
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("counted", rows)
        found = connection.sql(
            f"SELECT g, CAST({function} AS DOUBLE) FROM counted GROUP BY g"  # noqa: S608
        ).fetchall()
    if aggregate.function == "distinct":
        return dict.fromkeys(group for group, _ in found)
    return {group: number for group, number in found if number is not None}
