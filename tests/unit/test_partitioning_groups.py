"""Partitioning a group from files, layers and logs, where no Spark is needed."""

import json

import numpy as np
import pytest

from jobs import load_layer, partition
from st_common import tables
from st_common.batch.prepartition import prepartition, source_of, sources_of
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.errors import ConfigError, LayerError
from st_common.partitioning.sample import PointSource
from st_common.partitioning.store import current
from tests.kit.log_writer import bare_log

CONF = """
[kinds.stop]
geometry = "point"
tags = ["highway=bus_stop"]
"""
STREAMS = """
[streams.cars]
format = "csv"
columns = { object = "id", x = "x", y = "y" }
max_ahead_s = "off"
"""


@pytest.fixture
def conf(tmp_path):
    folder = tmp_path / "conf"
    folder.mkdir()
    (folder / "layers.toml").write_text(CONF)
    (folder / "streams.toml").write_text(STREAMS)
    return folder


def stream(name, group):
    columns = Columns(object="id", x="x", y="y")
    return StreamSettings(
        name=name, format="csv", columns=columns, group=group, max_ahead_s=None
    )


def csv_of(tmp_path, count):
    file = tmp_path / "fixes.csv"
    places = np.random.default_rng(1).uniform(0, 1, (count, 2))
    file.write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in places))
    return file


@pytest.mark.spec("B4")
def test_the_first_elements_split_and_the_rest_of_the_stream_is_counted(tmp_path, conf):
    home = Home(tmp_path / "home")
    source = source_of(home, conf, [], str(csv_of(tmp_path, 1_000)), group="cars")
    stages = []
    done = prepartition(
        home,
        "cars",
        source,
        strategy="elements",
        elements=600,
        regions=7,
        workers=3,
        stage=lambda what, rows: stages.append((what, rows)),
    )
    assert (done.regions, done.chosen, done.rows, done.tree, done.note) == (
        7,
        600,
        400,
        "median",
        "",
    )
    stored = tables.read(home.table("regions"))
    assert stored["std_deviation"].to_pylist() == [done.std_deviation] * 7
    counted = dict(
        zip(stored["region_id"].to_pylist(), stored["rows"].to_pylist(), strict=True)
    )
    rows = np.array([counted[path] for path in sorted(counted)])
    assert done.std_deviation == pytest.approx(np.sqrt(np.mean((rows - 400 / 7) ** 2)))
    dealt = np.array([rows[worker::3].sum() for worker in range(3)])
    assert done.std_deviation_workers == pytest.approx(
        np.sqrt(np.mean((dealt - 400 / 3) ** 2))
    )
    assert stages == [("reading", 0), ("splitting", 600), ("counting", 400)]


@pytest.mark.spec("B4")
def test_a_share_is_raised_as_far_as_each_region_needs(tmp_path, conf):
    home = Home(tmp_path / "home")
    source = source_of(home, conf, [], str(csv_of(tmp_path, 100)), group="cars")
    done = prepartition(home, "cars", source, strategy="sample", share=0.01, regions=40)
    assert (done.regions, done.tree, done.note) == (40, "median", "")
    assert (done.chosen, done.rows) == (
        100,
        100,
    )  # the share was raised as far as the rows went


@pytest.mark.spec("B2", "B4")
def test_regions_of_several_sources_share_out_the_load_of_each(tmp_path, conf):
    """A hundred places in the west, ten in the east: half of the sample is of the east."""
    rng, files = np.random.default_rng(4), []
    for count, west in ((100, 0), (10, 100)):
        places = rng.uniform(0, 10, (count, 2)) + np.array([west, 0])
        file = tmp_path / f"{west}.csv"
        file.write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in places))
        files.append(str(file))
    home = Home(tmp_path / "home")
    source, *beside = sources_of(home, conf, [], ",".join(files), group="cars")
    done = prepartition(
        home,
        "cars",
        source,
        beside=beside,
        strategy="sample",
        regions=16,
    )
    regions = current(home, "cars")
    east = regions.bounds[:, 0] > 9
    assert (done.rows, done.regions, int(east.sum())) == (110, 16, 8)
    with pytest.raises(ConfigError, match="one stream"):
        prepartition(home, "cars", source, beside=beside, strategy="elements")


