"""A whole Airflow on PostgreSQL for the tests of this folder: started once, on loopback, ended by process."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, sync_playwright

from st_common.airflow.live_page import VARIABLE
from st_common.errors import ConfigError
from tests.kit.installation import ROOT, Installation, wait
from tests.kit.local_airflow.postgres import find_programs
from tests.kit.local_airflow.rest import log_in, unhealthy
from tests.kit.local_airflow.services import left_of, start_services, stop_services
from tests.kit.local_airflow.setup import (
    ADMIN,
    Setup,
    airflow_environment,
    make_setup,
)
from tests.kit.ports import free_port
from tests.kit.served_airflow import Served

DAGS = sorted(path.stem for path in (ROOT / "dags").glob("[a-z]*.py"))
UNPAUSED = (
    "stream_supervisor",
    "osm_static_load",
    "prepartition",
    "reprocess",
)
LIMIT_S = 1800
"""Whatever becomes of the tests: after so long no process of theirs is left."""


@pytest.fixture(scope="session")
def chromium() -> str:
    """The program of a headless Chromium."""
    for name in ("chromium-headless-shell", "chromium", "google-chrome"):
        program = shutil.which(name)
        if program is not None:
            return program
    return _missing("no Chromium: apt-get install chromium-headless-shell")


@pytest.fixture(scope="session")
def served() -> Iterator[Served]:
    """Database, API server, scheduler, DAG processor and triggerer, all well, with every DAG read."""
    try:
        find_programs()
    except ConfigError as error:
        _missing(str(error))
    # Not below pytest's folder, nor below TMPDIR: the user of PostgreSQL cannot get into folders of root.
    folder = Path(tempfile.mkdtemp(prefix="fairway-airflow-", dir="/tmp"))
    folder.chmod(0o711)
    setup = make_setup(folder / "airflow")
    installation = Installation(folder)
    environment = airflow_environment(
        setup, home=installation.home.root, conf=installation.conf
    )
    page_url = f"http://127.0.0.1:{free_port()}"
    environment[VARIABLE] = page_url

    def start() -> list[str]:
        return start_services(setup, environment, limit_s=LIMIT_S)

    try:
        start()
        yield _served(setup, installation, start, page_url)
    finally:
        installation.end()
        stop_services(setup)
        rest = list(left_of(setup))
        _keep_logs(setup)
        shutil.rmtree(folder, ignore_errors=True)
    assert rest == []


@pytest.fixture(scope="session")
def page(served: Served, chromium: str) -> Iterator[Page]:
    """A browser of 1280 x 800, logged in."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(120_000)
        page.goto(served.setup.url)
        page.fill('input[name="username"]', ADMIN)
        page.fill('input[name="password"]', served.setup.password)
        page.click('button[type="submit"]')
        page.wait_for_url(f"{served.setup.url}/")
        yield page
        browser.close()


def _served(
    setup: Setup,
    installation: Installation,
    restart: Callable[[], list[str]],
    page_url: str,
) -> Served:
    wait(lambda: not unhealthy(setup), "all parts of Airflow are well")
    rest = log_in(setup)
    rest.set_pools(ROOT / "conf" / "pools.json")
    for dag in DAGS:
        rest.await_dag(dag, within_s=300)
    for dag in (
        UNPAUSED
    ):  # the others would begin a run at once, and these tests ask nothing of them
        rest.unpause(dag)
    return Served(
        setup=setup,
        rest=rest,
        installation=installation,
        restart=restart,
        page_url=page_url,
    )


def _missing(what: str) -> Any:
    if os.environ.get("CI"):
        pytest.fail(f"{what}: under CI nothing may be left out", pytrace=False)
    pytest.skip(what)


def _keep_logs(setup: Setup) -> None:
    """Copies what the processes said to the folder FAIRWAY_KEEP_LOGS, for whoever looks for a cause."""
    target = os.environ.get("FAIRWAY_KEEP_LOGS")
    if target:
        shutil.copytree(setup.logs, target, dirs_exist_ok=True)
