"""A job's exit code in Airflow's terms, its summary, and what a job gets to see of its surroundings."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from tests.kit.installation import ROOT, wait

pytestmark = pytest.mark.dags

DUE = datetime(2024, 5, 1, 2, 30, tzinfo=UTC)
JOB = """
import json, os, sys
print("at work", flush=True)
given = sys.argv[5:]
def leave(code, **told):
    with open(os.environ["FAIRWAY_OUTCOME"], "w") as file:
        json.dump({"code": code, **told}, file)
    sys.exit(code)
if "parent" in given:
    leave(0, summary=json.loads(os.environ["FAIRWAY_LINEAGE_PARENT"]))
if "warn" in given:
    leave(0, summary={"given": given, "secrets": sorted(n for n in os.environ if "AIRFLOW" in n)})
if "crash" in given:
    print("a library says goodbye", file=sys.stderr)
    os.kill(os.getpid(), 9)
leave(int(given[0]), error=f"no such thing: {given}")
"""
NOTED: list[tuple[str, str]] = []
"""What tasks handed on beside their summaries, the newest last."""


def context(**conf: object) -> dict[str, Any]:
    """As Airflow gives it to a task of a DAG whose form has the value `day`."""
    dag = SimpleNamespace(dag_id="fake", params={"day": None})
    run = SimpleNamespace(conf=conf, logical_date=None, run_after=DUE, clear_number=1)
    ti = SimpleNamespace(
        dag_id="fake",
        task_id="job",
        try_number=2,
        map_index=-1,
        xcom_push=lambda key, value: NOTED.append((key, value)),
    )
    return {"outlet_events": {}, "dag": dag, "dag_run": run, "ti": ti}


def connect(monkeypatch: pytest.MonkeyPatch, **extra: object) -> None:
    """Says by the Connection of the environment where jobs are, and by what they are run."""
    connection = {"conn_type": "spark", "host": "local[1]", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_FAIRWAY", json.dumps(connection))


@pytest.fixture
def call(airflow_db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a stand-in for a job as a task and gives back what the task returns."""
    from st_common.airflow.operator import JobOperator

    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "fake.py").write_text(JOB)
    monkeypatch.setenv("FAIRWAY_HOME", str(tmp_path / "home"))
    connect(monkeypatch, python=sys.executable, root=str(tmp_path))

    def call(*arguments: str, **options: Any) -> Any:
        task = JobOperator(task_id="fake", job="fake", arguments=arguments, **options)
        return task.execute(context())

    yield call
    assert [*(tmp_path / "home" / "logs").iterdir()] == [], "no outcome is left"


@pytest.mark.spec("C8")
@pytest.mark.parametrize("code", [2, 3, 4])
def test_what_cannot_get_better_fails_for_good(call: Any, code: int) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match=rf"no such thing: \['{code}'\]"):
        call(str(code))
    assert NOTED[-1][1].endswith(f"no such thing: ['{code}']")


@pytest.mark.parametrize("code", [1, 75])
def test_what_may_pass_is_tried_again(call: Any, code: int) -> None:
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    with pytest.raises(AirflowException, match=f"code {code}") as caught:
        call(str(code))
    assert not isinstance(caught.value, AirflowFailException)


def test_wrong_settings_that_somebody_may_mend_are_tried_again(call: Any) -> None:
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    with pytest.raises(AirflowException, match="wrong settings") as caught:
        call("2", may_pass=True)
    assert not isinstance(caught.value, AirflowFailException)


def test_a_job_that_was_killed_is_tried_again_and_its_last_words_are_told(
    call: Any,
) -> None:
    from airflow.sdk.exceptions import AirflowException

    with pytest.raises(AirflowException, match="code -9: a library says goodbye"):
        call("crash")


def test_a_summary_is_handed_on_and_airflows_secrets_stay_with_airflow(
    call: Any,
) -> None:
    summary = call("warn", "--group=", "--name=x y;$(z)", more=["first"])
    assert summary == {"given": ["first", "warn", "--name=x y;$(z)"], "secrets": []}
    assert NOTED[-1] == ("fairway_note", "first: given 3, secrets 0")


