"""The small grid of random plans: its stream, its objects, and the places and regions on it."""

from random import Random

from st_common.query.neighbours import Place
from st_common.regions.registry import (
    Area,
    Box,
    Circle,
    Complement,
    Corridor,
    Intersection,
    MovingBox,
    MovingCircle,
    Region,
    Union,
    joined_region,
)

STREAM = "grid"
LAYER = "shapes"
SIZE = 8  # coordinates are 0, 0.5, .. 8
OBJECTS = ("a", "b", "c", "d", "é 1")
FOCALS = (*OBJECTS, *OBJECTS, "nobody")
SIDES = (0.0, 1.0, 4.0, 7.0, 7.0, 16.0)
RADII = (
    0.0,
    0.5,
    1.0,
    2.5,
    2.5,
    5.0,
    5.0,
    10.0,
)  # 2.5 meets 1.5 and 2, 5 meets 3 and 4
AREAS = (
    "POLYGON ((0 0, 6 0, 6 6, 0 6, 0 0))",
    "POLYGON ((0 0, 8 0, 4 4, 0 0))",
    "POLYGON ((0 0, 8 0, 8 8, 0 8, 0 0), (2 2, 6 2, 6 6, 2 6, 2 2))",
    "MULTIPOLYGON (((0 0, 2 0, 2 8, 0 8, 0 0)), ((4 0, 8 0, 8 3, 4 0)))",
)
STREETS = (
    "LINESTRING (1 1, 6 1, 6 6)",
    "LINESTRING (0 4, 8 4)",
    "MULTILINESTRING ((0 7, 3 7), (5 2, 5 8, 7 8))",
)
SLOPES = (
    "LINESTRING (0 0, 8 5)",
    "LINESTRING (0 8, 3 3, 4 7, 8 0, 7 8)",
    "MULTILINESTRING ((0 1, 7 2), (2 8, 8 3))",
)
ODD = (0.77, 1.31, 2.73)
"""Lengths that no point or line of the grid has from another: ways are often slanted, and their distances rounded."""
CLEAR_AREA = "POLYGON ((0.25 0.25, 7.75 0.25, 4.25 4.5, 0.25 0.25))"
"""No point of the grid lies on its border, so none moves along it: there, rounding decides when it leaves."""


KEYS = (("kind", "kind"), ("seats", "size"), ("kind", "line"), ("object", "fid"))
"""What of a fix may equal what of a feature."""


def draw_key(rng: Random) -> tuple[str | None, str | None]:
    """Mostly none, for joins by place."""
    return rng.choice(KEYS) if rng.random() < 0.25 else (None, None)


def coordinate(rng: Random) -> float:
    """Halves from 0 to 8: few enough to meet borders and each other."""
    return rng.randint(0, 2 * SIZE) / 2


def box(rng: Random) -> Box:
    """A rectangle on the grid; some are lines or points."""
    corners = [coordinate(rng) for _ in range(4)]
    if rng.random() < 0.5:
        corners = [
            corners[0] / 4,
            corners[1] / 4,
            SIZE - corners[2] / 4,
            SIZE - corners[3] / 4,
        ]
    return Box.of_corners(*corners)


def draw_still(rng: Random) -> Region:
    """A region that stands still: a rectangle, a circle, a corridor or an area, or AND, OR, NOT of these."""
    return draw_combined(rng) if rng.random() < 0.15 else draw_simple(rng)


def draw_combined(rng: Random, depth: int = 3) -> Region:
    """AND, OR and NOT of regions, in each other, some of them without end."""
    parts = [
        draw_combined(rng, depth - 1)
        if depth > 1 and rng.random() < 0.3
        else draw_simple(rng)
        for _ in range(rng.choice((2, 2, 3)))
    ]
    match rng.randrange(5):
        case 0:
            return Complement(part=parts[0])
        case 1:
            return Union(parts=tuple(parts))
        case 2:
            return Intersection(parts=tuple(parts))
        case _:
            first, *others = parts
            turned = [Complement(part=part) for part in others]
            return Intersection(parts=(first, *turned))


def draw_simple(rng: Random) -> Region:
    """A rectangle, a circle, a corridor or an area."""
    match rng.randrange(4):
        case 0:
            return box(rng)
        case 1:
            return Circle(
                x=coordinate(rng), y=coordinate(rng), radius_m=rng.choice(RADII)
            )
        case 2:
            return draw_corridor(rng)
        case _:
            return Area(wkt=rng.choice(AREAS))


def draw_corridor(rng: Random) -> Corridor:
    """A corridor along sides of the grid, where distances are exact, or along slanted ones, of an odd width."""
    if rng.random() < 0.5:
        return Corridor(wkt=rng.choice(STREETS), width_m=rng.choice(RADII))
    return Corridor(wkt=rng.choice(SLOPES), width_m=rng.choice(ODD))


def draw_moving(rng: Random) -> Region:
    """A region that goes with objects: around one, or AND, OR, NOT of such and others."""
    return draw_moving_combined(rng) if rng.random() < 0.2 else draw_around(rng)


def draw_moving_combined(rng: Random) -> Region:
    """AND, OR, NOT of one or two regions around objects and of regions that stand still."""
    parts = [draw_around(rng)]
    parts += rng.choice(([], [draw_around(rng)], [draw_still(rng)]))
    match rng.randrange(5) if len(parts) > 1 else 0:
        case 0:
            return joined_region(Complement(part=parts[0]))
        case 1:
            return joined_region(Union(parts=tuple(parts)))
        case 2:
            return joined_region(Intersection(parts=tuple(parts)))
        case 3:
            turned = Complement(part=parts[1])
            return joined_region(Intersection(parts=(parts[0], turned)))
        case _:
            inner = Union(parts=(Complement(part=parts[0]), parts[1]))
            return joined_region(Intersection(parts=(draw_simple(rng), inner)))


def draw_around(rng: Random) -> Region:
    """A region around an object: a circle or a rectangle."""
    focal = rng.choice(FOCALS)
    if rng.random() < 0.5:
        return MovingCircle(focal=focal, radius_m=rng.choice(RADII))
    metres = rng.random() < 0.3  # the same as coordinates in a plane
    return MovingBox(
        focal=focal, width=rng.choice(SIDES), height=rng.choice(SIDES), metres=metres
    )


def draw_place(rng: Random) -> Place:
    """A place that stands still, or where an object is."""
    if rng.random() < 0.4:
        return Place(x=coordinate(rng), y=coordinate(rng))
    return Place(focal=rng.choice(FOCALS))
