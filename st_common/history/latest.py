"""The table `latest`: one reading of every object, and of every object and moving query (PLACE 3.1, second level)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from st_common import tables
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.contracts import load_contract
from st_common.controls.rectangles import Rectangles
from st_common.controls.rows import ControlRow, Fail, Registration
from st_common.history.readings import advance, readings_schema
from st_common.history.stored import archived_end, fixes, parts
from st_common.history.world import COLUMNS
from st_common.log.control import control_rows
from st_common.log.log import Log, Segment
from st_common.position import position_of, segment_of
from st_common.query.control import note_versions, numbered, plan_of

APP = "latest"
VACUUM_EVERY = 10  # flushes


@dataclass
class Focals:
    """Which objects live queries go with, before a segment of the log; read forward, each control row once.

    Attributes:
        stream: the name of the stream.
        next_segment: the log before it was read.
    """

    stream: str
    next_segment: int = 0
    _live: dict[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)
    _versions: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def at(self, home: Home, end: int) -> pa.Table:
        """The objects and the queries that go with them, before a place in the log.

        Args:
            home: where the log lies.
            end: the position of a segment's first row; not before that of the last call.

        Returns:
            Columns object, query and query_version (int32), a row per pair.
        """
        log = Log(home.log(self.stream))
        for segment in log.control_segments(self.next_segment):
            if segment.number >= segment_of(end):
                break
            self._read(control_rows(log, segment), segment)
        self.next_segment = segment_of(end)
        pairs = [
            (focal, name, version)
            for name, (version, focals) in self._live.items()
            for focal in focals
        ]
        columns = zip(*pairs, strict=True) if pairs else ([], [], [])
        types = (pa.string(), pa.string(), pa.int32())
        arrays = [
            pa.array(values, kind) for values, kind in zip(columns, types, strict=True)
        ]
        return pa.table(arrays, names=["object", "query", "query_version"])

    def _read(self, rows: Sequence[ControlRow], segment: Segment) -> None:
        if isinstance(rows, Rectangles):
            note_versions(rows, self._versions)
            for name in rows.names if self._live else ():
                self._live.pop(name, None)
            return
        for number, row, version in numbered(
            rows, self.stream, segment, self._versions
        ):
            if not isinstance(row, Fail) or version == self._versions.get(row.query):
                self._live.pop(row.query, None)
            if isinstance(row, Registration) and _may_have_focals(row.plan):
                plan = plan_of(row, position_of(segment.number, number))
                if plan.focals:
                    self._live[row.query] = version, plan.focals


def _may_have_focals(plan: Mapping[str, Any]) -> bool:
    """Whether a plan as JSON is worth making: of a hundred thousand that stand still it would take seconds."""
    return "neighbours" in plan or _has_focal(plan.get("inside") or {})


def _has_focal(region: Mapping[str, Any]) -> bool:
    """Whether a region as JSON, or one that it is made of, goes with an object."""
    parts = [region["part"]] if "part" in region else region.get("parts", ())
    return "focal" in region or any(map(_has_focal, parts))


def flush_latest(
    home: Home, stream: StreamSettings, focals: Focals | None = None
) -> int | None:
    """Brings the table `latest` up to what `positions` holds (SPEC P2).

    The rows depend on the log up to the place that the table remembers with them, and on `latest_every`: on neither
    batches nor the number of flushes. Attributes are not here: (segment, row) finds them in `positions`.

    Args:
        home: where the tables lie.
        stream: the settings of the stream.
        focals: kept by who flushes again and again, so that control rows are read once; None: read from the beginning.

    Returns:
        The table's number of rows; None when there is nothing new.
    """
    path, end = home.table("latest", stream.name), archived_end(home, stream.name)
    done = tables.committed(path, APP)
    start = 0 if done is None else done + 1
    if end <= start:
        return None
    state = _objects(home, stream.name)
    for low, high in parts(home.table("positions", stream.name), start, end):
        state = advance(
            state,
            fixes(home, stream.name, low, high, COLUMNS),
            every=stream.latest_every,
        )
    rows = _rows(state, (focals or Focals(stream.name)).at(home, end))
    version = tables.replace(
        path, rows, load_contract("latest"), app=APP, version=end - 1
    )
    if version % VACUUM_EVERY == 0:
        tables.vacuum(path)  # each flush leaves the rows of the one before behind
    return len(rows)


def _objects(home: Home, stream: str) -> pa.Table:
    path, schema = home.table("latest", stream), readings_schema()
    if not tables.exists(path):
        return schema.empty_table()
    stored = tables.read(path, columns=[*schema.names, "query"])
    return stored.filter(stored["query"].is_null()).select(schema.names).cast(schema)


def _rows(objects: pa.Table, focals: pa.Table) -> pa.Table:
    """The objects, then the focal objects that have a reading, once for each of their queries."""
    schema = load_contract("latest").arrow_schema()
    # A focal object that has no reading yet has no row.
    carried = objects.join(focals, "object", join_type="inner") if len(focals) else None
    plain = objects.append_column("query", pa.nulls(len(objects), pa.string()))
    plain = plain.append_column("query_version", pa.nulls(len(objects), pa.int32()))
    parts_of_it = [
        plain,
        *(
            [carried.sort_by([("query", "ascending"), ("object", "ascending")])]
            if carried
            else []
        ),
    ]
    return pa.concat_tables(
        [part.select(schema.names).cast(schema) for part in parts_of_it]
    )
