"""Which queries are registered at a place of the log, over which versions of their layers."""

import json
from dataclasses import dataclass, replace
from typing import Any

from st_common.capture.log import Log
from st_common.position import position_of
from st_common.query.lengths import in_coordinates
from st_common.query.plan import Plan

Controls = list[tuple[int, dict[str, Any]]]
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
        (position_of(segment.number, number), json.loads(line))
        for segment in log.control_segments(0, clocks=True)
        for number, line in enumerate(log.read(segment).splitlines())
    ]
    return [(position, row) for position, row in rows if position < end]


def registered_by(controls: Controls, unit_m: float) -> dict[str, Registered]:
    """The queries that are registered in the end, by name; `unit_m` is how many metres a unit of the plane is."""
    found: dict[str, Registered] = {}
    layers: dict[str, int] = {}
    for at, row in controls:
        if row["op"] in ("register", "replace"):
            plan = in_coordinates(Plan.from_json(row["plan"]), unit_m)
            found.pop(row["query"], None)
            version = (
                layers.get(plan.join.layer, row.get("layer_version"))
                if plan.join
                else None
            )
            versions = () if version is None else ((at, version),)
            found[row["query"]] = Registered(
                name=row["query"],
                version=row["version"],
                plan=plan,
                position=at,
                layers=versions,
            )
        elif row["op"] == "drop" or (row["op"] == "fail" and _is_meant(found, row)):
            found.pop(row["query"], None)
        elif row["op"] == "layer":
            layers[row["layer"]] = row["version"]
            found |= {name: _reloaded(query, at, row) for name, query in found.items()}
    return found


def _reloaded(query: Registered, at: int, row: dict[str, Any]) -> Registered:
    if query.plan.join is None or query.plan.join.layer != row["layer"]:
        return query
    return replace(query, layers=(*query.layers, (at, row["version"])))


def _is_meant(found: dict[str, Registered], row: dict[str, Any]) -> bool:
    """Whether a row `fail` is about the version that is registered."""
    return row["query"] in found and found[row["query"]].version == row["version"]
