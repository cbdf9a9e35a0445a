"""Airflow as a data team has it, on PostgreSQL: forms that refuse, runs by REST, backfills, what is killed, pages."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from playwright.sync_api import Locator, Page, Response, expect

from st_common import tables
from st_common.config.home import Home
from st_common.layers.table import newest_version
from st_common.log.log import Log
from st_common.operations.alerts import read_alerts
from st_common.operations.status import read_status
from st_common.partitioning.store import current
from tests.kit.installation import ROOT, Installation, wait
from tests.kit.local_airflow.postgres import DATABASE, USER, find_programs
from tests.kit.local_airflow.services import service_owner
from tests.kit.local_airflow.setup import airflow_environment
from tests.kit.served_airflow import Served

# The first test waits for the start of all of it.
pytestmark = pytest.mark.timeout(1500)

PARKS = json.dumps(
    {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "id": name,
                "properties": {"leisure": "park"},
                "geometry": {"type": "Point", "coordinates": place},
            }
            for name, place in (("a", [8.5, 47.3]), ("b", [8.6, 47.5]))
        ],
    }
)
DAYS = ("2024-03-09", "2024-03-10", "2024-03-11")


def refused(served: Served, path: str, **body: Any) -> str:
    """What Airflow says when it refuses a request as wrong."""
    answer = served.rest.call("POST", path, **body)
    assert answer.status_code == 400, answer.text
    return str(answer.json()["detail"])


@pytest.mark.spec("C3")
def test_a_form_refuses_what_is_wrong_and_what_it_does_not_have(
    served: Served,
) -> None:
    runs = "dags/prepartition/dagRuns"
    for form, said in (
        ({"regions": "many"}, "Invalid input for param regions"),
        ({"strategy": "guess"}, "Invalid input for param strategy"),
        ({"share": 1.5}, "Invalid input for param share"),
    ):
        assert said in refused(served, runs, logical_date=None, conf=form)
    assert served.rest.get(runs)["total_entries"] == 0
    run = served.rest.trigger("prepartition", regionen=8)
    assert served.rest.ended("prepartition", run, within_s=300) == "failed"
    assert "has no parameter 'regionen'" in (noted(served, "prepartition", run) or "")


WRONG = {
    "osm_static_load": {"file": "x.osm.pbf", "layers": "No Name"},
    "prepartition": {"group": "No Name"},
    "reprocess": {"stream": "--home"},
    "stream_supervisor": {"retry": "../x"},
    "dq_report": {"stream": "No Name"},
}
"""For each DAG what its form is filled in with, one of which is wrong."""
CHOSEN = ("maintenance", "rebalance")
"""Those whose fields only offer what is right."""
BACKFILLED = ("reprocess", "dq_report")
"""Those that work on their interval."""
ROWS = {
    "osm_static_load": "C2",
    "prepartition": "C3",
    "rebalance": "C3",
    "stream_supervisor": "C4",
    "maintenance": "C5",
    "reprocess": "C6",
    "dq_report": "C8",
}
"""The row of the specification that each is for."""


def each_of(*dags: str) -> pytest.MarkDecorator:
    """Runs a test for each of some DAGs, which proves something of its row."""
    marked = [pytest.param(dag, marks=pytest.mark.spec(ROWS[dag])) for dag in dags]
    return pytest.mark.parametrize("dag", marked)


@pytest.mark.spec("C9")
@each_of(*WRONG, *CHOSEN)
def test_the_page_of_every_dag_refuses_a_wrong_value_and_a_backfill_that_means_nothing(
    served: Served, page: Page, dag: str
) -> None:
    assert sorted([*WRONG, *CHOSEN]) == sorted(
        path.stem for path in (ROOT / "dags").glob("[a-z]*.py")
    )
    path = f"dags/{dag}/dagRuns?run_type=manual"
    before = served.rest.get(path)["total_entries"]
    form = opened(served, page, dag)
    offered = form.locator('input[value="backfill"]')
    if dag in BACKFILLED:
        expect(offered).to_be_enabled()
    else:
        expect(offered).to_be_disabled()
        days = {"from_date": f"{DAYS[0]}T00:00Z", "to_date": f"{DAYS[-1]}T23:00Z"}
        said = refused(served, "backfills", dag_id=dag, **days)
        assert "does not allow backfill" in said
    unpause = form.get_by_text("on trigger")
    if unpause.count():
        unpause.click()
    if dag in CHOSEN:
        if not form.locator("#element_engine").is_visible():
            form.get_by_text("Run Parameters").click()
        form.locator("#element_engine").click()
        assert page.get_by_role("option").all_inner_texts() == ["spark", "local"]
        runs = f"dags/{dag}/dagRuns"
        said = refused(served, runs, logical_date=None, conf={"engine": "flink"})
        assert "Invalid input for param engine" in said
        return
    for name, text in WRONG[dag].items():
        form.locator(f'[name="element_{name}"]').fill(text)
    with page.expect_response(lambda one: one.url.endswith("/dagRuns")) as answer:
        form.get_by_role("button", name="Trigger").click()
    assert answer.value.status == 400
    assert "Invalid input for param" in answer.value.json()["detail"]
    page.get_by_text("Failed to Trigger Dag").first.wait_for()
    assert served.rest.get(path)["total_entries"] == before


@pytest.mark.spec("C4", "C9", "X6")
def test_a_stream_is_started_brought_back_after_a_kill_and_stopped(
    served: Served, page: Page
) -> None:
    installation = served.installation
    installation.register(
        "REGISTER QUERY all_of_it AS SELECT * FROM taxis INSIDE (8, 47, 9, 48)"
    )
    for day in range(9, 13):
        installation.arrives(
            f"a,2024-03-{day:02}T08:00:00Z,8.5,47.3",
            f"b,2024-03-{day:02}T08:00:05Z,8.6,47.5",
        )
    wait(lambda: waits(served) == 2, "home and stream are watched")
    installation.set(running=True)
    wait(lambda: installation.committed() > 0, "the first rows are committed")
    killed = installation.pid()
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    wait(lambda: installation.pid() is None, "the engine is gone")
    position = installation.committed()
    installation.arrives("a,2024-03-13T08:00:00Z,8.5,47.3")
    wait(lambda: installation.pid() not in (None, killed), "it is brought back")
    wait(lambda: installation.committed() > position, "the rows after it are committed")
    status = read_status(installation.folder)
    assert status is not None
    assert status.epoch == 2
    first = read_alerts(installation.home)[0]
    assert (first.level, first.text.split(":")[0]) == ("error", "dead")

    installation.set(running=False)
    wait(lambda: installation.pid() is None, "the engine is stopped")

    wait(lambda: waits(served) == 2, "home and stream are watched again")
    run = pressed(
        served, opened(served, page, "stream_supervisor"), "stream_supervisor"
    )
    state = served.rest.ended("stream_supervisor", run, within_s=300)
    assert state == "success", "what watched made room"
    runs = served.rest.get("dags/stream_supervisor/dagRuns")["dag_runs"]
    failed = [run["dag_run_id"] for run in runs if run["state"] == "failed"]
    notes = {run: noted(served, "stream_supervisor", run) or "" for run in failed}
    (red,) = (run for run, note in notes.items() if "taxis: dead: " in note)
    assert len(failed) == 1, notes
    assert served.tasks("stream_supervisor", red) == {
        "tick": "success",
        "wards": "success",
        "watch[0]": "success",
        "watch[1]": "failed",
    }
    assert len(runs) < 15, "a run lasts until there is something to do"


def waits(served: Served) -> int:
    """How many tasks of the supervisor wait without a worker."""
    path = "dags/stream_supervisor/dagRuns/~/taskInstances?state=deferred"
    return int(served.rest.get(path)["total_entries"])


@pytest.mark.spec("C2", "C3", "C9")
def test_the_form_in_the_page_partitions_and_layers_and_streams_follow(
    served: Served, page: Page, tmp_path: Path
) -> None:
    home = served.installation.home
    file = tmp_path / "parks.geojson"
    file.write_text(PARKS)
    form = opened(served, page, "osm_static_load")
    form.locator('[name="element_file"]').fill(str(file))
    form.locator('[name="element_layers"]').fill("parks")
    run = pressed(served, form, "osm_static_load")
    assert served.rest.ended("osm_static_load", run, within_s=600) == "success"
    layers = ["parks", "none=unknown"]
    given = {"layers": layers, "file": str(file), "engine": "local"}
    run = served.rest.trigger("osm_static_load", **given)
    assert served.rest.ended("osm_static_load", run, within_s=600) == "failed"
    assert served.tasks("osm_static_load", run) == {
        "layers": "success",
        "load_layer[0]": "success",
        "load_layer[1]": "failed",
        "rebalance": "success",
        "all_loaded": "upstream_failed",
    }
    note = noted(served, "osm_static_load", run) or ""
    assert "load_layer: parks: " in note
    assert "load_layer: none: wrong settings: " in note
    assert regions_with(home, "parks") == {"0"}

    page.goto(f"{served.setup.url}/dags")
    page.get_by_text("stream_supervisor").first.wait_for()
    shot(page, "dags")
    form = opened(served, page, "prepartition")
    form.locator("#element_strategy").click()
    page.get_by_role("option", name="elements").click()
    form.locator('[name="element_first"]').fill("4")
    form.locator('[name="element_regions"]').fill("2")
    shot(page, "form")
    pressed(served, form, "prepartition")

    wait(lambda: current(home, "default").version == 1, "regions are stored")
    assert len(current(home, "default").region_id) == 2
    wait(lambda: newest_version(home, "parks") == 3, "the layer follows by itself")
    assert len(regions_with(home, "parks")) == 2
    wait(lambda: told(home)[-1:] == [3], "the stream is told")
    assert told(home) == [1, 2, 3]


def opened(served: Served, page: Page, dag: str) -> Locator:
    """The form of a DAG in the page of Airflow."""
    page.goto(f"{served.setup.url}/dags/{dag}")
    page.get_by_role("button", name="Trigger Dag").click()
    form = page.get_by_role("dialog")
    form.get_by_role("button", name="Trigger").wait_for()
    return form


def pressed(served: Served, form: Locator, dag: str) -> str:
    """Presses the button of a form; the id of the run that comes of it."""
    path = f"dags/{dag}/dagRuns?run_type=manual&order_by=-run_after&limit=1"

    def newest() -> str:
        runs = served.rest.get(path)["dag_runs"]
        return str(runs[0]["dag_run_id"]) if runs else ""

    before = newest()
    form.get_by_role("button", name="Trigger").click()
    wait(lambda: newest() != before, f"{dag} runs")
    return newest()


def regions_with(home: Home, layer: str) -> set[str]:
    """The regions in which a layer has features."""
    rows = tables.read(home.table("layers", layer), columns=["region_id"])
    return set(rows["region_id"].to_pylist())


def told(home: Home) -> list[int]:
    """The versions of layers that the log of the stream names."""
    log = Log(home.log("taxis"))
    rows = (log.read(segment).splitlines() for segment in log.control_segments(0))
    said = [json.loads(line) for lines in rows for line in lines]
    return [row["version"] for row in said if row["op"] == "layer"]


def noted(served: Served, dag: str, run: str) -> str | None:
    """The note of a run."""
    note: str | None = served.rest.get(f"dags/{dag}/dagRuns/{run}")["note"]
    return note


@pytest.mark.spec("C9")
@each_of("prepartition", "rebalance", "reprocess", "maintenance", "dq_report")
def test_a_dag_that_is_pressed_with_its_defaults_begins_its_work(
    served: Served, page: Page, dag: str
) -> None:
    """Beside them `stream_supervisor` and `osm_static_load`, which other tests press. Two of these run to their end."""
    if dag in ("dq_report", "maintenance"):  # last night's run begins, and comes first
        served.rest.unpause(dag)
        page.wait_for_timeout(10_000)
        end_all(served, dag)
    run = pressed(served, opened(served, page, dag), dag)
    if dag in ("rebalance", "reprocess"):
        state = served.rest.ended(dag, run, within_s=900)
        assert state == "success", (noted(served, dag, run), served.tasks(dag, run))
        return
    wait(
        lambda: bool({"running", "success"} & {*served.tasks(dag, run).values()}),
        f"a task of {dag} is at work",
    )
    end_all(served, dag)


def runs_of(served: Served, dag: str, *kinds: str) -> list[str]:
    """The ids of the runs of a DAG, all or of some kinds: backfill, manual."""
    asked = "&".join(f"run_type={kind}" for kind in kinds)
    runs = served.rest.get(f"dags/{dag}/dagRuns?{asked}")["dag_runs"]
    return [run["dag_run_id"] for run in runs]


def end_all(served: Served, dag: str) -> None:
    """Ends every run of a DAG as a person does who marks it as failed: its jobs are killed."""
    for run in runs_of(served, dag):
        path = f"dags/{dag}/dagRuns/{run}"
        assert served.rest.call("PATCH", path, state="failed").is_success


@pytest.mark.spec("C9")
def test_streams_maps_and_reports_are_within_reach_of_the_page(
    served: Served, page: Page
) -> None:
    run = served.rest.trigger("dq_report", stream=["taxis"], engine="local")
    served.rest.ended("dq_report", run, within_s=600)  # red where data break a rule
    note = noted(served, "dq_report", run) or ""
    assert "draw: taxis: pages 1, without_fixes 0" in note
    page.goto(f"{served.setup.url}/")
    page.get_by_role("link", name="Fairway", exact=True).click()
    frame = page.frame_locator("iframe")
    frame.get_by_role("cell", name="taxis", exact=True).first.wait_for()
    frame.get_by_text("dead: its process").first.wait_for()
    shot(page, "fairway")
    frame.get_by_role("link", name="taxis").click()
    frame.get_by_text("report of").wait_for()
    frame.get_by_label("Legend").wait_for()
    shown = page.frames[1]
    shown.wait_for_function(
        "() => fairwayPage.place.view?.streams.get('taxis')?.count > 0"
    )
    shot(page, "map")

    import httpx

    links = f"dags/dq_report/dagRuns/{run}/taskInstances/draw/links?map_index=0"
    shown_links = served.rest.get(links)["extra_links"]
    assert shown_links["Live page"] == f"{served.setup.url}/fairway/page#tab=queries"
    report = shown_links["Report"]
    assert report == f"{served.setup.url}/fairway/reports/streams/taxis.html"
    with httpx.Client(timeout=60) as session:
        assert session.get(report).status_code == 401
        session.headers["Authorization"] = f"Bearer {served.rest.token}"
        answer = session.get(report)
        assert answer.status_code == 200
        assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
        reports = f"{served.setup.url}/fairway/reports"
        for path in (
            "..%2fconf%2fstreams.toml",
            "streams%2f..%2f..%2fjudged.json",
            "no.html",
        ):
            assert session.get(f"{reports}/{path}").status_code == 404, path


@pytest.mark.spec("C9", "P10")
def test_the_live_page_opens_from_the_navigation_or_it_is_said_that_nothing_serves(
    served: Served, page: Page
) -> None:
    import httpx

    address = f"{served.setup.url}/fairway/page"
    assert httpx.get(address, timeout=60).status_code == 401
    page.goto(f"{served.setup.url}/")
    link = page.locator(f'a[href="{address}"]')

    def open_it() -> Page:
        """What opens by the entry below Browse."""
        page.get_by_role("button", name="Browse").click()
        with page.context.expect_page() as opened:
            link.click()
        return opened.value

    absent = open_it()
    absent.get_by_text("does not answer").wait_for()
    assert served.page_url in absent.inner_text("body")
    absent.close()

    installation = served.installation
    port = served.page_url.rpartition(":")[2]
    command = ["-m", "st_common.cli", "--home", str(installation.home.root)]
    command += ["serve", "--no-engines", "--port", port]
    environment = {**os.environ, "FAIRWAY_CONF": str(installation.conf)}
    server = subprocess.Popen([sys.executable, *command], cwd=ROOT, env=environment)
    try:
        with httpx.Client(timeout=60) as session:
            session.headers["Authorization"] = f"Bearer {served.rest.token}"
            wait(
                lambda: session.get(address).status_code == 303,
                "the page is served",
            )
        live = open_it()
        live.wait_for_function("() => globalThis.fairwayPage !== undefined")
        assert live.url.startswith(served.page_url)
        live.close()
    finally:
        server.terminate()
        server.wait(timeout=60)


@pytest.mark.spec("C6", "C9", "X6")
def test_a_backfill_of_all_streams_from_the_page_survives_the_death_of_the_scheduler(
    served: Served, page: Page
) -> None:
    add_buses(served.installation)
    form = backfill(served, page, "reprocess", DAYS[0], DAYS[-1])
    form.get_by_text("3 runs will be triggered").wait_for()
    shot(page, "backfill")
    assert sent(page, form).status == 200
    wait(lambda: "running" in backfilled(served, "reprocess"), "a run of it begins")
    kill_scheduler(served)
    assert served.restart() == ["scheduler"]
    wait(
        lambda: backfilled(served, "reprocess") == ["success"] * 3,
        "all days are processed",
    )
    for run in runs_of(served, "reprocess", "backfill"):
        assert served.tasks("reprocess", run) == {
            "plan": "success",
            "runs": "success",
            "reprocess[0]": "success",
            "reprocess[1]": "success",
        }
    home = served.installation.home
    for stream, objects in (("taxis", {"a", "b"}), ("buses", {"c"})):
        visits = tables.read(home.table("visits", stream))
        assert {str(day) for day in visits["event_date"].to_pylist()} >= set(DAYS)
        assert set(visits["object"].to_pylist()) == objects


@pytest.mark.spec("C8", "C9")
def test_a_backfill_from_the_page_reports_a_day_as_its_form_says_where_that_is_to_count(
    served: Served, page: Page
) -> None:
    """Airflow sends what the form says only where a box is ticked, and checks it then."""
    for stream, status in (("No Name", 422), ("taxis", 200)):
        form = backfill(served, page, "dq_report", DAYS[0], DAYS[0])
        form.get_by_text("1 run will be triggered").wait_for()
        form.get_by_text("Override parameters on existing runs").click()
        form.locator("#element_engine").click()
        page.get_by_role("option", name="local").click()
        form.locator('[name="element_stream"]').fill(stream)
        assert sent(page, form).status == status
    wait(
        lambda: backfilled(served, "dq_report") == ["success"], "the day has its report"
    )
    (run,) = runs_of(served, "dq_report", "backfill")
    given = served.rest.get(f"dags/dq_report/dagRuns/{run}")["conf"]
    assert given == {"day": None, "engine": "local", "stream": ["taxis"]}
    assert (served.installation.home.reports / "quality" / f"{DAYS[0]}.html").exists()


def add_buses(installation: Installation) -> None:
    """A second stream, which does not run, with the same days."""
    settings = installation.conf / "streams.toml"
    text = settings.read_text()
    assert "running = false" in text
    settings.write_text(text + text.replace("streams.taxis", "streams.buses"))
    installation.register(
        "REGISTER QUERY all_buses AS SELECT * FROM buses INSIDE (8, 47, 9, 48)"
    )
    rows = [f"c,2024-03-{day:02}T08:00:00Z,8.5,47.3" for day in range(9, 13)]
    installation.arrives(*rows, stream="buses")
    installation.job("jobs.run_stream", "buses", "--until-idle")


def backfill(served: Served, page: Page, dag: str, first: str, last: str) -> Locator:
    """The form of a backfill in the page of Airflow, with its defaults, for some days."""
    opened(served, page, dag).get_by_text("Backfill", exact=True).click()
    form = page.get_by_role("dialog").filter(has_text="Run Backfill")
    picker = page.locator('[data-scope="popover"][data-part="content"]:visible')
    for field, (day, time) in enumerate(((first, "00:00"), (last, "23:00"))):
        form.get_by_test_id("datetime-input").nth(field).click()
        picker.get_by_placeholder("YYYY/MM/DD").fill(day.replace("-", "/"))
        picker.get_by_placeholder("HH:mm").fill(time)
        page.keyboard.press("Escape")
        picker.wait_for(state="detached")
    return form


def sent(page: Page, form: Locator) -> Response:
    """Presses the button of a backfill; what Airflow answers."""
    with page.expect_response(lambda one: one.url.endswith("/backfills")) as answer:
        form.get_by_role("button", name="Run Backfill").click()
    return answer.value


def backfilled(served: Served, dag: str) -> list[str]:
    """The states of the runs that backfills made."""
    runs = served.rest.get(f"dags/{dag}/dagRuns?run_type=backfill")["dag_runs"]
    return [run["state"] for run in runs]


@pytest.mark.spec("S4")
def test_old_rows_of_the_database_of_airflow_are_deleted_and_no_others(
    served: Served,
) -> None:
    def told() -> int:
        return int(served.rest.get("eventLogs?limit=1")["total_entries"])

    before = told()
    psql(served, "UPDATE log SET dttm = dttm - interval '91 days' WHERE id <= 2")
    assert before > 2
    python = ROOT / ".venv-airflow" / "bin" / "python"
    script = ROOT / "docker" / "clean_airflow.py"
    environment = airflow_environment(
        served.setup, home=served.installation.home.root, conf=served.installation.conf
    )
    subprocess.run(
        [python, script, "--keep-days", "90"], env=environment, check=True, timeout=600
    )
    rest = told()
    assert before - 2 <= rest < before + 20, "new ones may have come meanwhile"
    assert psql(served, "SELECT count(*) FROM log WHERE id <= 2") == "0"
    assert served.rest.get("dags/reprocess")["is_paused"] is False


def psql(served: Served, statement: str) -> str:
    """What the database of Airflow answers, without headings."""
    place = ["--host=127.0.0.1", f"--port={served.setup.database_port}"]
    who = [f"--username={USER}", f"--dbname={DATABASE}", "--no-password"]
    done = subprocess.run(
        [find_programs() / "psql", *place, *who, "--quiet", "--tuples-only"],
        input=statement,
        env={"PGPASSWORD": served.setup.database_password},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.strip()


def kill_scheduler(served: Served) -> None:
    """Kills the scheduler and the process that keeps its time, as kill -9 does; its workers are left to themselves."""
    keeper = service_owner(served.setup, "scheduler")
    assert keeper is not None
    process = psutil.Process(keeper.pid)
    for one in (process, *process.children()):
        one.kill()
    wait(lambda: not psutil.pid_exists(keeper.pid), "the scheduler is gone")


def shot(page: Page, name: str) -> None:
    """Writes a picture of the page into the folder FAIRWAY_SCREENSHOTS, when there is one."""
    folder = os.environ.get("FAIRWAY_SCREENSHOTS")
    if folder:
        page.wait_for_timeout(1500)
        page.screenshot(path=f"{folder}/{name}.png")
