"""The table of a layer: all that is read of a layer, and all that is written, goes through here.

A layer is loaded as a whole; a *table* is a layer whose features are put and deleted one by one. It is the same Delta
table: a put appends its rows, a delete a row that says so, and no file is written again. A version of the layer is

    number   fid   place      deleted          live rows of the version after 8: b by 8, c by 7
    0        a     (1, 1)                      of a: none, its newest row deletes it
    0        b     (2, 2)                      of b: that by 8, wherever the one by 0 lay
    7        c     (3, 3)
    8        b     (9, 9)
    8        a                yes

so its reader needs no more than the keys of what was put: `live` gives the rows that count as a condition. `fold` takes
out those that do not. A test holds that nobody else opens such a table.
"""

from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
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
PUT: Filters = [("put_number", ">=", 1)]
"""Rows that were put, not loaded."""

_NUMBERED = ["fid", "put_number", "deleted"]
_VERSIONS_HELD = 64
_DECLARED, _BEGUN = "fairway.table", "begun"
DROPPED = "dropped"


def table_path(home: Home, layer: str) -> Path:
    """The folder of a layer's table, for who cares for it as a table (quality, lineage, writers); rows: `read_rows`.

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
            if path.is_dir() and tables.exists(path) and declared(path) != DROPPED
        )


def newest_version(home: Home, layer: str) -> int | None:
    """The newest version of a layer; None when it was never loaded, or dropped. Version 0 is the table without rows."""
    path = table_path(home, layer)
    return None if declared(path) == DROPPED else tables.version(path) or None


def declared(path: Path) -> str:
    """What the table says of itself, see `layers.declared`; "" for one that was loaded."""
    return tables.properties(path).get(_DECLARED) or ""


def declare(path: Path, said: str) -> None:
    """Lets a table, which is made when it is absent, say of itself what `declared` gives."""
    tables.note(path, load_contract(CONTRACT), _DECLARED, said)


def begin(path: Path) -> int:
    """Gives a table without rows a version that counts as loaded; gives it."""
    contract, number = load_contract(CONTRACT), (tables.version(path) or 0) + 1
    rows = contract.empty_table()
    tables.append(path, rows, contract, app=_BEGUN, version=number)
    return tables.version(path) or 0


def is_purged(home: Home, layer: str, version: int) -> bool:
    """Whether an older version of a layer can be read no more."""
    return tables.is_gone(table_path(home, layer), version)


def stored_bytes(home: Home, layer: str) -> int:
    """The bytes of the data files of a layer's newest version; 0 where there is no such layer."""
    return tables.stored(table_path(home, layer))[1]


def sizes(home: Home, layer: str, version: int) -> dict[str, tuple[int, int]]:
    """The stored rows of a version, and the bytes of their files, by region; by the table's log, no file is read."""
    return tables.sizes(table_path(home, layer), version=version, column="region_id")


# --- reading ---------------------------------------------------------------------------------------------------------


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
    path = table_path(home, layer)
    return tables.read(
        path,
        version=version,
        columns=columns,
        filters=filters,
        contract=load_contract(CONTRACT),
        condition=live(path, version),
    )


def files_read(
    home: Home, layer: str, version: int, filters: Filters
) -> tuple[int, int]:
    """How many data files `read_rows` opens for these filters, and how many the version has."""
    path = table_path(home, layer)
    chosen = {
        name
        for each in (filters, PUT)
        for name in tables.files_of(path, version=version, filters=each)
    }
    return len(chosen), len(tables.files_of(path, version=version, filters=[]))


def history_of(home: Home, layer: str, version: int, fid: str) -> pa.Table:
    """All rows of a feature that a version holds, one for each put and delete of it, newest first."""
    rows = tables.read(
        table_path(home, layer),
        version=version,
        filters=[("fid", "=", fid), *AT_HOME],
        contract=load_contract(CONTRACT),
    )
    number = pc.fill_null(rows["put_number"], 0)
    at = rows.schema.get_field_index("put_number")
    rows = rows.set_column(at, "put_number", number)
    return rows.sort_by([("put_number", "descending")])


def dataset(home: Home, layer: str, version: int | None = None) -> "ds.Dataset":
    """The rows of a version of a layer (None: the newest), for DuckDB and for reading in parts.

    Raises:
        FairwayError: there is no such layer or version.
    """
    path = table_path(home, layer)
    rows, condition = _stored(path, version), live(path, version)
    return rows if condition is None else rows.filter(condition)


