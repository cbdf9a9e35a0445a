"""What a local Airflow is made of: its folder, ports and secrets, and the variables by which Airflow reads them."""

import base64
import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

from st_common.airflow.installation import ROOT, job_environment
from st_common.operations.records import read_record, write_record
from tests.kit.local_airflow.postgres import DATABASE, USER
from tests.kit.ports import free_ports

MARK = "FAIRWAY_LOCAL_AIRFLOW"
"""The variable that every process below a local Airflow inherits: by it nothing is ever left behind."""

ADMIN = "admin"
_FILE = "setup.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """One local Airflow.

    Attributes:
        folder: Airflow's home, its logs and PostgreSQL's data.
        api_port: of the pages and the REST interface, on 127.0.0.1.
        database_port: of PostgreSQL, on 127.0.0.1.
        password: of the user `admin`.
        database_password: of PostgreSQL's user.
        fernet_key: by which Airflow encrypts connections.
        api_secret: of the API server's sessions.
        jwt_secret: by which tokens are signed.
    """

    folder: Path
    api_port: int
    database_port: int
    password: str
    database_password: str
    fernet_key: str
    api_secret: str
    jwt_secret: str

    @property
    def url(self) -> str:
        """Where its pages are."""
        return f"http://127.0.0.1:{self.api_port}"

    @property
    def database(self) -> Path:
        """PostgreSQL's data."""
        return self.folder / "postgres" / "data"

    @property
    def logs(self) -> Path:
        """What its processes say."""
        return self.folder / "logs"


def read_setup(folder: Path) -> Setup | None:
    """The local Airflow in a folder; None when there is none."""
    record = read_record(folder / _FILE)
    return None if record is None else Setup(**{**record, "folder": folder})


def make_setup(folder: Path) -> Setup:
    """The local Airflow in a folder: the one that is there, or a new one on free ports with new secrets.

    Secrets lie in a file that only its owner may read.
    """
    known = read_setup(folder)
    if known is not None:
        return known
    api_port, database_port = free_ports(2)
    made = Setup(
        folder=folder,
        api_port=api_port,
        database_port=database_port,
        password=secrets.token_urlsafe(9),
        database_password=secrets.token_urlsafe(24),
        fernet_key=base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        api_secret=secrets.token_urlsafe(32),
        jwt_secret=secrets.token_urlsafe(32),
    )
    write_record(folder / _FILE, {**asdict(made), "folder": ""}, private=True)
    passwords = folder / "passwords.json"
    write_record(passwords, {ADMIN: made.password}, private=True)
    return made


def airflow_environment(
    setup: Setup, *, home: Path, conf: Path, parallel: int = 4
) -> dict[str, str]:
    """The variables of every process of a local Airflow.

    Args:
        setup: which one.
        home: the home folder on which its tasks work.
        conf: the folder of the settings.
        parallel: how many tasks run at once; each has a process that waits for it from the start.
    """
    given = {
        MARK: str(setup.folder),
        "FAIRWAY_HOME": str(home),
        "FAIRWAY_CONF": str(conf),
        "AIRFLOW_HOME": str(setup.folder),
        "AIRFLOW_CONN_FAIRWAY": connection(),
        "PATH": f"{ROOT / '.venv-airflow' / 'bin'}:{os.environ.get('PATH', os.defpath)}",
    }
    options = _options(setup) | {"AIRFLOW__CORE__PARALLELISM": str(parallel)}
    return job_environment(os.environ) | given | options


def connection(**extra: str) -> str:
    """The Connection by which tasks run jobs with the Python of this checkout, on Spark of this machine.

    Args:
        **extra: what it says beside it.
    """
    python = str(ROOT / ".venv" / "bin" / "python")
    return json.dumps(
        {
            "conn_type": "spark",
            "host": "local[*]",
            "extra": {"python": python, **extra},
        }
    )


def _options(setup: Setup) -> dict[str, str]:
    database = (
        f"{USER}:{setup.database_password}@127.0.0.1:{setup.database_port}/{DATABASE}"
    )
    return {
        "AIRFLOW__API__BASE_URL": setup.url,
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(setup.api_port),
        "AIRFLOW__API__SECRET_KEY": setup.api_secret,
        "AIRFLOW__API_AUTH__JWT_SECRET": setup.jwt_secret,
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{setup.url}/execution/",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__FERNET_KEY": setup.fernet_key,
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(
            setup.folder / "passwords.json"
        ),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{ADMIN}:admin",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"postgresql+psycopg2://{database}",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": f"postgresql+asyncpg://{database}",
        # How often tasks of a scheduler that died are taken over; five minutes are long where somebody looks.
        "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "20",
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(setup.logs / "tasks"),
    }
