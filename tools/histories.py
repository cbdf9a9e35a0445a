"""Lives many histories on a simulated machine, side by side, and prints the seeds of those that did not hold.

usage: histories.py [--count N] [--seed FIRST] [--minutes M] [--of engines|servers]

Without --of each seed lives one of each kind: captures and engines; servers with clients that post and listen.
"""

import argparse
import logging
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from itertools import count, islice

from tests.kit import histories, served_histories

KINDS = {"engines": histories.live, "servers": served_histories.live}
_CHUNK = 25
_SHOWN = 300


def lived(
    seeds: list[int], kinds: tuple[str, ...] = tuple(KINDS)
) -> list[tuple[int, str, str]]:
    """The seeds that did not hold, each with its kind and what broke."""
    logging.disable(logging.CRITICAL)  # servers warn of each fault
    broken = []
    for seed in seeds:
        for kind in kinds:
            try:
                KINDS[kind](seed)
            except Exception as error:  # noqa: BLE001 - whatever it is, its seed is told
                what = f"{type(error).__name__}: {error}"
                broken.append((seed, kind, what[:_SHOWN]))
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
    parser.add_argument("--of", choices=tuple(KINDS))
    args = parser.parse_args(arguments)
    kinds = (args.of,) if args.of else tuple(KINDS)
    until_s, done, broken = time.monotonic() + 60 * args.minutes, 0, 0
    print(f"histories from seed {args.seed} on", flush=True)
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        for found in pool.imap_unordered(
            partial(lived, kinds=kinds), chunks(args.seed, args.count)
        ):
            done += _CHUNK
            broken += len(found)
            for seed, kind, what in found:
                again = f"--seed {seed} --count 1 --of {kind}"
                print(
                    f"BROKE {what}\n      to replay: make deep ARGS='histories {again}'",
                    flush=True,
                )
            if time.monotonic() > until_s:
                break
    lives = min(done, args.count) * len(kinds)
    print(f"{lives} histories, {broken} did not hold")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
