"""Carries out statements: what they register, drop and create, in a whole home, all of them or none.

A registration is control rows in the logs, so that its place among the fixes is the same for every engine and every
replay. What is registered now is the fold of those rows (`lookup`); the Delta table `queries` is made from them
(`derived`).
"""

import time
from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from st_common.config.home import Home
from st_common.config.streams import Streams, broken_of
from st_common.errors import ConfigError, QueryError
from st_common.log.log import Log
from st_common.query.area_store import FILE as AREAS
from st_common.query.area_store import HomeAreas, areas
from st_common.query.area_store import encoded as areas_file
from st_common.query.commit import completed, generation, registry_locked
from st_common.query.control import Op, QueryRow
from st_common.query.created_streams import FILE as STREAMS
from st_common.query.created_streams import (
    created_streams,
    forget_joined,
    note_joined,
)
from st_common.query.created_streams import encoded as streams_file
from st_common.query.draft import check_plans, draft_all
from st_common.query.drafted import Draft
from st_common.query.home_notices import notices_of_home
from st_common.query.known import known
from st_common.query.leases import FILE as LEASES
from st_common.query.leases import Lease, forget_files, hanging, leased, without
from st_common.query.leases import encoded as encoded_leases
from st_common.query.lookup import (
    find_brief,
    history,
    latest_rows,
    layers,
    logged_streams,
)
from st_common.query.problem import Problem, TextError
from st_common.query.relations import carry_tags, stream_of_layer, tags_of
from st_common.query.row_writing import Seeding, write_rows
from st_common.query.shown import ToShow
from st_common.uncollected import uncollected

if TYPE_CHECKING:
    from st_common.config.stream import StreamSettings
    from st_common.layers.table_settings import TableSettings
    from st_common.query.text import Statement

