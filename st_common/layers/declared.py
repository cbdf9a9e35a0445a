"""What CREATE TABLE says of a table: its key, its columns, and how long old rows stay.

It is a property of the Delta table, so it is made, copied and restored with it. A layer that was loaded has none.
"""

import json
from dataclasses import asdict

from st_common import tables
from st_common.config.home import Home
from st_common.errors import LayerError
from st_common.layers.table import (
    DROPPED,
    begin,
    declare,
    declared,
    empty_rows,
    newest_version,
    replace_rows,
    table_path,
)
from st_common.layers.table_settings import TableSettings
from st_common.partitioning.groups import require_layer_in
from st_common.partitioning.store import current


def table_settings(home: Home, table: str) -> TableSettings | None:
    """How a table was declared; None for a layer that was loaded, and where there is none."""
    said = declared(table_path(home, table))
    if said in ("", DROPPED):
        return None
    return TableSettings(**json.loads(said))


def create_table(home: Home, table: str, settings: TableSettings) -> int:
    """Makes an empty table; gives its version.

    Raises:
        LayerError: there is one of this name, the settings make no sense, or its group has other than two dimensions.
        ConfigError: the name cannot be a folder's.
    """
    settings.check()
    require_layer_in(current(home, settings.group), table)
    path = table_path(home, table)
    with tables.locked(path):
        if newest_version(home, table) is not None:
            raise LayerError(
                f"table {table!r} exists already", hint="IF NOT EXISTS lets it stay"
            )
        declare(path, json.dumps(asdict(settings)))
        return begin(path)


def drop_table(home: Home, table: str) -> None:
    """Takes a table or layer away. Its versions stay for those who read them, and count on if there is one again.

    Raises:
        LayerError: there is none.
    """
    path = table_path(home, table)
    with tables.locked(path):
        if newest_version(home, table) is None:
            raise LayerError(f"there is no table {table!r}", hint="see SHOW TABLES")
        replace_rows(path, empty_rows())
        declare(path, DROPPED)
