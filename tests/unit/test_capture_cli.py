"""`fairway replay`."""

import gzip
import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from st_common.capture.log import Log
from st_common.cli.capture import replay
from st_common.cli.frame import FairwayCommand, FairwayGroup

SETTINGS = """
[streams.cars]
format = "csv"
columns = { object = "id", event_ts = "ts", x = "x", y = "y" }
time_unit = "s"
"""
DATA = b"id,ts,x,y\na,1,2,3\nb,2,3,4\nc,3,4,5\n"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs `fairway replay` with a home folder that describes one stream."""
    app = typer.Typer(cls=FairwayGroup, rich_markup_mode=None)
    app.callback()(lambda: None)
    app.command("replay", cls=FairwayCommand)(replay)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(SETTINGS)
    monkeypatch.delenv("FAIRWAY_CONF", raising=False)
    monkeypatch.setenv("FAIRWAY_HOME", str(tmp_path))
    return lambda *args: CliRunner().invoke(app, ["replay", *map(str, args)])


def segments(tmp_path: Path) -> list[bytes]:
    log = Log(tmp_path / "streams" / "cars" / "log")
    return [log.read(segment) for segment in log.segments(0)]


def test_a_file_goes_into_the_log_and_the_end_is_marked(run, tmp_path: Path):
    (tmp_path / "cars.csv").write_bytes(DATA)
    found = run("cars", tmp_path / "cars.csv")
    assert (found.exit_code, found.stdout) == (
        0,
        "cars: 3 records in 1 segments, from 0 on\n",
    )
    assert segments(tmp_path)[0] == DATA
    assert json.loads(segments(tmp_path)[1]) == {"op": "end"}


def test_the_files_of_a_folder_go_in_the_order_of_their_names_with_one_end(
    run, tmp_path: Path
):
    folder = tmp_path / "cars"
    (folder / "older").mkdir(parents=True)
    for name, data in (("2", b"id,ts,x,y\nz,9,9,9\n"), ("1", DATA), (".3", b"\0")):
        (folder / name).write_bytes(data)
    found = run("cars", folder)
    assert found.stdout == "cars: 4 records in 2 segments, from 0 on\n"
    first, second, end = segments(tmp_path)
    assert (first, second) == (DATA, b"id,ts,x,y\nz,9,9,9\n")
    assert json.loads(end) == {"op": "end"}
    refused = run("cars", folder / "older")
    assert (refused.exit_code, "holds no file" in refused.stderr) == (2, True)


def test_a_rate_and_no_end(run, tmp_path: Path):
    (tmp_path / "cars.csv").write_bytes(DATA)
    assert run("cars", tmp_path / "cars.csv", "--rate", "20", "--no-end").exit_code == 0
    assert (
        run(
            "cars",
            tmp_path / "cars.csv",
            "--rate",
            "event",
            "--speed",
            "1000",
            "--no-end",
        ).exit_code
        == 0
    )
    assert segments(tmp_path) == [DATA, DATA]


def test_a_broken_packed_file_is_kept_as_far_as_it_goes_with_a_warning(
    run, tmp_path: Path
):
    (tmp_path / "cars.csv.gz").write_bytes(gzip.compress(DATA)[:-8])
    found = run("cars", tmp_path / "cars.csv.gz")
    assert found.exit_code == 0
    assert "ends or breaks early" in found.stderr
    assert segments(tmp_path)[0] == DATA


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("ships", "cars.csv"), "there is no stream 'ships' (the settings have cars)"),
        (("cars", "none.csv"), "cannot read none.csv"),
        (("cars", "cars.csv", "--rate", "quick"), "a rate of 'quick'"),
        (("cars", "cars.csv", "--rate", "-1"), "a rate of -1.0"),
    ],
)
def test_wrong_use_is_one_line_and_writes_nothing(
    run, tmp_path: Path, monkeypatch, args, message: str
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cars.csv").write_bytes(DATA)
    found = run(*args)
    assert found.exit_code == 2
    assert message in found.stderr
    assert found.stderr.count("\n") == 1
    assert segments(tmp_path) == []
