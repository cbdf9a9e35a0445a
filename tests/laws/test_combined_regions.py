"""AND, OR and NOT of regions: for any tree, at any place, many at once say what brute force says of each (SPEC X12)."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.geometry.space import GLOBE, PLANE, Space
from st_common.query.text import parse
from st_common.reference.columns import Fixes, objects
from st_common.reference.metric import Metric
from st_common.reference.ranges import inside
from st_common.regions.registry import (
    Area,
    Box,
    Circle,
    Corridor,
    Region,
    by_kind,
    index_of,
    region_from_json,
    region_to_json,
)
from tests.kit.effort import tries
from tests.kit.random_grid import draw_combined

pytestmark = pytest.mark.spec("X12")
PLACES = 60
WIDE_M = (2e4, 9e4, 5e5, 3e6)
_NOBODY = None


def drawn_on(space: Space, rng: Random) -> Region:
    """A tree: on the grid of random plans, or of regions of all sizes around 180 degrees and poles."""
    grid = draw_combined(rng)
    return grid if space.is_flat else moved(grid, rng)


def moved(region: Region, rng: Random) -> Region:
    """The same tree with other leaves."""
    if list(region.leaves()) == [region]:
        return leaf(rng)
    return region.with_parts(lambda part: moved(part, rng))


def leaf(rng: Random) -> Region:
    x, y = rng.choice((-180, -170, 0, 171, 180)), rng.choice((-90, -60, 0, 60, 90))
    match rng.randrange(4):
        case 0:
            return Circle(x=x, y=y, radius_m=rng.choice(WIDE_M))
        case 1:
            return Box.of_corners(x, y, rng.uniform(-180, 180), rng.uniform(-90, 90))
        case 2:
            return Area.across(rng.uniform(90, 179), -50, rng.uniform(-179, -90), 60)
        case _:
            line = "MULTILINESTRING ((170 10, 180 20), (-180 20, -150 60))"
            return Corridor.along(line, rng.choice(WIDE_M[:2]))


def places_on(space: Space, rng: Random) -> tuple[np.ndarray, np.ndarray]:
    """Places on the grid and its borders; on the globe anywhere, many of them next to 180 degrees and a pole."""
    if space.is_flat:
        halves = [rng.randint(-2, 18) / 2 for _ in range(2 * PLACES)]
        return np.array(halves[::2]), np.array(halves[1::2])
    x = [rng.choice((rng.uniform(-180, 180), 180, -180)) for _ in range(PLACES)]
    y = [rng.choice((rng.uniform(-90, 90), -90, 90, 20)) for _ in range(PLACES)]
    return np.array(x, float), np.array(y, float)


@pytest.mark.parametrize("space", [PLANE, GLOBE], ids=str)
@tries(60)
@given(seed=st.integers(0, 2**32 - 1))
def test_what_contains_a_place_is_what_brute_force_says_of_its_parts(
    space: Space, seed: int
):
    rng = Random(seed)
    regions = [drawn_on(space, rng) for _ in range(8)]
    x, y = places_on(space, rng)
    metric = Metric(is_flat=space.is_flat)
    nobody, rows = objects([_NOBODY] * len(x)), np.arange(len(x))
    fixes = Fixes(ids=nobody, x=x, y=y, metric=metric, of=_NOBODY, rows=rows)
    for numbers in by_kind(regions).values():
        index = index_of([regions[n] for n in numbers], space=space)
        point, of = index.probe(x, y)
        told = np.zeros((len(numbers), len(x)), bool)
        told[of, point] = True
        assert len(point) == told.sum(), "each pair once"
        assert np.array_equal(np.lexsort((of, point)), np.arange(len(of)))
        expected = [inside(regions[n], fixes) for n in numbers]
        assert (told >= [each.sure for each in expected]).all()
        assert (told <= [each.maybe for each in expected]).all()


@tries(60)
@given(seed=st.integers(0, 2**32 - 1))
def test_what_it_contains_lies_within_its_bounds(seed: int):
    rng = Random(seed)
    space = rng.choice((PLANE, GLOBE))
    region = drawn_on(space, rng)
    x, y = places_on(space, rng)
    point, _ = index_of([region], space=space).probe(x, y)
    minx, miny, maxx, maxy = type(region).bounds([region], space=space)[0]
    assert ((x >= minx) & (x <= maxx) & (y >= miny) & (y <= maxy))[point].all()


@tries(60)
@given(seed=st.integers(0, 2**32 - 1))
def test_it_is_read_again_from_its_text_and_from_its_json(seed: int):
    region = draw_combined(Random(seed))
    assert region_from_json(region_to_json(region)) == region
    first = f"REGISTER QUERY q AS SELECT * FROM s INSIDE {region.text()}"
    (said,) = parse(first)  # its areas in their canonical form
    again = f"REGISTER QUERY q AS SELECT * FROM s INSIDE {said.plan.inside.text()}"
    assert parse(again)[0].plan.inside == said.plan.inside
    assert said.plan.inside.text().count("(") == region.text().count("(")


@tries(60)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_place_is_inside_of_what_de_morgan_says(seed: int):
    """NOT (a OR b) is NOT a AND NOT b, at every place of the grid: two trees of another shape."""
    rng = Random(seed)
    a, b = (draw_combined(rng).text() for _ in range(2))
    x, y = places_on(PLANE, rng)
    texts = (
        f"NOT INSIDE ({a} OR {b})",
        f"NOT INSIDE {a} AND NOT INSIDE {b}",
        f"INSIDE (NOT NOT NOT ({a} OR {b}))",
    )
    said = [parse(f"REGISTER QUERY q AS SELECT * FROM s {text}") for text in texts]
    points = [
        index_of([one.plan.inside], space=PLANE).probe(x, y)[0].tolist()
        for (one,) in said
    ]
    assert points[0] == points[1] == points[2]
