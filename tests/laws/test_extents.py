"""Elements with an extent in regions: what the step tells is what geometries say one by one (SPEC B1, P8)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from st_common.geometry.space import GLOBE, PLANE
from st_common.operators.expressions.readings import Readings
from st_common.operators.matching.extents import compiled_index, looked_up
from st_common.operators.state.fixes import NEVER
from st_common.query.comparing import Transform
from st_common.query.fence import Debounce, Fence
from st_common.query.incident import Incident
from st_common.query.neighbours import Nearest, Place
from st_common.query.plan import Aggregate, LayerJoin, PairJoin, Plan, Window
from st_common.reference.columns import Fixes
from st_common.reference.metric import Metric
from st_common.reference.ranges import inside
from st_common.regions.registry import Area, Box, ByExtent, Circle
from tests.kit.by_hand import fix, gone, log, register
from tests.kit.effort import tries
from tests.kit.oracle import Feature
from tests.kit.telling import by_both

pytestmark = pytest.mark.spec("B1")

HOWS = ("intersects", "covered")
SIDES = ("lo1", "hi1", "lo2", "hi2")


@dataclass(frozen=True)
class Place2D:
    """Where a lattice lies and how wide its cells are: so small that distances are clear, or a plane's units."""

    space: Any
    x: float
    y: float
    cell: float

    def x_of(self, number):
        return self.x + number * self.cell

    def y_of(self, number):
        return self.y + number * self.cell

    def metres(self, cells):
        return cells * self.cell * (1.0 if self.space.is_flat else 100_000.0)


PLACES = [
    Place2D(PLANE, 0.0, 0.0, 1.0),
    Place2D(GLOBE, 8.0, 46.0, 1 / 128),
    Place2D(GLOBE, -179.9375, -17.0, 1 / 128),  # circles reach across 180 degrees
    Place2D(GLOBE, 20.0, 70.0, 1 / 4),
]
number = st.integers(0, 8)
sides = st.tuples(number, number, number, number).map(
    lambda s: (min(s[:2]), max(s[:2]), min(s[2:]), max(s[2:]))
)
ring = st.lists(st.tuples(number, number), min_size=3, max_size=5, unique=True)


def geometry(corners, kind):
    """A valid geometry of some kind over places of the lattice."""
    if kind == "points":
        return shapely.MultiPoint(corners)
    if kind == "line":
        return shapely.LineString(corners)
    hull = shapely.MultiPoint(corners).convex_hull
    holed = hull.difference(hull.centroid.buffer(0.3, quad_segs=1))
    return holed if kind == "holed" and holed.is_valid else hull


shapes = st.builds(geometry, ring, st.sampled_from(["points", "line", "area", "holed"]))


@st.composite
def regions(draw, at):
    """A rectangle, a circle or a polygon on the lattice; sides and corners of elements lie on its own."""
    kind = draw(st.sampled_from(["box", "circle", "area"]))
    minx, maxx, miny, maxy = draw(sides)
    if kind == "circle":
        radius = draw(st.sampled_from([0.6, 1.3, 2.7, 6.1]))
        return Circle(x=at.x_of(minx), y=at.y_of(miny), radius_m=at.metres(radius))
    if kind == "area":
        shape = geometry(draw(ring), "area")
        if shape.area > 0:
            return Area.of_wkt(lifted(shape, at).wkt)
    return Box(
        minx=at.x_of(minx), maxx=at.x_of(maxx), miny=at.y_of(miny), maxy=at.y_of(maxy)
    )


def lifted(shape, at):
    """A geometry of the lattice where the lattice lies."""
    return shapely.transform(shape, lambda xy: xy * at.cell + (at.x, at.y))


def attributes_of(element, at):
    """A box or a geometry of the lattice as the attributes of a fix; None is a place alone."""
    if element is None:
        return {}
    if isinstance(element, tuple):
        minx, maxx, miny, maxy = element
        values = (at.x_of(minx), at.x_of(maxx), at.y_of(miny), at.y_of(maxy))
        return dict(zip(SIDES, values, strict=True))
    return {"geometry": lifted(element, at).wkt}


def place_of(element, at):
    """The place of an element, as a decoder finds it."""
    if element is None:
        return at.x_of(4), at.y_of(4)
    if isinstance(element, tuple):
        minx, maxx, miny, maxy = element
        return at.x_of((minx + maxx) / 2), at.y_of((miny + maxy) / 2)
    middle = lifted(element, at).point_on_surface()
    return middle.x, middle.y


@dataclass(frozen=True)
class _Said:
    """The attributes of some fixes."""

    columns: dict

    def values(self, text, rows):
        return self.columns[text][rows]


