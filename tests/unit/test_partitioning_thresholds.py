"""Regions between two thresholds: split where too much lies, merged where too little does, and else as they were."""

import json
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import partition
from st_common import tables
from st_common.batch.rebalance import rebalance, thresholds_given
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.errors import ConfigError
from st_common.layers.load import load
from st_common.layers.spreading import spread_layers
from st_common.partitioning.kdtree import Split, median_split
from st_common.partitioning.regions import Regions, assign
from st_common.partitioning.sample import PointSource
from st_common.partitioning.store import current, thresholds_of
from st_common.partitioning.thresholds import Thresholds, balanced
from tests.kit.log_writer import bare_log

CONF = Path(__file__).parents[2] / "conf"

pytestmark = pytest.mark.spec("B2", "B5")


def loads_of(split, points):
    regions = Regions(group="g", version=1, region_id=split.paths, bounds=split.bounds)
    return np.bincount(assign(regions, points), minlength=len(split.paths))


@given(
    before=st.integers(1, 9),
    counts=st.tuples(st.integers(0, 300), st.integers(0, 300)),
    upper=st.sampled_from([20, 60, 1000]),
    seed=st.integers(0, 999),
    dimensions=st.integers(1, 4),
)
def test_nothing_is_above_and_no_siblings_are_below(
    before, counts, upper, seed, dimensions
):
    """Cells that were made for other points, and that `assign` finds to tile the plane."""
    rng, lower = np.random.default_rng(seed), upper // 3
    split = median_split(rng.normal(0, 3, (200, dimensions)), before)
    points = np.concatenate(
        [
            rng.normal(at, 1, (n, dimensions))
            for at, n in zip((-3, 4), counts, strict=True)
        ]
    )
    limits = Thresholds(upper=upper, lower=lower)
    done = balanced(split, points, np.ones(len(points)), limits)
    loads = dict(zip(done.paths, loads_of(done, points), strict=True))
    assert max(loads.values()) <= upper
    for path, held in loads.items():
        sibling = path[:-1] + "10"[int(path[-1])]
        assert sibling not in loads or held + loads[sibling] >= lower
    kept = dict(zip(split.paths, split.bounds.tolist(), strict=True))
    if before == 1:
        kept = {}  # one region is called as the first half of its own
    for path, bounds in zip(done.paths, done.bounds.tolist(), strict=True):
        assert path not in kept or len(done.paths) == 1 or kept[path] == bounds


def test_a_crowd_at_one_place_cannot_be_split():
    points = np.ones((50, 2))
    one = Split(paths=["0"], bounds=np.array([[-np.inf] * 2 + [np.inf] * 2]))
    done = balanced(one, points, np.ones(50), Thresholds(upper=10, lower=2))
    assert done.paths == ["0"]


def test_halves_lie_across_each_other_as_deep_as_they_stand():
    points = np.random.default_rng(1).uniform(0, 16, (4000, 2))
    one = Split(paths=["0"], bounds=np.array([[-np.inf] * 2 + [np.inf] * 2]))
    done = balanced(one, points, np.ones(4000), Thresholds(upper=300, lower=10))
    finite = np.clip(done.bounds, 0, 16)
    sides = finite[:, 2:] - finite[:, :2]
    assert len(done.paths) == 16
    assert sides.min() > 3, "no strips"


def points_of(*parts):
    """A source, and the bytes that hold it: 1 KB for each point."""
    points = np.concatenate(parts)
    source = PointSource(name="points", dimensions=2, read=lambda: iter([points]))
    return source, (lambda: len(points) << 10)


def place(count, at, seed=1):
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(at, at + 10, count), rng.uniform(0, 10, count)
    return np.column_stack([x, y])


@pytest.mark.parametrize("unit", ["rows", "mb"])
def test_a_group_is_kept_between_thresholds_as_its_stream_grows(tmp_path, unit):
    """In megabytes of 1,024 points each, or in as many rows."""
    home, scale = Home(tmp_path), 1 if unit == "mb" else 1024
    limits = Thresholds(upper=2 * scale, lower=0.5 * scale, unit=unit)
    first = rebalance(home, "city", [points_of(place(7_000, 0))], limits)
    assert (first.regions, first.version) == (4, 1)
    assert thresholds_of(home, "city") == limits
    west = current(home, "city")
    grown = points_of(place(7_000, 0), place(5_000, 100))
    second = rebalance(home, "city", [grown])
    both = current(home, "city")
    assert second.version == 2
    assert second.rows == 12_000
    assert second.regions == 8
    assert set(west.region_id) & set(both.region_id) == {"00", "01"}, "as they were"
    moved = rebalance(home, "city", [points_of(place(500, 100))])
    assert moved.regions == 1
    assert tables.read(home.table("regions"))["unit"].to_pylist() == [unit] * 13


