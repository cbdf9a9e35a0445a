"""Incidents as a part of every run of log rows (SPEC X8)."""

from st_common.operators.fence.phases import counted
from st_common.operators.incident.incidents import Incidents
from st_common.operators.incident.judging import judge_incidents
from st_common.operators.incident.specs import IncidentSet
from st_common.operators.incident.telling import tell_incidents
from st_common.operators.state.state import State
from st_common.operators.turn.part import Part
from st_common.operators.turn.turn import Turn


def run_incidents(state: State, turn: Turn) -> Part:
    """What the events of a run, and the clock, do to all incidents."""
    if not len(turn.known.of(IncidentSet)):
        return Part()
    judged = judge_incidents(state.memories[Incidents], turn, state.fixes)
    return Part(
        changes=(tell_incidents(judged, turn, state.fixes),),
        memories={Incidents: judged.after},
        counters=counted(judged.ran, judged.hits),
    )
