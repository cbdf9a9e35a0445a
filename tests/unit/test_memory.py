"""A process that keeps what it freed takes it again, in place of new pages of the system."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

POOL = "ARROW_DEFAULT_MEMORY_POOL"

# Arrays of 4 MB and 24 MB, made and freed 20 times; prints how many new pages that took after the first time.
ROUNDS = """
import resource
import numpy as np
from st_common.memory import keep_freed_memory

def pages():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def make():
    for megabytes in (4, 24, 4):
        np.full(megabytes << 20, 1, np.uint8)

if {kept}:
    assert keep_freed_memory()
make()
before = pages()
for _ in range(20):
    make()
print(pages() - before)
"""


def pages_taken(*, kept: bool) -> int:
    """New pages that 20 rounds of the same arrays take in a process of their own."""
    command = [sys.executable, "-c", ROUNDS.format(kept=kept)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")
def test_arrays_of_each_round_take_the_memory_of_the_round_before() -> None:
    assert pages_taken(kept=True) < 100 < pages_taken(kept=False)


# Twelve threads that all hold small blocks at once; prints how many arenas these came from.
ARENAS = """
import ctypes, tempfile, threading
from st_common.memory import keep_freed_memory

if {kept}:
    assert keep_freed_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.fopen.restype = ctypes.c_void_p
libc.fclose.argtypes = [ctypes.c_void_p]
libc.malloc_info.argtypes = [ctypes.c_int, ctypes.c_void_p]
all_there = threading.Barrier(12)

def hold():
    for _ in range(100):
        libc.malloc(ctypes.c_size_t(1000))
    all_there.wait()

threads = [threading.Thread(target=hold) for _ in range(12)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
with tempfile.NamedTemporaryFile() as file:
    stream = libc.fopen(file.name.encode(), b"w")
    assert libc.malloc_info(0, stream) == 0
    libc.fclose(stream)
    print(file.read().count(b"<heap nr="))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")
def test_many_threads_keep_their_memory_in_few_arenas() -> None:
    def arenas(*, kept: bool) -> int:
        command = [sys.executable, "-c", ARENAS.format(kept=kept)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return int(done.stdout)

    assert arenas(kept=True) <= 2 < arenas(kept=False)


# Runs the command line as `fairway` does, and prints at its end where Arrow takes its buffers from.
COMMAND = """
import atexit, sys

def tell():
    import pyarrow
    print(pyarrow.default_memory_pool().backend_name)

atexit.register(tell)
from st_common.cli import main
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Arrow has no jemalloc there")
@pytest.mark.parametrize("own", [None, "system"])
def test_a_local_engine_gives_back_what_arrow_freed(
    tmp_path: Path, own: str | None
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(
        '[streams.cars]\nformat = "csv"\ncolumns = { object = "id", event_ts = "t", x = "x", y = "y" }\n'
    )
    told = {name: value for name, value in os.environ.items() if name != POOL}
    told |= {POOL: own} if own else {}
    command = [sys.executable, "-c", COMMAND, "--home", str(tmp_path), "run", "cars"]
    done = subprocess.run(
        [*command, "--engine", "local", "--until-idle"],
        capture_output=True,
        text=True,
        check=True,
        env=told,
    )
    assert done.stdout.splitlines()[-1] == (own or "jemalloc")
