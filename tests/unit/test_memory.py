"""A process that keeps what it freed takes it again, in place of new pages of the system."""

import subprocess
import sys

import pytest

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
