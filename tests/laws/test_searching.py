"""FROM a layer: asked once and kept, the answer at each version is what shapely says of its features one by one."""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import pyproj
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from st_common import tables
from st_common.answers.answers import answer
from st_common.answers.changes import stream_changes
from st_common.client.home_client import HomeClient
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import Streams
from st_common.contracts import load_contract
from st_common.engine.run import run
from st_common.layers.announce import announce
from st_common.layers.rows import layer_rows
from st_common.query.created_streams import add_created, created_streams
from tests.kit.effort import tries
from tests.kit.layer_tables import REGIONS, features_of
from tests.kit.oracle import Feature

pytestmark = pytest.mark.spec("P3", "P13")

CARS = StreamSettings(
    name="cars",
    format="csv",
    crs="planar",
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
)
GRID = st.integers(0, 8)
PLACE = st.tuples(GRID, GRID)
BOX = st.tuples(GRID, GRID, GRID, GRID)
GEOD = pyproj.Geod(ellps="WGS84")


@dataclass(frozen=True)
class Asked:
    """A question as a text and as what it asks of each feature.

    `region` is what the feature is held against, `how` in which way; `near` are k and a place.
    """

    how: str = ""
    region: tuple = ()
    near: tuple = ()
    where: str = ""
    shown: str = "*"

    def text(self, name):
        clauses = [f"SELECT {self.shown} FROM {name}"]
        if self.where:
            clauses.append(f"WHERE {self.where}")
        if self.how in ("INSIDE", "INTERSECTS"):
            corners = f"CIRCLE {self.region}" if self.is_circle else f"{self.region}"
            crosses = " CROSSING 180" if self.crosses else ""
            clauses.append(f"{self.how} {corners}{crosses}")
        if self.near:
            clauses.append(f"KNN {self.near}")
        if self.shown.startswith("kind"):
            clauses.append("GROUP BY kind")
        return " ".join(clauses)

    @property
    def is_circle(self):
        return len(self.region) == 3

    @property
    def crosses(self):
        return len(self.region) == 4 and self.region[0] - self.region[2] > 180


CONDITIONS = {
    "": bool,
    "kind = 'fuel'": lambda one: one.kind == "fuel",
    "brand = 'b1'": lambda one: one.tags.get("brand") == "b1",
    "BRAND IS NULL": lambda one: "brand" not in one.tags,
    "fid IN ('a', 'c', 'e')": lambda one: one.fid in "ace",
    "kind = 'fuel' AND brand <> 'b1'": lambda one: (
        one.kind == "fuel" and one.tags.get("brand", "b1") != "b1"
    ),
    "ID = 'b' OR \"addr:street\" = 'x'": lambda one: (
        one.fid == "b" or one.tags.get("addr:street") == "x"
    ),
}


def lines(places):
    return shapely.LineString(places)


PLANAR = st.one_of(
    PLACE.map(shapely.Point),
    st.lists(PLACE, min_size=2, max_size=3, unique=True).map(lines),
    BOX.filter(lambda box: box[0] < box[2] and box[1] < box[3]).map(
        lambda box: shapely.box(*box)
    ),
)
BEYOND = st.tuples(
    st.sampled_from([179.5, 179.75, 180.0, -180.0, -179.875, -179.5]),
    st.sampled_from([-17.0, -16.875, 0.0, 84.5]),
).map(shapely.Point)


ALWAYS = Feature(
    fid="z",
    kind="shop",
    geometry=shapely.Point(8, 8),
    tags={"brand": "b2", "addr:street": "y"},
)
"""What every version has, so that there are tags of these names."""


def features(shapes):
    tags = st.fixed_dictionaries(
        {},
        optional={
            "brand": st.sampled_from(["b1", "b2"]),
            "addr:street": st.sampled_from(["x", "y"]),
        },
    )
    one = st.builds(
        Feature,
        fid=st.sampled_from("abcdefg"),
        kind=st.sampled_from(["fuel", "shop"]),
        geometry=shapes,
        tags=tags,
    )
    some = st.lists(one, max_size=7, unique_by=lambda one: one.fid)
    return some.map(lambda each: [*each, ALWAYS])


def questions(regions, places):
    return st.builds(
        lambda region, near, where, shown: Asked(
            how=region[0], region=region[1], near=near, where=where, shown=shown
        ),
        st.one_of(st.just(("", ())), regions),
        st.one_of(st.just(()), places),
        st.sampled_from(sorted(CONDITIONS)),
        st.sampled_from(["*", "*", "COUNT(*)", "kind, COUNT(*) AS n"]),
    )


