"""Changes to a real MQTT broker: topics, order, ids, what it refuses, TLS, and a broker that is killed."""

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from st_common import tables
from st_common.answers.changes import stream_changes
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.delivery import mqtt
from st_common.delivery.deliver import deliver
from st_common.delivery.message import change_ids
from st_common.delivery.mqtt import MqttSink
from st_common.delivery.settings import DeliverySettings, load_deliveries
from st_common.engine.local import LocalEngine
from st_common.errors import ConfigError, TransientError
from st_common.query.plan import Box, Plan
from tests.kit.log_writer import bare_log
from tests.kit.mqtt_broker import MqttBroker, mqtt_broker

STREAM = StreamSettings(
    name="s",
    format="csv",
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
    crs="planar",
    time_unit="s",
    max_ahead_s=None,
)
PASSWORDS = {"fairway": "s3cr3t", "reader": "r"}
QUERIES = ("q/0", "q+1", "q2")
LARGEST = 20_000  # bytes of a message that the broker takes


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MqttBroker]:
    more = f"max_packet_size {LARGEST}"
    folder = tmp_path_factory.mktemp("mqtt")
    with mqtt_broker(folder, PASSWORDS, more=more) as running:
        yield running


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQTT_PASSWORD", PASSWORDS["fairway"])


def home_of(folder: Path) -> Home:
    home = Home(folder)
    log = bare_log(home.log("s"))
    for number, query in enumerate(QUERIES):
        box = Box(minx=0, miny=0, maxx=1 + number, maxy=5)
        plan = Plan(stream="s", inside=box).to_json()
        row = {"op": "register", "query": query, "version": 1, "plan": plan}
        row |= {"text": "", "owner": "t"}
        log.append(json.dumps(row).encode(), arrival_us=0, control=True)
    return home


def add(home: Home, start: int, end: int, name: str = "o") -> None:
    lines = [f"{name}{n % 9},{n},{(n * 7) % 10},1" for n in range(start, end)]
    payload = "\n".join(["id,t,x,y", *lines, ""]).encode()
    bare_log(home.log("s")).append(payload, arrival_us=0)
    engine = LocalEngine(home, STREAM)
    while engine.batch():
        pass
    engine.close()


def settings(broker: MqttBroker, *, name: str = "m", **more: object):
    of_sink = {"tls": False, "user": "fairway", "token_env": "MQTT_PASSWORD"}
    keys = ("topic_template", "retain", "in_flight", "timeout_s", "tls", "ca")
    of_sink |= {key: more.pop(key) for key in keys if key in more}
    sink = MqttSink(broker=broker.address, **of_sink)
    given = {"name": name, "stream": "s", "sink": sink, "retry_max_s": 0.5}
    return DeliverySettings(**{**given, **more})


