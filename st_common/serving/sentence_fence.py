"""One event of a fence in a sentence: who was where, how long, and what counted for it (SPEC X3)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from st_common.query.explain_fence import in_a_row
from st_common.query.fence import Debounce, Fence
from st_common.serving.wording import lasting, moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """What a sentence says of an event of a fence.

    Attributes:
        change: its row of `changes`.
        fence: what the query says about the border.
        who: the object.
        where: the border, "inside the rectangle ..".
        last: the fix that the object was judged by.
        query: the query and its version.
        silence_s: of the stream; None without.
        at_tick: where the border moves, at which tick and where the focal object was; else "".
        ended: who is gone.
    """

    change: Mapping[str, Any]
    fence: Fence
    who: str
    where: str
    last: str
    query: str
    silence_s: float | None
    at_tick: str = ""
    ended: str = "it"

    @property
    def when(self) -> str:
        """The event's own time."""
        return moment(self.change["event_ts"])

    @property
    def lasted(self) -> str:
        """How long the visit was that ended; empty where nobody knows."""
        value = self.change["value"]
        return "" if value is None else f" after {lasting(value)} inside"

    def row(self, debounce: Debounce) -> str:
        """What had to come together before a crossing counted; nothing where one fix is enough."""
        if debounce == Debounce():
            return ""
        return f", after {in_a_row(debounce, 'ticks' if self.at_tick else 'fixes')}"


def event_sentence(visit: Visit) -> str | None:
    """What happened at the border, in one sentence; None for what ends every answer alike, as DROP QUERY does."""
    said = _SENTENCES.get(visit.change["cause"])
    return None if said is None else said(visit)


def _enter(visit: Visit) -> str:
    row = visit.row(visit.fence.enter_after)
    return f"{visit.who} came in{visit.at_tick}: {visit.last} was {visit.where}{row} ({visit.query})."


def _leave(visit: Visit) -> str:
    margin = visit.fence.hysteresis_m
    how = f"more than {margin:g} m away from it" if margin else "no more"
    row = visit.row(visit.fence.exit_after)
    out = f"{visit.who} went out{visit.lasted}{visit.at_tick}"
    return f"{out}: {visit.last} was {how}{row} ({visit.query}: {visit.where})."


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
    return f"{visit.who} is out{visit.lasted}: the feed said that {visit.ended} is gone ({visit.query}: {visit.where})."


def _expired(visit: Visit) -> str:
    silent = "it, or what the fence goes with," if visit.at_tick else "it"
    silence = "too long" if visit.silence_s is None else lasting(visit.silence_s)
    return f"{visit.who} is out{visit.lasted}: {silent} said nothing for {silence} after {visit.last} ({visit.query})."


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
