"""A webhook as a real server on this machine answers it."""

import pyarrow as pa
import pytest

from st_common.contracts import load_contract
from st_common.delivery.message import messages
from st_common.delivery.outcome import Failed, Refusal, Refused, Taken
from st_common.delivery.webhook import Webhook, WebhookSink
from st_common.errors import ConfigError
from tests.kit.http_receiver import Answer, http_receiver

SCHEMA = load_contract("changes").arrow_schema()


def some(number: int):
    rows = [
        {
            "position": n,
            "seq": 0,
            "event_ts": n,
            "query": "q",
            "query_version": 1,
            "sign": 1,
            "object": f"o{n}",
            "cause": "enter",
            "event_date": 0,
        }
        for n in range(number)
    ]
    return messages(pa.Table.from_pylist(rows, schema=SCHEMA), "s")


def sent(
    answer: Answer, *, token: str | None = None, timeout_s: float = 5.0, number: int = 2
):
    with http_receiver(lambda _: answer) as receiver:
        hook = Webhook(WebhookSink(url=receiver.url, timeout_s=timeout_s), "d", token)
        outcome = hook.send(some(number))
        hook.close()
    return outcome, receiver


@pytest.mark.spec("X7")
def test_a_batch_is_lines_of_json_in_one_request():
    outcome, receiver = sent(Answer(status=204), token="s3cr3t")
    assert outcome == Taken()
    assert [[change["id"] for change in request] for request in receiver.requests] == [
        ["q/1/o0/~/0/0", "q/1/o1/~/1/0"]
    ]
    headers = receiver.headers[0]
    assert headers["Content-Type"] == "application/x-ndjson"
    assert (headers["Fairway-Delivery"], headers["Fairway-Format"]) == ("d", "1")
    assert headers["Authorization"] == "Bearer s3cr3t"


def test_without_a_secret_none_is_sent_and_none_is_looked_for(monkeypatch, tmp_path):
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login ada password other\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    assert "Authorization" not in sent(Answer())[1].headers[0]
    assert sent(Answer(), token="t")[1].headers[0]["Authorization"] == "Bearer t"


@pytest.mark.spec("X7")
@pytest.mark.parametrize("status", [400, 403, 404, 409, 410, 413, 422, 499])
def test_refused_for_good(status):
    outcome, _ = sent(Answer(status=status, body="no such\nthing"))
    assert isinstance(outcome, Refused)
    assert outcome.refusal.reason == f"http_{status}"
    assert outcome.refusal.details.endswith("no such thing")


@pytest.mark.spec("X7")
@pytest.mark.parametrize(
    "status", [301, 302, 307, 401, 407, 408, 429, 500, 502, 503, 599]
)
def test_to_be_tried_again(status):
    outcome, receiver = sent(
        Answer(status=status, headers={"Location": "/elsewhere", "Retry-After": "7"})
    )
    assert isinstance(outcome, Failed)
    assert outcome.reason.startswith(str(status))
    assert outcome.after_s == 7.0
    assert len(receiver.requests) == 1


@pytest.mark.parametrize("text", ["soon", "-3", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_a_pause_that_is_no_number_is_none(text):
    assert sent(Answer(status=503, headers={"Retry-After": text}))[0].after_s in (
        None,
        0.0,
    )


def test_no_answer_is_a_failure():
    assert "Timeout" in sent(Answer(pause_s=1.0), timeout_s=0.2)[0].reason
    assert "RemoteProtocolError" in sent(Answer(cut=True))[0].reason
    with http_receiver() as receiver:
        url = receiver.url
    hook = Webhook(WebhookSink(url=url), "d", None)
    assert f"ConnectError at {url[:-3]}/...: [Errno 111]" in hook.send(some(1)).reason
    hook.close()


def test_redirects_leave_the_secret_where_it_is_and_certificates_must_be_there():
    with http_receiver() as other:
        moved = Answer(status=307, headers={"Location": other.url})
        assert sent(moved, token="s3cr3t")[0].reason.startswith("307")
        assert not other.requests
    with pytest.raises(ConfigError, match=r"'d': ca = '/no/such\.pem' holds no cert"):
        Webhook(WebhookSink(url="https://localhost", ca="/no/such.pem"), "d", None)


def test_a_proxy_that_is_none_is_said(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "gopher://user:s3cr3t@127.0.0.1:1")
    with pytest.raises(ConfigError, match=r"'d': .*gopher") as refused:
        Webhook(WebhookSink(url="https://localhost"), "d", None)
    assert "s3cr3t" not in str(refused.value)


def test_a_long_answer_is_cut():
    outcome, _ = sent(Answer(status=422, body="x" * 100_000))
    assert isinstance(outcome, Refused)
    assert isinstance(outcome.refusal, Refusal)
    assert len(outcome.refusal.details) < 600
