"""The rows of a whole query, as another one sees them that stands above it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from st_common.query.complaint import Complaint
from st_common.query.plan import Window
from st_common.query.tree.node import Above, Column, excluded, walk
from st_common.query.tree.relational import Project, Told
from st_common.query.tree.spatial import Until
from st_common.query.tree.windows import Recent


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows(Above):
    """What a query has in its answer now. Corrections of it, and what is taken back, are other rows at that time.

    Told          changes of the count
      Group       COUNT(*) for each partner
        Rows      of the query below                     key: object, partner
          Told
            WithLayer
              Source
    """

    at: ClassVar[str] = "stream"
    is_query: ClassVar[bool] = True
    input: Told
    row_columns: tuple[Column, ...] = ()

    @property
    def noun(self) -> str:
        """See `Node`."""
        return "FROM (SELECT ..)"

    @property
    def ticks_itself(self) -> bool:
        """All rows of one time are judged together."""
        return True

    @property
    def key(self) -> tuple[str, ...]:
        """That of the rows below; where these are fixes nobody knows it here."""
        return tuple("row" if name == "fix" else name for name in self.input.key)

    def columns(self) -> tuple[Column, ...]:
        """See `Node`."""
        return self.row_columns

    def refused(self) -> Iterator[Complaint]:
        """Its rows are members, whose columns are as they are now, and that are told by their changes."""
        if self.input.emit != "changes":
            message = f"{self.input.noun} and {self.noun} exclude each other"
            hint = "what stands in parentheses is not told"
            yield Complaint(at="emit", message=message, hint=hint)
        below = list(walk(self.input))
        until = [one for one in below if isinstance(one, Until)]
        yield from excluded(self, until, "the time changes with every fix")
        windows = [one for one in below if isinstance(one, Recent)]
        columns = [one for one in below if windows and isinstance(one, Project)]
        hint = "a window says who is in it, and not where they are now: select none"
        yield from excluded(self, columns, hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lasting(Above):
    """The rows of a query, each for a while longer than it is among them."""

    at: ClassVar[str] = "outer window"
    parts: ClassVar[Mapping[str, str]] = {"window": "window"}
    window: Window

    @property
    def noun(self) -> str:
        """See `Node`."""
        return "WINDOW above rows"

    @property
    def ticks_itself(self) -> bool:
        """Rows grow old by the clock."""
        return True

    def refused(self) -> Iterator[Complaint]:
        """Rows come and go, but none of them is newer than another."""
        settled = [one for one in walk(self.input) if isinstance(one, Settled)]
        hint = "one says when rows begin to count, the other when they cease"
        yield from excluded(self, settled, hint)
        if self.window.seconds is None:
            message = "a window of rows lasts for a time: TUPLES counts fixes"
            yield Complaint(at=self.at, message=message, hint="WINDOW 10 min")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled(Above):
    """The rows of a query that were among them for a while without a break."""

    at: ClassVar[str] = "outer lasting"
    parts: ClassVar[Mapping[str, str]] = {"lasting_s": "lasting_s"}
    lasting_s: float

    @property
    def noun(self) -> str:
        """See `Node`."""
        return "FOR above rows"

    @property
    def ticks_itself(self) -> bool:
        """Rows count by the clock."""
        return True
