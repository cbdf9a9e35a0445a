"""Runs DAGs in this process, without a server, one after the other: in Airflow's environment.

    echo '{"dag": "dq_report", "conf": {"day": "2026-06-19"}}' | .venv-airflow/bin/python demo/run_dags.py FOLDER

Reads a line of JSON for each run (`dag`, and in `conf` the values of its form) and answers with a line of JSON: `dag`,
`state`, and the states of its `tasks`. Airflow's home is FOLDER; everything that Airflow and the tasks say goes to
stderr.
"""

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def use_home(folder: Path) -> None:
    """Makes `folder` Airflow's home; before Airflow is imported, for it reads these then."""
    os.environ.update(
        AIRFLOW_HOME=str(folder),
        AIRFLOW__CORE__DAGS_FOLDER=str(ROOT / "dags"),
        AIRFLOW__CORE__LOAD_EXAMPLES="False",
        AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{folder}/airflow.db",
        AIRFLOW__LOGGING__BASE_LOG_FOLDER=str(folder / "logs"),
    )


def load_dags() -> dict[str, Any]:
    """All DAGs, by id; makes Airflow's database at the first time.

    Raises:
        RuntimeError: a DAG cannot be loaded.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from airflow.dag_processing.dagbag import DagBag
        from airflow.utils.db import initdb

        initdb()
        bag = DagBag(dag_folder=str(ROOT / "dags"), safe_mode=True)
    if bag.import_errors:
        raise RuntimeError(str(bag.import_errors))
    return dict(bag.dags)


def run(dags: dict[str, Any], dag_id: str, conf: dict[str, Any]) -> dict[str, Any]:
    """Runs one DAG with the values of its form."""
    done = dags[dag_id].test(run_conf=conf)
    tasks = done.get_task_instances()
    return {
        "dag": dag_id,
        "state": str(done.state),
        "tasks": {
            f"{task.task_id} {task.map_index}": str(task.state) for task in tasks
        },
    }


def main() -> None:
    """Answers lines on stdin until it is closed."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    use_home(Path(sys.argv[1]).resolve())
    dags = load_dags()
    for line in sys.stdin:
        wanted = json.loads(line)
        answers.write(
            json.dumps(run(dags, wanted["dag"], wanted.get("conf", {})), default=str)
            + "\n"
        )


if __name__ == "__main__":
    main()
