"""One event of a fence in a sentence: who was where, how long, and what counted for it (SPEC X3)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from st_common.query.explain_fence import in_a_row
from st_common.query.fence import Debounce, Fence
from st_common.serving.wording import lasting, moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """What a sentence says of an event: its row of `changes`, the fence, and other parts in words.

    `who` is the object, `where` the border ("inside the rectangle .."), `last` the fix that the object was judged by.
    """

    change: Mapping[str, Any]
    fence: Fence
    who: str
    where: str
    last: str
    query: str
    silence_s: float | None

    @property
    def when(self) -> str:
        """The event's own time."""
        return moment(self.change["event_ts"])

    @property
    def lasted(self) -> str:
        """How long the visit was that ended; empty where nobody knows."""
        value = self.change["value"]
        return "" if value is None else f" after {lasting(value)} inside"


def event_sentence(visit: Visit) -> str | None:
    """What happened at the border, in plain words; None for what ends every answer alike, as DROP QUERY does."""
    said = _SENTENCES.get(visit.change["cause"])
    return None if said is None else said(visit)


def _enter(visit: Visit) -> str:
    return f"{visit.who} came in: {visit.last} was {visit.where}{_row(visit.fence.enter_after)} ({visit.query})."


def _leave(visit: Visit) -> str:
    margin = visit.fence.hysteresis_m
    how = f"more than {margin:g} m away from it" if margin else "no more"
    row = _row(visit.fence.exit_after)
    return f"{visit.who} went out{visit.lasted}: {visit.last} was {how}{row} ({visit.query}: {visit.where})."


def _inside(visit: Visit) -> str:
    return f"{visit.who} stayed in at {visit.when}: {visit.last} did not end its visit ({visit.query}: {visit.where})."


def _outside(visit: Visit) -> str:
    return f"{visit.who} was out at {visit.when}: {visit.last} began no visit ({visit.query}: {visit.where})."


def _cross(visit: Visit) -> str:
    return (
        f"{visit.who} crossed: neither {visit.last} nor the one before it was {visit.where}, but the straight line "
        f"between them passes there ({visit.query})."
    )


def _dwell(visit: Visit) -> str:
    value = visit.change["value"]
    stay = lasting(visit.fence.dwell_s or 0.0 if value is None else value)
    return f"{visit.who} has been inside for {stay} at {visit.when} ({visit.query}: {visit.where})."


def _gone(visit: Visit) -> str:
    return f"{visit.who} is out{visit.lasted}: the feed said that it is gone ({visit.query}: {visit.where})."


def _expired(visit: Visit) -> str:
    silence = "too long" if visit.silence_s is None else lasting(visit.silence_s)
    return f"{visit.who} is out{visit.lasted}: it said nothing for {silence} after {visit.last} ({visit.query})."


def _row(debounce: Debounce) -> str:
    """What had to come together before a crossing counted; nothing where one fix is enough."""
    return "" if debounce == Debounce() else f", after {in_a_row(debounce)}"


_SENTENCES: dict[str, Callable[[Visit], str]] = {
    "enter": _enter,
    "leave": _leave,
    "inside": _inside,
    "outside": _outside,
    "cross": _cross,
    "dwell": _dwell,
    "gone": _gone,
    "expired": _expired,
}
