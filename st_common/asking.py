"""Questions in SQL on a database in memory that a process keeps.

To make a database for one question, and to end its threads, took 25 ms of a core: ten times what a small one takes.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb

_databases: dict[tuple[int, bool], "duckdb.DuckDBPyConnection"] = {}
"""By process and whether they are closed off: a forked child must not use its parent's, whose threads are not there."""
CLOSED_OFF: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "enable_external_access": False,
}


def opened(config: Mapping[str, Any] | None = None) -> "duckdb.DuckDBPyConnection":
    """A new database in memory.

    DuckDB looks for its share of the machine in a file, and ends the whole process where it cannot open one: so it is
    tried beforehand whether one can be opened.

    Raises:
        OSError: the process may open no more files.
    """
    import duckdb  # slow to import, and whoever asks nothing needs none

    require_descriptors(1)
    return duckdb.connect(config=dict(config or {}))


def require_descriptors(count: int) -> None:
    """Makes sure that the process may open so many files more, for a library that ends it or panics where it may not.

    Raises:
        OSError: it may not.
    """
    with ExitStack() as stack:
        for _ in range(count):
            stack.callback(os.close, os.open(os.devnull, os.O_RDONLY))


@contextmanager
def asking(*, closed_off: bool = False) -> Iterator["duckdb.DuckDBPyConnection"]:
    """A connection for the body of a `with`: what it registers and sets is seen by no other and ends with it.

    Macros and tables that it makes must be TEMP for that.

    Args:
        closed_off: for the words of users: it reaches no file, and takes one thread.
    """
    import duckdb  # slow to import, and whoever asks nothing needs none

    key = os.getpid(), closed_off
    if (database := _databases.get(key)) is None:
        made = opened(CLOSED_OFF if closed_off else {})
        database = _databases.setdefault(key, made)
    try:
        with database.cursor() as connection:
            yield connection
    except (duckdb.FatalException, duckdb.InternalException):
        _databases.pop(key, None)  # it answers nothing more
        raise
