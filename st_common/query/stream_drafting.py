"""CREATE STREAM and DROP STREAM on paper: a query, and beside it the settings of the stream of its rows (SPEC W6)."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from st_common.config.home import checked_name, view_name
from st_common.config.streams import broken_of, stream_of_table
from st_common.errors import ConfigError
from st_common.query.created_streams import FILE
from st_common.query.drafted import Draft
from st_common.query.problem import did_you_mean
from st_common.query.stream_tables import table_of
from st_common.query.with_place import with_place

if TYPE_CHECKING:
    from st_common.query.text import Statement


def check_created(draft: Draft, statement: "Statement") -> None:
    """Whether the name is free for a stream."""
    try:
        checked_name(statement.name, "stream")
    except ConfigError as error:
        draft.problems.append(statement.problem(error.message, hint=error.hint))
        return
    others = [*draft.settled, *broken_of(draft.streams), *draft.tables]
    same = [one for one in others if view_name(one) == view_name(statement.name)]
    if same:
        hint = "SHOW STREAMS names them all"
        message = f"stream {same[0]!r} exists already"
        draft.problems.append(statement.problem(message, hint=hint))


def check_dropped(draft: Draft, statement: "Statement") -> None:
    """Whether it is a stream that was created, and that no live query is about."""
    name = statement.name.casefold()
    if name not in draft.tables:
        is_set = name in draft.settled
        message = (
            f"stream {name!r} stands in the settings"
            if is_set
            else f"unknown stream {statement.name!r}"
        )
        near = did_you_mean(name, draft.tables)
        hint = "take it out of conf/streams.toml" if is_set else near
        draft.problems.append(statement.problem(message, hint=hint))
        return
    joints = [one.name for one in draft.streams.values() if name in one.joined]
    if joints:
        message = f"stream {joints[0]!r} joins stream {name!r}"
        hint = f"DROP STREAM {joints[0]} first"
        draft.problems.append(statement.problem(message, hint=hint))
    users = [
        row.name for row in draft.latest.values() if row.live and row.stream == name
    ]
    if users:
        message = f"query {users[0]!r} is about stream {name!r}"
        hint = f"DROP QUERY {users[0]} first"
        draft.problems.append(statement.problem(message, hint=hint))


def with_its_place(draft: Draft, statement: "Statement") -> "Statement":
    """The statement with a plan whose rows say where they are; what has no place becomes a problem."""
    plan = statement.plan
    source = draft.streams.get(plan.stream) if plan is not None else None
    if plan is None or source is None:
        return statement
    return replace(statement, plan=with_place(plan))


def declare(draft: Draft, statement: "Statement") -> None:
    """What stands behind CREATE STREAM in a text may be about its stream; where it cannot be, `check_rows` says why."""
    if statement.plan is None or statement.name in draft.streams:
        return
    source = draft.streams.get(statement.plan.stream)
    with suppress(ConfigError):
        if source is not None:
            table = table_of(statement.name, statement.plan, source)
            stream = stream_of_table(statement.name, table, Path(FILE))
            draft.streams[statement.name] = replace(stream, filters=source.filters)


def check_rows(draft: Draft, statement: "Statement") -> None:
    """Whether the rows of the query have a place, and columns that fixes of a stream can have."""
    plan = statement.plan
    source = draft.streams.get(plan.stream) if plan is not None else None
    if plan is None or source is None:
        return
    try:
        stream_of_table(
            statement.name, table_of(statement.name, plan, source), Path(FILE)
        )
    except ConfigError as error:
        message = error.message.removeprefix(f"{FILE}: stream {statement.name!r}: ")
        hint = error.hint or "name the column by AS"
        draft.problems.append(statement.problem(message, at="select", hint=hint))


def create_stream(draft: Draft, statement: "Statement") -> None:
    """Makes a stream of the rows of a query that was drafted."""
    if statement.plan is not None:
        source = draft.streams[statement.plan.stream]
        name = statement.name
        draft.tables[name] = table_of(name, statement.plan, source)
        draft.streams_created.append(name)


def drop_stream(draft: Draft, statement: "Statement") -> None:
    """Takes a stream away; its log stays."""
    name = statement.name.casefold()
    del draft.tables[name]
    draft.streams_dropped.append(name)
