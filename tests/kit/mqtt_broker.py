"""An MQTT broker on this machine for a test: a mosquitto with settings of its own, on 127.0.0.1 only."""

import getpass
import shutil
import signal
import subprocess
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from tests.kit.broker_process import BrokerProcess, running
from tests.kit.ports import free_port

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


@dataclass(kw_only=True)
class MqttBroker(BrokerProcess):
    """A broker that knows some users.

    Attributes:
        passwords: by user.
        more: further lines of its settings.
    """

    passwords: Mapping[str, str]
    more: str = ""

    def start(self, *, users: tuple[str, ...] | None = None) -> None:
        """Starts it, and waits until it takes connections; it knows these users, or all."""
        self.port = self.port or free_port()
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
        self._launch(
            [_program("mosquitto"), "-c", str(settings), "-v"], within_s=_START_S
        )

    def let_in(self) -> None:
        """Has a broker that runs know all users from now on."""
        self._know(None)
        if self._process is not None:
            self._process.send_signal(signal.SIGHUP)

    def pause(self) -> None:
        """Has it do nothing more, though it is there: what is sent to it waits."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

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


def mqtt_broker(
    folder: Path, passwords: Mapping[str, str], *, more: str = ""
) -> AbstractContextManager[MqttBroker]:
    """A broker that runs until the end of the block."""
    return running(MqttBroker(folder=folder, passwords=passwords, more=more))


def _program(name: str) -> str:
    path = shutil.which(name) or next(
        (place for folder in _PLACES if (place := shutil.which(name, path=folder))),
        None,
    )
    if path is None:
        raise RuntimeError(f"{name} is not here: apt-get install mosquitto")
    return path
