"""Where objects were at a time: range and k nearest over snapshots and positions (PLACE section 3.1, SPEC P2)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.answers.answers import Reads
from st_common.answers.fix_values import with_values
from st_common.answers.object_conditions import holding
from st_common.asking import asking
from st_common.config.columns import GEOMETRY
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.errors import QueryError
from st_common.geometry.space import Space
from st_common.history.purged import kept_snapshot
from st_common.history.snapshots import Snapshot, objects_of
from st_common.history.stored import FILTERED, archived_end, fixes, has_filtered, parts
from st_common.history.world import COLUMNS, LAST, last_fixes
from st_common.regions.registry import Box

OBJECTS = ("object", "event_ts", "x", "y")


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestTo:
    """Asks for the objects nearest to a point; of equally far ones those whose id comes first as text.

    Attributes:
        k: how many.
        x: the point, in the stream's coordinates.
        y: likewise.
    """

    k: int
    x: float
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Where objects were at a time.

    Attributes:
        at: the time; None when nothing was seen.
        rows: `OBJECTS` as columns, and `distance` when the nearest were asked for; by object, or by distance.
        reads: what was read for it.
    """

    at: datetime | None
    rows: pa.Table
    reads: Reads


def objects_at(
    home: Home,
    stream: StreamSettings,
    at: datetime | None = None,
    *,
    inside: Box | None = None,
    nearest: NearestTo | None = None,
    where: str | None = None,
    shapes: bool = False,
) -> Seen:
    """Where the objects of a stream were at a time, each by its last fix up to then; by object, or by distance.

    All fixes that are archived count, also those that came too late to change an answer: the past as it is known now.
    An object that was gone then, or silent for longer than the stream's `silence_s`, is left out. `distance` is in
    metres, to the millimetre, on longitude and latitude; else in the unit of the coordinates.

    Args:
        home: where the tables lie.
        stream: whose objects.
        at: the time, with a time zone; None is the largest event time that is archived.
        inside: only objects in this box; its border belongs to it.
        nearest: of those only the nearest to a point.
        where: only objects of whose last fix this condition holds, see `condition_of`; before `nearest` chooses.
        shapes: with the column `geometry`, WKT, of a stream whose elements have one (see `has_shapes`).

    Raises:
        QueryError: nothing of the stream was archived yet, or the condition cannot be evaluated.
        FairwayError: fixes that the answer at that time follows from were purged.
    """
    _require_positions(home, stream.name)
    snapshot = kept_snapshot(home, stream.name, "positions", at)
    held = objects_of(home, stream.name, snapshot)
    rows, after = _since(home, stream.name, held, snapshot, at)
    reads = Reads(
        stream=stream.name, snapshot=snapshot, snapshot_rows=len(held), after_rows=after
    )
    when = at if at is not None else pc.max(rows["event_ts"]).as_py()
    alive = _alive(home, rows, stream, when)
    asked = Choice(inside=inside, nearest=nearest, where=where, shapes=shapes)
    return Seen(at=when, rows=chosen(home, stream, alive, asked), reads=reads)


def _require_positions(home: Home, stream: str) -> None:
    if not tables.exists(home.table("positions", stream)):
        raise QueryError(
            f"stream {stream!r} has no positions yet",
            hint=f"`fairway run {stream}` first",
        )


def object_at(home: Home, stream: StreamSettings, name: str, at: datetime) -> pa.Table:
    """Where one object was at a time, as `objects_at` tells it, with the attributes of its last fix up to then.

    Returns:
        One row; none where it was not there: gone, silent or never seen.

    Raises:
        QueryError: nothing of the stream was archived yet.
        FairwayError: fixes that the answer follows from were purged.
    """
    _require_positions(home, stream.name)
    snapshot = kept_snapshot(home, stream.name, "positions", at)
    held = objects_of(home, stream.name, snapshot)
    held = held.filter(pc.equal(held["object"], name))
    rows, _ = _since(home, stream.name, held, snapshot, at, ("object", "=", name))
    return with_values(home, stream, _alive(home, rows, stream, at))


