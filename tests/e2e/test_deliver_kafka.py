"""Changes to a real Kafka broker: all ids, in order per query, too large records, a broker that dies."""

import asyncio
import json
import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from st_common import tables
from st_common.answers.changes import stream_changes
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.delivery.deliver import deliver
from st_common.delivery.kafka import KafkaSink
from st_common.delivery.message import change_ids
from st_common.delivery.settings import DeliverySettings
from st_common.engine.local import LocalEngine
from st_common.errors import TransientError
from st_common.query.plan import Box, Plan
from tests.kit import feeding
from tests.kit.kafka_broker import JARS, KafkaBroker, kafka_broker
from tests.kit.log_writer import bare_log

STREAM = StreamSettings(
    name="s",
    format="csv",
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
    crs="planar",
    time_unit="s",
    max_ahead_s=None,
)
PARTITIONS = 3
pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    assert list(JARS.glob("kafka_2.13-*.jar")), "make setup fetches the broker's jars"
    with kafka_broker(tmp_path_factory.mktemp("kafka")) as running:
        yield running


def topic(broker: KafkaBroker, name: str, **config: str) -> str:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient(
        {"bootstrap.servers": broker.address}, logger=logging.getLogger("kafka")
    )
    new = NewTopic(
        name,
        PARTITIONS,
        1,
        config={key.replace("_", "."): value for key, value in config.items()},
    )
    for made in admin.create_topics([new], request_timeout=30).values():
        made.result()
    return name


