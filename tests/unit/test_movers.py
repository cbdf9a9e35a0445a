"""Vehicles on the roads of central Helsinki."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import shapely

from tests.kit.movers import (
    CLASSES,
    COLUMNS,
    FASTEST,
    SPEEDS_MPS,
    Flaws,
    Roads,
    Tracks,
    drive,
    metres,
    read_roads,
    write_csv,
)

EXTRACT = Path("data") / "osm-helsinki" / "Helsinki.osm.pbf"
_read_once = cache(read_roads)


@cache
def _drive_once(path: Path) -> Tracks:
    return drive(_read_once(path), vehicles=300, seconds=60, seed=7)


@pytest.fixture
def roads(shared: Path) -> Roads:
    return _read_once(shared / EXTRACT)


@pytest.fixture
def tracks(shared: Path) -> Tracks:
    return _drive_once(shared / EXTRACT)


def test_the_same_seed_gives_the_same_bytes(roads: Roads, tmp_path: Path) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        write_csv(tmp_path / name, roads, vehicles=50, seconds=5, seed=seed)
    assert (
        (tmp_path / "a").read_bytes()
        == (tmp_path / "b").read_bytes()
        != (tmp_path / "c").read_bytes()
    )


def test_every_point_can_be_left_and_all_hang_together(roads: Roads) -> None:
    assert (np.diff(roads.first) > 0).all()
    assert (roads.length_m > 0).all()
    assert 500 < len(roads.x) < 5000  # 1,002 drivable ways
    reached, edge = {0}, [0]
    while edge:
        point = edge.pop()
        ahead = (
            set(roads.end[roads.first[point] : roads.first[point + 1]].tolist())
            - reached
        )
        behind = set(roads.start[roads.end == point].tolist()) - reached
        reached |= ahead | behind
        edge += ahead | behind
    assert len(reached) == len(roads.x)


def test_speeds_are_within_the_limits_of_road_and_class(
    roads: Roads, tracks: Tracks
) -> None:
    limit = roads.speed_mps[tracks.edge] * FASTEST[tracks.kind]
    assert (tracks.speed_mps <= limit + 1e-9).all()
    assert (tracks.speed_mps > 0).all()
    assert set(np.unique(roads.speed_mps)) <= set(SPEEDS_MPS.values())
    assert len(np.unique(tracks.kind)) == len(CLASSES)


def test_nobody_jumps(roads: Roads, tracks: Tracks) -> None:
    moved = metres(tracks.x[:-1], tracks.y[:-1], tracks.x[1:], tracks.y[1:])
    assert moved.max() <= max(SPEEDS_MPS.values()) + 0.01
    on_one_edge = (tracks.edge[:-1] == tracks.edge[1:]) & (
        roads.length_m[tracks.edge[1:]] > 30
    )  # no way back in 1 s
    assert on_one_edge.sum() > 1000
    assert moved[on_one_edge] == pytest.approx(
        tracks.speed_mps[:-1][on_one_edge], abs=0.01
    )


def test_nobody_stands_still(tracks: Tracks) -> None:
    path = metres(tracks.x[:-1], tracks.y[:-1], tracks.x[1:], tracks.y[1:]).sum(axis=0)
    assert path.min() > 60  # the slowest: a bus on a service road for a minute


def test_points_lie_on_roads(roads: Roads, tracks: Tracks) -> None:
    ends = np.stack(
        [
            roads.x[roads.start],
            roads.y[roads.start],
            roads.x[roads.end],
            roads.y[roads.end],
        ],
        axis=1,
    )
    scale = np.array([np.cos(np.radians(60.17)), 1.0])  # to a plane
    lines = shapely.linestrings(ends.reshape(-1, 2, 2) * scale)
    points = shapely.points(
        np.stack([tracks.x[::10].ravel(), tracks.y[::10].ravel()], axis=1) * scale
    )
    nearest = shapely.STRtree(lines).nearest(points)
    off_m = shapely.distance(points, lines[nearest]) * 111_195
    assert off_m.max() < 1.0


def test_who_turns_on_the_spot_is_at_the_end_of_a_road() -> None:
    """A cross of four arms, 222 m long: 0 is its middle."""
    start, end = np.array([0, 0, 0, 0, 1, 2, 3, 4]), np.array([1, 2, 3, 4, 0, 0, 0, 0])
    x, y = np.array([0, 0.002, -0.002, 0, 0]), np.array([0, 0, 0, 0.002, -0.002])
    cross = Roads(
        x=x,
        y=y,
        start=start,
        end=end,
        length_m=metres(x[start], y[start], x[end], y[end]),
        speed_mps=np.full(8, 10.0),
        first=np.array([0, 4, 5, 6, 7, 8]),
    )
    edge = drive(cross, vehicles=50, seconds=200, seed=0).edge
    before, after = edge[:-1], edge[1:]
    turned = before != after
    back = cross.start[before] == cross.end[after]
    assert turned.sum() > 200
    assert (cross.end[before[turned]] == cross.start[after[turned]]).all()
    assert (back[turned] == (cross.end[before[turned]] != 0)).all()


OSM = """<osm version="0.6">
  <node id="1" lat="0" lon="0"/> <node id="2" lat="0" lon="0.001"/> <node id="3" lat="0" lon="0.002"/>
  <node id="4" lat="0.001" lon="0.001"/> <node id="5" lat="0.002" lon="0.001"/> <node id="6" lat="1" lon="1"/>
  <node id="7" lat="1" lon="1.001"/>
  <way id="1"><nd ref="1"/><nd ref="2"/><nd ref="3"/><tag k="highway" v="primary"/></way>
  <way id="2"><nd ref="2"/><nd ref="4"/><tag k="highway" v="residential"/><tag k="oneway" v="yes"/></way>
  <way id="3"><nd ref="1"/><nd ref="4"/><tag k="highway" v="primary_link"/><tag k="oneway" v="-1"/></way>
  <way id="4"><nd ref="4"/><nd ref="5"/><nd ref="99"/><tag k="highway" v="service"/><tag k="oneway" v="yes"/></way>
  <way id="5"><nd ref="3"/><nd ref="5"/><tag k="highway" v="footway"/></way>
  <way id="6"><nd ref="6"/><nd ref="7"/><tag k="highway" v="primary"/></way>
