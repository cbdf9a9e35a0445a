"""The laws on Spark, stream and batch: the same step, the same changes, in the same order."""

import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from st_common import tables
from st_common.engine.owner import owned
from st_common.home import Home
from st_common.position import position_of
from st_common.spark import resident
from st_common.spark import stream as streaming
from st_common.spark.batch import replay
from st_common.spark.shard_keys import shard_keys
from st_common.spark.source import Feed
from tests.kit import oracle
from tests.kit.effort import tries
from tests.kit.laws import in_row_order, run_steps, told, told_by_oracle
from tests.kit.layer_tables import store_layers
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


@pytest.fixture(scope="module")
def small_batches():
    """Batches of a few segments each."""
    before, streaming.SHARD_BYTES = streaming.SHARD_BYTES, 1200
    yield
    streaming.SHARD_BYTES = before


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


def feed_of(home, stream, keys):
    return Feed(home=str(home.root), stream=stream, keys=keys)


def run_stream(spark, home, stream, *, batches=None):
    """Runs the stream until the log's end, or until so many batches were committed and then drops it."""
    folder = home.stream(stream.name) / "spark"
    with owned(home, stream.name, engine="spark") as owner:
        sink = streaming.Sink(home=home, stream=stream, owner=owner)
        feed = streaming.feed_of(home, stream)
        query = streaming.start(
            spark, feed, sink, checkpoint=folder / "checkpoint", hold=folder / "hold"
        )
        try:
            _wait(query, sink, batches)
        finally:
            query.stop()


def run_resident(spark, home, stream, *, batches=None):
    """As `run_stream`, in tasks that stay, with batches of a few segments."""
    with owned(home, stream.name, engine="spark") as owner:
        feed = resident.feed_of(home, stream)
        with resident.engine_on(spark, home, feed, owner) as engine:
            engine.take_at_most(3)
            done = 0
            while engine.batch():
                engine.commit()
                done += 1
                if done == batches:
                    return
            engine.close()


def _wait(query, sink, batches):
    until_s = time.monotonic() + 240
    while query.isActive and time.monotonic() < until_s:
        done = [progress.batchId for progress in query.recentProgress]
        if sink.committed + 1 >= position_of(sink.log.end(), 0):
            return
        if batches is not None and len(done) >= batches:
            return
        time.sleep(0.05)
    raise AssertionError(query.exception() or "the stream did not reach the log's end")


@pytest.mark.spec("X1", "X2", "X6")
@few(2)
@given(
    case=long_cases(), shards=st.sampled_from((1, 2)), margin=st.sampled_from(MARGINS)
)
def test_micro_batches_tell_what_brute_force_tells_also_after_a_restart(
    spark, small_batches, case, shards, margin
):
    check_against_brute_force(spark, case, shards, margin, run_stream)


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
    check_against_brute_force(spark, case, shards, margin, run_resident)


def check_against_brute_force(spark, case, shards, margin, follow):
    """Follows the log of a case for two batches, begins anew, and compares with brute force and one step."""
    cuts = tuple(range(12, len(case.rows), 12))
    with tempfile.TemporaryDirectory() as folder:
        home, stream = (
            Home(Path(folder)),
            settings_of("grid", case.rules, shards=shards, margin=margin),
        )
        case = store_layers(home, case)
        written = write_log(home.log("grid"), case.rows, cuts)
        follow(spark, home, stream, batches=2)
        follow(spark, home, stream)
        changes = tables.read(home.table("changes", "grid"))
    expected = oracle.judge(case.rows, layers=case.layers, rules=case.rules)
    assert told(changes, written.order) == told_by_oracle(expected.changes)
    again, _, order = run_steps(case, Segmentation(cuts=cuts, batches=()))
    ordered = changes.sort_by([("position", "ascending"), ("seq", "ascending")])
    assert in_row_order(ordered, written.order) == in_row_order(again, order)


@pytest.mark.spec("X1", "X2")
@few(4)
@given(
    case=long_cases(),
    shards=st.sampled_from((1, 2, 3)),
    margin=st.sampled_from(MARGINS),
)
def test_a_batch_tells_what_brute_force_tells(spark, case, shards, margin):
    cuts = tuple(range(9, len(case.rows), 9))
    with tempfile.TemporaryDirectory() as folder:
        home, stream = (
            Home(Path(folder)),
            settings_of("grid", case.rules, shards=shards, margin=margin),
        )
        case = store_layers(home, case)
        written = write_log(home.log("grid"), case.rows, cuts)
        changes = replay(spark, feed_of(home, stream, shard_keys(shards)))
    expected = oracle.judge(case.rows, layers=case.layers, rules=case.rules)
    assert told(changes, written.order) == told_by_oracle(expected.changes)


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
    with pytest.raises(Exception, match=r"segment 1|number 1|000000000001"):
        run_stream(spark, home, stream)


@pytest.mark.spec("S2")
def test_a_control_row_that_nobody_knows_stops_the_stream_with_one_clear_error(
    spark, tmp_path
):
    home, stream = Home(tmp_path), settings_of("grid", oracle.Rules())
    log = bare_log(home.log("grid"))
    log.append(b"object,t,x,y,gone\na,1,1,1,\n", arrival_us=0)
    log.append(b'{"op":"pause","until":5}\n', arrival_us=0, control=True)
    says = r'LogError: segment 1 of stream grid: row 1 .*"pause".*newer version'
    with pytest.raises(Exception, match=says):
        run_stream(spark, home, stream)
