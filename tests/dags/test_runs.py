"""Every DAG run from end to end, without a server, on small real inputs: the same tasks that a scheduler would run."""

import os
import re
import signal
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from st_common.airflow.notes import NOTE
from st_common.operations.alerts import read_alerts
from st_common.operations.status import read_status
from tests.kit.installation import Installation, wait

pytestmark = pytest.mark.dags
CONTRACT = """
apiVersion: v3.1.0
kind: DataContract
id: stream-taxis
name: taxis
version: 1.0.0
status: active
description: {purpose: A day has enough.}
schema:
  - name: taxis
    quality:
      - name: enough
        type: custom
        engine: fairway
        implementation: {measure: fixes}
        mustBeGreaterOrEqualTo: 8
        severity: error
"""
RunDag = Callable[..., dict[str, tuple[str, Any]]]
MEADOW = """{"type": "Feature", "id": "meadow", "properties": {"leisure": "park"}, "geometry": {"type": "Polygon",
"coordinates": [[[8.49, 47.29], [8.51, 47.29], [8.51, 47.31], [8.49, 47.31], [8.49, 47.29]]]}}"""
JOINS = """
REGISTER QUERY in_parks AS SELECT * FROM taxis t JOIN parks p ON ST_Intersects(t, p);
REGISTER QUERY together AS SELECT * FROM taxis a JOIN taxis b ON ST_DWithin(a, b, 1 km);
"""


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An installation that all tests of this file share, from its first stream to its last report."""
    installation = Installation(tmp_path_factory.mktemp("runs"), moving=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRWAY_HOME", str(installation.home.root))
        patch.setenv("FAIRWAY_CONF", str(installation.home.root / "conf"))
        yield installation
    installation.end()


@pytest.fixture
def run(dagbag: Any, installation: Installation) -> RunDag:
    """Runs a DAG with the values of its form; gives each task's state and what it handed on, mapped ones by number."""

    def run(
        dag_id: str, at: datetime | None = None, **form: Any
    ) -> dict[str, tuple[str, Any]]:
        result = dagbag.dags[dag_id].test(logical_date=at, run_conf=form)
        return {
            f"{ti.task_id} {ti.map_index}".removesuffix(" -1"): (
                str(ti.state),
                ti.xcom_pull(task_ids=ti.task_id, map_indexes=ti.map_index),
            )
            for ti in result.get_task_instances()
        }

    return run


def states(ran: dict[str, tuple[str, Any]]) -> dict[str, str]:
    return {task: state for task, (state, _) in ran.items()}


@pytest.mark.spec("C4", "X6")
def test_a_stream_that_joins_objects_is_started_watched_restarted_and_stopped(
    run: RunDag, installation: Installation
) -> None:
    """Start, watch, restart, stop, alert; the stream outlives each run of the DAG, and no answer is lost or doubled."""
    file = installation.home.root / "parks.geojson"
    file.write_text(f'{{"type": "FeatureCollection", "features": [{MEADOW}]}}')
    installation.job("jobs.load_layer", "parks", str(file), "--engine=local")
    installation.register(JOINS)
    installation.arrives(
        "a,2024-03-09T23:59:30Z,8.5,47.3",
        "b,2024-03-09T23:59:31Z,8.5,47.3",
        "a,never,8.5,47.3",
    )
    assert supervised(run) == []
    assert installation.pid() is None, "it shall not run yet"

    installation.set(running=True)
    assert supervised(run) == ["start"]
    wait(lambda: installation.committed() > 0, "the first segment is committed")

    killed = installation.pid()
    os.kill(killed, signal.SIGKILL)
    wait(lambda: installation.pid() is None, "the engine is gone")
    position = installation.committed()
    installation.arrives(
        "a,2024-03-09T23:59:40Z,8.6,47.3", "b,2024-03-09T23:59:41Z,8.6,47.3"
    )
    assert supervised(run, alerts="failed") == ["restart"]
    wait(lambda: installation.committed() > position, "the second segment is committed")
    assert installation.pid() != killed
    assert read_status(installation.folder).epoch == 2

    installation.set(running=False)
    assert supervised(run) == ["stop"]
    wait(lambda: installation.pid() is None, "the engine stops between two batches")
    assert read_status(installation.folder).state == "stopped"
    first = read_alerts(installation.home)[0]
    assert (first.level, first.text.split(":")[0]) == ("error", "dead")
    assert told(installation) == [
        ("in_parks", 1, "a", "meadow", "23:59:30"),
        ("in_parks", 1, "b", "meadow", "23:59:31"),
        ("together", 1, "a", "b", "23:59:31"),
        ("together", 1, "b", "a", "23:59:31"),
        ("in_parks", -1, "a", "meadow", "23:59:40"),
        ("together", -1, "a", "b", "23:59:40"),
        ("together", -1, "b", "a", "23:59:40"),
        ("in_parks", -1, "b", "meadow", "23:59:41"),
    ]


