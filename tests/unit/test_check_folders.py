"""`fairway check FOLDER` and of a zip: judged as `replay` judges it, every file by one stream's settings."""

import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from st_common.cli import app

pytestmark = pytest.mark.spec("B6")

HEADER = "id,time,lon,lat\n"


def rows(name: str, first: int, *, x: float = 24.9) -> str:
    return "".join(
        f"{name},2025-11-24T08:00:{n:02}Z,{x + n / 1000},60.1\n"
        for n in range(first, first + 5)
    )


class Trial:
    """A home, and a folder of files."""

    def __init__(self, root: Path) -> None:
        self.home, self.folder = root / "home", root / "day"
        (self.home / "conf").mkdir(parents=True)
        self.folder.mkdir()

    def put(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def run(self, *args: str):
        found = CliRunner().invoke(
            app, ["--home", str(self.home), *args], prog_name="fairway"
        )
        assert found.exit_code in (0, 2), found.output
        return found

    def both(self, path: Path):
        return self.run("check", str(path), "--write", "s"), self.run(
            "replay", "s", str(path)
        )


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(tmp_path)


def test_all_files_of_a_folder_are_counted_and_replayed(trial: Trial):
    for at, name in enumerate(("a.csv", "b.csv", "c.csv")):
        trial.put(name, HEADER + rows(name[0], 5 * at, x=24 + at))
    trial.put("empty.csv", "")
    checked, replayed = trial.both(trial.folder)
    assert checked.exit_code == replayed.exit_code == 0, (
        checked.output + replayed.output
    )
    assert "15 of 15 records looked at are fixes" in checked.output
    assert "INSIDE (24, 60.1, 26.014, 60.1)" in checked.output
    assert f"then: fairway replay s {trial.folder}" in checked.output
    assert "15 records" in replayed.output


def test_a_file_that_is_another_kind_is_named_by_check_and_by_replay(trial: Trial):
    trial.put("a.csv", HEADER + rows("a", 0))
    odd = trial.put("b.csv", "id;time;lat;lon\n" + rows("b", 0).replace(",", ";"))
    trial.run("check", str(odd.parent / "a.csv"), "--write", "s")
    for found in (
        trial.run("check", str(trial.folder)),
        trial.run("replay", "s", str(trial.folder)),
    ):
        assert found.exit_code == 2
        assert str(odd) in found.output
        assert 'delimiter = ";"' in found.output


def test_a_folder_of_one_file_a_device_takes_its_objects_from_their_names(trial: Trial):
    for name in ("bus7", "bus8"):
        trial.put(
            f"{name}.csv", "time,lon,lat\n" + rows("", 0).replace("\n,", "\n")[1:]
        )
    checked, replayed = trial.both(trial.folder)
    assert 'object = { from = "file name" }' in checked.output
    assert "10 of 10 records looked at are fixes" in checked.output
    assert "10 records" in replayed.output


def test_a_folder_of_empty_files_holds_nothing(trial: Trial):
    trial.put("a.csv", "")
    trial.put("b.csv", "\n")
    checked = trial.run("check", str(trial.folder))
    assert (checked.exit_code, "all 2 files are empty" in checked.output) == (2, True)


@pytest.mark.parametrize("count", [1, 2])
def test_parquet_in_a_zip_is_checked_as_it_is_replayed(trial: Trial, count: int):
    path = trial.folder / "fixes.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for at in range(count):
            table = pa.table({
                "id": ["a", "b"],
                "time": pa.array([1_764_000_000 + at, 1_764_000_010 + at], pa.timestamp("s", "UTC")),
                "lon": [24.9, 24.91],
                "lat": [60.1, 60.2],
            })  # fmt: skip
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink)
            archive.writestr(f"part{at}.parquet", sink.getvalue().to_pybytes())
    checked, replayed = trial.both(path)
    assert checked.exit_code == replayed.exit_code == 0, (
        checked.output + replayed.output
    )
    assert f"{2 * count} of {2 * count} records looked at are fixes" in checked.output
    assert f"{2 * count} records" in replayed.output


def test_a_folder_is_tried_by_all_of_its_files(trial: Trial):
    trial.put("a.csv", HEADER + rows("a", 0))
    odd = trial.put("b.csv", "id;time;lat;lon\n" + rows("b", 0).replace(",", ";"))
    query = "SELECT * FROM data INSIDE (20, 50, 30, 70)"
    found = CliRunner().invoke(
        app, ["try", str(trial.folder), query], prog_name="fairway"
    )
    assert (found.exit_code, str(odd) in found.output) == (2, True), found.output
    odd.write_text(HEADER + rows("b", 0))
    found = CliRunner().invoke(
        app, ["try", str(trial.folder), query], prog_name="fairway"
    )
    assert found.exit_code == 0, found.output


def test_a_timetable_is_named(trial: Trial):
    path = trial.folder / "gtfs.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("agency.txt", "stops.txt", "trips.txt"):
            archive.writestr(name, "stop_id,stop_lat,stop_lon\n1,60.1,24.9\n")
    checked = trial.run("check", str(path))
    assert checked.exit_code == 2
    assert f"fairway layer load stops {path}" in checked.output


def test_a_stream_of_the_settings_is_tried_on_all_files(trial: Trial):
    trial.put("a.csv", HEADER + rows("a", 0))
    trial.run("check", str(trial.folder), "--write", "s")
    trial.put("b.csv", HEADER.replace("lon", "x") + rows("b", 0))
    found = trial.run("check", str(trial.folder), "--stream", "s")
    assert found.exit_code == 2
    assert "b.csv 0 can be read" in found.output
