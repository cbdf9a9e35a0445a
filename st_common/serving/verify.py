"""Does the answer hold? Brute force over the table `positions` against the folded changes (SPEC X1).

It shares nothing with the engines: which fixes count follows from running maxima over the whole history, and pairs
come from shapely over whole layers.
"""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import shapely
from pyproj import Geod
from shapely import affinity

from st_common import tables
from st_common.capture.log import Log
from st_common.errors import QueryError
from st_common.home import Home
from st_common.position import position_of
from st_common.query.plan import LayerJoin, Plan
from st_common.serving.changes import stream_changes
from st_common.settings import StreamSettings

_NEVER = np.iinfo(np.int64).min
_GEOD = Geod(ellps="WGS84")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What was found of one query at a log position: pairs that are missing from its answer, pairs too many."""

    query: str
    position: int
    members: int
    missing: int
    extra: int

    @property
    def holds(self) -> bool:
        """Whether the folded changes equal the brute force."""
        return not self.missing and not self.extra


def verify(home: Home, stream: StreamSettings, query: str | None = None) -> list[Verified]:
    """The answer of one query, or of all that are registered, checked up to where both tables reach.

    Raises:
        QueryError: there is no such query at that position, or nothing was archived yet.
    """
    log = Log(home.log(stream.name))
    end = _reached(home, stream)
    controls = _controls(log, end)
    registered = _registered(controls)
    if query is not None and query not in registered:
        raise QueryError(f"stream {stream.name!r} has no query {query!r}", hint="`fairway query list` names them")
    alive = _alive(home, stream, controls, end)
    changes = stream_changes(home, stream.name).to_pandas()
    changes = changes[changes["position"] < end]
    names = [query] if query is not None else list(registered)
    return [_verified(name, _expected(home, stream, *registered[name], alive), changes, end) for name in names]


def _reached(home: Home, stream: StreamSettings) -> int:
    """The place after the last row that both `changes` and `positions` have."""
    engine = tables.committed(home.table("changes", stream.name), "engine")
    archive = tables.committed(home.table("positions", stream.name), f"archive-{stream.name}")
    if engine is None or archive is None:
        raise QueryError(f"stream {stream.name!r} has nothing to verify yet", hint=f"`fairway run {stream.name}` first")
    return min(engine + 1, position_of(archive + 1, 0))


def _controls(log: Log, end: int) -> list[tuple[int, dict[str, Any]]]:
    rows = [
        (position_of(segment.number, number), json.loads(line))
        for segment in log.control_segments(0)
        for number, line in enumerate(log.read(segment).splitlines())
    ]
    return [(position, row) for position, row in rows if position < end]


def _registered(controls: list[tuple[int, dict[str, Any]]]) -> dict[str, tuple[Plan, int | None]]:
    """The queries that are registered in the end, with the version of their layer."""
    found: dict[str, tuple[Plan, int | None]] = {}
    layers: dict[str, int] = {}
    for _, row in controls:
        if row["op"] in ("register", "replace"):
            plan = Plan.from_json(row["plan"])
            found.pop(row["query"], None)
            found[row["query"]] = (plan, row.get("layer_version"))
        elif row["op"] == "drop":
            found.pop(row["query"], None)
        elif row["op"] == "layer":
            layers[row["layer"]] = row["version"]
    return {n: (p, layers.get(p.join.layer, v) if p.join else None) for n, (p, v) in found.items()}


def _alive(home: Home, stream: StreamSettings, controls: list[tuple[int, dict[str, Any]]], end: int) -> pd.DataFrame:
    """The last used fix of every object that is neither gone nor silent: object, x, y."""
    columns = ["segment", "row", "event_ts", "object", "x", "y", "gone"]
    fixes = tables.read(home.table("positions", stream.name), columns=columns)
    frame = fixes.set_column(2, "ts", fixes["event_ts"].cast(pa.int64())).to_pandas()
    frame["position"] = position_of(frame["segment"].to_numpy(np.int64), frame["row"].to_numpy(np.int64))
    frame = frame[frame["position"] < end].sort_values("position", kind="stable")
    lateness_us = round(stream.lateness_s * 1e6)
    frame, clock = _used(frame, controls, lateness_us)
    last = frame.sort_values(["ts", "position"], ascending=[True, False]).groupby("object").tail(1)
    last = last[~last["gone"]]
    if stream.silence_s is not None and len(last):
        last = last[last["ts"] + round(stream.silence_s * 1e6) >= clock]
    return last[["object", "x", "y"]].reset_index(drop=True)


def _used(
    frame: pd.DataFrame, controls: list[tuple[int, dict[str, Any]]], lateness_us: int
) -> tuple[pd.DataFrame, int]:
    """The fixes that are neither late nor held any more, and the clock in the end."""
    clocks = pd.DataFrame([(at, row["op"], row.get("ts", 0)) for at, row in controls if row["op"] in ("clock", "end")],
                          columns=["position", "op", "ts"])  # fmt: skip
    both = frame.assign(op="fix")
    if len(clocks):
        both = pd.concat([both, clocks]).sort_values("position", kind="stable")
    highest, highs = _NEVER, []
    if (both["op"] == "end").any() and lateness_us:
        for op, ts in zip(both["op"], both["ts"], strict=True):  # an end mark depends on what came before it
            highest = max(highest, int(ts)) if op != "end" else highest + lateness_us + 1
            highs.append(highest)
        after = np.array(highs, np.int64)
    else:
        after = np.maximum.accumulate(both["ts"].where(both["op"] != "end", _NEVER).to_numpy(np.int64))
    if not len(after):
        return frame, _NEVER
    before = np.r_[_NEVER + lateness_us, after[:-1]] - lateness_us
    clock = int(after[-1]) - lateness_us
    ts = both["ts"].to_numpy(np.int64)
    keep = (both["op"] == "fix").to_numpy()
    if lateness_us:
        keep &= (ts >= before) & (ts < clock)
    return both[keep].astype({"gone": bool}), clock


def _verified(name: str, expected: set[tuple[str, str]], changes: pd.DataFrame, end: int) -> Verified:
    mine = changes[changes["query"] == name]
    sums = mine.assign(partner=mine["partner"].fillna("")).groupby(["object", "partner"])["sign"].sum()
    folded = set(sums[sums > 0].index)
    return Verified(query=name, position=end, members=len(expected), missing=len(expected - folded),
                    extra=len(folded - expected))  # fmt: skip


def _expected(
    home: Home, stream: StreamSettings, plan: Plan, layer_version: int | None, alive: pd.DataFrame
) -> set[tuple[str, str]]:
    box = plan.inside
    if box is not None:
        alive = alive[alive["x"].between(box.minx, box.maxx) & alive["y"].between(box.miny, box.maxy)]
    if plan.join is None:
        return {(name, "") for name in alive["object"]}
    if not len(alive) or layer_version is None:
        return set()
    path = home.table("layers", plan.join.layer)
    rows = tables.read(path, version=layer_version, columns=["fid", "kind", "home", "geometry"]).to_pandas()
    rows = rows[rows["home"] & (rows["kind"].isin(plan.join.kinds) if plan.join.kinds else True)]
    point, feature = _pairs(plan.join, alive, shapely.from_wkb(rows["geometry"].to_numpy()), stream)
    objects, fids = alive["object"].to_numpy(), rows["fid"].to_numpy()
    return set(zip(objects[point], fids[feature], strict=True))


def _pairs(
    join: LayerJoin, alive: pd.DataFrame, shapes: np.ndarray, stream: StreamSettings
) -> tuple[np.ndarray, np.ndarray]:
    points, tree = shapely.points(alive["x"], alive["y"]), shapely.STRtree(shapes)
    if join.predicate == "intersects":
        point, feature = tree.query(points, predicate="intersects")
        return point, feature
    if not stream.geographic:
        point, feature = tree.query(points, predicate="dwithin", distance=join.distance_m)
        return point, feature
    lat = np.abs(alive["y"].to_numpy())
    degrees = 1.01 * join.distance_m / (110_500 * np.cos(np.radians(np.minimum(lat + 0.1, 89.0))))
    point, feature = tree.query(points, predicate="dwithin", distance=degrees)
    return _within_m(join.distance_m, alive, shapes, point, feature)


def _within_m(
    distance_m: float, alive: pd.DataFrame, shapes: np.ndarray, point: np.ndarray, feature: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The pairs within a geodesic distance: the nearest place in coordinates stretched by latitude, then its metres."""
    x, y = alive["x"].to_numpy()[point], alive["y"].to_numpy()[point]
    stretch = np.cos(np.radians(y))
    flat = [affinity.scale(s, k, 1.0, origin=(0, 0)) for s, k in zip(shapes[feature], stretch, strict=True)]
    lines = shapely.shortest_line(shapely.points(x * stretch, y), np.array(flat, object))
    ends = shapely.get_coordinates(shapely.get_point(lines, 1)) if len(lines) else np.empty((0, 2))
    _, _, metres = _GEOD.inv(x, y, ends[:, 0] / stretch, ends[:, 1])
    near = np.asarray(metres) <= distance_m
    return point[near], feature[near]