def supervised(run: RunDag, *, alerts: str = "success") -> list[str]:
    """What a tick of the supervisor did; a stream with an alert is red, and each alert is raised once."""
    ran = run("stream_supervisor")
    assert states(ran) == {
        "tick": "success",
        "wards": "success",
        "watch 0": "success",
        "watch 1": alerts,
    }
    assert ran["wards"][1] == ["home", "taxis"]
    return [action["kind"] for action in ran["tick"][1]["actions"]]


def told(installation: Installation) -> list[tuple[str, int, str, str, str]]:
    """Query, sign, object, partner and time of day of all changes, in their order."""
    return [
        (
            row["query"],
            row["sign"],
            row["object"],
            row["partner"],
            datetime.fromisoformat(row["event_ts"]).strftime("%H:%M:%S"),
        )
        for row in installation.changes()
    ]


@pytest.mark.spec("C5")
def test_small_files_are_joined_and_those_of_closed_days_put_in_order(
    run: RunDag, installation: Installation
) -> None:
    for second in (50, 55):
        installation.arrives(f"a,2024-03-09T23:59:{second}Z,8.7,47.3")
        (installation.folder / "stop").unlink(missing_ok=True)
        installation.job("jobs.run_stream", "taxis", "--until-idle")
    ran = run("maintenance")
    done = {"streams": "success", "snapshot 0": "success"}
    done |= {"maintain": "success", "all_taken": "success"}
    assert states(ran) == done
    positions = table_of(ran, "positions/taxis")
    assert positions["files_before"] > positions["files_after"] == 1, "by size"
    installation.arrives("a,2024-03-10T00:00:10Z,8.7,47.3")
    installation.job("jobs.run_stream", "taxis", "--until-idle")
    positions = table_of(run("maintenance"), "positions/taxis")
    assert positions["files_before"] == 2
    assert (positions["joined"], positions["files_after"]) == (1, 2), "put in order"


