"""Airflow for the tests of DAGs: a home of its own that is gone afterwards, on SQLite, without a server."""

import atexit
import importlib.util
import os
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.kit.local_airflow.setup import connection

ROOT = Path(__file__).resolve().parents[2]
collect_ignore_glob = [] if importlib.util.find_spec("airflow") else ["*"]

# Airflow reads these when it is imported, so they are set before any test module is.
AIRFLOW_HOME = Path(tempfile.mkdtemp(prefix="fairway-airflow-"))
# At the end of the process, for a run that only collects, or whose fixtures fail, has made it too.
atexit.register(shutil.rmtree, AIRFLOW_HOME, ignore_errors=True)
os.environ.update(
    AIRFLOW_HOME=str(AIRFLOW_HOME),
    AIRFLOW_CONN_FAIRWAY=connection(),
    AIRFLOW__CORE__DAGS_FOLDER=str(ROOT / "dags"),
    AIRFLOW__CORE__LOAD_EXAMPLES="False",
    AIRFLOW__CORE__UNIT_TEST_MODE="False",
    AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{AIRFLOW_HOME}/airflow.db",
    AIRFLOW__LOGGING__LOGGING_LEVEL="WARNING",
)


@pytest.fixture(scope="session")
def airflow_db() -> None:
    """Airflow's database, made once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from airflow.utils.db import initdb

        initdb()


@pytest.fixture(scope="session")
def dagbag(airflow_db: None) -> Any:
    """All DAGs of the project, loaded as Airflow does it; what that warned of is in `dagbag.captured_warnings`."""
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(dag_folder=str(ROOT / "dags"), safe_mode=True)
