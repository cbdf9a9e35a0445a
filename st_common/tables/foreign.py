"""What other programs have made of a table by ALTER TABLE or DELETE, and whether it is read and written here.

Delta names what a reader and a writer must know. What is known here to be harmless is passed over, anything else
refuses that table alone, with the statement of Spark SQL that cures it (docs/foreign-writers.md):

    deletion vectors, none of a live file     read and written: an append adds files, and has no need of them
    deletion vectors of live files            rows are appended, nothing is read or written again
    column mapping, each column as its files  read and written
    column mapping, a column renamed          neither
    row tracking                              read
    a feature that nobody here has heard of   neither
"""

import re
from collections.abc import Collection
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from st_common.errors import TableError

_VECTORS, _MAPPING = "deletionVectors", "columnMapping"
_MODE = "delta.columnMapping.mode"
_PHYSICAL = "delta.columnMapping.physicalName"
_READ = frozenset(
    {
        _VECTORS,  # but see `require_readable`
        _MAPPING,
        "timestampNtz",
        "typeWidening",  # Arrow casts what files have to what the schema says
        "v2Checkpoint",  # delta-rs reads them
        "variantType",  # delta-rs turns it on where it sets a property beside others of these
        "vacuumProtocolCheck",
    }
)
"""What a reader must know, where rows come out right all the same."""
_WRITTEN = frozenset(
    {
        _VECTORS,
        _MAPPING,
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "generatedColumns",
        "invariants",
        "timestampNtz",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantType",
    }
)
"""What a writer must know, where delta-rs commits and other programs read the rows right."""
_UNPROTECTED = (
    "ALTER TABLE {table} SET TBLPROPERTIES"
    " ('delta.dropFeatureTruncateHistory.retentionDuration' = 'interval 0 seconds')",
    "ALTER TABLE {table} DROP FEATURE checkpointProtection TRUNCATE HISTORY",
)
"""Most features that readers must know leave this one behind when they are dropped; at once, not a day later."""
_CURES = {
    _VECTORS: (
        "ALTER TABLE {table} SET TBLPROPERTIES (delta.enableDeletionVectors = false)",
        "REORG TABLE {table} APPLY (PURGE)",
    ),
    "checkpointProtection": _UNPROTECTED,
    "typeWidening": ("ALTER TABLE {table} DROP FEATURE typeWidening", *_UNPROTECTED),
}
"""Statements of Spark SQL, one after the other; another feature is dropped by its name."""
_LAST = frozenset({"checkpointProtection", "domainMetadata"})
"""Features that come with others, and that go when these are gone."""
_NEVER = "clustering"
"""Spark drops this feature from no table."""


def require_readable(path: Path, table: DeltaTable) -> None:
    """Makes sure that the rows of a version of a table are those of its files, by the names of its columns.

    Args:
        path: the table's folder.
        table: the version, opened.

    Raises:
        TableError: they are not, or nobody here knows; it says which statement cures that.
    """
    features = _reader_features(table)
    if not features:
        return
    unknown = sorted(features - _READ)
    if unknown:
        raise refused(path, unknown, "read")
    if _MAPPING in features:
        _require_own_names(path, table)
    if _VECTORS in features and _has_vectors(table):
        raise TableError(
            f"{path} has deletion vectors of another program, which say that some rows of its files are gone",
            hint=_cure(path, [_VECTORS]),
        )


def require_writable(path: Path, table: DeltaTable, *, takes_out: bool) -> None:
    """Makes sure that a commit may add files to a table; with `takes_out` also that it may take files out.

    Args:
        path: the table's folder.
        table: its handle, up to date.
        takes_out: files go, or others take their place: of a file with a deletion vector nobody here can name either.

    Raises:
        TableError: another program has turned on what is not written here; it says which statement cures that.
    """
    protocol = table.protocol()
    unknown = sorted({*(protocol.writer_features or ())} - _WRITTEN)
    if unknown:
        raise refused(path, unknown, "written")
    if takes_out:
        require_readable(path, table)
    elif _MAPPING in _reader_features(table):
        _require_own_names(path, table)


def unsupported(error: BaseException | None) -> list[str]:
    """The features for which delta-rs does not open a table at all, as its error names them; [] for another error."""
    return re.findall(r"Feature '(\w+)' is not supported", str(error))


def require_kept(path: Path, table: DeltaTable, missing: Collection[pa.Field]) -> None:
    """Makes sure that columns which a table lacks are new in its contract, and were not dropped from it.

    Raises:
        TableError: column mapping is on, without which Spark drops no column.
    """
    if missing and _is_mapped(table):
        dropped = ", ".join(field.name for field in missing)
        raise TableError(
            f"{path} has column mapping of another program, and no column {dropped} any more",
            hint=f"in Spark SQL: RESTORE TABLE delta.`{path.absolute()}` TO VERSION AS OF the one before it was "
            "dropped, where nothing was written since; else restore the home from a backup",
        )


def _is_mapped(table: DeltaTable) -> bool:
    return table.metadata().configuration.get(_MODE, "none") != "none"


def refused(path: Path, features: list[str], done: str) -> TableError:
    """The error of a table that has features which nobody here reads, or writes: `done` says which."""
    return TableError(
        f"{path} has {', '.join(features)}, turned on by another program: it is not {done} here",
        hint=_cure(path, features),
    )


def _cure(path: Path, features: Collection[str]) -> str:
    """The statements of Spark SQL that take features out of a table, for people."""
    if _NEVER in features:
        return (
            f"Spark takes {_NEVER} out of no table: restore it from a backup, or remove the folder of a table that is "
            "made from others, such as `latest`"
        )
    ordered = sorted(features, key=lambda name: (name in _LAST, name))
    drop = "ALTER TABLE {table} DROP FEATURE "
    each = [_CURES.get(name, (f"{drop}{name}",)) for name in ordered]
    statements = dict.fromkeys(text for texts in each for text in texts)
    named = [text.format(table=f"delta.`{path.absolute()}`") for text in statements]
    return f"in Spark SQL: {'; '.join(named)}"


def _reader_features(table: DeltaTable) -> set[str]:
    """What a reader of a table must know; before features had names, column mapping alone was one."""
    protocol = table.protocol()
    named = {*(protocol.reader_features or ())}
    return named | {_MAPPING} if protocol.min_reader_version == 2 else named


def _has_vectors(table: DeltaTable) -> bool:
    """Whether rows of live files are gone by deletion vectors."""
    return any(batch.num_rows for batch in table.deletion_vectors())


def _require_own_names(path: Path, table: DeltaTable) -> None:
    """Makes sure that each column is called as it is in files, where it has a name of its own there.

    Raises:
        TableError: one is not, for it was renamed, or added since column mapping is on.
    """
    if not _is_mapped(table):
        return
    other = [
        (field.name, str(field.metadata[_PHYSICAL]))
        for field in table.schema().fields
        if field.metadata.get(_PHYSICAL, field.name) != field.name
    ]
    if other:
        listed = ", ".join(f"{name} is {physical} in files" for name, physical in other)
        raise TableError(
            f"{path} has column mapping of another program: {listed}",
            hint=_renamed(path, *other[0]),
        )


def _renamed(path: Path, name: str, physical: str) -> str:
    """How a column comes back to the name that it has in files; one that was added there goes."""
    table = f"ALTER TABLE delta.`{path.absolute()}`"
    if physical.startswith("col-"):
        return f"in Spark SQL: {table} DROP COLUMN {name}"
    return f"in Spark SQL: {table} RENAME COLUMN {name} TO {physical}"
