"""The queries and the objects of a home as two tables, and which object is inside of which query's region (SPEC P8).

"The query table can itself be queried": SELECT Q.ID, O.ID FROM QueryTable Q, ObjectTable O WHERE O.location INSIDE
Q.region. The pairs come from one index join for all regions of a kind, as in the engines.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.answers.history import objects_at
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.geometry.circles import box_around
from st_common.geometry.space import Space
from st_common.operators.skeleton.kind_queries import kind_queries
from st_common.operators.skeleton.kinds import KINDS
from st_common.operators.skeleton.world import Criteria, World
from st_common.operators.state.registered import Registered
from st_common.query.control import QueryRow
from st_common.query.explain import kind_in_words
from st_common.query.lookup import queries
from st_common.query.plan import Plan
from st_common.regions.region import MovingRegion, Region
from st_common.regions.registry import index_of, still

_BOUNDS = ("minx", "miny", "maxx", "maxy")
QUERY_TABLE = pa.schema(
    [
        ("ID", pa.string()),
        ("version", pa.int32()),
        ("stream", pa.string()),
        ("kind", pa.string()),
        ("focal", pa.string()),
        *((name, pa.float64()) for name in _BOUNDS),
        ("region", pa.string()),
        ("text", pa.string()),
    ]
)
OBJECT_TABLE = pa.schema(
    [
        ("ID", pa.string()),
        ("stream", pa.string()),
        ("event_ts", pa.timestamp("us", "UTC")),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("location", pa.string()),
    ]
)
INSIDE = pa.schema(
    [("stream", pa.string()), ("object", pa.string()), ("query", pa.string())]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueriesAndObjects:
    """The queries and objects of a home as tables.

    Attributes:
        queries: rows of `QUERY_TABLE`, by ID.
        objects: rows of `OBJECT_TABLE`, by stream and ID.
        inside: rows of `INSIDE`, an object and a query of its stream whose region it is in.
    """

    queries: pa.Table
    objects: pa.Table
    inside: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The regions of some queries: their boxes, float64[m, 4], NaN where they are not; and who is in them."""

    boxes: np.ndarray
    row: np.ndarray
    object: np.ndarray


def queries_and_objects(
    home: Home, streams: Mapping[str, StreamSettings]
) -> QueriesAndObjects:
    """The live queries, and the last fixes of the objects that live, with who is inside which region.

    Objects are those of `fairway objects`. A region that goes with an object is around its last fix; without one it has
    no bounds and contains nothing. The focal object is in no region of its own. Regions are closed; circles are
    geodesic on degrees.

    Args:
        home: where the tables lie.
        streams: the settings by name; other streams are left out.
    """
    of_streams = [_of_stream(home, stream) for _, stream in sorted(streams.items())]
    parts = {
        name: [getattr(one, name) for one in of_streams]
        for name in ("queries", "objects", "inside")
    }
    return QueriesAndObjects(
        queries=pa.concat_tables(
            [QUERY_TABLE.empty_table(), *parts["queries"]]
        ).sort_by("ID"),
        objects=pa.concat_tables([OBJECT_TABLE.empty_table(), *parts["objects"]]),
        inside=pa.concat_tables([INSIDE.empty_table(), *parts["inside"]]),
    )


def _of_stream(home: Home, stream: StreamSettings) -> QueriesAndObjects:
    rows = [row for row in queries(home, [stream.name]) if row.state == "registered"]
    objects = _objects(home, stream)
    world = _world(objects, space=stream.space)
    boxes, pairs = np.full((len(rows), 4), np.nan), [INSIDE.empty_table()]
    # One index join judges all regions of a kind.
    by_kind: dict[type[Region], dict[int, Region]] = {}
    for number, row in enumerate(rows):
        region = None if row.plan is None else row.plan.inside
        # Places do not say who will enter a region, nor whose extent is in it.
        if region is not None and not region.asks_beyond_place:
            region = region.in_units(stream.unit_m)
            by_kind.setdefault(type(region), {})[number] = region
    for of_kind in by_kind.values():
        numbers, regions = list(of_kind), list(of_kind.values())
        moving = [one for one in regions if isinstance(one, MovingRegion)]
        members = _moving(moving, world) if moving else _standing(regions, world)
        boxes[numbers] = members.boxes
        pairs.append(_pairs(stream, world, [rows[n].name for n in numbers], members))
    return QueriesAndObjects(
        queries=_queries(rows, boxes), objects=objects, inside=pa.concat_tables(pairs)
    )


