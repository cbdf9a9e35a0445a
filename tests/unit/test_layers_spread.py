"""Layers follow the regions of their group: the same features by other regions, told to streams, once."""

from pathlib import Path

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from jobs import load_layer, partition
from st_common import tables
from st_common.config.home import Home
from st_common.contracts import load_contract, require_match
from st_common.layers.features import Features
from st_common.layers.rows import layer_rows
from st_common.layers.spreading import spread_layers as spread
from st_common.layers.table import newest_version
from st_common.partitioning.kdtree import median_split
from st_common.partitioning.regions import Regions, whole
from st_common.partitioning.store import current, store
from tests.kit.effort import tries

LOCAL = ("--engine", "local")
CONF = Path(__file__).resolve().parents[2] / "conf"
POINTS = st.lists(
    st.tuples(st.integers(-50, 50), st.integers(-50, 50), st.integers(1, 30)),
    min_size=1,
    max_size=20,
)


def regions_of(home: Home, points: np.ndarray, count: int) -> Regions:
    """The next version of the group `g`: a split of some points."""
    split = median_split(points, count)
    made = Regions(group="g", version=0, region_id=split.paths, bounds=split.bounds)
    return store(home, made, np.ones(len(split.paths), np.int64), "test")


def features_of(squares: list[tuple[int, int, int]]) -> Features:
    number = len(squares)
    tags = np.empty(number, object)
    tags[:] = [{"n": str(one)} for one in range(number)]
    corners = np.array(squares, float)
    west, south, side = corners.T
    return Features(
        fids=np.array([f"f{one:03}" for one in range(number)], object),
        kinds=np.array(["park"] * number, object),
        tags=tags,
        geometries=shapely.box(west, south, west + side, south + side),
        wanted=number,
    )


@pytest.mark.spec("C2")
@tries(6)
@given(squares=POINTS, splits=st.lists(st.integers(1, 9), min_size=1, max_size=2))
def test_a_layer_that_is_spread_anew_is_the_layer_loaded_into_these_regions(
    squares: list[tuple[int, int, int]],
    splits: list[int],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    home = Home(tmp_path_factory.mktemp("home"))
    path, contract = home.table("layers", "parks"), load_contract("layers")
    features = features_of(squares)
    tables.replace(path, layer_rows(features, whole("g")), contract)
    points = np.array(squares, float)[:, :2]
    for count in splits:
        regions_of(home, points + count, count)
        version = newest_version(home, "parks")
        assert version is not None
        assert spread(home).versions == {"parks": version + 1}
        assert spread(home).kept == ["parks"], "once is enough"
        loaded = layer_rows(features, current(home, "g"))
        order = [("region_id", "ascending"), ("fid", "ascending")]
        kept = tables.read(path, columns=loaded.column_names).sort_by(order)
        assert kept.to_pylist() == loaded.sort_by(order).to_pylist()
    require_match(contract, path)


def test_a_layer_of_no_known_group_is_named_and_left_alone(tmp_path: Path) -> None:
    home = Home(tmp_path)
    rows = layer_rows(features_of([(0, 0, 1)]), whole("g")).drop_columns("region_group")
    tables.replace(home.table("layers", "parks"), rows, load_contract("layers"))
    regions_of(home, np.array([[0.0, 0], [4, 4]]), 2)
    done = spread(home)
    assert (done.unknown, done.versions, done.kept) == (["parks"], {}, [])


def test_the_jobs_say_that_regions_are_missing_and_tell_streams_of_the_new_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "parks.geojson"
    file.write_text(
        '{"type": "FeatureCollection", "features": [{"type": "Feature", "id": "a", "properties": '
        '{"leisure": "park"}, "geometry": {"type": "Point", "coordinates": [1, 2]}}]}'
    )
    home = Home(tmp_path / "home")
    home.stream("cars").mkdir(parents=True)
    places = ["--home", str(home.root), "--conf", str(CONF)]
    assert load_layer.main([*places, "parks", str(file), "--group", "g", *LOCAL]) == 0
    assert "group 'g' has no regions yet" in capsys.readouterr().err
    regions_of(home, np.array([[0.0, 0], [4, 4]]), 2)
    done = (
        '"versions": {"parks": 2}, "kept": [], "unknown": [], "streams": ["cars"]',
        '"versions": {}, "kept": ["parks"], "unknown": [], "streams": []',
    )
    for told in done:
        assert partition.main([*places, "--rebalance", *LOCAL]) == 0
        assert told in capsys.readouterr().out
    assert load_layer.main([*places, "parks", str(file), "--group", "g", *LOCAL]) == 0
    assert capsys.readouterr().err == ""
