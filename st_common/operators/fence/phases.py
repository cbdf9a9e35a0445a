"""Fences as a part of every run of log rows, and of every swap of queries (SPEC X3, X4)."""

import numpy as np

from st_common.operators.fence.judging import judge_fences
from st_common.operators.fence.machine import Ran
from st_common.operators.fence.specs import FenceSet
from st_common.operators.fence.telling import tell_fences
from st_common.operators.fence.visits import Visits
from st_common.operators.matching.match import Hits
from st_common.operators.state.state import State
from st_common.operators.turn.part import Counters, Part
from st_common.operators.turn.turn import Turn


def run_fences(state: State, turn: Turn) -> Part:
    """What the events of a run, and the clock, do at all fences."""
    if not len(turn.known.of(FenceSet)):
        return Part()
    judged = judge_fences(state.memories[Visits], turn)
    return Part(
        changes=(tell_fences(judged, turn, state.fixes),),
        memories={Visits: judged.visits},
        counters=counted(judged.ran, judged.hits),
    )


def counted(ran: Ran, hits: Hits) -> Counters:
    """How often machines left and entered, and what was looked up for it; of incidents too."""
    return Counters(
        leaves=int(np.count_nonzero(ran.exits)),
        enters=int(np.count_nonzero(ran.enters)),
        probed=hits.probed,
        matched=hits.matched,
    )
