"""Every DAG run from end to end, without a server, on small real inputs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.dags

STREAM = """
[streams.taxis]
format = "csv"
columns = {object = "id", event_ts = "t", x = "x", y = "y"}
running = %s
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with settings of its own, as FAIRWAY_HOME and FAIRWAY_CONF name it."""
    home = tmp_path / "home"
    (home / "conf").mkdir(parents=True)
    (home / "conf" / "streams.toml").write_text(STREAM % "false")
    monkeypatch.setenv("FAIRWAY_HOME", str(home))
    monkeypatch.setenv("FAIRWAY_CONF", str(home / "conf"))
    return home


@pytest.fixture
def run(dagbag: Any) -> Callable[..., dict[str, str]]:
    """Runs a DAG with the values of its form and gives back the state of each task."""

    def run(dag_id: str, **form: Any) -> dict[str, str]:
        result = dagbag.dags[dag_id].test(run_conf=form)
        return {ti.task_id: str(ti.state) for ti in result.get_task_instances()}

    return run


@pytest.mark.spec("C4")
def test_a_supervisor_tick_with_nothing_to_do_is_green(home: Path, run: Callable[..., dict[str, str]]) -> None:
    assert run("stream_supervisor") == {"tick": "success", "raise_alerts": "success"}
