"""A disk that takes nothing: the supervisor alerts, looks after all that it can, and says it in one line (S2, C4)."""

import errno
import json
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from st_common import tables
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.errors import StorageError
from st_common.operations.alerts import read_alerts, tell
from st_common.processes.supervise import main as supervise
from st_common.storage import local

STREAM = """
[streams.{name}]
format = "csv"
crs = "planar"
columns = {{ object = "id", x = "x", y = "y" }}
"""
FULL = os.strerror(errno.ENOSPC)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "conf").mkdir()
    for name in (
        "a",
        "b",
    ):  # streams that were launched from here once, and shall run no more
        (tmp_path / "streams" / name).mkdir(parents=True)
        (tmp_path / "streams" / name / "engine.json").write_text("{}")
    settings = (
        STREAM.format(name="a")
        + "running = 1\n"
        + STREAM.format(name="b")
        + "running = 1\n"
    )
    (tmp_path / "conf" / "streams.toml").write_text(settings)
    return Home(tmp_path)


def refusing(monkeypatch: pytest.MonkeyPatch, is_full: Callable[[Path], bool]) -> None:
    """The disk takes nothing of some files."""
    write = local.LocalStorage._write_draft

    def full(
        self: local.LocalStorage, draft: Path, data: bytes, *, private: bool = False
    ) -> None:
        if is_full(draft):
            raise OSError(errno.ENOSPC, FULL, str(draft))
        write(self, draft, data, private=private)

    monkeypatch.setattr(local.LocalStorage, "_write_draft", full)


@pytest.mark.spec("S2", "C4")
def test_a_tick_alerts_and_looks_after_the_streams_whose_files_the_disk_takes(
    home, monkeypatch, capsys
):
    refusing(monkeypatch, lambda draft: draft.parent.name == "a")
    assert supervise(["--home", str(home.root)]) == 0
    said = [(alert.stream, alert.level, alert.text) for alert in read_alerts(home)]
    memory = home.stream("a") / "supervisor.json"
    assert [stream for stream, _, text in said if text.startswith("bad_config")] == [
        "a",
        "b",
    ]
    assert [one for one in said if not one[2].startswith("bad_config")] == [
        (
            "a",
            "error",
            f"it is left as it is: {memory}: {FULL} (free some space; whoever wrote goes on where it was)",
        )
    ]
    assert (home.stream("b") / "supervisor.json").exists()
    alerts = json.loads(capsys.readouterr().out.splitlines()[-1])["alerts"]
    assert [alert["stream"] for alert in alerts] == ["a", "b"]


@pytest.mark.spec("S2", "C4")
def test_a_tick_that_cannot_even_begin_alerts_and_ends_with_a_line(
    home, monkeypatch, capsys
):
    opened = Path.open

    def read_only(path: Path, *args: object, **options: object) -> object:
        if path.name == ".supervisor.lock":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return opened(path, *args, **options)

    monkeypatch.setattr(Path, "open", read_only)
    assert supervise(["--home", str(home.root)]) == 75
    line = f"{home.root / '.supervisor.lock'}: Read-only file system (the file system is mounted read-only)"
    assert capsys.readouterr().err.splitlines()[-1] == f"error: {line}"
    (alert,) = read_alerts(home)
    assert (alert.stream, alert.level, alert.text) == (
        "supervisor",
        "error",
        f"nothing is looked after: {line}",
    )


@contextmanager
def at_most(size: int) -> Iterator[None]:
    """No file can become larger than so many bytes, as on a disk on which not even a whole line is left."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.spec("S2")
@pytest.mark.parametrize("is_new", [True, False])
def test_rows_that_the_disk_does_not_take_are_one_line_that_names_the_table(
    tmp_path, is_new
):
    """What delta-rs and Arrow raise names no file, and delta-rs not even the number of the error."""
    contract = load_contract("queries")
    row = {"name": "q", "version": 1, "op": "drop", "position": 0, "stream": "s"}
    rows = pa.Table.from_pylist([row], contract.arrow_schema())
    if not is_new:
        tables.append(tmp_path / "t", rows, contract, app="x", version=1)
    with at_most(10), pytest.raises(StorageError) as refused:
        tables.append(tmp_path / "t", rows, contract, app="x", version=2)
    assert (
        str(refused.value)
        == f"{tmp_path / 't'}: File too large (a limit on the size of files is in the way)"
    )
    tables.append(tmp_path / "t", rows, contract, app="x", version=2)


@pytest.mark.spec("S2", "C4")
def test_an_alert_of_which_the_disk_takes_half_goes_to_stderr_and_spoils_no_other(
    tmp_path, capsys
):
    home = Home(tmp_path)
    tell(home, "s", "first")
    with at_most((tmp_path / "alerts.jsonl").stat().st_size + 20):
        tell(home, "s", "second")
    assert "alert: s: second (not kept: " in capsys.readouterr().err
    tell(home, "s", "third")
    assert [alert.text for alert in read_alerts(home)] == ["first", "third"]
