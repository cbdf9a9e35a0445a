"""A PostgreSQL server of one's own: in a folder, on a port of loopback, with a password, as a user who is not root."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from st_common.errors import ConfigError, TransientError
from st_common.operations.records import private_append

USER = "airflow"
DATABASE = "postgres"
_DEBIAN = Path("/usr/lib/postgresql")
_NOT_ROOT = ("postgres", "nobody")  # whom the server runs as when root starts it


def find_programs(debian: Path = _DEBIAN) -> Path:
    """The folder of `initdb` and `postgres`: on the path, or the newest of Debian's versions.

    Args:
        debian: where Debian puts each version, off the path.

    Raises:
        ConfigError: there is none; it says what to install.
    """
    on_path = shutil.which("initdb")
    if on_path is not None:
        return Path(on_path).resolve().parent  # a link lies without its neighbours
    versions = [path.parent for path in debian.glob("*/bin/initdb")]
    if not versions:
        raise ConfigError(
            "PostgreSQL is not installed, and Airflow needs it",
            hint="apt-get install postgresql (Debian, Ubuntu), dnf install postgresql-server, brew install postgresql",
        )
    return max(versions, key=lambda folder: float(folder.parent.name))


def unprivileged() -> dict[str, Any]:
    """What `subprocess` is told so that the server never runs as root: nothing, unless root asks.

    Raises:
        ConfigError: root asks, and there is no user to run it as.
    """
    if os.geteuid() != 0:
        return {}
    for name in _NOT_ROOT:
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    raise ConfigError(
        "PostgreSQL does not run as root", hint=f"add a user {_NOT_ROOT[0]}"
    )


def create(folder: Path, *, password: str) -> None:
    """Makes an empty database cluster in `folder`, for the user `airflow`; nothing when there is one already.

    Args:
        folder: its data, for the server's user alone; made when it is absent.
        password: of the user `airflow`; nobody is let in without it.

    Raises:
        ConfigError: PostgreSQL is missing, or its user cannot get at the folder.
        TransientError: `initdb` failed; with what it said.
    """
    if (folder / "PG_VERSION").exists():
        return
    who = unprivileged()
    secret = folder.with_name("password")
    shutil.rmtree(folder, ignore_errors=True)  # of a start that was killed
    folder.mkdir(parents=True, mode=0o700)
    secret.unlink(missing_ok=True)
    try:
        with private_append(secret) as file:
            file.write(f"{password}\n".encode())
        if who:
            for path in (folder, secret):
                os.chown(path, who["user"], who["group"])
        _initialise(folder, secret, who)
    finally:
        secret.unlink(missing_ok=True)


def _initialise(folder: Path, secret: Path, who: dict[str, Any]) -> None:
    argv = [
        str(find_programs() / "initdb"),
        f"--pgdata={folder}",
        f"--username={USER}",
        f"--pwfile={secret}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--no-locale",
    ]
    done = subprocess.run(
        argv, cwd="/", capture_output=True, text=True, check=False, **who
    )
    if done.returncode == 0:
        return
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()
    if "ermission denied" in done.stderr:
        raise ConfigError(
            f"the user of PostgreSQL cannot get at {folder}: {said[-1]}",
            hint="every folder above it must be open to others (chmod o+x), or start this as another user than root",
        )
    raise TransientError(f"initdb failed: {said[-1] if said else done.returncode}")


def server_command(folder: Path, port: int) -> Sequence[str]:
    """The command line of the server over `folder`: on loopback alone, without a socket in the file system."""
    return [
        str(find_programs() / "postgres"),
        f"-D{folder}",
        "-clisten_addresses=127.0.0.1",
        f"-cport={port}",
        "-cunix_socket_directories=",
        "-cshared_buffers=32MB",
        "-cmax_connections=100",
        # A scheduler that is killed in a transaction leaves its connection, and the locks of it, to its workers.
        "-cidle_in_transaction_session_timeout=20s",
    ]


def answers(port: int) -> bool:
    """Whether the server on a port of loopback takes connections."""
    argv = [str(find_programs() / "pg_isready"), "--host=127.0.0.1", f"--port={port}"]
    done = subprocess.run(argv, cwd="/", capture_output=True, check=False)
    return done.returncode == 0
