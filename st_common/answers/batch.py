"""In which batch a change was committed: the version of the table that brought it in, or the journal."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from st_common import tables
from st_common.answers.commits import engine_commits, has_first
from st_common.config.home import Home
from st_common.engine.committing import APP
from st_common.tables.handle import newest
from st_common.tables.pruning import keep


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One commit of an engine, which brought a change into the table.

    Attributes:
        journal: the change is in the journal alone so far: there is no commit yet.
        version: the table's version by the commit. Tables keep their log for a while only: of an older change it is
            None, and `file` and `written_ts` say in which file it stands (after a compaction: with others).
        committed_ts: when it was committed.
        from_position: the first position that the commit brought.
        through_position: the last one.
        file: the data file that holds the change, where its version is not known.
        written_ts: when that file was written.
    """

    journal: bool = False
    version: int | None = None
    committed_ts: datetime | None = None
    from_position: int | None = None
    through_position: int | None = None
    file: str | None = None
    written_ts: datetime | None = None


def batch_of(home: Home, stream: str, position: int, seq: int) -> Batch:
    """The batch that committed a change; all parts None when neither the table nor its log knows the change.

    Args:
        home: where the tables lie.
        stream: the stream.
        position: the change's place in the log.
        seq: its number among the changes of that place.
    """
    path = home.table("changes", stream)
    committed = tables.committed(path, APP)
    if committed is None or position > committed:
        return Batch(journal=True)
    # Without the first commit an earlier one may have brought it in.
    before: int | None = -1 if has_first(path) else None
    for commit in engine_commits(path):
        if commit.position >= position:
            if before is None:
                break
            stamp_ms = commit.stamp_ms
            return Batch(
                version=commit.version,
                committed_ts=None if stamp_ms is None else _time(stamp_ms),
                from_position=before + 1,
                through_position=commit.position,
            )
        before = commit.position
    return _stored(path, position, seq)


def _stored(path: Path, position: int, seq: int) -> Batch:
    """The file in which the row stands."""
    table = newest(path)
    if table is None:
        return Batch()
    actions = keep(
        pa.table(table.get_add_actions(flatten=True)), [("position", "=", position)]
    )
    for name, written in zip(
        actions["path"].to_pylist(),
        actions["modification_time"].to_pylist(),
        strict=True,
    ):
        rows = pq.read_table(
            path / unquote(name),
            columns=["seq"],
            filters=[("position", "=", position), ("seq", "=", seq)],
            partitioning=None,
        )
        if len(rows):
            return Batch(
                file=name,
                written_ts=written if isinstance(written, datetime) else _time(written),
            )
    return Batch()


def _time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
