"""Errors of the supervisor reach a notifier of Airflow, chosen by settings: a mail, by a server that listens."""

import socket
import threading
from collections.abc import Iterator
from email import message_from_string
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.dags
SMTP = "airflow.providers.smtp.notifications.smtp.SmtpNotifier"


class MailServer:
    """As much of SMTP as one mail needs; `mail` is what came."""

    def __init__(self) -> None:
        self.mail = ""
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self) -> None:
        client, _ = self.socket.accept()
        with client, client.makefile("rw", newline="\r\n") as lines:
            self.talk(lines)

    def talk(self, lines: Any) -> None:
        def say(text: str) -> None:
            lines.write(text + "\n")
            lines.flush()

        say("220 here")
        for line in lines:
            word = line.split()[0].upper()
            if word == "DATA":
                say("354 go on")
                for part in lines:
                    if part.strip() == ".":
                        break
                    self.mail += part
                say("250 taken")
            elif word == "QUIT":
                say("221 bye")
                return
            else:
                say("250 fine")


@pytest.fixture
def server() -> Iterator[MailServer]:
    server = MailServer()
    yield server
    server.socket.close()


def summary(notifier: dict[str, Any] | None, *levels: str) -> dict[str, Any]:
    """What a tick of the supervisor hands on."""
    alerts = [
        {"ts": 1, "stream": "taxis", "level": level, "text": "dead: process 7 is gone"}
        for level in levels
    ]
    healths = {"streams": {"taxis": "ok", "buses": "ok"}, "deliveries": {"hook": "ok"}}
    return {**healths, "alerts": alerts, "notifier": notifier}


def watched(ward: str, summary: dict[str, Any], run_type: str = "manual") -> str:
    """What the task of a stream gives back after a tick; its notes go nowhere."""
    from st_common.airflow.watching import WatchOperator

    ti = SimpleNamespace(xcom_push=dict)
    run = SimpleNamespace(run_type=run_type, dag_id="stream_supervisor")
    task = WatchOperator(task_id="watch", ward=ward, summary=summary)
    return task.execute({"ti": ti, "dag_run": run})


@pytest.mark.spec("C4")
def test_an_error_is_mailed_by_airflows_notifier_and_makes_the_run_red(
    airflow_db: None, server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from st_common.airflow import alerts

    monkeypatch.setenv(
        "AIRFLOW_CONN_SMTP_DEFAULT",
        f"smtp://127.0.0.1:{server.port}?disable_ssl=true&disable_tls=true&timeout=60",
    )
    arguments = {
        "from_email": "fairway@example.org",
        "to": "ops@example.org",
        "subject": "Fairway",
        "html_content": "<p>{{ alerts }}</p>",
    }
    monkeypatch.setattr(alerts, "get_current_context", dict)
    mailed = summary({"class": SMTP, "arguments": arguments}, "warning", "error")
    with pytest.raises(AirflowFailException, match="dead: process 7 is gone"):
        watched("taxis", mailed)
    server.thread.join(timeout=60)
    mail = message_from_string(server.mail.replace("\r\n", "\n"))
    (page,) = [part for part in mail.walk() if part.get_content_type() == "text/html"]
    assert mail["To"] == "ops@example.org"
    assert page.get_payload(decode=True) == b"<p>taxis: dead: process 7 is gone</p>"


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("airflow.nowhere.Notifier", {}, "nowhere"),
        ("collections.OrderedDict", {}, "is no notifier of Airflow"),
        (SMTP, {"too": "ops@example.org"}, "argument"),
    ],
)
def test_a_notifier_that_cannot_be_made_is_told_before_it_is_needed(
    airflow_db: None, name: str, arguments: dict[str, Any], said: str
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from st_common.airflow.watching import wards

    wrong = summary({"class": name, "arguments": arguments})
    with pytest.raises(AirflowFailException, match=rf"operations.toml.*{said}"):
        wards.function(wrong)


@pytest.mark.spec("C4")
def test_an_error_is_red_for_what_it_concerns_alone_and_ends_the_run(
    airflow_db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

    from st_common.airflow.watching import wards

    monkeypatch.setenv("FAIRWAY_HOME", str(tmp_path))
    bad, quiet = summary(None, "error"), summary(None, "warning")
    assert wards.function(bad) == ["home", "buses", "taxis", "delivery hook"]
    with pytest.raises(AirflowFailException, match="process 7 is gone"):
        watched("taxis", bad)
    for other in ("home", "buses", "delivery hook"):
        assert watched(other, bad, "scheduled") == "another one became worse"
    bad["alerts"][0]["stream"] = "supervisor"
    with pytest.raises(AirflowFailException, match="process 7 is gone"):
        watched("home", bad)
    assert watched("taxis", quiet) == "looked once", "what runs by hand"
    with pytest.raises(TaskDeferred) as deferred:
        watched("taxis", quiet, "scheduled")
    assert deferred.value.trigger.argv[-5:-4] == ["--look"]
