"""The laws on Spark: the same step, the same changes, in the same order."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from st_common import tables
from st_common.config.home import Home
from st_common.engine.owner import owned
from st_common.errors import LogError
from st_common.spark.continuous.shard_keys import shard_keys
from st_common.spark.resident import engine_on
from st_common.spark.task_settings import TaskSettings
from tests.kit import oracle
from tests.kit.effort import tries
from tests.kit.laws import in_row_order, run_steps, told, told_by_oracle
from tests.kit.layer_puts import with_puts
from tests.kit.layer_tables import put_layers, store_layers
from tests.kit.log_writer import bare_log, settings_of, write_log
from tests.kit.strategies import MARGINS, Segmentation, case_of, filters

pytestmark = pytest.mark.timeout(600)


def few(examples):
    """So many examples in the quick profile; none is made smaller, as each takes seconds."""
    return settings(
        tries(examples),
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


@st.composite
def long_cases(draw):
    """Cases of all kinds of queries with many rows: on Spark a batch costs a second, however much is in it."""
    seed, layers = draw(st.integers(0, (1 << 48) - 1)), draw(st.booleans())
    case = case_of(
        seed, kept=(True,) * 160, names=("q1", "q2", "q3", "q4", "q5"), layers=layers
    )
    assume(all(case.layers.values()))  # a layer without features cannot be loaded
    if draw(st.booleans()):
        return case
    return replace(case, rules=replace(case.rules, filters=((0, draw(filters())),)))


def run_stream(spark, home, stream, *, batches=None):
    """Follows a stream by batches of a few segments to the log's end, or for so many batches and then drops it."""
    with (
        owned(home, stream.name, engine="spark") as owner,
        engine_on(spark, home, TaskSettings.of(home, stream), owner) as engine,
    ):
        engine.take_at_most(3)
        done = 0
        while engine.batch():
            engine.commit()
            done += 1
            if done == batches:
                return
        engine.close()


@pytest.mark.spec("X1", "X2", "X6", "S5")
@few(8)
@given(
    case=long_cases(),
    shards=st.sampled_from((1, 2, 5)),
    margin=st.sampled_from(MARGINS),
)
def test_tasks_that_stay_tell_what_brute_force_tells_also_after_a_restart(
    spark, case, shards, margin
):
    check_against_brute_force(spark, case, shards, margin)


@pytest.mark.spec("X4", "B15", "S5")
@few(4)
@given(seed=st.integers(0, (1 << 48) - 1), shards=st.sampled_from((1, 3)))
def test_tasks_whose_layer_is_put_to_tell_what_brute_force_tells(spark, seed, shards):
    names = ("q1", "q2", "q3", "q4", "q5")
    case = case_of(
        seed, kept=(True,) * 60, names=names, layers=True, layer_versions=(0,)
    )
    case = with_puts(case, Random(seed))
    assume(all(case.layers.values()))
    check_against_brute_force(spark, case, shards, MARGINS[0], put_layers)


def check_against_brute_force(spark, case, shards, margin, store=store_layers):
    """Follows the log of a case for two batches, begins anew, and compares with brute force and one step."""
    cuts = tuple(range(12, len(case.rows), 12))
    with tempfile.TemporaryDirectory() as folder:
        home, stream = (
            Home(Path(folder)),
            settings_of("grid", case.rules, shards=shards, margin=margin),
        )
        case = store(home, case)
        written = write_log(home.log("grid"), case.rows, cuts)
        run_stream(spark, home, stream, batches=2)
        run_stream(spark, home, stream)
        changes = tables.read(home.table("changes", "grid"))
    expected = oracle.judge(case.rows, layers=case.layers, rules=case.rules)
    assert told(changes, written.order) == told_by_oracle(expected.changes)
    again, _, order = run_steps(case, Segmentation(cuts=cuts, batches=()))
    ordered = changes.sort_by([("position", "ascending"), ("seq", "ascending")])
    assert in_row_order(ordered, written.order) == in_row_order(again, order)


def test_each_shard_has_a_partition_of_its_own(spark):
    from pyspark.sql import functions as sf

    keys = shard_keys(5)
    placed = spark.createDataFrame([(key,) for key in keys], "key int").select(
        sf.expr("pmod(hash(key), 5)").alias("p")
    )
    assert sorted(row["p"] for row in placed.collect()) == [0, 1, 2, 3, 4]


@pytest.mark.spec("X6")
def test_a_hole_in_the_log_stops_the_stream_with_one_clear_error(spark, tmp_path):
    home, stream = Home(tmp_path), settings_of("grid", oracle.Rules())
    log = bare_log(home.log("grid"))
    for number in range(3):
        log.append(f"object,t,x,y,gone\na,{number},1,1,\n".encode(), arrival_us=0)
    log.append(json.dumps({"op": "end"}).encode(), arrival_us=0, control=True)
    next(home.log("grid").glob("segments/*/000000000001.seg")).unlink()
    with pytest.raises(LogError, match="segment 1 is missing"):
        run_stream(spark, home, stream)


@pytest.mark.spec("S2")
def test_a_control_row_that_nobody_knows_stops_the_stream_with_one_clear_error(
    spark, tmp_path
):
    home, stream = Home(tmp_path), settings_of("grid", oracle.Rules())
    log = bare_log(home.log("grid"))
    log.append(b"object,t,x,y,gone\na,1,1,1,\n", arrival_us=0)
    log.append(b'{"op":"pause","until":5}\n', arrival_us=0, control=True)
    says = r'segment 1 of stream grid: row 1 .*"pause".*newer version'
    with pytest.raises(LogError, match=says):
        run_stream(spark, home, stream)