def table_of(ran: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """What a run of `maintenance` says of one table."""
    tables = {each["table"]: each for each in ran["maintain"][1]["tables"]}
    return tables[name]


@pytest.mark.spec("C6")
def test_a_run_about_a_closed_day_processes_it_again_and_names_streams_where_it_is_open(
    run: RunDag, installation: Installation
) -> None:
    planned = {"plan": "success", "runs": "success"}
    ran = run("reprocess")
    assert states(ran) == {**planned, "reprocess 0": "success"}
    assert the_day(ran) == ("2024-03-09", 6, True)
    nothing = {**planned, "reprocess": "skipped"}
    assert states(run("reprocess")) == nothing, "nothing is due"

    installation.arrives("a,2024-03-09T23:59:58Z,8.7,47.3")
    (installation.folder / "stop").unlink(missing_ok=True)
    installation.job("jobs.run_stream", "taxis", "--until-idle")
    tick = run("stream_supervisor")["tick"][1]
    assert tick["late"] == {"taxis": "1 late fix came for 2024-03-09"}
    ran = run("reprocess")
    assert states(ran) == {**planned, "reprocess 0": "success"}
    assert the_day(ran)[:2] == ("2024-03-09", 7)
    assert run("stream_supervisor")["tick"][1]["late"] == {}

    named = {"from_": "2024-03-09", "to": "2024-03-10", "stream": "taxis"}
    assert the_day(run("reprocess", **named)) == ("2024-03-09", 7, False)
    still_open = {"from_": "2024-03-10", "to": "2024-03-11"}
    ran = run("reprocess", **named | still_open)
    assert (states(ran), ran["plan"][1]["open"]) == (nothing, ["taxis"])


def the_day(ran: Mapping[str, Any]) -> tuple[str, int, bool]:
    """The day that a run of `reprocess` was about, its fixes, and whether it had other visits."""
    (day,) = ran["reprocess 0"][1]["streams"]["taxis"]["days"]
    return day["day"], day["fixes"], day["replaced"]


@pytest.mark.spec("C8")
def test_a_closed_day_gets_its_report_and_an_open_one_an_error(
    run: RunDag, installation: Installation
) -> None:
    ran = run("dq_report", engine="local")
    drawn = {"streams": "success", "draw 0": "success"}
    assert states(ran) == {"report": "success", **drawn}
    assert (installation.home.reports / "streams/taxis.html").stat().st_size > 10_000
    (report,) = ran["report"][1]["days"]
    assert (report["day"], report["streams"], report["breaches"]) == (
        "2024-03-09",
        ["taxis"],
        0,
    )
    page = Path(report["path"]).read_text()
    assert "positions/taxis" in page
    assert not re.search(r"(src|href)=\W*(http|//)", page)
    ran = run("dq_report", day="2024-03-11", engine="local")
    assert states(ran) == {"report": "failed", **drawn}


@pytest.mark.spec("C8", "S10")
def test_a_day_that_breaks_its_contract_is_red_and_the_run_says_what_happened(
    dagbag: Any, installation: Installation
) -> None:
    contract = installation.home.root / "data_contracts" / "streams" / "taxis.odcs.yaml"
    contract.parent.mkdir(parents=True)
    contract.write_text(CONTRACT)
    given = {"day": "2024-03-09", "engine": "local", "stream": []}
    result = dagbag.dags["dq_report"].test(run_conf=given)
    contract.unlink()
    tasks = {ti.task_id: ti for ti in result.get_task_instances()}
    assert {name: str(ti.state) for name, ti in tasks.items()} == {
        "report": "failed",
        "streams": "success",
        "draw": "success",
    }
    note = tasks["report"].xcom_pull(task_ids="report", key=NOTE)
    assert note.startswith(
        "data below what its contract promises: "
        "taxis: 2024-03-09 has 7 fixes: does the feed still deliver?, days 1, "
    )
    (alert,) = [one for one in read_alerts(installation.home) if "quality" in one.text]
    assert (alert.stream, alert.level) == ("taxis", "error")
    assert "2024-03-09 has 7 fixes" in alert.text


@pytest.mark.spec("C8")
def test_a_backfill_reports_the_day_of_each_of_its_intervals_anew(
    dagbag: Any, installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.serialization.definitions.dag import SerializedDAG
    from airflow.utils.types import DagRunType

    create = SerializedDAG.create_dagrun

    def create_backfilled(self: Any, **given: Any) -> Any:
        run_id = f"backfill__{given['logical_date'].isoformat()}"
        given |= {"run_type": DagRunType.BACKFILL_JOB, "run_id": run_id}
        return create(self, **given)

    monkeypatch.setattr(SerializedDAG, "create_dagrun", create_backfilled)
    for day in (11, 12, 13):
        installation.arrives(f"a,2024-03-{day}T08:00:00Z,8.7,47.3")
    installation.job("jobs.run_stream", "taxis", "--until-idle")
    days = []
    for day in (9, 10, 11):
        # An interval ends at the time at which a scheduled run of it would begin.
        ended = datetime(2024, 3, day + 1, 3, tzinfo=UTC)
        # The form is empty: `test` keeps in the DAG what an earlier one was filled with.
        result = dagbag.dags["dq_report"].test(
            logical_date=ended, run_conf={"day": None, "engine": "local"}
        )
        tasks = {ti.task_id: ti for ti in result.get_task_instances()}
        assert {str(ti.state) for ti in tasks.values()} == {"success"}
        told = tasks["report"].xcom_pull(task_ids="report")
        days += [each["day"] for each in told["days"]]
    assert days == ["2024-03-09", "2024-03-10", "2024-03-11"]


@pytest.mark.spec("C2", "C3", "B4")
def test_space_is_partitioned_by_the_form_and_a_layer_by_these_regions(
    run: RunDag, installation: Installation, shared: Path
) -> None:
    osm = shared / "data" / "osm-monaco" / "monaco-2022-07-19-nochangesets.osm.pbf"
    monaco = {"group": "monaco", "source": str(osm)}
    by_elements = partitioned(run, monaco, strategy="elements", first=900, regions=5)[0]
    assert by_elements.items() >= {"version": 1, "regions": 5, "chosen": 900}.items()
    by_sample, page = partitioned(run, monaco, strategy="sample", share=0.5, regions=8)
    assert by_sample.items() >= {"version": 2, "tree": "sedona", "note": ""}.items()
    assert by_sample["rows"] > by_elements["rows"] > 900
    most = {"strategy": "thresholds", "upper": by_sample["rows"] * 3 // 5}
    halves = partitioned(run, monaco | {"group": "halves"}, **most)[0]
    wanted = {"version": 1, "strategy": "thresholds", "regions": 2}
    assert halves.items() >= wanted.items()
    for made in (by_elements, by_sample):
        assert f"Version {made['version']}: {made['strategy']}" in page
        assert f"standard deviation {made['std_deviation']:,.1f}." in page
        assert f">{made['std_deviation_workers']:,.1f}</td>" in page
    assert not re.search(r"(src|href)=\W*(http|//)", page)
    assert states(run("prepartition", group="monaco", source="absent.csv")) == {
        "partition": "failed"
    }
    loaded = parks_loaded(run, group="monaco", file=str(osm))
    assert loaded["rows"] >= loaded["features"] > 10
    folders = list(installation.home.table("layers", "green").glob("region_id=*"))
    assert 1 < len(folders) <= by_sample["regions"]
    green = {"layers": ["green=park,forest"], "engine": "local"}
    assert states(run("osm_static_load", **green, file="absent.osm.pbf")) == {
        "layers": "success",
        "load_layer 0": "failed",
        "rebalance": "success",
        "all_loaded": "upstream_failed",
    }


def partitioned(run: RunDag, source: dict[str, str], **how: Any) -> tuple[Any, str]:
    """What a run of `prepartition` says of its regions, and the page with their picture."""
    ran = run("prepartition", **source, **how)
    assert states(ran) == {"partition": "success"}
    return ran["partition"][1], Path(ran["partition"][1]["path"]).read_text()


def parks_loaded(run: RunDag, **source: str) -> Any:
    """What a run of `osm_static_load` says of parks and forests, loaded beside a layer that could not be."""
    layers = ["green=park,forest", "none=unknown_kind"]
    ran = run("osm_static_load", layers=layers, engine="local", **source)
    assert states(ran) == {
        "layers": "success",
        "load_layer 0": "success",
        "load_layer 1": "failed",
        "rebalance": "success",
        "all_loaded": "upstream_failed",
    }
    loaded = ran["load_layer 0"][1]
    assert set(loaded["by_kind"]) == {"park", "forest"}
    return loaded
