"""An incident as text: FOR, UNTIL, its worst value in SELECT, and how often it is told that it goes on."""

from collections.abc import Iterator

from st_common.query.grammar.words import number, quoted
from st_common.query.incident import Incident, Worst, name_of_worst
from st_common.query.printed_fence import debounce_text


def incident_clauses(incident: Incident | None) -> Iterator[str]:
    """The clauses behind the condition: `FOR 30 s UNTIL speed < 40`; none without an incident."""
    if incident is None:
        return
    yield f"FOR {debounce_text(incident.lasting)}"
    if incident.until is not None:
        yield f"UNTIL {incident.until}"


def worst_text(worst: Worst) -> str:
    """The item after SELECT: `MAX(speed)`, or `MAX(speed) AS top`."""
    call = f"{worst.function.upper()}({worst.argument})"
    if worst.name == name_of_worst(worst.function, worst.argument):
        return call
    return f"{call} AS {quoted(worst.name)}"


def interval_text(incident: Incident | None) -> str:
    """What stands behind EMIT EVERY: ` 60 s`, or nothing."""
    if incident is None or incident.every_s is None:
        return ""
    return f" {number(incident.every_s)} s"


def incident_options_of(incident: Incident | None) -> Iterator[str]:
    """The options of WITH (...)."""
    if incident is not None and incident.max_gap_s is not None:
        yield f"max_gap = {number(incident.max_gap_s)} s"
