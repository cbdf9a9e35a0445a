"""Nothing that a capture of MQTT has acknowledged is missing in the log, whatever is killed (-9), and when."""

import asyncio
import json
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.home import Home
from st_common.errors import ConfigError
from st_common.sources.buffer import Buffer
from st_common.sources.capture import capture_all
from st_common.sources.registry import source_of
from tests.kit.feeding import (
    capturing,
    stream_with,
    until,
)
from tests.kit.mqtt_broker import mqtt_broker
from tests.kit.mqtt_kills import DURABLE, lived

pytestmark = pytest.mark.spec("B6")
SOURCE = {
    "kind": "mqtt",
    "topics": ["ships/#"],
    "user": "ship",
    "token_env": "BROKER_TOKEN",
    "retry_max_s": 0.2,
}


@pytest.fixture(autouse=True)
def token(monkeypatch):
    monkeypatch.setenv("BROKER_TOKEN", "secret")


@pytest.mark.parametrize(
    "settings", [DURABLE, "persistence false"], ids=["durable", "forgetful"]
)
def test_captures_and_a_broker_are_killed_in_turns_and_the_capture_loses_nothing(
    tmp_path, settings
):
    outcome = lived(tmp_path, kills=6, seed=len(settings), settings=settings)
    assert len(outcome.released) > 100
    assert not outcome.lost_by_the_capture, "acknowledged, and not in the log"
    written = outcome.stored | outcome.lost_by_the_broker
    assert outcome.acknowledged <= written
    if settings != DURABLE:
        assert outcome.lost_by_the_broker, "the judge sees what a broker loses"


class Client:
    """What `ack` of the real client would send."""

    def __init__(self):
        self.acknowledged = []

    def ack(self, mid, qos):
        assert qos == 1
        self.acknowledged.append(mid)


class Message:
    def __init__(self, mid, payload):
        self.mid, self.payload, self.qos = mid, payload, 1


@given(
    st.lists(
        st.sampled_from(["deliver", "deliver", "blank", "lines", "take", "store", "tell", "die", "break"]),
        max_size=60,
    )
)  # fmt: skip
def test_no_acknowledgement_leaves_before_what_it_acknowledges_is_stored(steps):
    """Deliver, take, store, tell, break off and die in each order; the log is a set, and a broker sends again."""
    source = source_of(
        stream_with({**SOURCE, "connect": "127.0.0.1:1"}, format="ndjson").sources["feed"],
        stream_with({**SOURCE, "connect": "127.0.0.1:1"}, format="ndjson"),
    )  # fmt: skip
    numbers, broker, log = count(), {}, set()
    delivered, mids = {}, count(1)

    async def run():
        client, buffer, taken, stored = Client(), Buffer(1 << 20), [], []
        sent = {}
        for step in steps:
            if step in ("deliver", "blank", "lines"):
                some = [
                    next(numbers)
                    for _ in range({"lines": 3}.get(step, step == "deliver"))
                ]
                broker[tuple(some) or ("blank", next(numbers))] = some
                for name, held in broker.items():
                    if name not in sent.values():
                        mid = next(mids)
                        sent[mid], delivered[mid] = name, held
                        text = "".join(
                            json.dumps({"id": "a", "t": one}) + "\n" for one in held
                        )
                        for one in source._arrivals_of(
                            client, Message(mid, text.encode())
                        ):
                            await buffer.put(one)
            elif step == "take" and buffer.size:
                taken.append(await buffer.take(most_bytes=60, gather_s=0))
            elif step == "store" and taken:
                stored.append(taken.pop(0))
                log.update(
                    json.loads(line)["t"]
                    for one in stored[-1]
                    for line in one.body.splitlines()
                )
            elif step == "tell" and stored:
                for one in stored.pop(0):
                    one.stored(None)
            elif step == "die":
                client, buffer, taken, stored, sent = (
                    Client(),
                    Buffer(1 << 20),
                    [],
                    [],
                    {},
                )
            elif (
                step == "break"
            ):  # what has come is stored all the same, and told to a client that is gone
                client, sent = Client(), {}
            for mid in client.acknowledged:
                assert set(delivered[mid]) <= log
                if mid in sent:
                    broker.pop(sent.pop(mid))
            client.acknowledged.clear()

    asyncio.run(run())
    assert set().union(*broker.values(), log) >= {
        one for held in delivered.values() for one in held
    }


def test_a_broker_that_has_forgotten_its_client_is_told_as_a_doubt(tmp_path):
    async def run():
        with mqtt_broker(tmp_path, {"ship": "secret"}) as broker:
            stream = stream_with({**SOURCE, "connect": broker.address}, format="ndjson")
            async with capturing(Home(tmp_path / "home"), stream) as capture:
                log = tmp_path / "broker.log"
                await until(lambda: "Sending SUBACK" in log.read_text())
                await asyncio.sleep(0.5)
                await asyncio.to_thread(broker.stop, hard=True)
                await asyncio.to_thread(broker.start)
                await until(lambda: capture.note.doubts)
                return capture.note

    note = asyncio.run(run())
    assert note.doubts == 1
    assert "has forgotten this client (fairway-ships-feed)" in note.doubted


def test_a_subscription_that_is_granted_without_acknowledgements_ends_the_capture(
    tmp_path,
):
    async def run():
        with mqtt_broker(tmp_path, {"ship": "secret"}, more="max_qos 0") as broker:
            source = {**SOURCE, "connect": broker.address}
            stream = stream_with(source, format="ndjson")
            async with asyncio.timeout(30):
                home, never = Home(tmp_path / "home"), asyncio.Event()
                await capture_all(home, stream, ("feed",), never)

    with pytest.raises(ConfigError, match=r"says of topic 'ships/#': Granted QoS 0"):
        asyncio.run(run())
