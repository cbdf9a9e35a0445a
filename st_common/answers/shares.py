"""Shares of a stream's last fixes that satisfy a selection or lie in a region, for `explain` (SPEC G10)."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.answers.sql import sql
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.history.stored import where_accepted
from st_common.operators.expressions.evaluation import masks
from st_common.query.explain import Estimates
from st_common.query.lengths import in_coordinates
from st_common.query.plan import Plan
from st_common.query.sides import alone
from st_common.regions.region import MovingRegion, Region
from st_common.regions.registry import region_mask


def shares_of(home: Home, stream: StreamSettings, plan: Plan) -> Estimates:
    """How many objects a stream has, and which shares of them a plan's conditions select (SPEC G10).

    Args:
        home: where the tables lie; positions must be there.
        stream: the settings of the plan's stream.
        plan: its `where` (of pairs what it asks of the first object) and its region are asked of the last fix of each
            object that had not gone.

    Returns:
        Shares from 0 to 1; None where the plan has no such condition, or its region goes with an object that is
        unknown.
    """
    rows, plan = _last_readings(home, stream), in_coordinates(plan, stream.unit_m)
    if not len(rows):
        return Estimates(objects=0)
    own = alone(plan)
    where = (
        None if own is None else float(masks([own], _fields(rows, stream))[0].mean())
    )
    region = None if plan.inside is None else _standing(plan.inside, rows, stream)
    space = None
    if region is not None:
        x, y = rows["x"].to_numpy(), rows["y"].to_numpy()
        space = float(region_mask(region, x, y, space=stream.space).mean())
    return Estimates(objects=len(rows), where=where, space=space)


def _last_readings(home: Home, stream: StreamSettings) -> pa.Table:
    """The last fix of every object that is there, with time and place of the one before (null without one)."""
    view = f"positions_{stream.name.replace('-', '_')}"
    before = ", ".join(
        f"lag({name}, {back}) OVER readings AS {which}_{name}"
        for back, which in ((1, "before"), (2, "earlier"))
        for name in ("event_ts", "x", "y", "gone")
    )
    text = f"""
        WITH numbered AS (
            SELECT *, {before}, lead(segment) OVER readings IS NULL AS is_last FROM {view}
            {where_accepted(home, stream.name)}
            WINDOW readings AS (PARTITION BY object ORDER BY event_ts, segment DESC, "row" DESC)
        )
        SELECT * FROM numbered WHERE is_last AND NOT gone ORDER BY object
    """  # noqa: S608 - a checked name
    return sql(home, text)


def _fields(rows: pa.Table, stream: StreamSettings) -> pa.Table:
    """The columns that expressions may use."""
    elapsed_s, metres = _leg(rows, "before", "", stream)
    before_s, before_m = _leg(rows, "earlier", "before", stream)
    speed_mps = pc.divide(metres, elapsed_s)
    change = pc.subtract(speed_mps, pc.divide(before_m, before_s))
    ends = (_floats(rows[name]) for name in ("before_x", "before_y", "x", "y"))
    heading = pa.array(stream.space.bearing(*ends), from_pandas=True)
    columns = {name: rows[name] for name in (*stream.attributes, "object", "x", "y")}
    return pa.table(
        {
            **columns,
            "event_ts": pc.cast(rows["event_ts"], pa.timestamp("us")),
            "elapsed_s": elapsed_s,
            "speed_mps": speed_mps,
            "heading_deg": pc.if_else(pc.is_valid(elapsed_s), heading, None),
            "acceleration_mps2": pc.divide(change, elapsed_s),
        }
    )


def _leg(
    rows: pa.Table, start: str, end: str, stream: StreamSettings
) -> tuple[pa.Array, pa.Array]:
    """The seconds and metres from one reading to the next ("" for the last); null where that began a stay."""
    said = [f"{end}_{name}".strip("_") for name in ("event_ts", "x", "y")]
    passed = pc.subtract(rows[said[0]], rows[f"{start}_event_ts"])
    seconds = pc.divide(pc.cast(passed, pa.int64()), 1e6)
    # An object that left and came back, or two fixes of one time, have no speed.
    known = pc.and_(pc.greater(seconds, 0.0), pc.invert(rows[f"{start}_gone"]))
    names = (f"{start}_x", f"{start}_y", *said[1:])
    metres = stream.space.distance(*(_floats(rows[name]) for name in names))
    return pc.if_else(known, seconds, None), pa.array(metres, from_pandas=True)


def _standing(region: Region, rows: pa.Table, stream: StreamSettings) -> Region | None:
    """A region where it is now: that of a focal object stands around its last fix."""
    if region.asks_beyond_place:
        return None  # last places alone do not say who is in
    if not isinstance(region, MovingRegion):
        return region
    focals = rows.filter(pc.is_in(rows["object"], pa.array(region.focals)))
    if len(focals) < len(region.focals):
        return None
    names, *axes = (focals[name].to_pylist() for name in ("object", "x", "y"))
    places = dict(zip(names, zip(*axes, strict=True), strict=True))
    return region.standing(places, space=stream.space)


def _floats(column: pa.ChunkedArray) -> np.ndarray:
    values: np.ndarray = (
        column.combine_chunks().to_numpy(zero_copy_only=False).astype(np.float64)
    )
    return values
