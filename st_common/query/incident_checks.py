"""What an incident cannot be (SPEC X8); what it cannot stand beside is said by its node."""

from collections.abc import Iterator

from st_common.query.complaint import Complaint
from st_common.query.fence_checks import is_row, is_time
from st_common.query.incident import Incident
from st_common.query.plan import Plan


def complaints_of_incident(incident: Incident, plan: Plan) -> Iterator[Complaint]:
    """What is wrong with the values of a plan's incident."""
    if not is_row(incident.lasting):
        message = "FOR is at least 1 fix, and a time that is not negative"
        yield Complaint(at="lasting", message=message, hint="FOR 30 s")
    if not is_time(incident.max_gap_s):
        message = f"max_gap is a time above 0, and not {incident.max_gap_s:g} s"
        yield Complaint(at="options", message=message, hint="such as 5 min")
    if not is_time(incident.every_s):
        message = f"an interval is a time above 0, and not {incident.every_s:g} s"
        yield Complaint(at="emit", message=message, hint="EMIT EVERY 5 min")
    if incident.every_s is not None and plan.emit != "every":
        message = "an interval needs EMIT EVERY"
        yield Complaint(at="emit", message=message, hint="EMIT EVERY 5 min")
    worst = incident.worst
    if worst is not None and worst.name in dict(plan.columns):
        message = f"two columns are called {worst.name!r}"
        hint = "give one of them another name: ... AS name"
        yield Complaint(at="select", message=message, hint=hint)
