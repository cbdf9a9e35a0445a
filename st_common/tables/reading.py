"""Tables as Arrow, without a JVM."""

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from st_common.contracts import Contract
from st_common.errors import FairwayError
from st_common.observed import note_read
from st_common.tables.foreign import require_kept, require_readable
from st_common.tables.handle import at_version, newest, required, unreadable
from st_common.tables.pruning import Filters, keep
from st_common.tables.shape import gained

if TYPE_CHECKING:
    import pyarrow.dataset as ds  # imports pandas, half a second that most processes have no use for

PURGED = "purged"
"""The app whose version in a table is the place in the log before which rows may be gone."""

PURGED_ROWS = "purged-rows"
"""The app whose version in a table is how many rows were ever purged."""


def read(
    path: Path,
    *,
    version: int | None = None,
    columns: list[str] | None = None,
    filters: Filters | None = None,
    contract: Contract | None = None,
    condition: "ds.Expression | None" = None,
) -> pa.Table:
    """The rows of a table as Arrow, in no order; types are the contract's.

    Args:
        path: the table's folder.
        version: which one; None for the newest.
        columns: which ones, in this order; None for all.
        filters: (column, operator, value) that must all hold, with = != < <= > >= in, not in; files that cannot hold
            such rows are not read.
        contract: what it has gained since the table was made is null; None: the columns are the table's own.
        condition: what rows must satisfy besides; no file is left out by it.

    Raises:
        FairwayError: there is no such table or version; a TableError: it is one that is not read here, see `foreign`.
    """
    table = required(path) if version is None else _at(path, version)
    rows = _dataset(path, table, filters or [], contract)
    chosen = _condition(filters or [])
    if condition is not None:
        chosen = condition if chosen is None else chosen & condition
    return rows.to_table(columns=columns, filter=chosen)


def _condition(filters: Filters) -> "ds.Expression | None":
    """What rows must satisfy; None: nothing. To Arrow a list without values is one of nulls, of no column's type."""
    from pyarrow.parquet import filters_to_expression

    some = [one for one in filters if one[1] not in ("in", "not in") or len(one[2])]
    condition = filters_to_expression(some) if some else None
    if any(one[1] == "in" for one in filters if one not in some):
        nothing = pc.scalar(value=False)
        condition = nothing if condition is None else condition & nothing
    return condition


def dataset(
    path: Path, *, version: int | None = None, contract: Contract | None = None
) -> "ds.Dataset":
    """One version of a table as an Arrow dataset, for DuckDB and for reading in parts.

    It skips files by partition and row groups by their own statistics. `DeltaTable.to_pyarrow_dataset` skips by the
    Delta log too, but loses rows where a bound is missing there: texts that are long, numbers that are infinite.

    Args:
        path: the table's folder.
        version: which one; None for the newest.
        contract: what it has gained since the table was made is null; None: the columns are the table's own.

    Raises:
        FairwayError: there is no such table or version; a TableError: it is one that is not read here, see `foreign`.
    """
    table = required(path) if version is None else _at(path, version)
    return _dataset(path, table, [], contract)


def files_of(path: Path, *, version: int, filters: Filters) -> list[str]:
    """The data files of a version that `read` opens for these filters: their paths below the table's folder.

    Raises:
        FairwayError: there is no such table or version.
    """
    actions = pa.table(_at(path, version).get_add_actions(flatten=True))
    return [unquote(name) for name in keep(actions, filters)["path"].to_pylist()]


def exists(path: Path) -> bool:
    """Whether there is a table at `path`."""
    return newest(path) is not None


def version(path: Path) -> int | None:
    """The number of the newest version of a table; None when there is no table."""
    table = newest(path)
    return None if table is None else table.version()


def schema(path: Path) -> pa.Schema | None:
    """The columns of the newest version of a table, in its order; None when there is no table."""
    table = newest(path)
    return None if table is None else pa.schema(table.schema().to_arrow())


def properties(path: Path) -> dict[str, str | None]:
    """The properties of a table, by name; {} when there is no table."""
    table = newest(path)
    return {} if table is None else dict(table.metadata().configuration)


def committed(path: Path, app: str) -> int | None:
    """The last version that an app has committed to a table by `append`, its place in what it reads.

    Args:
        path: the table's folder.
        app: the name of the app transaction, such as `engine`.

    Returns:
        None when it has committed none, or there is no table.

    Raises:
        TableError: the table's log cannot be read.
    """
    table = newest(path)
    try:
        return None if table is None else table.transaction_version(app)
    except DeltaError as error:
        raise unreadable(path, error) from error


def stored(path: Path) -> tuple[int, int]:
    """How many data files the newest version of a table has, and their bytes; 0 and 0 when there is no table."""
    table = newest(path)
    if table is None:
        return 0, 0
    sizes = pa.table(table.get_add_actions())["size_bytes"]
    return len(sizes), pc.sum(sizes).as_py() or 0


