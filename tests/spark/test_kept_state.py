"""State in Spark's own store: what a batch asks of it, and what becomes of a checkpoint of a version before."""

import datetime as dt
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from pyspark import TaskContext
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.proto import StateMessage_pb2

from st_common import tables
from st_common.engine.owner import owned
from st_common.engine.topology import frozen
from st_common.errors import StateError
from st_common.home import Home
from st_common.operators.state.state import State
from st_common.query.plan import Plan
from st_common.regions.registry import Box
from st_common.spark import stream as streaming
from st_common.spark.causes import cause_of
from st_common.spark.continuous import continuous, processor
from st_common.spark.shard import ShardProcessor
from tests.kit.log_writer import settings_of, write_log
from tests.kit.oracle import Control, Fix, Rules
from tests.kit.strategies import SECOND_US

pytestmark = [pytest.mark.timeout(900), pytest.mark.spec("S7", "X1")]
ROOM = "REGISTER QUERY room AS SELECT * FROM fixes INSIDE (0, 0, 5, 5)"
FIXES = "id string, at timestamp, lon double, lat double"
SPARKS_OWN = {"setHandleState", "setImplicitKey", "removeImplicitKey"}


def counting(kind, asked: Path):
    """A processor that writes what each batch asks the state store of a shard for, a line each."""
    target, own = str(asked), set(SPARKS_OWN)

    class Counting(kind):
        def init(self, handle):
            client, self.asked = handle._statefulProcessorApiClient, []
            send = client._send_proto_message

            def counted(message):
                self.asked.append(name_of(message))
                send(message)

            client._send_proto_message = counted
            super().init(handle)

        def handleInputRows(self, key, rows, timerValues):  # noqa: N802, N803 - Spark's names
            made = list(super().handleInputRows(key, rows, timerValues))
            batch = TaskContext.get().getLocalProperty("streaming.sql.batchId")
            asked = Counter(name for name in self.asked if name not in own)
            self.asked.clear()
            with open(target, "a") as out:  # noqa: PTH123 - nothing to import in workers
                out.write(json.dumps([int(batch), int(key[0]), asked]) + "\n")
            yield from made

    def name_of(message):
        call = StateMessage_pb2.StateRequest.FromString(message)
        while "method" in call.DESCRIPTOR.oneofs_by_name:
            name = call.WhichOneof("method")
            call = getattr(call, name)
        return name

    return Counting


def of_format_1(kind):
    """A processor that stores state as the version before did: a variable for each kind of entry."""

    class Kept:
        def __init__(self, handle, *_):
            types = "version long, base long, chunks int, query_chunks int, base_bytes long, bytes long"
            self.head = handle.getValueState("head", types)
            for name in ("base", "queries"):
                handle.getMapState(name, "chunk int", "blob binary")
            self.journal = handle.getMapState("journal", "version long", "blob binary")

        def load(self, _):
            return State()

        def store(self, done, _):
            self.journal.updateValue((0,), (b"what changed",))
            self.head.update((1, 0, 0, 0, 0, 12))
            return done.state

    class Earlier(kind):
        def init(self, handle):
            names = kind.init.__globals__
            present, names["KeptState"] = names["KeptState"], Kept
            try:
                super().init(handle)
            finally:
                names["KeptState"] = present

    return Earlier


