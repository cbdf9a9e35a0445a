"""A client on a home folder of this machine."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any, Self

from st_common.answers.history import NearestTo, objects_at
from st_common.answers.json_rows import json_line
from st_common.answers.member_places import placed_answer
from st_common.answers.object_conditions import condition_of
from st_common.answers.sql import sql
from st_common.answers.stream_state import state_of
from st_common.batch.backtest import Backtest, backtest
from st_common.client.changes import Changes
from st_common.client.client import Client, is_about_a_plan
from st_common.client.interface import Rectangle
from st_common.client.put import Fixes, Put, put
from st_common.client.result import Result, placed
from st_common.client.waiting import await_done
from st_common.config.stream import StreamSettings
from st_common.config.streams import stream_of
from st_common.errors import QueryError
from st_common.query.area_store import HomeAreas
from st_common.query.lookup import find, queries
from st_common.query.plan import Plan
from st_common.query.registry import fitted
from st_common.query.text import parse
from st_common.query.tried import tried_plans
from st_common.regions.registry import Box


class HomeClient(Client):
    """Does what `interface.Client` says, on a home folder."""

    def answer(self, query: str, at: datetime | None = None) -> Result:
        """See `interface.Client`."""
        stream = self._stream(find(self._home, query).stream)
        rows = placed_answer(self._home, self._streams, query, at)
        result = placed(rows, stream.crs)
        return Result(result.table.drop_columns(["x", "y"]), result.crs)

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
        settings = self._stream(stream)
        box = None if inside is None else Box.of_corners(*inside)
        to = (
            None
            if nearest is None
            else NearestTo(k=nearest[0], x=nearest[1], y=nearest[2])
        )
        condition = None
        if where is not None:
            known = self._known_streams()
            condition = condition_of(self._home, known, stream, where)
        seen = objects_at(
            self._home, settings, at, inside=box, nearest=to, where=condition
        )
        return placed(seen.rows, settings.crs)

    def changes(
        self,
        query: str | None = None,
        *,
        stream: str | None = None,
        since: int | None = None,
        seconds: float | None = None,
        until_idle: bool = False,
    ) -> Changes:
        """See `interface.Client`."""
        return Changes(
            self._home,
            query,
            stream=None if stream is None else self._stream(stream).name,
            since=since,
            seconds=seconds,
            until_idle=until_idle,
            poll_s=self._poll_s,
        )

    def put(self, stream: str, fixes: Fixes, *, live: bool = True) -> Put:
        """See `interface.Client`."""
        return put(self._home, self._stream(stream), fixes, live=live)

    def sql(self, text: str) -> Result:
        """See `interface.Client`."""
        return Result(sql(self._home, text, self._known_streams))

    def backtest(
        self, text: str, stream: str, *, days: int = 30, against: str | None = None
    ) -> Backtest:
        """See `interface.Client`."""
        settings = self._stream(stream)
        old = None if against is None else self._plans(against, stream)
        plans = self._plans(text, stream)
        return backtest(self._home, settings, plans, days=days, against=old)

    def explain(self, query: str, *, analyze: bool = False) -> list[str]:
        """See `interface.Client`."""
        find_plan = self.plan_of_text if is_about_a_plan(query) else self.plan_of_query
        return self.explain_plan(*find_plan(query), analyze=analyze)

    def explain_plan(self, name: str, plan: Plan, *, analyze: bool) -> list[str]:
        """How a plan is carried out, as the lines of a tree; see `explain`."""
        from st_common.answers.estimates import explained, explained_by_counts
        from st_common.query.explain import lines

        explaining = explained_by_counts if analyze else explained
        tree = explaining(self._home, self._stream(plan.stream), name, plan)
        return list(lines(tree))

    def plan_of_query(self, name: str) -> tuple[str, Plan]:
        """The name and the plan of a query that is registered; a QueryError where there is none."""
        row = find(self._home, name)
        if row.plan is None:
            raise QueryError(f"query {row.name!r} was dropped")
        return row.name, row.plan

    def plan_of_text(self, text: str) -> tuple[str, Plan]:
        """The name, "" of a SELECT, and the plan of one statement.

        Raises:
            QueryError: what is wrong with it, or there are several.
        """
        given = parse(text, areas=HomeAreas(self._home))
        self._require_known(given)
        (statement, *more), _ = fitted(self._home, self._streams, given)
        if more or statement.plan is None:
            raise QueryError("one query is explained at a time")
        return statement.name, statement.plan

    def why(
        self,
        query: str,
        object: str,  # noqa: A002 - as the interface calls it
        at: datetime | None = None,
        *,
        partner: str | None = None,
    ) -> dict[str, Any]:
        """See `interface.Client`."""
        from st_common.checks.why import why

        stream = self._streams.get(find(self._home, query).stream)
        reason = why(self._home, query, object, at=at, partner=partner, stream=stream)
        return _as_json(reason.to_json())

    def verify(self, query: str | None = None) -> list[dict[str, Any]]:
        """See `interface.Client`."""
        from st_common.checks.verify import verify

        name = None if query is None else find(self._home, query).name
        rows = queries(self._home)
        streams = {row.stream for row in rows if name in (None, row.name)}
        return [
            _as_json({**asdict(one), "holds": one.holds})
            for stream in sorted(streams)
            for one in verify(self._home, self._stream(stream), name)
        ]

    def status(self) -> list[dict[str, Any]]:
        """See `interface.Client`."""
        self._streams = self._known_streams()
        return [
            _as_json(state_of(self._home, name, wanted=one.running).to_json())
            for name, one in self._streams.items()
        ]

    def run(self, stream: str, *, timeout_s: float | None = None) -> None:
        """See `interface.Client`."""
        from st_common.engine.run import run

        settings = self._stream(stream)
        if not state_of(self._home, stream).is_living:
            run(self._home, settings, until_idle=True)
        await_done(lambda: state_of(self._home, stream).to_json(), timeout_s)

    def close(self) -> None:
        """See `interface.Client`."""
        for registration in self._open:
            registration.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _stream(self, name: str) -> StreamSettings:
        """The settings of a stream, looked for again where it is not known: somebody may have created it."""
        if name not in self._streams:
            self._streams = self._known_streams()
        return stream_of(self._streams, name)

    def _plans(self, text: str, stream: str) -> Mapping[str, Plan]:
        statements = parse(text, areas=HomeAreas(self._home))
        known, _ = fitted(self._home, self._streams, statements)
        return tried_plans(known, stream)


def _as_json(value: Mapping[str, Any]) -> dict[str, Any]:
    """A value as it comes by HTTP: times are texts."""
    told: dict[str, Any] = json.loads(json_line(value))
    return told
