"""Objects on the roads of Oldenburg, as Brinkhoff's generator moves them."""

import csv
import heapq
from collections import defaultdict
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import shapely

from demo.simulation.network import (
    CLASS_SHARES,
    CLASSES,
    RoadNetwork,
    Router,
    destinations,
    limits_of,
    network_of,
    read_network,
)
from demo.simulation.traffic import ALL_REPORT, PLACE, Round, Traffic, rounds
from st_common.decode import decode
from tests.kit.road_traffic import (
    COLUMNS,
    object_ids,
    payload,
    stamp_ms,
    traffic_stream,
)

FOLDER = Path("data") / "roadnet-oldenburg"
COMING = Traffic(at_start=60, per_unit=5, units=25)
STAYING = Traffic(at_start=200, units=12, stays=True, spread=True, speed_divisor=20)
_network_once = cache(read_network)


@cache
def _rounds_once(path: Path, traffic: Traffic) -> list[Round]:
    return list(rounds(_network_once(path), traffic, seed=3))


@pytest.fixture
def network(shared: Path) -> RoadNetwork:
    return _network_once(shared / FOLDER)


@pytest.fixture
def coming(shared: Path) -> list[Round]:
    return _rounds_once(shared / FOLDER, COMING)


@pytest.fixture
def staying(shared: Path) -> list[Round]:
    return _rounds_once(shared / FOLDER, STAYING)


def _roads(shared: Path) -> list[tuple[float, float, float, float, int]]:
    """The roads straight from the files: both ends and the class."""
    with (shared / FOLDER / "oldenburg_nodes.csv").open() as source:
        nodes = {
            row["id"]: (float(row["x"]), float(row["y"]))
            for row in csv.DictReader(source)
        }
    with (shared / FOLDER / "oldenburg_edges.csv").open() as source:
        return [
            (*nodes[r["node1"]], *nodes[r["node2"]], int(r["class"]))
            for r in csv.DictReader(source)
        ]


def test_the_network_is_that_of_the_files(shared: Path, network: RoadNetwork) -> None:
    assert (len(network.x), len(network.start)) == (6105, 2 * 7035)
    ours = {
        (network.x[a], network.y[a], network.x[b], network.y[b], int(c))
        for a, b, c in zip(network.start, network.end, network.road_class, strict=True)
    }
    theirs = _roads(shared)
    assert ours == {
        road
        for x1, y1, x2, y2, c in theirs
        for road in ((x1, y1, x2, y2, c), (x2, y2, x1, y1, c))
    }


def test_speeds_are_those_of_the_generators_own_trace(
    shared: Path, network: RoadNetwork
) -> None:
    """Its first reports stand at nodes and name the speed on the first road."""
    limits = limits_of(network)
    nodes = set(zip(network.x.tolist(), network.y.tolist(), strict=True))
    lines = [
        line.split("\t")
        for line in (shared / FOLDER / "oldenburg-trace.txt").read_text().splitlines()
    ]
    born = [line for line in lines if line[0] == "newpoint"]
    assert len(born) == 105
    for _, _, _, kind, _, x, y, speed, *_ in born:
        assert (float(x), float(y)) in nodes
        possible = limits.between(np.full(8, int(kind)), np.arange(8))
        assert np.isclose(possible, float(speed), rtol=1e-9).any()


@pytest.mark.spec("P12")
def test_every_position_is_on_a_road(
    shared: Path, coming: list[Round], staying: list[Round]
) -> None:
    lines = shapely.linestrings([[road[:2], road[2:4]] for road in _roads(shared)])
    tree = shapely.STRtree(lines)
    for found in coming + staying:
        points = shapely.points(found.x, found.y)
        assert shapely.distance(points, lines[tree.nearest(points)]).max() < 1e-6


