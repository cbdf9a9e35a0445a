"""A client of a server, with the interface of a client on a home folder."""

import asyncio
import base64
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import quote

import pyarrow as pa

from st_common.batch.backtest import Backtest
from st_common.client.changes import Change, change_of
from st_common.client.http_events import HttpEvents, raise_for
from st_common.client.interface import (
    QueryId,
    Rectangle,
    Subscription,
    await_done,
    is_about_a_plan,
    is_select,
)
from st_common.client.lease_keeper import LeaseKeeper, lease_s
from st_common.client.put import Fixes, Put, tables_of
from st_common.client.result import (
    ARROW,
    GEOMETRY,
    Result,
    crs_of,
    from_stream,
    to_stream,
)
from st_common.client.tables import HttpTable
from st_common.client.tuples import MultiTuple, multi_tuple
from st_common.errors import ConfigError, QueryError, TransientError
from st_common.position import segment_of
from st_common.query.builder import QueryBuilder
from st_common.query.built import statement_of
from st_common.query.leases import Lease
from st_common.query.passing import passing_name
from st_common.query.plan import Plan
from st_common.query.plan_json import builder_of
from st_common.query.text import to_text

if TYPE_CHECKING:
    import httpx


_TIMEOUT_S = 60.0
_LOOK_S = 0.5
_QUIET_S = 0.5
T = TypeVar("T")