def test_a_group_is_partitioned_by_the_logs_of_its_streams(tmp_path, conf):
    home = Home(tmp_path / "home")
    streams = [stream("cars", "city"), stream("vans", "city"), stream("ships", "sea")]
    for number, one in enumerate(streams):
        bare_log(home.log(one.name)).append(
            f"id,x,y\na,{number},0\nb,{number},1\n".encode(), arrival_us=1
        )
    both = source_of(home, conf, streams, None, group="city")
    assert sorted(set(np.concatenate(list(both.read()))[:, 0])) == [0.0, 1.0]
    one = source_of(home, conf, streams, "stream:ships", group="city")
    assert np.concatenate(list(one.read())).tolist() == [[2.0, 0.0], [2.0, 1.0]]


def test_sources_that_are_not_there_are_errors(tmp_path, conf):
    home = Home(tmp_path / "home")
    with pytest.raises(ConfigError, match="there is no stream 'cras'"):
        source_of(home, conf, [stream("cars", "g")], "stream:cras", group="g")
    with pytest.raises(LayerError, match="there is no layer 'parks'"):
        source_of(home, conf, [], "layer:parks", group="g")
    with pytest.raises(ConfigError, match=r"there is no source 'none\.csv'"):
        source_of(home, conf, [], "none.csv", group="g")
    empty = source_of(home, conf, [], None, group="g")
    with pytest.raises(ConfigError, match="the source has no points"):
        prepartition(home, "g", empty, strategy="elements")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"strategy": "smaple"}, "no strategy 'smaple'"),
        ({"strategy": "sample", "share": 0}, "a share of 0"),
        ({"strategy": "sample", "share": 1.5}, "a share of 1.5"),
        ({"strategy": "elements", "elements": 0}, "first is 0"),
        ({"strategy": "elements", "regions": 0}, "regions is 0"),
        ({"strategy": "elements", "workers": 0}, "workers is 0"),
    ],
)
def test_numbers_out_of_their_range_are_errors(tmp_path, wrong, message):
    nothing = PointSource(name="nothing", dimensions=2, read=lambda: iter([]))
    with pytest.raises(ConfigError, match=message):
        prepartition(Home(tmp_path), "g", nothing, **wrong)


@pytest.mark.spec("C2", "C3")
def test_the_jobs_load_a_layer_and_partition_by_it_with_the_arguments_that_dags_give(
    tmp_path, conf, capsys
):
    home = tmp_path / "home"
    tags = {"highway": "bus_stop"}
    stops = [
        {
            "type": "Feature",
            "properties": tags,
            "geometry": {"type": "Point", "coordinates": [i, i]},
        }
        for i in range(50)
    ]
    file = tmp_path / "stops.geojson"
    file.write_text(json.dumps({"type": "FeatureCollection", "features": stops}))
    common = [f"--home={home}", f"--conf={conf}"]
    layer = ["stops", str(file), "--engine=local"]
    assert load_layer.main([*layer, "--group=default", "--kinds=", *common]) == 0
    loaded = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (loaded["features"], loaded["by_kind"]) == (50, {"stop": 50})
    options = [
        "--engine=local",
        "--strategy=elements",
        "--share=",
        "--first=40",
        "--regions=4",
        "--source=layer:stops",
    ]
    assert partition.main(["default", *options, *common]) == 0
    done = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (done["regions"], done["chosen"], done["rows"]) == (4, 40, 10)
    assert len(current(Home(home), "default").region_id) == 4
    assert load_layer.main([*layer, "--kinds=stop", *common]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["rows"] >= 50
    assert (
        load_layer.main(["stops", str(tmp_path / "none.pbf"), *layer[2:], *common]) == 2
    )
    assert (
        capsys.readouterr().err == f"error: there is no file {tmp_path / 'none.pbf'}\n"
    )
