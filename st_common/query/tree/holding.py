"""Conditions that hold for some time: incidents (SPEC X8)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from st_common.query.complaint import Complaint
from st_common.query.incident import Incident
from st_common.query.tree.node import EVENT, Above, Column, beside, excluded, walk
from st_common.query.tree.relational import Select
from st_common.query.tree.spatial import Inside, WithLayer, keeping_all

_EACH = "register one query for each"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding(Above):
    """Incidents: when what stands below begins to hold of an object for some time, and when that ends."""

    at: ClassVar[str] = "lasting"
    parts: ClassVar[Mapping[str, str]] = {"incident": "incident"}
    of_fixes: ClassVar[bool] = True
    gives_events: ClassVar[bool] = True
    tells_every: ClassVar[bool] = True
    incident: Incident

    @property
    def noun(self) -> str:
        """See `Node`."""
        return "FOR"

    def columns(self) -> tuple[Column, ...]:
        """Those of the object, and what is known of the incident."""
        return beside(self.input.columns(), self.event_columns())

    def event_columns(self) -> tuple[Column, ...]:
        """What happened, how long it has lasted (`value`), when the incident began, where, and its worst value."""
        own = (*EVENT, Column(name="started", type="TIMESTAMP", nullable=False))
        worst = self.incident.worst
        if worst is None:
            return own
        units = {one.name: one.unit for one in self.input.columns()}
        unit = units.get(worst.argument, "")
        return (*own, Column(name=worst.name, type="DOUBLE", unit=unit))

    def refused(self) -> Iterator[Complaint]:
        """It needs a condition on points of objects that is judged fix by fix."""
        below = list(walk(self.input))
        if not any(isinstance(one, Select | Inside | WithLayer) for one in below):
            message = "FOR needs a condition: WHERE, INSIDE or a JOIN with a layer"
            hint = "WHERE speed > 50 km/h FOR 30 s"
            yield Complaint(at=self.at, message=message, hint=hint)
        others = [one for one in below if one.ticks_itself or one.by_boxes]
        others += keeping_all(below)
        yield from excluded(self, others, _EACH)