class HttpClient:
    """Does what `interface.Client` says, by a server.

    Args:
        address: of the server, such as http://127.0.0.1:8640.
        token: what the server asks for; None: nothing.
    """

    def __init__(self, address: str, *, token: str | None = None) -> None:
        import httpx

        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(
            base_url=address.rstrip("/"), headers=headers, timeout=_TIMEOUT_S
        )
        self._open: list[HttpSubscription] = []
        self._leases = LeaseKeeper(
            partial(self._about_lease, "PUT"), partial(self._about_lease, "DELETE")
        )

    def register(
        self,
        what: Plan | QueryBuilder | str,
        name: str | None = None,
        *,
        tags: bool = False,
        ephemeral: bool | float = False,
    ) -> "HttpSubscription":
        """See `interface.Client`.

        Raises:
            ConfigError: `tags`, which only a client on a home reads.
        """
        if tags:
            raise ConfigError(
                "tags are read on the home's machine alone", hint="SELECT r.name, .."
            )
        seconds = lease_s(ephemeral)
        params = {} if seconds is None else {"ephemeral": f"{seconds:g}"}
        if isinstance(what, str) and is_select(what):
            own = name or passing_name()
            done = self._json(
                "PUT",
                f"/v1/queries/{quote(own, safe='')}",
                params=params,
                content=what.encode(),
                headers={"If-None-Match": "*", "Content-Type": "text/plain"},
            )
        else:
            text = {"text": _text(what, name)}
            done = self._json("POST", "/v1/queries", params=params, json=text)
        if len(done["queries"]) != 1:
            raise QueryError("expected one statement that registers a query")
        (row,) = done["queries"]
        shown = self._json("GET", f"/v1/queries/{quote(row['name'], safe='')}")
        subscription = HttpSubscription(self._http, shown, row)
        if (given := done.get("lease")) is not None:
            self._leases.keep(Lease(id=given["id"], lease_s=given["lease_s"]))
            subscription.at_end = partial(self._leases.end, given["id"])
        self._open.append(subscription)
        return subscription

    def _about_lease(self, method: str, lease_id: str) -> None:
        self._asked(method, f"/v1/leases/{lease_id}")

    def cancel(self, query: QueryId | Subscription) -> None:
        """See `interface.Client`."""
        name, version = query if isinstance(query, QueryId) else query.id
        path = f"/v1/queries/{quote(name, safe='')}"
        shown = self._json("GET", path)
        if shown["version"] != version:
            raise QueryError(
                f"version {version} of query {name!r} was replaced",
                hint=f"its version is {shown['version']} now",
            )
        self._json("DELETE", path)
        for one in self._open:
            if one.id == (name, version):
                one.close()

    def answer(self, query: str, at: datetime | None = None) -> Result:
        """See `interface.Client`."""
        return self._rows("GET", f"/v1/answers/{quote(query, safe='')}", _at(at))

    def objects(
        self,
        stream: str,
        at: datetime | None = None,
        *,
        inside: Rectangle | None = None,
        nearest: tuple[int, float, float] | None = None,
        where: str | None = None,
    ) -> Result:
        """See `interface.Client`."""
        params = {"stream": stream, **_at(at)}
        if inside is not None:
            params["bbox"] = ",".join(map(str, inside))
        if nearest is not None:
            params["near"] = f"{nearest[1]},{nearest[2]},{nearest[0]}"
        if where is not None:
            params["where"] = where
        return self._rows("GET", "/v1/objects", params)

    def changes(
        self,
        query: str | None = None,
        *,
        stream: str | None = None,
        since: int | None = None,
        seconds: float | None = None,
        until_idle: bool = False,
    ) -> "HttpChanges":
        """See `interface.Client`; one of query and stream must be said."""
        if query is None and stream is None:
            raise ConfigError("changes of a query, or of a stream", hint="stream=..")
        path = f"/v1/streams/{quote(stream or '', safe='')}/changes"
        if query is not None:
            path = f"/v1/changes/{quote(query, safe='')}"
            self._json("GET", f"/v1/queries/{quote(query, safe='')}")  # is there one
        events = HttpEvents(self._http, path, 0 if since is None else since)
        is_idle = self._is_idle if until_idle else _never
        return HttpChanges(events, seconds=seconds, is_idle=is_idle)

    def put(self, stream: str, fixes: Fixes, *, live: bool = True) -> Put:
        """See `interface.Client`."""
        path = f"/v1/streams/{quote(stream, safe='')}/fixes"
        params = {"live": "true" if live else "false"}
        records, accepted, position = 0, 0, 0
        reasons: Counter[str] = Counter()
        for rows in tables_of(fixes):
            done = self._json(
                "POST",
                path,
                params=params,
                content=to_stream(rows),
                headers={"Content-Type": ARROW, "Idempotency-Key": uuid.uuid4().hex},
            )
            records += done["records"]
            accepted += done["accepted"]
            position = done["position"]
            reasons.update(done.get("reasons", {}))
        return Put(
            records=records,
            accepted=accepted,
            rejected=reasons.total(),
            reasons=dict(reasons),
            end=segment_of(position) + 1,
        )

    def table(self, name: str) -> HttpTable:
        """See `interface.Client`."""
        return HttpTable(name, self._run_text, self._json)

    def _run_text(self, text: str) -> None:
        self._asked("POST", "/v1/queries", json={"text": text})

    def sql(self, text: str) -> Result:
        """See `interface.Client`; at most a million rows."""
        params = {"limit": "1000000"}
        return self._rows("POST", "/v1/sql", params, json={"text": text})

    def backtest(
        self, text: str, stream: str, *, days: int = 30, against: str | None = None
    ) -> Backtest:
        """See `interface.Client`."""
        body = {"text": text, "stream": stream, "against": against, "arrow": True}
        params = {"days": str(days)}
        done = self._json("POST", "/v1/backtest", json=body, params=params)
        parts = {name: _table(done[name]) for name in ("totals", "days", "examples")}
        return Backtest(
            stream=stream,
            since=date.fromisoformat(done["since"]),
            until=date.fromisoformat(done["until"]),
            fixes=done["fixes"],
            seconds=done["seconds"],
            **parts,
        )

    def explain(self, query: str, *, analyze: bool = False) -> list[str]:
        """See `interface.Client`."""
        given: dict[str, Any] = {"params": {"analyze": "true"}} if analyze else {}
        if is_about_a_plan(query):
            done = self._json("POST", "/v1/explain", json={"text": query}, **given)
        else:
            done = self._json("GET", f"/v1/explain/{quote(query, safe='')}", **given)
        lines: list[str] = done["lines"]
        return lines

    def why(
        self,
        query: str,
        object: str,  # noqa: A002 - as the interface calls it
        at: datetime | None = None,
        *,
        partner: str | None = None,
    ) -> dict[str, Any]:
        """See `interface.Client`."""
        params = {"object": object, **_at(at)}
        if partner is not None:
            params["partner"] = partner
        return self._json("GET", f"/v1/why/{quote(query, safe='')}", params=params)

    def verify(self, query: str | None = None) -> list[dict[str, Any]]:
        """See `interface.Client`; longer than the server's `check_s` it does not take."""
        path = "/v1/verify" if query is None else f"/v1/verify/{quote(query, safe='')}"
        done = self._json("POST", path, timeout=None)
        verdicts: list[dict[str, Any]] = done["queries"]
        return verdicts

    def status(self) -> list[dict[str, Any]]:
        """See `interface.Client`."""
        streams: list[dict[str, Any]] = self._json("GET", "/v1/status")["streams"]
        return streams

    def run(self, stream: str, *, timeout_s: float | None = None) -> None:
        """See `interface.Client`."""

        def state() -> dict[str, Any]:
            for one in self.status():
                if one["stream"] == stream:
                    return one
            raise ConfigError(f"there is no stream {stream!r}")

        await_done(state, timeout_s)

    def close(self) -> None:
        """See `interface.Client`."""
        for one in self._open:
            one.close()
        self._leases.close()
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _is_idle(self) -> bool:
        """Whether engines have done all that the logs hold."""
        return all(one["segments_done"] >= one["segments"] for one in self.status())

    def _asked(self, method: str, path: str, **how: Any) -> "httpx.Response":
        """What the server answers.

        Raises:
            FairwayError: what it says was wrong.
            TransientError: it does not answer.
        """
        import httpx

        try:
            response = self._http.request(method, path, **how)
        except httpx.HTTPError as error:
            what = str(error) or type(error).__name__
            raise TransientError(f"{self._http.base_url}: {what}") from None
        raise_for(response)
        return response

    def _json(self, method: str, path: str, **how: Any) -> dict[str, Any]:
        value: dict[str, Any] = self._asked(method, path, **how).json()
        return value

    def _rows(
        self, method: str, path: str, params: Mapping[str, str], **how: Any
    ) -> Result:
        headers = {"Accept": ARROW}
        response = self._asked(method, path, params=params, headers=headers, **how)
        table = from_stream(response.content)
        has_places = GEOMETRY in table.column_names
        return Result(table, crs_of(table) if has_places else None)