def _objects(home: Home, stream: StreamSettings) -> pa.Table:
    if not tables.exists(home.table("positions", stream.name)):
        return OBJECT_TABLE.empty_table()
    rows = objects_at(home, stream).rows
    x, y = (pc.cast(rows[name], pa.string()) for name in ("x", "y"))
    columns = {
        "ID": rows["object"],
        "stream": pa.repeat(stream.name, len(rows)),
        "event_ts": rows["event_ts"],
        "x": rows["x"],
        "y": rows["y"],
        "location": pc.binary_join_element_wise("POINT(", x, " ", y, ")", ""),
    }
    return pa.table(columns).cast(OBJECT_TABLE)


def _world(objects: pa.Table, *, space: Space) -> World:
    x, y = objects["x"].to_numpy(), objects["y"].to_numpy()
    ids = objects["ID"].combine_chunks()
    return World(x=x, y=y, alive=np.ones(len(x), np.bool_), ids=ids, space=space)


def _queries(rows: Sequence[QueryRow], boxes: np.ndarray) -> pa.Table:
    plans = [row.plan for row in rows if row.plan is not None]
    bounds = {
        name: pa.array(boxes[:, at], from_pandas=True)
        for at, name in enumerate(_BOUNDS)
    }
    columns = {
        "ID": [row.name for row in rows],
        "version": [row.version for row in rows],
        "stream": [row.stream for row in rows],
        "kind": [kind_in_words(plan) for plan in plans],
        "focal": [", ".join(plan.focals) or None for plan in plans],
        **bounds,
        "region": [
            None if plan.inside is None else plan.inside.text() for plan in plans
        ],
        "text": [row.text for row in rows],
    }
    return pa.table([columns[name] for name in QUERY_TABLE.names], schema=QUERY_TABLE)


def _standing(regions: Sequence[Region], world: World) -> _Found:
    """Regions of one kind that stand still."""
    still_ones = [still(region) for region in regions]
    point, row = index_of(still_ones, space=world.space).probe(world.x, world.y)
    boxes = type(still_ones[0]).bounds(still_ones, space=world.space)
    return _Found(boxes=boxes, row=row, object=point)


def _moving(regions: Sequence[MovingRegion], world: World) -> _Found:
    """Regions of one kind that go with objects, judged by the kind itself."""
    judge, count = KINDS[regions[0].kind], len(regions)
    asked = [
        Registered(name="", version=0, plan=Plan(stream="", inside=region))
        for region in regions
    ]
    queries = kind_queries(asked, list(range(count)), space=world.space)
    names = queries.ids.ids
    focal = (
        pc.fill_null(pc.index_in(names, world.ids), -1)
        .to_numpy(zero_copy_only=False)
        .astype(np.int64)
    )
    criteria = judge.update_criteria(world, queries.table(focal), np.arange(count))
    row, objects = judge.in_cache_area(world, criteria, np.arange(len(world.x)), 0.0)
    keep = judge.satisfy(world, criteria, row, objects)
    boxes = (
        _boxes_of(criteria, world)
        if criteria.forms is None
        else _standing_boxes(regions, world)
    )
    # A region of which an object has no fix is nowhere.
    boxes[queries.focal_row[focal[queries.focal_at] < 0]] = np.nan
    return _Found(boxes=boxes, row=row[keep], object=objects[keep])


def _standing_boxes(regions: Sequence[MovingRegion], world: World) -> np.ndarray:
    """The bounds of regions made of others, while their objects are where they are; float64[n, 4], else NaN."""
    names, places = world.ids.to_pylist(), zip(world.x, world.y, strict=True)
    known, boxes = (
        dict(zip(names, places, strict=True)),
        np.full((len(regions), 4), np.nan),
    )
    for row, region in enumerate(regions):
        if known.keys() >= {*region.focals}:
            now = region.standing(known, space=world.space)
            boxes[row] = type(now).bounds([now], space=world.space)[0]
    return boxes


def _boxes_of(criteria: Criteria, world: World) -> np.ndarray:
    x, y, wide, high = criteria.x, criteria.y, criteria.half_width, criteria.half_height
    if len(criteria.limit):
        return box_around(x, y, criteria.limit, space=world.space)
    return np.stack([x - wide, y - high, x + wide, y + high], axis=1)


def _pairs(
    stream: StreamSettings, world: World, names: Sequence[str], pairs: _Found
) -> pa.Table:
    columns = [
        pa.repeat(stream.name, len(pairs.row)),
        world.ids.take(pa.array(pairs.object)),
        pa.array(names, pa.string()).take(pa.array(pairs.row)),
    ]
    return pa.table(columns, schema=INSIDE)