def archived_at(
    home: Home,
    stream: StreamSettings,
    at: datetime | None = None,
    *,
    shapes: bool = False,
) -> pa.Table:
    """Where objects are or were, as the rows of `objects_at`; none of a stream of which nothing is archived yet."""
    if not tables.exists(home.table("positions", stream.name)):
        return pa.table({name: [] for name in OBJECTS})
    return objects_at(home, stream, at, shapes=shapes).rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which objects are asked for; see `objects_at`."""

    inside: Box | None = None
    nearest: NearestTo | None = None
    where: str | None = None
    shapes: bool = False


def has_shapes(stream: StreamSettings) -> bool:
    """Whether the elements of a stream are lines, areas or the like, of which x and y are merely a point."""
    return stream.columns.shape is not None


def chosen(
    home: Home, stream: StreamSettings, rows: pa.Table, asked: Choice
) -> pa.Table:
    """Those of some objects that are in a box, of these those of which a condition holds, of these the nearest.

    Args:
        home: where the attributes of their fixes lie.
        stream: whose objects.
        rows: last fixes: `OBJECTS` and `position`.
        asked: which.

    Returns:
        `OBJECTS`, and `geometry` where shapes are asked for and there are some; by object, of the nearest by
        `distance`, which is another column then.
    """
    if asked.inside is not None:
        rows = rows.filter(_inside(rows, asked.inside))
    if asked.where is not None:
        rows = holding(home, stream, rows, asked.where)
    shown = rows.select(OBJECTS)
    if asked.shapes and has_shapes(stream):
        shapes = with_values(home, stream, rows)[GEOMETRY]
        shown = shown.append_column(GEOMETRY, shapes)
    if asked.nearest is None:
        return shown.sort_by("object")
    return _nearest(shown, asked.nearest, space=stream.space)


def _since(
    home: Home,
    stream: str,
    held: pa.Table,
    snapshot: Snapshot | None,
    at: datetime | None,
    *more: tuple[str, str, Any],
) -> tuple[pa.Table, int]:
    """The last fixes at the time, and how many fixes after the snapshot were read for it.

    `more` are filters of fixes, as of `tables.read`.
    """
    bound = [*more] if at is None else [*more, ("event_ts", "<=", at)]
    rows, count = held, 0
    start = 0 if snapshot is None else snapshot.position
    for low, high in parts(
        home.table("positions", stream), start, archived_end(home, stream)
    ):
        later = fixes(home, stream, low, high, COLUMNS, *bound)
        rows, count = last_fixes(rows, later), count + len(later)
    return rows.select(LAST.names), count


def _alive(
    home: Home, rows: pa.Table, stream: StreamSettings, at: datetime | None
) -> pa.Table:
    """Who was not gone and not silent; who was quiet may have sent fixes that a position filter took out."""
    alive = rows.filter(pc.invert(rows["gone"]))
    if stream.silence_s is None or at is None:
        return alive
    since = at - timedelta(microseconds=round(stream.silence_s * 1e6))
    bound = pa.scalar(since, alive["event_ts"].type)
    is_quiet = pc.less(alive["event_ts"], bound)
    quiet = alive.filter(is_quiet)
    heard = _heard(home, stream, quiet, since, at)
    return pa.concat_tables([alive.filter(pc.invert(is_quiet)), heard])


def _heard(
    home: Home, stream: StreamSettings, quiet: pa.Table, since: datetime, at: datetime
) -> pa.Table:
    """Those of quiet objects that were heard of up to a time: filtered fixes left no gap longer than the silence.

    Read are the filtered fixes since `since`, and of their objects those since the last accepted one.
    """
    path = home.table("positions", stream.name)
    if not len(quiet) or not has_filtered(path):
        return quiet.slice(0, 0)
    recent = _filtered(path, since, at)
    quiet = quiet.filter(pc.is_in(quiet["object"], recent["object"]))
    if not len(quiet):
        return quiet
    filtered = _filtered(path, pc.min(quiet["event_ts"]).as_py(), at)
    with asking() as connection:
        connection.register("quiet", _in_us(quiet))
        connection.register("filtered", _in_us(filtered))
        silence_us = round((stream.silence_s or 0.0) * 1e6)
        given = {"at": round(at.timestamp() * 1e6), "silence_us": silence_us}
        heard = connection.sql(_HEARD, params=given).to_arrow_table()
    return quiet.filter(pc.is_in(quiet["object"], heard["object"]))


_HEARD = """
WITH fixes AS (
    SELECT object, event_ts FROM quiet
    UNION ALL SELECT f.object, f.event_ts FROM filtered f JOIN quiet q USING (object) WHERE f.event_ts > q.event_ts
), gaps AS (
    SELECT object, coalesce(lead(event_ts) OVER (PARTITION BY object ORDER BY event_ts), $at) - event_ts AS gap_us
    FROM fixes
)
SELECT object FROM gaps GROUP BY object HAVING max(gap_us) <= $silence_us"""


def _filtered(path: Path, since: datetime, at: datetime) -> pa.Table:
    bounds = [("event_ts", ">=", since), ("event_ts", "<=", at)]
    rows = tables.read(path, columns=["object", "event_ts", FILTERED], filters=bounds)
    return rows.filter(rows[FILTERED].is_valid())


def _in_us(rows: pa.Table) -> pa.Table:
    return pa.table(
        {"object": rows["object"], "event_ts": rows["event_ts"].cast(pa.int64())}
    )


def _inside(rows: pa.Table, box: Box) -> pa.ChunkedArray:
    in_x = pc.and_(
        pc.greater_equal(rows["x"], box.minx), pc.less_equal(rows["x"], box.maxx)
    )
    in_y = pc.and_(
        pc.greater_equal(rows["y"], box.miny), pc.less_equal(rows["y"], box.maxy)
    )
    return pc.and_(in_x, in_y)


def _nearest(rows: pa.Table, place: NearestTo, *, space: Space) -> pa.Table:
    """The nearest rows with their distance; they are compared by ranks, as continuous queries do."""
    x, y = rows["x"].to_numpy(), rows["y"].to_numpy()
    rank = space.rank(x, y, np.full_like(x, place.x), np.full_like(y, place.y))
    ids = np.array(rows["object"].to_pylist(), object).astype(str)
    # By rank, not by distance: on the plane distances are rounded roots, which could tie two places that differ.
    order = np.lexsort((ids, rank))[: place.k]
    return rows.append_column("distance", pa.array(space.measure(rank))).take(
        pa.array(order)
    )
