"""An incident in words: what begins and ends one, and what is told of it."""

from st_common.query.explain_fence import in_a_row
from st_common.query.explain_steps import Step
from st_common.query.incident import Incident
from st_common.query.plan import Plan
from st_common.query.printed import number


def incident_step(incident: Incident, *, goes_on: bool) -> Step:
    """What begins an incident and what ends it; `goes_on` says whether it is told that one goes on."""
    ends = incident.until or "the first fix of which that is not so"
    parts = [f"begins after {in_a_row(incident.lasting)}", f"ends by {ends}"]
    if incident.max_gap_s is not None:
        parts.append(f"or by a gap above {number(incident.max_gap_s)} s")
    if goes_on:
        parts.append(f"ONGOING told {_how_often(incident)}")
    if incident.worst is not None:
        worst = incident.worst
        parts.append(f"worst value {worst.function} of {worst.argument}")
    return Step(stage="EVALUATE", operator="incident", detail="; ".join(parts))


def _how_often(incident: Incident) -> str:
    if incident.every_s is None:
        return "with each fix"
    return f"by the first fix after each {number(incident.every_s)} s"


def signs_of_incidents(plan: Plan) -> str:
    """The signs of what is told of incidents."""
    ongoing = ", 0 for ONGOING" if plan.emit == "every" else ""
    return f"+ for STARTED and - for what ends one{ongoing}"
