"""Who satisfies a plan, from the last readings of the objects that live: loops, one object after the other."""

import math
from collections.abc import Sequence

import shapely
from shapely.geometry.base import BaseGeometry

from st_common.query.neighbours import (
    GroupNearest,
    Nearest,
    Neighbours,
    Place,
    ReverseNearest,
    places_of,
)
from st_common.query.plan import LayerJoin, PairJoin, Plan
from st_common.regions.registry import (
    Area,
    Box,
    Circle,
    Corridor,
    MovingBox,
    MovingCircle,
    Region,
)
from st_common.testing.oracle_comparing import shape_of, transformed, turns
from st_common.testing.oracle_expressions import text_of, value_of
from st_common.testing.oracle_readings import (
    Known,
    Point,
    Reading,
    degree_m,
    distance_m,
    is_within,
    metres,
    rank,
)
from st_common.testing.oracle_rows import Feature, Pair, Rules


def members(
    plan: Plan, known: Known, features: Sequence[Feature], rules: Rules
) -> dict[Pair, Reading]:
    """The pairs that satisfy a plan's operators below window and aggregate, each with the reading of its object.

    A focal object that does not live empties the answer, and none is in the answer of its own query.
    """
    if any(focal not in known.alive for focal in plan.focals):
        return {}
    found = [
        r
        for name, r in known.alive.items()
        if name not in plan.focals and qualifies(plan, r, known, rules)
    ]
    if plan.neighbours is not None:
        found = _nearest(plan.neighbours, found, known, rules)
    if plan.pairs is not None:
        return {
            (reading.fix.object, other.fix.object): reading
            for reading in found
            for other in known.alive.values()
            if _are_pair(plan.pairs, reading, other, rules)
        }
    return {
        (r.fix.object, p): r for r in found for p in joined(plan, r, features, rules)
    }


def qualifies(plan: Plan, reading: Reading, known: Known, rules: Rules) -> bool:
    """Whether a reading is inside the plan's region, its condition is true (null is not), and its steps let it through.

    Of a join with a layer the steps are judged feature by feature, in `joined`.
    """
    if plan.inside is not None and not is_inside(plan.inside, reading.at, known, rules):
        return False
    if plan.join is None and transformed(plan, reading, rules) is None:
        return False
    return plan.where is None or value_of(plan.where, reading) is True


def joined(
    plan: Plan, reading: Reading, features: Sequence[Feature], rules: Rules
) -> list[str | None]:
    """The partners of a reading among the features; [None] without a join."""
    join = plan.join
    if join is None:
        return [None]
    found: list[str | None] = []
    for feature in features:
        extents = (
            transformed(plan, reading, rules, feature)
            if is_meant(join, feature)
            else None
        )
        if extents is not None and _joins(join, reading, extents, feature, rules):
            found.append(feature.fid)
    return found


def is_meant(join: LayerJoin, feature: Feature) -> bool:
    """Whether a feature is of the kinds and has the tags that a join asks for."""
    has = {**feature.tags, "fid": feature.fid, "kind": feature.kind}
    return (not join.kinds or feature.kind in join.kinds) and all(
        has.get(name) == text for name, text in join.tags
    )


def has_key(join: LayerJoin, reading: Reading, feature: Feature) -> bool:
    """Whether a feature has the value of a reading that a join asks for; true where it asks for none."""
    if join.left is None:
        return True
    left = value_of(join.left, reading)
    right = {"fid": feature.fid, "kind": feature.kind}.get(
        str(join.right), feature.tags.get(str(join.right))
    )
    return left is not None and text_of(left) == right


def _joins(
    join: LayerJoin, reading: Reading, extents: Point, feature: Feature, rules: Rules
) -> bool:
    if not has_key(join, reading, feature):
        return False
    boxes = [shape_of(at, extents) for at in turns(reading.at, extents[0] / 2, rules)]
    if join.predicate == "intersects":
        return any(feature.geometry.intersects(box) for box in boxes)
    if join.predicate == "within":
        return any(box.within(feature.geometry) for box in boxes)
    if join.predicate == "dwithin":
        places = turns(reading.at, 180.0, rules)
        return (
            min(
                distance_m(feature.geometry, *at, geographic=rules.geographic)
                for at in places
            )
            <= join.distance_m
        )
    return True  # joined by the key alone


