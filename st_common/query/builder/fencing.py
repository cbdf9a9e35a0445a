"""DETECT: events at the border of the query's region, or of the features that are joined (SPEC X3)."""

from collections.abc import Sequence
from typing import Self, get_args

from st_common.query.builder.amounts import (
    Amount,
    duration_of,
    fixes_of,
    metres_of,
    whole_of,
)
from st_common.query.builder.refusing import refuse_unless
from st_common.query.builder.step import Step
from st_common.query.fence import Debounce, Event, Fence
from st_common.query.lowering.options import MOST_FIXES
from st_common.query.problem import did_you_mean

InARow = int | str | tuple[int | str, Amount]
"""A number of fixes, a text such as "2 fixes" or "10 s", or both."""


class FenceSteps(Step):
    """A fence at a border: `inside(..)` or a join by place comes first."""

    __slots__ = ()

    def detect(
        self,
        *events: Event,
        dwell: Amount | None = None,
        enter_after: InARow = 1,
        exit_after: InARow = 1,
        hysteresis: Amount = 0,
        max_gap: Amount | None = None,
        restart: bool = False,
    ) -> Self:
        """DETECT: `detect("enter", "exit", dwell="5 min", exit_after="2 fixes", hysteresis="30 m")`.

        Args:
            events: of "enter", "exit", "inside", "outside", "cross".
            dwell: how long a visit lasts when it is told as DWELL; a number is seconds.
            enter_after: how many fixes in a row must be in the region ("2 fixes", or 2), or how much later than the
                first the last of them is ("10 s"), or both: (2, "10 s").
            exit_after: the same for fixes out of it.
            hysteresis: how far from the region a fix must be to speak for an exit; a number is metres.
            max_gap: two fixes that are further apart in time cross nothing; a number is seconds.
            restart: where this fence replaces another at the same border, visits begin anew.

        Raises:
            QueryError: an event that is none or stands there twice, no event, an amount that is none, or another step
                that DETECT excludes.
        """
        step = "detect(..)"
        asked = self._events(events, step)
        fence = Fence(
            events=asked if dwell is None else (*asked, "dwell"),
            dwell_s=None if dwell is None else duration_of(dwell, "a visit", step),
            enter_after=debounce_of(enter_after, step),
            exit_after=debounce_of(exit_after, step),
            hysteresis_m=metres_of(hysteresis, "a hysteresis", step),
            max_gap_s=None if max_gap is None else duration_of(max_gap, "a gap", step),
            restart=restart,
        )
        return self._next(step, fence=fence)

    def _events(self, events: Sequence[str], step: str) -> tuple[Event, ...]:
        known: dict[str, Event] = {
            name: name for name in get_args(Event) if name != "dwell"
        }
        for event in events:
            timed = 'dwell="5 min" is its own argument' if event == "dwell" else ""
            hint = timed or did_you_mean(str(event), known)
            refuse_unless(
                event in known,
                step,
                f"expected one of {', '.join(known)}, not {event!r}",
                hint,
            )
            refuse_unless(
                events.count(event) == 1, step, f"{event!r} stands there twice"
            )
        return tuple(known[event] for event in events)


def debounce_of(row: InARow, step: str) -> Debounce:
    """Fixes in a row, how long they last, or both.

    Raises:
        QueryError: it is none of these.
    """
    if isinstance(row, tuple):
        count, lasting = row
        return Debounce(
            fixes=debounce_of(count, step).fixes,
            seconds=duration_of(lasting, "a row of fixes", step),
        )
    if not isinstance(row, str):
        return Debounce(fixes=whole_of(row, "a number of fixes", MOST_FIXES, step))
    fixes = fixes_of(row, step)
    if fixes is not None:
        return Debounce(fixes=fixes)
    return Debounce(seconds=duration_of(row, "a row of fixes", step))
