"""How an installation is looked after: limits and alerts in `conf/operations.toml`, and alerts that are received."""

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from st_common.config.home import Home
from st_common.config.keys import keys_of
from st_common.config.operations import Limits, limits_of, notifier_of
from st_common.delivery import alerting
from st_common.delivery.alerting import alert_settings, begin_alerting, notify
from st_common.delivery.webhook import WebhookSink
from st_common.errors import ConfigError
from st_common.operations.alerts import (
    Alert,
    alerts_file,
    append_alert,
    delete_old_alerts,
    tell,
)
from st_common.operations.records import write_record
from st_common.processes.supervise import main
from tests.kit.http_receiver import Answer, HttpReceiver, http_receiver

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def said(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        (tmp_path / "operations.toml").write_text(text)
        return tmp_path

    return write


def test_without_a_file_and_without_keys_all_limits_are_the_defaults(
    tmp_path: Path, said: Callable[[str], Path]
) -> None:
    assert limits_of(tmp_path) == limits_of(said("[supervisor]\n")) == Limits()


def test_every_limit_can_be_set(said: Callable[[str], Path]) -> None:
    wanted = {name: int(getattr(Limits(), name)) + 5 for name in keys_of(Limits)}
    lines = [f"{name} = {value}" for name, value in wanted.items()]
    limits = limits_of(said("\n".join(["[supervisor]", *lines])))
    assert limits == dataclasses.replace(Limits(), **wanted)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[supervisor]\nstuck = 5", "supervisor: unknown key 'stuck'"),
        ("[supervisor]\nstuck_s = 0", "stuck_s = 0 must be at least 1"),
        ("[supervisor]\nsilent_s = 2", "silent_s = 2 must be at least 15"),
        ("[supervisor]\nstuck_s = true", "stuck_s = True is no number"),
        (
            "[supervisor]\nslow_looks = 4",
            "toml:2: supervisor: slow_looks = 4 has no effect any more: three looks in a row (take the line out)",
        ),
        (
            "[supervisor]\nbreaker_starts = 4",
            "(5 starts in 30 minutes) to an hour (take the line out)",
        ),
        ("[supervisor]\nstuck_s = 9999", "stuck_s = 9999 is more than batch_s = 900"),
        ("[metrics]\n", "unknown key 'metrics'"),
        ("supervisor = 5", "supervisor must be a table"),
        ("[supervisor", "cannot be read"),
    ],
)
def test_a_wrong_limit_is_named_with_file_and_key(
    said: Callable[[str], Path], text: str, message: str
) -> None:
    with pytest.raises(ConfigError) as error:
        limits_of(said(text))
    assert message in str(error.value)
    assert "operations.toml" in str(error.value)


def test_the_sample_names_every_limit_with_its_default() -> None:
    sample = (REPOSITORY / "conf" / "operations.toml").read_text(encoding="utf-8")
    for key in keys_of(Limits).values():
        (line,) = [
            line for line in sample.splitlines() if line.startswith(f"# {key.name} ")
        ]
        if "default" in line:
            assert f"(default {key.default:g}" in line
    assert limits_of(REPOSITORY / "conf") == Limits()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "url is missing"),
        ('url = "ftp://a"', "must be an address that begins with https://"),
        ('url = "https://me:pw@a"', "holds a secret"),
        ('url = "http://a.example"\ntoken_env = "T"', "would be sent without TLS"),
        ('url = "https://a"\nlevel = "eror"', "did you mean 'error'?"),
        ('url = "https://a"\ntoken = "x"', "unknown key 'token'"),
    ],
)
def test_wrong_alerts_are_named(
    said: Callable[[str], Path], text: str, message: str
) -> None:
    with pytest.raises(ConfigError) as error:
        alert_settings(said(f"[alerts]\n{text}\n"))
    assert message in str(error.value)
    assert "alerts:" in str(error.value)
    assert "pw" not in str(error.value)


@pytest.fixture
def receiver() -> Iterator[HttpReceiver]:
    with http_receiver() as made:
        yield made


@pytest.mark.spec("C4", "S10")
def test_each_new_alert_reaches_the_receiver_once_in_its_order(
    said: Callable[[str], Path], tmp_path: Path, receiver: HttpReceiver
) -> None:
    home = Home(tmp_path)
    settings = alert_settings(said(f'[alerts]\nurl = "{receiver.url}"\n'))
    assert settings is not None
    tell(home, "taxis", "long over", level="error")
    begin_alerting(home)
    tell(home, "taxis", "dead: gone", level="error")
    tell(home, "taxis", "ok: healthy", level="info")
    tell(home, "delivery d", "is slow")
    done = notify(home, settings)
    assert (done.sent, done.waiting, done.reason) == (2, 0, "")
    told = [(one["stream"], one["level"], one["text"]) for one in receiver.taken]
    assert told == [
        ("taxis", "error", "dead: gone"),
        ("delivery d", "warning", "is slow"),
    ]
    assert notify(home, settings).sent == 0


