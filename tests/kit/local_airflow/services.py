"""The processes of a local Airflow: started when they do not live, asked to end, and killed with whatever they left."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil

from st_common.airflow.installation import ROOT
from st_common.errors import TransientError
from st_common.operations.process import Owner, lives, owner_of, session_of
from st_common.operations.records import private_append, read_record, write_record
from tests.kit.local_airflow import postgres
from tests.kit.local_airflow.setup import MARK, Setup

DATABASE = "postgres"
SERVICES = ("api-server", "scheduler", "dag-processor", "triggerer")
PATIENCE_S = 300.0
"""How long a start may take; on a quiet machine it takes a tenth of that."""

_FILE = "services.json"
_END_S = 30.0
_AIRFLOW = ROOT / ".venv-airflow" / "bin" / "airflow"
# Tasks write their logs where the API server reads them; nobody needs the servers that hand them on, on all addresses.
_OPTIONS = {
    "scheduler": ("--skip-serve-logs",),
    "triggerer": ("--skip-serve-logs",),
}


def start_services(
    setup: Setup, environment: Mapping[str, str], *, limit_s: int | None = None
) -> list[str]:
    """Starts what does not live: the database, and, when it answers and is up to date, Airflow's processes.

    Called again it brings back what was killed, and leaves alone what lives.

    Args:
        setup: which local Airflow.
        environment: of Airflow's processes, from `airflow_environment`.
        limit_s: after so many seconds each process ends by itself, whatever became of those who started it.

    Returns:
        The names of what was started.

    Raises:
        ConfigError: PostgreSQL is missing or cannot be used.
        TransientError: something ends at once or does not answer in time; the error names its log.
    """
    started = []
    if not _lives(setup, DATABASE):
        postgres.create(setup.database, password=setup.database_password)
        command = postgres.server_command(setup.database, setup.database_port)
        mark = {MARK: str(setup.folder), "PATH": os.defpath}
        _start(setup, DATABASE, command, mark, limit_s, postgres.unprivileged())
        _await(setup, DATABASE, lambda: postgres.answers(setup.database_port))
        _migrate(setup, environment)
        started.append(DATABASE)
    for name in SERVICES:
        if not _lives(setup, name):
            command = [str(_AIRFLOW), name, *_OPTIONS.get(name, ())]
            _start(setup, name, command, environment, limit_s, {})
            started.append(name)
    return started


def service_owner(setup: Setup, name: str) -> Owner | None:
    """The process of a service that was started last, living or not; with a limit, the one that keeps the time."""
    owners = _owners(setup, name)
    return owners[-1] if owners else None


def log_of(setup: Setup, name: str) -> Path:
    """The file with what a service says."""
    return setup.logs / f"{name}.log"


def stop_services(setup: Setup) -> int:
    """Ends a local Airflow: asks its processes, the database last, and kills whatever is left of it after a while.

    Also what they started and what outlived them: tasks, jobs, engines of streams. Nothing of it lives afterwards.

    Returns:
        How many processes had to be killed.
    """
    # Each needs those that are asked after it, to say its last.
    _ask_to_end(setup, ("scheduler", "dag-processor", "triggerer"))
    _ask_to_end(setup, ("api-server",))
    _ask_to_end(setup, (DATABASE,))
    rest = list(left_of(setup))
    for process in rest:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(rest, timeout=_END_S)
    (setup.folder / _FILE).unlink(missing_ok=True)
    return len(rest)


def _ask_to_end(setup: Setup, names: Sequence[str]) -> None:
    recorded = [service_owner(setup, name) for name in names]
    asked = [owner for owner in recorded if owner is not None and lives(owner)]
    for owner in asked:
        with suppress(ProcessLookupError):
            # Of PostgreSQL: do not wait for those who are connected.
            os.kill(owner.pid, signal.SIGINT)
    _wait_until(lambda: not any(map(lives, asked)), _END_S)


def left_of(setup: Setup) -> Iterator[psutil.Process]:
    """The living processes of a local Airflow: services, what stayed in their sessions, what inherited the mark.

    A worker of the scheduler writes its title over its variables, but stays in its session; a job has a session of its
    own, and the mark.
    """
    names = read_record(setup.folder / _FILE) or {}
    owners = [owner for name in names for owner in _owners(setup, name)]
    members = {pid for owner in owners for pid in session_of(owner)}
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            mine = process.pid in members or _has_mark(process, setup.folder)
            if mine and process.status() != psutil.STATUS_ZOMBIE:
                yield process


def _has_mark(process: psutil.Process, folder: Path) -> bool:
    return process.environ().get(MARK) == str(folder)


def _owners(setup: Setup, name: str) -> list[Owner]:
    """The processes of a service, one for each time that it was started, in order."""
    records = (read_record(setup.folder / _FILE) or {}).get(name) or []
    owners = map(Owner.from_json, records)
    return [owner for owner in owners if owner is not None]


def _lives(setup: Setup, name: str) -> bool:
    owner = service_owner(setup, name)
    return owner is not None and lives(owner)


def _start(
    setup: Setup,
    name: str,
    command: Sequence[str],
    environment: Mapping[str, str],
    limit_s: int | None,
    who: Mapping[str, Any],
) -> None:
    limit = [] if limit_s is None else ["timeout", "--kill-after=20", str(limit_s)]
    setup.logs.mkdir(parents=True, exist_ok=True)
    with private_append(log_of(setup, name)) as log:
        process = subprocess.Popen(
            [*limit, *command],
            cwd="/",
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **who,
        )
    # Or it stays a zombie while this process lives.
    threading.Thread(target=process.wait, daemon=True).start()
    owner = owner_of(process.pid)
    if owner is None:
        raise TransientError(f"{name} ended at once: see {log_of(setup, name)}")
    known = read_record(setup.folder / _FILE) or {}
    starts = [*known.get(name, []), asdict(owner)]
    write_record(setup.folder / _FILE, known | {name: starts})


def _migrate(setup: Setup, environment: Mapping[str, str]) -> None:
    with private_append(log_of(setup, "migrate")) as log:
        done = subprocess.run(
            [_AIRFLOW, "db", "migrate"],
            cwd="/",
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode:
        raise TransientError(
            f"Airflow's database cannot be made: see {log_of(setup, 'migrate')}"
        )


def _await(setup: Setup, name: str, holds: Callable[[], bool]) -> None:
    """Waits until a service does what it is there for."""

    def over() -> bool:
        return holds() or not _lives(setup, name)

    if not _wait_until(over, PATIENCE_S) or not holds():
        raise TransientError(f"{name} does not answer: see {log_of(setup, name)}")


def _wait_until(holds: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True
