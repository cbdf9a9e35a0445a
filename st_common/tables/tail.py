"""The rows that are added to a table, by its log alone: nothing that was there before is read again."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from st_common.observed import note_read
from st_common.tables.files import partition_text
from st_common.tables.foreign import require_readable
from st_common.tables.handle import newest
from st_common.tables.reading import dataset_of

if TYPE_CHECKING:
    import pyarrow.compute as pc

UNBOUNDED = (1 << 63) - 1  # the end of a file whose end nobody noted


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """A data file that was added to a table.

    Attributes:
        path: below the table's folder.
        values: of its partition, by column, as the log writes them.
        rows: how many it holds; 0 where nobody noted it.
        least: the least value of the column that orders the table's rows, -1 where nobody noted it.
        greatest: the greatest one, `UNBOUNDED` where nobody noted it.
    """

    path: str
    values: Mapping[str, str | None]
    rows: int
    least: int
    greatest: int


class Tail:
    """Follows a table to which rows are only ever added, in the order of an integer column that never falls back.

    Files that only hold other files' rows in another arrangement (compaction) are passed over.

        tail = Tail(path, "position")
        tail.added(after=0)      the files of the whole table
        tail.added(after=0)      those of commits since; [] when there was none

    Args:
        path: the table's folder; the table need not be there yet.
        order: the column, such as `position`.
    """

    def __init__(self, path: Path, order: str) -> None:
        self._path, self._order = path, order
        self._log = path / "_delta_log"
        self._version: int | None = None

    def added(self, after: int) -> list[Added]:
        """The files that came since the last call and can hold rows at or behind a value; by their ends, ascending.

        The first call, and one after the log was cleaned meanwhile, gives such files of the whole table. One that finds
        nothing costs a look at two files.

        Args:
            after: the least value of the ordering column that is of interest.
        """
        files = self._since() if self._version is not None else None
        if files is None:
            files = self._whole()
        return sorted(
            (file for file in files if file.greatest >= after),
            key=lambda file: file.greatest,
        )

    def start_again(self) -> None:
        """Makes the next call of `added` look at the whole table, because files that it gave have been cleaned away."""
        self._version = None

    def read(
        self, files: list[Added], schema: pa.Schema, keep: "pc.Expression"
    ) -> pa.Table:
        """The rows of some files that keep a condition, in no order.

        Args:
            files: one or more, as `added` gave them.
            schema: the columns of the answer, those of the partition among them.
            keep: an Arrow expression on these columns.

        Raises:
            FileNotFoundError: a file has been cleaned away; see `start_again`.
        """
        note_read(self._path, self._version)
        by = list(files[0].values)
        parts = [
            (
                file.path,
                [_typed(file.values[name], schema.field(name).type) for name in by],
            )
            for file in files
        ]  # the log holds the values of partitions as text
        return (
            dataset_of(self._path, schema, by, parts)
            .to_table(columns=schema.names, filter=keep)
            .cast(schema)
        )

    def _whole(self) -> list[Added]:
        table = newest(self._path)
        if table is None:
            return []
        require_readable(self._path, table)
        self._version = table.version()
        by = table.metadata().partition_columns
        least, greatest = f"min.{self._order}", f"max.{self._order}"
        actions = pa.table(table.get_add_actions(flatten=True))
        wanted = {
            "path",
            "num_records",
            least,
            greatest,
            *(f"partition.{name}" for name in by),
        }
        rows = actions.select(
            [name for name in actions.column_names if name in wanted]
        ).to_pylist()
        return [
            Added(
                path=unquote(action["path"]),
                values={
                    name: partition_text(action[f"partition.{name}"]) for name in by
                },
                rows=action["num_records"] or 0,
                least=_or(action.get(least), -1),
                greatest=_or(action.get(greatest), UNBOUNDED),
            )
            for action in rows
        ]

    def _since(self) -> list[Added] | None:
        """What the commits after the last known one added; None when the log no longer has all of them."""
        files: list[Added] = []
        while True:
            version = (self._version or 0) + 1
            try:
                # As bytes: a text would end at U+2028 too, which statistics of ids have as it is.
                content = (self._log / f"{version:020d}.json").read_bytes()
            except FileNotFoundError:
                return None if self._was_cleaned(version) else files
            lines = [json.loads(line) for line in content.splitlines()]
            if any(map(_is_foreign, lines)):
                return (
                    None  # another program has altered the table: it is looked at anew
                )
            actions = [line.get("add") for line in lines]
            files += [
                self._file(action)
                for action in actions
                # Compaction adds files too, but of rows that were given already.
                if action and action["dataChange"]
            ]
            self._version = version

    def _was_cleaned(self, version: int) -> bool:
        """Whether a checkpoint stands behind a commit that is not there."""
        try:
            checkpoint = json.loads(
                (self._log / "_last_checkpoint").read_text(encoding="utf-8")
            )
        except (FileNotFoundError, json.JSONDecodeError):
            return False
        return (
            int(checkpoint["version"]) >= version
            and not (self._log / f"{version:020d}.json").exists()
        )

    def _file(self, action: Mapping[str, Any]) -> Added:
        stats = json.loads(action.get("stats") or "{}")
        return Added(
            path=unquote(action["path"]),
            values=action["partitionValues"],
            rows=int(stats.get("numRecords", 0)),
            least=_or(stats.get("minValues", {}).get(self._order), -1),
            greatest=_or(stats.get("maxValues", {}).get(self._order), UNBOUNDED),
        )


def _is_foreign(line: Mapping[str, Any]) -> bool:
    """Whether an action of the log changes how the table is read, or what rows its files have."""
    return "protocol" in line or bool((line.get("add") or {}).get("deletionVector"))


def _or(bound: int | None, unknown: int) -> int:
    return unknown if bound is None else int(bound)


def _typed(text: str | None, kind: pa.DataType) -> object:
    return None if text is None else pa.scalar(text, pa.string()).cast(kind).as_py()
