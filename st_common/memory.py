"""Memory that a process keeps between its batches."""

import ctypes
import os
import sys

# Of mallopt(3). Both limits are given: the allocator moves its own ones with what a program happens to free.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_KEPT_BYTES = 256 * 1024 * 1024
_LARGEST_BYTES = 32 * 1024 * 1024  # the most that glibc takes
_ARENAS = 2
_ARROW_POOL = "ARROW_DEFAULT_MEMORY_POOL"


def keep_freed_memory() -> bool:
    """Lets this process keep up to 256 MiB that it has freed, in place of giving each array back to the system.

    A step makes arrays of some megabytes, frees them, and makes the same ones at the next batch. By default glibc asks
    the system for each of them anew, and the system clears each page of 4 KiB when it is first touched. With 5,000
    queries for 64 neighbours over 100,000 objects that was 53,000 pages and a fifth of the processor time of a round:

        by default     a batch: map 6 MB, touch 1,500 pages, unmap     the next batch: map 6 MB, ..
        kept           a batch: take 6 MB of what is there             the next batch: the same 6 MB

    A process that never uses much keeps nothing. It keeps it in two arenas, not in eight for each core: every arena
    keeps the most that its threads ever had, and delta-rs and Arrow start some fifty. Arrow's buffers have an allocator
    of their own, see `let_arrow_give_back`.

    Returns:
        Whether it is so now; False with a C library that has no such setting (macOS, musl), where nothing changes.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_BYTES)
        and mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        and mallopt(_M_ARENA_MAX, _ARENAS)
    )


def let_arrow_give_back() -> bool:
    """Lets Arrow take its buffers from jemalloc, which gives back a second later what was freed.

    Mimalloc, which it takes by default, keeps what each thread freed until that thread asks again; so a process that
    runs for days keeps the most that any of its threads ever read at once. It has to be called before Arrow is
    imported, and is for processes that stay. Whoever sets ARROW_DEFAULT_MEMORY_POOL himself has his way.

    Returns:
        Whether it will be so; False where Arrow is there already, or has no jemalloc (Windows).
    """
    if "pyarrow" in sys.modules or sys.platform not in ("linux", "darwin"):
        return False
    return os.environ.setdefault(_ARROW_POOL, "jemalloc") == "jemalloc"
