"""What a broker of Kafka has acknowledged is in the log, once, whatever is killed (-9), and whatever is on its way."""

import asyncio

import pytest

from st_common.config.home import Home
from st_common.errors import TransientError
from st_common.sources.arrival import Arrival
from st_common.sources.capture import Capture
from st_common.sources.registry import source_of
from st_common.sources.source import Source
from st_common.sources.writer import Writer
from tests.kit.feeding import lines_of, stream_with, until
from tests.kit.kafka_kills import lived

pytestmark = [pytest.mark.spec("B6"), pytest.mark.timeout(240)]
SOURCE = {"kind": "kafka", "topics": ["ships"], "retry_max_s": 0.2}


def test_a_capture_and_a_broker_are_killed_in_turns_and_nothing_is_lost_or_twice(
    tmp_path,
):
    outcome = lived(tmp_path, kills=2, seed=1, captures=1)
    assert len(outcome.acknowledged) > 100
    assert not outcome.lost
    assert not outcome.doubled


def test_a_broker_that_does_not_answer_is_told(tmp_path):
    stream = stream_with(
        {**SOURCE, "connect": "127.0.0.1:1"}, format="ndjson", header=None
    )

    async def run():
        capture, stop = Capture(Home(tmp_path), stream, stream.sources["feed"]), None
        stop = asyncio.Event()
        running = asyncio.create_task(capture.run(stop))
        await until(lambda: capture.note.error)
        stop.set()
        await running
        return capture.note.error

    assert "brokers are down" in asyncio.run(run())


class Consumer:
    """What the real one is told to read."""

    def assign(self, partitions):
        self.offsets = [one.offset for one in partitions]


def test_partitions_that_are_dealt_anew_go_on_behind_what_is_on_its_way_to_the_log():
    from confluent_kafka import TopicPartition

    stream = stream_with(
        {**SOURCE, "connect": "127.0.0.1:1"}, format="ndjson", header=None
    )
    source, consumer = source_of(stream.sources["feed"], stream), Consumer()
    known, given = {"ships/0": 5, "ships/1": 9}, {"ships/0": 8, "ships/1": 7}
    dealt = [TopicPartition("ships", number) for number in range(3)]
    unknown = dealt[2].offset
    source._assigned(lambda: known, given, consumer, dealt)
    assert consumer.offsets == [8, 9, unknown]


class Breaking(Source):
    """Ten records whose places are their numbers; it breaks off behind each that it gives."""

    has_places = True

    async def arrivals(self, places):
        at = places().get("all", 0)
        if at == 10:
            await asyncio.Event().wait()
        body = b"a,%d,1,1\n" % at
        header = b"id,t,x,y\n"
        yield Arrival(header=header, body=body, records=1, places={"all": at + 1})
        raise TransientError("broken off")


def test_a_source_that_breaks_off_goes_on_behind_what_is_being_stored(
    tmp_path, monkeypatch
):
    store = Writer.store

    def slowly(writer, arrivals):
        import time

        time.sleep(0.4)  # longer than it is waited before it connects anew
        return store(writer, arrivals)

    monkeypatch.setattr(Writer, "store", slowly)
    stream = stream_with({"kind": "stdin", "retry_max_s": 0.1})
    home = Home(tmp_path)

    async def run():
        capture, stop = Capture(home, stream, stream.sources["feed"]), asyncio.Event()
        capture._source = Breaking(stream.sources["feed"], stream)
        running = asyncio.create_task(capture.run(stop))
        await until(lambda: capture.note.records >= 10)
        stop.set()
        await running

    asyncio.run(run())
    assert [line.split(",")[1] for line in lines_of(home)] == [*map(str, range(10))]
