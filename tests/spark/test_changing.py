"""Queries, fences, areas and layers that change while a stream runs on Spark, with objects inside (SPEC X4).

x      0        5        10       15
old    [-----------------]                 the region, and the feature `w`
new             [-----------------]        what takes its place
       a at 3       b at 7       c at 13   they stand still
"""

from dataclasses import replace
from pathlib import Path

import pytest
import shapely

from st_common import tables
from st_common.config.home import Home
from st_common.query.fence import Debounce, Fence
from st_common.query.plan import LayerJoin, Plan
from st_common.regions.registry import Area, Box, Circle
from tests.kit import oracle
from tests.kit.by_hand import clock, drop, fix, layer, log, register
from tests.kit.laws import told, told_by_oracle
from tests.kit.layer_tables import store_layers
from tests.kit.log_writer import settings_of, write_log
from tests.kit.on_spark import follow_on
from tests.kit.random_grid import LAYER, STREAM
from tests.kit.strategies import Case

pytestmark = [pytest.mark.timeout(600), pytest.mark.spec("X4", "X3", "X1")]

OLD, NEW = Box(minx=0, miny=0, maxx=10, maxy=10), Box(minx=5, miny=0, maxx=15, maxy=10)
SHAPES = shapely.box(0, 0, 10, 10), shapely.box(5, 0, 15, 10)
VISIT = Fence(events=("enter", "exit", "dwell"), dwell_s=60)


def inside(region, fence=None):
    return Plan(stream=STREAM, inside=region, fence=fence)


def feature(shape):
    wkt = Area.of_wkt(shapely.to_wkt(shape, rounding_precision=-1)).wkt
    return inside(Area(wkt=wkt, layer="parks", fid="w"))


def life(*, geographic: bool) -> Case:
    """A log in which everything changes while a, b and c stand still."""
    far = 200_000.0 if geographic else 1.0
    joined = LayerJoin(layer=LAYER, predicate="intersects")
    near = LayerJoin(layer=LAYER, predicate="dwithin", distance_m=far)
    often = replace(VISIT, exit_after=Debounce(fixes=2))
    rows = [
        register("now", inside(OLD)),
        register("gate", inside(OLD, VISIT)),
        register("park", feature(SHAPES[0])),
        register("met", Plan(stream=STREAM, join=joined), layer_version=0),
        register("rim", Plan(stream=STREAM, join=near, fence=VISIT), layer_version=0),
        *(fix("a", 1, 3, 5), fix("b", 2, 7, 5), fix("c", 3, 13, 5)),
        register("gate", inside(NEW, VISIT), op="follow"),
        register("park", feature(SHAPES[1]), op="follow", layer="parks"),
        layer(LAYER, 1),
        register(
            "now", inside(Circle(x=3, y=5, radius_m=far)), op="replace", version=2
        ),
        register("gate", inside(NEW, often), op="replace", version=2),
        clock(90),
        *(drop("now"), register("now", inside(NEW), version=3)),
        *(fix("a", 91, 3, 5), fix("b", 92, 20, 5), fix("c", 93, 13, 6)),
    ]
    layers = {
        (LAYER, number): [oracle.Feature("w", "park", shape)]
        for number, shape in enumerate(SHAPES)
    }
    rules = oracle.Rules(geographic=geographic)
    return Case(rows=tuple(log(*rows)), layers=layers, rules=rules)


AT_ONCE = {
    ("gate", "a", -1, "area"),
    ("gate", "c", 1, "area"),
    ("park", "a", -1, "layer"),
    ("park", "c", 1, "layer"),
    ("met", "a", -1, "layer"),
    ("met", "c", 1, "layer"),
    ("rim", "a", -1, "layer"),
    ("rim", "c", 1, "layer"),
    ("now", "b", -1, "replaced"),
    ("now", "a", 1, "registered"),
    ("gate", "b", 1, "registered"),
}
"""What is told of objects that stand still, by who changed; b goes on in its visits."""


@pytest.mark.parametrize(
    ("shards", "geographic"), [(1, False), (1, True), (3, False), (3, True)]
)
def test_what_changes_while_a_stream_runs_tells_of_objects_already_inside(
    spark, tmp_path: Path, shards: int, *, geographic: bool
):
    case = life(geographic=geographic)
    home, stream = Home(tmp_path), settings_of(STREAM, case.rules)
    case = store_layers(home, case)
    cuts = tuple(range(3, len(case.rows), 3))
    written = write_log(home.log(STREAM), case.rows, cuts)
    follow_on(spark, home, stream, shards=shards)
    changes = tables.read(home.table("changes", STREAM))
    expected = oracle.judge(case.rows, layers=case.layers, rules=case.rules)
    assert told(changes, written.order) == told_by_oracle(expected.changes)
    columns = ("query", "object", "sign", "cause")
    pairs = zip(*(changes[name].to_pylist() for name in columns), strict=True)
    assert set(pairs) >= AT_ONCE
