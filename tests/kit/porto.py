"""Real data in a home: the taxis of Porto and the roads and buildings of its centre, in the regions of one group."""

import csv
import json
from pathlib import Path

import numpy as np

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.layers.load import load
from st_common.partitioning.kdtree import median_split
from st_common.partitioning.regions import Regions
from st_common.partitioning.store import store
from tests.kit.archived import archive, stream_of_places

_CONF = Path(__file__).resolve().parents[2] / "conf"


def taxis_and_map(data: Path, home: Home, regions: int) -> StreamSettings:
    """Archives the fixes of the stream `taxis`, and loads the layer `map`, by the regions of the group `metro`.

    Args:
        data: the folder with the data sets.
        home: where the tables come to lie.
        regions: how many there are, at the medians of the fixes.
    """
    places: list[list[float]] = []
    with (data / "taxi-porto" / "train-1000.csv").open() as source:
        for record in csv.DictReader(source):
            places += json.loads(record["POLYLINE"])
    points = np.array(places)
    split = median_split(points, regions)
    cut = Regions(group="metro", version=0, region_id=split.paths, bounds=split.bounds)
    store(home, cut, np.zeros(len(split.paths), np.int64), "by hand")
    stream = stream_of_places("taxis", group="metro")
    archive(home, stream, *points.T.copy())
    file = data / "osm-porto" / "porto-centre-2020-07-20.osm.pbf"
    kinds = ["road", "building"]
    load(home, "map", file, group="metro", kinds=kinds, conf=_CONF)
    return stream
