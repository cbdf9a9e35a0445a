"""Whose data a layer has: what is said of it, by its load, by the ids of its features, in homes from before."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from st_common import tables
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.errors import LayerError
from st_common.layers.attribution import OPENSTREETMAP, attribution_of, is_openstreetmap
from st_common.layers.load import load
from st_common.layers.spreading import spread_layers
from st_common.layers.summary import summary
from st_common.layers.table import newest_version
from st_common.partitioning.regions import Regions
from st_common.partitioning.store import store


def file_of(folder: Path, *fids: str) -> Path:
    """A file of parks with these ids."""
    features = [
        {
            "type": "Feature",
            "id": fid,
            "properties": {"leisure": "park"},
            "geometry": {"type": "Point", "coordinates": [n, n]},
        }
        for n, fid in enumerate(fids)
    ]
    file = folder / "parks.geojson"
    file.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return file


@pytest.mark.parametrize(
    ("fids", "said"),
    [
        (["way/37264739/area", "node/319786923", "relation/1"], OPENSTREETMAP),
        (["way/1", "w2"], None),
        (["highway/1"], None),
        (["way/north"], None),
        ([], None),
    ],
)
def test_ids_of_openstreetmap_say_whose_data_they_are(fids: list[str], said: str):
    known = is_openstreetmap(pa.array(fids, pa.string()))
    assert attribution_of(None, is_openstreetmap=known) == said


@pytest.mark.parametrize("given", ["", " ", "a\nb", "x" * 201, "a\x1b[2Jb"])
def test_what_is_no_line_of_text_is_refused_and_the_layer_stays(
    given: str, tmp_path: Path
):
    home = Home(tmp_path / "home")
    with pytest.raises(LayerError, match="is no line of text"):
        load(home, "parks", file_of(tmp_path, "1"), group="g", attribution=given)
    assert newest_version(home, "parks") is None


@pytest.mark.spec("P10")
@pytest.mark.parametrize(
    ("fid", "given", "said"),
    [
        ("way/1", None, OPENSTREETMAP),
        ("way/1", "© City of Helsinki", "© City of Helsinki"),
        ("w1", None, None),
    ],
)
def test_what_a_load_says_stays_with_the_layer_when_it_is_spread_anew(
    fid: str, given: str | None, said: str | None, tmp_path: Path
):
    home = Home(tmp_path / "home")
    report = load(home, "parks", file_of(tmp_path, fid), group="g", attribution=given)
    assert report.attribution == summary(home, "parks").attribution == said
    halves = np.array([[-np.inf, -np.inf, 5, np.inf], [5, -np.inf, np.inf, np.inf]])
    regions = Regions(group="g", version=0, region_id=["0", "1"], bounds=halves)
    store(home, regions, np.array([1, 1]), "sample, kd")
    assert spread_layers(home).versions == {"parks": report.version + 1}
    assert summary(home, "parks").attribution == said


def test_a_layer_from_before_it_was_stored_says_it_by_its_ids(tmp_path: Path):
    home = Home(tmp_path / "home")
    load(home, "parks", file_of(tmp_path, "way/1", "node/2"), group="g")
    path = home.table("layers", "parks")
    older = tables.read(path).drop_columns("attribution")
    tables.replace(path, older, load_contract("layers"))
    assert tables.read(path)["attribution"].to_pylist() == [None, None]
    assert summary(home, "parks").attribution == OPENSTREETMAP
