"""A layer whose regions lie with several tasks answers as one index of it does, whoever of them is gone (B2, S7)."""

import contextlib
import shutil
import socket
import sys

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from st_common import tables
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.errors import LayerError
from st_common.geometry.borders import Segments
from st_common.geometry.enlarged import POINT, Growth
from st_common.geometry.space import GLOBE, PLANE
from st_common.layers.rows import layer_rows
from st_common.layers.stored import load_index, load_outline
from st_common.partitioning.regions import Regions
from st_common.partitioning.store import store
from st_common.spark.exchange import wire
from st_common.spark.exchange.layers import (
    LAYERS,
    RegionService,
    SpreadLayer,
    copies_of,
    dealt,
)
from st_common.spark.exchange.peers import Peers
from st_common.spark.exchange.wire import Keys
from tests.kit.effort import tries
from tests.kit.layer_tables import features_of
from tests.kit.oracle import Feature

pytestmark = pytest.mark.spec("B2", "S7")
INF = np.inf
REGIONS = Regions(
    group="g",
    version=1,
    region_id=["00", "01", "10", "11"],
    bounds=np.array(
        [[-INF, -INF, 0, 0], [-INF, 0, 0, INF], [0, -INF, INF, 0], [0, 0, INF, INF]]
    ),
)
SPACES = {"plane": PLANE, "globe": GLOBE}
FEATURES = 150
GROWN = Growth().by_value(2)


def drawn(seed):
    """Points, ways and squares of three kinds over all four regions, some of them across 180 degrees."""
    rng = np.random.default_rng(seed)
    for number in range(FEATURES):
        x, y = rng.uniform(-179, 179), rng.uniform(-80, 80)
        side = rng.choice([0.5, 5.0, 40.0])
        east, north = min(x + side, 180.0), min(y + side, 85.0)
        shape = [
            shapely.Point(x, y),
            shapely.LineString([(x, y), (east, north)]),
            shapely.box(x, y, east, north),
        ][number % 3]
        tags = {"name": f"n{number % 7}"}
        yield Feature(f"f{number:03d}", f"k{number % 4}", shape, tags)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    made = Home(tmp_path_factory.mktemp("spread") / "home")
    store(made, REGIONS, np.zeros(4, np.int64), "by hand")
    rows = layer_rows(features_of(list(drawn(1))), REGIONS)
    tables.replace(made.table("layers", "places"), rows, load_contract("layers"))
    return made


class Crew:
    """Tasks that know each other, all in this process."""

    def __init__(self, home, space, count):
        self.services = [RegionService(home, space) for _ in range(count)]
        keys = Keys.made()
        self.peers = [Peers("127.0.0.1", keys, {LAYERS: one}) for one in self.services]
        self.addresses = sorted(one.address for one in self.peers)
        for one in self.peers:
            one.meet(self.addresses)
        outline = load_outline(home, "places", version_of(home))
        self.layers = [
            SpreadLayer("places", version_of(home), outline, one, space=space)
            for one in self.peers
        ]

    def close(self):
        for one in self.peers:
            one.close()


def version_of(home):
    return tables.version(home.table("layers", "places"))


@contextlib.contextmanager
def crew_of(home, space, count):
    made = Crew(home, space, count)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def crews(home):
    with contextlib.ExitStack() as stack:
        yield {
            (space, count): stack.enter_context(crew_of(home, SPACES[space], count))
            for space in SPACES
            for count in (1, 2, 3)
        }


PLACES = st.lists(
    st.tuples(
        st.one_of(st.floats(-180, 180), st.sampled_from([180.0, -180.0, np.nan, 0.0])),
        st.floats(-85, 85),
    ),
    max_size=30,
)
CHOSEN = {
    "kinds": st.sampled_from([(), ("k1",), ("k0", "k2"), ("none",)]),
    "tags": st.sampled_from([(), (("name", "n3"),)]),
}
OPTIONS = st.one_of(
    st.fixed_dictionaries(
        {"distance_m": st.sampled_from([0.0, 3.0, 500_000.0]), **CHOSEN}
    ),
    st.fixed_dictionaries({"within": st.booleans(), **CHOSEN}),
    st.fixed_dictionaries(
        {"growth": st.sampled_from([POINT, GROWN, GROWN.by_metres(9e4)]), **CHOSEN}
    ),
)


@tries(60)
@given(
    space=st.sampled_from(list(SPACES)),
    count=st.integers(1, 3),
    places=PLACES,
    options=OPTIONS,
)
def test_pairs_distances_and_places_are_those_of_one_index(
    home, crews, space, count, places, options
):
    index = load_index(home, "places", version_of(home), space=SPACES[space])
    x, y = np.array(places, float).reshape(-1, 2).T.copy()
    point, feature = index.match(x, y, **options)
    for layer in crews[space, count].layers:
        mine = layer.match(x, y, **options)
        assert mine[0].dtype == mine[1].dtype == np.int64
        np.testing.assert_array_equal(np.stack(mine), np.stack([point, feature]))
        asked = x[point], y[point], feature
        for to_border in (False, True):
            np.testing.assert_array_equal(
                layer.distances(*asked, to_border=to_border),
                index.distances(*asked, to_border=to_border),
            )
        np.testing.assert_array_equal(layer.nearest(*asked), index.nearest(*asked))


