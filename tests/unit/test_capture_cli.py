"""`fairway replay`."""

import errno
import gzip
import json
import os
import tempfile
import threading
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from st_common.cli.frame import FairwayCommand, FairwayGroup
from st_common.cli.replay import replay
from st_common.log.log import Log

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
    return lambda *args, **more: CliRunner().invoke(
        app, ["replay", *map(str, args)], **more
    )


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


@pytest.mark.spec("B6")
@pytest.mark.parametrize("packed", [False, True])
def test_standard_input_is_a_file_that_ends_with_it(run, tmp_path: Path, packed):
    data = gzip.compress(DATA) if packed else DATA
    found = run("cars", "-", "--rate", "event", "--speed", "1000", input=data)
    assert found.exit_code == 0, found.stderr
    *told, end = segments(tmp_path)
    assert b"".join(told).replace(DATA[:10], b"") == DATA[10:]
    assert json.loads(end) == {"op": "end"}
    more = run("cars", "-", "--no-end", "--live", input=DATA)
    assert more.stdout.startswith("cars: 3 records in 1 segments")
    assert segments(tmp_path)[-1] == DATA


@pytest.mark.spec("B6")
def test_a_named_pipe_is_read_to_its_end(run, tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writing = threading.Thread(target=pipe.write_bytes, args=(DATA,), daemon=True)
    writing.start()
    found = run("cars", pipe)
    writing.join(timeout=100)
    assert found.stdout == "cars: 3 records in 1 segments, from 0 on\n"
    assert segments(tmp_path)[0] == DATA


@pytest.mark.parametrize(
    "data", [b"id;ts;x;y\na;1;2;3\n", DATA[:10] + b"a,x,y,z\n" * 3]
)
def test_what_is_wrong_is_told_of_standard_input(run, tmp_path: Path, data):
    found = run("cars", "-", input=data)
    assert (found.exit_code, segments(tmp_path)) == (2, [])
    assert "records of standard input are nothing" in found.stderr
    assert run("cars", "-", "--force", input=data).exit_code == 0


def test_no_room_for_what_comes_by_a_pipe_is_told(run, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def full(_source, _target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("st_common.replay.source.shutil.copyfileobj", full)
    found = run("cars", "-", input=DATA)
    assert found.exit_code == 75
    assert "No space left on device" in found.stderr
    assert "TMPDIR" in found.stderr
    assert not list(tmp_path.glob("fairway-*"))


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