def test_thresholds_that_make_no_sense_are_refused(tmp_path):
    for upper, lower, unit in ((10, 6, "rows"), (0, 0, "rows"), (10, 1, "acres")):
        limits = Thresholds(upper=upper, lower=lower, unit=unit)
        with pytest.raises(ConfigError):
            rebalance(Home(tmp_path), "g", [points_of(place(9, 0))], limits)
    with pytest.raises(ConfigError, match="no thresholds yet"):
        rebalance(Home(tmp_path), "g", [points_of(place(9, 0))])
    with pytest.raises(ConfigError, match="--lower without"):
        thresholds_given(None, 3.0, "rows")
    assert thresholds_given(None, None, "rows") is None
    assert thresholds_given(8.0, None, "mb") == Thresholds(upper=8, lower=2, unit="mb")


def test_the_command_line_splits_by_a_file(tmp_path, command_line):
    points = place(4_000, 0)
    file = tmp_path / "fixes.csv"
    lines = [f"{x},{y}" for x, y in points.tolist()]
    file.write_text("\n".join(["x,y", *lines, ""]))
    (tmp_path / "conf" / "streams.toml").write_text("")
    words = ("partition", "city", "--strategy", "thresholds", "--source", str(file))
    said = command_line(*words, "--upper", "1200")
    assert "group city, version 1: 4 regions by thresholds" in said.output
    assert "version 2: 4 regions" in command_line(*words).output


def test_groups_with_thresholds_are_kept_between_them_by_the_job_and_others_left(
    tmp_path, capsys
):
    home, conf = Home(tmp_path / "home"), tmp_path / "conf"
    conf.mkdir()
    (conf / "streams.toml").write_text(
        "".join(
            f'[streams.{name}]\nformat = "csv"\ncrs = "planar"\ngroup = "{group}"\n'
            'columns = { object = "id", x = "x", y = "y" }\n'
            for name, group in (("cars", "city"), ("ships", "sea"), ("kites", "air"))
        )
    )

    def arrive(stream, points):
        lines = [f"a,{x},{y}" for x, y in points.tolist()]
        text = "\n".join(["id,x,y", *lines, ""])
        bare_log(home.log(stream)).append(text.encode(), arrival_us=1)

    places = [f"--home={home.root}", f"--conf={conf}", "--engine=local"]

    def rebalanced():
        assert partition.main(["--rebalance", *places]) == 0
        return json.loads(capsys.readouterr().out.splitlines()[-1])

    nothing = rebalanced()
    assert nothing.pop("layers")["versions"] == {}
    assert nothing == {"groups": {}, "changed": [], "failed": {}}
    arrive("cars", place(900, 0))
    arrive("ships", place(900, 0))
    by_elements = ["--strategy=elements", "--regions=4", *places]
    assert partition.main(["city", "--upper=400", "--lower=100", *by_elements]) == 0
    assert partition.main(["sea", *by_elements]) == 0
    assert thresholds_of(home, "city") == Thresholds(upper=400, lower=100)
    assert thresholds_of(home, "sea") is None
    capsys.readouterr()
    same = rebalanced()
    assert (same["changed"], list(same["groups"])) == ([], ["city"])
    assert current(home, "city").version == 1, "in between nothing changes"
    before = set(current(home, "city").region_id)
    arrive("cars", place(2_000, 8, seed=2))
    more = rebalanced()
    assert more["changed"] == ["city"]
    after = current(home, "city")
    assert after.version == 2
    assert len(after.region_id) > len(before)
    assert before & set(after.region_id), "what holds as much as before stays"
    assert thresholds_of(home, "city") == Thresholds(upper=400, lower=100)
    assert current(home, "sea").version == 1
    assert (home.reports / "regions" / "city.html").exists()
    assert rebalanced()["changed"] == []


def test_who_reads_a_layer_sees_each_feature_once_while_regions_are_split_and_merged(
    tmp_path,
):
    """The layer goes over to each version of its group's regions in one commit, also for who reads it meanwhile."""
    home, rng = Home(tmp_path / "home"), np.random.default_rng(7)
    corners = rng.uniform(0, 40, (150, 2)).round(3)
    rings = [[[x, y], [x + 5, y], [x + 5, y + 5], [x, y]] for x, y in corners.tolist()]
    shapes = [{"type": "Polygon", "coordinates": [ring]} for ring in rings]
    file = tmp_path / "yards.geojson"
    file.write_text("\n".join(map(json.dumps, shapes)))
    load(home, "yards", file, group="city", conf=CONF)
    path, contract = home.table("layers", "yards"), load_contract("layers")
    seen, ended = [], threading.Event()

    def read():
        while not ended.is_set():
            rows = tables.read(path, contract=contract)
            crossing = len(rows) - len(set(rows["fid"].to_pylist()))
            seen.append(
                (sorted(rows.filter(rows["home"])["fid"].to_pylist()), crossing)
            )

    reader = threading.Thread(target=read)
    reader.start()
    try:
        limits = Thresholds(upper=300, lower=100)
        for count in (4_000, 200, 3_000, 500, 4_000, 100):
            places = points_of(rng.uniform(0, 45, (count, 2)))
            rebalance(home, "city", [places], limits)
            spread_layers(home)
    finally:
        ended.set()
        reader.join()
    assert {len(fids) for fids, _ in seen} == {150}
    assert all(fids == seen[0][0] for fids, _ in seen)
    assert len({crossing for _, crossing in seen}) > 2, "seen over several regions"