@pytest.mark.spec("C4", "S10")
def test_a_receiver_that_fails_gets_its_alerts_later_and_one_that_refuses_does_not(
    said: Callable[[str], Path], tmp_path: Path, receiver: HttpReceiver
) -> None:
    home = Home(tmp_path)
    settings = alert_settings(said(f'[alerts]\nurl = "{receiver.url}"\n'))
    assert settings is not None
    begin_alerting(home)
    for text in ("first", "second", "third"):
        tell(home, "taxis", text)
    receiver.judge = lambda alerts: Answer(
        status=503 if alerts[0]["text"] == "second" else 200
    )
    done = notify(home, settings)
    assert (done.sent, done.waiting) == (1, 2)
    assert "503" in done.reason
    receiver.judge = lambda alerts: Answer(
        status=422 if alerts[0]["text"] == "second" else 200
    )
    done = notify(home, settings)
    assert (done.sent, done.refused, done.waiting) == (1, 1, 0)
    assert [one["text"] for one in receiver.taken] == ["first", "third"]


@pytest.mark.spec("C4", "S4")
@pytest.mark.parametrize("deleted", [1, 2, 3])
def test_alerts_are_sent_once_when_old_ones_are_deleted_between(
    said: Callable[[str], Path], tmp_path: Path, receiver: HttpReceiver, deleted: int
) -> None:
    home = Home(tmp_path)
    settings = alert_settings(said(f'[alerts]\nurl = "{receiver.url}"\n'))
    assert settings is not None
    for ts, text in enumerate(("first", "second", "third")):
        append_alert(home, Alert(ts=ts, stream="taxis", level="error", text=text))
    assert notify(home, settings).sent == 3
    assert delete_old_alerts(home, before_us=deleted) == deleted
    append_alert(home, Alert(ts=9, stream="taxis", level="error", text="fourth"))
    assert notify(home, settings).sent == 1
    assert [one["text"] for one in receiver.taken][3:] == ["fourth"]


@pytest.mark.spec("C4", "S10")
def test_alerts_of_a_file_that_was_emptied_are_sent(
    said: Callable[[str], Path], tmp_path: Path, receiver: HttpReceiver
) -> None:
    home = Home(tmp_path)
    settings = alert_settings(said(f'[alerts]\nurl = "{receiver.url}"\n'))
    assert settings is not None
    begin_alerting(home)
    for text in ("one", "two"):
        tell(home, "taxis", text)
    assert notify(home, settings).sent == 2
    for texts in (("three",), ("four", "five", "six")):  # fewer lines than before, more
        alerts_file(home).write_text("")
        for text in texts:
            tell(home, "taxis", text)
        assert notify(home, settings).sent == len(texts)
    told = [one["text"] for one in receiver.taken]
    assert told == ["one", "two", "three", "four", "five", "six"]


def test_what_is_below_the_level_opens_no_connection_and_is_noted_once(
    said: Callable[[str], Path],
    tmp_path: Path,
    receiver: HttpReceiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home, written = Home(tmp_path), []
    settings = alert_settings(said(f'[alerts]\nurl = "{receiver.url}"\n'))
    assert settings is not None
    begin_alerting(home)
    for number in range(20):
        tell(home, "taxis", f"ok: {number}", level="info")
    monkeypatch.setattr(WebhookSink, "receiver", lambda *_: pytest.fail("not needed"))
    monkeypatch.setattr(
        alerting, "write_record", lambda *of: written.append(write_record(*of))
    )
    notify(home, settings)
    notify(home, settings)
    assert len(written) == 1


@pytest.mark.spec("C4", "S10")
def test_a_tick_sends_what_it_alerts_and_shows_no_secret(
    said: Callable[[str], Path],
    tmp_path: Path,
    receiver: HttpReceiver,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    conf = said(
        f'[alerts]\nurl = "{receiver.url}?key=s3cr3t-in-the-url"\ntoken_env = "PAGER"\n'
    )
    (conf / "streams.toml").write_text('[streams.taxis]\nformat = "cvs"\n')
    arguments = ["--home", str(tmp_path / "home"), "--conf", str(conf)]
    assert main(arguments) == 2
    assert "PAGER is not set" in capsys.readouterr().err
    monkeypatch.setenv("PAGER", "s3cr3t-of-the-pager")
    home = Home(tmp_path / "home")
    receiver.judge = lambda _: Answer(status=500, body="you sent s3cr3t-of-the-pager")
    assert main(arguments) == 0
    receiver.judge = lambda _: Answer()
    assert main(arguments) == 0
    out = capsys.readouterr()
    assert json.loads(out.out.splitlines()[-1])["notified"]["sent"] == 1
    assert [one["stream"] for one in receiver.taken] == ["taxis"]
    assert receiver.headers[-1]["Authorization"] == "Bearer s3cr3t-of-the-pager"
    written = [path.read_text() for path in home.root.rglob("*.json*")]
    assert "s3cr3t" not in "".join([out.out, out.err, *written])


def test_a_notifier_is_a_class_and_its_arguments(tmp_path):
    file = tmp_path / "operations.toml"
    assert notifier_of(tmp_path) is None
    file.write_text('[notifier]\nclass = "a.b.C"\narguments = { to = "x" }\n')
    assert notifier_of(tmp_path) == {"class": "a.b.C", "arguments": {"to": "x"}}
    for wrong, said in (
        ('klass = "a.b.C"', "klass"),
        ('class = "C"', "path of a class"),
        ("arguments = {}", "class is missing"),
        ('class = "a.C"\narguments = "x"', "arguments = 'x' must be a table"),
    ):
        file.write_text(f"[notifier]\n{wrong}\n")
        with pytest.raises(ConfigError, match=said):
            notifier_of(tmp_path)
