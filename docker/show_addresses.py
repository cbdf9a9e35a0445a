"""Prints where the services of docker-compose.yml are, and how to log in.

usage: python3 docker/show_addresses.py FOLDER PASSWORDS

FOLDER and PASSWORDS are those of make_secrets.py.
"""

import json
import sys
from pathlib import Path

SHOWN = """
Airflow        http://127.0.0.1:8080    user admin, password {password}
The live page  http://127.0.0.1:8640    token {token}
Spark          http://127.0.0.1:8081    its worker: http://127.0.0.1:8082
"""


def main(folder: str, passwords: str) -> int:
    """Prints them; 0, or 2 when a secret cannot be read."""
    try:
        token = Path(folder, "page-token").read_text(encoding="utf-8").strip()
        known = json.loads(Path(passwords).read_text(encoding="utf-8"))
        password = known["admin"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"error: {error!r}", file=sys.stderr)
        return 2
    print(SHOWN.format(password=password, token=token), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