def sizes(path: Path, *, version: int, column: str) -> dict[str, tuple[int, int]]:
    """The rows of a version's data files, and their bytes, by the value of a partition column as text.

    Raises:
        FairwayError: there is no such table or version.
    """
    actions = pa.table(_at(path, version).get_add_actions(flatten=True))
    known = {
        "value": actions[f"partition.{column}"].cast(pa.string()),
        "rows": pc.fill_null(actions["num_records"], 0),
        "bytes": actions["size_bytes"],
    }
    summed = (
        pa.table(known)
        .group_by("value")
        .aggregate([("rows", "sum"), ("bytes", "sum")])
        .to_pylist()
    )
    return {one["value"]: (one["rows_sum"], one["bytes_sum"]) for one in summed}


def ranges(path: Path, *columns: str) -> dict[str, tuple[Any, Any]]:
    """The least and the greatest value of columns, by the statistics of the newest version's files.

    Returns:
        By column, without those of which no file says anything; {} when there is no table.
    """
    table = newest(path)
    if table is None:
        return {}
    actions = pa.table(table.get_add_actions(flatten=True))
    known = [name for name in columns if f"min.{name}" in actions.column_names]
    found = {
        name: (
            pc.min(actions[f"min.{name}"]).as_py(),
            pc.max(actions[f"max.{name}"]).as_py(),
        )
        for name in known
    }
    return {name: pair for name, pair in found.items() if None not in pair}


def purged_before(path: Path) -> int:
    """The place in the log before which rows of a table may be gone; 0 where none were ever purged.

    Of a table whose rows go by their day alone, such as `rejects`, it is 1 where some are gone.
    """
    return committed(path, PURGED) or 0


def purged_rows(path: Path) -> int:
    """How many rows were ever purged from a table; 0 for none."""
    return committed(path, PURGED_ROWS) or 0


def has_deletions(path: Path) -> bool:
    """Whether rows were ever deleted from a table: purged, or by people to free space.

    The second is known for as long as the table keeps its log of commits.
    """
    if purged_before(path):
        return True
    table = newest(path)
    commits = [] if table is None else table.history()
    return any(one.get("operation") == "DELETE" for one in commits)


def is_gone(path: Path, version: int) -> bool:
    """Whether an older version of a table can be read no more: see `drop_versions`.

    Args:
        path: the table's folder.
        version: any number that the table has had.

    Raises:
        FairwayError: there is no table.
    """
    return version < required(path).version() and whole(path, version) is None


def dataset_of(
    path: Path, schema: pa.Schema, by: list[str], files: list[tuple[str, list[object]]]
) -> "ds.Dataset":
    """Data files below a table's folder as one Arrow dataset.

    Args:
        path: the table's folder.
        schema: of the table; a column that a file does not have is null.
        by: the partition columns.
        files: pairs of a path below the folder and the values of its partition, typed, in the order of `by`.
    """
    import pyarrow.dataset as ds
    import pyarrow.fs as pafs

    parquet = ds.ParquetFileFormat(
        read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")
    )
    places = pafs.SubTreeFileSystem(str(path), pafs.LocalFileSystem())
    fragments = [
        parquet.make_fragment(
            name, places, partition_expression=_partition(schema, by, values)
        )
        for name, values in files
    ]
    return ds.FileSystemDataset(fragments, schema, parquet, places)


def _dataset(
    path: Path, table: DeltaTable, filters: Filters, contract: Contract | None
) -> "ds.Dataset":
    require_readable(path, table)
    note_read(path, table.version())
    by = table.metadata().partition_columns
    actions = keep(pa.table(table.get_add_actions(flatten=True)), filters)
    values = [actions[f"partition.{name}"].to_pylist() for name in by]
    names = [unquote(name) for name in actions["path"].to_pylist()]
    parts = [(name, list(row)) for name, *row in zip(names, *values, strict=True)]
    schema = pa.schema(table.schema().to_arrow())
    more = [] if contract is None else gained(schema, contract)
    require_kept(path, table, more)
    return dataset_of(path, pa.schema([*schema, *more]), by, parts)


def _partition(
    schema: pa.Schema, names: list[str], values: list[object]
) -> pc.Expression | None:
    expression = None
    for name, value in zip(names, values, strict=True):
        field = pc.field(name)
        this = (
            field.is_null()
            if value is None
            else field == pa.scalar(value, schema.field(name).type)
        )
        expression = this if expression is None else expression & this
    return expression


def _at(path: Path, version: int) -> DeltaTable:
    newest_version = required(path).version()
    if version > newest_version:
        raise FairwayError(
            f"{path} has no version {version}", hint=f"the newest is {newest_version}"
        )
    table = whole(path, version)
    if table is None and version < newest_version:
        name = path.parent.name
        raise FairwayError(
            f"version {version} of {name}/{path.name} was purged",
            hint=f"nothing needed it; data_contracts/{name}.odcs.yaml says for how long versions are kept",
        )
    return table or required(path)


def whole(path: Path, version: int) -> DeltaTable | None:
    """A version of a table, opened; None when its commits, or some of its files, are not there any more.

    Args:
        path: the table's folder.
        version: any number that the table has had.
    """
    try:
        table = at_version(path, version)
    except DeltaError:
        return None
    names = pa.table(table.get_add_actions())["path"].to_pylist()
    is_there = all((path / unquote(name)).exists() for name in names)
    return table if is_there else None
