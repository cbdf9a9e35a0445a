"""WILL ENTER: whether the way that a fix goes on meets a region, or how far that is (SPEC G8, docs/adr/0033).

The velocity is taken from what expressions say of a fix: its speed and heading since the reading before. On degrees
they are those of the geodesic, while ways are straight in coordinates; what the difference may decide is in doubt.
"""

import numpy as np
import shapely

from st_common.reference.columns import Fixes
from st_common.reference.crossing import gaps, ways_between
from st_common.reference.metric import Bools, Floats, Members, Metric
from st_common.reference.shapes import distances
from st_common.regions.registry import Area, Box, Circle, Corridor, Forecast, Region

_DOUBT_FLAT, _DOUBT = 1e-9, 5e-3  # shares of the way, and radians
_LEAST_M = 1e-6
_HALF_TURN = 179.0


def entering(region: Forecast, fixes: Fixes) -> Members:
    """The fixes that meet a region in time, its border included, wherever they are now; masks of n."""
    speed = _numbers(fixes, "speed_mps")
    known = np.flatnonzero(np.isfinite(speed))
    some, way_m = fixes.take(known), speed[known] * region.within_s
    ask = _by_speed if region.by == "speed" else _by_heading
    sure, maybe = np.zeros((2, len(fixes)), np.bool_)
    for part in region.part.leaves() if len(known) else ():  # those of OR, or itself
        meets = ask(part, some, way_m)
        sure[known] |= meets.sure
        maybe[known] |= meets.maybe
    return Members(sure=sure, maybe=maybe)


def _numbers(fixes: Fixes, text: str) -> Floats:
    """The values of an expression; NaN for null."""
    values = fixes.of.values(text, fixes.rows)
    return np.array([np.nan if one is None else float(one) for one in values], float)


def _slack_m(way_m: Floats, metric: Metric) -> Floats:
    return way_m * (_DOUBT_FLAT if metric.is_flat else _DOUBT) + _LEAST_M


def _by_speed(part: Region, fixes: Fixes, way_m: Floats) -> Members:
    """By how far the place is from the region."""
    metric, x, y = fixes.metric, fixes.x, fixes.y
    if isinstance(part, Circle):
        gap_m = metric.distance(x, y, part.x, part.y) - part.radius_m
    else:
        shapes = np.full(len(x), _shape(part), np.object_)
        turned = [distances(shapes, x + turn, y, metric) for turn in metric.turns]
        gap_m = np.min(turned, axis=0) - _width_m(part)
    slack_m = _slack_m(way_m, metric) + (0.0 if metric.is_flat else gap_m * _DOUBT)
    return Members(sure=gap_m <= way_m - slack_m, maybe=gap_m <= way_m + slack_m)


def _by_heading(part: Region, fixes: Fixes, way_m: Floats) -> Members:
    """Surely where ways a little to either side, and a little shorter ones, meet it too."""
    heading = np.radians(np.nan_to_num(_numbers(fixes, "heading_deg")))
    doubt = _DOUBT_FLAT if fixes.metric.is_flat else _DOUBT
    sure = np.ones(len(fixes), np.bool_)
    for turn in (0.0, doubt, -doubt):
        sure &= _gaps_m(part, fixes, way_m * (1 - doubt), heading + turn) <= 0
    gap_m = _gaps_m(part, fixes, way_m * (1 + doubt), heading)
    maybe: Bools = gap_m <= _slack_m(way_m, fixes.metric)
    return Members(sure=sure, maybe=maybe)


def _gaps_m(part: Region, fixes: Fixes, way_m: Floats, heading: Floats) -> Floats:
    """How far ways from fixes are from a region, f64[n]; 0 or less where they meet it."""
    metric, x, y = fixes.metric, fixes.x, fixes.y
    across, along = metric.scale(y)
    dx, dy = way_m * np.sin(heading) / across, way_m * np.cos(heading) / along
    if not metric.is_flat:
        share = np.minimum(1.0, _HALF_TURN / np.maximum(np.abs(dx), _HALF_TURN))
        dx, dy = dx * share, dy * share
    parts = []
    for turn in metric.turns:
        ways = ways_between((x, y), (x + dx, y + dy), metric, turn)
        parts.append(_apart_m(part, ways, metric))
    return np.asarray(np.min(parts, axis=0))


def _apart_m(part: Region, ways: np.ndarray, metric: Metric) -> Floats:
    if isinstance(part, Circle):
        centre = np.array([part.x, part.y])
        scale = np.concatenate(metric.scale(centre[1:]))
        plane = shapely.transform(ways, lambda at: (at - centre) * scale)
        far = shapely.distance(plane, shapely.Point(0, 0))
        return np.asarray(far - part.radius_m)
    shapes = np.full(len(ways), _shape(part), np.object_)
    return np.asarray(gaps(ways, shapes, metric) - _width_m(part))


def _shape(part: Region) -> shapely.Geometry:
    if isinstance(part, Box):
        return shapely.box(part.minx, part.miny, part.maxx, part.maxy)
    if isinstance(part, Area | Corridor):
        return shapely.from_wkt(part.wkt)
    raise TypeError(f"no reference says who enters {part!r}")


def _width_m(part: Region) -> float:
    return part.width_m if isinstance(part, Corridor) else 0.0