HOWS = st.sampled_from(["INSIDE", "INTERSECTS"])
ON_PLANE = questions(
    st.tuples(HOWS, st.one_of(BOX, st.tuples(GRID, GRID, st.integers(0, 4)))),
    st.tuples(st.integers(1, 4), GRID, GRID),
)
ON_GLOBE = questions(
    st.tuples(
        HOWS,
        st.sampled_from(
            [
                (179.6, -20, -179.8, 10),
                (179.9, -17, 30_000),
                (-179.9, 84.5, 90_000),
                (170, -17, 180, 0),
            ]
        ),
    ),
    st.tuples(
        st.integers(1, 4), st.sampled_from([179.9, -179.99]), st.sampled_from([-17, 85])
    ),
)


def far(one, place, *, planar):
    if planar:
        return shapely.distance(one.geometry, shapely.Point(place))
    x, y = one.geometry.x, one.geometry.y
    return round(GEOD.inv(x, y, *place)[2], 3)


def is_in(one, asked, *, planar):
    if not asked.how:
        return True
    if asked.is_circle:
        *place, radius = asked.region
        if not planar or asked.how == "INTERSECTS":
            return far(one, place, planar=planar) <= radius
        corners = shapely.get_coordinates(one.geometry)
        return all(
            shapely.distance(shapely.Point(corner), shapely.Point(place)) <= radius
            for corner in corners
        )
    x1, y1, x2, y2 = asked.region
    if asked.crosses:
        x, y = one.geometry.x, one.geometry.y
        return (x >= x1 or x <= x2) and y1 <= y <= y2
    corners = [(x, y) for x in (x1, x2) for y in (y1, y2)]
    box = shapely.MultiPoint(corners).convex_hull
    test = shapely.covers if asked.how == "INSIDE" else shapely.intersects
    return bool(test(box, one.geometry))


def expected(asked, version, *, planar):
    held = [
        one
        for one in version
        if CONDITIONS[asked.where](one) and is_in(one, asked, planar=planar)
    ]
    if asked.near:
        k, *place = asked.near
        held.sort(key=lambda one: (far(one, place, planar=planar), one.fid))
        held = held[:k]
    if asked.shown == "*":
        return {(one.fid, None) for one in held}
    if asked.shown == "COUNT(*)":
        return {("*", float(len(held)))}
    kinds = [one.kind for one in held]
    return {(kind, float(kinds.count(kind))) for kind in kinds}


def told(rows):
    return set(zip(rows["object"].to_pylist(), rows["value"].to_pylist(), strict=True))


def store(home, version):
    rows = layer_rows(features_of(version), REGIONS)
    tables.replace(home.table("layers", "stations"), rows, load_contract("layers"))
    announce(home)


def fed(home):
    """The stream of the layer as engines find it, in shape for a run."""
    streams = Streams({"cars": CARS})
    add_created(streams, "stations", created_streams(home)["stations"])
    return streams["stations"]


def check(versions, asked, *, planar):
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        streams = {"cars": CARS} if planar else {"cars": replace(CARS, crs="EPSG:4326")}
        client = HomeClient(home, streams=streams, owner="law")
        for number, version in enumerate(versions):
            store(home, version)
            if number < len(asked):  # further ones are registered behind later versions
                text = asked[number].text("stations")
                client.register(f"REGISTER QUERY q{number} AS {text}")
            run(home, fed(home), until_idle=True)
            for place, one in enumerate(asked):
                wanted = expected(one, version, planar=planar)
                assert told(client.ask(one.text("stations"))) == wanted, one
                if place <= number:
                    assert told(answer(home, f"q{place}")) == wanted, one
        changes = stream_changes(home, "stations").to_pylist()
        assert sum(row["cause"] == "failed" for row in changes) == 0


@given(
    versions=st.lists(features(PLANAR), min_size=1, max_size=3),
    asked=st.lists(ON_PLANE, min_size=1, max_size=3),
)
@tries(20)
def test_on_a_plane_once_and_kept_are_what_shapely_says(versions, asked):
    check(versions, asked, planar=True)


@given(
    versions=st.lists(features(BEYOND), min_size=1, max_size=2),
    asked=st.lists(ON_GLOBE, min_size=1, max_size=3),
)
@tries(20)
def test_across_180_degrees_and_near_poles_it_is_what_geodesics_say(versions, asked):
    check(versions, asked, planar=False)
