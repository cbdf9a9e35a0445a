"""Questions share a database in memory, and nothing else."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from st_common import asking as module
from st_common.asking import asking

ROWS = pa.table({"a": [1, 2]})


def total():
    with asking() as connection:
        connection.register("given", ROWS)
        return connection.sql("SELECT sum(a) FROM given").fetchall()


def test_what_one_registers_sets_and_makes_is_seen_by_no_other():
    with asking() as one, asking() as other:
        before = other.sql("SELECT current_setting('TimeZone')").fetchall()
        one.register("given", ROWS)
        one.execute("SET TimeZone = 'Asia/Tokyo'")
        one.execute("SET VARIABLE until = 1")
        one.execute("CREATE TEMP MACRO twice(a) AS 2 * a")
        for unknown in ("SELECT * FROM given", "SELECT twice(1)"):
            with pytest.raises(duckdb.CatalogException):
                other.sql(unknown)
        asked = "SELECT current_setting('TimeZone'), getvariable('until')"
        assert other.sql(asked).fetchall() == [(*before[0], None)]
    assert total() == [(3,)]


def test_who_is_closed_off_reaches_no_file(tmp_path):
    (tmp_path / "a.csv").write_text("a\n1\n")
    asked = f"SELECT * FROM '{tmp_path / 'a.csv'}'"
    with asking() as connection:
        assert connection.sql(asked).fetchall() == [(1,)]
    with asking(closed_off=True) as connection, pytest.raises(duckdb.Error):
        connection.sql(asked)


def test_a_connection_ends_with_its_question():
    with asking() as connection:
        pass
    with pytest.raises(duckdb.ConnectionException):
        connection.sql("SELECT 1").fetchall()


def test_threads_ask_side_by_side():
    found = []
    threads = [threading.Thread(target=lambda: found.append(total())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[(3,)]] * 8


def test_a_database_that_failed_for_good_is_asked_no_more():
    total()
    with pytest.raises(duckdb.FatalException), asking():
        raise duckdb.FatalException("it answers nothing more")
    assert (os.getpid(), False) not in module._databases
    assert total() == [(3,)]


def test_a_process_does_not_ask_the_database_of_another(monkeypatch):
    total()
    own = module._databases[os.getpid(), False]
    monkeypatch.setattr(module, "_databases", {(os.getpid() + 1, False): own})
    assert total() == [(3,)]
    assert module._databases[os.getpid(), False] is not own


def test_a_process_that_may_open_no_file_is_told_so_and_goes_on():
    """DuckDB itself would end it."""
    text = """
import os, resource
from st_common.asking import opened
opened().close()
usual = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (3, usual[1]))
try:
    opened()
except OSError as error:
    print(error.strerror)
resource.setrlimit(resource.RLIMIT_NOFILE, usual)
print(opened().sql("SELECT 42").fetchall())
"""
    command = [sys.executable, "-c", text]
    told = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=240
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines() == ["Too many open files", "[(42,)]"]


@pytest.mark.parametrize("free", [0, 1, 5, 9])
def test_a_process_with_few_descriptors_is_told_so_of_a_table_and_goes_on(
    tmp_path, free
):
    """With its first table delta-rs panics, which is no `Exception`."""
    write_deltalake(tmp_path / "t", pa.table({"a": [1, 2]}))
    text = f"""
import os, resource
from pathlib import Path
from st_common import tables
usual = resource.getrlimit(resource.RLIMIT_NOFILE)
few = len(os.listdir("/proc/self/fd")) - 1 + {free}
resource.setrlimit(resource.RLIMIT_NOFILE, (few, usual[1]))
try:
    tables.version(Path({str(tmp_path / "t")!r}))
except Exception as error:
    print("Too many open files" in str(error))
resource.setrlimit(resource.RLIMIT_NOFILE, usual)
print(tables.version(Path({str(tmp_path / "t")!r})))
"""
    command = [sys.executable, "-c", text]
    told = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=240
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines() == ["True", "0"]
    assert "panicked" not in told.stderr


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("duckdb.connect(", {"asking.py"}),
        # Contracts stand below tables: one is compared with a table that was opened or made before.
        (" DeltaTable(", {"handle.py", "matching.py"}),
    ],
)
def test_what_needs_descriptors_at_once_is_opened_in_one_place(text, places):
    package = Path(module.__file__).parent
    files = list(package.rglob("*.py"))
    assert len(files) > 100
    assert {path.name for path in files if text in path.read_text()} == places
