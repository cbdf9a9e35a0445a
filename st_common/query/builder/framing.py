"""CQL-S's windows: which fixes of every object a query looks at (SPEC W2-W5)."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Self

from st_common.query.builder.amounts import (
    Amount,
    duration_of,
    extent_of,
    metres_of,
    number_of,
)
from st_common.query.builder.refusing import refuse_unless
from st_common.query.builder.regions import RegionLike, region_of
from st_common.query.builder.step import Step
from st_common.query.frame import Frame, Sliding


class FrameSteps(Step):
    """Several windows are one after the other: a fix counts that lies in all of them."""

    __slots__ = ()

    def last(self, extent: str, *, every: str | None = None) -> Self:
        """RANGE BY extent, SLIDE BY every: the last "50 km", "10 minutes" or "100 rows" of every object.

        Slides count along any of the three: `last("50 km", every="10 minutes")`.
        """
        step = "last(..)"
        length, slide = (
            extent_of(extent, "the range", step),
            extent_of(every, "the slide", step) if every else None,
        )
        window = Sliding(range=length, slide=slide)
        frame = self.plan.frame or Frame()
        return self._next(step, frame=replace(frame, sliding=(*frame.sliding, window)))

    def session(self, pause: Amount) -> Self:
        """SESSION pause: the fixes of every object since it sent none that count for longer than this."""
        step = "session(..)"
        seconds = duration_of(pause, "a pause", step)
        frame = self.plan.frame or Frame()
        refuse_unless(frame.session_s is None, step, "the query has a session already")
        return self._next(step, frame=replace(frame, session_s=seconds))

    def fixes_in(self, region: RegionLike) -> Self:
        """RANGE BY region: the fixes of every object inside a region that stands still."""
        step = "fixes_in(..)"
        frame = self.plan.frame or Frame()
        regions = (*frame.regions, region_of(region, step, moving=False))
        return self._next(step, frame=replace(frame, regions=regions))

    def full_windows(self, full: bool = True) -> Self:  # noqa: FBT001, FBT002 - a switch of the query
        """A window holds nothing until its whole range lies behind the object."""
        step = "full_windows(..)"
        return self._next(step, frame=replace(self._frame(step), full=bool(full)))

    def min_step(self, distance: Amount) -> Self:
        """A fix nearer than this to the last one that counted adds no distance: a parked object stays where it is."""
        step = "min_step(..)"
        far = metres_of(distance, "a step", step)
        return self._next(step, frame=replace(self._frame(step), min_step_m=far))

    def origin(self, at: datetime | float) -> Self:
        """Where slides of time are counted from: a time with its zone, or seconds since 1970."""
        step = "origin(..)"
        if isinstance(at, datetime):
            refuse_unless(
                at.tzinfo is not None,
                step,
                "the time needs a zone",
                "datetime(2026, 1, 1, tzinfo=UTC)",
            )
            since = at.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
            at = since.days * 86_400 + since.seconds + since.microseconds / 1e6
        seconds = number_of(at, "an origin", step)
        return self._next(step, frame=replace(self._frame(step), origin_s=seconds))

    def _frame(self, step: str) -> Frame:
        frame = self.plan.frame
        refuse_unless(
            frame is not None,
            step,
            "the query has no window",
            'last("50 km", every="10 km") comes first',
        )
        return frame or Frame()
