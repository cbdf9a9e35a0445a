"""What a client can do, wherever what it asks lies: in a home folder of this machine, or behind a server."""

import re
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

from st_common.batch.backtest import Backtest
from st_common.client.changes import Change
from st_common.client.put import Fixes, Put
from st_common.client.result import Result
from st_common.client.tuples import MultiTuple
from st_common.errors import TransientError
from st_common.query.builder import QueryBuilder
from st_common.query.plan import Plan

Rectangle = tuple[float, float, float, float]
_BEHIND = r"(\s|--[^\n]*\n|/\*.*?\*/)*"  # comments
_SELECT = re.compile(rf"{_BEHIND}SELECT\b", re.IGNORECASE | re.DOTALL)
_REGISTERS = re.compile(
    rf"{_BEHIND}(REGISTER|REPLACE)\s+QUERY\b", re.IGNORECASE | re.DOTALL
)
_LOOK_S = 0.2
_GIVEN_UP = ("failed", "bad_config", "crash_loop")


class QueryId(NamedTuple):
    """What a registered query is known by: its name, and its version from 1 on."""

    name: str
    version: int


class Subscription(ABC):
    """The changes of one query from its registration on: `for` blocks until the next, `async for` awaits it.

    It ends when the query is dropped or replaced, by whomever, and at once when it is closed.
    """

    id: QueryId
    stream: str

    @property
    @abstractmethod
    def closed(self) -> bool:
        """Whether no more changes will come."""

    def __iter__(self) -> Iterator[MultiTuple]:
        return self

    def __next__(self) -> MultiTuple:
        change = self.next()
        if change is None:
            raise StopIteration
        return change

    @abstractmethod
    def __aiter__(self) -> AsyncIterator[MultiTuple]: ...

    @abstractmethod
    def next(self, timeout_s: float | None = None) -> MultiTuple | None:
        """The next change; None when none came in this time, or none will come any more. 0 takes what is there."""

    def within(self, seconds: float) -> Iterator[MultiTuple]:
        """The changes that come within so many seconds from now, each as soon as it is there."""
        until_s = time.monotonic() + seconds
        while (change := self.next(max(0.0, until_s - time.monotonic()))) is not None:
            yield change

    @abstractmethod
    def close(self) -> None:
        """Ends the iteration; the query stays registered, unless it is ephemeral."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class ChangeFeed(Protocol):
    """Changes in their order, what is there already first: `for` blocks until the next, `async for` awaits it."""

    def __iter__(self) -> Iterator[Change]: ...

    def __aiter__(self) -> AsyncIterator[Change]: ...

    def close(self) -> None:
        """Ends the iteration; any thread may do it."""


class Table(Protocol):
    """A table or layer, whose rows are features of GeoJSON: dicts; `geometry` None is a row without a place."""

    def create(
        self,
        key: str,
        columns: Sequence[str] = (),
        *,
        versions: int = 1,
        ttl: str | None = None,
        group: str = "default",
    ) -> None:
        """Makes it, as CREATE TABLE does.

        Args:
            key: the column that tells rows.
            columns: further ones; all are texts.
            versions: so many versions of a row stay.
            ttl: how long a row stays after it was put, such as `7 days`; None: for ever.
            group: by whose regions it is spread.

        Raises:
            QueryError: there is one of this name, or it cannot be.
        """

    def drop(self) -> None:
        """Drops it, as DROP TABLE does.

        Raises:
            QueryError: there is none, or a query joins it.
        """

    def put(self, *rows: Mapping[str, Any]) -> dict[str, Any]:
        """Puts rows, each over the one of the same key, in one commit; running queries tell what that changes.

        Returns:
            `table`, `version`, `rows` (how many), and `streams` that were told.

        Raises:
            FairwayError: a row is none, has no key, a column that the table does not have, or a geometry that cannot be
                used; two have the same key. Nothing is put.
        """

    def delete(self, key: str) -> dict[str, Any]:
        """Deletes the row of a key; gives what `put` gives.

        Raises:
            FairwayError: there is none.
        """

    def get(self, key: str) -> list[dict[str, Any]]:
        """The row of a key, then older versions that the table keeps; [] where there is none.

        Each has `put_at`, and `deleted` where that was a delete.
        """

    def in_rectangle(self, box: Rectangle) -> dict[str, Any]:
        """The rows whose shapes meet a rectangle, as a FeatureCollection, with `files_read` of `files`."""

    def joined(self, other: str, box: Rectangle) -> dict[str, Any]:
        """The `pairs` of keys of rows of this table and of another that meet in a rectangle, and the rows of both.

        Returns:
            `pairs`, the features `left` and `right` that are in some, and `files_read` of `files`.
        """


class Client(Protocol):
    """Registers queries, asks for answers and follows changes; engines of the streams run elsewhere (`fairway run`).

    All errors of wrong use are `FairwayError`: what was wrong and where, with a hint what to do.
    """

    def register(
        self,
        what: Plan | QueryBuilder | str,
        name: str | None = None,
        *,
        tags: bool = False,
        ephemeral: bool | float = False,
    ) -> Subscription:
        """Registers a query and follows its changes from there on.

        Args:
            what: a plan or builder; or a text, SELECT .. alone or one statement that registers or replaces a query.
            name: the query's name; without one a statement's own counts, and else one is made.
            tags: read the kind and the tags of features that a join pairs with.
            ephemeral: the query ends with its subscription, its client or this process, also one that is killed: it is
                dropped once nobody has renewed its lease for 30 s, or for so many seconds. The client renews it.

        Raises:
            QueryError: a name that is taken, an unknown stream or layer, a plan that cannot be; nothing is registered.
        """

    def cancel(self, query: QueryId | Subscription) -> None:
        """Drops a query, and ends its subscriptions in this client at once.

        Raises:
            QueryError: no such query is registered, or a newer version of it; that one stays.
        """

    def answer(self, query: str, at: datetime | None = None) -> Result:
        """Who is in the answer of a query, and where each was last.

        Args:
            query: its name; it may be dropped since.
            at: what happened up to then counts, with a time zone; None: all.

        Returns:
            Rows by object and partner: `object`, `partner`, `since_ts`, `value`, `fields` (JSON), and `geometry`: the
            last fix of the object up to then, null for a group of an aggregate.

        Raises:
            QueryError: no query was ever registered by that name.
            FairwayError: what the answer follows from was purged.
        """

    def objects(
        self,
        stream: str,
        at: datetime | None = None,
        *,
        inside: Rectangle | None = None,
        nearest: tuple[int, float, float] | None = None,
        where: str | None = None,
    ) -> Result:
        """Where the objects of a stream are, or were at a time, each by its last fix up to then.

        Args:
            stream: its name.
            at: the time, with a time zone; None: the largest event time that is archived.
            inside: x1, y1, x2, y2 in the stream's coordinates: only objects in this rectangle, whose border is in it.
            nearest: k, x, y: of those only the k nearest to a point, nearest first.
            where: a condition over attributes, as behind WHERE: only objects of whose last fix it holds.

        Returns:
            `object`, `event_ts`, `x`, `y`, `geometry`, by object; with `nearest` also `distance`: metres on longitude
            and latitude, else the unit of the coordinates.

        Raises:
            ConfigError: there is no such stream.
            QueryError: nothing of the stream was archived yet, or the condition is wrong.
        """

    def changes(
        self,
        query: str | None = None,
        *,
        stream: str | None = None,
        since: int | None = None,
        seconds: float | None = None,
        until_idle: bool = False,
    ) -> ChangeFeed:
        """The changes of answers, what is there already first, then as they are committed.

        Args:
            query: only of this query; None: of all.
            stream: only of queries on this stream; None: of all.
            since: only behind this position of the log, such as the last one that you have.
            seconds: ends after this time; None: never by itself.
            until_idle: ends when engines have done all that the logs hold.

        Raises:
            QueryError: no query was ever registered by that name.
        """

    def put(self, stream: str, fixes: Fixes, *, live: bool = True) -> Put:
        """Puts fixes into a stream's log, and says how many can be read. What was put is on the disk.

        Args:
            stream: its name; its format is ndjson, or csv with a header.
            fixes: an Arrow table, or mappings, with the columns that the stream's settings name; a time is what the
                settings say, or a datetime with a zone.
            live: they are told as they happen, so that time goes on after them; False for the past.

        Raises:
            ConfigError: there is no such stream, its format cannot be written, a column is missing or has values of
                several types, or no row can be read. Of the rows before it whole twenty thousands may be put.
        """

    def table(self, name: str) -> Table:
        """A table or layer by its name; one that does not exist yet can be created."""

    def sql(self, text: str) -> Result:
        """The result of one SELECT over the tables: `changes`, `visits`, `positions_S` .. ; SHOW TABLES names them.

        Raises:
            QueryError: the text is no SELECT, or is refused.
        """

    def backtest(
        self, text: str, stream: str, *, days: int = 30, against: str | None = None
    ) -> Backtest:
        """What queries would have told on the last days that are closed. Nothing is written or registered.

        Args:
            text: statements that register queries on the stream.
            stream: its name.
            days: how many days; fewer where the stream is younger.
            against: statements with older versions of them, compared by name.

        Raises:
            ConfigError: the stream never ran, no day is closed, or there is another statement.
            QueryError: what is wrong with the text.
        """

    def explain(self, query: str, *, analyze: bool = False) -> list[str]:
        """How a query is carried out, as the lines of a tree.

        Args:
            query: the name of one that is registered, or a SELECT, or a statement that registers one.
            analyze: it runs over the archived fixes, and what goes through each step is counted.

        Raises:
            QueryError: no such query is registered, or what is wrong with the SELECT.
        """

    def why(
        self,
        query: str,
        object: str,  # noqa: A002 - what it is called everywhere else
        at: datetime | None = None,
        *,
        partner: str | None = None,
    ) -> dict[str, Any]:
        """Why an object, or a group, came into an answer or left it: its newest change, with the fix that caused it.

        Args:
            query: its name.
            object: the object, or the group.
            at: the newest change up to then, with a time zone; None: the newest.
            partner: only changes with this partner.

        Returns:
            `sentence` says it in words; `change`, `fix`, `joined` and others are what it follows from, as JSON values.

        Raises:
            QueryError: no query was ever registered by that name, or the object never was in its answer.
        """

    def verify(self, query: str | None = None) -> list[dict[str, Any]]:
        """Answers checked by brute force over the archived fixes, one query after the other.

        Args:
            query: only its answer; None: those of all queries.

        Returns:
            By query: `holds`, how many rows are `missing`, `extra` or `misplaced`, and `unchecked`: why it could not be
            checked, if so.

        Raises:
            QueryError: there is no such query.
            TransientError: nothing is archived yet.
        """

    def status(self) -> list[dict[str, Any]]:
        """Each stream: its `state`, how far it is (`segments`, `segments_done`), its counts and its sources."""

    def run(self, stream: str, *, timeout_s: float | None = None) -> None:
        """Waits until all that a stream's log holds is evaluated and committed.

        On a home this process evaluates it where no engine does; behind a server its engines do.

        Args:
            stream: its name.
            timeout_s: how long to wait for an engine; None: as long as it takes.

        Raises:
            ConfigError: there is no such stream.
            TransientError: the engine was given up, or the time is over.
        """

    def close(self) -> None:
        """Ends all subscriptions of this client; queries stay registered."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


def is_select(text: str) -> bool:
    """Whether a text is a SELECT alone, behind whatever comments."""
    return _SELECT.match(text) is not None


def is_about_a_plan(text: str) -> bool:
    """Whether a text is a SELECT, or registers one: not the name of a query."""
    return is_select(text) or bool(_REGISTERS.match(text))


def await_done(
    state_of: Callable[[], Mapping[str, Any]], timeout_s: float | None
) -> None:
    """Returns once a stream has evaluated all that its log holds.

    Args:
        state_of: tells how it is, as `Client.status` does.
        timeout_s: how long to wait; None: as long as it takes.

    Raises:
        TransientError: its engine was given up, or the time is over.
    """
    end_s = None if timeout_s is None else time.monotonic() + timeout_s
    while (state := state_of())["segments_done"] < state["segments"]:
        done = f"{state['segments_done']} of {state['segments']} segments of {state['stream']!r} are evaluated"
        if state["state"] in _GIVEN_UP:
            raise TransientError(f"{done}, and its engine ended: {state['why']}")
        if end_s is not None and time.monotonic() >= end_s:
            raise TransientError(f"{done} after {timeout_s:g} s")
        time.sleep(_LOOK_S)
