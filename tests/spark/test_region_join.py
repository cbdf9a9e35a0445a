"""The join of stored fixes with a layer on Spark: one task for each region, and no exchange in the plan (SPEC B2)."""

import re
from dataclasses import replace

import pyarrow as pa
import pytest

from st_common.config.home import Home
from st_common.engine.region_join import PAIRS, cells_of, join_of, joined
from st_common.errors import LayerError
from tests.kit.porto import taxis_and_map

pytestmark = [pytest.mark.spark, pytest.mark.spec("B2")]

_KEYS = [(name, "ascending") for name in ("segment", "row", "fid")]


@pytest.fixture(scope="module")
def porto(shared, tmp_path_factory):
    home = Home(tmp_path_factory.mktemp("porto"))
    return home, taxis_and_map(shared / "data", home, 9)


def operators_of(frame):
    """The operators of a frame's physical plan, as it was carried out."""
    plan = frame._jdf.queryExecution().executedPlan().toString()
    return re.findall(r"^[\s+\-:*()0-9]*([A-Za-z]+)", plan, re.MULTILINE)


@pytest.mark.parametrize(("kind", "distance_m"), [("road", 5.0), ("building", None)])
def test_taxis_meet_the_map_region_by_region_without_an_exchange(
    spark, porto, kind, distance_m
):
    from st_common.spark.region_join import joined_on_spark

    home, stream = porto
    join = join_of(home, stream, "map", distance_m=distance_m, kinds=[kind])
    frame = joined_on_spark(spark, join)
    told = frame.toArrow().cast(PAIRS).sort_by(_KEYS)
    alone = pa.concat_tables(joined(join)).sort_by(_KEYS)
    assert len(alone) > 1_000
    assert told.equals(alone)
    assert frame.rdd.getNumPartitions() == len(cells_of(join)) == 9
    assert operators_of(frame) == ["MapInArrow", "Range"]


def test_a_join_that_does_exchange_is_seen_by_what_looks_for_it(spark):
    pairs = spark.range(9).join(spark.range(9).hint("shuffle_merge"), "id")
    assert any("Exchange" in name for name in operators_of(pairs))


def test_the_command_finds_the_pairs_in_a_session_of_its_own(spark, porto, monkeypatch):
    """Of which there is one in a process: it is that of the tests."""
    from st_common.spark import region_join

    home, stream = porto
    join = join_of(home, stream, "map", kinds=["building"])
    monkeypatch.setattr(region_join, "session", lambda *_, **__: Kept(spark))
    told = region_join.pairs_on_spark(stream, join)
    assert told.sort_by(_KEYS).equals(pa.concat_tables(joined(join)).sort_by(_KEYS))


def test_what_a_task_cannot_read_is_said_in_a_line(spark, porto, monkeypatch):
    from st_common.spark import region_join

    home, stream = porto
    join = join_of(home, stream, "map", kinds=["building"])
    monkeypatch.setattr(region_join, "session", lambda *_, **__: Kept(spark))
    with pytest.raises(LayerError, match="layer 'map' has no version 99") as raised:
        region_join.pairs_on_spark(stream, replace(join, version=99))
    assert len(str(raised.value).splitlines()) == 1


class Kept:
    """The session of the tests, which outlives who stops it."""

    def __init__(self, spark):
        self.range, self.stop = spark.range, lambda: None
