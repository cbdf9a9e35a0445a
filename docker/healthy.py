"""Whether a service is well: `python3 docker/healthy.py URL [COMPONENT]`; exit code 0 when it is.

Without a component it is when it answers. With one, the page of Airflow's API server says so, from the heartbeats that
its components leave in the database: one request, where `airflow jobs check` starts all of Airflow each time.
"""

import json
import sys
import urllib.request


def main(url: str, component: str = "") -> int:
    """Asks; gives the exit code, and says on stderr what is wrong."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - ours
            body = answer.read()
        status = json.loads(body)[component]["status"] if component else "healthy"
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"{url}: {error!r}", file=sys.stderr)
        return 1
    if status != "healthy":
        print(f"{component} is {status}", file=sys.stderr)
    return int(status != "healthy")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
