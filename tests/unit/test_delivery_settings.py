"""conf/deliveries.toml: what it says becomes deliveries; what it says wrongly is named, secrets never."""

from dataclasses import fields
from pathlib import Path

import pytest

from st_common.config.keys import keys_of
from st_common.delivery.kafka import KafkaSink
from st_common.delivery.registry import SINKS
from st_common.delivery.settings import DeliverySettings, load_deliveries
from st_common.delivery.webhook import WebhookSink
from st_common.errors import ConfigError

WEBHOOK = '[deliveries.alarms]\nstream = "taxis"\nto = "webhook"\nurl = "https://example.org/in"\n'
KAFKA = '[deliveries.alarms]\nstream = "taxis"\nto = "kafka"\nbootstrap = "127.0.0.1:9092"\ntopic = "t"\n'
STREAMS = ("taxis", "aircraft")
REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def conf(tmp_path):
    def written(text: str) -> Path:
        (tmp_path / "deliveries.toml").write_text(text, encoding="utf-8")
        return tmp_path

    return written


def test_what_is_not_said_has_its_default(conf):
    found = load_deliveries(conf(WEBHOOK), STREAMS)
    assert found == {
        "alarms": DeliverySettings(
            name="alarms",
            stream="taxis",
            sink=WebhookSink(url="https://example.org/in"),
        )
    }
    alarms = found["alarms"]
    assert (alarms.queries, alarms.dead_letter, alarms.start, alarms.running) == (
        (),
        True,
        "first",
        False,
    )
    assert load_deliveries(conf(KAFKA), STREAMS)["alarms"].sink.tls


def test_everything_can_be_said(conf):
    text = """
    [deliveries.alarms]
    stream = "taxis"
    to = "kafka"
    queries = ["q*", "centre"]
    bootstrap = "one.example.org:9093, two.example.org:9093"
    topic = "fairway.changes"
    user = "fairway"
    sasl = "plain"
    token_env = "ALARMS_PASSWORD"
    ca = "/etc/ssl/own.pem"
    batch_rows = 10
    timeout_s = 2
    retry_max_s = 5.5
    dead_letter = false
    start = "now"
    running = true
    """
    assert load_deliveries(conf(text), STREAMS)["alarms"] == DeliverySettings(
        name="alarms",
        stream="taxis",
        queries=("q*", "centre"),
        sink=KafkaSink(
            topic="fairway.changes",
            bootstrap="one.example.org:9093, two.example.org:9093",
            user="fairway",
            sasl="plain",
            token_env="ALARMS_PASSWORD",
            ca="/etc/ssl/own.pem",
            timeout_s=2.0,
        ),
        batch_rows=10,
        retry_max_s=5.5,
        dead_letter=False,
        start="now",
        running=True,
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("topics = 3", "unknown key 'topics' (did you mean 'topic'?)"),
        ("batch_rows = 0", "batch_rows = 0 must be a whole number from 1 to 50000"),
        ("retry_max_s = 0", "retry_max_s = 0 must be above 0"),
        ('queries = "q*"', "queries = 'q*' must be a list of strings"),
        ('start = "late"', "start = 'late' is none of first, now"),
        ("tls = false", "tls has no meaning for a webhook (remove it)"),
        ('token_env = "s3cr3t!"', "token_env: is no name of an environment variable"),
    ],
)
def test_a_wrong_value_is_named(conf, wrong, message):
    folder = conf(WEBHOOK + wrong + "\n")
    with pytest.raises(ConfigError) as error:
        load_deliveries(folder, STREAMS)
    assert str(error.value).startswith(
        f"{folder / 'deliveries.toml'}:5: delivery 'alarms': "
    )
    assert message in str(error.value)
    assert "s3cr3t" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            WEBHOOK.replace("taxis", "taxi"),
            "stream = 'taxi' is none of taxis, aircraft (did you mean 'taxis'?)",
        ),
        (
            WEBHOOK.replace('"webhook"', '"web"'),
            f"to = 'web' is none of {', '.join(sink.kind for sink in SINKS)}",
        ),
        (WEBHOOK.replace('to = "webhook"', ""), "to is missing"),
        (
            WEBHOOK.replace("https://example.org/in", "example.org"),
            "must be an address that begins with https://",
        ),
        (WEBHOOK.replace("https://", "https://ada:s3cr3t@"), "url: holds a secret"),
        (
            WEBHOOK.replace("https", "http") + 'token_env = "T"',
            "a secret would be sent without TLS",
        ),
        (
            WEBHOOK.replace("url", "topic").replace("https://example.org/in", "a"),
            "topic has no meaning for a webhook",
        ),
        (WEBHOOK.replace('url = "https://example.org/in"', ""), "url is missing"),
        (WEBHOOK.replace("alarms", "Alarms"), "'Alarms' is no name for a delivery"),
        (
            WEBHOOK.replace("deliveries", "delivery"),
            "unknown key 'delivery' (did you mean 'deliveries'?)",
        ),
        (
            KAFKA.replace("127.0.0.1:9092", "127.0.0.1"),
            "bootstrap = '127.0.0.1' must be host:port",
        ),
        (KAFKA.replace('"t"', '"a b"'), "is no name of a topic"),
        (KAFKA + 'user = "ada"', "user and token_env go together"),
        (KAFKA + 'url = "https://example.org"', "url has no meaning for a kafka"),
        (
            KAFKA.replace("127.0.0.1", "example.org")
            + 'tls = false\nuser = "ada"\ntoken_env = "T"',
            "a secret would be sent without TLS",
        ),
        ("deliveries = 3", "deliveries must be tables"),
        ("[deliveries", "cannot be read"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(conf, text, message):
    with pytest.raises(ConfigError) as error:
        load_deliveries(conf(text), STREAMS)
    assert message in str(error.value)
    assert "s3cr3t" not in str(error.value)


def test_a_secret_may_go_to_this_machine_without_tls(conf):
    text = (
        WEBHOOK.replace("https://example.org", "http://127.0.0.1:8000")
        + 'token_env = "T"'
    )
    assert load_deliveries(conf(text), STREAMS)["alarms"].sink.token_env == "T"


def test_the_secret_comes_from_the_environment(monkeypatch):
    hook = WebhookSink(url="https://example.org", token_env="T")
    monkeypatch.setenv("T", "s3cr3t\n")
    assert hook.secret("alarms") == "s3cr3t"
    monkeypatch.setenv("T", "")
    with pytest.raises(ConfigError, match="the environment variable T is not set"):
        hook.secret("alarms")


def test_sinks_that_share_a_key_check_it_alike_and_no_delivery_has_it():
    types = [(key.name, key.type) for sink in SINKS for key in keys_of(sink).values()]
    assert len({name for name, _ in types}) == len(set(types))
    own = {field.name for field in fields(DeliverySettings)}
    assert own.isdisjoint(name for name, _ in types)


def test_no_file_is_no_deliveries(tmp_path):
    assert load_deliveries(tmp_path, STREAMS) == {}


def test_the_example_of_the_repository_is_right():
    assert load_deliveries(REPOSITORY / "conf", ["taxis", "aircraft"]) == {}
