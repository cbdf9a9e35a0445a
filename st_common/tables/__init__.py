"""Delta tables without a JVM, by delta-rs: create, append once, replace, read, compact, purge.

What a table looks like is said by its contract (`contracts`); when it is compacted or purged, by `maintenance`. Tables
that jobs on Spark write are opened here too, and committed by `spark.delta`. Begin with `writing`, then `reading`.
"""

from st_common.tables.compaction import compact, vacuum
from st_common.tables.creation import create, note
from st_common.tables.handle import forget
from st_common.tables.lock import locked
from st_common.tables.purging import Purged, checkpoint, purge
from st_common.tables.reading import (
    PURGED,
    committed,
    dataset,
    exists,
    files_of,
    has_deletions,
    is_gone,
    properties,
    purged_before,
    purged_rows,
    ranges,
    read,
    schema,
    sizes,
    stored,
    version,
)
from st_common.tables.recovery import (
    committed_at,
    cut_behind,
    damage,
    damaged_files,
    recover,
    whole_version,
)
from st_common.tables.shape import fit, with_date
from st_common.tables.steps import appended_since
from st_common.tables.versions import Dropped, drop_versions
from st_common.tables.writing import append, begin_anew, refile, replace, settle

__all__ = [
    "PURGED",
    "Dropped",
    "Purged",
    "append",
    "appended_since",
    "begin_anew",
    "checkpoint",
    "committed",
    "committed_at",
    "compact",
    "create",
    "cut_behind",
    "damage",
    "damaged_files",
    "dataset",
    "drop_versions",
    "exists",
    "files_of",
    "fit",
    "forget",
    "has_deletions",
    "is_gone",
    "locked",
    "note",
    "properties",
    "purge",
    "purged_before",
    "purged_rows",
    "ranges",
    "read",
    "recover",
    "refile",
    "replace",
    "schema",
    "settle",
    "sizes",
    "stored",
    "vacuum",
    "version",
    "whole_version",
    "with_date",
]
