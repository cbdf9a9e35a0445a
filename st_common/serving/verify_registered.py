"""Which queries are registered at a place of the log, over which versions of their layers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from st_common.capture.control import control_rows
from st_common.capture.log import Log
from st_common.controls.rows import (
    ControlRow,
    Drop,
    Fail,
    LayerVersion,
    Registration,
)
from st_common.position import position_of
from st_common.query.control import plan_of
from st_common.query.lengths import in_coordinates
from st_common.query.plan import Plan

Controls = list[tuple[int, ControlRow]]
"""Positions and control rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A registered query, and the versions of its layer from row to row."""

    name: str
    version: int
    plan: Plan
    position: int
    layers: tuple[tuple[int, int], ...]  # from which row on, which version


def controls_of(log: Log, end: int) -> Controls:
    """The control rows of a log before a position, each with its own, in their order."""
    rows = [
        (position_of(segment.number, number), row)
        for segment in log.control_segments(0, clocks=True)
        for number, row in enumerate(control_rows(log, segment))
    ]
    return [(position, row) for position, row in rows if position < end]


def registered_by(controls: Controls, unit_m: float) -> dict[str, Registered]:
    """The queries that are registered in the end, by name; `unit_m` is how many metres a unit of the plane is."""
    found: dict[str, Registered] = {}
    layers: dict[str, int] = {}
    for at, row in controls:
        if isinstance(row, Registration):
            found.pop(row.query, None)
            found[row.query] = _registered(row, at, layers, unit_m)
        elif isinstance(row, Drop) or (isinstance(row, Fail) and _is_meant(found, row)):
            found.pop(row.query, None)
        elif isinstance(row, LayerVersion):
            layers[row.layer] = row.version
            found |= {name: _reloaded(query, at, row) for name, query in found.items()}
    return found


def _registered(
    row: Registration, at: int, layers: Mapping[str, int], unit_m: float
) -> Registered:
    plan, version = in_coordinates(plan_of(row, at), unit_m), None
    if plan.join is not None:
        version = layers.get(plan.join.layer, row.layer_version)
    versions = () if version is None else ((at, version),)
    return Registered(
        name=row.query,
        version=row.version,
        plan=plan,
        position=at,
        layers=versions,
    )


def _reloaded(query: Registered, at: int, row: LayerVersion) -> Registered:
    if query.plan.join is None or query.plan.join.layer != row.layer:
        return query
    return replace(query, layers=(*query.layers, (at, row.version)))


def _is_meant(found: Mapping[str, Registered], row: Fail) -> bool:
    """Whether a row `fail` is about the version that is registered."""
    return row.query in found and found[row.query].version == row.version
