"""What processes of a run on Spark say to each other is heard by nobody else, and nobody else is heard (S7)."""

import logging
import pickle
import socket
import ssl
import subprocess
import threading
import time
from dataclasses import replace

import pytest

from st_common import tables
from st_common.config.home import Home
from st_common.query.registry import carry_out
from st_common.query.text import parse
from st_common.spark.exchange import decoding
from st_common.spark.exchange.crew import Crew
from st_common.spark.exchange.wire import Keys, Listener, connected
from st_common.storage import make_folder
from tests.kit.cars import CARS
from tests.kit.log_writer import bare_log
from tests.kit.resident import follow_resident

pytestmark = [pytest.mark.spec("S7"), pytest.mark.timeout(120)]
HOST = "127.0.0.1"
connect = socket.create_connection


@pytest.fixture(scope="module")
def keys():
    return Keys.made()


@pytest.fixture
def echo(keys):
    """Who says again what it hears."""

    def serve(wire):
        while True:
            wire.send(*wire.receive())

    listener = Listener(HOST, keys, serve, name="driver")
    yield listener
    listener.close()


def soon(holds):
    until_s = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until_s
        time.sleep(0.005)


def certificate_of_a_stranger(folder, name):
    """A certificate and its key by `openssl`, as anybody can make them."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    files = ["-subj", f"/CN={name}", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command.split(), *files], check=True, capture_output=True)
    return certificate, key


def name_in(keys, folder):
    """Whom the certificate of a run names."""
    (folder / "run.pem").write_text(keys.certificate)
    command = "openssl x509 -noout -subject -nameopt multiline -in"
    done = subprocess.run(
        [*command.split(), str(folder / "run.pem")], check=True, capture_output=True
    )
    return done.stdout.decode().split("=")[-1].strip()


def client(kind, keys, folder):
    """What a stranger speaks: TLS that believes anybody, and shows a certificate or none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if kind == "another certificate":
        context.load_cert_chain(*certificate_of_a_stranger(folder, "me"))
    if kind == "another certificate of that name":
        name = name_in(keys, folder)
        context.load_cert_chain(*certificate_of_a_stranger(folder, name))
    if kind == "an old version":
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


def speak(context, raw):
    """Says something in TLS; whoever is answered fails."""
    with context.wrap_socket(raw) as stranger:
        stranger.sendall(b"\x02\0\0\0" + bytes(8) + b"{}")
        pytest.fail(f"it is answered: {stranger.recv(9)!r}")


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("no certificate", "PEER_DID_NOT_RETURN_A_CERTIFICATE"),
        ("another certificate", "CERTIFICATE_VERIFY_FAILED"),
        ("another certificate of that name", "CERTIFICATE_VERIFY_FAILED"),
        ("an old version", "UNSUPPORTED_PROTOCOL"),
    ],
)
def test_a_stranger_who_speaks_tls_is_refused_and_told_of_in_the_log(
    keys, echo, tmp_path, caplog, kind, why
):
    context = client(kind, keys, tmp_path)
    raw = socket.create_connection(echo.address)
    port = raw.getsockname()[1]
    with raw, pytest.raises(ssl.SSLError, match="ALERT"):
        speak(context, raw)
    soon(lambda: caplog.records)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert why in record.getMessage()
    assert f"{HOST} port {port}" in record.getMessage()


@pytest.mark.parametrize(
    "words",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x02\0\0\0" + bytes(8) + b'{"is": "hello", "name": "w"}',
        b"\xff" * 64,
    ],
    ids=["http", "plain", "noise"],
)
def test_who_does_not_encrypt_is_refused_and_told_of_in_the_log(echo, caplog, words):
    with socket.create_connection(echo.address) as stranger:
        stranger.sendall(words)
        said = bytearray()
        while part := stranger.recv(1000):
            said += part
    assert len(said) < 20, "an alert at most"
    soon(lambda: caplog.records)
    assert "refused 1 connection(s)" in caplog.text


def test_many_strangers_are_told_of_in_few_lines_that_count_them(echo, caplog):
    for number in range(200):
        if number == 150:
            time.sleep(1.1)
        with socket.create_connection(echo.address) as stranger:
            stranger.sendall(b"hello, who are you?")
            assert stranger.recv(1) or True
    soon(lambda: len(caplog.records) >= 2)
    assert len(caplog.records) < 20
    assert all("refused" in record.getMessage() for record in caplog.records)


def test_honest_ends_are_heard_after_strangers(keys, echo):
    with socket.create_connection(echo.address) as stranger:
        stranger.sendall(b"hello")
        wire = connected(echo.address, keys)
        wire.send({"a": 1}, b"x" * 70_000)
        assert wire.receive() == ({"a": 1}, b"x" * 70_000)
        wire.close()


def test_a_task_says_nothing_to_a_driver_of_another_run(echo):
    with Recorder() as recorder, pytest.raises(OSError, match="certificate"):
        connected(recorder.to(echo.address), Keys.made()).send({"secret": "kestrel"})
    assert b"kestrel" not in recorder.heard


