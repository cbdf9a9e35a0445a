"""Geofences: what a query detects at the border of its region, fix by fix of each object (SPEC X3)."""

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from st_common.record import values_of

Event = Literal["enter", "exit", "inside", "outside", "cross", "dwell"]
EVENTS: tuple[Event, ...] = get_args(Event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Debounce:
    """When a crossing of the border counts: after so many fixes in a row that say so, which lie `seconds` apart."""

    fixes: int = 1
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """What is told of an object and the query's region; see docs/adr/0024.

    `events` are in the order of `EVENTS`, each once. `dwell_s` is how long a visit is when `dwell` is told. An object
    enters by a fix in the region, after `enter_after`; it exits by one that is more than `hysteresis_m` away from the
    region, after `exit_after`. Two fixes that are more than `max_gap_s` apart cross nothing (None: any two of a stay).
    With `restart` visits begin anew where it takes the place of another fence (see `st_common.query.replaced_fence`).

    Raises:
        ValueError: an event that is none.
    """

    events: tuple[Event, ...]
    dwell_s: float | None = None
    enter_after: Debounce = field(default_factory=Debounce)
    exit_after: Debounce = field(default_factory=Debounce)
    hysteresis_m: float = 0.0
    max_gap_s: float | None = None
    restart: bool = False

    def __post_init__(self) -> None:
        if unknown := set(self.events) - set(EVENTS):
            raise ValueError(f"no event of a fence: {', '.join(sorted(unknown))}")
        in_order = tuple(sorted(set(self.events), key=EVENTS.index))
        object.__setattr__(self, "events", in_order)

    @property
    def asks_for_border(self) -> bool:
        """Whether it must know how far a fix is from the region, or which ways meet that; not who is in alone."""
        return self.hysteresis_m > 0 or "cross" in self.events

    @property
    def has_answer(self) -> bool:
        """Whether entering and leaving are both told: then they are + and -, else all rows have the sign 0."""
        return "enter" in self.events and "exit" in self.events


def fence_to_json(fence: Fence) -> dict[str, Any]:
    """The fence as JSON values without what is default."""
    value: dict[str, Any] = {"events": list(fence.events)}
    if fence.dwell_s is not None:
        value["dwell_s"] = fence.dwell_s
    for name in ("enter_after", "exit_after"):
        if (debounce := getattr(fence, name)) != Debounce():
            value[name] = values_of(debounce)
    if fence.hysteresis_m:
        value["hysteresis_m"] = fence.hysteresis_m
    if fence.max_gap_s is not None:
        value["max_gap_s"] = fence.max_gap_s
    if fence.restart:
        value["restart"] = True
    return value


def fence_from_json(value: dict[str, Any]) -> Fence:
    """The fence that `fence_to_json` gave."""
    fields = {**value, "events": tuple(value["events"])}
    for name in ("enter_after", "exit_after"):
        if name in value:
            fields[name] = Debounce(**value[name])
    return Fence(**fields)
