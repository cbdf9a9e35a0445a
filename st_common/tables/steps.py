"""What happened to a table between two of its versions, by its log.

version   4         5         6                 7         8
commit    replace   append    files rewritten   no file   append
4 to 8: the rows of 5 and 8, as they were written; 3 to 8: not known, for 4 took rows out
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from st_common.tables.durable import log_name


def appended_since(
    path: Path,
    older: int,
    newer: int,
    columns: list[str],
    *,
    over_compactions: bool = True,
) -> pa.Table | None:
    """The rows that the commits after one version and up to another have appended, in the order of the commits.

    Args:
        path: the table's folder.
        older: a version.
        newer: another, not before it.
        columns: of the rows; none by which the table is partitioned.
        over_compactions: False: None, too, where files were written again, for those of the older version are read on.

    Returns:
        What a compaction wrote again is not among them. None where some commit took rows out, or where a commit or a
        file is not there any more.
    """
    parts: list[pa.Table] = []
    for number in range(older + 1, newer + 1):
        try:
            actions = _actions(path, number)
            gone = [one["remove"] for one in actions if "remove" in one]
            if any(one["dataChange"] or not over_compactions for one in gone):
                return None
            added = [one["add"] for one in actions if "add" in one]
            parts += [
                pq.ParquetFile(path / unquote(one["path"])).read(columns=columns)
                for one in added
                if one["dataChange"]
            ]
        except FileNotFoundError:
            return None
    return pa.concat_tables(parts) if parts else pa.table({one: [] for one in columns})


def takes_out(path: Path, older: int, newer: int) -> bool:
    """Whether a commit after one version and up to another took files out, or nobody knows any more."""
    try:
        return any(
            "remove" in one
            for number in range(older + 1, newer + 1)
            for one in _actions(path, number)
        )
    except FileNotFoundError:
        return True


def _actions(path: Path, version: int) -> list[Mapping[str, Any]]:
    """The actions of a commit, as its file in the log has them."""
    lines = (path / "_delta_log" / log_name(version)).read_bytes().splitlines()
    return [json.loads(line) for line in lines]
