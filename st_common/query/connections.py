"""Connections for expressions: they reach no file and no network, and each thread has its own."""

import threading
from typing import TYPE_CHECKING, Any

from st_common.asking import CLOSED_OFF, opened
from st_common.query.cells import add_cells, calls_cells

if TYPE_CHECKING:
    import duckdb


class OfThread(threading.local):
    """The connection of each thread, made when it is first asked for, and the names of the tables that it has.

    Attributes:
        tables: what the tables are of, and their names.
    """

    def __init__(self) -> None:
        self.tables: dict[Any, str] = {}
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._has_cells = False

    def connection(self, text: str) -> "duckdb.DuckDBPyConnection":
        """The connection, which knows the functions that a text calls."""
        if self._connection is None:
            self._connection = _connect()
        if not self._has_cells and calls_cells(text):
            add_cells(self._connection)
            self._has_cells = True
        return self._connection

    def drop(self) -> None:
        """Forgets the connection, which answers nothing more; the next one has no tables."""
        self._connection, self._has_cells, self.tables = None, False, {}


def _connect() -> "duckdb.DuckDBPyConnection":
    """No row fails because of another one: DuckDB's optimiser, which moves parts out of TRY, is off."""
    connection = opened({**CLOSED_OFF, "autoload_known_extensions": False})
    connection.execute("PRAGMA disable_optimizer")
    return connection
