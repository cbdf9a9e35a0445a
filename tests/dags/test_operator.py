"""A job's exit code in Airflow's terms, its summary, and what a job gets to see of its surroundings."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.dags

DUE = datetime(2024, 5, 1, 2, 30, tzinfo=UTC)
JOB = """
import json, os, sys
print("at work", flush=True)
given = sys.argv[5:]
if "parent" in given:
    print(os.environ["FAIRWAY_LINEAGE_PARENT"], flush=True)
    sys.exit(0)
if "warn" in given:
    print(json.dumps({"given": given, "secrets": sorted(n for n in os.environ if "AIRFLOW" in n)}), flush=True)
    print("a library says goodbye", file=sys.stderr)
if "none" not in given and "warn" not in given:
    print(f"error: {given}", file=sys.stderr)
    sys.exit(int(given[0]))
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


@pytest.fixture
def call(airflow_db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a stand-in for a job as a task and gives back what the task returns."""
    from st_common.airflow import operator
    from st_common.airflow.place import Place

    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "fake.py").write_text(JOB)
    place = Place(
        home=tmp_path / "home",
        conf=tmp_path / "conf",
        root=tmp_path,
        python=Path(sys.executable),
    )
    monkeypatch.setattr(operator, "find_place", lambda: place)

    def call(*arguments: str) -> Any:
        return operator.job_task("fake", "fake", *arguments).execute(context())

    return call


@pytest.mark.parametrize("code", [2, 3, 4])
def test_what_cannot_get_better_fails_for_good(call: Any, code: int) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match=rf"error: \['{code}'\]"):
        call(str(code))
    assert NOTED[-1][1].endswith(f"error: ['{code}']")


@pytest.mark.parametrize("code", [1, 75])
def test_what_may_pass_is_tried_again(call: Any, code: int) -> None:
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    with pytest.raises(AirflowException, match=f"code {code}") as caught:
        call(str(code))
    assert not isinstance(caught.value, AirflowFailException)


def test_the_summary_is_the_last_json_line_and_airflows_secrets_stay_with_airflow(
    call: Any,
) -> None:
    summary = call("warn", "--group=", "--name=x y;$(z)")
    assert summary == {"given": ["warn", "--name=x y;$(z)"], "secrets": []}
    assert NOTED[-1] == ("fairway_note", "given 2, secrets 0")
    assert call("none") == {}


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

    from st_common.airflow.operator import job_task

    monkeypatch.delenv("FAIRWAY_HOME", raising=False)
    with pytest.raises(AirflowFailException, match="FAIRWAY_HOME"):
        job_task("fake", "fake").execute(context())
    with pytest.raises(AirflowFailException, match=r"'dya' \(it has: day\)"):
        job_task("fake", "fake").execute(context(dya="2024-01-01"))


def test_a_note_has_the_numbers_of_a_summary_and_no_path() -> None:
    from st_common.airflow.notes import line_of

    summary = {"path": "/r", "version": 3, "cleared": {"files": 7}, "days": [1, 2]}
    assert line_of(summary) == "version 3, cleared files 7, days 2"
    assert line_of({}, "wrong settings") == "wrong settings"
    assert line_of({"name": "", "none": None}) == ""
