"""Deletes old rows of Airflow's own database: runs, tasks, logs of actions, heartbeats.

usage: .venv-airflow/bin/python docker/clean_airflow.py [--keep-days 90] [--every 86400] [--beat FILE]

It runs `airflow db clean`, once or again and again until SIGTERM. No DAG does it, for tasks of Airflow 3 may not open
that database; this needs its address, as the scheduler does (AIRFLOW__DATABASE__SQL_ALCHEMY_CONN). Of each DAG the
last scheduled run stays.
"""

import argparse
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event

AIRFLOW = Path(sys.executable).with_name("airflow")


def main() -> int:
    """Cleans; the exit code is that of the last time. A time that fails is told by Airflow, and tried again."""
    asked = arguments()
    stopped = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    while True:
        code = clean(keep_days=asked.keep_days)
        if code == 0 and asked.beat is not None:
            asked.beat.touch()
        if asked.every is None or stopped.wait(asked.every):
            return code


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--keep-days", type=int, default=90, help="rows of so many days stay"
    )
    parser.add_argument(
        "--every", type=float, metavar="S", help="again after so many seconds"
    )
    parser.add_argument(
        "--beat", type=Path, metavar="FILE", help="touched whenever all went well"
    )
    return parser.parse_args()


def clean(*, keep_days: int) -> int:
    """Deletes what is older; the exit code of Airflow."""
    now = datetime.fromtimestamp(time.time_ns() // 10**9, UTC)
    before = now - timedelta(days=keep_days)
    command = [
        AIRFLOW,
        "db",
        "clean",
        "--clean-before-timestamp",
        before.isoformat(),
        "--skip-archive",
        "--error-on-cleanup-failure",
        "--yes",
    ]
    return subprocess.run(command, check=False).returncode  # noqa: S603 - ours


if __name__ == "__main__":
    sys.exit(main())
