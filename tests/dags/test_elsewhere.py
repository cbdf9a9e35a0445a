"""A worker as Celery and Kubernetes have it: DAGs, our package and jobs lie apart, as the Connection says."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.installation import ROOT
from tests.kit.local_airflow.setup import connection

pytestmark = [pytest.mark.dags, pytest.mark.timeout(600)]

WORKER = """
import json, sys
from pathlib import Path

import st_common
from airflow.dag_processing.dagbag import DagBag

folder, engine = sys.argv[1:]
dag = DagBag(dag_folder=folder).dags["rebalance"]
run = dag.test(run_conf={"engine": engine})
(task,) = run.get_task_instances()
told = [str(task.state), task.xcom_pull(task_ids="rebalance"), task.xcom_pull(task_ids="rebalance", key="fairway_note")]
print(json.dumps([str(Path(st_common.__file__).parents[1]), *told]))
"""


@pytest.mark.spec("C2")
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_task_runs_its_job_wherever_dags_and_jobs_lie(
    airflow_db: None, tmp_path: Path, engine: str
) -> None:
    dags, worker, jobs = (tmp_path / name for name in ("bundle", "worker", "jobs side"))
    dags.mkdir()
    shutil.copy(ROOT / "dags" / "rebalance.py", dags)
    shutil.copytree(ROOT / "st_common", worker / "st_common")
    for name in ("jobs", "conf"):
        shutil.copytree(ROOT / name, jobs / name)
    home = tmp_path / "home"
    home.mkdir()
    extra = {"root": str(jobs), "jars": str(ROOT / "jars")}
    environment = {
        **os.environ,
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "INFO",
        "AIRFLOW_CONN_FAIRWAY": connection(**extra),
        "FAIRWAY_HOME": str(home),
        "PYTHONPATH": str(worker),
    }
    environment.pop("FAIRWAY_CONF", None)
    done = subprocess.run(
        [sys.executable, "-c", WORKER, str(dags), engine],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    where, state, summary, note = json.loads(done.stdout.splitlines()[-1])
    assert Path(where) == worker, "not the package beside jobs"
    assert state == "success", note
    assert summary["groups"] == {}
    assert ("Spark-Submit cmd: spark-submit" in done.stdout) == (engine == "spark")
