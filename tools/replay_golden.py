"""Replays the recorded logs of tests/replays and compares what is told with what was told when they were recorded.

usage: replay_golden.py [--only NAME ..] [--rows FOLDER] [--update]
"""

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.kit.replays import needs_spark, read_recording, replay, rows_of

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "replays"
TOLD = FOLDER / "told.json"


def replayed(name: str, spark: Any = None) -> dict[str, Any]:
    """What a recording tells now."""
    with tempfile.TemporaryDirectory() as folder:
        return replay(
            read_recording(FOLDER / f"{name}.jsonl"), Path(folder) / "home", spark
        )


def replayed_all(names: list[str]) -> dict[str, dict[str, Any]]:
    """What recordings tell now: those of the local engine side by side, those of Spark in one session."""
    on_spark = [
        name for name in names if needs_spark(read_recording(FOLDER / f"{name}.jsonl"))
    ]
    local = [name for name in names if name not in on_spark]
    with multiprocessing.get_context("forkserver").Pool(os.cpu_count()) as pool:
        told = dict(zip(local, pool.map(replayed, local, chunksize=1), strict=True))
    if on_spark:
        from st_common.config.spark import SparkSettings
        from st_common.spark.session import session

        place = SparkSettings(memory="1g")
        spark = session("replay-golden", place=place, extended=False)
        told |= {name: replayed(name, spark) for name in on_spark}
        spark.stop()
    return told


def write_rows(names: list[str], target: Path) -> None:
    """Writes every row that recordings tell, to be compared with those of another commit by `diff -r`."""
    target.mkdir(parents=True, exist_ok=True)
    for name in names:
        steps = read_recording(FOLDER / f"{name}.jsonl")
        if not needs_spark(steps):
            with tempfile.TemporaryDirectory() as folder:
                rows = rows_of(steps, Path(folder) / "home")
            (target / f"{name}.txt").write_text(
                "\n".join(rows) + "\n", encoding="utf-8"
            )


def main(arguments: list[str]) -> int:
    """Gives back 1 when a recording tells something else."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="these recordings only"
    )
    parser.add_argument(
        "--rows",
        type=Path,
        metavar="FOLDER",
        help="write the rows there, and compare nothing",
    )
    parser.add_argument(
        "--update",
        action="store_true",
        help="take what is told now for right: say why in the commit",
    )
    asked = parser.parse_args(arguments)
    names = asked.only or sorted(path.stem for path in FOLDER.glob("*.jsonl"))
    if asked.rows:
        write_rows(names, asked.rows)
        return 0
    known = json.loads(TOLD.read_text(encoding="utf-8")) if TOLD.exists() else {}
    told = replayed_all(names)
    if asked.update:
        TOLD.write_text(
            json.dumps(known | told, indent=1, sort_keys=True) + "\n", encoding="utf-8"
        )
        return 0
    different = [name for name in names if told[name] != known.get(name)]
    for name in different:
        sys.stdout.write(f"{name}: told {told[name]}, recorded {known.get(name)}\n")
    sys.stdout.write(
        f"{len(names) - len(different)} of {len(names)} recordings tell what they told\n"
    )
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