def read(elements, at, names):
    """The elements as the matching reads them, and as the reference does."""
    import pyarrow as pa

    n = len(elements)
    x, y = np.array([place_of(one, at) for one in elements], float).reshape(-1, 2).T
    said = [attributes_of(one, at) for one in elements]
    columns = {name: [one.get(name) for one in said] for name in names}
    nothing, never = np.full(n, np.nan), np.full(n, NEVER)
    readings = Readings(
        object=np.arange(n),
        ts=np.zeros(n, np.int64),
        x=x,
        y=y,
        before_ts=never,
        before_x=nothing,
        before_y=nothing,
        earlier_ts=never,
        earlier_x=nothing,
        earlier_y=nothing,
        attributes={
            name: pa.array(values, pa.string() if name == "geometry" else pa.float64())
            for name, values in columns.items()
        },
    )
    fixes = Fixes(
        ids=np.arange(n).astype(str).astype(object),
        x=x,
        y=y,
        metric=Metric(is_flat=at.space.is_flat, doubts=not at.space.is_flat),
        of=_Said({k: np.array(v, object) for k, v in columns.items()}),
        rows=np.arange(n),
    )
    return readings, fixes


@pytest.mark.spec("P8", "B10")
@pytest.mark.parametrize("extent", ["box", "interval", "shape"])
@pytest.mark.parametrize("at", PLACES, ids=lambda at: f"{at.space} {at.y}")
@tries(25)
@given(data=st.data())
def test_pairs_are_those_whose_geometries_meet_or_lie_in_each_other(at, extent, data):
    kind = shapes if extent == "shape" else sides
    elements = data.draw(st.lists(st.none() | kind, min_size=1, max_size=8))
    names = {"shape": ("geometry",), "box": SIDES, "interval": SIDES[:2]}[extent]
    readings, fixes = read(elements, at, names)
    asked = [
        ByExtent(part=part, how=how, extent=extent)
        for part in data.draw(st.lists(regions(at), min_size=1, max_size=5))
        for how in HOWS
    ]
    index = compiled_index(asked, space=at.space)
    fix_, region = looked_up(index, readings.x, readings.y, lambda: readings)
    pairs = np.zeros((len(asked), len(elements)), int)
    np.add.at(pairs, (region, fix_), 1)
    for row, one in zip(pairs, asked, strict=True):
        members = inside(one, fixes)
        assert row.max() <= 1
        assert not (members.sure & ~row.astype(bool)).any(), one
        assert not (row.astype(bool) & ~members.maybe).any(), one


def plans_of(region, other):
    """What may stand beside a region of extents."""
    only = {"stream": "s", "inside": region}
    return [
        Plan(**only),
        Plan(**only, where="x + y < 8"),
        Plan(**only, where="x + y < 8", order="select_first"),
        Plan(**only, emit="every"),
        Plan(**only, transforms=(Transform(kind="key", text="a"),)),
        Plan(**only, aggregate=Aggregate(function="count")),
        Plan(**only, window=Window(seconds=3.0)),
        Plan(**only, fence=Fence(events=("enter", "exit"))),
        Plan(**only, neighbours=Nearest(k=2, place=Place(x=4.0, y=4.0))),
        Plan(**only, pairs=PairJoin(distance_m=3.0)),
        Plan(
            **only, incident=Incident(lasting=Debounce(seconds=2.0)), where="x + y < 8"
        ),
        Plan(**only, join=LayerJoin(layer="parks", predicate="intersects")),
        Plan(**only, join=LayerJoin(layer="parks", predicate="intersects", how="anti")),
        Plan(stream="s", inside=other, emit="every"),
    ]


FLAT = PLACES[0]
steps = st.lists(
    st.tuples(st.sampled_from("abcd"), st.integers(0, 2), st.integers(0, 9)),
    min_size=1,
    max_size=14,
)
PARKS = [Feature(fid="w1", kind="park", geometry=shapely.box(2, 2, 6, 5))]


@pytest.mark.spec("G4", "B8")
@pytest.mark.parametrize("extent", ["box", "interval", "shape"])
@pytest.mark.parametrize("number", range(len(plans_of(None, None))))
@tries(4)
@given(steps=steps, data=st.data())
def test_what_is_told_of_elements_is_what_brute_force_tells(
    number, extent, steps, data
):
    how = data.draw(st.sampled_from(HOWS))
    region, other = (
        ByExtent(part=data.draw(regions(FLAT)), how=how, extent=extent)
        for _ in range(2)
    )
    kind = shapes if extent == "shape" else sides
    names = {"shape": ("geometry",), "box": SIDES, "interval": SIDES[:2]}[extent]
    plan, time_s = plans_of(region, other)[number], 0
    version = None if plan.join is None else 1
    rows = [register("q", plan, layer_version=version)]
    for name, seconds, action in steps:
        time_s += seconds
        if action == 0:
            rows.append(gone(name, time_s))
            continue
        element = None if action == 1 else data.draw(kind)
        said = attributes_of(element, FLAT)
        said = {one: value for one, value in said.items() if one in names}
        rows.append(fix(name, time_s, *place_of(element, FLAT), **said))
    layers = {("parks", 1): PARKS}
    by_both(log(*rows), layers=layers)