_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What statements did: control rows with their positions, names of areas and streams, what to show, notices."""

    rows: tuple[QueryRow, ...]
    created: tuple[str, ...]
    replaced: tuple[str, ...]
    removed: tuple[str, ...]
    streams_created: tuple[str, ...]
    streams_dropped: tuple[str, ...]
    tables_created: tuple[str, ...]
    tables_dropped: tuple[str, ...]
    shown: tuple[ToShow, ...]
    notices: tuple[Problem, ...]

    @property
    def did_something(self) -> bool:
        """Whether anything is otherwise than before."""
        areas = (*self.created, *self.replaced, *self.removed)
        streams = (*self.streams_created, *self.streams_dropped)
        tables = (*self.tables_created, *self.tables_dropped)
        return bool(self.rows or areas or streams or tables)


def carry_out(
    home: Home,
    streams: "Mapping[str, StreamSettings]",
    statements: "Sequence[Statement]",
    *,
    owner: str,
    now_us: int | None = None,
    seeding: Seeding | None = None,
    before_writing: Callable[[], None] | None = None,
    lease: Lease | None = None,
) -> Outcome:
    """Carries out the statements in their order, all or none, and says what they did.

    A name that was dropped may be registered again: its versions count on. Without statements that change something
    nothing is written. `now_us` is the arrival of the rows (UTC microseconds), by default the time of the call;
    `seeding` finds what queries know that are registered FROM somewhere, and `before_writing` is called when nothing is
    left to be found out: what it raises ends it all, and nothing is done. Queries that are registered hang on `lease`,
    if there is one.

    What statements mean is found before the registry is locked, so that nobody waits meanwhile who registers too; where
    somebody has, it is found once more. Only who finds it changed again and again does that while he holds the lock.

    Raises:
        TextError: a name that is taken or unknown, an unknown stream or layer, a box off the Earth; it points at every
            place, and nothing is done.
    """
    with uncollected():
        for _ in range(_TRIES):
            with registry_locked(home):  # else a writer may be half done with this one
                before = generation(home)
            arrival_us = time.time_ns() // 1000 if now_us is None else now_us
            draft = _drafted(
                home, streams, statements, owner=owner, arrival_us=arrival_us
            )
            with registry_locked(home):
                if generation(home) == before:
                    return _written(
                        home, draft, arrival_us, seeding, before_writing, lease
                    )
        with registry_locked(home):
            arrival_us = time.time_ns() // 1000 if now_us is None else now_us
            draft = _drafted(
                home, streams, statements, owner=owner, arrival_us=arrival_us
            )
            return _written(home, draft, arrival_us, seeding, before_writing, lease)


def _written(
    home: Home,
    draft: Draft,
    arrival_us: int,
    seeding: Seeding | None,
    before_writing: Callable[[], None] | None,
    lease: Lease | None,
) -> Outcome:
    """Writes what was drafted; the registry is locked, and as it was then."""
    known(home, logged_streams(home), store=True)  # the next reader has less to read
    files = _files_of(draft)
    if lease is not None:
        files[LEASES] = _leases_with(home, draft, lease)
    for layer in draft.layers_declared:
        carry_tags(home, draft.streams[layer], arrival_us)
    for name in {*draft.streams_created} & draft.tables.keys():
        note_joined(home, name, draft.tables[name])
    with _tables_made(home, draft):
        rows = write_rows(home, draft.rows, arrival_us, files, seeding, before_writing)
    for name in draft.streams_dropped:
        forget_joined(home, name)
    return Outcome(
        rows=tuple(rows),
        created=tuple(draft.created),
        replaced=tuple(draft.replaced),
        removed=tuple(draft.removed),
        streams_created=tuple(draft.streams_created),
        streams_dropped=tuple(draft.streams_dropped),
        tables_created=tuple(draft.tables_created),
        tables_dropped=tuple(draft.tables_dropped),
        shown=tuple(draft.shown),
        notices=tuple(dict.fromkeys(draft.notices)),
    )


@contextmanager
def _tables_made(home: Home, draft: Draft) -> Iterator[None]:
    """Tables are there when the queries that join them are written, and go when these are gone; all or none.

    Whoever is killed in between leaves an empty table, which IF NOT EXISTS takes.
    """
    if not (draft.tables_created or draft.tables_dropped):
        yield
        return
    from st_common.layers.declared import create_table, drop_table

    made: list[str] = []
    try:
        for name in draft.tables_created:
            create_table(home, name, draft.declared[name])
            made.append(name)
        yield
    except BaseException:
        for name in made:
            drop_table(home, name)
        raise
    for name in draft.tables_dropped:
        drop_table(home, name)


def _files_of(draft: Draft) -> dict[str, bytes]:
    """The files of the registry that are others after what was drafted."""
    files = {}
    if draft.created or draft.replaced or draft.removed:
        files[AREAS] = areas_file(draft.areas.values())
    if draft.streams_created or draft.streams_dropped or draft.layers_declared:
        files[STREAMS] = streams_file(draft.tables)
    return files


def _leases_with(home: Home, draft: Draft, lease: Lease) -> bytes:
    """The file of leases with what a draft registers.

    Raises:
        QueryError: it does something else as well, which would not end with the lease.
    """
    new = {row.name: row for row in draft.rows if row.op in ("register", "replace")}
    others = [name for name in draft.streams_created if name not in draft.joints]
    does_more = (
        set(_files_of(draft)) - {STREAMS}
        or others
        or draft.streams_dropped
        or draft.tables_created
        or draft.tables_dropped
    )
    if len(new) < len(draft.rows) or does_more:
        raise QueryError(
            "an ephemeral text registers queries, and does nothing else",
            hint="put other statements into a text of their own",
        )
    return encoded_leases(leased(home), draft.latest, new, lease)


def register(
    home: Home,
    streams: "Mapping[str, StreamSettings]",
    statements: "Sequence[Statement]",
    *,
    owner: str,
    now_us: int | None = None,
    seeding: Seeding | None = None,
) -> list[QueryRow]:
    """The control rows that `carry_out` wrote for these statements."""
    done = carry_out(
        home, streams, statements, owner=owner, now_us=now_us, seeding=seeding
    )
    return list(done.rows)


def check(
    home: Home,
    streams: "Mapping[str, StreamSettings]",
    statements: "Sequence[Statement]",
) -> tuple[Problem, ...]:
    """Raises what `carry_out` would raise, and does nothing; gives the notices."""
    return tuple(_drafted(home, streams, statements, owner="", arrival_us=0).notices)


def fitted(
    home: Home,
    streams: "Mapping[str, StreamSettings]",
    statements: "Sequence[Statement]",
) -> "tuple[list[Statement], tuple[Problem, ...]]":
    """The statements with their names as they are declared, and notices, whatever is registered by their names.

    Raises:
        TextError: what is wrong with their plans on their streams.
    """
    draft = _draft(home, streams, statements, {}, owner="", arrival_us=0)
    known = check_plans(draft, statements)
    if draft.problems:
        raise TextError(draft.problems)
    return known, tuple(draft.notices)


@contextmanager
def with_misfits(
    home: Home, streams: "Callable[[], Mapping[str, StreamSettings]]"
) -> Iterator[None]:
    """What cannot be understood in a text is told together with what does not fit its stream in the rest of it.

    Only plans are looked at: whether a name is free depends on statements that were not understood.
    """
    try:
        yield
    except TextError as error:
        understood = [one for one in error.understood if one.plan or one.table]
        if not any(one.plan for one in understood):
            raise
        try:
            draft = _draft(home, streams(), understood, {}, owner="", arrival_us=0)
        except ConfigError:
            raise error from None  # without settings there is nothing to fit
        check_plans(draft, understood)
        problems = sorted(
            [*error.problems, *draft.problems],
            key=lambda each: (each.line, each.column),
        )
        raise TextError(problems) from None


def drop(home: Home, name: str, *, now_us: int | None = None) -> QueryRow:
    """Drops one query by its name and gives the control row.

    Raises:
        QueryError: no such query is registered.
    """
    with registry_locked(home):
        row = find_brief(home, name, store=True)
        if not row.live:
            raise QueryError(
                f"query {row.name!r} was dropped already",
                hint="`fairway query list` names all",
            )
        arrival_us = time.time_ns() // 1000 if now_us is None else now_us
        dropped = _without_plan(row, "drop", arrival_us)
        return write_rows(home, [dropped], arrival_us, {})[0]


def end_leases(home: Home, lease_ids: set[str]) -> list[QueryRow]:
    """Drops what hangs on leases that have ended, and gives the control rows.

    A query that was replaced or registered anew since hangs on them no more.
    """
    with registry_locked(home):
        arrival_us = time.time_ns() // 1000
        before = leased(home)
        latest = known(home, logged_streams(home), store=True).latest()
        rows = [
            _without_plan(latest[name], "drop", arrival_us)
            for name in hanging(before, latest, lease_ids)
        ]
        files = {LEASES: without(before, lease_ids)}
        written = write_rows(home, rows, arrival_us, files)
        forget_files(home, lease_ids)
    return written


def suspend(
    home: Home, failures: "Iterable[tuple[str, int, str]]", *, now_us: int | None = None
) -> list[QueryRow]:
    """Says in the logs that versions of queries are judged no more, and gives the control rows that were written.

    A failure is a name, a version, and why. Those that are known already, and versions that are no more, are passed
    over: whoever finds a failure again (a replay, an engine after a crash) may say so again.
    """
    with registry_locked(home):
        arrival_us = time.time_ns() // 1000 if now_us is None else now_us
        latest = latest_rows(history(home))
        known = {
            (row.name, row.version): row
            for row in latest.values()
            if row.state == "registered"
        }
        rows = [
            _without_plan(known[name, version], "fail", arrival_us, why)
            for name, version, why in failures
            if (name, version) in known
        ]
        return write_rows(home, rows, arrival_us, {}) if rows else []


def _without_plan(
    row: QueryRow, op: Op, arrival_us: int, why: str | None = None
) -> QueryRow:
    """What ends a version of a query, or its judging, made of the row that registered it."""
    return replace(
        row,
        op=op,
        arrival_us=arrival_us,
        plan=None,
        text=None,
        owner=None,
        layer_version=None,
        why=row.why if why is None else why,
    )


def _drafted(
    home: Home,
    streams: "Mapping[str, StreamSettings]",
    statements: "Sequence[Statement]",
    *,
    owner: str,
    arrival_us: int,
) -> Draft:
    draft = _draft(
        home,
        streams,
        statements,
        _registered(home, statements),
        owner=owner,
        arrival_us=arrival_us,
    )
    draft.areas.update({area.name.casefold(): area for area in areas(home)})
    known = draft_all(draft, statements)
    if draft.problems:
        raise TextError(draft.problems)
    draft.notices.extend(notices_of_home(home, known))
    return draft


def _registered(
    home: Home, statements: "Sequence[Statement]"
) -> MutableMapping[str, QueryRow]:
    """The newest row of every name; without plans and texts where no statement looks at them."""
    if any(one.op in _SEES_PLANS and one.plan is None for one in statements):
        return latest_rows(history(home))
    completed(home)
    return known(home, logged_streams(home), store=False).latest()


def _names_layers(
    statement: "Statement", streams: "Mapping[str, StreamSettings]"
) -> bool:
    """Whether a statement may name a layer: behind JOIN, as what FROM names that is no stream, or as a table."""
    plan = statement.plan
    if plan is not None and (plan.join is not None or plan.stream not in streams):
        return True
    return statement.op in ("create_table", "drop_table") or statement.what == "tables"


_SEES_PLANS = ("show", "explain", "replace_area", "drop_table")


def _draft(
    home: Home,
    streams: "Mapping[str, StreamSettings]",
    statements: "Sequence[Statement]",
    latest: MutableMapping[str, QueryRow],
    *,
    owner: str,
    arrival_us: int,
) -> Draft:
    sees_layers = any(_names_layers(one, streams) for one in statements)
    known = set(layers(home)) if sees_layers else set()
    declared: dict[str, TableSettings] = {}
    tables = created_streams(home)
    of_home = HomeAreas(home)
    return Draft(
        streams=Streams(streams, broken_of(streams)),
        layers=known,
        latest=latest,
        owner=owner,
        arrival_us=arrival_us,
        tags_of=partial(tags_of, home, declared=declared),
        feature_of=of_home.feature,
        group_of=of_home.group_of,
        tables=tables,
        layer_stream=partial(stream_of_layer, home, streams),
        log_end=lambda name: Log(home.log(name)).end(),
        declared=declared,
        settled=frozenset({*streams} - {*tables}),
    )
