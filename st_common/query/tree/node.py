"""What every operator of a query says of itself: its inputs, what its rows are, when they change, what it refuses."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from st_common.query.complaint import Complaint


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a node's rows: its type in DuckDB, its unit ("" for none), and whether it may be null."""

    name: str
    type: str
    unit: str = ""
    nullable: bool = True


EVENT = (
    Column(name="cause", type="VARCHAR", nullable=False),
    Column(name="value", type="DOUBLE", unit="s"),
    Column(name="x", type="DOUBLE", nullable=False),
    Column(name="y", type="DOUBLE", nullable=False),
)
"""What a row of changes says of an event: which, how long the visit or the incident has lasted, and where."""


def beside(columns: Iterable[Column], more: Iterable[Column]) -> tuple[Column, ...]:
    """The columns, and those of `more` that have names of their own."""
    known = tuple(columns)
    names = {one.name for one in known}
    return (*known, *(one for one in more if one.name not in names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Node(ABC):
    """An operator. `at` is the clause that errors about it point at."""

    at: ClassVar[str]
    parts: ClassVar[Mapping[str, str]] = {}
    """The parts of a plan that it says, each with the field that has it."""
    only_selects: ClassVar[bool] = False
    """Whether its rows are objects by their last fix: those of its input, or some of them."""
    by_boxes: ClassVar[bool] = False
    """Whether it judges a box around each fix in place of the point."""
    gives_events: ClassVar[bool] = False
    """Whether its rows are events, which are told once; else they are members, which stay until they leave."""
    of_fixes: ClassVar[bool] = False
    """Whether it asks for what fixes alone have: a place, a time, an order. Else it can stand above rows of a query."""
    takes_events: ClassVar[bool] = False
    """Whether it can stand above events."""
    is_query: ClassVar[bool] = False
    """Whether its rows are those of a whole query, of which whoever stands above knows no more than key and columns."""
    tells_every: ClassVar[bool] = False
    """Whether its events have a beginning and an end, so that EMIT EVERY tells what goes on."""

    @property
    @abstractmethod
    def noun(self) -> str:
        """What the operator is called in errors, as in `KNN and JOIN exclude each other`."""

    @property
    @abstractmethod
    def inputs(self) -> "tuple[Node, ...]":
        """The operators whose rows it takes, two at most; the first is the one that it hands on."""

    @property
    @abstractmethod
    def key(self) -> tuple[str, ...]:
        """What tells a row from all others: columns, or expressions over those of its input; empty for one row."""

    @abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """The columns of its rows."""

    def event_columns(self) -> "tuple[Column, ...]":
        """What its events have beside the columns of its input."""
        return ()

    @property
    def ticks_itself(self) -> bool:
        """Whether its answer changes at ticks though no fix comes, or needs several objects at one time."""
        return False

    @property
    def has_extent(self) -> bool:
        """Whether its rows are where a box is, which an operator below has enlarged; else where a point is."""
        return any(node.has_extent for node in self.inputs)

    @property
    def by_ticks(self) -> bool:
        """Whether its rows change at ticks of event time; else fix by fix."""
        return self.ticks_itself or any(node.by_ticks for node in self.inputs)

    def fields(self) -> dict[str, Any]:
        """What of a plan the node says, by the plan's parts."""
        return {part: getattr(self, name) for part, name in self.parts.items()}

    def refused(self) -> Iterator[Complaint]:
        """Why it cannot stand where it does; nothing where it can."""
        return iter(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Above(Node):
    """An operator above one other, whose key and columns it hands on."""

    input: Node

    @classmethod
    def above(cls, rows: Node, said: Mapping[str, Any], source: Node) -> Self:  # noqa: ARG003 - a join takes it
        """The operator above rows, with its parts of what was `said`; `source` are all objects of the stream."""
        return cls(input=rows, **{name: said[part] for part, name in cls.parts.items()})

    @property
    def inputs(self) -> tuple[Node, ...]:
        """See `Node`."""
        return (self.input,)

    @property
    def key(self) -> tuple[str, ...]:
        """See `Node`."""
        return self.input.key

    def columns(self) -> tuple[Column, ...]:
        """See `Node`."""
        return self.input.columns()


def walk(node: Node) -> Iterator[Node]:
    """The nodes of a query from the bottom up, inputs before what stands above them, the first input first.

    Where a query is above the rows of another one its nodes begin with these rows; `walk_all` gives those below too.
    """
    for below in () if node.is_query else node.inputs:
        yield from walk(below)
    yield node


def walk_all(node: Node) -> Iterator[Node]:
    """All nodes of a tree from the bottom up, as `walk`."""
    for below in node.inputs:
        yield from walk_all(below)
    yield node


def complaints_of_tree(tree: Node) -> Iterator[Complaint]:
    """Why operators of a tree cannot stand where they do, from the bottom up."""
    for node in walk_all(tree):
        yield from _above_events(node)
        yield from node.refused()


def _above_events(node: Node) -> Iterator[Complaint]:
    """That an operator wants members and stands above events."""
    if node.takes_events:
        return
    below = (one for each in node.inputs for one in walk(each))
    events = [one for one in below if one.gives_events]
    yield from excluded(node, events, "register one query for each")


def excluded(node: Node, others: Iterable[Node], hint: str) -> Iterator[Complaint]:
    """That a node and each of the others exclude each other."""
    for other in others:
        message = f"{node.noun} and {other.noun} exclude each other"
        yield Complaint(at=node.at, message=message, hint=hint)
