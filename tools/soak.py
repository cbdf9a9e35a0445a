"""A soak of the local engine: random rounds until the minutes are over; the first that fails says its seed and ends it.

PYTHONPATH=. python tools/soak.py --minutes 10 [--seed 1] [--rows 600]
PYTHONPATH=. python tools/soak.py --minutes 10 --beside   one stream, with reprocessing, compaction and reports at once
"""

import argparse
import tempfile
import time
from pathlib import Path

from tests.kit.beside import run_beside
from tests.kit.soak import live


def main() -> None:
    """Runs rounds and says how they went."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--beside", action="store_true")
    given = parser.parse_args()
    if given.beside:
        with tempfile.TemporaryDirectory() as folder:
            seconds = 60 * given.minutes
            print(run_beside(Path(folder), seconds=seconds, rounds=1, seed=given.seed))
        return
    until_s, seed, changes, restarts, kills = (
        time.monotonic() + 60 * given.minutes,
        given.seed,
        0,
        0,
        0,
    )
    while time.monotonic() < until_s:
        with tempfile.TemporaryDirectory() as folder:
            done = live(Path(folder), seed=seed, rows=given.rows, kills=1 + seed % 3)
        changes, restarts, kills = (
            changes + done.changes,
            restarts + done.restarts,
            kills + done.kills,
        )
        print(
            f"seed {seed}: {done.rows} rows, {done.changes} changes, {done.restarts} restarts",
            flush=True,
        )
        seed += 1
    print(
        f"{seed - given.seed} rounds hold: {changes} changes, {restarts} restarts, {kills} of them after kill -9"
    )


if __name__ == "__main__":
    main()
