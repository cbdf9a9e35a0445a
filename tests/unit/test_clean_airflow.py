"""docker/clean_airflow.py deletes old files of Airflow's logs, and leaves what the newest run of each DAG wrote."""

import importlib.util
import os
import time
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "docker" / "clean_airflow.py"


@pytest.fixture(scope="module")
def cleaner() -> ModuleType:
    found = importlib.util.spec_from_file_location("clean_airflow", SCRIPT)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def write(folder: Path, name: str, *, days_ago: float) -> Path:
    """A log that was last written so many days ago, in folders that were made then."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("said\n")
    at_s = time.time_ns() / 1e9 - days_ago * 86_400
    for one in (path, *path.parents):
        if one == folder:
            break
        os.utime(one, (at_s, at_s))
    return path


def left(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()
    }


def test_old_logs_of_tasks_go_and_those_of_the_newest_run_of_each_dag_stay(
    cleaner: ModuleType, tmp_path: Path
):
    runs = {"a": (200, 150, 100), "b": (200, 1), "c": (300,)}
    for dag, days in runs.items():
        for age in days:
            run = f"dag_id={dag}/run_id=scheduled__{age}"
            write(tmp_path, f"{run}/task_id=t/attempt=1.log", days_ago=age)
            write(tmp_path, f"{run}/task_id=u/attempt=1.log", days_ago=age + 1)
    assert cleaner.clean_logs(tmp_path, keep_days=90) == 0
    kept = {"a": 100, "b": 1, "c": 300}
    assert left(tmp_path) == {
        f"dag_id={dag}/run_id=scheduled__{age}/task_id={task}/attempt=1.log"
        for dag, age in kept.items()
        for task in ("t", "u")
    }
    assert {path.name for path in tmp_path.glob("dag_id=*/run_id=*")} == {
        f"run_id=scheduled__{age}" for age in kept.values()
    }


def test_logs_of_scheduler_triggerer_and_dag_processor_go_by_the_same_age(
    cleaner: ModuleType, tmp_path: Path
):
    for name in ("scheduler", "triggerer", "dag_processor"):
        write(tmp_path, f"{name}/old-day/x.py.log", days_ago=91)
        write(tmp_path, f"{name}/new-day/x.py.log", days_ago=89)
    write(tmp_path, "loose.log", days_ago=91)
    latest = tmp_path / "dag_processor" / "latest"
    latest.symlink_to("new-day")
    young = tmp_path / "dag_id=a" / "run_id=begins"
    young.mkdir(parents=True)
    assert cleaner.clean_logs(tmp_path, keep_days=90) == 0
    assert left(tmp_path) == {
        f"{name}/new-day/x.py.log"
        for name in ("scheduler", "triggerer", "dag_processor")
    }
    assert not list(tmp_path.glob("*/old-day"))
    assert latest.is_symlink()
    assert young.is_dir(), "somebody may be about to write into it"


def test_nothing_is_wrong_where_there_are_no_logs(cleaner: ModuleType, tmp_path: Path):
    assert cleaner.clean_logs(tmp_path / "nowhere", keep_days=90) == 0
