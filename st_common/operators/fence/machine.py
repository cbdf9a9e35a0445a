"""The machine of two states of a fence, for all objects and regions at once (docs/adr/0024).

    fix        1    2    3    4    5    6    7          two in a row enter, two in a row exit
    code       IN   IN   OUT  IN   OUT  OUT  IN
    trigger         E                   X
    is_in      no   yes  yes  yes  yes  no   no

Whether a row of IN or OUT codes is long enough follows from the codes alone. After each fix a machine is in the state
of the last trigger, whatever state it was in when that came: so the state is found by one running maximum.
"""

from dataclasses import dataclass

import numpy as np

from st_common.operators.state.fixes import NEVER
from st_common.runs import last_set, shifted

END, OUT, NEAR, IN = -1, 0, 1, 2
"""What a row says: the object's stay ends, or where its fix lies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """Rows of machines, those of one together and in the order of effect.

    `machine` (int64, ascending) says whose row it is, `code` what it says, `ts` when.
    """

    machine: np.ndarray
    code: np.ndarray
    ts: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Of each machine: how many codes in a row, and over how many microseconds, change its state."""

    enter_fixes: np.ndarray
    enter_us: np.ndarray
    exit_fixes: np.ndarray
    exit_us: np.ndarray

    def take(self, index: np.ndarray) -> "Rules":
        """Those of some machines, by place."""
        return Rules(
            enter_fixes=self.enter_fixes[index],
            enter_us=self.enter_us[index],
            exit_fixes=self.exit_fixes[index],
            exit_us=self.exit_us[index],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Of each machine: since when it is in (`NEVER`: out), and the codes in a row that speak against that."""

    since: np.ndarray
    against: np.ndarray
    against_since: np.ndarray

    @property
    def is_in(self) -> np.ndarray:
        """Whether each machine is in; bool[m]."""
        return np.asarray(self.since != NEVER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What became of machines.

    Of each row: `was_in` before it and `is_in` after it, whether it `enters` or `exits`, and the `since` of the visit
    that it belongs to or ends. `after` is how the machines stand after their last row.
    """

    was_in: np.ndarray
    is_in: np.ndarray
    enters: np.ndarray
    exits: np.ndarray
    since: np.ndarray
    after: Standing


def run(
    course: Course, rules: Rules, before: Standing, *, since_first: bool = False
) -> Ran:
    """Runs every machine over its rows; each has one row at least, and machines are numbered from 0 without gaps.

    What is in is so since the row that let it in; with `since_first` since the first IN of those in a row that did.
    """
    of = course.machine
    machines = np.arange(len(before.since))
    first = np.searchsorted(of, machines)
    last = np.searchsorted(of, machines, side="right") - 1
    ins = _in_a_row(course, IN, first, before, ~before.is_in)
    outs = _in_a_row(course, OUT, first, before, before.is_in)
    enters = _long_enough(course, ins, rules.enter_fixes[of], rules.enter_us[of])
    exits = _long_enough(course, outs, rules.exit_fixes[of], rules.exit_us[of])
    exits |= course.code == END
    is_in = _last_says(enters, enters | exits, first[of], before.is_in[of])
    was_in = shifted(is_in, first=False)
    was_in[first] = before.is_in
    enters &= ~was_in
    exits &= was_in
    entered = last_set(enters)
    is_new = entered >= first[of]
    begun = (ins.since if since_first else course.ts)[entered]
    since = np.where(is_new, begun, before.since[of])
    after = _standing(is_in, since, ins, outs, last)
    return Ran(
        was_in=was_in,
        is_in=is_in,
        enters=enters,
        exits=exits,
        since=since,
        after=after,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _InARow:
    """Of each row: how many rows up to it have the same code without a break, and when the first of them was."""

    count: np.ndarray
    since: np.ndarray


def _in_a_row(
    course: Course, code: int, first: np.ndarray, before: Standing, carries: np.ndarray
) -> _InARow:
    """How many rows in a row have a code; machines that `carries` says go on counting from before."""
    place, start = np.arange(len(course.code)), first[course.machine]
    breaks = last_set(course.code != code)
    is_unbroken = breaks < start
    begins = np.where(is_unbroken, start, breaks + 1)
    count = place + 1 - begins
    earlier = np.where(carries, before.against, 0)[course.machine]
    goes_on = is_unbroken & (earlier > 0)
    since = np.where(
        goes_on,
        before.against_since[course.machine],
        course.ts[np.minimum(begins, len(place) - 1)],
    )
    return _InARow(count=count + np.where(goes_on, earlier, 0), since=since)


def _long_enough(
    course: Course, row: _InARow, fixes: np.ndarray, us: np.ndarray
) -> np.ndarray:
    # Where the code is another one the count is 0, and what stands in `since` says nothing.
    return np.asarray((row.count >= fixes) & (course.ts - row.since >= us))


def _last_says(
    yes: np.ndarray, says: np.ndarray, start: np.ndarray, before: np.ndarray
) -> np.ndarray:
    """What the last row that `says` something said, of the rows from `start` on; what was `before` where none did."""
    last = last_set(says)
    return np.where(last >= start, yes[last], before)


def _standing(
    is_in: np.ndarray,
    since: np.ndarray,
    ins: _InARow,
    outs: _InARow,
    last: np.ndarray,
) -> Standing:
    against = np.where(is_in, outs.count, ins.count)[last]
    against_since = np.where(is_in, outs.since, ins.since)[last]
    return Standing(
        since=np.where(is_in, since, NEVER)[last],
        against=against,
        against_since=np.where(against > 0, against_since, NEVER),
    )
