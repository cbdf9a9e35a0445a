"""State in Spark's own store: what a batch asks of it."""

import datetime as dt
import json
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from pyspark import TaskContext
from pyspark.sql.streaming.proto import StateMessage_pb2

from st_common.spark.continuous import continuous, processor

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
        assert names.pop("getMapState") == 1
        # A worker that had not the state before reads the journal too.
        assert 1 <= names.pop("getValue") <= 1 + batch
        assert names.pop("updateValue") == 2
        assert not names