SLEEPER = """
import os, sys, time
from pathlib import Path
Path(sys.argv[2], "pid").write_text(str(os.getpid()))
time.sleep(300)
"""


@pytest.mark.spec("C2", "X6")
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_task_that_is_killed_leaves_no_job_behind(
    airflow_db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    from airflow.sdk.exceptions import AirflowException

    from st_common.airflow.operator import JobOperator

    home, python = tmp_path / "home", ROOT / ".venv" / "bin" / "python"
    (tmp_path / "jobs").mkdir()
    home.mkdir()
    (tmp_path / "jobs" / "sleeper.py").write_text(SLEEPER)
    monkeypatch.setenv("FAIRWAY_HOME", str(home))
    properties = str(ROOT / "conf" / "spark.properties")
    extra = {"python": str(python), "properties-file": properties}
    connect(monkeypatch, **extra, root=str(tmp_path), jars=str(ROOT / "jars"))
    task = JobOperator(task_id="sleeper", job="sleeper", engine=engine)
    with ThreadPoolExecutor() as pool:
        running = pool.submit(task.execute, context())
        wait((home / "pid").exists, "the job sleeps")
        pid = int((home / "pid").read_text())
        assert psutil.pid_exists(pid)
        task.on_kill()
        wait(lambda: not psutil.pid_exists(pid), "the job is gone")
        with pytest.raises(AirflowException, match="code"):
            running.result(timeout=60)


@pytest.mark.spec("S10")
def test_a_job_is_told_which_task_and_which_attempt_started_it(call: Any) -> None:
    assert call("parent") == {
        "namespace": "default",
        "dag": "fake",
        "task": "job",
        "instant": "2024-05-01T02:30:00+00:00",
        "try_number": 2,
        "map_index": -1,
        "clear_number": 1,
    }


def test_without_a_home_or_with_an_unknown_value_a_task_fails_for_good_and_says_why(
    airflow_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from st_common.airflow.operator import JobOperator

    task = JobOperator(task_id="fake", job="fake")
    monkeypatch.delenv("FAIRWAY_HOME", raising=False)
    with pytest.raises(AirflowFailException, match="FAIRWAY_HOME"):
        task.execute(context())
    with pytest.raises(AirflowFailException, match=r"'dya' \(it has: day\)"):
        task.execute(context(dya="2024-01-01"))


@pytest.mark.spec("C2")
@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (None, "there is no connection 'fairway' .*airflow connections add fairway"),
        ({}, "names no python"),
        ({"python": "/nowhere/python"}, "no file /nowhere/python on this worker"),
        ({"python": sys.executable, "pyhton": "x"}, "its extra has no pyhton"),
        ({"python": sys.executable, "root": "/nowhere"}, "no folder /nowhere/jobs"),
        ({"python": sys.executable, "spark-submit": "/bin/sh"}, "spark-submit is"),
    ],
)
def test_a_connection_that_lacks_something_is_named_with_what_to_do(
    airflow_db: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    extra: dict[str, str] | None,
    said: str,
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from st_common.airflow.operator import JobOperator

    monkeypatch.setenv("FAIRWAY_HOME", str(tmp_path))
    monkeypatch.delenv("AIRFLOW_CONN_FAIRWAY", raising=False)
    if extra is not None:
        connect(monkeypatch, **extra)
    with pytest.raises(AirflowFailException, match=said):
        JobOperator(task_id="fake", job="fake").execute(context())


def test_a_note_has_the_numbers_of_a_summary_and_no_path() -> None:
    from st_common.airflow.notes import line_of

    summary = {"path": "/r", "version": 3, "cleared": {"files": 7}, "days": [1, 2]}
    assert line_of(summary) == "version 3, cleared files 7, days 2"
    assert line_of({}, "wrong settings") == "wrong settings"
    assert line_of({"name": "", "none": None}) == ""
