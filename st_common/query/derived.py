"""The Delta table `queries`: the control rows of all streams as a table, made from the logs and never the other way."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from st_common import tables
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.controls.rectangles import Rectangles
from st_common.controls.rows import Register, Registration
from st_common.log.control import control_rows
from st_common.log.log import Log, Segment
from st_common.position import position_of
from st_common.query.control import QueryRow, note_versions, numbered, plan_of
from st_common.query.lookup import logged_streams
from st_common.query.plan import VERSION
from st_common.uncollected import uncollected

_CLOCKS = 1000  # control segments without a query (clock rows) that are read again rather than remembered by a commit


def roll_forward(home: Home) -> int:
    """Appends the control rows that the table does not have yet and gives their number; repeating it adds nothing.

    Each stream is an app transaction whose version is the newest control segment that the table has seen.
    """
    with uncollected():
        return sum(_roll(home, stream) for stream in logged_streams(home))


def queries_table(rows: Sequence[QueryRow]) -> pa.Table:
    """The rows in the columns of the contract `queries`."""
    values: dict[str, list[Any]] = {
        name: [getattr(row, name) for row in rows] for name in _AS_IN_ROWS
    }
    values["plan"] = [
        json.dumps(row.plan.to_json()) if row.plan else None for row in rows
    ]
    return pa.table(values, schema=_schema())


_AS_IN_ROWS = ("name", "version", "op", "position", "text", "owner", "stream")


def _schema() -> pa.Schema:
    return load_contract("queries").arrow_schema()


def _roll(home: Home, stream: str) -> int:
    path, app = home.table("queries"), f"queries-{stream}"
    seen = tables.committed(path, app)
    start = 0 if seen is None else seen + 1
    log = Log(home.log(stream))
    segments = log.control_segments(start)
    if not segments:
        return 0
    versions = _Versions(home, stream) if start else {}
    new = pa.concat_tables(
        _of_segment(log, segment, stream, versions) for segment in segments
    )
    if not len(new) and len(segments) < _CLOCKS:
        return 0
    tables.append(
        path, new, load_contract("queries"), app=app, version=segments[-1].number
    )
    return len(new)


def _of_segment(
    log: Log, segment: Segment, stream: str, versions: dict[str, int]
) -> pa.Table:
    """The query rows of one control segment; their plans are not taken apart, which a million would take long for."""
    read = control_rows(log, segment)
    if isinstance(read, Rectangles):
        note_versions(read, versions)
        return _of_rectangles(read, stream, position_of(segment.number, 0))
    rows = list(numbered(read, stream, segment, versions))
    asked = [row if isinstance(row, Registration) else None for _, row, _ in rows]
    positions = [position_of(segment.number, number) for number, _, _ in rows]
    values = {
        "name": [row.query for _, row, _ in rows],
        "version": [version for _, _, version in rows],
        "op": [row.op for _, row, _ in rows],
        "position": positions,
        "plan": [
            row and _plan_text(row, at)
            for row, at in zip(asked, positions, strict=True)
        ],
        "text": [row and row.text for row in asked],
        "owner": [row and row.owner for row in asked],
        "stream": [stream] * len(rows),
    }
    return pa.table(values, schema=_schema())


def _of_rectangles(rows: Rectangles, stream: str, first: int) -> pa.Table:
    """The rows of a control segment that has rectangles alone, from `first` on."""
    count = len(rows)
    values = {
        "name": rows.names,
        "version": rows.versions,
        "op": pa.repeat(Register.op, count),
        "position": np.arange(first, first + count),
        "plan": list(rows.plan_texts()),
        "text": rows.texts,
        "owner": rows.owners,
        "stream": pa.repeat(stream, count),
    }
    return pa.table(values, schema=_schema())


def _plan_text(row: Registration, position: int) -> str:
    """The text of a plan in the present version."""
    is_present = row.plan["v"] == VERSION
    return json.dumps(row.plan if is_present else plan_of(row, position).to_json())


class _Versions(dict[str, int]):
    """The newest version of each name that the table has of a stream; read when a drop asks for one."""

    def __init__(self, home: Home, stream: str) -> None:
        super().__init__()
        self._home, self._stream, self._read = home, stream, False

    def __missing__(self, name: str) -> int:
        if self._read:
            raise KeyError(name)
        self._read = True
        for known, version in _versions(self._home, self._stream).items():
            self.setdefault(known, version)
        return self[name]


def _versions(home: Home, stream: str) -> dict[str, int]:
    known = tables.read(
        home.table("queries"), columns=["name", "version", "stream"]
    ).to_pydict()
    versions: dict[str, int] = {}
    for name, version, of in zip(
        known["name"], known["version"], known["stream"], strict=True
    ):
        if of == stream:
            versions[name] = max(version, versions.get(name, 0))
    return versions