def first_row(
    home: Home, layer: str, version: int | None, columns: list[str]
) -> dict[str, Any]:
    """Some row of a version, of which the columns are wanted that are the same in all; {} where it has none."""
    stored = _stored(table_path(home, layer), version)
    # The first file by name, the same one each time; no other is opened.
    for file in sorted(stored.get_fragments(), key=attrgetter("path")):
        rows = file.scanner(schema=stored.schema, columns=columns).head(1).to_pylist()
        if rows:
            return dict(rows[0])
    return {}


def feature_count(home: Home, layer: str, version: int) -> int:
    """How many features a version of a layer has.

    Raises:
        FairwayError: there is no such layer or version.
    """
    return int(dataset(home, layer, version).count_rows(filter=pc.field("home")))


def live(path: Path, version: int | None = None) -> "ds.Expression | None":
    """Which stored rows of a version are rows of the layer, on `fid` and `put_number`; None: all of them.

    Args:
        path: the table's folder.
        version: which one; None for the newest.

    Raises:
        FairwayError: there is no such table or version.
    """
    number = tables.version(path) if version is None else version
    return None if number is None else _live(path, number)


def changes_between(
    home: Home, layer: str, older: int, newer: int
) -> frozenset[str] | None:
    """The features that were put or deleted between two versions of a layer, also those that were put as they were.

    Args:
        home: where the tables lie.
        layer: its name.
        older: a version of its table.
        newer: another one.

    Returns:
        Their ids. None: it was loaded anew or spread anew in between, or nobody knows any more: compare the versions.
    """
    if older > newer:
        return None
    rows = tables.appended_since(table_path(home, layer), older, newer, ["fid"])
    return None if rows is None else frozenset(rows["fid"].to_pylist())


def put_between(
    home: Home, layer: str, older: int, newer: int, columns: list[str]
) -> pa.Table | None:
    """The rows at home of the features that were put or deleted between two versions of a layer, as they are now.

    Args:
        home: where the tables lie.
        layer: its name.
        older: a version of its table, whose files are read on.
        newer: another one, not before it.
        columns: of the rows, beside `fid` and `deleted`, which is true of a feature that is not there any more.

    Returns:
        One row for each feature. None: as of `changes_between`, and where the files of the older version were written
        again, so that they may be gone soon.
    """
    named = list(dict.fromkeys(["home", *_NUMBERED, *columns]))
    rows = tables.appended_since(
        table_path(home, layer), older, newer, named, over_compactions=False
    )
    if rows is None or not len(rows):
        return None
    rows = rows.filter(rows["home"]).sort_by("put_number")
    _, last = np.unique(_texts(rows["fid"])[::-1], return_index=True)
    return rows.take(pa.array(len(rows) - 1 - last))


@lru_cache(maxsize=_VERSIONS_HELD)
def _live(path: Path, version: int) -> "ds.Expression | None":
    puts = tables.read(
        path,
        version=version,
        columns=_NUMBERED,
        filters=PUT,
        contract=load_contract(CONTRACT),
    )
    if not len(puts):
        return None
    puts = puts.sort_by("put_number")
    fids, last = np.unique(_texts(puts["fid"])[::-1], return_index=True)
    newest = puts.take(pa.array(len(puts) - 1 - last))
    kept = newest.filter(pc.invert(pc.fill_null(newest["deleted"], fill_value=False)))
    number = pc.coalesce(pc.field("put_number"), pc.scalar(0)).cast(pa.string())
    this = pc.binary_join_element_wise(number, pc.field("fid"), " ")
    counts = pc.binary_join_element_wise(
        kept["put_number"].cast(pa.string()), kept["fid"], " "
    )
    was_put = pc.field("fid").isin(pa.array(fids, pa.string()))
    return ~was_put | this.isin(counts.combine_chunks())


def _stored(path: Path, version: int | None) -> "ds.Dataset":
    return tables.dataset(path, version=version, contract=load_contract(CONTRACT))


def _texts(column: pa.ChunkedArray) -> npt.NDArray[np.object_]:
    texts: npt.NDArray[np.object_] = column.to_numpy(zero_copy_only=False)
    return texts.astype(object)


# --- writing ---------------------------------------------------------------------------------------------------------


def empty_rows() -> pa.Table:
    """No rows, with the columns of a layer's table."""
    return load_contract(CONTRACT).empty_table()


