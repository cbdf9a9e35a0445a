"""The parts of a local Airflow that need no server: where PostgreSQL is, its secrets and ports, what is left of it."""

import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from st_common.errors import ConfigError
from tests.kit.local_airflow.postgres import find_programs
from tests.kit.local_airflow.services import (
    _start,
    left_of,
    start_services,
    stop_services,
)
from tests.kit.local_airflow.setup import (
    MARK,
    Setup,
    airflow_environment,
    make_setup,
    read_setup,
)


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    return make_setup(tmp_path / "airflow")


@pytest.fixture
def sleeper(setup: Setup) -> Iterator[subprocess.Popen[bytes]]:
    """What some process of a local Airflow started, and what outlived it."""
    argv = [sys.executable, "-c", "input()"]
    env = {**os.environ, MARK: str(setup.folder)}
    with subprocess.Popen(argv, env=env, stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_without_postgresql_it_says_what_to_install(
    tmp_path: Path, setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="apt-get install postgresql"):
        find_programs(tmp_path)


def test_the_newest_of_debians_versions_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for version in ("9.6", "15", "17"):
        (tmp_path / version / "bin").mkdir(parents=True)
        (tmp_path / version / "bin" / "initdb").touch()
    assert find_programs(tmp_path) == tmp_path / "17" / "bin"


def test_a_setup_is_made_once_and_its_secrets_are_for_its_owner_alone(
    setup: Setup,
) -> None:
    assert read_setup(setup.folder) == setup == make_setup(setup.folder)
    other = make_setup(setup.folder.with_name("other"))
    assert setup.api_port != setup.database_port
    assert setup.password != other.password
    for name in ("setup.json", "passwords.json"):
        mode = (setup.folder / name).stat().st_mode
        assert stat.S_IMODE(mode) == 0o600, name


def test_every_address_that_airflow_is_told_is_on_loopback(setup: Setup) -> None:
    told = airflow_environment(setup, home=Path("/h"), conf=Path("/c"))
    addresses = {name: text for name, text in told.items() if "://" in text}
    assert len(addresses) == 4
    assert all(
        "127.0.0.1:" in text and "@" not in text.split("@")[-1]
        for text in addresses.values()
    )
    assert told["AIRFLOW__API__HOST"] == "127.0.0.1"


def test_what_outlived_a_local_airflow_is_found_and_killed(
    setup: Setup, sleeper: subprocess.Popen[bytes]
) -> None:
    assert [one.pid for one in left_of(setup)] == [sleeper.pid]
    assert list(left_of(make_setup(setup.folder.with_name("other")))) == []
    assert stop_services(setup) == 1
    assert not psutil.pid_exists(sleeper.pid)
    assert list(left_of(setup)) == []
    assert stop_services(setup) == 0


ORPHAN = "import subprocess; subprocess.Popen(['sleep', '600'], env={})"


def test_a_worker_that_outlived_its_scheduler_is_found_in_its_session(
    setup: Setup,
) -> None:
    """It has no mark: the leader of its session is dead, and was started again since."""
    for _ in range(2):
        _start(setup, "scheduler", [sys.executable, "-c", ORPHAN], os.environ, 60, {})
    deadline = time.monotonic() + 60
    while (names := sorted(one.name() for one in left_of(setup))) != ["sleep"] * 2:
        assert time.monotonic() < deadline, names
        time.sleep(0.05)
    assert stop_services(setup) == 2
    assert list(left_of(setup)) == []


def test_nothing_starts_where_postgresql_cannot(
    tmp_path: Path, setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tests.kit.local_airflow.postgres.find_programs",
        lambda: find_programs(tmp_path),
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="PostgreSQL is not installed"):
        start_services(setup, {})
    assert list(left_of(setup)) == []
