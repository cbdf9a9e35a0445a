"""Rows of a query as they are told, as lines that can be read: for queries about rows."""

from collections.abc import Sequence
from typing import Any

from st_common.query.plan import Plan
from st_common.query.text import parse
from tests.kit.by_hand import end, log, register
from tests.kit.laws import run_steps
from tests.kit.oracle import Row, Rules
from tests.kit.strategies import Case, Segmentation


def plan_of(text: str) -> Plan:
    """The plan of a SELECT."""
    (statement,) = parse(f"REGISTER QUERY q AS {text}")
    assert statement.plan is not None
    return statement.plan


def told(
    text: str, rows: Sequence[Row], cuts: tuple[int, ...] = (), **how: Any
) -> list[str]:
    """What the step tells of a query that is registered before some rows: time, sign and object, value or cause."""
    steps = [register("q", plan_of(text)), *rows, end()]
    case = Case(rows=tuple(log(*steps)), layers={}, rules=Rules(tick_us=1_000_000))
    changes, _, _ = run_steps(case, Segmentation(cuts=cuts, batches=()), **how)
    return [
        f"{row['event_ts'].timestamp():g} {'-=+'[row['sign'] + 1]}{row['object']} "
        + (row["cause"] if row["value"] is None else f"{row['value']:g}")
        for row in changes.to_pylist()
    ]
