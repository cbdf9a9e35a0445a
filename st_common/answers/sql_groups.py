"""The views of `fairway sql` by group: in a schema for each, those of its streams and layers (SPEC B2).

metro.positions_buses   metro.changes_buses   metro.layer_roads     the views of these names
metro.buses             metro.roads                                 fixes of the stream, features of the layer
"""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import duckdb

from st_common.config.home import Home, view_name
from st_common.config.stream import StreamSettings
from st_common.errors import QueryError
from st_common.layers.announce import layer_group, loaded_layers
from st_common.query.problem import did_you_mean

_OF_STREAM = ("changes", "visits", "positions", "latest", "snapshots", "differences")
_OF_DUCKDB = frozenset({"information_schema", "main", "pg_catalog", "system", "temp"})
"""Schemas that DuckDB has; groups that are called so have none of their own."""


class _Table(NamedTuple):
    """A stream or a layer: its group, its name in SQL, its views, and which of them its own name means."""

    group: str
    name: str
    views: tuple[str, ...]
    main: str


def create_group_views(
    connection: duckdb.DuckDBPyConnection,
    home: Home,
    streams: Mapping[str, StreamSettings],
    views: Collection[str],
) -> dict[str, set[str]]:
    """Creates a schema for each group, with its views, and gives their names by schema.

    Args:
        connection: has the views already, by their plain names.
        home: where the layers lie.
        streams: the settings of all streams; one without settings is in no group.
        views: the plain names.
    """
    known = set(views)
    schemas: dict[str, set[str]] = {}
    for table in _tables_of(home, streams):
        schema = view_name(table.group)
        if schema in _OF_DUCKDB:
            continue
        if schema not in schemas:
            connection.execute(f'CREATE SCHEMA "{schema}"')
        there = schemas.setdefault(schema, set())
        named = {view: view for view in table.views}
        named.setdefault(table.name, table.main)
        for name, view in named.items():
            if view in known and name not in there:
                connection.execute(f'CREATE VIEW "{schema}"."{name}" AS FROM "{view}"')
                there.add(name)
    return schemas


def require_in_groups(
    named: Collection[tuple[str, str]], schemas: Mapping[str, Collection[str]]
) -> None:
    """Makes sure that the tables that a text names with a schema are in the group of that name.

    Raises:
        QueryError: there is no such group, or it has no such table; it says which group has.
    """
    for schema, table in named:
        own, name = schema.casefold(), table.casefold()
        if own in _OF_DUCKDB or name in schemas.get(own, ()):
            continue
        groups = [group for group, views in schemas.items() if name in views]
        if groups:
            message = f"{table!r} is in group {groups[0]!r}, not in {schema!r}"
            raise QueryError(message, hint=f"write {groups[0]}.{table}")
        if own not in schemas:
            hint = did_you_mean(own, schemas) or f"groups: {', '.join(sorted(schemas))}"
            raise QueryError(f"there is no group {schema!r} of tables", hint=hint)
        hint = did_you_mean(name, schemas[own]) or ", ".join(sorted(schemas[own]))
        raise QueryError(f"group {schema!r} has no table {table!r}", hint=hint)


def _tables_of(home: Home, streams: Mapping[str, StreamSettings]) -> Iterator[_Table]:
    """All streams and layers; a stream comes before a layer that is called the same."""
    for stream in streams.values():
        name = view_name(stream.name)
        views = tuple(f"{table}_{name}" for table in _OF_STREAM)
        yield _Table(stream.group, name, views, main=f"positions_{name}")
    for layer in loaded_layers(home):
        group = layer_group(home, layer)
        if group is not None:
            view = f"layer_{view_name(layer)}"
            yield _Table(group, view_name(layer), (view,), main=view)
