"""Rows into tables: appended once, or in the place of others."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction

from st_common.contracts import Contract
from st_common.errors import ConflictError, ContractError, TransientError
from st_common.observed import note_written
from st_common.storage import refused_at
from st_common.tables.active import active_files, commit, removals
from st_common.tables.creation import made
from st_common.tables.durable import sync_files, sync_log
from st_common.tables.files import write_files
from st_common.tables.handle import forget, required
from st_common.tables.lock import locked
from st_common.tables.reading import read
from st_common.tables.selection import selected, taken_out
from st_common.tables.shape import fit

_TRIES = 5
_T = TypeVar("_T")


def append(
    path: Path,
    data: pa.Table,
    contract: Contract,
    *,
    app: str | None = None,
    version: int | None = None,
    after: int | None = None,
    notes: Mapping[str, int] | None = None,
    check: Callable[[], None] | None = None,
    files: Sequence[AddAction] = (),
) -> bool:
    """Appends rows to a table, exactly once for each version of an app.

    The table is made from the contract at the first use; attributes that it does not have yet are added to it. With no
    rows only the app's version moves on; without an app nothing is committed then. After a crash the rows and the
    version are both there or both not.

        app `engine` stands at 40:   version 50, after 40  ->  True
                                     version 50, after 30  ->  ConflictError: somebody else committed 40
                                     version 40            ->  False: it is there already

    Args:
        path: the table's folder.
        data: the rows, as `fit` takes them.
        contract: of the table.
        app: the name of an app transaction; None: the rows are appended each time.
        version: the app's version by this commit, as a position in the log; only with `app`.
        after: the version at which the app must stand, -1 for none: so that of two that think they are the only one,
            both at the same place, one commits. None: anywhere before `version`.
        notes: numbers that are kept with the app's version, by names of their own; `committed` gives them.
        check: called under the table's lock right before the commit; refuses by an error.
        files: more rows, in files that `write_files` has written below the table's folder.

    Returns:
        False when `app` has committed `version` or a later one before.

    Raises:
        ConflictError: the app stands elsewhere than at `after`; nothing was committed.
        StorageError: the disk is full, or refuses.
        ContractError: the rows or the table are not what the contract says.
        TransientError: somebody who does not hold the table's lock committed in between, again and again.
    """
    rows = fit(data, contract)
    marks = _marks(app, version)
    noted = [Transaction(name, number) for name, number in (notes or {}).items()]

    def once() -> bool:
        table = made(path, contract, rows.schema)
        if check is not None:
            check()
        if after is not None and marks:
            _require_at(path, table, marks[0], after)
        elif marks and _is_done(table, marks[0]):
            return False
        if len(rows) or marks:
            commit(
                table, [*files, *write_files(path, rows, contract)], [*marks, *noted]
            )
        return True

    return _committed(path, once)


def replace(
    path: Path,
    data: pa.Table,
    contract: Contract,
    *,
    predicate: str | None = None,
    app: str | None = None,
    version: int | None = None,
) -> int:
    """Puts rows in the place of all rows of a table, or of some; gives the table's new version.

    Readers see the old rows or the new ones, never a part.

    Args:
        path: the table's folder; the table is made when it is absent.
        data: the new rows, as `fit` takes them; with none, the old ones go.
        contract: of the table.
        predicate: which rows are replaced, as SQL on the table's columns, such as `date = '2024-01-01'`; every row of
            `data` must keep it. None: all.
        app: the name of an app transaction. When it has committed `version` or a later one before, nothing is replaced,
            and the version is the one that stands.
        version: the app's version by this commit.

    Raises:
        ContractError: the rows or the table are not what the contract says, or rows of `data` do not keep `predicate`.
        TransientError: somebody who does not hold the table's lock committed in between, again and again.
    """
    rows = fit(data, contract)
    if predicate is not None and not _all(selected(rows, predicate)):
        raise ContractError(
            f"{contract.name}: not every new row keeps {predicate}",
            hint="it would never be replaced",
        )
    marks = _marks(app, version)

    def once() -> int:
        table = made(path, contract, rows.schema)
        if not (marks and _is_done(table, marks[0])):
            commit(
                table,
                [
                    *write_files(path, rows, contract),
                    *taken_out(path, table, predicate),
                ],
                marks,
            )
        return required(path).version()

    return _committed(path, once)


def refile(
    path: Path,
    contract: Contract,
    parts: Collection[str],
    remade: Callable[[pa.Table], pa.Table],
) -> int:
    """Writes some partitions anew, in one commit; gives the table's newest version.

    Who follows the table by its log passes over it: the new rows say what the old ones said.

    Args:
        path: the table's folder.
        contract: of the table, which is partitioned by one column of text.
        parts: the values of the partitions; the files of others stay.
        remade: gives the rows to write for all that these hold; they are in no order.

    Raises:
        FairwayError: there is no table.
        TransientError: somebody who does not hold the table's lock committed in between, again and again.
    """
    (by,) = contract.partition_by

    def once() -> int:
        table = made(path, contract, contract.arrow_schema())
        old = [one for one in active_files(table) if dict(one.values)[by] in parts]
        rows = remade(read(path, filters=[(by, "in", [*parts])], contract=contract))
        new = write_files(path, fit(rows, contract), contract, data_change=False)
        commit(table, [*new, *removals(old, data_change=False)])
        return required(path).version()

    return _committed(path, once)


def settle(path: Path) -> None:
    """Makes durable what delta-spark has committed to a table; nobody may rely on it before.

    What Hadoop puts beside each file, `.NAME.crc`, goes: nothing would delete it together with its file.

    Call it inside `locked(path)`.

    Args:
        path: the table's folder.
    """
    forget(path)
    names = pa.table(required(path).get_add_actions())["path"].to_pylist()
    sync_files([path / unquote(name) for name in names], path)
    for beside in path.rglob(".*.crc"):
        beside.unlink(missing_ok=True)
    sync_log(path)
    note_written(path, required(path).version())


def begin_anew(path: Path, *, app: str, predicate: str) -> None:
    """Takes rows out of a table and lets an app commit from its beginning again, in one commit.

    Args:
        path: the table's folder.
        app: the name of the app transaction.
        predicate: SQL that selects the rows.

    Raises:
        FairwayError: there is no table.
        TransientError: somebody who does not hold the table's lock committed in between, again and again.
    """

    def once() -> None:
        commit(
            required(path),
            taken_out(path, required(path), predicate),
            [Transaction(app, -1)],
        )

    _committed(path, once)


def _all(kept: pa.Array | pa.ChunkedArray) -> bool:
    return bool(pc.all(kept, min_count=0).as_py())


def _marks(app: str | None, version: int | None) -> list[Transaction]:
    return (
        [Transaction(app, version)] if app is not None and version is not None else []
    )


def _is_done(table: DeltaTable, mark: Transaction) -> bool:
    before = table.transaction_version(mark.app_id)
    return before is not None and before >= mark.version


def _require_at(path: Path, table: DeltaTable, mark: Transaction, after: int) -> None:
    before = table.transaction_version(mark.app_id)
    if (-1 if before is None else before) != after:
        raise ConflictError(
            f"{path}: {mark.app_id} stands at {before}, not at {after}",
            hint="another process committed, or the table was restored from a copy; start again",
        )


def _committed(path: Path, once: Callable[[], _T]) -> _T:
    """What `once` gives, tried again under the lock while others get in between."""
    with locked(path):
        for _ in range(_TRIES - 1):
            try:
                return _of_disk(path, once)
            except CommitFailedError:
                forget(path)
        try:
            return _of_disk(path, once)
        except CommitFailedError as error:
            hint = "every committer holds st_common.tables.locked"
            raise TransientError(
                f"{path}: {_TRIES} commits failed: {error}", hint=hint
            ) from error


def _of_disk(path: Path, once: Callable[[], _T]) -> _T:
    """What `once` gives; when the system refuses a file, an error for people that names the table."""
    try:
        return once()
    except (OSError, DeltaError) as error:
        told = refused_at(error, path)
        if told is error:
            raise
        raise told from error
