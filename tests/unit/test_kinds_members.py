"""All kinds against the reference, which measures every object for every query."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyproj import Geod

from st_common.geometry import circles, group, join, nearest
from st_common.geometry.space import GLOBE, PLANE
from st_common.operators.skeleton import ways
from st_common.operators.skeleton.combined_forms import compile_forms
from st_common.operators.skeleton.kinds import KINDS
from st_common.operators.skeleton.world import Table, World
from st_common.query.neighbours import GroupNearest, Nearest, Place, ReverseNearest
from st_common.query.plan import Plan
from st_common.reference.columns import Fixes, objects
from st_common.reference.members import members
from st_common.reference.metric import Metric
from st_common.regions.registry import (
    Box,
    Circle,
    Complement,
    Intersection,
    MovingBox,
    MovingCircle,
    Region,
    Union,
    joined_region,
)
from tests.kit.masks import Masks

GEOD = Geod(ellps="WGS84")
ON_LATTICE = st.integers(-3, 3).map(
    float
)  # so that borders, corners and ties are hit all the time
COORDINATE = st.one_of(ON_LATTICE, ON_LATTICE, st.floats(-4, 4))
PLACE = st.tuples(COORDINATE, COORDINATE)
RULES = 3
LENGTH = st.one_of(st.sampled_from([0.0, 1.0, 2.0, 5.0]), st.floats(0, 9))
OF_SHAPES = {"nearest_extent"}
"""What looks at shapes, and not at the places here: tests/laws/test_searching.py holds it."""
EVERY_KIND = pytest.mark.parametrize("kind", sorted({*KINDS} - OF_SHAPES))


@pytest.fixture(
    params=["few", "many", "many, searched", "many, over lists"], autouse=True
)
def way(request, monkeypatch):
    """All ways to find neighbours and members are taken: all pairs, trees and grids; nearest first, or over lists."""
    if request.param.startswith("many"):
        monkeypatch.setattr(join, "_FEW_PAIRS", 0)
        monkeypatch.setattr(circles, "_FEW_PAIRS", 0)
        monkeypatch.setattr(nearest, "_FEW_PAIRS", 0)
        monkeypatch.setattr(group, "_FEW_PAIRS", 0)
    if "," in request.param:
        monkeypatch.setattr(ways, "FEW_RULES", 0)
        monkeypatch.setattr(
            ways, "few_of", lambda _: 0 if "searched" in request.param else 1000
        )


@st.composite
def worlds(draw, like=None):
    """Objects, also many at one place; `like`: the same objects later."""
    count = len(like.x) if like else draw(st.integers(1, 14))
    ids = (
        like.ids
        if like
        else pa.array(
            draw(
                st.lists(
                    st.text(max_size=2), unique=True, min_size=count, max_size=count
                )
            )
        )
    )
    stack = draw(st.booleans())
    places = [(1.0, 1.0) if stack and n % 2 else draw(PLACE) for n in range(count)]
    x, y = np.array(places).T.copy()
    alive = np.array([draw(st.integers(0, 5)) > 0 for _ in range(count)])
    masks = np.array(
        [
            [True] * count,
            *([draw(st.booleans()) for _ in range(count)] for _ in range(RULES)),
        ]
    )
    return World(
        x=x,
        y=y,
        alive=alive,
        ids=ids,
        space=PLANE,
        selection=Masks(masks, listed=draw(st.booleans())),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OfRegions(Table):
    """Queries about regions made of others, and these regions."""

    regions: tuple[Region, ...]


def of_regions(regions, eligible, world):
    """The table of regions made of others, with a rule for each."""
    ids = world.ids.to_pylist()
    leaves = [(row, leaf) for row, one in enumerate(regions) for leaf in one.leaves()]
    focals = [getattr(leaf, "focal", None) for _, leaf in leaves]
    return OfRegions(
        regions=tuple(regions),
        focal=np.full(len(regions), -1),
        x=np.full(len(regions), np.nan),
        y=np.full(len(regions), np.nan),
        eligible=np.array(eligible, np.int64),
        place_row=np.array([row for row, _ in leaves], np.int64),
        place_focal=np.array([-1 if f is None else ids.index(f) for f in focals]),
        place_x=np.zeros(len(leaves)),
        place_y=np.zeros(len(leaves)),
        form=np.arange(len(regions)),
        forms=compile_forms(regions, space=world.space) if regions else None,
    )


@st.composite
def leaves(draw, ids):
    """A region around an object, or one that stands still."""
    (x, y), radius, focal = draw(PLACE), draw(LENGTH), draw(st.sampled_from(ids))
    return draw(
        st.sampled_from(
            [
                Circle(x=x, y=y, radius_m=radius),
                Box.of_corners(x, y, x + draw(LENGTH), 1.0),
                MovingCircle(focal=focal, radius_m=radius),
                MovingBox(focal=focal, width=radius, height=draw(LENGTH)),
            ]
        )
    )


def joined(part):
    """AND, OR, NOT of regions."""
    several = st.lists(part, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Complement, part=part),
        st.builds(Union, parts=several),
        st.builds(Intersection, parts=several),
    )


def tables(world, kind):
    """Queries of a kind."""
    if kind != "moving_combined":
        return tables_of_places(world)
    part = leaves(world.ids.to_pylist())
    rules = st.tuples(joined(st.one_of(part, joined(part))), st.integers(0, RULES))
    return st.lists(rules, min_size=1, max_size=5).map(
        lambda drawn: of_regions(
            [region for region, _ in drawn], [rule for _, rule in drawn], world
        )
    )


@st.composite
def tables_of_places(draw, world):
    """Queries of any other kind at once: each kind reads its own columns."""
    m = draw(st.integers(0, 6))
    focals = st.integers(-1, len(world.x) - 1)
    focal = np.array([draw(focals) for _ in range(m)], np.int64)
    still = np.array(
        [draw(st.one_of(PLACE, st.just((math.nan, math.nan)))) for _ in range(m)]
    ).reshape(-1, 2)
    place_row = np.repeat(np.arange(m), [draw(st.integers(0, 3)) for _ in range(m)])
    places = np.array([draw(PLACE) for _ in place_row]).reshape(-1, 2)
    return Table(
        focal=focal,
        x=still[:, 0],
        y=still[:, 1],
        eligible=np.array([draw(st.integers(0, RULES)) for _ in range(m)], np.int64),
        width=np.array([draw(LENGTH) for _ in range(m)]),
        height=np.array([draw(LENGTH) for _ in range(m)]),
        metres=np.zeros(m, np.bool_),
        radius=np.array([draw(LENGTH) for _ in range(m)]),
        k=np.array([draw(st.integers(1, 16)) for _ in range(m)], np.int64),
        total=np.array([draw(st.integers(0, 2)) for _ in range(m)], np.int8),
        place_row=place_row,
        place_focal=np.array([draw(focals) for _ in place_row], np.int64),
        place_x=places[:, 0],
        place_y=places[:, 1],
    )


def found(kind, world, table):
    """The members of all queries by the four methods."""
    which = np.arange(len(table.focal))
    criteria = KINDS[kind].update_criteria(world, table, which)
    row, obj = KINDS[kind].in_cache_area(world, criteria, np.arange(len(world.x)), 0.0)
    assert len(set(zip(row.tolist(), obj.tolist(), strict=True))) == len(row)
    keep = KINDS[kind].satisfy(world, criteria, row, obj)
    pairs = set(zip(row[keep].tolist(), obj[keep].tolist(), strict=True))
    everything = np.divmod(np.arange(len(which) * len(world.x)), len(world.x))
    keep = KINDS[kind].satisfy(world, criteria, *everything)
    assert pairs == set(zip(*(part[keep].tolist() for part in everything), strict=True))
    return criteria, pairs


@dataclass(frozen=True)
class ByRule:
    """Conditions are the numbers of rules that admit some objects."""

    world: World
    living: np.ndarray

    def values(self, text, rows, _partners=None):
        return self.world.selection.rows[int(text)][self.living[rows]]


def expected(kind, world, table):
    """The members of all queries by the reference, one query after the other."""
    living, ids = np.flatnonzero(world.alive), world.ids.to_pylist()
    fixes = Fixes(
        ids=objects([ids[n] for n in living]),
        x=world.x[living],
        y=world.y[living],
        metric=Metric(is_flat=world.space.is_flat),
        of=ByRule(world, living),
        rows=np.arange(len(living)),
    )
    asked = {q: plan_of(kind, table, q, ids) for q in range(len(table.focal))}
    return {
        (q, int(living[row]))
        for q, plan in asked.items()
        if plan is not None
        for row in members(plan, fixes, None).row
    }


def plan_of(kind, table, q, ids):
    """What a row of the table asks; None where it has no place."""
    if kind == "moving_combined":
        region = joined_region(table.regions[q])
        return Plan(stream="s", where=str(table.eligible[q]), inside=region)
    own = np.flatnonzero(table.place_row == q) if kind == "group" else None
    if own is None:
        places = [place_of(table.focal[q], table.x[q], table.y[q], ids)]
    else:
        places = [
            place_of(table.place_focal[p], table.place_x[p], table.place_y[p], ids)
            for p in own
        ]
    if not places or any(math.isnan(place.x) for place in places):
        return None
    part = asked_of(kind, table, q, places)
    name = "inside" if kind.startswith("moving") else "neighbours"
    return Plan(stream="s", where=str(table.eligible[q]), **{name: part})


def place_of(focal, x, y, ids):
    """A place that stands still, or goes with an object; one that does so at no place is an object all the same."""
    return Place(focal=ids[focal]) if focal >= 0 else Place(x=float(x), y=float(y))


def asked_of(kind, table, q, places):
    (place, *_), k = places, int(table.k[q])
    wide, high = float(table.width[q]), float(table.height[q])
    radius, is_still = float(table.radius[q]), place.focal is None
    if kind == "moving_box" and is_still:
        low, up = (place.x - wide / 2, place.y - high / 2), (wide / 2, high / 2)
        return Box(minx=low[0], miny=low[1], maxx=place.x + up[0], maxy=place.y + up[1])
    if kind == "moving_box":
        metres = bool(table.metres[q])
        return MovingBox(focal=place.focal, width=wide, height=high, metres=metres)
    if kind == "moving_circle" and is_still:
        return Circle(x=place.x, y=place.y, radius_m=radius)
    if kind == "moving_circle":
        return MovingCircle(focal=place.focal, radius_m=radius)
    if kind == "group":
        total = ("sum", "max", "min")[table.total[q]]
        return GroupNearest(k=k, total=total, places=tuple(places))
    return (
        ReverseNearest(place=place) if kind == "reverse" else Nearest(k=k, place=place)
    )


@EVERY_KIND
@pytest.mark.spec("G1", "G4", "G5", "G8", "P8", "X12")
@given(data=st.data())
def test_the_four_methods_give_the_members_of_brute_force(kind, data):
    world = data.draw(worlds())
    table = data.draw(tables(world, kind))
    assert found(kind, world, table)[1] == expected(kind, world, table)


@EVERY_KIND
@pytest.mark.spec("G5", "G8")
@given(data=st.data())
def test_queries_that_no_change_touches_keep_their_answers(kind, data):
    """Kept criteria tell what to judge anew: the rule that the skeleton lives by, also for the trap of Figure 4."""
    world = data.draw(worlds())
    table = data.draw(tables(world, kind))
    criteria, before = found(kind, world, table)
    later = data.draw(worlds(like=world))
    moved = np.array([data.draw(st.booleans()) for _ in world.x])
    now = replace(
        later,
        x=np.where(moved, later.x, world.x),
        y=np.where(moved, later.y, world.y),
        alive=np.where(moved, later.alive, world.alive),
        selection=Masks(np.where(moved, later.selection.rows, world.selection.rows)),
    )
    touched = {q for q, n in before if moved[n]}
    touched |= {
        q
        for q, focals in enumerate(criteria.focal)
        if any(f >= 0 and moved[f] for f in focals)
    }
    if KINDS[kind].touched_by_all and moved.any():
        touched = set(range(len(table.focal)))
    else:
        touched |= set(
            KINDS[kind]
            .in_cache_area(now, criteria, np.flatnonzero(moved), 0.0)[0]
            .tolist()
        )
    after = expected(kind, now, table)
    untouched = set(range(len(table.focal))) - touched
    assert {(q, n) for q, n in after if q in untouched} == {
        (q, n) for q, n in before if q in untouched
    }
    again = np.array(sorted(touched), np.int64)
    criteria = criteria.with_rows(again, KINDS[kind].update_criteria(now, table, again))
    row, obj = KINDS[kind].in_cache_area(now, criteria, np.arange(len(now.x)), 0.0)
    keep = KINDS[kind].satisfy(now, criteria, row, obj)
    assert set(zip(row[keep].tolist(), obj[keep].tolist(), strict=True)) == after


@EVERY_KIND
@pytest.mark.spec("G6")
@given(data=st.data(), margin=st.floats(0.1, 3))
def test_what_comes_near_by_less_than_the_margin_is_in_the_cache_area(
    kind, data, margin
):
    """Of a range: a query and an object that together move by the margin cannot meet unseen; of all: members are in."""
    world = data.draw(worlds())
    table = data.draw(tables(world, kind))
    criteria, before = found(kind, world, table)
    row, obj = KINDS[kind].in_cache_area(
        world, criteria, np.arange(len(world.x)), margin
    )
    cache = set(zip(row.tolist(), obj.tolist(), strict=True))
    assert before <= cache
    if kind.startswith("moving") and KINDS[kind].caches:
        turn = data.draw(st.floats(0, 7))
        dx, dy = margin * math.cos(turn) * 0.999, margin * math.sin(turn) * 0.999
        mover = data.draw(st.integers(0, len(world.x) - 1))
        x, y = world.x.copy(), world.y.copy()
        x[mover] += dx
        y[mover] += dy
        now = expected(kind, replace(world, x=x, y=y), table)
        assert now <= cache


def test_rows_of_criteria_are_taken_and_replaced():
    world = World(
        x=np.arange(5.0),
        y=np.zeros(5),
        alive=np.ones(5, np.bool_),
        ids=pa.array(list("abcde")),
        space=PLANE,
    )
    table = Table(
        focal=np.full(3, -1),
        x=np.zeros(3),
        y=np.zeros(3),
        eligible=np.zeros(3, np.int64),
        k=np.array([1, 2, 3]),
        total=np.zeros(3, np.int8),
        place_row=np.array([0, 1, 1, 2, 2, 2]),
        place_focal=np.array([0, 1, 2, -1, -1, 4]),
        place_x=np.arange(6.0),
        place_y=np.arange(6.0),
    )
    kind = KINDS["group"]
    whole = kind.update_criteria(world, table, np.arange(3))
    assert whole.x.shape == whole.focal.shape == (3, 3)
    narrow = kind.update_criteria(world, table, np.array([0]))
    assert narrow.x.shape == (1, 1)
    for rows, other in [([0], narrow), ([2, 1], whole.take(np.array([2, 1])))]:
        same = whole.with_rows(np.array(rows), other)
        for name in ("query", "focal", "eligible", "x", "y", "limit", "tie", "total"):
            np.testing.assert_array_equal(getattr(same, name), getattr(whole, name))
    wider = narrow.with_rows(np.array([0]), whole.take(np.array([2])))
    np.testing.assert_array_equal(wider.x, whole.x[2:])


@EVERY_KIND
def test_no_queries_have_no_members(kind):
    world = World(
        x=np.zeros(1),
        y=np.zeros(1),
        alive=np.ones(1, np.bool_),
        ids=pa.array(["a"]),
        space=GLOBE,
    )
    nothing, whole = np.empty(0, np.int64), np.empty(0)
    table = Table(
        focal=nothing,
        x=whole,
        y=whole,
        eligible=nothing,
        width=whole,
        height=whole,
        radius=whole,
        k=nothing,
        metres=nothing.astype(np.bool_),
        total=nothing.astype(np.int8),
        forms=compile_forms(
            [Union(parts=(Box.of_corners(0, 0, 1, 1),) * 2)], space=GLOBE
        ),
    )
    criteria = KINDS[kind].update_criteria(world, table, nothing)
    assert [
        len(part)
        for part in KINDS[kind].in_cache_area(world, criteria, np.arange(1), 0.0)
    ] == [0, 0]
    assert len(KINDS[kind].satisfy(world, criteria, nothing, nothing)) == 0


@EVERY_KIND
@pytest.mark.spec("G4", "G5", "G8")
@pytest.mark.parametrize(
    "middle", [(180.0, 10.0), (-8.6, 41.1), (30.0, 89.999), (0.0, -90.0)], ids=str
)
@pytest.mark.parametrize("spread_m", [2_000.0, 3_000_000.0])
def test_members_on_the_globe(kind, middle, spread_m):
    """Across 180 degrees and poles; objects also at one place. A box in metres is so wide at its centre's latitude."""
    random = np.random.default_rng(5)
    angle, far = random.uniform(0, 360, 90), random.uniform(0, spread_m, 90)
    x, y, _ = GEOD.fwd(np.full(90, middle[0]), np.full(90, middle[1]), angle, far)
    x[:8], y[:8] = x[8], y[8]
    world = World(
        x=x,
        y=y,
        alive=random.random(90) < 0.9,
        ids=pa.array([f"o{n}" for n in range(90)]),
        space=GLOBE,
        selection=Masks([np.ones(90, np.bool_), random.random(90) < 0.5]),
    )
    m = 20
    place_row = np.sort(random.integers(0, m, 45))
    table = Table(
        focal=random.integers(0, 90, m),
        x=np.full(m, middle[0]),
        y=np.full(m, middle[1]),
        eligible=random.integers(0, 2, m),
        width=random.uniform(0, spread_m, m),
        height=random.uniform(0, spread_m, m),
        metres=np.ones(m, np.bool_),
        radius=random.uniform(0, spread_m, m),
        k=random.integers(1, 12, m),
        total=random.integers(0, 3, m).astype(np.int8),
        place_row=place_row,
        place_focal=random.integers(0, 90, 45),
        place_x=np.zeros(45),
        place_y=np.zeros(45),
    )
    if kind == "moving_combined":
        table = of_regions(joined_on_globe(random, spread_m), table.eligible, world)
    assert found(kind, world, table)[1] == expected(kind, world, table)


def joined_on_globe(random, spread_m):
    """Some 20 regions of AND, OR, NOT around objects."""
    regions = []
    for n in range(20):
        one, other = (f"o{random.integers(0, 90)}" for _ in range(2))
        wide, high, radius_m = random.uniform(0, spread_m, 3).tolist()
        box = MovingBox(focal=one, width=wide, height=high, metres=True)
        circle = MovingCircle(focal=other, radius_m=radius_m)
        kind = Union if n % 3 else Intersection
        regions.append(kind(parts=(Complement(part=box) if n % 2 else box, circle)))
    return regions
