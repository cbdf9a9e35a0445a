"""Makes the secrets of docker-compose.yml that are not there yet: random, each in a file that only its owner may read.

usage: python3 docker/make_secrets.py FOLDER PASSWORDS

FOLDER takes a file for each secret, which holds it and nothing else; PASSWORDS is the file of JSON in which Airflow
looks up who may log in. A file that is there stays as it is: to change a secret, delete its file and start all services
anew.
"""

import base64
import json
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path

_BYTES = 32


def _word() -> str:
    return secrets.token_urlsafe(_BYTES)


def _fernet_key() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(_BYTES)).decode()


def _passwords() -> str:
    return json.dumps({"admin": secrets.token_urlsafe(12)})


SECRETS: dict[str, Callable[[], str]] = {
    "postgres-password": _word,
    "fernet-key": _fernet_key,
    "api-secret": _word,
    "jwt-secret": _word,
    "page-token": _word,
}


def main(folder: str, passwords: str) -> int:
    """Makes what is missing; 0, or 2 when a file cannot be written, or holds nothing."""
    wanted = {Path(folder, name): make for name, make in SECRETS.items()}
    wanted[Path(passwords)] = _passwords
    try:
        for path, make in wanted.items():
            write_once(path, make)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def write_once(path: Path, make: Callable[[], str]) -> None:
    """Writes a new secret to a file that is not there yet, whole or not at all.

    Args:
        path: the file; one that is there keeps its secret, and is closed to others.
        make: gives the secret.

    Raises:
        OSError: it cannot be written.
        ValueError: it is there, and empty.
    """
    if path.exists():
        if not path.read_text(encoding="utf-8").strip():
            raise ValueError(f"{path} is empty (delete it, and a new one is made)")
        path.chmod(0o600)
        return
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)  # of a start that was cut off
    number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(number, "w", encoding="utf-8") as file:
        file.write(make())
        file.flush()
        os.fsync(file.fileno())
    part.rename(path)
    print(f"made {path}")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
