"""Until when points stay inside, against exact arithmetic in the plane and geodesics on the globe."""

import math
from fractions import Fraction

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from pyproj import Geod

from st_common.geometry.space import GLOBE, PLANE
from st_common.geometry.until import (
    Motion,
    in_boxes_until,
    in_circles_until,
)
from st_common.regions.registry import Area, Box, MovingBox

GEOD = Geod(ellps="WGS84")
INF = float("inf")
SPEED = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-50, 50).filter(lambda v: v == 0 or abs(v) > 1e-6),
)
OFFSET = st.floats(-1, 1)
AT = 1_600_000_000.0


def motion(x, y, vx, vy):
    return Motion(
        **{
            name: np.array([value], float)
            for name, value in zip(("x", "y", "vx", "vy"), (x, y, vx, vy), strict=True)
        }
    )


def until_box(point, box, velocity=(0.0, 0.0), at=AT):
    columns = np.array(box, float).reshape(4, 1)
    found = in_boxes_until(
        motion(*point), columns, *(np.array([v]) for v in velocity), np.array([at])
    )
    return float(found[0])


def until_circle(point, centre, radius, *, space=PLANE, at=AT):
    found = in_circles_until(
        motion(*point),
        motion(*centre),
        np.array([radius]),
        np.array([at]),
        space=space,
    )
    return float(found[0])


@pytest.mark.spec("G8")
@given(OFFSET, OFFSET, SPEED, SPEED, SPEED, SPEED)
def test_a_box_is_left_at_the_first_border(x, y, vx, vy, bx, by):
    found = until_box((x, y, vx, vy), (-1.0, -1.0, 1.0, 1.0), (bx, by), at=0.0)
    rx, ry = Fraction(vx - bx), Fraction(vy - by)
    after = [
        (Fraction(math.copysign(1, r)) - Fraction(p)) / r
        for p, r in ((x, rx), (y, ry))
        if r
    ]
    if not after:
        assert found == INF
    else:
        assert found == pytest.approx(float(min(after)), rel=1e-15)


@pytest.mark.spec("G8")
@given(st.floats(0, 1), st.floats(0, 7), SPEED, SPEED, SPEED, SPEED)
def test_a_circle_is_left_where_the_way_crosses_it(share, turn, vx, vy, cx, cy):
    x, y, radius = 100 * share * math.cos(turn), 100 * share * math.sin(turn), 100.0
    found = until_circle((x, y, vx, vy), (0.0, 0.0, cx, cy), radius, at=0.0)
    rx, ry = vx - cx, vy - cy
    if rx == ry == 0:
        assert found == INF
        return
    assert math.hypot(x + rx * found, y + ry * found) == pytest.approx(
        radius, rel=1e-7, abs=1e-7
    )
    later = found + 1 / math.hypot(rx, ry)
    assert math.hypot(x + rx * later, y + ry * later) > radius


@pytest.mark.spec("G8")
@pytest.mark.parametrize("latitude", [0.0, 41.1, -70.0])
@pytest.mark.parametrize("longitude", [-8.6, 180.0])
def test_on_the_globe_a_circle_is_left_at_its_radius(longitude, latitude):
    for azimuth in range(0, 360, 30):
        lon, lat, _ = GEOD.fwd(longitude, latitude, azimuth + 77, 800.0)
        east, north, _ = GEOD.fwd(lon, lat, azimuth, 15.0)
        vx, vy = (east - lon + 180) % 360 - 180, north - lat
        after = (
            until_circle(
                (lon, lat, vx, vy),
                (longitude, latitude, 0.0, 0.0),
                2_000.0,
                space=GLOBE,
            )
            - AT
        )
        assert GEOD.inv(longitude, latitude, lon + vx * after, lat + vy * after)[
            2
        ] == pytest.approx(2_000, rel=2e-3)


