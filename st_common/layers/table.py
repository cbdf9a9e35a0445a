"""The table of a layer: all that is read of a layer, and all that is written, goes through here.

A test holds that nobody else opens it, so that what a version of a layer *is* stands in one place.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.tables.pruning import Filters

if TYPE_CHECKING:
    import pyarrow.dataset as ds

CONTRACT = "layers"
AT_HOME: Filters = [("home", "=", True)]
"""Each feature once: it has a row in every region that it touches, and is home in one."""


def table_path(home: Home, layer: str) -> Path:
    """The folder of a layer's table, for who cares for it as a table (quality, lineage, writers); rows: `layer_rows`.

    Raises:
        ConfigError: the name cannot be a folder's.
    """
    return home.table(CONTRACT, layer)


def layer_names(home: Home) -> Iterator[str]:
    """The names of the layers that have a table, in order."""
    folder = home.table(CONTRACT)
    if folder.is_dir():
        yield from sorted(
            path.name
            for path in folder.iterdir()
            if path.is_dir() and tables.exists(path)
        )


def newest_version(home: Home, layer: str) -> int | None:
    """The newest version of a layer; None when it was never loaded. Version 0 is the table without rows."""
    return tables.version(table_path(home, layer)) or None


def is_purged(home: Home, layer: str, version: int) -> bool:
    """Whether an older version of a layer can be read no more."""
    return tables.is_gone(table_path(home, layer), version)


def stored_bytes(home: Home, layer: str) -> int:
    """The bytes of the data files of a layer's newest version; 0 where there is no such layer."""
    return tables.stored(table_path(home, layer))[1]


def sizes(home: Home, layer: str, version: int) -> dict[str, tuple[int, int]]:
    """The stored rows of a version, and the bytes of their files, by region; by the table's log, no file is read."""
    return tables.sizes(table_path(home, layer), version=version, column="region_id")


def dataset(home: Home, layer: str, version: int | None = None) -> "ds.Dataset":
    """The rows of a version of a layer (None: the newest), for DuckDB and for reading in parts.

    Raises:
        FairwayError: there is no such layer or version.
    """
    path, contract = table_path(home, layer), load_contract(CONTRACT)
    return tables.dataset(path, version=version, contract=contract)


def read_rows(
    home: Home,
    layer: str,
    version: int | None = None,
    *,
    columns: list[str] | None = None,
    filters: Filters | None = None,
) -> pa.Table:
    """The rows of a version of a layer, in no order: one for each feature and region that it touches.

    Args:
        home: where the tables lie.
        layer: its name.
        version: of its table; None: the newest.
        columns: which ones, in this order; None for all.
        filters: see `tables.read`; files that cannot hold such rows are not read.

    Raises:
        FairwayError: there is no such layer or version.
    """
    return tables.read(
        table_path(home, layer),
        version=version,
        columns=columns,
        filters=filters,
        contract=load_contract(CONTRACT),
    )


def first_row(
    home: Home, layer: str, version: int | None, columns: list[str]
) -> dict[str, Any]:
    """Some row of a version, of which the columns are wanted that are the same in all; {} where it has none."""
    rows = dataset(home, layer, version).head(1, columns=columns).to_pylist()
    return rows[0] if rows else {}


def feature_count(home: Home, layer: str, version: int) -> int:
    """How many features a version of a layer has.

    Raises:
        FairwayError: there is no such layer or version.
    """
    return int(dataset(home, layer, version).count_rows(filter=pc.field("home")))


def replace_rows(path: Path, rows: pa.Table) -> int:
    """Puts rows, as `rows.layer_rows` makes them, in the place of all of a layer; gives its new version."""
    return tables.replace(path, rows, load_contract(CONTRACT))
