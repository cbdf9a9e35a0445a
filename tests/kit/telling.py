"""Logs by brute force and through the step, told in one form: for tests that ask both the same."""

from collections.abc import Sequence

from tests.kit.laws import run_steps, told_by_oracle
from tests.kit.oracle import (
    Change,
    Layers,
    Row,
    Rules,
    agree,
    answer,
    changes,
    fold,
)
from tests.kit.strategies import Case, Segmentation


def by_brute_force(
    rows: Sequence[Row], rules: Rules, layers: Layers | None = None
) -> list[Change]:
    """The oracle's changes, after their fold was checked against the answer that it finds anew."""
    told = changes(rows, rules=rules, layers=layers)
    assert agree(fold(told), answer(rows, rules=rules, layers=layers))
    return told


def by_both(
    rows: Sequence[Row], *, layers: Layers | None = None, rules: Rules | None = None
) -> list[Change]:
    """The oracle's changes, after the step told the same: in one shard at once, and in three bit by bit."""
    rules = rules or Rules()
    told = by_brute_force(rows, rules, layers)
    for cutting in (
        {"every": len(rows) + 1, "at_once": 1, "shards": 1},
        {"every": 2, "at_once": 1, "shards": 3},
    ):
        stepped = by_steps(rows, rules, layers, **cutting)
        assert told_by_oracle(stepped) == told_by_oracle(told)
    return told


def by_steps(
    rows: Sequence[Row],
    rules: Rules,
    layers: Layers | None = None,
    *,
    every: int = 7,
    at_once: int = 2,
    shards: int = 3,
) -> list[Change]:
    """The step's changes, the log cut into segments of `every` rows and batches of `at_once` segments."""
    cut = Segmentation(
        cuts=tuple(range(every, len(rows), every)), batches=(at_once,) * len(rows)
    )
    table, _, order = run_steps(
        Case(rows=tuple(rows), layers=layers or {}, rules=rules), cut, shards=shards
    )
    us = {
        name: [round(stamp.timestamp() * 1e6) for stamp in table[name].to_pylist()]
        for name in ("event_ts", "fix_ts")
    }
    return [
        Change(
            position=order[row["position"]],
            seq=row["seq"],
            query=row["query"],
            query_version=row["query_version"],
            layer_version=row["layer_version"],
            object=row["object"],
            partner=row["partner"],
            sign=row["sign"],
            cause=row["cause"],
            event_us=us["event_ts"][n],
            fix_us=us["fix_ts"][n],
            value=row["value"],
            fields=row["fields"],
            x=row["x"],
            y=row["y"],
        )
        for n, row in enumerate(table.to_pylist())
    ]