def is_inside(region: Region, at: Point, known: Known, rules: Rules) -> bool:
    """Whether a point is in a region, borders too; a moving one goes with the last reading of its focal object."""
    if isinstance(region, Box):
        return (
            region.minx <= at[0] <= region.maxx and region.miny <= at[1] <= region.maxy
        )
    if isinstance(region, Area):
        return shapely.from_wkt(region.wkt).intersects(shapely.Point(at))
    if isinstance(region, Circle):
        return is_within(
            at, (region.x, region.y), region.radius_m, geographic=rules.geographic
        )
    if isinstance(region, Corridor):
        line = shapely.from_wkt(region.wkt)
        return far_m(line, at, rules) <= region.width_m
    if not isinstance(region, MovingBox | MovingCircle):
        raise TypeError(f"no reference knows the region {region!r}")
    centre = known.alive[region.focal].at
    if isinstance(region, MovingCircle):
        return is_within(at, centre, region.radius_m, geographic=rules.geographic)
    across, along = half_sides(region, centre, rules)
    turn = abs(at[0] - centre[0])
    if rules.geographic:
        turn = min(turn, 360 - turn)
    return turn <= across and abs(at[1] - centre[1]) <= along


def far_m(shape: BaseGeometry, at: Point, rules: Rules) -> float:
    """How far a place is from a shape, on degrees also across 180 of them."""
    return min(
        distance_m(shape, *turn, geographic=rules.geographic)
        for turn in turns(at, 180.0, rules)
    )


def half_sides(region: MovingBox, centre: Point, rules: Rules) -> Point:
    """Half of a moving box's sides, in coordinates; metres on degrees are those at the latitude of its centre."""
    scale = degree_m(centre[1]) if region.metres and rules.geographic else (1.0, 1.0)
    return region.width / 2 / scale[0], region.height / 2 / scale[1]


def _nearest(
    neighbours: Neighbours, found: list[Reading], known: Known, rules: Rules
) -> list[Reading]:
    places = [_point(place, known) for place in places_of(neighbours)]
    if isinstance(neighbours, ReverseNearest):
        return [
            reading
            for reading in found
            if _is_nearest(places[0], reading, known, rules)
        ]
    if isinstance(neighbours, Nearest):
        far = {
            r.fix.object: rank(r.at, places[0], geographic=rules.geographic)
            for r in found
        }
    else:
        far = {r.fix.object: _total(neighbours, r, places, rules) for r in found}
    return sorted(found, key=lambda r: (far[r.fix.object], r.fix.object))[
        : neighbours.k
    ]


def _point(place: Place, known: Known) -> Point:
    return (place.x, place.y) if place.focal is None else known.alive[place.focal].at


def _is_nearest(place: Point, reading: Reading, known: Known, rules: Rules) -> bool:
    """Whether no other living object is nearer to the reading's object than the place is."""
    others = [
        other for name, other in known.alive.items() if name != reading.fix.object
    ]
    far = rank(reading.at, place, geographic=rules.geographic)
    return all(
        far <= rank(reading.at, other.at, geographic=rules.geographic)
        for other in others
    )


def _total(
    group: GroupNearest, reading: Reading, places: list[Point], rules: Rules
) -> float:
    ranks = [rank(reading.at, place, geographic=rules.geographic) for place in places]
    if group.total == "max":
        return max(ranks)
    if group.total == "min":
        return min(ranks)
    if rules.geographic:
        return round(
            math.fsum(metres(reading.at, place, geographic=True) for place in places), 3
        )
    return round(sum(math.sqrt(square) for square in ranks), 9)


def _are_pair(pairs: PairJoin, reading: Reading, other: Reading, rules: Rules) -> bool:
    if reading.fix.object == other.fix.object:
        return False
    for key in pairs.keys:
        value = value_of(key, reading)
        if value is None or value != value_of(key, other):
            return False
    near = pairs.distance_m
    return near is None or is_within(
        reading.at, other.at, near, geographic=rules.geographic
    )