@pytest.mark.spec("P13")
@tries(60)
@given(
    space=st.sampled_from(list(SPACES)),
    count=st.integers(1, 3),
    places=PLACES,
    options=st.fixed_dictionaries(
        {
            "k": st.sampled_from([1, 2, 5, 40, 200]),
            "distance_m": st.sampled_from([None, None, 4.0, 900_000.0]),
            **CHOSEN,
        }
    ),
)
def test_the_nearest_are_those_of_one_index(home, crews, space, count, places, options):
    index = load_index(home, "places", version_of(home), space=SPACES[space])
    x, y = np.array(places, float).reshape(-1, 2).T.copy()
    wanted = index.k_nearest(x, y, **options)
    for layer in crews[space, count].layers:
        mine = layer.k_nearest(x, y, **options)
        assert mine[0].dtype == mine[1].dtype == np.int64
        np.testing.assert_array_equal(np.stack(mine), np.stack(wanted))


@tries(60)
@given(
    space=st.sampled_from(list(SPACES)),
    count=st.integers(1, 3),
    places=PLACES,
    distance_m=st.sampled_from([None, 0.0, 4.0, 300_000.0]),
)
def test_ways_meet_what_they_meet_in_one_index(
    home, crews, space, count, places, distance_m
):
    index = load_index(home, "places", version_of(home), space=SPACES[space])
    x, y = np.nan_to_num(np.array(places, float).reshape(-1, 2).T)
    ways = Segments(ax=x[:-1], ay=y[:-1], bx=x[1:], by=y[1:])
    told = index.crossed(ways, distance_m=distance_m, kinds=("k0", "k1"))
    layer = crews[space, count].layers[0]
    mine = layer.crossed(ways, distance_m=distance_m, kinds=("k0", "k1"))
    np.testing.assert_array_equal(np.stack(mine), np.stack(told))


def test_keys_and_values_are_those_of_one_index(home, crews):
    index = load_index(home, "places", version_of(home), space=PLANE)
    layer = crews["plane", 2].layers[0]
    values = pa.array(["n3", None, "n9", "n0"])
    for column in ("name", "kind", "fid", "nothing"):
        assert layer.values(column).equals(index.values(column))
        for chosen in ({}, {"kinds": ("k1",)}, {"tags": (("name", "n3"),)}):
            np.testing.assert_array_equal(
                np.stack(layer.keyed(values, column, **chosen)),
                np.stack(index.keyed(values, column, **chosen)),
            )
    assert layer.fids.tolist() == index.fids.tolist()


def regions_of(service):
    """The regions that a task has."""
    return {region for *_, part in service.parts for region in part}


def everywhere(count=400, seed=3):
    rng = np.random.default_rng(seed)
    return rng.uniform(-179, 179, count), rng.uniform(-80, 80, count)


def test_each_task_holds_its_own_regions_alone(home):
    with crew_of(home, PLANE, 2) as crew:
        for layer in crew.layers:
            layer.match(*everywhere())
        held = [regions_of(one) for one in crew.services]
    assert all(held)
    assert not held[0] & held[1]
    assert held[0] | held[1] == set(REGIONS.region_id)


class Noting(RegionService):
    """Takes note of the points that it is asked for."""

    def __init__(self, home, space):
        super().__init__(home, space)
        self.points = []

    def answer(self, asked, arrays):
        self.points += zip(arrays["x"].tolist(), arrays["y"].tolist(), strict=True)
        return super().answer(asked, arrays)


def is_in(place, region):
    """Whether a place lies in a region or on its border."""
    minx, miny, maxx, maxy = REGIONS.bounds[REGIONS.region_id.index(region)]
    return minx <= place[0] <= maxx and miny <= place[1] <= maxy


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_each_fix_is_matched_by_the_one_region_that_it_lies_in(
    home, count, monkeypatch
):
    """Also those on a border, and where all four regions meet: it goes to one task, and no feature to any."""
    monkeypatch.setattr(sys.modules[__name__], "RegionService", Noting)
    x, y = everywhere()
    x[:40], y[20:60] = 0.0, np.linspace(-0.0, 9.0, 40)
    y[:20] = 0.0
    places = list(zip(x.tolist(), y.tolist(), strict=True))
    index = load_index(home, "places", version_of(home), space=PLANE)
    wanted = index.match(x, y)
    with crew_of(home, PLANE, count) as crew:
        pairs = crew.layers[0].match(x, y)
        asked = [place for one in crew.services for place in one.points]
        for one in crew.services:
            held = regions_of(one)
            assert all(any(is_in(at, region) for region in held) for at in one.points)
    np.testing.assert_array_equal(np.stack(pairs), np.stack(wanted))
    assert {places[number] for number in wanted[0].tolist()} <= set(asked)
    for place in set(asked):
        assert asked.count(place) == places.count(place), "once for each fix"