def test_unknown_velocities_give_no_moment_and_equal_ones_the_end_of_time():
    nan = math.nan
    assert math.isnan(until_box((0, 0, nan, nan), (-1, -1, 1, 1)))
    assert math.isnan(until_box((0, 0, 1, 1), (-1, -1, 1, 1), (nan, nan)))
    assert math.isnan(until_circle((0, 0, nan, nan), (0, 0, 0, 0), 5.0))
    assert math.isnan(until_circle((0, 0, 1, 0), (0, 0, nan, nan), 5.0))
    assert until_box((0, 0, 3, 4), (-1, -1, 1, 1), (3, 4)) == INF
    assert until_box((0, 0, 3, 0), (-INF, -1, INF, 1)) == INF
    assert until_circle((0, 0, 3, 4), (1, 1, 3, 4), 5.0) == INF


def test_on_the_border_it_matters_where_the_way_leads():
    assert until_box((1, 0, 1, 0), (-1, -1, 1, 1)) == AT
    assert until_box((1, 0, -1, 0), (-1, -1, 1, 1)) == AT + 2
    assert until_circle((5, 0, 1, 0), (0, 0, 0, 0), 5.0) == AT
    assert until_circle((5, 0, -1, 0), (0, 0, 0, 0), 5.0) == AT + 10
    assert until_circle((5, 0, 0, 1), (0, 0, 0, 0), 5.0) == AT


def random_boxes(rng, count):
    low, side = rng.uniform(-100, 100, (2, count)), rng.uniform(1, 9, (2, count))
    return [
        Box(minx=x, miny=y, maxx=x + wide, maxy=y + high)
        for x, y, wide, high in np.concatenate([low, side]).T.tolist()
    ]


def inside_of(rng, boxes):
    """A moving point in each of some boxes."""
    minx, miny, maxx, maxy = np.array([box.corners for box in boxes]).T
    share, speed = rng.uniform(0, 1, (2, len(boxes))), rng.normal(size=(2, len(boxes)))
    return Motion(
        x=minx + share[0] * (maxx - minx),
        y=miny + share[1] * (maxy - miny),
        vx=speed[0],
        vy=speed[1],
    )


@pytest.mark.spec("G8")
def test_each_member_leaves_the_region_that_is_its_own():
    """Many boxes at once, each asked about twice and in no order, and the same boxes as polygons."""
    rng = np.random.default_rng(3)
    boxes = random_boxes(rng, 50)
    which = rng.permutation(np.repeat(np.arange(len(boxes)), 2))
    members = inside_of(rng, [boxes[at] for at in which.tolist()])
    at_s = rng.uniform(0, 100, len(which))
    expected = [
        until_box(point, boxes[at].corners, at=moment)
        for point, at, moment in zip(
            zip(members.x, members.y, members.vx, members.vy, strict=True),
            which.tolist(),
            at_s,
            strict=True,
        )
    ]
    assert (
        Box.exits(boxes, space=PLANE).until(which, members, at_s).tolist() == expected
    )
    areas = [
        Area.of_wkt(shapely.to_wkt(shapely.box(*box.corners), rounding_precision=-1))
        for box in boxes
    ]
    as_areas = Area.exits(areas, space=PLANE).until(which, members, at_s)
    np.testing.assert_allclose(as_areas, expected, atol=1e-9)


@pytest.mark.spec("G8")
@pytest.mark.parametrize("space", [PLANE, GLOBE])
def test_boxes_around_objects_in_metres_and_in_coordinates_are_asked_together(space):
    y, across = 60.0, float(space.scale(np.array([60.0]))[0][0])
    boxes = [
        MovingBox(focal="f", width=2.0, height=2.0),
        MovingBox(focal="f", width=2.0 * across, height=9e9, metres=True),
    ]
    members, focal = motion(20.0, y, 0.5, 0.0), motion(20.0, y, 0.25, 0.0)
    left = [
        MovingBox.exits(boxes, space=space)
        .until(np.array([at]), members, focal, np.array([AT]))
        .tolist()
        for at in (0, 1)
    ]
    assert left == [[AT + 4], [AT + 4]]
