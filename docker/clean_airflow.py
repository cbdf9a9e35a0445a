"""Deletes what Airflow leaves behind: old rows of its database (runs, tasks, actions, heartbeats), old files of logs.

usage: .venv-airflow/bin/python docker/clean_airflow.py [--keep-days 90] [--logs FOLDER] [--every 86400] [--beat FILE]

It runs `airflow db clean`, once or again and again until SIGTERM. No DAG does it, for tasks of Airflow 3 may not open
that database; this needs its address, as the scheduler does (AIRFLOW__DATABASE__SQL_ALCHEMY_CONN, or .._CMD). Of each
DAG the last scheduled run stays. With --logs it deletes files below that folder as well, of tasks, scheduler, triggerer
and DAG processor alike; what the newest run of each DAG wrote stays, however old it is.
"""

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
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
        code = clean_database(keep_days=asked.keep_days)
        if asked.logs is not None:
            code = clean_logs(asked.logs, keep_days=asked.keep_days) or code
        if code == 0 and asked.beat is not None:
            asked.beat.touch()
        if asked.every is None or stopped.wait(asked.every):
            return code


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--keep-days", type=int, default=90, help="what is younger stays"
    )
    parser.add_argument(
        "--logs", type=Path, metavar="FOLDER", help="whose old files are deleted too"
    )
    parser.add_argument(
        "--every", type=float, metavar="S", help="again after so many seconds"
    )
    parser.add_argument(
        "--beat", type=Path, metavar="FILE", help="touched whenever all went well"
    )
    return parser.parse_args()


def clean_database(*, keep_days: int) -> int:
    """Deletes older rows; the exit code of Airflow."""
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


def clean_logs(folder: Path, *, keep_days: int) -> int:
    """Deletes older files below a folder, and old folders that are empty then; 0, or 1 when one cannot be deleted.

    A folder that is young and empty stays: somebody may be about to write into it.
    """
    before_s = time.time_ns() / 1e9 - timedelta(days=keep_days).total_seconds()
    kept = set(newest_runs(folder))
    paths = [
        path
        for path in sorted(folder.rglob("*"), reverse=True)  # what is inside first
        if not path.is_symlink() and path.lstat().st_mtime < before_s
    ]
    failed = False
    for path in paths:
        if path.is_dir():
            with suppress(OSError):  # it is not empty
                path.rmdir()
        elif kept.isdisjoint(path.parents):
            failed |= not delete(path)
    return int(failed)


def delete(path: Path) -> bool:
    """Deletes a file; False when that is refused, which is said on stderr."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return False
    return True


def newest_runs(folder: Path) -> Iterator[Path]:
    """Of each DAG the folder with the logs of the run that wrote last."""
    for dag in folder.glob("dag_id=*"):
        runs = [path for path in dag.glob("run_id=*") if path.is_dir()]
        if runs:
            yield max(runs, key=last_written_s)


def last_written_s(run: Path) -> float:
    """When something was last written below a folder, seconds since 1970; 0 when nothing was."""
    files = (path for path in run.rglob("*") if path.is_file())
    return max((path.stat().st_mtime for path in files), default=0.0)


if __name__ == "__main__":
    sys.exit(main())
