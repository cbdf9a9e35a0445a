"""Lives many histories on a simulated machine, side by side, and prints the seeds of those that did not hold.

usage: histories.py [--count N] [--seed FIRST] [--minutes M]
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from itertools import count, islice

from st_common.testing.histories import live

_CHUNK = 25
_SHOWN = 300


def lived(seeds: list[int]) -> list[tuple[int, str]]:
    """The seeds that did not hold, each with what broke."""
    broken = []
    for seed in seeds:
        try:
            live(seed)
        except Exception as error:  # noqa: BLE001 - whatever it is, its seed is told
            what = f"{type(error).__name__}: {error}"
            broken.append((seed, what[:_SHOWN]))
    return broken


def chunks(first: int, total: int) -> Iterator[list[int]]:
    """Seeds in pieces, rising."""
    seeds = islice(count(first), total)
    while piece := list(islice(seeds, _CHUNK)):
        yield piece


def main(arguments: list[str]) -> int:
    """Lives until there are no more or the time is over; gives back 1 when one did not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument(
        "--seed", type=int, default=time.time_ns() // 1_000_000_000 * 100_000
    )
    parser.add_argument("--minutes", type=float, default=10.0)
    args = parser.parse_args(arguments)
    until_s, done, broken = time.monotonic() + 60 * args.minutes, 0, 0
    print(f"histories from seed {args.seed} on", flush=True)
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        for found in pool.imap_unordered(lived, chunks(args.seed, args.count)):
            done += _CHUNK
            broken += len(found)
            for seed, what in found:
                print(
                    f"BROKE {what}\n      to replay: make histories ARGS='--seed {seed} --count 1'",
                    flush=True,
                )
            if time.monotonic() > until_s:
                break
    print(f"{min(done, args.count)} histories, {broken} did not hold")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