def replace_rows(path: Path, rows: pa.Table) -> int:
    """Puts rows, as `rows.layer_rows` makes them, in the place of all of a layer; gives its new version."""
    return tables.replace(path, rows, load_contract(CONTRACT))


def append_rows(path: Path, rows: pa.Table, *, now_us: int) -> int:
    """Puts features beside all others, in one commit, and over those of the same ids; gives the layer's new version.

    Args:
        path: the table's folder; it is made when it is absent.
        rows: all rows of one or more features, as `rows.layer_rows` makes them, and `deleted` for those that go.
        now_us: when that is, us UTC.
    """
    with tables.locked(path):
        # Each commit takes one more than all before it, also than those of whoever holds no lock.
        number = pa.repeat(pa.scalar((tables.version(path) or 0) + 1), len(rows))
        now = pa.scalar(now_us, pa.timestamp("us", "UTC"))
        columns = {"put_number": number, "put_at": pa.repeat(now, len(rows))}
        for name, values in columns.items():
            at = rows.schema.get_field_index(name)
            rows = rows.remove_column(at) if at >= 0 else rows
            rows = rows.append_column(name, values)
        tables.append(path, rows, load_contract(CONTRACT))
        return tables.version(path) or 0


def fold(
    home: Home, layer: str, *, versions: int = 1, before: datetime | None = None
) -> int:
    """Takes out the rows that do not count, where they lie; gives how many. Answers stay as they are.

    The files of older versions stay for whoever reads these, see `maintenance.layer_retention`.

    Args:
        home: where the tables lie.
        layer: its name.
        versions: so many rows of a feature that was put again stay, the newest ones; of one that was deleted none.
        before: older rows that were put before this go, too; None: none by their age.
    """
    path = table_path(home, layer)
    gone = 0

    def remade(rows: pa.Table) -> pa.Table:
        nonlocal gone
        kept, alone = _kept(rows, versions, before)
        gone = int((~kept).sum())
        # What has no other version is as good as loaded: readers need not know of it.
        number = pc.if_else(pa.array(alone), 0, rows["put_number"])
        at = rows.schema.get_field_index("put_number")
        rows = rows.set_column(at, "put_number", number).filter(pa.array(kept))
        return rows.sort_by([("region_id", "ascending"), ("fid", "ascending")])

    with tables.locked(path):
        if live(path) is None:
            return 0
        of_put = _rows_of_put(path)
        kept, alone = _kept(of_put, versions, before)
        regions = pc.unique(of_put["region_id"]).to_pylist()
        small = tables.files_of(path, version=tables.version(path) or 0, filters=PUT)
        if kept.all() and not alone.any() and len(small) <= len(regions):
            return 0
        tables.refile(path, load_contract(CONTRACT), regions, remade)
    return gone


def _rows_of_put(path: Path) -> pa.Table:
    """All rows of features that were put, without their tags and geometries."""
    columns, contract = [*_NUMBERED, "put_at", "region_id"], load_contract(CONTRACT)
    puts = tables.read(path, columns=["fid"], filters=PUT, contract=contract)
    fids = pc.unique(puts["fid"]).to_pylist()
    of_put: Filters = [("fid", "in", fids)]
    return tables.read(path, columns=columns, filters=of_put, contract=contract)


def _kept(
    rows: pa.Table, versions: int, before: datetime | None
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which rows a fold leaves, and which of these are the only ones of their features; bool[n] each.

    fid a a a b b, number 0 5 9 0 4, `deleted` of the last alone   ->   that by 9; with two versions that by 5, too
    """
    number = pc.fill_null(rows["put_number"], 0).to_numpy()
    _, feature = np.unique(_texts(rows["fid"]), return_inverse=True)
    pairs, pair = np.unique(
        np.stack([feature, -number], axis=1), axis=0, return_inverse=True
    )
    starts = np.searchsorted(pairs[:, 0], pairs[:, 0])
    rank = (np.arange(len(pairs)) - starts)[pair.ravel()]
    is_deleted = pc.fill_null(rows["deleted"], fill_value=False)
    goes = is_deleted.to_numpy(zero_copy_only=False) & (rank == 0)
    kept = ~np.isin(feature, feature[goes]) & (rank < versions)
    if before is not None:
        since = pa.scalar(before, pa.timestamp("us", "UTC"))
        young = pc.fill_null(pc.greater_equal(rows["put_at"], since), fill_value=False)
        kept &= young.to_numpy(zero_copy_only=False) | (rank == 0)
    several = feature[kept & (rank > 0)]
    return kept, kept & ~np.isin(feature, several)