</osm>"""


def test_one_way_roads_gaps_and_islands(tmp_path: Path) -> None:
    """Points 1 to 5 are 0 to 4 here; 4 -> 5 may be driven back, for nothing else leaves 5."""
    (tmp_path / "small.osm").write_text(OSM)
    roads = read_roads(tmp_path / "small.osm")
    edges = list(zip(roads.start.tolist(), roads.end.tolist(), strict=True))
    assert edges == [(0, 1), (1, 0), (1, 2), (1, 3), (2, 1), (3, 0), (3, 4), (4, 3)]
    assert roads.length_m[0] == pytest.approx(111.2, abs=0.1)
    assert roads.speed_mps[[0, 3, 5, 6]] * 3.6 == pytest.approx([50, 30, 50, 15])
    assert roads.first.tolist() == [0, 1, 4, 5, 7, 8]


@pytest.mark.spec("P12")
def test_the_file_has_the_fixes_and_the_flaws_that_were_asked_for(
    roads: Roads, tmp_path: Path
) -> None:
    flaws = Flaws(bad=0.01, double=0.02, late=0.01)
    counts = write_csv(
        tmp_path / "fixes.csv", roads, vehicles=100, seconds=40, seed=1, flaws=flaws
    )
    header, *lines = (tmp_path / "fixes.csv").read_bytes().splitlines()
    assert header.decode().split(",") == list(COLUMNS)
    assert (counts.rows, counts.bad, counts.double, counts.late) == (
        len(lines),
        40,
        80,
        40,
    )
    rows = [line.split(b",") for line in lines if _good(line)]
    assert len(rows) == 100 * 40 + 80
    assert len({(row[0], row[1]) for row in rows}) == 100 * 40
    assert min(row[1] for row in rows).startswith(b"2026-06-19T23:59:30.")
    assert max(row[1] for row in rows).startswith(b"2026-06-20T00:00:09.")
    times = np.array([row[1][:-1].decode() for row in rows], "datetime64[ms]")
    behind = np.maximum.accumulate(times) - times
    assert (
        behind > np.timedelta64(7, "s")
    ).sum() >= 30  # the last ones move to the end of the file


def _good(line: bytes) -> bool:
    fields = line.split(b",")
    whole = len(fields) == len(COLUMNS) and line.isascii() and bool(fields[0])
    return whole and not any(word in line for word in (b"n/a", b"yesterday", b"95.5"))


def test_clean_files_are_in_the_order_of_time(roads: Roads, tmp_path: Path) -> None:
    write_csv(
        tmp_path / "fixes.csv",
        roads,
        vehicles=20,
        seconds=10,
        flaws=Flaws(bad=0, double=0, late=0),
    )
    times = [
        line.split(b",")[1]
        for line in (tmp_path / "fixes.csv").read_bytes().splitlines()[1:]
    ]
    assert times == sorted(times)
    assert len(times) == 200


def test_an_extract_without_roads_is_refused(tmp_path: Path) -> None:
    (tmp_path / "none.osm").write_text(
        "<osm version='0.6'><node id='1' lat='1' lon='1'/></osm>"
    )
    with pytest.raises(ValueError, match="no drivable road"):
        read_roads(tmp_path / "none.osm")
