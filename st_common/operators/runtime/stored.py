"""Stored states and deltas, with every kind of component that an operator has."""

from st_common.operators.aggregate.groups import Groups
from st_common.operators.fence.visits import MovingVisits, Visits
from st_common.operators.incident.incidents import Incidents
from st_common.operators.outer.lingering import Lingering
from st_common.operators.outer.remembered import OuterGroups, OuterRows
from st_common.operators.outer.settling import Waiting
from st_common.operators.state.component import Component
from st_common.operators.state.delta import Delta
from st_common.operators.state.registered import Queries
from st_common.operators.state.state import State
from st_common.operators.travelled.rows import FrameRows, Tracks
from st_common.operators.window.entries import Entries

KINDS: tuple[type[Component], ...] = (
    Entries,
    Groups,
    FrameRows,
    Tracks,
    Visits,
    MovingVisits,
    Incidents,
    OuterRows,
    OuterGroups,
    Lingering,
    Waiting,
)
"""The components that states of this version may have; one with another is refused."""


def state_from_blob(blob: bytes, queries: Queries | None = None) -> State:
    """The state that `State.to_blob` gave.

    Args:
        blob: the bytes.
        queries: the queries, if they were stored by themselves; None: they are among the bytes.

    Raises:
        StateError: the bytes are of another format, or hold what this version does not know.
    """
    return State.from_blob(blob, KINDS, queries)


def delta_from_blob(blob: bytes) -> Delta:
    """The delta that `Delta.to_blob` gave.

    Raises:
        StateError: the bytes are of another format, or hold what this version does not know.
    """
    return Delta.from_blob(blob, KINDS)