@pytest.mark.spec("P12")
@pytest.mark.parametrize("traffic", [COMING, STAYING])
def test_nobody_is_faster_than_class_and_road_allow(
    network: RoadNetwork, shared: Path, traffic: Traffic
) -> None:
    limits, checked = limits_of(network, divisor=traffic.speed_divisor), 0
    found = _rounds_once(shared / FOLDER, traffic)
    for before, after in pairwise(found):
        both, i, j = np.intersect1d(before.object, after.object, return_indices=True)
        moved = np.hypot(before.x[i] - after.x[j], before.y[i] - after.y[j])
        assert (before.kind[i] == after.kind[j]).all()
        assert (moved <= limits.objects[after.kind[j]] + 1e-9).all()
        assert (moved <= limits.roads[0] + 1e-9).all()
        same = (before.road[i] == after.road[j]) & ~after.gone[j]
        allowed = limits.between(after.kind[j], network.road_class[after.road[j]])
        assert moved[same] == pytest.approx(allowed[same], abs=1e-6)
        checked += int(same.sum())
        assert len(both)
    assert checked > 80


@pytest.mark.spec("P12")
def test_objects_come_report_every_unit_and_go_once(coming: list[Round]) -> None:
    """60 at the start and 5 more in each of 25 units."""
    reports = defaultdict(list)
    for found in coming:
        assert (np.diff(found.object) > 0).all()
        for number, gone in zip(
            found.object.tolist(), found.gone.tolist(), strict=True
        ):
            reports[number].append((found.unit, gone))
    assert sorted(reports) == list(range(60 + 5 * 25))
    gone_at_all = 0
    for number, seen in reports.items():
        units, gone = zip(*seen, strict=True)
        assert units[0] == max(0, (number - 60) // 5 + 1)
        assert list(units) == list(range(units[0], units[-1] + 1))
        assert not any(gone[:-1])
        assert gone[-1] or units[-1] == 25
        gone_at_all += gone[-1]
    assert gone_at_all > 20


def test_an_object_goes_where_a_road_ends(
    network: RoadNetwork, coming: list[Round]
) -> None:
    nodes = set(zip(network.x.tolist(), network.y.tolist(), strict=True))
    for found in coming:
        for x, y in zip(found.x[found.gone], found.y[found.gone], strict=True):
            assert (x, y) in nodes


@pytest.mark.spec("P12")
def test_a_population_that_stays_is_of_one_size_and_moves(staying: list[Round]) -> None:
    for before, after in pairwise(staying):
        assert after.object.tolist() == list(range(200))
        assert not after.gone.any()
        assert ((before.x != after.x) | (before.y != after.y)).all()
    away = np.hypot(staying[0].x - staying[-1].x, staying[0].y - staying[-1].y)
    assert np.median(away) > 1000


@pytest.mark.spec("P12")
def test_the_same_seed_gives_the_same_bytes(
    network: RoadNetwork, coming: list[Round]
) -> None:
    def text(seed: int) -> list[bytes]:
        return [payload(found, COMING) for found in rounds(network, COMING, seed=seed)]

    assert text(3) == [payload(found, COMING) for found in coming]
    assert text(4) != text(3)


def test_who_reports_does_not_change_who_is_where(
    network: RoadNetwork, staying: list[Round]
) -> None:
    some = list(rounds(network, replace(STAYING, report_share=0.1), seed=3))
    assert [len(found.object) for found in some] == [200] + [20] * 12
    assert some[1].object.tolist() != some[2].object.tolist()
    for few, all_ in zip(some, staying, strict=True):
        np.testing.assert_array_equal(few.x, all_.x[few.object])
        np.testing.assert_array_equal(few.y, all_.y[few.object])


def test_shares_and_lengths_are_the_generators(
    network: RoadNetwork, shared: Path
) -> None:
    many = next(
        rounds(network, Traffic(at_start=2000, units=0, choice="shortest"), seed=1)
    )
    shares = np.bincount(many.kind, minlength=len(CLASSES)) / 2000
    assert shares == pytest.approx(CLASS_SHARES, abs=0.03)
    rng = np.random.default_rng(0)
    origin = rng.integers(0, len(network.x), 5000)
    end = destinations(network, origin, rng)
    diagonal = np.hypot(23854 - 281, 30851 - 3935)
    length = np.hypot(
        network.x[origin] - network.x[end], network.y[origin] - network.y[end]
    )
    assert length.mean() == pytest.approx(np.sqrt(2 / np.pi) * diagonal / 5, rel=0.05)


def _cost(roads: list[tuple[int, int, float]], origin: int, destination: int) -> float:
    """The least cost by a heap, straight down."""
    ahead = defaultdict(list)
    for a, b, cost in roads:
        ahead[a].append((b, cost))
    heap, done = [(0.0, origin)], set()
    while heap:
        cost, node = heapq.heappop(heap)
        if node == destination:
            return cost
        if node not in done:
            done.add(node)
            for b, more in ahead[node]:
                heapq.heappush(heap, (cost + more, b))
    raise AssertionError("no way")


@pytest.mark.parametrize("choice", ["fastest", "shortest"])
def test_routes_are_the_best_ones(network: RoadNetwork, choice: str) -> None:
    limits = limits_of(network)
    router, rng = Router(network, limits, choice=choice), np.random.default_rng(5)
    for kind in (0, 2, 4):
        speed = limits.between(np.full(len(network.start), kind), network.road_class)
        cost = network.length / speed if choice == "fastest" else network.length
        roads = list(
            zip(
                network.start.tolist(), network.end.tolist(), cost.tolist(), strict=True
            )
        )
        origin, destination = rng.integers(0, len(network.x), (2, 4))
        for node, end in zip(origin.tolist(), destination.tolist(), strict=True):
            at, total = node, 0.0
            while at != end:
                road = router.next_road(
                    np.array([kind]), np.array([at]), np.array([end])
                )[0]
                assert network.start[road] == at
                at, total = int(network.end[road]), total + cost[road]
            assert total == pytest.approx(_cost(roads, node, end))


def test_of_two_roads_between_the_same_nodes_the_quicker_is_taken() -> None:
    """0 and 1 are joined by a road of class 7 and one of class 0; 2 and 3 hang on 1, 4 on nothing."""
    x, y = (
        np.array([0.0, 100.0, 200.0, 300.0, 0.0]),
        np.array([0.0, 0.0, 0.0, 0.0, 9000.0]),
    )
    a, b, road_class = (
        np.array([0, 0, 1, 2]),
        np.array([1, 1, 2, 3]),
        np.array([7, 0, 3, 3]),
    )
    small = network_of(x, y, a, b, road_class)
    router = Router(small, limits_of(small))
    kind = np.zeros(4, np.int64)
    road = router.next_road(kind, np.array([0, 1, 3, 0]), np.array([3, 0, 3, 4]))
    assert small.road_class[road[:2]].tolist() == [0, 0]
    assert road[2:].tolist() == [-1, -1]
    trivial = router.is_trivial(kind, np.array([0, 0, 0, 3]), np.array([3, 2, 4, 0]))
    assert trivial.tolist() == [False, True, True, False]


@pytest.mark.spec("P12")
def test_payloads_are_segments_of_the_stream(coming: list[Round]) -> None:
    stream = traffic_stream("oldenburg", COMING)
    for found in coming:
        read = decode(payload(found, COMING), stream, arrival_us=0)
        assert (len(read.rejects), len(read.fixes)) == (0, len(found.object))
        assert read.fixes["object"].to_pylist() == object_ids(found.object)
        assert set(read.fixes["event_ts"].to_pylist()) == {
            stamp_ms(found.unit, COMING) * 1000
        }
        assert read.fixes["gone"].to_pylist() == found.gone.tolist()
        assert read.fixes["class"].to_pylist() == [CLASSES[kind] for kind in found.kind]
        np.testing.assert_allclose(read.fixes["x"].to_numpy(), found.x, atol=1e-6)
        np.testing.assert_allclose(read.fixes["y"].to_numpy(), found.y, atol=1e-6)
    assert payload(coming[0], COMING).splitlines()[0].decode().split(",") == list(
        COLUMNS
    )


def test_the_presets_are_the_papers() -> None:
    assert (PLACE.at_start, PLACE.per_unit, PLACE.units) == (10_000, 100, 1_000)
    assert (ALL_REPORT.at_start, ALL_REPORT.unit_s, ALL_REPORT.stays) == (
        100_000,
        5.0,
        True,
    )


def test_files_that_are_no_network_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has 0 files"):
        read_network(tmp_path)
    (tmp_path / "a_nodes.csv").write_text("id,x,y\n1,0,0\n2,5,5\n")
    for edge, reason in (
        ("1,1,3,0", "a node that is not there"),
        ("1,1,2,8", "none of 0 to 7"),
    ):
        (tmp_path / "a_edges.csv").write_text(f"id,node1,node2,class\n{edge}\n")
        with pytest.raises(ValueError, match=reason):
            read_network(tmp_path)
