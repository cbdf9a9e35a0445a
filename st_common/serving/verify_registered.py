"""Which queries are registered at a place of the log, over which versions of their layers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from st_common.capture.control import control_rows
from st_common.capture.log import Log
from st_common.controls.rows import (
    ControlRow,
    Drop,
    Fail,
    Follow,
    LayerVersion,
    Register,
    Registration,
)
from st_common.position import position_of
from st_common.query.control import plan_of
from st_common.query.lengths import in_coordinates
from st_common.query.plan import Plan
from st_common.query.replaced_fence import keeps_visits

Controls = list[tuple[int, ControlRow]]
"""Positions and control rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A registered query: its newest plan, and how its layer and its area changed.

    `layers` says from which row on it had which version of its layer (0 without one), `plans` with which plan; both
    are empty where nothing but the plan has to be known. `causes` says why each of these rows judged its answer anew.
    `is_seeded`: it began with what came before it (REGISTER .. FROM).
    """

    name: str
    version: int
    plan: Plan
    position: int
    layers: tuple[tuple[int, int], ...] = ()
    plans: tuple[Plan, ...] = ()
    causes: tuple[str, ...] = ()
    kept: frozenset[int] = (
        frozenset()
    )  # rows of `layers` over which visits of a fence go on as they are
    is_seeded: bool = False

    def changed(
        self, at: int, *, version: int | None, plan: Plan, cause: str
    ) -> "Registered":
        """The same from a row on with another version of its layer, or another plan."""
        layers = self.layers or ((self.position, 0),)
        plans = self.plans or (self.plan,)
        now = layers[-1][1] if version is None else version
        return replace(
            self,
            plan=plan,
            layers=(*layers, (at, now)),
            plans=(*plans, plan),
            causes=(*(self.causes or ("registered",)), cause),
        )

    def plan_in(self, era: int) -> Plan:
        """Its plan by the number of the row in `layers`."""
        return self.plans[era] if self.plans else self.plan

    def cause_of(self, era: int) -> str:
        """Why its answer was judged anew at the row of that number in `layers`."""
        return self.causes[era] if self.causes else "registered"


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
    registered: dict[str, Registered] = {}
    layers: dict[str, int] = {}
    for at, row in controls:
        if isinstance(row, Follow):
            if _is_meant(registered, row):
                plan = in_coordinates(plan_of(row, at), unit_m)
                before = registered[row.query]
                cause = "area" if row.layer is None else "layer"
                registered[row.query] = before.changed(
                    at, version=None, plan=plan, cause=cause
                )
        elif isinstance(row, Registration):
            now = _registered(row, at, layers, unit_m)
            if row.query in registered:
                now = _replaced(registered.pop(row.query), now)
            registered[row.query] = now
        elif isinstance(row, Drop) or (
            isinstance(row, Fail) and _is_meant(registered, row)
        ):
            registered.pop(row.query, None)
        elif isinstance(row, LayerVersion):
            layers[row.layer] = row.version
            registered |= {
                name: _reloaded(query, at, row) for name, query in registered.items()
            }
    return registered


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
        is_seeded=isinstance(row, Register) and row.seed is not None,
    )


def _replaced(before: Registered, now: Registered) -> Registered:
    """A fence at the same border goes on: it is the one before, with other options from the row of the new one on."""
    versions = [
        each.layers[-1][1] if each.plan.join else None for each in (before, now)
    ]
    if versions[0] != versions[1] or not keeps_visits(before.plan, now.plan):
        return now
    goes_on = before.changed(
        now.position, version=versions[1], plan=now.plan, cause="registered"
    )
    return replace(goes_on, version=now.version, kept=before.kept | {now.position})


def _reloaded(query: Registered, at: int, row: LayerVersion) -> Registered:
    if query.plan.join is None or query.plan.join.layer != row.layer:
        return query
    return query.changed(at, version=row.version, plan=query.plan, cause="layer")


def _is_meant(registered: Mapping[str, Registered], row: Fail | Follow) -> bool:
    """Whether a row is about the version that is registered."""
    return row.query in registered and registered[row.query].version == row.version
