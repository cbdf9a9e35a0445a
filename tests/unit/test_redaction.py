"""Secrets are written nowhere, whatever a receiver repeats of what it was sent (a receiver that answers 400)."""

import base64
import json
import stat
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from st_common import tables
from st_common.cli import app
from st_common.config import redaction
from st_common.config.home import Home
from st_common.config.redaction import keep_secret, keep_url, redacted
from st_common.operations.alerts import Alert, alerts_file, append_alert
from tests.kit.http_receiver import Answer, http_receiver
from tests.kit.log_writer import bare_log

SPELT = "markedSecret999xyz"
SECRET = "tok/en+\"9f8e7d6c5b4a'"
STREAMS = """
[streams.s]
format = "csv"
crs = "planar"
time_unit = "s"
engine = "local"
max_ahead_s = "off"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
"""


@pytest.fixture(autouse=True)
def no_secrets_yet(monkeypatch):
    monkeypatch.setattr(redaction, "_forms", set())
    monkeypatch.setattr(redaction, "_hosts", set())


@pytest.fixture
def home(tmp_path: Path, monkeypatch) -> Home:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(STREAMS)
    monkeypatch.setenv("FAIRWAY_HOME", str(tmp_path))
    monkeypatch.setenv("HOOK_TOKEN", SECRET)
    monkeypatch.delenv("FAIRWAY_CONF", raising=False)
    monkeypatch.chdir(tmp_path)
    fairway("query", "register", "--text", "REGISTER QUERY q AS SELECT * FROM s;")
    bare_log(Home(tmp_path).log("s")).append(
        b"id,t,x,y\na,1,1,1\nb,1,2,2\n", arrival_us=1_000_000
    )
    fairway("run", "s", "--until-idle")
    return Home(tmp_path)


def fairway(*args: str, code: int = 0):
    done = CliRunner().invoke(app, list(args), prog_name="fairway")
    assert done.exit_code == code, done.output
    return done


def delivery(home: Home, url: str, **more: str) -> None:
    lines = {
        "stream": '"s"',
        "to": '"webhook"',
        "url": f'"{url}"',
        "token_env": '"HOOK_TOKEN"',
        **more,
    }
    text = "\n".join(f"{key} = {value}" for key, value in lines.items())
    (home.root / "conf" / "deliveries.toml").write_text(f"[deliveries.d]\n{text}\n")


def echo(receiver, status: int, pad: int):
    """An answer that repeats the headers of the request, as they are and encoded, after so many other characters."""
    given_headers = receiver.headers[-1]
    told = given_headers["Authorization"].removeprefix("Bearer ")
    forms = [
        json.dumps(given_headers),
        told,
        quote(told, safe=""),
        base64.b64encode(told.encode()).decode(),
    ]
    return Answer(status=status, body="x" * pad + " " + " ".join(forms))


def leaks(home: Home, *others: str) -> list[str]:
    """Where the secret, or 6 characters of it one after the other, can be read."""
    parts = {SECRET[at : at + 6] for at in range(len(SECRET) - 5)}
    texts = {
        str(path): path.read_bytes().decode("latin-1")
        for path in home.root.rglob("*")
        if path.is_file()
    }
    texts |= {f"output {number}": text for number, text in enumerate(others)}
    return [name for name, text in texts.items() if any(part in text for part in parts)]


@pytest.mark.parametrize("pad", [0, 430, 470, 480, 4060])
def test_a_receiver_that_refuses_and_repeats_the_headers_makes_nothing_leak(
    home, pad, caplog
):
    with http_receiver() as receiver:
        receiver.judge = lambda _: echo(receiver, 400, pad)
        delivery(home, receiver.url)
        done = fairway("deliver", "d", "--until-idle")
        assert receiver.headers[0]["Authorization"] == f"Bearer {SECRET}"
    letters = tables.read(home.table("dead_letters")).to_pylist()
    assert [letter["reason"] for letter in letters] == ["http_400", "http_400"]
    assert (
        leaks(
            home,
            done.stdout,
            done.stderr,
            caplog.text,
            str(letters),
            alerts_file(home).read_text(),
        )
        == []
    )


def test_a_receiver_that_fails_and_repeats_the_headers_makes_nothing_leak(home, caplog):
    with http_receiver() as receiver:
        receiver.judge = lambda _: echo(receiver, 500, 0)
        delivery(home, receiver.url, retry_max_s="0.01")
        done = fairway("deliver", "d", "--until-idle", code=75)
    assert "***" in done.stderr
    assert leaks(home, done.stdout, done.stderr, caplog.text) == []


def test_an_address_with_a_secret_in_its_query_is_not_told(home):
    with http_receiver() as receiver:
        url = receiver.url
    delivery(home, f"{url}?key=c0ffee42c0ffee", retry_max_s="0.01")
    done = fairway("deliver", "d", "--until-idle", code=75)
    assert "c0ffee42" not in done.stderr


