"""Logs written by hand, and changes as lines that can be read: for cases whose answer is found on paper."""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from st_common.controls.rows import (
    Clock,
    Drop,
    End,
    Follow,
    LayerVersion,
    Register,
    Replace,
)
from st_common.query.plan import Plan
from tests.kit.control_rows import control
from tests.kit.oracle_rows import Change, Control, Fix, Row

SECOND_US = 1_000_000


def fix(
    name: str, time_s: float, x: float = 0.0, y: float = 0.0, **attributes: Any
) -> Fix:
    """One fix; its position is given by `log`."""
    event_us = round(time_s * SECOND_US)
    return Fix(
        position=0, object=name, event_us=event_us, x=x, y=y, attributes=attributes
    )


def gone(name: str, time_s: float) -> Fix:
    """An object says that it is gone."""
    return Fix(position=0, object=name, event_us=round(time_s * SECOND_US), gone=True)


def register(
    query: str,
    plan: Plan,
    *,
    op: str = "register",
    version: int = 1,
    layer_version: int | None = None,
    layer: str | None = None,
) -> Control:
    """A query is registered; with `op` "replace" it takes the place of the one of that name, with "follow" goes on.

    What follows does so for an area, or for a `layer`.

    Raises:
        KeyError: no registration is written with this `op`.
    """
    row = _REGISTRATIONS[op](
        query=query,
        version=version,
        plan=plan.to_json(),
        text="",
        owner="",
        layer_version=layer_version,
    )
    return control(replace(row, layer=layer) if isinstance(row, Follow) else row)


_REGISTRATIONS: dict[str, type[Register] | type[Replace] | type[Follow]] = {
    kind.op: kind for kind in (Register, Replace, Follow)
}


def drop(query: str) -> Control:
    """A query is dropped."""
    return control(Drop(query=query))


def layer(name: str, version: int) -> Control:
    """A layer has a new version."""
    return control(LayerVersion(layer=name, version=version))


def clock(time_s: float) -> Control:
    """A feed is idle, and its clock goes on."""
    return control(Clock(ts_us=round(time_s * SECOND_US)))


def end() -> Control:
    """A replay is over."""
    return control(End())


def log(*rows: Row) -> list[Row]:
    """The rows with the positions 0, 1, 2, .."""
    return [replace(row, position=position) for position, row in enumerate(rows)]


def lines(changes: Iterable[Change]) -> list[str]:
    """`position @second query +object|partner cause =value {fields}`, a line for every change."""
    return [_line(change) for change in changes]


def _line(change: Change) -> str:
    partner = "" if change.partner is None else f"|{change.partner}"
    member = f"{'-=+'[change.sign + 1]}{change.object}{partner}"
    text = f"{change.position} @{change.event_us / SECOND_US:g} {change.query} {member} {change.cause}"
    if change.value is not None:
        text += (
            f" ={change.value:g}"
            if math.isfinite(change.value)
            else f" ={change.value}"
        )
    return text if change.fields is None else f"{text} {change.fields}"