class Follower:
    """A stream of files through `continuous`, one file a batch."""

    def __init__(self, spark, folder: Path) -> None:
        self.spark, self.folder, self.told = spark, folder, []
        (folder / "fixes").mkdir()

    def follow(self, lons) -> None:
        """Reads so many files more, each with a fix at a longitude."""
        for lon in lons:
            number = len(list((self.folder / "fixes").iterdir()))
            moment = dt.datetime(2026, 1, 1, 0, 0, number, tzinfo=dt.UTC)
            rows = pd.DataFrame(
                [("a", moment, lon, 1.0)], columns=["id", "at", "lon", "lat"]
            )
            rows.to_parquet(
                self.folder / "fixes" / f"{number}.parquet", coerce_timestamps="us"
            )
        source = self.spark.readStream.schema(FIXES).option("maxFilesPerTrigger", 1)
        changes = continuous(
            source.parquet(str(self.folder / "fixes")),
            ROOM,
            object="id",
            ts="at",
            x="lon",
            y="lat",
            shards=2,
        )
        query = (
            changes.writeStream.foreachBatch(self._keep)
            .option("checkpointLocation", str(self.folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(600)
        assert query.exception() is None

    def _keep(self, frame, _):
        changes = frame.where("query IS NOT NULL").toArrow()
        self.told += changes["sign"].to_pylist()


@pytest.fixture
def follower(spark, tmp_path):
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    yield Follower(spark, tmp_path)
    spark.conf.set("spark.sql.shuffle.partitions", before)


def test_a_batch_asks_spark_s_state_store_four_times(follower, monkeypatch, tmp_path):
    monkeypatch.setattr(
        processor, "Shard", counting(processor.Shard, tmp_path / "asked")
    )
    follower.follow([1.0, 9.0, 1.0, 9.0])
    follower.follow([1.0])
    assert follower.told == [1, -1, 1, -1, 1]
    asked = list(map(json.loads, (tmp_path / "asked").read_text().splitlines()))
    assert sorted((batch, key) for batch, key, _ in asked) == [
        (batch, key)
        for batch in range(5)
        for key in sorted({key for _, key, _ in asked})
    ]
    for batch, _, names in asked:
        opened = names.pop("getMapState"), names.pop("getValueState", 0)
        # A worker that had not the state before reads the journal too.
        assert 1 <= names.pop("getValue") <= 1 + batch
        assert names.pop("updateValue") == 2
        assert (opened == (1, 0) and not names) or opened == (1, 1)
        names["looks"] = opened[1]
    # Once in each run, worker and partition it is looked for state of the version before.
    assert sum(names["looks"] for batch, _, names in asked if batch < 4) <= 4


def test_a_checkpoint_of_the_version_before_is_refused(follower, monkeypatch):
    with monkeypatch.context() as before:
        before.setattr(processor, "Shard", of_format_1(processor.Shard))
        follower.follow([1.0])
    with pytest.raises(StreamingQueryException) as raised:
        follower.follow([1.0])
    said = str(cause_of(raised.value))
    assert said.startswith("the checkpoint holds state of format 1, which another")
    assert said.endswith("with `continuous` a new checkpointLocation)")


def test_a_stream_with_a_checkpoint_of_the_version_before_is_refused(
    spark, monkeypatch, tmp_path
):
    home, stream = Home(tmp_path), replace(settings_of("grid", Rules()), shards=2)
    write_log(home.log("grid"), walk(0), (3,))
    with monkeypatch.context() as before:
        before.setattr(streaming, "ShardProcessor", of_format_1(ShardProcessor))
        run(spark, home, stream)
    told = tables.read(home.table("changes", "grid"))
    write_log(home.log("grid"), walk(5), (3,))
    with pytest.raises(StateError, match=r"format 1, .* `fairway streams reset"):
        run(spark, home, stream)
    assert tables.read(home.table("changes", "grid")).equals(told)


def walk(start):
    """A query, and the rows of an object that goes to and fro."""
    plan = Plan(stream="grid", inside=Box(minx=0, miny=0, maxx=5, maxy=5)).to_json()
    row = {"op": "register", "query": f"q{start}", "version": 1, "plan": plan}
    rows = [Control(position=0, row={**row, "text": "", "owner": "t"})]
    rows += [
        Fix(
            position=1 + at,
            object="a",
            event_us=(start + at) * SECOND_US,
            x=at % 2 * 9.0,
            y=1.0,
        )
        for at in range(5)
    ]
    return tuple(rows)


def run(spark, home, stream):
    with owned(home, stream.name, engine="spark") as owner:
        frozen(home, stream, engine="spark", shards=stream.shards)
        sink = streaming.Sink(home=home, stream=stream, owner=owner)
        streaming.follow(spark, sink, until_idle=True)
