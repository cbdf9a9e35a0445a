"""An MQTT broker on this machine for a test: a mosquitto with settings of its own, on 127.0.0.1 only."""

import getpass
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_PLACES = ("/usr/sbin", "/usr/local/sbin", "/opt/homebrew/sbin")  # seldom in PATH
_START_S = 20.0
_SETTINGS = """\
listener {port} 127.0.0.1
user {user}
allow_anonymous false
password_file {folder}/passwords
persistence false
max_inflight_messages 0
max_queued_messages 0
message_size_limit {largest}
set_tcp_nodelay true
{more}
"""


@dataclass
class MqttBroker:
    """A broker whose settings lie in `folder`; it can be stopped and started again on the same port.

    Attributes:
        folder: of its settings and its log.
        passwords: by user.
        more: further lines of its settings.
        port: where it listens, chosen at the first start.
    """

    folder: Path
    passwords: Mapping[str, str]
    more: str = ""
    port: int = 0
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def address(self) -> str:
        """Where it listens, as host:port."""
        return f"127.0.0.1:{self.port}"

    def start(self, *, users: tuple[str, ...] | None = None) -> None:
        """Starts it, and waits until it takes connections; it knows these users, or all."""
        self.port = self.port or _free_port()
        settings = self.folder / "mosquitto.conf"
        settings.write_text(
            _SETTINGS.format(
                port=self.port,
                user=getpass.getuser(),
                folder=self.folder,
                largest=100_000,
                more=self.more,
            )
        )
        self._know(users)
        with (self.folder / "broker.log").open("ab") as log:
            command = [_program("mosquitto"), "-c", str(settings), "-v"]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        end_s = time.monotonic() + _START_S
        while not _listens(self.port):
            if self._process.poll() is not None or time.monotonic() > end_s:
                self.stop()
                raise RuntimeError((self.folder / "broker.log").read_text()[-2000:])
            time.sleep(0.02)

    def let_in(self) -> None:
        """Has a broker that runs know all users from now on."""
        self._know(None)
        if self._process is not None:
            self._process.send_signal(signal.SIGHUP)

    def pause(self) -> None:
        """Has it do nothing more, though it is there: what is sent to it waits."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def stop(self, *, hard: bool = False) -> None:
        """Ends it: in order, or as a crash does."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGKILL if hard else signal.SIGTERM)
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def _know(self, users: tuple[str, ...] | None) -> None:
        path = self.folder / "passwords"
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
        for user, password in self.passwords.items():
            if users is None or user in users:
                command = [
                    _program("mosquitto_passwd"),
                    "-b",
                    str(path),
                    user,
                    password,
                ]
                subprocess.run(command, check=True, timeout=_START_S)


@contextmanager
def mqtt_broker(
    folder: Path, passwords: Mapping[str, str], *, more: str = ""
) -> Iterator[MqttBroker]:
    """A broker that runs until the end of the block."""
    broker = MqttBroker(folder=folder, passwords=passwords, more=more)
    try:
        broker.start()
        yield broker
    finally:
        broker.stop(hard=True)


def _program(name: str) -> str:
    path = shutil.which(name) or next(
        (place for folder in _PLACES if (place := shutil.which(name, path=folder))),
        None,
    )
    if path is None:
        raise RuntimeError(f"{name} is not here: apt-get install mosquitto")
    return path


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0