def test_messages_of_many_threads_arrive_whole_both_ways_at_once(keys, echo):
    wire, sent, got = connected(echo.address, keys), [], []
    bodies = [bytes([n]) * size for n, size in enumerate((0, 1, 16_384, 3_000_000))]

    def send(number):
        for turn in range(5):
            for body in bodies:
                head = {"number": number, "turn": turn, "size": len(body)}
                wire.send(head, body)
                sent.append((number, turn, body))

    threads = [threading.Thread(target=send, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(4 * 5 * len(bodies)):
        head, body = wire.receive()
        assert head["size"] == len(body)
        got.append((head["number"], head["turn"], body))
    for thread in threads:
        thread.join()
    assert sorted(got) == sorted(sent)
    wire.close()


def test_a_byte_that_is_changed_on_the_way_ends_the_connection(keys, echo):
    with Recorder() as recorder:
        wire = connected(recorder.to(echo.address), keys)
        wire.send({"a": 1})
        assert wire.receive() == ({"a": 1}, b"")
        recorder.changes = True
        wire.send({"a": 2})
        with pytest.raises((OSError, EOFError)):
            wire.receive()
        wire.close()


def test_keys_survive_their_bytes_and_do_not_show_what_is_secret(
    keys, tmp_path, monkeypatch, echo
):
    """As they come to a task, which has seen no keys; and no file is left of what Python read."""
    copy = pickle.loads(pickle.dumps(keys))
    assert copy == keys
    assert keys.password not in repr(keys)
    assert "PRIVATE" not in repr(keys)
    assert "BEGIN ENCRYPTED PRIVATE KEY" in keys.key
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    other = Keys.made()
    listener = Listener(HOST, other, lambda wire: wire.send({"a": 1}), name="driver")
    wire = connected(listener.address, other)
    assert wire.receive() == ({"a": 1}, b"")
    wire.close()
    listener.close()
    assert not list(tmp_path.iterdir())


class Recorder:
    """Hands on what goes through it, and keeps it."""

    def __init__(self):
        self.heard, self.changes = bytearray(), False
        self._open = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in self._open:
            one.close()

    def to(self, address):
        """Where to connect to instead of an address."""
        server = socket.create_server((HOST, 0))
        self._open.append(server)
        threading.Thread(
            target=self._hand_on, args=(server, address), daemon=True
        ).start()
        return server.getsockname()[:2]

    def _hand_on(self, server, address):
        try:
            near, _ = server.accept()
            self._open.append(near)
            far = connect(address)
        except OSError:
            return  # nobody came, or nobody listens any more
        self._open.append(far)
        for ends in ((near, far), (far, near)):
            threading.Thread(target=self._copy, args=ends, daemon=True).start()

    def _copy(self, source, target):
        try:
            while part := bytearray(source.recv(1 << 16)):
                self.heard += part
                if self.changes:
                    part[-1] ^= 1
                target.sendall(part)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            return


def test_nothing_is_in_clear_between_driver_and_tasks(tmp_path, monkeypatch):
    """A whole run, each connection by way of who records it: no ids, no queries, no words of the protocol."""
    home, stream = Home(tmp_path / "home"), replace(CARS, shards=3)
    make_folder(home.root)
    text = """
    REGISTER QUERY harbour AS SELECT * FROM cars INSIDE (0, 0, 50, 50);
    REGISTER QUERY besides AS SELECT * FROM cars KNN (3, 40, 40);
    """
    carry_out(home, {"cars": stream}, parse(text), owner="me", now_us=0)
    log = bare_log(home.log("cars"))
    for second in range(20):
        rows = [f"kestrel-{n},{second},{(n * 7 + second) % 99},{n}" for n in range(80)]
        log.append(("\n".join(["id,t,x,y", *rows, ""])).encode(), arrival_us=second)
    with Recorder() as recorder:
        monkeypatch.setattr(decoding, "SHARED_FROM_BYTES", 0)
        monkeypatch.setattr(
            "st_common.spark.exchange.wire.socket.create_connection",
            lambda address, **how: connect(recorder.to(address), **how),
        )
        follow_resident(home, stream, shards=3, tasks=2)
        monkeypatch.undo()
        heard = bytes(recorder.heard)
    changes = tables.read(home.table("changes", "cars"))
    assert "kestrel-3" in changes["object"].to_pylist()
    assert len(heard) > 20_000
    words = (b"kestrel", b"harbour", b"besides", b"committed", b"hello", b"ARROW")
    assert [word for word in words if word in heard] == []


def test_a_stranger_is_no_task(caplog):
    crew = Crew(2, HOST)
    with pytest.raises(OSError, match="certificate"):
        connected(crew.address, Keys.made()).send({"is": "hello", "name": "w"})
    soon(lambda: caplog.records)
    crew.listen()
    assert crew.names == []
    crew.close()
