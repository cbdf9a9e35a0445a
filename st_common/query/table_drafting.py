"""CREATE TABLE and DROP TABLE on paper."""

from typing import TYPE_CHECKING

from st_common.query.drafted import Draft

if TYPE_CHECKING:
    from collections.abc import Iterable

    from st_common.query.text import Statement


def declare_tables(draft: Draft, statements: "Iterable[Statement]") -> None:
    """Queries of the same text may be about the tables that it creates."""
    for statement in statements:
        if statement.table is not None:
            draft.declared.setdefault(statement.name.casefold(), statement.table)


def check_created_table(draft: Draft, statement: "Statement") -> None:
    """Whether the name is free for a table: streams, layers and tables are asked for by the same word."""
    name = statement.name.casefold()
    is_taken = name in draft.layers
    what = "table" if is_taken else "stream" if name in draft.streams else ""
    if what:
        message = f"{what} {name!r} exists already"
        hint = (
            "SHOW TABLES names them all" if is_taken else "SHOW STREAMS names them all"
        )
        draft.problems.append(statement.problem(message, hint=hint))


def check_dropped_table(draft: Draft, statement: "Statement") -> None:
    """Whether there is such a table, and no live query joins it."""
    name = statement.name.casefold()
    if name not in draft.layers:
        hint = draft.near(name, draft.layers) or "see SHOW TABLES"
        draft.problems.append(statement.problem(f"unknown table {name!r}", hint=hint))
        return
    users = [
        row.name
        for row in draft.latest.values()
        if row.live and row.plan and row.plan.join and row.plan.join.layer == name
    ]
    if users:
        message = f"query {users[0]!r} joins table {name!r}"
        hint = f"DROP QUERY {users[0]} first"
        draft.problems.append(statement.problem(message, hint=hint))


def create_table(draft: Draft, statement: "Statement") -> None:
    """The table is there for what stands behind in the text."""
    name = statement.name.casefold()
    draft.tables_created.append(name)
    draft.layers.add(name)


def drop_table(draft: Draft, statement: "Statement") -> None:
    """The table is gone for what stands behind in the text."""
    name = statement.name.casefold()
    draft.tables_dropped.append(name)
    draft.layers.discard(name)