def test_a_region_in_which_nearly_all_are_is_asked_of_all(home):
    x, y = np.full(5000, 170.0), np.linspace(60, 80, 5000)  # no other comes so far
    index = load_index(home, "places", version_of(home), space=PLANE)
    with crew_of(home, PLANE, 3) as crew:
        pairs = crew.layers[0].match(x, y)
        held = [regions_of(one) for one in crew.services]
    np.testing.assert_array_equal(np.stack(pairs), np.stack(index.match(x, y)))
    assert all("11" in one for one in held)


def test_who_is_gone_is_stood_in_for(home):
    index = load_index(home, "places", version_of(home), space=PLANE)
    x, y = everywhere()
    wanted = np.stack(index.match(x, y, distance_m=9.0))
    with crew_of(home, PLANE, 3) as crew:
        asker = crew.layers[0]
        asker.match(x[:9], y[:9])
        for gone in crew.peers[1:]:
            gone.close()
            mine = asker.match(x, y, distance_m=9.0)
            np.testing.assert_array_equal(np.stack(mine), wanted)
        held = regions_of(crew.services[0])
    assert held == set(REGIONS.region_id), "it has all by now"


def test_who_is_silent_is_not_waited_for_without_end(home, monkeypatch):
    """As a process that was stopped: it is connected to, and says nothing."""
    monkeypatch.setattr(wire, "SILENT_S", 0.3)
    x, y = everywhere()
    index = load_index(home, "places", version_of(home), space=PLANE)
    with crew_of(home, PLANE, 1) as crew, socket.create_server(("127.0.0.1", 0)) as one:
        crew.peers[0].meet([crew.addresses[0], one.getsockname()[:2]])
        mine = crew.layers[0].match(x, y)
    np.testing.assert_array_equal(np.stack(mine), np.stack(index.match(x, y)))


def test_what_another_cannot_read_is_told_as_it_is(home, tmp_path):
    """Each task reads regions for itself; what one of them cannot read ends the step of whoever asked."""
    lost = Home(tmp_path / "lost")
    table = home.table("layers", "places")
    shutil.copytree(table, lost.table("layers", "places"))
    shutil.copytree(home.table("regions"), lost.table("regions"))
    outline = load_outline(lost, "places", version_of(lost))
    with crew_of(lost, PLANE, 2) as crew:
        for file in lost.table("layers", "places").rglob("*.parquet"):
            if "_delta_log" not in file.parts:
                file.unlink()
        crew.peers[0].meet([crew.peers[1].address] * 2)  # none of them is itself
        layer = SpreadLayer(
            "places", version_of(lost), outline, crew.peers[0], space=PLANE
        )
        with pytest.raises(LayerError, match=r"places|parquet"):
            layer.match(*everywhere())


def test_who_has_keys_of_another_run_is_not_answered(home):
    index = load_index(home, "places", version_of(home), space=PLANE)
    x, y = everywhere()
    with crew_of(home, PLANE, 2) as crew:
        stranger = Peers("127.0.0.1", Keys.made(), {LAYERS: RegionService(home, PLANE)})
        try:
            stranger.meet([crew.peers[1].address])
            layer = SpreadLayer(
                "places",
                version_of(home),
                load_outline(home, "places", version_of(home)),
                stranger,
                space=PLANE,
            )
            mine = layer.match(x, y)
        finally:
            stranger.close()
        assert not crew.services[1].parts
    np.testing.assert_array_equal(np.stack(mine), np.stack(index.match(x, y)))


def test_regions_that_nobody_asked_for_of_late_are_let_go_of(home):
    service = RegionService(home, PLANE, most_bytes=1)
    asked = {
        "method": "distances",
        "options": {"to_border": False},
        "layer": "places",
        "version": version_of(home),
    }
    row = {"x": np.zeros(1), "y": np.zeros(1), "feature": np.zeros(1, np.int64)}
    for region in REGIONS.region_id:
        service.answer({**asked, "parts": [[region]], "counts": [1]}, row)
        assert [held for *_, held in service.parts] == [(region,)]


@given(st.lists(st.integers(0, 1000), max_size=40), st.integers(1, 9))
def test_regions_are_dealt_by_their_weight(weights, members):
    owner = np.array(dealt(tuple(weights), members), int)
    loads = np.bincount(owner, weights=weights, minlength=members)
    assert len(owner) == len(weights)
    assert loads.max() - loads.min() <= max(weights, default=0)


def test_a_region_is_copied_when_it_is_the_work_of_two():
    assert dealt((5, 3, 3), 2) == (0, 1, 1)
    assert copies_of(10_000, of=10_000, members=4) == 4
    assert copies_of(5_000, of=10_000, members=4) == 2
    assert copies_of(4_000, of=10_000, members=4) == 1
    assert copies_of(1_000, of=1_000, members=4) == 1, "too few to be worth it"
