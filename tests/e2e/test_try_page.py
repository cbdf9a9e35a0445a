"""`fairway try --page` as a user runs it: the page over a file that is replayed, and nothing left at Ctrl-C."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from tests.kit.installation import ROOT, wait

QUERY = "SELECT * FROM ships INSIDE (24.945, 60.160, 24.965, 60.168)"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.spec("P10")]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process over the sample that comes along, and its address; its folders are below `tmp_path`."""
    argv = [sys.executable, "-m", "st_common.cli", "try", "sample:ships", QUERY]
    said = tmp_path / "said"
    with said.open("wb") as file:
        process = subprocess.Popen(
            [*argv, "--page", "--port", "0", "--speed", "1200"],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
        )
    assert process.stdout is not None
    try:
        first = process.stdout.readline()
        address = re.fullmatch(r"http://127\.0\.0\.1:\d+\n", first)
        assert address is not None, f"{first!r} is no address; {said.read_text()}"
        yield process, address[0].strip()
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_a_file_is_replayed_below_the_page_and_ctrl_c_leaves_no_process_and_no_folder(
    served: tuple[subprocess.Popen[str], str], tmp_path: Path
):
    process, url = served

    def get(path: str) -> httpx.Response:
        return httpx.get(url + path, timeout=60)

    assert "<!doctype html>" in get("/").text.lower()
    wait(lambda: get("/v1/objects?stream=ships").json()["rows"], "ships are known")

    def who() -> set[str]:
        return {one["object"] for one in get("/v1/answers/try").json()["rows"]}

    wait(lambda: who() == {"SUOKKI", "TYRSKY"}, "the answer is that of the whole file")

    below = psutil.Process(process.pid).children(recursive=True)
    assert below
    process.send_signal(signal.SIGINT)
    told, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "1200 x, in 6 s" in told
    _, alive = psutil.wait_procs(below, timeout=60)
    assert alive == []
    assert list(tmp_path.glob("fairway-*")) == []


def test_ctrl_c_ends_a_replay_that_would_take_hours(tmp_path: Path):
    argv = [sys.executable, "-m", "st_common.cli", "try", "sample:ships", QUERY]
    process = subprocess.Popen(
        [*argv, "--page", "--port", "0", "--speed", "0.5"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if "0.5 x" in line:
                break
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
        assert process.returncode == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert list(tmp_path.glob("fairway-*")) == []


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--page", "--answer"], "--page shows changes and answers on the page"),
        (["--speed", "2"], "--speed is of a replay"),
        (["--page", "--speed", "0", "--port", "0"], "--speed 0"),
    ],
)
def test_what_does_not_go_together_is_refused(more: list[str], told: str):
    argv = [sys.executable, "-m", "st_common.cli", "try", "sample:ships", QUERY]
    ended = subprocess.run(
        [*argv, *more],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 2
    assert told in ended.stderr
