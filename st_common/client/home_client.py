"""A client on a home folder of this machine: registers queries while streams run, and gives what they say."""

import getpass
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from st_common.answers.follow import POLL_S
from st_common.answers.history import NearestTo, objects_at
from st_common.answers.json_rows import json_line
from st_common.answers.member_places import placed_answer
from st_common.answers.object_conditions import condition_of
from st_common.answers.sql import sql
from st_common.answers.stream_state import state_of
from st_common.batch.asking import asked
from st_common.batch.backtest import Backtest, backtest
from st_common.client.changes import Changes
from st_common.client.interface import (
    QueryId,
    Rectangle,
    Subscription,
    await_done,
    is_about_a_plan,
    is_select,
)
from st_common.client.lease_keeper import LeaseKeeper, lease_s
from st_common.client.put import Fixes, Put, put
from st_common.client.registration import Registration
from st_common.client.result import Result, placed
from st_common.client.tables import HomeTable
from st_common.config.environment import conf_dir, home_dir
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import Streams, stream_of
from st_common.engine.carrying_out import carry_out, drop
from st_common.errors import QueryError
from st_common.query.area_store import HomeAreas
from st_common.query.builder import QueryBuilder
from st_common.query.built import statement_of
from st_common.query.control import QueryRow
from st_common.query.created_streams import (
    add_created,
    created_streams,
    known_streams,
)
from st_common.query.grammar.words import quoted
from st_common.query.leases import Lease, end_lease, leasing, renew_lease
from st_common.query.lookup import find, queries
from st_common.query.parameter_table import table_of
from st_common.query.passing import passing_name
from st_common.query.plan import Plan
from st_common.query.plan_json import builder_of
from st_common.query.registry import fitted
from st_common.query.relations import source_of
from st_common.query.table_rows import TableHome
from st_common.query.text import Statement, parse, select_of
from st_common.query.tried import tried_plans
from st_common.regions.registry import Box


