"""Operators about time and ways: windows of time and of count (PLACE), windows along a way (CQL-S)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from st_common.query.complaint import Complaint
from st_common.query.frame import Frame
from st_common.query.plan import Window
from st_common.query.tree.node import Above, Column, Node, excluded, walk
from st_common.query.tree.spatial import WithObjects, keeping_all


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent(Above):
    """Objects as long as one of their fixes that qualified is in the window."""

    at: ClassVar[str] = "window"
    parts: ClassVar[Mapping[str, str]] = {"window": "window"}
    of_fixes: ClassVar[bool] = True
    window: Window

    @property
    def noun(self) -> str:
        """See `Node`."""
        return "WINDOW"

    @property
    def ticks_itself(self) -> bool:
        """Fixes grow old by the clock."""
        return True

    def refused(self) -> Iterator[Complaint]:
        """Its fixes qualified at their own time: what is judged at ticks says nothing of one fix."""
        hint = "a window counts fixes that qualified at their own time; rows() lets it stand above rows"
        others = [one for one in walk(self.input) if one.ticks_itself]
        yield from excluded(self, others, hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Travelled(Above):
    """The fixes of each object in its windows along its way, by time or by count, and in regions."""

    at: ClassVar[str] = "frame"
    parts: ClassVar[Mapping[str, str]] = {"frame": "frame"}
    of_fixes: ClassVar[bool] = True
    frame: Frame

    @property
    def noun(self) -> str:
        """See `Node`."""
        return "a window in brackets"

    @property
    def key(self) -> tuple[str, ...]:
        """Its rows are fixes, not objects."""
        return ("object", "fix")

    @property
    def ticks_itself(self) -> bool:
        """Windows move at ticks."""
        return True

    def columns(self) -> tuple[Column, ...]:
        """Those of a fix, and its time, which names it."""
        fix = Column(name="fix", type="TIMESTAMP", nullable=False)
        return (*self.input.columns(), fix)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting(Above):
    """The rows of those objects that are in an answer now (`who`): fixes in windows of objects that count."""

    at: ClassVar[str] = "frame"
    only_selects: ClassVar[bool] = True
    who: Node

    @property
    def noun(self) -> str:
        """See `Node`."""
        return "a window in brackets"

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The rows, and who counts."""
        return self.input, self.who

    def refused(self) -> Iterator[Complaint]:
        """Whether an object counts is asked of it alone, not of pairs of objects."""
        for one in (one for one in walk(self.who) if isinstance(one, WithObjects)):
            message = f"{one.noun} and {self.noun} exclude each other"
            hint = "register one query for each"
            yield Complaint(at=one.at, message=message, hint=hint)
        hint = "it leaves no object out: say who counts by JOIN"
        yield from excluded(self, keeping_all(walk(self.who)), hint)
