"""One row about an incident in a sentence: since when, how long, why it ended, how bad it was (SPEC X8)."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from st_common.query.explain_fence import in_a_row
from st_common.query.incident import Incident
from st_common.serving.wording import lasting, moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a sentence says of a row about an incident.

    Attributes:
        change: the row of `changes`; its `value` is how many seconds the incident had lasted.
        incident: what the query says about incidents.
        who: the object.
        condition: what begins one, "where speed > 50".
        last: the fix that the object was judged by.
        query: the query and its version.
        silence_s: of the stream; None without.
    """

    change: Mapping[str, Any]
    incident: Incident
    who: str
    condition: str
    last: str
    query: str
    silence_s: float | None

    @property
    def lasted(self) -> str:
        """How long it had lasted."""
        return lasting(self.change["value"] or 0.0)

    @property
    def since(self) -> str:
        """When it began."""
        event: datetime = self.change["event_ts"]
        return moment(event - timedelta(seconds=self.change["value"] or 0.0))

    @property
    def worst(self) -> str:
        """Its worst value, as the end of a sentence; empty where none was asked for."""
        worst, fields = self.incident.worst, self.change["fields"]
        if worst is None or fields is None:
            return ""
        value = json.loads(fields)[worst.name]
        said = "not known" if value is None else f"{value:.10g}"
        return f", {worst.name} was {said}"


def incident_sentence(told: Told) -> str | None:
    """What happened, in one sentence; None for what ends every answer alike, as DROP QUERY does."""
    said = _SENTENCES.get(told.change["cause"])
    return None if said is None else said(told)


def _started(told: Told) -> str:
    return (
        f"{told.who} began an incident at {told.since}, {told.condition}; {told.last} confirmed it "
        f"after {in_a_row(told.incident.lasting)}{told.worst} ({told.query})."
    )


def _ongoing(told: Told) -> str:
    return (
        f"The incident of {told.who} since {told.since} went on with {told.last}, after {told.lasted}{told.worst} "
        f"({told.query}: {told.condition})."
    )


def _ended(told: Told) -> str:
    until = told.incident.until
    return _end(
        told,
        f"{told.last} was so no more"
        if until is None
        else f"of {told.last} {until} was true",
    )


def _gap(told: Told) -> str:
    gap = lasting(told.incident.max_gap_s or 0.0)
    return _end(told, f"no fix came within {gap} of {told.last}")


def _gone(told: Told) -> str:
    return _end(told, "the feed said that it is gone")


def _expired(told: Told) -> str:
    silence = "too long" if told.silence_s is None else lasting(told.silence_s)
    return _end(told, f"it said nothing for {silence} after {told.last}")


def _end(told: Told, why: str) -> str:
    return (
        f"The incident of {told.who} since {told.since} ended after {told.lasted}: {why}{told.worst} "
        f"({told.query}: {told.condition})."
    )


_SENTENCES: dict[str, Callable[[Told], str]] = {
    "started": _started,
    "ongoing": _ongoing,
    "ended": _ended,
    "gap": _gap,
    "gone": _gone,
    "expired": _expired,
}
