"""Loading layers: one commit, one control row per stream, and what happens when a load dies in between."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
import shapely

from st_common import tables
from st_common.config.home import Home
from st_common.contracts import load_contract, require_match
from st_common.errors import ConfigError, LayerError
from st_common.layers import load as loading
from st_common.layers.announce import announce
from st_common.layers.load import load, local
from st_common.layers.stored import load_index
from st_common.layers.summary import summaries, summary
from st_common.layers.table import newest_version
from st_common.log.log import Log
from st_common.partitioning.kdtree import median_split
from st_common.partitioning.regions import Regions
from st_common.partitioning.store import store

CONF = Path(__file__).resolve().parents[2] / "conf"


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path / "home")
    for stream in ("cars", "ships"):
        home.stream(stream).mkdir(parents=True)
    return home


def file_of(tmp_path, **boxes):
    features = [
        {
            "type": "Feature",
            "id": fid,
            "properties": {"leisure": "park", "n": i},
            "geometry": shapely.geometry.mapping(box),
        }
        for i, (fid, box) in enumerate(boxes.items())
    ]
    file = tmp_path / "parks.geojson"
    file.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return file


def load_boxes(home, tmp_path, layer="parks", **boxes):
    return load(home, layer, file_of(tmp_path, **boxes), group="default", conf=CONF)


def control_rows(home, stream):
    log = Log(home.log(stream))
    return [
        json.loads(line)
        for segment in log.control_segments(0)
        for line in log.read(segment).splitlines()
    ]


A, B, C = shapely.box(0, 0, 1, 1), shapely.box(5, 5, 6, 6), shapely.box(-1, -1, 9, 9)


@pytest.mark.spec("C2")
def test_a_load_writes_a_row_for_each_region_in_one_version_that_meets_the_contract(
    home, tmp_path
):
    split = median_split(np.array([[0.0, 0], [4, 4], [8, 8], [2, 6]]), 4)
    store(
        home,
        Regions(group="default", version=0, region_id=split.paths, bounds=split.bounds),
        np.ones(4, int),
        "test",
    )
    seen = []
    file = file_of(tmp_path, a=A, b=B, c=C)
    report = load(
        home,
        "parks",
        file,
        group="default",
        conf=CONF,
        engine=partial(local, progress=lambda what, count: seen.append((what, count))),
    )
    table = home.table("layers", "parks")
    rows = tables.read(table)
    require_match(load_contract("layers"), table)
    require_match(load_contract("regions"), home.table("regions"))
    assert (report.features, report.by_kind, report.streams) == (
        3,
        {"park": 3},
        ["cars", "ships"],
    )
    assert (report.version, report.rows) == (tables.version(table), len(rows))
    assert ("writing", report.rows) in seen
    assert pc.sum(rows["home"].cast("int32")).as_py() == 3
    assert set(rows.filter(pc.equal(rows["fid"], "c"))["region_id"].to_pylist()) == set(
        split.paths
    )
    assert dict(rows.filter(pc.equal(rows["fid"], "a"))["tags"].to_pylist()[0]) == {
        "leisure": "park",
        "n": "0",
    }


def test_a_reload_is_the_next_version_and_the_old_one_can_still_be_read(home, tmp_path):
    first = load_boxes(home, tmp_path, a=A, b=B)
    second = load_boxes(home, tmp_path, b=B, c=C)
    assert second.version == first.version + 1
    place = np.array([0.5]), np.array([0.5])
    old, new = (load_index(home, "parks", report.version) for report in (first, second))
    assert old.fids[old.match(*place)[1]].tolist() == ["a"]
    assert new.fids[new.match(*place)[1]].tolist() == ["c"]
    assert load_index(home, "parks", first.version) is old
    for stream in ("cars", "ships"):
        assert control_rows(home, stream) == [
            {"op": "layer", "layer": "parks", "version": first.version},
            {"op": "layer", "layer": "parks", "version": second.version},
        ]


def test_a_load_that_died_before_it_told_the_streams_is_completed_by_the_next(
    home, tmp_path, monkeypatch
):
    def dies(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(loading, "announce", dies)
    with pytest.raises(KeyboardInterrupt):
        load_boxes(home, tmp_path, a=A)
    monkeypatch.undo()
    assert control_rows(home, "cars") == []
    parks = newest_version(home, "parks")
    lakes = load_boxes(home, tmp_path, "lakes", b=B)
    told = [
        {"op": "layer", "layer": "lakes", "version": lakes.version},
        {"op": "layer", "layer": "parks", "version": parks},
    ]
    assert control_rows(home, "cars") == control_rows(home, "ships") == told
    assert announce(home) == []


def test_a_new_stream_is_told_about_the_layers_that_exist(home, tmp_path):
    report = load_boxes(home, tmp_path, a=A)
    written = announce(home, stream="bikes", arrival_us=7)
    assert [(one.stream, one.layer, one.version) for one in written] == [
        ("bikes", "parks", report.version)
    ]
    assert Log(home.log("bikes")).control_segments(0)[0].arrival_us == 7
    assert announce(home, layer="parks", stream="bikes") == []


def test_a_load_that_fails_leaves_the_layer_as_it_was(home, tmp_path):
    report = load_boxes(home, tmp_path, a=A)
    broken = tmp_path / "broken.geojson"
    broken.write_text("{")
    with pytest.raises(LayerError, match="is no GeoJSON"):
        load(home, "parks", broken, group="default", conf=CONF)
    broken.write_text('{"type": "Point"}')
    with pytest.raises(
        LayerError,
        match=r"has no feature for layer 'parks' \(rejected: 1 bad_coordinates; rejected feature 1: bad_coordinates: ",
    ):
        load(home, "parks", broken, group="default", conf=CONF)
    with pytest.raises(LayerError, match="none is of kind forest"):
        load(
            home,
            "parks",
            file_of(tmp_path, a=A),
            group="default",
            conf=CONF,
            kinds=["forest"],
        )
    with pytest.raises(ConfigError, match="is no name for a layers"):
        load(home, "../etc", file_of(tmp_path, a=A), group="default", conf=CONF)
    assert newest_version(home, "parks") == report.version
    assert len(control_rows(home, "cars")) == 1


def test_layers_are_listed_with_what_is_in_them(home, tmp_path):
    assert summaries(home) == []
    report = load_boxes(home, tmp_path, a=A, b=B)
    one = summary(home, "parks")
    assert summaries(home) == [one]
    assert (one.version, one.features, one.rows, one.by_kind) == (
        report.version,
        2,
        2,
        {"park": 2},
    )
    assert (one.box, one.by_region) == ((0.0, 0.0, 6.0, 6.0), {"0": 2})
    with pytest.raises(LayerError, match="there is no layer 'lakes'"):
        summary(home, "lakes")


@pytest.mark.parametrize("version", [-1, 99])
def test_an_index_of_a_version_that_is_not_there_is_an_error(home, tmp_path, version):
    load_boxes(home, tmp_path, a=A)
    with pytest.raises(LayerError, match=f"has no version {version}"):
        load_index(home, "parks", version)
    with pytest.raises(LayerError, match="'lakes' has no version 1"):
        load_index(home, "lakes", 1)
