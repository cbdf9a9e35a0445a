"""The own route of each object on Spark: a join by place with a key beside it, also over 180 degrees (SPEC X9)."""

from pathlib import Path

import pytest
import shapely

from st_common import tables
from st_common.config.home import Home
from st_common.query.fence import Fence
from st_common.query.plan import LayerJoin, Plan
from tests.kit import oracle
from tests.kit.by_hand import end, fix, log, register
from tests.kit.laws import told, told_by_oracle
from tests.kit.layer_tables import store_layers
from tests.kit.log_writer import settings_of, write_log
from tests.kit.on_spark import follow_on
from tests.kit.random_grid import LAYER, STREAM
from tests.kit.strategies import Case

pytestmark = [pytest.mark.timeout(600), pytest.mark.spec("X9")]
OWN = LayerJoin(
    layer=LAYER, predicate="dwithin", distance_m=200.0, left="kind", right="line"
)
FENCE = Fence(events=("enter", "exit", "cross"), hysteresis_m=100.0)
LONGITUDES = (179.95, 179.999, -179.999, -179.901, -179.89)


def route(fid: str, latitude: float, line: str) -> oracle.Feature:
    parts = [
        [(179.9, latitude), (180, latitude)],
        [(-180, latitude), (-179.9, latitude)],
    ]
    shape = shapely.MultiLineString(parts)
    return oracle.Feature(fid, "route", shape, {"line": line})


def life() -> Case:
    """Buses of two lines, and one of none, between the two routes, 167 m from each, until these end."""
    rows = [
        register("own", Plan(stream=STREAM, join=OWN), layer_version=0),
        register("gate", Plan(stream=STREAM, join=OWN, fence=FENCE), layer_version=0),
        *(
            fix(name, number, x, 60.0015, kind=line)
            for number, x in enumerate(LONGITUDES, 1)
            for name, line in (("a", "7"), ("b", "9"), ("c", None))
        ),
        end(),
    ]
    layers = {(LAYER, 0): [route("r1", 60.0, "7"), route("r2", 60.003, "9")]}
    rules = oracle.Rules(geographic=True)
    return Case(rows=tuple(log(*rows)), layers=layers, rules=rules)


@pytest.mark.parametrize("shards", [1, 3])
def test_each_object_has_its_own_route_over_180_degrees(
    spark, tmp_path: Path, shards: int
):
    case, home = life(), Home(tmp_path)
    stream = settings_of(STREAM, case.rules)
    case = store_layers(home, case)
    written = write_log(home.log(STREAM), case.rows, tuple(range(4, len(case.rows), 4)))
    follow_on(spark, home, stream, shards=shards)
    changes = tables.read(home.table("changes", STREAM))
    expected = oracle.judge(case.rows, layers=case.layers, rules=case.rules)
    assert told(changes, written.order) == told_by_oracle(expected.changes)
    columns = ("query", "object", "partner", "sign")
    pairs = zip(*(changes[name].to_pylist() for name in columns), strict=True)
    own = {("a", "r1"), ("b", "r2")}
    assert set(pairs) == {
        (query, *pair, sign)
        for query in ("own", "gate")
        for pair in own
        for sign in (1, -1)
    }