class Reader:
    """Subscribes to everything, again after each loss of the connection, and keeps what comes in its order."""

    def __init__(self, broker: MqttBroker, topic: str) -> None:
        from paho.mqtt.client import Client, MQTTv5
        from paho.mqtt.enums import CallbackAPIVersion

        self.messages: list[tuple[str, str, dict[str, object], bool]] = []
        self.ready, self._topic, self._broker = threading.Event(), topic, broker
        self._client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)
        self._client.username_pw_set("reader", PASSWORDS["reader"])
        self._client.reconnect_delay_set(1, 1)
        self._client.on_connect = lambda client, *_: client.subscribe(topic, qos=1)
        self._client.on_disconnect = lambda *_: self.ready.clear()
        self._client.on_subscribe = lambda *_: self.ready.set()
        self._client.on_message = lambda *said: self._keep(said[2])

    def _keep(self, message) -> None:
        ((name, own),) = message.properties.UserProperty
        assert name == "fairway-id"
        value = json.loads(message.payload)
        self.messages.append((message.topic, own, value, message.retain))

    def begin(self) -> None:
        host, port = self._broker.address.split(":")
        self._client.connect(host, int(port))
        self._client.loop_start()
        assert self.ready.wait(20)

    def end(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def ids(self, count: int) -> dict[str, list[str]]:
        """The first times of so many ids, by query."""
        end_s = time.monotonic() + 20
        while time.monotonic() < end_s:
            if len({own for _, own, _, _ in self.messages}) >= count:
                break
            time.sleep(0.01)
        by_query: dict[str, dict[str, None]] = {}
        for _, own, value, _ in self.messages:
            assert own == value["id"]
            by_query.setdefault(value["query"], {}).setdefault(own)
        return {query: list(ids) for query, ids in by_query.items()}


@contextmanager
def reading(broker: MqttBroker, topic: str = "#") -> Iterator[Reader]:
    reader = Reader(broker, topic)
    reader.begin()
    try:
        yield reader
    finally:
        reader.end()


def told(home: Home, without: str = "nothing") -> dict[str, list[str]]:
    changes = stream_changes(home, "s")
    by_query: dict[str, list[str]] = {}
    rows = zip(
        changes["query"].to_pylist(), change_ids(changes).to_pylist(), strict=True
    )
    for query, own in rows:
        if without not in own:
            by_query.setdefault(query, []).append(own)
    return by_query


def count(ids: dict[str, list[str]]) -> int:
    return sum(map(len, ids.values()))


@pytest.mark.spec("X7")
def test_every_change_comes_once_in_order_to_the_topic_of_its_query(
    tmp_path: Path, broker: MqttBroker
) -> None:
    home = home_of(tmp_path)
    add(home, 0, 300)
    with reading(broker, "fairway/#") as reader:
        deliver(home, settings(broker, batch_rows=64), until_idle=True)
        add(home, 300, 400)
        done = deliver(home, settings(broker, in_flight=1), until_idle=True)
        expected = told(home)
        assert reader.ids(count(expected)) == expected
    assert 0 < done.delivered < count(expected) == len(reader.messages)
    assert {topic for topic, _, _, _ in reader.messages} == {
        "fairway/s/q%2F0",
        "fairway/s/q%2B1",
        "fairway/s/q2",
    }


@pytest.mark.spec("X7")
def test_the_broker_keeps_the_last_change_of_each_object_for_who_comes_later(
    tmp_path: Path, broker: MqttBroker
) -> None:
    home = home_of(tmp_path)
    add(home, 0, 100)
    template = "{delivery}/{query}/{object}"
    delivery = settings(broker, name="kept", topic_template=template, retain=True)
    deliver(home, delivery, until_idle=True)
    last = {
        (row["query"], row["object"]): row["position"]
        for row in stream_changes(home, "s").to_pylist()
    }
    with reading(broker, "kept/#") as reader:
        reader.ids(len(last))
    assert all(kept for _, _, _, kept in reader.messages)
    assert last == {
        (value["query"], value["object"]): value["position"]
        for _, _, value, _ in reader.messages
    }
    assert "kept/q%2F0/o3" in {topic for topic, _, _, _ in reader.messages}


@pytest.mark.spec("X7")
def test_a_message_that_is_too_large_is_a_dead_letter_and_later_ones_go_on(
    tmp_path: Path, broker: MqttBroker
) -> None:
    home = home_of(tmp_path)
    add(home, 0, 30)
    add(home, 30, 33, name="large" * (LARGEST // 5))
    add(home, 33, 60)
    with reading(broker, "large/#") as reader:
        delivery = settings(broker, topic_template="large/{query}")
        done = deliver(home, delivery, until_idle=True)
        expected = told(home, without="large")
        assert reader.ids(count(expected)) == expected
    dead = tables.read(home.table("dead_letters")).to_pylist()
    assert {row["reason"] for row in dead} == {"too_large"}
    assert done.dead_letters == len(dead) == count(told(home)) - count(expected) > 0


class Gate:
    """Holds up a deliverer between two messages, and knows how many it has sent."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent, self._lock = 0, threading.Lock()
        publish = mqtt._Line.publish

        def held(line: mqtt._Line, topic: str, own: str, content: bytes) -> int:
            with self._lock:
                number = publish(line, topic, own, content)
                self.sent += 1
            return number

        monkeypatch.setattr(mqtt._Line, "publish", held)

    def close(self) -> None:
        self._lock.acquire()

    def open(self) -> None:
        self._lock.release()


def kill_with_some_unanswered(broker: MqttBroker, reader: Reader, gate: Gate) -> None:
    """Kills a broker that owes nobody anything but answers to messages that it has not taken yet.

    Else it could have acknowledged some that it had not passed on: those would be lost with it, as it keeps nothing.
    """
    gate.close()
    until(lambda: len(reader.messages) == gate.sent)
    broker.pause()
    before = gate.sent
    gate.open()
    until(lambda: gate.sent > before)
    broker.stop(hard=True)


def until(is_so: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end_s
        time.sleep(0.001)


@pytest.mark.spec("X7", "X6")
def test_a_broker_that_is_killed_gets_the_rest_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, gate = home_of(tmp_path / "home"), Gate(monkeypatch)
    add(home, 0, 1500)
    (tmp_path / "mqtt").mkdir()
    with mqtt_broker(tmp_path / "mqtt", PASSWORDS) as broker, reading(broker) as reader:
        delivery = settings(broker, batch_rows=20, retry_max_s=30.0)
        work = threading.Thread(
            target=deliver, args=(home, delivery), kwargs={"until_idle": True}
        )
        work.start()
        until(lambda: len(reader.messages) >= 100)
        kill_with_some_unanswered(broker, reader, gate)
        reader.ready.clear()
        before = len(reader.messages)
        # Whoever listens is there again before the deliverer is let in: a broker has nobody to keep messages for.
        broker.start(users=("reader",))
        assert reader.ready.wait(20)
        assert work.is_alive()
        broker.let_in()
        work.join(timeout=60)
        assert not work.is_alive()
        expected = told(home)
        assert reader.ids(count(expected)) == expected
    assert before < count(expected) <= len(reader.messages)


def test_a_wrong_password_is_said_and_never_shown(
    tmp_path: Path, broker: MqttBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_of(tmp_path)
    add(home, 0, 5)
    monkeypatch.setenv("MQTT_PASSWORD", "0ther")
    with pytest.raises(TransientError, match=r"refuses us: Not authorized") as error:
        deliver(home, settings(broker, retry_max_s=0.1), until_idle=True)
    assert "0ther" not in str(error.value)
    monkeypatch.setenv("MQTT_PASSWORD", PASSWORDS["fairway"])
    deliver(home, settings(broker), until_idle=True)


# paho leaves the socket of a refused handshake to the garbage collector, which closes it and warns.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_certificates_are_checked(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1"
    words += " -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    command = ["openssl", *words.split(), "-keyout", key, "-out", certificate]
    subprocess.run(command, check=True, capture_output=True)
    home = home_of(tmp_path / "home")
    add(home, 0, 20)
    more = f"keyfile {key}\ncertfile {certificate}"
    with mqtt_broker(tmp_path, PASSWORDS, more=more) as broker:
        with pytest.raises(TransientError, match="CERTIFICATE_VERIFY_FAILED"):
            deliver(home, settings(broker, tls=True, retry_max_s=0.1), until_idle=True)
        trusted = settings(broker, tls=True, ca=str(certificate))
        done = deliver(home, trusted, until_idle=True)
    assert done.delivered == count(told(home)) > 0


TEXT = '[deliveries.m]\nstream = "s"\nto = "mqtt"\nbroker = "127.0.0.1:1883"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT.replace(":1883", ""), "broker = '127.0.0.1' must be host:port"),
        (TEXT.replace(":1883", ":0"), "broker = '127.0.0.1:0' must be host:port"),
        (TEXT.replace(":1883", ":65536"), "65536' must be host:port"),
        pytest.param(
            TEXT.replace(":1883", ":" + "1" * 5000), "must be host:port", id="digits"
        ),
        (TEXT + 'topic_template = "a/#"', "is no topic: it has +, #,"),
        (TEXT + 'topic_template = "a/{query"', "is no topic: it has +, #,"),
        (
            TEXT + 'topic_template = "{fid}"',
            "has {fid}, which is none of delivery, stream, query, object",
        ),
        (TEXT + 'topic_template = "$SYS/a"', "must be a topic, and begin with no $"),
        (TEXT + 'topic = "a"', "topic has no meaning for a mqtt"),
        (TEXT + 'user = "ada"', "user and token_env go together"),
        (TEXT + "in_flight = 0", "in_flight = 0 must be a whole number from 1"),
        (
            TEXT.replace("127.0.0.1", "example.org")
            + 'tls = false\nuser = "ada"\ntoken_env = "T"',
            "a secret would be sent without TLS",
        ),
    ],
)
def test_wrong_settings_are_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "deliveries.toml").write_text(text)
    with pytest.raises(ConfigError) as error:
        load_deliveries(tmp_path, ["s"])
    assert message in str(error.value)


def test_settings_have_their_defaults(tmp_path: Path) -> None:
    (tmp_path / "deliveries.toml").write_text(TEXT)
    sink = load_deliveries(tmp_path, ["s"])["m"].sink
    assert sink == MqttSink(broker="127.0.0.1:1883")
    assert (sink.tls, sink.retain, sink.in_flight) == (True, False, 20)
    assert sink.topic_template == "fairway/{stream}/{query}"


@pytest.mark.spec("X7")
def test_objects_with_control_characters_in_their_ids_reach_the_broker(
    tmp_path: Path, broker: MqttBroker
) -> None:
    home = home_of(tmp_path)
    names = ["\x01", "a\nb", "\x7f", "\x85", "\ufffe", "\u2028", "#", "ü"]
    lines = [f'"{name}",{n},1,1' for n, name in enumerate(names)]
    payload = "\n".join(["id,t,x,y", *lines, ""]).encode()
    bare_log(home.log("s")).append(payload, arrival_us=0)
    add(home, 100, 101)
    template = "odd/{query}/{object}"
    with reading(broker, "odd/#") as reader:
        delivery = settings(broker, name="odd", topic_template=template)
        deliver(home, delivery, until_idle=True)
        expected = told(home)
        assert reader.ids(count(expected)) == expected
    assert {value["object"] for _, _, value, _ in reader.messages} >= set(names)
    topics = {topic for topic, _, _, _ in reader.messages}
    assert {"odd/q2/%01", "odd/q2/a%0Ab", "odd/q2/%EF%BF%BE", "odd/q2/ü"} <= topics
