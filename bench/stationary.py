"""What many stationary queries cost: registered from a file, and their first answers by the local engine.

.venv/bin/python -m bench.stationary [QUERIES ...]

Squares cover a plane of as many unit cells; 10,000 cars report once. Each step is a process of its own, as a user
starts it: `fairway query register FILE` and `fairway run`. CPU and the peak of memory are those of that process.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from st_common.config.home import Home
from tests.kit.log_writer import bare_log

_CARS = 10_000
_STATEMENT = "REGISTER QUERY q{} AS SELECT * FROM cars INSIDE ({});\n"
_SETTINGS = """\
[streams.cars]
format = "csv"
crs = "planar"
time_unit = "s"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
"""


def write_queries(path: Path, queries: int) -> int:
    """Writes a file of statements, a unit square each; gives the side of the plane that they cover."""
    side = max(1, round(queries**0.5))
    with path.open("w", encoding="utf-8") as file:
        for n in range(queries):
            x, y = n % side, n // side
            file.write(_STATEMENT.format(n, f"{x}.25, {y}.25, {x}.75, {y}.75"))
    return side


def write_fixes(home: Home, side: int) -> None:
    """Appends a fix of each car, somewhere on the plane."""
    rows = (
        f"c{n},1,{(n * 7919) % (side * 100) / 100},{(n * 104_729) % (side * 100) / 100}"
        for n in range(_CARS)
    )
    bare_log(home.log("cars")).append(
        ("id,t,x,y\n" + "\n".join(rows) + "\n").encode(), arrival_us=1
    )


def measured(*command: str) -> str:
    """Runs a command of `fairway`; its seconds of CPU and of the wall, and its peak of memory."""
    begun_s = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "st_common.cli", *command], stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"fairway {' '.join(command)} ended with {process.returncode}")
    wall_s, cpu_s = time.monotonic() - begun_s, used.ru_utime + used.ru_stime
    return f"CPU {cpu_s:.1f} s, wall {wall_s:.1f} s, {used.ru_maxrss / 1024:,.0f} MB"


def main() -> None:
    """Prints a line for each number of queries and step."""
    for queries in [int(text) for text in sys.argv[1:]] or [10_000, 100_000, 1_000_000]:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "conf").mkdir()
            (root / "conf" / "streams.toml").write_text(_SETTINGS, encoding="utf-8")
            side = write_queries(root / "queries.sql", queries)
            registered = measured(
                "--home", folder, "query", "register", str(root / "queries.sql")
            )
            sys.stdout.write(
                f"{queries:,} queries, registered from a file: {registered}\n"
            )
            sys.stdout.flush()
            write_fixes(Home(root), side)
            ran = measured(
                "--home", folder, "run", "cars", "--engine", "local", "--until-idle"
            )
            sys.stdout.write(f"{queries:,} queries, run with the first fixes: {ran}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
