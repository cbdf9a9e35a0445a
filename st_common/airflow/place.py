"""Where an installation lies, as a DAG's task sees it. The standard library only."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from st_common.config.environment import conf_dir, home_dir

ROOT = Path(__file__).resolve().parents[2]
_AIRFLOWS_OWN = ("AIRFLOW", "_AIRFLOW", "PYTHON", "VIRTUAL_ENV")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an installation lies.

    Attributes:
        home: the home folder.
        conf: the folder of the settings.
        root: the folder that holds `jobs/`.
        python: the Python that runs them.
    """

    home: Path
    conf: Path
    root: Path
    python: Path


def find_place() -> Place:
    """The installation that FAIRWAY_HOME and FAIRWAY_CONF name, run by `.venv` beside the DAGs.

    Called when a task runs and never while a DAG is read, so that a missing variable fails a task and no import.

    Raises:
        ConfigError: FAIRWAY_HOME is not set.
    """
    home = home_dir()
    conf = conf_dir(home)
    python = ROOT / ".venv" / "bin" / "python"
    return Place(
        home=home.resolve(), conf=(ROOT / conf).resolve(), root=ROOT, python=python
    )


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
