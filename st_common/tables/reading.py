"""Tables as Arrow, without a JVM."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from st_common.errors import FairwayError
from st_common.tables.handle import newest, required

Filters = list[tuple[str, str, Any]]


def read(
    path: Path, *, version: int | None = None, columns: list[str] | None = None, filters: Filters | None = None
) -> pa.Table:
    """The rows of a table, in no order: of its newest version or of `version`, all columns or some.

    `filters` are (column, operator, value) that must all hold, with = != < <= > >= in, not in; files that cannot hold
    such rows are not read. Types are the contract's.

    Raises:
        FairwayError: there is no such table or version.
    """
    condition = None
    if filters:
        from pyarrow.parquet import filters_to_expression

        condition = filters_to_expression(filters)
    return dataset(path, version=version).to_table(columns=columns, filter=condition)


def dataset(path: Path, *, version: int | None = None) -> ds.Dataset:
    """One version of a table as an Arrow dataset, for DuckDB and for reading in parts.

    Raises:
        FairwayError: there is no such table or version.
    """
    return (required(path) if version is None else _at(path, version)).to_pyarrow_dataset()


def exists(path: Path) -> bool:
    """Whether there is a table at `path`."""
    return newest(path) is not None


def version(path: Path) -> int | None:
    """The number of the newest version of a table; None when there is no table."""
    table = newest(path)
    return None if table is None else table.version()


def committed(path: Path, app: str) -> int | None:
    """The last version that `app` has committed to a table by `append`; None when none, or no table."""
    table = newest(path)
    return None if table is None else table.transaction_version(app)


def _at(path: Path, version: int) -> DeltaTable:
    required(path)
    try:
        return DeltaTable(str(path), version=version)
    except DeltaError as error:
        raise FairwayError(f"{path} has no version {version}: {error}", hint="it may have been cleaned away") from None
