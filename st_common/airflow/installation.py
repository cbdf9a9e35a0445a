"""Where jobs are run, and by what: the Connection `fairway` of Airflow and two variables say it to each worker.

    fairway    type spark    host local[*]    extra {"python": "/opt/fairway/.venv/bin/python"}

Nothing here hangs on where DAGs lie, so that a worker of Celery, or a pod, has its own. Read when a task runs and never
while a DAG is: what is missing fails a task and no import.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from st_common.config.environment import conf_dir, home_dir
from st_common.errors import ConfigError

CONNECTION = "fairway"
"""The Connection that says which Python runs jobs, and on which Spark."""
ROOT = Path(__file__).resolve().parents[2]
_HINT = (
    f"airflow connections add {CONNECTION} --conn-type spark --conn-host 'local[*]' "
    """--conn-extra '{"python": "/opt/fairway/.venv/bin/python"}'"""
)
_OURS = frozenset({"python", "root", "spark-submit", "jars", "properties-file", "conf"})
_PROVIDERS = frozenset(
    {
        "queue",
        "deploy-mode",
        "spark-binary",
        "namespace",
        "principal",
        "keytab",
        "rest-scheme",
        "rest-port",
        "yarn_resourcemanager_webapp_address",
    }
)
_AIRFLOWS_OWN = ("AIRFLOW", "_AIRFLOW", "PYTHON", "VIRTUAL_ENV")
_MEMORY = "2g"  # of the driver, unless `conf` of the Connection says another


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """Where an installation lies, as a worker sees it.

    Attributes:
        home: the home folder.
        conf: the folder of the settings.
        root: the folder that holds `jobs/`.
        python: the Python that runs them.
        spark_submit: the program that submits them to Spark.
        jars: the jars of Delta and Sedona.
        properties: what spark-submit is told beside them.
        master: where Spark runs, `local[*]` for this machine.
        spark: more settings of Spark, by name.
    """

    home: Path
    conf: Path
    root: Path
    python: Path
    spark_submit: Path
    jars: tuple[Path, ...]
    properties: Path
    master: str
    spark: Mapping[str, str]

    @property
    def places(self) -> tuple[str, ...]:
        """The words by which all programs are told home and settings."""
        return ("--home", str(self.home), "--conf", str(self.conf))


def find_installation() -> Installation:
    """The installation that the Connection, FAIRWAY_HOME and FAIRWAY_CONF name.

    Raises:
        ConfigError: FAIRWAY_HOME is not set, there is no such Connection, or it names what is not there.
    """
    home = home_dir()
    connection = _connection()
    given = _extra(connection)
    root = Path(str(given.get("root", ROOT)))
    python = _file(given, "python")
    submit = Path(str(given.get("spark-submit", python.with_name("spark-submit"))))
    if submit.name != "spark-submit":
        raise ConfigError(
            f"connection {CONNECTION!r}: spark-submit is {str(submit)!r}",
            hint="the program of that name",
        )
    if not (root / "jobs").is_dir():
        raise ConfigError(
            f"connection {CONNECTION!r}: there is no folder {root / 'jobs'}",
            hint="`root` of its extra names the folder that holds jobs/",
        )
    jars = Path(str(given.get("jars", os.environ.get("FAIRWAY_JARS", root / "jars"))))
    properties = given.get("properties-file", root / "conf" / "spark.properties")
    return Installation(
        home=home.resolve(),
        conf=(root / conf_dir(home)).resolve(),
        root=root,
        python=python,
        spark_submit=submit,
        jars=tuple(sorted(jars.glob("*.jar"))),
        properties=Path(str(properties)),
        master=connection.host or "local[*]",
        spark={"spark.driver.memory": _MEMORY, **given.get("conf", {})},
    )


def _connection() -> Any:
    from airflow.sdk import Connection
    from airflow.sdk.exceptions import AirflowNotFoundException

    try:
        return Connection.get(CONNECTION)
    except AirflowNotFoundException:
        raise ConfigError(
            f"there is no connection {CONNECTION!r}", hint=_HINT
        ) from None


def _extra(connection: Any) -> dict[str, Any]:
    extra: dict[str, Any] = connection.extra_dejson
    unknown = sorted(extra.keys() - _OURS - _PROVIDERS)
    if unknown:
        raise ConfigError(
            f"connection {CONNECTION!r}: its extra has no {', '.join(unknown)}",
            hint=f"known: {', '.join(sorted(_OURS))}, and those of the Spark provider",
        )
    return extra


def _file(given: Mapping[str, Any], key: str) -> Path:
    if not given.get(key):
        raise ConfigError(
            f"connection {CONNECTION!r}: its extra names no {key}", hint=_HINT
        )
    path = Path(str(given[key]))
    if not path.is_file():
        raise ConfigError(
            f"connection {CONNECTION!r}: there is no file {path} on this worker",
            hint=f"`{key}` of its extra",
        )
    return path


def job_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment without what belongs to Airflow: a job needs neither its secrets nor its Python paths.

    Args:
        environment: variables by name, such as those of this process.
    """
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith(_AIRFLOWS_OWN)
    }
