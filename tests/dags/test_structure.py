"""The DAGs as Airflow loads them: no errors, no warnings, the rules that all of them follow."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.dags
ROOT = Path(__file__).resolve().parents[2]
DAGS = ROOT / "dags"
FILES = sorted(path.stem for path in DAGS.glob("*.py") if path.stem != "__init__")

TASKS = {
    "osm_static_load": {
        "layers": {"load_layer"},
        "load_layer": {"rebalance", "all_loaded"},
        "rebalance": set(),
        "all_loaded": set(),
    },
    "rebalance": {"rebalance": set()},
    "prepartition": {"partition": set()},
    "stream_supervisor": {
        "tick": {"wards", "watch"},
        "wards": {"watch"},
        "watch": set(),
    },
    "maintenance": {
        "streams": {"snapshot"},
        "snapshot": {"maintain", "all_taken"},
        "maintain": set(),
        "all_taken": set(),
    },
    "dq_report": {"report": set(), "streams": {"draw"}, "draw": set()},
    "reprocess": {"plan": {"runs"}, "runs": {"reprocess"}, "reprocess": set()},
}
SCHEDULED = {
    "stream_supervisor": "@continuous",
    "maintenance": "30 2 * * *",
    "rebalance": "40 * * * *",
    "dq_report": "0 3 * * *",
    "reprocess": "0 2 * * *",
}


def test_one_dag_per_file_named_as_the_file_and_none_fails_to_load(dagbag: Any) -> None:
    assert dagbag.import_errors == {}
    assert sorted(dagbag.dags) == FILES == sorted(TASKS)
    for dag_id, dag in dagbag.dags.items():
        assert Path(dag.fileloc).stem == dag_id


def test_loading_warns_of_nothing(dagbag: Any) -> None:
    assert dagbag.captured_warnings == {}


def schedule_of(dag: Any) -> str | None:
    """When a DAG runs by itself; None: never."""
    timetable = getattr(dag.timetable, "timetable", dag.timetable)
    if type(timetable).__name__ == "ContinuousTimetable":
        return "@continuous"
    return getattr(timetable, "expression", None)


@pytest.mark.parametrize("dag_id", sorted(TASKS))
def test_every_dag_keeps_the_rules(dagbag: Any, dag_id: str) -> None:
    dag = dagbag.dags[dag_id]
    assert dag.catchup is False
    assert dag.max_active_runs == 1
    assert "fairway" in dag.tags
    assert len(dag.tags) > 1
    assert len(dag.doc_md) > 80
    assert dag.doc_md.startswith(dag.description)
    for task in dag.tasks:
        assert task.owner == "fairway"
    assert schedule_of(dag) == SCHEDULED.get(dag_id)
    assert {task.task_id: task.downstream_task_ids for task in dag.tasks} == TASKS[
        dag_id
    ]


@pytest.mark.parametrize("dag_id", sorted(TASKS))
def test_only_what_works_on_its_interval_can_be_backfilled(
    dagbag: Any, dag_id: str
) -> None:
    allowed = {str(kind.value) for kind in dagbag.dags[dag_id].allowed_run_types}
    assert ("backfill" in allowed) == (dag_id in {"reprocess", "dq_report"})
    assert "manual" in allowed
    assert ("scheduled" in allowed) == (dag_id in SCHEDULED)
    reads_interval = "data_interval_start" in (DAGS / f"{dag_id}.py").read_text()
    assert ("backfill" in allowed) == reads_interval


def test_tasks_take_slots_of_pools_that_there_are_and_ticks_wait_for_no_batch(
    dagbag: Any,
) -> None:
    pools = json.loads((ROOT / "conf" / "pools.json").read_text())
    taken = {
        dag_id: {task.pool for task in dag.tasks} for dag_id, dag in dagbag.dags.items()
    }
    assert set().union(*taken.values()) == set(pools)
    ticks = taken.pop("stream_supervisor")
    assert not ticks & set().union(*taken.values())


def test_the_form_of_reprocess_takes_days_and_times_with_their_zones(
    dagbag: Any,
) -> None:
    dag = dagbag.dags["reprocess"]
    for name in ("from_", "to"):
        param = dag.params.get_param(name)
        assert param.resolve() is None
        for text in ("", "2024-05-01", "2024-05-01T10:00Z", "2024-05-01T12:00+02:00"):
            assert param.resolve(text) == text
        for text in ("2024-05-01T10:00", "yesterday", "--home"):
            with pytest.raises(Exception, match="Failed validating"):
                param.resolve(text)
    engine = dag.params.get_param("engine").schema
    assert engine["enum"] == ["spark", "local", None]
    assert engine["values_display"] == {"null": "default"}, "what the page shows"
    words = " ".join(dag.get_task("plan").arguments)
    assert "--from={{ params.from_ or (data_interval_start" in words


def test_the_form_of_the_supervisor_takes_deliveries_and_no_paths(dagbag: Any) -> None:
    retry = dagbag.dags["stream_supervisor"].params.get_param("retry")
    for name in ("", "taxis", "deliveries/alarms"):
        assert retry.resolve(name) == name
    for path in ("../x", "deliveries/", "deliveries/../x", "streams/taxis", "--home"):
        with pytest.raises(Exception, match="Failed validating"):
            retry.resolve(path)


@pytest.mark.parametrize("dag_id", sorted(TASKS))
def test_work_is_tried_again_and_what_only_says_what_it_is_about_is_not(
    dagbag: Any, dag_id: str
) -> None:
    for task in dagbag.dags[dag_id].tasks:
        is_mapping = task.task_id in {"streams", "layers", "runs", "wards"}
        usual = {"tick": 10, "watch": 1}.get(task.task_id, 2)
        assert task.retries == (0 if is_mapping else usual)


@pytest.mark.spec("C8")
def test_the_form_of_dq_report_offers_engines_and_hands_on_the_chosen_one(
    dagbag: Any,
) -> None:
    dag = dagbag.dags["dq_report"]
    assert dag.params.dump() == {"day": None, "engine": "spark", "stream": []}
    assert dag.params.get_param("engine").schema["enum"] == ["spark", "local"]
    words = dag.get_task("report").arguments
    assert "--engine={{ params.engine }}" in words


@pytest.mark.spec("C3")
def test_the_form_of_prepartition_offers_strategies_and_refuses_nonsense(
    dagbag: Any,
) -> None:
    params = dagbag.dags["prepartition"].params
    strategies = ["sample", "elements", "thresholds"]
    assert params.get_param("strategy").schema["enum"] == strategies
    assert params.dump() == {
        "group": "default",
        "strategy": "sample",
        "upper": None,
        "lower": None,
        "unit": "rows",
        "share": None,
        "first": 10_000,
        "regions": 40,
        "source": None,
        "workers": 2,
        "tree": "kdtree",
        "engine": "spark",
    }
    wrong = {
        "strategy": "guess",
        "upper": 0,
        "lower": -1,
        "unit": "acres",
        "share": 1.5,
        "first": 0,
        "regions": "many",
        "group": "No Name",
        "source": "-x",
    }
    for name, value in wrong.items():
        with pytest.raises(Exception, match="Failed validating"):
            params.get_param(name).resolve(value)


def test_a_layer_needs_a_name_and_a_file_and_no_value_becomes_an_option(
    dagbag: Any,
) -> None:
    params = dagbag.dags["osm_static_load"].params
    for name, value in {
        "layers": ["--home"],
        "file": "--conf=/tmp",
        "group": "a b",
        "crs": "flat",
        "source_crs": "utm 32",
        "lat_lon": "perhaps",
        "engine": "flink",
    }.items():
        with pytest.raises(Exception, match="Failed validating"):
            params.get_param(name).resolve(value)
    layers = params.get_param("layers")
    with pytest.raises(Exception, match="No value passed"):
        layers.resolve()
    for wrong in ([], ["parks="], ["parks=park,"], ["a=b=c"], ["parks", "parks"]):
        with pytest.raises(Exception, match="Failed validating"):
            layers.resolve(wrong)
    assert layers.resolve(["parks=park,forest", "roads"])


def test_every_field_of_a_layer_reaches_the_job(dagbag: Any) -> None:
    """A field that no argument names would be filled in for nothing."""
    dag = dagbag.dags["osm_static_load"]
    given = " ".join(dag.get_task("load_layer").partial_kwargs["arguments"])
    reached = {name for name in dag.params if f"params.{name}" in given}
    assert reached | {"layers"} == {*dag.params}
    assert {
        "table",
        "id",
        "crs",
        "source_crs",
        "x",
        "y",
        "place",
        "lat_lon",
        "engine",
    } <= {*dag.params}


PARSE = """
import socket, sys, time, warnings
from pathlib import Path
import airflow.sdk, st_common.config.streams  # what Airflow has loaded already when it reads a DAG file

def refuse(*_):
    raise AssertionError("a DAG file opened a connection")

socket.socket.connect = refuse
warnings.simplefilter("error")
start = time.process_time()
for path in map(Path, sys.argv[1:]):
    exec(compile(path.read_text(), str(path), "exec"), {"__name__": path.stem, "__file__": str(path), "__doc__": ""})
print(time.process_time() - start)
heavy = {"pyspark", "delta", "sedona", "deltalake", "pyarrow", "pandas", "numpy", "great_expectations", "jobs"}
print(sorted(heavy & {name.partition(".")[0] for name in sys.modules}))
print(sorted(name for name in sys.modules if f"{name}.".startswith(("st_common.spark.", "st_common.operations."))))
"""


def test_reading_all_files_is_quick_quiet_and_needs_neither_spark_nor_network() -> None:
    files = [str(DAGS / f"{name}.py") for name in FILES]
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", PARSE, *files],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seconds, heavy, ours = done.stdout.splitlines()[-3:]
    assert (heavy, ours) == ("[]", "[]")
    assert float(seconds) < 5, f"the whole took {time.monotonic() - start:.1f} s"