def records(
    broker: KafkaBroker, name: str
) -> list[tuple[int, str, str, dict[str, object]]]:
    """All records of a topic: partition, key, id in the header, value; in the order of each partition."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": "t",
            "auto.offset.reset": "earliest",
        },
        logger=logging.getLogger("kafka"),
    )
    places = [TopicPartition(name, number, 0) for number in range(PARTITIONS)]
    ends = {
        place.partition: consumer.get_watermark_offsets(place, timeout=30)[1]
        for place in places
    }
    consumer.assign(places)
    found, left = [], sum(ends.values())
    end_s = time.monotonic() + 60
    while left and time.monotonic() < end_s:
        record = consumer.poll(1.0)
        if record is None or record.error():
            continue
        left -= 1
        own = dict(record.headers())["fairway-id"].decode()
        found.append(
            (record.partition(), record.key().decode(), own, json.loads(record.value()))
        )
    consumer.close()
    assert not left
    return found


def prepare(folder: Path, queries: int = 7) -> Home:
    home = Home(folder)
    log = bare_log(home.log("s"))
    for number in range(queries):
        plan = Plan(
            stream="s", inside=Box(minx=0, miny=0, maxx=1 + number, maxy=5)
        ).to_json()
        row = {
            "op": "register",
            "query": f"q{number}",
            "version": 1,
            "plan": plan,
            "text": "",
            "owner": "t",
        }
        log.append(json.dumps(row).encode(), arrival_us=0, control=True)
    return home


def add(home: Home, start: int, end: int, name: str = "o") -> None:
    lines = [f"{name}{n % 9},{n},{(n * 7) % 10},1" for n in range(start, end)]
    bare_log(home.log("s")).append(
        "\n".join(["id,t,x,y", *lines, ""]).encode(), arrival_us=0
    )
    engine = LocalEngine(home, STREAM)
    while engine.batch():
        pass
    engine.close()


def settings(
    broker: KafkaBroker, name: str, *, timeout_s: float = 10.0, **more: object
) -> DeliverySettings:
    sink = KafkaSink(
        bootstrap=broker.address, topic=name, tls=False, timeout_s=timeout_s
    )
    given = {"name": "k", "stream": "s", "sink": sink, "retry_max_s": 2.0}
    return DeliverySettings(**{**given, **more})


def per_query(home: Home, without: str = "nothing") -> dict[str, list[str]]:
    changes = stream_changes(home, "s")
    found: dict[str, list[str]] = {}
    for query, own in zip(
        changes["query"].to_pylist(), change_ids(changes).to_pylist(), strict=True
    ):
        if without not in own:
            found.setdefault(query, []).append(own)
    return found


def seen_per_query(
    found: list[tuple[int, str, str, dict[str, object]]],
) -> dict[str, list[str]]:
    """Ids per key in the order of their partition, the first time that each was seen."""
    seen: dict[str, dict[str, None]] = {}
    for _, key, own, _ in found:
        seen.setdefault(key, {}).setdefault(own)
    return {key: list(ids) for key, ids in seen.items()}


@pytest.mark.spec("X7")
def test_all_ids_are_read_back_in_order_per_key(
    tmp_path: Path, broker: KafkaBroker
) -> None:
    home, name = prepare(tmp_path), topic(broker, "all")
    add(home, 0, 400)
    done = deliver(home, settings(broker, name, batch_rows=64), until_idle=True)
    add(home, 400, 500)
    deliver(home, settings(broker, name), until_idle=True)
    found = records(broker, name)
    assert seen_per_query(found) == per_query(home)
    assert len(found) == len({own for _, _, own, _ in found}) > done.delivered > 500
    assert all(
        own == value["id"] and key == value["query"] for _, key, own, value in found
    )
    partitions = {key: partition for partition, key, _, _ in found}
    assert all(partitions[key] == partition for partition, key, _, _ in found)
    assert len(set(partitions.values())) > 1


@pytest.mark.spec("X7")
def test_a_record_that_is_too_large_is_a_dead_letter_and_later_ones_go_on(
    tmp_path: Path, broker: KafkaBroker
) -> None:
    home, name = prepare(tmp_path, 2), topic(broker, "small", max_message_bytes="4000")
    add(home, 0, 50)
    add(home, 50, 53, name="large" * 1000)
    add(home, 53, 100)
    done = deliver(home, settings(broker, name), until_idle=True)
    assert seen_per_query(records(broker, name)) == per_query(home, without="large")
    dead = tables.read(home.table("dead_letters")).to_pylist()
    assert {row["reason"] for row in dead} == {"too_large"}
    assert sorted(row["id"] for row in dead) == sorted(
        own
        for own in change_ids(stream_changes(home, "s")).to_pylist()
        if "large" in own
    )
    assert done.dead_letters == len(dead) > 0


def test_a_topic_that_is_not_there_is_waited_for(
    tmp_path: Path, broker: KafkaBroker
) -> None:
    home = prepare(tmp_path, 1)
    add(home, 0, 5)
    with pytest.raises(TransientError, match="nothing is lost"):
        deliver(home, settings(broker, "later", retry_max_s=0.5), until_idle=True)
    topic(broker, "later")
    deliver(home, settings(broker, "later"), until_idle=True)
    assert seen_per_query(records(broker, "later")) == per_query(home)


@pytest.mark.spec("X7", "X6")
def test_a_broker_that_dies_gets_the_rest_when_it_is_back(tmp_path: Path) -> None:
    home = prepare(tmp_path / "home")
    (tmp_path / "kafka").mkdir()
    with kafka_broker(tmp_path / "kafka") as broker:
        name = topic(broker, "again")
        add(home, 0, 300)
        delivery = settings(
            broker, name, batch_rows=20, timeout_s=3.0, retry_max_s=60.0
        )
        work = threading.Thread(
            target=deliver, args=(home, delivery), kwargs={"until_idle": True}
        )
        work.start()
        progress, end_s = home.delivery("k") / "progress.json", time.monotonic() + 60
        while time.monotonic() < end_s and not (
            progress.exists() and json.loads(progress.read_text())["delivered"] >= 100
        ):
            time.sleep(0.005)
        broker.stop(hard=True)
        time.sleep(1.0)
        broker.start()
        work.join(timeout=120)
        assert not work.is_alive()
        assert seen_per_query(records(broker, name)) == per_query(home)


def produce(broker: KafkaBroker, name: str, numbers: range) -> None:
    """Records of JSON to a topic, each to the partition of its object."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 2})
    for number in numbers:
        ship = f"s{number % 7}"
        record = {"id": ship, "t": number, "x": 1, "y": 2}
        producer.produce(name, json.dumps(record).encode(), ship)
    assert producer.flush(30) == 0


def told_times(home: Home) -> list[int]:
    return [json.loads(line)["t"] for line in feeding.lines_of(home)]


@pytest.mark.spec("B6")
def test_a_topic_is_captured_once_by_captures_side_by_side_that_are_killed(
    broker: KafkaBroker, tmp_path: Path
) -> None:
    """Each record stands once in the log, in the order of its object, whoever stored it and whoever died."""
    home, name = Home(tmp_path), topic(broker, "feed")
    source = {"kind": "kafka", "connect": broker.address, "topics": [name]}
    stream = feeding.stream_with(source, format="ndjson")

    async def run() -> None:
        await asyncio.to_thread(produce, broker, name, range(500))
        async with feeding.killed(home, stream) as capture:
            await feeding.until_records(capture, 100)
        await asyncio.to_thread(produce, broker, name, range(500, 1000))
        async with (
            feeding.capturing(home, stream),
            feeding.capturing(home, stream),
        ):
            await feeding.until(lambda: len(told_times(home)) >= 1000)
            await asyncio.to_thread(produce, broker, name, range(1000, 1200))
            await feeding.until(lambda: len(told_times(home)) >= 1200)

    asyncio.run(run())
    told = told_times(home)
    assert sorted(told) == list(range(1200))
    for ship in range(7):
        assert [one for one in told if one % 7 == ship] == list(range(ship, 1200, 7))
