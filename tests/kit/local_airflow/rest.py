"""Airflow's REST interface, as far as a local Airflow is asked: health, DAGs, runs."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from st_common.errors import TransientError
from tests.kit.local_airflow.setup import ADMIN, Setup

_TIMEOUT_S = 60
_ENDED = ("success", "failed")
"""States in which a run stays."""


@dataclass(frozen=True, slots=True)
class Rest:
    """Whoever logged in as `admin`."""

    url: str
    token: str

    def call(self, method: str, path: str, **body: Any) -> httpx.Response:
        """One request below `/api/v2`, with its answer of whatever status; the keywords are its JSON body."""
        return httpx.request(
            method,
            f"{self.url}/api/v2/{path}",
            json=body or None,
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=_TIMEOUT_S,
        )

    def get(self, path: str) -> dict[str, Any]:
        """What stands at a path.

        Raises:
            TransientError: Airflow refuses; with its words.
        """
        return _accepted(self.call("GET", path))

    def await_dag(self, dag: str, *, within_s: float) -> None:
        """Waits until a DAG's file has been read.

        Raises:
            TransientError: it has not been in time; with what is wrong with the files.
        """
        end = time.monotonic() + within_s
        while not self.call("GET", f"dags/{dag}").is_success:
            if time.monotonic() > end:
                raise TransientError(f"no DAG {dag}: {self.get('importErrors')}")
            time.sleep(0.5)

    def trigger(self, dag: str, **form: Any) -> str:
        """Starts a run with the values of the form.

        Returns:
            The run's id.

        Raises:
            TransientError: Airflow refuses; with its words.
        """
        answer = self.call("POST", f"dags/{dag}/dagRuns", logical_date=None, conf=form)
        return str(_accepted(answer)["dag_run_id"])

    def set_pools(self, file: Path) -> None:
        """Makes the pools of a JSON file as `airflow pools import` takes it, or sets them to what it says.

        Raises:
            TransientError: Airflow refuses; with its words.
        """
        pools = json.loads(file.read_text(encoding="utf-8"))
        entities = [{"name": name, **pool} for name, pool in pools.items()]
        action = {
            "action": "create",
            "entities": entities,
            "action_on_existence": "overwrite",
        }
        _accepted(self.call("PATCH", "pools", actions=[action]))

    def unpause(self, dag: str, *, paused: bool = False) -> None:
        """Lets a DAG run by its schedule and when it is triggered, or stops that.

        Raises:
            TransientError: Airflow refuses; with its words.
        """
        _accepted(self.call("PATCH", f"dags/{dag}", is_paused=paused))

    def ended(self, dag: str, run: str, *, within_s: float) -> str:
        """Waits for the end of a run and gives its state.

        Raises:
            TransientError: it has not ended in time.
        """
        end = time.monotonic() + within_s
        while (state := self.get(f"dags/{dag}/dagRuns/{run}")["state"]) not in _ENDED:
            if time.monotonic() > end:
                raise TransientError(f"{dag} {run} is still {state}")
            time.sleep(0.5)
        return str(state)


def log_in(setup: Setup) -> Rest:
    """The REST interface for the user `admin`.

    Raises:
        TransientError: it does not let us in.
    """
    given = {"username": ADMIN, "password": setup.password}
    answer = httpx.post(f"{setup.url}/auth/token", json=given, timeout=_TIMEOUT_S)
    return Rest(setup.url, str(_accepted(answer)["access_token"]))


def unhealthy(setup: Setup) -> list[str]:
    """Which parts of a local Airflow do not say that they are well, its API server first."""
    parts = ("metadatabase", "scheduler", "triggerer", "dag_processor")
    try:
        answer = httpx.get(
            f"{setup.url}/api/v2/monitor/health", timeout=_TIMEOUT_S
        ).json()
    except (httpx.HTTPError, ValueError):
        return ["api_server", *parts]
    return [part for part in parts if _state_of(answer, part) != "healthy"]


def _state_of(answer: Mapping[str, Any], part: str) -> Any:
    return (answer.get(part) or {}).get("status")


def _accepted(answer: httpx.Response) -> dict[str, Any]:
    if not answer.is_success:
        raise TransientError(
            f"Airflow refuses with {answer.status_code}: {answer.text[:500]}"
        )
    return dict(answer.json())