class HomeClient:
    """Does what `interface.Client` says, on a home folder (SPEC B14).

    Example:
        with HomeClient(home).register("SELECT * FROM taxis WHERE speed > 30") as changes:
            for change in changes:
                print(change.sign, change.element.object)

    Args:
        home: the home folder; else the one that FAIRWAY_HOME names.
        streams: the settings of the streams; else those in FAIRWAY_CONF, HOME/conf or ./conf.
        owner: who registers; else the user of this process.
        poll_s: how long to wait before looking for new changes again.
    """

    def __init__(
        self,
        home: Home | Path | str | None = None,
        *,
        streams: Mapping[str, StreamSettings] | None = None,
        owner: str | None = None,
        poll_s: float = POLL_S,
    ) -> None:
        self._home = home if isinstance(home, Home) else Home(home_dir(home))
        self._given = streams
        self._streams = self._known_streams()
        self._owner = getpass.getuser() if owner is None else owner
        self._poll_s = poll_s
        self._open: list[Registration] = []
        self._leases = LeaseKeeper(
            partial(renew_lease, self._home), partial(end_lease, self._home)
        )

    def register(
        self,
        what: Plan | QueryBuilder | str,
        name: str | None = None,
        *,
        tags: bool = False,
        ephemeral: bool | float = False,
    ) -> Registration:
        """Registers a plan, a builder's plan or a text, and gives what follows its changes from there on.

        Args:
            what: a plan or builder; or a text, SELECT .. alone or one statement that registers or replaces a query, or
                creates a stream of one.
            name: the query's name; without one a statement's own counts, and else one is made.
            tags: read the kind and the tags of features that a join pairs with.
            ephemeral: see `interface.Client`.

        Raises:
            QueryError: a name that is taken, an unknown stream or layer, a plan that cannot be; nothing is registered.
        """
        statements = [self._statement(what, name)]
        with leasing(self._home, lease_s(ephemeral)) as lease:
            (registration,) = self._registered(statements, tags=tags, lease=lease)
        if lease is not None:
            self._leases.keep(lease)
            registration.at_end(partial(self._leases.end, lease.id))
        return registration

    def register_all(
        self, text: str, params: Iterable[Mapping[str, Any]]
    ) -> list[Registration]:
        """Registers one text for many values, all or none, and gives what follows the changes of each query.

        Example:
            client.register_all(
                "REGISTER QUERY near_$id AS SELECT * FROM taxis INSIDE CIRCLE ($x, $y, $r m)",
                params=[{"id": 7, "x": -8.61, "y": 41.1, "r": 500}, {"id": 8, "x": -8.6, "y": 41.2, "r": 80}],
            )

        Args:
            text: statements that register or replace queries; those with parameters are carried out for each row.
            params: rows with the same keys: finite numbers, texts, True and False.

        Returns:
            One for each query, in the order of the statements, and of the rows of each.

        Raises:
            QueryError: what is wrong, with its place in the text, or the row and the key; nothing is registered.
        """
        areas, table = self._areas(), table_of(params)
        statements = parse(text, areas=areas, params=table)
        if any(one.plan is None for one in statements):
            hint = "REGISTER QUERY name_$1 AS SELECT ..."
            raise QueryError("expected statements that register queries", hint=hint)
        return self._registered(statements)

    def ask(self, text: str) -> pa.Table:
        """The answer of a SELECT .. [AS OF 'T' | BETWEEN 'T1' AND 'T2'], from archived fixes, or FROM a layer.

        Example:
            HomeClient(home).ask("SELECT * FROM taxis INSIDE (0, 0, 5, 5) AS OF '2024-05-01T12:00:00Z'")

        Args:
            text: one statement.

        Returns:
            Who was in then: `object`, `partner`, `since_ts`, `value`, `fields`; of an interval the stays in it:
            `object`, `partner`, `from_ts`, `to_ts`, `value`, `cause_in`, `cause_out`, `fields`. `fields` has the
            columns and values that the query selects, as a JSON object.

        Raises:
            QueryError: another statement, what is wrong with it, or a time to which the stream has not come.
            FairwayError: fixes that the answer follows from were purged.
        """
        statements = parse(text, areas=self._areas())
        self._require_known(statements)
        known, _ = fitted(self._home, self._streams, statements)
        asked_for = known[0] if len(known) == 1 else None
        if asked_for is None or asked_for.op != "ask" or asked_for.plan is None:
            hint = "SELECT * FROM stream INSIDE .. AS OF '2024-05-01T12:00:00Z'"
            raise QueryError("expected one SELECT that stands alone", hint=hint)
        stream = source_of(self._home, self._streams, asked_for.plan)
        return pa.concat_tables(
            asked(self._home, stream, asked_for.plan, asked_for.past)
        )

    def cancel(self, query: QueryId | Subscription) -> None:
        """Drops a query, and ends the iteration of its registrations in this client at once.

        Args:
            query: its name and version, or what `register` gave.

        Raises:
            QueryError: no such query is registered, or a newer version of it; that one stays.
        """
        name, version = query if isinstance(query, tuple) else query.id
        row = find(self._home, name)
        if row.live and row.version != version:
            hint = f"its id is ({name!r}, {row.version}) now"
            raise QueryError(
                f"version {version} of query {name!r} was replaced", hint=hint
            )
        drop(self._home, name)
        for registration in self._open:
            if registration.id == (name, version):
                registration.close()

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

    def table(self, name: str) -> HomeTable:
        """See `interface.Client`."""
        tables = TableHome(
            home=self._home,
            conf=conf_dir(self._home.root),
            streams=self._known_streams,
        )
        return HomeTable(name, self._run_text, tables)

    def _run_text(self, text: str) -> None:
        statements = parse(text, areas=HomeAreas(self._home))
        carry_out(self._home, self._known_streams(), statements, owner=self._owner)

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
        given = parse(text, areas=self._areas())
        self._require_known(given)
        known, _ = fitted(self._home, self._streams, given)
        if len(known) != 1 or known[0].plan is None:
            raise QueryError("one query is explained at a time")
        return known[0].name, known[0].plan

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

    def _known_streams(self) -> Mapping[str, StreamSettings]:
        """The streams that were given, else those of the settings; beside them those of CREATE STREAM as of now."""
        if self._given is None:
            return known_streams(self._home, conf_dir(self._home.root))
        streams = Streams(self._given)
        for name, table in created_streams(self._home).items():
            add_created(streams, name, table)
        return streams

    def _require_known(self, statements: Sequence[Statement]) -> None:
        """Looks for streams again where statements name another one: somebody may have created it."""
        named = {one.plan.stream for one in statements if one.plan is not None}
        if not named <= self._streams.keys():
            self._streams = self._known_streams()

    def _registered(
        self,
        statements: Sequence[Statement],
        *,
        tags: bool = False,
        lease: Lease | None = None,
    ) -> list[Registration]:
        """Registers queries, and gives what follows the changes of each."""
        self._open = [each for each in self._open if not each.closed]
        registrations = [
            Registration(self._home, row, tags=tags, poll_s=self._poll_s)
            for row in self._rows_of(statements, lease)
        ]
        self._open += registrations
        return registrations

    def _rows_of(
        self, statements: Sequence[Statement], lease: Lease | None
    ) -> list[QueryRow]:
        """Registers queries, and gives the row of each."""
        self._require_known(statements)
        done = carry_out(
            self._home, self._streams, statements, owner=self._owner, lease=lease
        )
        rows = list(done.outcome.rows)
        if len(rows) == len(statements):
            return rows
        written = {row.name.casefold(): row for row in rows}
        # What IF NOT EXISTS left as it is, is followed from where it was registered.
        return [
            written.get(one.name.casefold()) or find(self._home, one.name)
            for one in statements
        ]

    def _statement(
        self, what: Plan | QueryBuilder | str, name: str | None
    ) -> Statement:
        if not isinstance(what, str):
            built, places = builder_of(what)
            return statement_of(built, name or passing_name(), places=places)
        if is_select(what):
            # Errors point into what was given, not into the statement that is made of it.
            given = [select_of(what, areas=self._areas())]
            self._require_known(given)
            fitted(self._home, self._streams, given)
            return self._one(
                f"REGISTER QUERY {quoted(name or passing_name())} AS {what}"
            )
        statement = self._one(what)
        if name not in (None, statement.name):
            hint = "leave one of them out"
            raise QueryError(
                f"the text calls the query {statement.name!r}, not {name!r}", hint=hint
            )
        return statement

    def _areas(self) -> HomeAreas:
        """What a text may name."""
        return HomeAreas(self._home, lambda: self._streams)

    def _one(self, text: str) -> Statement:
        statements = parse(text, areas=self._areas())
        if len(statements) != 1 or statements[0].plan is None:
            hint = "SELECT ..., or REGISTER QUERY name AS SELECT ..."
            raise QueryError("expected one statement that registers a query", hint=hint)
        return statements[0]

    def _stream(self, name: str) -> StreamSettings:
        """The settings of a stream, looked for again where it is not known: somebody may have created it."""
        if name not in self._streams:
            self._streams = self._known_streams()
        return stream_of(self._streams, name)

    def _plans(self, text: str, stream: str) -> Mapping[str, Plan]:
        statements = parse(text, areas=self._areas())
        known, _ = fitted(self._home, self._streams, statements)
        return tried_plans(known, stream)


def _as_json(value: Mapping[str, Any]) -> dict[str, Any]:
    """A value as it comes by HTTP: times are texts."""
    told: dict[str, Any] = json.loads(json_line(value))
    return told
