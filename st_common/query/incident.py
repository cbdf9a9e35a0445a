"""Incidents: a condition that holds for some time, with a beginning, a duration and an end (SPEC X8, docs/adr/0024)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from st_common.query.fence import Debounce
from st_common.record import values_of

Extreme = Literal["max", "min"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """The value of an incident's worst fix: the greatest or the least `argument`, an expression, shown as `name`."""

    function: Extreme
    argument: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """How long a query's condition holds before it is an incident, what ends one, and what is told of it.

    An incident starts when fixes in a row satisfied the condition for `lasting`. It ends with the first fix of which
    `until` is true; without `until`, with the first that does not satisfy the condition. Two fixes that are more than
    `max_gap_s` apart end it too (None: no gap is too long). `every_s` is how often it is told that an incident goes on,
    where the query tells that; None: with each fix.
    """

    lasting: Debounce
    until: str | None = None
    max_gap_s: float | None = None
    every_s: float | None = None
    worst: Worst | None = None

    @property
    def expressions(self) -> tuple[str, ...]:
        """The texts of its expressions: that of the worst value, then what ends it."""
        worst = () if self.worst is None else (self.worst.argument,)
        return worst if self.until is None else (*worst, self.until)

    def with_expressions(self, change: Callable[[str], str]) -> "Incident":
        """The incident with each of its expressions changed; the worst value is called as before."""
        worst, until = self.worst, self.until
        if worst is not None:
            worst = replace(worst, argument=change(worst.argument))
        return replace(
            self, until=None if until is None else change(until), worst=worst
        )

    def called_anew(self, before: "Incident") -> "Incident":
        """The incident with its worst value called by its argument, where that of the one before was."""
        old, new = before.worst, self.worst
        if old is None or new is None:
            return self
        if old.name != name_of_worst(old.function, old.argument):
            return self
        name = name_of_worst(new.function, new.argument)
        return replace(self, worst=replace(new, name=name))


def name_of_worst(function: Extreme, argument: str) -> str:
    """What the worst value is called where nobody said: `max(speed)`."""
    return f"{function}({argument})"


def incident_to_json(incident: Incident) -> dict[str, Any]:
    """The incident as JSON values without what is default."""
    value: dict[str, Any] = {"lasting": values_of(incident.lasting)}
    for name in ("until", "max_gap_s", "every_s"):
        if (part := getattr(incident, name)) is not None:
            value[name] = part
    if incident.worst is not None:
        value["worst"] = values_of(incident.worst)
    return value


def incident_from_json(value: dict[str, Any]) -> Incident:
    """The incident that `incident_to_json` gave."""
    worst = value.get("worst")
    return Incident(
        lasting=Debounce(**value["lasting"]),
        until=value.get("until"),
        max_gap_s=value.get("max_gap_s"),
        every_s=value.get("every_s"),
        worst=Worst(**worst) if worst else None,
    )
