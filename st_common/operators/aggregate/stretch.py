"""Some ticks of a run that are told of at once: their times, and who is a member at them."""

from dataclasses import dataclass

import numpy as np

from st_common.operators.arrays.turns import Turns
from st_common.operators.events.agenda import ticks_of
from st_common.operators.state.fixes import NEVER
from st_common.operators.turn.course import Course, Now
from st_common.operators.turn.present import Present
from st_common.operators.turn.spells import Members, members_of
from st_common.operators.turn.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Some ticks of a run, one after the other, that are told of at once: their times and rows of the log.

    `turns` are the keys that come and go at them in all answers, `members` those of the queries that ask for more,
    `course` the last fixes of all objects that it is about.
    """

    turn: Turn
    fixes: Present
    course: Course | Now
    tick: np.ndarray
    position: np.ndarray
    turns: Turns
    members: Members

    def counts(self, query: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Whether the events of ticks came after queries; bool[n], false in the tick in which a query was registered.

        Args:
            query: int64[n].
            at: int64[n], places of ticks.
        """
        since, settings = self.turn.known.since[query], self.turn.settings
        known = since != NEVER
        pending = ticks_of(
            np.where(known, since - settings.lateness_us, 0), settings.tick_us
        )
        counts: np.ndarray = ~known | (pending < self.tick[at])
        return counts


def one_tick(turn: Turn, fixes: Present, tick: int) -> Stretch:
    """A stretch of one time at which nothing happens to objects, and no answer changes: for swaps.

    Args:
        turn: the run.
        fixes: the last fixes.
        tick: the event time in microseconds.
    """
    nothing, turns = np.empty(0, np.int64), Turns.joined([])
    course = Now(fixes, nothing)
    members = members_of(
        turn, course, nothing, turns, np.zeros(len(turn.queries), bool)
    )
    return Stretch(
        turn=turn,
        fixes=fixes,
        course=course,
        tick=np.array([tick]),
        position=np.zeros(1, np.int64),
        turns=turns,
        members=members,
    )