class HttpSubscription(Subscription):
    """The changes of one version of a query, as they come; see `interface.Subscription`."""

    def __init__(
        self, client: "httpx.Client", shown: Mapping[str, Any], row: Mapping[str, Any]
    ) -> None:
        self.id = QueryId(shown["name"], shown["version"])
        self.stream: str = shown["stream"]
        self.plan = Plan.from_json(shown["plan"])
        self._client = client
        self._path = f"/v1/queries/{quote(self.id.name, safe='')}"
        path = f"/v1/changes/{quote(self.id.name, safe='')}"
        self._events = HttpEvents(client, path, max(row["position"] - 1, 0))
        self._is_closed = False
        self.at_end: Callable[[], None] | None = None

    @property
    def unreadable(self) -> int:
        """Events that could not be read; they were passed over, and logged."""
        return self._events.unreadable

    @property
    def closed(self) -> bool:
        """See `interface.Subscription`."""
        return self._is_closed

    async def __aiter__(self) -> AsyncIterator[MultiTuple]:
        while (change := await asyncio.to_thread(self.next)) is not None:
            yield change

    def next(self, timeout_s: float | None = None) -> MultiTuple | None:
        """See `interface.Subscription`."""
        end_s = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._is_closed:
            left_s = _LOOK_S if end_s is None else end_s - time.monotonic()
            row = self._events.next(min(left_s, _LOOK_S))
            if row is not None and row["query_version"] == self.id.version:
                return multi_tuple(row, self.plan, {})
            if row is not None and row["query_version"] > self.id.version:
                self.close()
            elif row is None and end_s is not None and time.monotonic() >= end_s:
                return None
            elif row is None and self._has_ended():
                self.close()
        return None

    def close(self) -> None:
        """See `interface.Subscription`."""
        self._is_closed = True
        self._events.close()
        if self.at_end is not None:
            self.at_end()

    def _has_ended(self) -> bool:
        """Whether the query was dropped or replaced, and all its changes are told."""
        import httpx

        try:
            shown = self._client.get(self._path).json()
        except (httpx.HTTPError, ValueError):
            return False  # the server is away
        return bool(shown.get("version") != self.id.version or shown["plan"] is None)


class HttpChanges:
    """Changes in their order; see `interface.ChangeFeed`."""

    def __init__(
        self,
        events: HttpEvents,
        *,
        seconds: float | None,
        is_idle: Callable[[], bool],
    ) -> None:
        self._events, self._is_idle = events, is_idle
        self._end_s = None if seconds is None else time.monotonic() + seconds
        self._is_over = False

    @property
    def unreadable(self) -> int:
        """Events that could not be read; they were passed over, and logged."""
        return self._events.unreadable

    def __iter__(self) -> Iterator[Change]:
        while (change := self._next()) is not None:
            yield change

    async def __aiter__(self) -> AsyncIterator[Change]:
        while (change := await asyncio.to_thread(self._next)) is not None:
            yield change

    def close(self) -> None:
        """See `interface.ChangeFeed`."""
        self._is_over = True
        self._events.close()

    def _next(self) -> Change | None:
        """The next change; None: no more will come."""
        while not self._is_over:
            is_idle = self._is_idle()  # before looking: what was told by then comes
            row = self._events.next(_QUIET_S)
            if row is not None:
                return change_of(row)
            is_late = self._end_s is not None and time.monotonic() >= self._end_s
            if is_idle or is_late:
                self.close()
        return None


def _never() -> bool:
    return False


def _at(at: datetime | None) -> dict[str, str]:
    return {} if at is None else {"at": at.astimezone(UTC).isoformat()}


def _text(what: Plan | QueryBuilder | str, name: str | None) -> str:
    """A statement that registers a query."""
    own = name or passing_name()
    if not isinstance(what, str):
        built, places = builder_of(what)
        statement = statement_of(built, own, places=places)
        assert statement.plan is not None  # noqa: S101 - a builder has one
        return to_text(statement.plan, own)
    return what


def _table(text: str) -> pa.Table:
    return from_stream(base64.b64decode(text))
