"""From the local engine to Spark, to other shards there, and back, in the middle of a stream: the same sequence."""

import random
import shutil
from dataclasses import replace
from functools import partial

import pytest

from st_common import tables
from st_common.config.home import Home
from st_common.engine import reshard
from st_common.engine.local import LocalEngine
from st_common.engine.run import run
from st_common.engine.topology import topology_of
from st_common.spark.resident import states_on
from tests.kit.by_hand import end, register
from tests.kit.log_writer import settings_of, write_log
from tests.kit.on_spark import follow_on
from tests.kit.oracle import Fix, Rules
from tests.kit.random_plans import KINDS, plan_of
from tests.kit.strategies import SECOND_US, case_of

pytestmark = pytest.mark.timeout(600)
RULES = Rules(lateness_us=2 * SECOND_US, silence_us=10 * SECOND_US, tick_us=SECOND_US)


def mixed_rows(seed):
    """Rows of a log with queries of every kind, some replaced on the way."""
    rng = random.Random(seed)
    fixes = [
        row for n in range(4) for row in case_of(seed + n).rows if isinstance(row, Fix)
    ]
    rows = [
        register(f"{kind}{n}", plan_of(rng, kind)) for kind in KINDS for n in range(3)
    ]
    for number, fix in enumerate(fixes):
        rows.append(fix)
        if number % 25 == 9:
            kind = rng.choice(KINDS)
            plan = plan_of(rng, kind)
            rows.append(register(f"{kind}0", plan, op="replace", version=2 + number))
    return [*rows, end()]


def ordered(home):
    table = tables.read(home.table("changes", "grid"))
    return table.sort_by([("position", "ascending"), ("seq", "ascending")])


def alone(folder, home, stream):
    """What the local engine tells of the same log from its beginning."""
    other = Home(folder)
    shutil.copytree(home.log("grid"), other.log("grid"), ignore=lambda *_: ["readers"])
    engine = LocalEngine(other, stream)
    while engine.batch():
        pass
    engine.close()
    return ordered(other)


@pytest.mark.spec("X1", "X4", "P8")
def test_from_local_to_spark_to_more_shards_and_back_tells_what_the_local_engine_tells(
    spark, tmp_path
):
    home, stream, rows = (
        Home(tmp_path / "home"),
        settings_of("grid", RULES),
        mixed_rows(11),
    )
    quarter = -(-len(rows) // 4)
    parts = [rows[at : at + quarter] for at in range(0, len(rows), quarter)]
    of_spark = partial(states_on, spark)

    write_log(home.log("grid"), parts[0], cuts=range(0, quarter, 9))
    run(home, replace(stream, engine="local"), until_idle=True)
    reshard.reshard(home, stream, engine="spark", shards=2, export=reshard.of_local)

    write_log(home.log("grid"), parts[1], cuts=range(0, quarter, 9))
    follow_on(spark, home, stream, shards=2)
    shutil.rmtree(
        home.stream("grid") / "g1" / "seed"
    )  # from the first batch on the shards' own states have all
    write_log(
        home.log("grid"), parts[2][:9]
    )  # seen by a restart from the state that began with seeds
    reshard.reshard(home, stream, engine="spark", shards=3, export=of_spark)

    write_log(home.log("grid"), parts[2][9:], cuts=range(0, quarter, 9))
    reshard.reshard(home, stream, engine="local", shards=1, export=of_spark)

    write_log(home.log("grid"), parts[3], cuts=range(0, quarter, 9))
    run(home, replace(stream, engine="local"), until_idle=True)
    found = ordered(home)
    assert topology_of(home, "grid").generation == 3
    assert len(found) > 200
    assert found.equals(alone(tmp_path / "alone", home, stream))
