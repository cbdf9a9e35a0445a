"""A day once more: the batch arm in one process and on Spark, beside the engine that told it.

.venv/bin/python -m bench.batch_days [FIXES [OBJECTS [CORES]]]
"""

import shutil
import sys
import tempfile
import time
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.csv as pcsv

from st_common.batch.borders import FOLDER
from st_common.batch.reprocess import reprocess
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.spark import SparkSettings
from st_common.config.stream import StreamSettings
from st_common.engine.run import run
from st_common.log.control import write_clock
from st_common.log.log import Log
from st_common.log.record_settings import log_for
from st_common.query.registry import register
from st_common.query.text import parse
from st_common.spark.batch_days import OWN, SparkFold
from st_common.spark.delta import ReplaceOnSpark
from st_common.spark.session import session

DAY, DAY_S = date(2024, 5, 1), 86_400
EPOCH_S = 1_714_521_600
RECTANGLES = 50
SEGMENT = 100_000  # fixes
CARS = StreamSettings(
    name="cars",
    format="csv",
    crs="planar",
    time_unit="s",
    max_ahead_s=None,
    snapshot_s=None,
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
)


def write_day(home: Home, fixes: int, objects: int) -> None:
    """A log of a day in which objects wander about on a square of 1,000, under rectangles."""
    corners = np.random.default_rng(5).integers(0, 900, (RECTANGLES, 2))
    queries = "".join(
        f"REGISTER QUERY q{n} AS SELECT * FROM cars INSIDE ({x}, {y}, {x + 100}, {y + 100});"  # noqa: S608
        for n, (x, y) in enumerate(corners)
    )
    register(home, {"cars": CARS}, parse(queries), owner="b")
    log, rounds = log_for(home, CARS), fixes // objects
    place = np.random.default_rng(7).uniform(0, 1_000, (2, objects))
    heading = np.random.default_rng(9).uniform(-20, 20, (2, objects))
    ids = [f"car{n}" for n in range(objects)]
    parts: list[pa.Table] = []
    for number in range(rounds):
        place = place + heading
        heading = np.where((place < 0) | (place > 1_000), -heading, heading)
        at_s = EPOCH_S + number * DAY_S // rounds
        columns = {"id": ids, "t": np.full(objects, at_s), "x": place[0], "y": place[1]}
        parts.append(pa.table(columns))
        if len(parts) * objects >= SEGMENT or number == rounds - 1:
            _append(log, pa.concat_tables(parts))
            parts = []
    write_clock(log, (EPOCH_S + DAY_S + 60) * 1_000_000, arrival_us=0)


def _append(log: Log, rows: pa.Table) -> None:
    sink = pa.BufferOutputStream()
    pcsv.write_csv(rows, sink)
    log.append(sink.getvalue().to_pybytes(), arrival_us=0)


def say(what: str, fixes: int, seconds: float, cpu_s: float) -> None:
    """Prints a line."""
    rate = f"{fixes / seconds:,.0f} fixes/s"
    sys.stdout.write(f"{what}: {seconds:.1f} s, {cpu_s:.1f} s of CPU, {rate}\n")
    sys.stdout.flush()


def busy_s() -> float:
    """The CPU seconds of this process and of all below it: Spark's JVM, and its workers, those that ended too."""
    here = psutil.Process()
    taken = [one.cpu_times() for one in (here, *here.children(recursive=True))]
    return float(sum(sum(times[:4]) for times in taken))


def without_visits(home: Home) -> None:
    """Lets the next run do all of it."""
    shutil.rmtree(home.stream("cars") / FOLDER, ignore_errors=True)
    for name in ("visits", "differences"):
        shutil.rmtree(home.table(name, "cars"), ignore_errors=True)


def main() -> None:
    """Prints how long the engine needs for a day, the batch arm here, and the batch arm on Spark."""
    given = [int(word) for word in sys.argv[1:]]
    fixes, objects, cores = [*given, *(2_000_000, 2_000, 2)[len(given) :]]
    until = DAY + timedelta(days=1)
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        write_day(home, fixes, objects)
        begun_s, busy = time.monotonic(), busy_s()
        run(home, CARS, until_idle=True)
        told_s = time.monotonic() - begun_s
        say("engine, with its archive", fixes, told_s, busy_s() - busy)
        busy = busy_s()
        here = reprocess(home, CARS, DAY, until)
        say("batch, one process", here.fixes, here.seconds, busy_s() - busy)
        without_visits(home)
        place = SparkSettings(cores=cores)
        spark = session("bench", place=place, log_file=home.root / "log", **OWN)
        try:
            busy = busy_s()
            fold, put = (
                SparkFold(lambda: spark, cores),
                ReplaceOnSpark(lambda: spark, "reprocess"),
            )
            there = reprocess(home, CARS, DAY, until, fold=fold, put=put)
            busy = busy_s() - busy
        finally:
            spark.stop()
        say(f"batch, Spark with {cores} shards", there.fixes, there.seconds, busy)
        same = [one.visits for one in here.days] == [one.visits for one in there.days]
        sys.stdout.write(f"{here.days[0].visits:,} visits, the same: {same}\n")


if __name__ == "__main__":
    main()