def spoken(url: str) -> str:
    """An address in the ways in which receivers and libraries repeat it."""
    parts = urlsplit(url)
    target = f"{parts.path}?{parts.query}"
    values = [value for _, value in parse_qsl(parts.query)]
    forms = [
        url,
        f"POST {target} HTTP/1.1",
        json.dumps({"path": parts.path}),
        parts.query,
        *values,
        quote(target),
    ]
    return " ; ".join(
        [
            *forms,
            *parts.path.split("/"),
            f"{parts.scheme}://{parts.netloc}{parts.path}/more?x=1",
        ]
    )


@pytest.mark.parametrize("status", [400, 500])
def test_an_address_with_secrets_in_path_and_query_is_told_by_its_host_alone(
    home, caplog, status
):
    with http_receiver() as receiver:
        start = receiver.url.removesuffix("/in")
        url = f"{start}/hooks/s3gm3nt-9f8e7d6c/T0K3N/end?token=c0ffee42%2Bc0ffee&n=2"
        receiver.judge = lambda _: Answer(status=status, body=spoken(url))
        delivery(home, url, retry_max_s="0.01")
        done = fairway("deliver", "d", "--until-idle", code=0 if status == 400 else 75)
        listed = fairway("status")
    letters = (
        tables.read(home.table("dead_letters")).to_pylist()
        if status == 400
        else [{"details": done.stderr}]
    )
    assert f"{start}/..." in letters[0]["details"]
    (home.root / "conf" / "deliveries.toml").unlink()
    written = [
        path.read_bytes().decode("latin-1")
        for path in home.root.rglob("*")
        if path.is_file()
    ]
    for text in (
        *written,
        done.stdout,
        done.stderr,
        listed.stdout,
        caplog.text,
        str(letters),
    ):
        assert not [
            part for part in ("s3gm3nt", "T0K3N", "c0ffee", "hooks/") if part in text
        ]


def test_a_receiver_that_is_away_is_told_by_its_host_alone(home):
    delivery(
        home,
        "http://127.0.0.1:9/hooks/s3gm3nt-9f8e7d6c?token=c0ffee42c0ffee",
        retry_max_s="0.01",
    )
    done = fairway("deliver", "d", "--until-idle", code=75)
    assert not [part for part in ("s3gm3nt", "c0ffee") if part in done.stderr]


def test_a_wrong_address_is_told_by_its_host_alone(home):
    delivery(home, "htps://example.org/hooks/s3gm3nt?token=c0ffee42")
    done = fairway("deliver", "d", "--until-idle", code=2)
    assert (
        "url: 'htps://example.org/...' must be an address that begins with https://"
        in done.stderr
    )


def test_short_and_common_parts_of_an_address_stay_readable():
    keep_url("https://example.org/v1/in")
    assert (
        redacted("an inner error of v1 in /v1/input")
        == "an inner error of v1 in /v1/input"
    )


def test_files_with_words_of_others_are_for_their_owner_alone(home):
    alerts_file(home).touch(0o644)
    with http_receiver(lambda _: Answer(status=400)) as receiver:
        delivery(home, receiver.url)
        fairway("deliver", "d", "--until-idle")
    fairway("run", "s", "--until-idle")
    append_alert(
        home,
        Alert(ts=1, stream="s", level="error", text="Authorization: Bearer abcdef"),
    )
    assert mode(alerts_file(home)) == 0o600
    assert mode(home.table("dead_letters")) == 0o700
    assert mode(home.delivery("d")) == 0o700
    assert mode(home.stream("s") / "exit.json") == 0o600


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@given(
    st.text(
        st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=40
    ),
    st.text(max_size=30),
)
def test_no_text_that_is_cut_anywhere_shows_more_than_three_characters_of_a_secret(
    secret, before
):
    redaction._forms.clear()
    keep_secret(secret)
    text = f"{before}|{secret}"
    for end in range(len(before) + 1, len(text) + 1):
        assert secret not in redacted(text[:end])
        shown = redacted(text[:end]).removeprefix(redacted(before + "|"))
        assert len(shown) <= 3, shown


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Authorization: Bearer abc.def", "Authorization: ***"),
        (
            '{"Authorization": "Bearer abc.def", "n": 1}',
            '{"Authorization": "***", "n": 1}',
        ),
        ("got bearer abcdef-123", "got bearer ***"),
        ("password=hunter2&user=ada", "password=***&user=ada"),
        ("no such thing", "no such thing"),
    ],
)
def test_what_looks_like_a_secret_in_words_of_others_is_replaced_too(said, shown):
    assert redacted(said) == shown


def test_a_secret_that_comes_back_in_other_letters_or_as_hex_is_not_told():
    keep_secret(SPELT)
    for shown in (str.upper, str.lower, str.title, lambda one: one.encode().hex()):
        assert redacted(f"it was {shown(SPELT)}, so") == "it was ***, so"
        assert redacted(f"cut: {shown(SPELT)[:9]}") == "cut: ***"
