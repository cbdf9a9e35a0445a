"""FOR and UNTIL: what fixes make of an incident, of one object and one target at a time (docs/adr/0024, SPEC X8).

none --( fixes in a row satisfy the condition for so long )--> open     it begins with the first of them
open --( a fix of which UNTIL is true; without UNTIL one that does not satisfy the condition )--> none
"""

from dataclasses import dataclass, field
from typing import Literal

from st_common.query.incident import Incident

Told = Literal["started", "ongoing", "ended"]


@dataclass(slots=True)
class Stretch:
    """The fixes of an incident, or of what may become one: when they were, and their values (None for null)."""

    is_open: bool = False
    at_us: list[int] = field(default_factory=list)
    values: list[float | None] = field(default_factory=list)

    def lasted_s(self, now_us: int) -> float:
        """For how long the incident has lasted."""
        return (now_us - self.at_us[0]) / 1e6

    def worst(self, incident: Incident) -> float | None:
        """The worst value so far; None where there is none."""
        known = [value for value in self.values if value is not None]
        if incident.worst is None or not known:
            return None
        return max(known) if incident.worst.function == "max" else min(known)

    def broken_us(self, incident: Incident) -> int | None:
        """The last moment at which another fix would still belong to these; None where no gap is too long."""
        if incident.max_gap_s is None or not self.at_us:
            return None
        return self.at_us[-1] + round(incident.max_gap_s * 1e6)

    def take(
        self,
        incident: Incident,
        now_us: int,
        *,
        holds: bool,
        ends: bool,
        value: float | None,
    ) -> Told | None:
        """What a fix makes of it: whether the condition `holds`, and UNTIL `ends` it.

        A fix that ends an incident is none of it: who tells of that forgets the stretch afterwards.
        """
        is_over = not holds if incident.until is None else ends
        if self.is_open and is_over:
            return "ended"
        if not self.is_open and (is_over or not holds):
            self.forget()
            return None
        before_us = self.at_us[-1] if self.at_us else now_us
        self.at_us.append(now_us)
        self.values.append(value)
        if self.is_open:
            return "ongoing" if self._is_next(incident, before_us) else None
        if not self._is_long_enough(incident):
            return None
        self.is_open = True
        return "started"

    def forget(self) -> None:
        """There is neither an incident nor what may become one."""
        self.is_open, self.at_us, self.values = False, [], []

    def _is_long_enough(self, incident: Incident) -> bool:
        after = incident.lasting
        lasted_us = self.at_us[-1] - self.at_us[0]
        return len(self.at_us) >= after.fixes and lasted_us >= round(
            after.seconds * 1e6
        )

    def _is_next(self, incident: Incident, before_us: int) -> bool:
        """Whether this fix is the first one after another multiple of the interval; without one each is."""
        if incident.every_s is None:
            return True
        every_us, start = round(incident.every_s * 1e6), self.at_us[0]
        return (self.at_us[-1] - start) // every_us > (before_us - start) // every_us
