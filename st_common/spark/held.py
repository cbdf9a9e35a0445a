"""A shard in a task that stays."""

from dataclasses import dataclass

from st_common.engine.states import States
from st_common.operators.state.difference import Changed
from st_common.operators.state.state import State
from st_common.spark.told import Untold


@dataclass
class Held:
    """A shard in a task.

    Attributes:
        state: what it knows now.
        states: where its states are stored.
        changed: what changed since it was stored; None: its objects were numbered anew, so that it is stored whole.
        untold: what it has made of a plan and keeps until it is asked.
        before: the state before the part that was stepped last; others may still ask for it. None where nobody does.
    """

    state: State
    states: States
    changed: Changed | None
    untold: Untold | None = None
    before: State | None = None

    @staticmethod
    def of(state: State, states: States) -> "Held":
        """A shard whose state was just read."""
        return Held(state=state, states=states, changed=Changed.since(state))
