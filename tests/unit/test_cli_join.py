"""`fairway layer join`: stored fixes with the features of a layer, on the command line (SPEC B2)."""

import json

import numpy as np
import pytest
import shapely
from typer.testing import CliRunner

from st_common import tables
from st_common.cli import app
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.layers.rows import layer_rows
from st_common.partitioning.regions import Regions
from st_common.partitioning.store import store
from tests.kit.archived import archive, stream_of_places
from tests.kit.layer_tables import features_of
from tests.kit.oracle import Feature

pytestmark = pytest.mark.spec("B2")

CONF = """
[streams.cars]
format = "csv"
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
group = "metro"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
"""
HALVES = Regions(
    group="metro",
    version=0,
    region_id=["0", "1"],
    bounds=np.array([[-np.inf, -np.inf, 5, np.inf], [5, -np.inf, np.inf, np.inf]]),
)
FEATURES = [
    Feature("park", "park", shapely.box(4, 0, 6, 2), {}),
    Feature("road", "road", shapely.LineString([(0, 9), (9, 9)]), {}),
]
CARS = np.array([[4.0, 1.0], [5.0, 2.0], [8.0, 7.0], [1.0, 5.0]])


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    folder = tmp_path_factory.mktemp("join")
    home, conf = Home(folder / "home"), folder / "conf"
    conf.mkdir()
    (conf / "streams.toml").write_text(CONF)
    regions = store(home, HALVES, np.zeros(2, np.int64), "by hand")
    stream = stream_of_places("cars", group="metro", crs="planar")
    archive(home, stream, *CARS.T.copy())
    rows = layer_rows(features_of(FEATURES), regions)
    tables.replace(home.table("layers", "places"), rows, load_contract("layers"))
    where = ["--home", str(home.root), "--conf", str(conf)]
    return lambda *words: CliRunner().invoke(app, ["layer", "join", *words, *where])


def pairs_of(done):
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {(row["x"], row["y"], row["region_id"], row["fid"]) for row in rows}


def test_fixes_are_shown_with_what_they_lie_in(command):
    wanted = {(4.0, 1.0, "0", "park"), (5.0, 2.0, "1", "park")}
    assert pairs_of(command("cars", "places", "--json")) == wanted
    assert pairs_of(command("metro.cars", "metro.places", "--json")) == wanted


def test_a_distance_kinds_and_days_choose(command):
    near = pairs_of(command("cars", "places", "--within", "2", "--json"))
    assert near == {
        (4.0, 1.0, "0", "park"),
        (5.0, 2.0, "1", "park"),
        (8.0, 7.0, "1", "road"),
    }
    roads = command("cars", "places", "--within", "4", "--kinds", "road", "--json")
    assert pairs_of(roads) == {(8.0, 7.0, "1", "road"), (1.0, 5.0, "0", "road")}
    later = command("cars", "places", "--from", "1970-01-02", "--json")
    assert pairs_of(later) == set()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("cars", "lakes"), "there is no layer 'lakes'"),
        (("cars", "city.places"), "layer 'places' is in group 'metro', not in 'city'"),
        (("cars", "places", "--kinds", "raod"), "did you mean road?"),
        (
            ("cars", "places", "--within", "-1"),
            "within is '-1' (a number, at least 0, metres)",
        ),
        (("cars", "places", "--within", "nan"), "within is 'nan' (a number"),
        (("cars", "places", "--from", "soon"), "soon"),
        (("boats", "places"), "there is no stream 'boats'"),
    ],
)
def test_what_is_wrong_is_said(command, words, said):
    done = command(*words)
    assert done.exit_code == 2
    assert said in done.stderr
