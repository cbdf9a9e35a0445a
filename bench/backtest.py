"""What a backtest costs: vehicles that drive at random on closed days, rectangles and fences over them.

    python -m bench.backtest --vehicles 1000 --every 120 --days 1 --queries 20

The days are written, run and archived first, which is not measured. Prints one line of JSON: fixes a second, what a
month of 1,000 vehicles with a fix each 10 s would take at that rate, and the share of time of each part.
"""

import argparse
import cProfile
import io
import json
import pstats
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from st_common.batch.backtest import backtest
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.run import run
from st_common.query.plan import Plan
from st_common.query.text import parse
from tests.kit.log_writer import bare_log

SIDE_M = 20_000.0
STEP_M = 100.0
T0_S = round(datetime(2024, 5, 1, tzinfo=UTC).timestamp())
DAY_S = 86_400
MONTH = 30 * 1000 * DAY_S // 10  # fixes: 1,000 vehicles, one each 10 s
PARTS = {  # functions by what they are a part of
    "reading": "_rows",
    "packing": "_of_fixes",
    "step": "step",
    "order of changes": "settled",
    "folding": "fold_visits",
    "counting": "_count",
}
STREAM = StreamSettings(
    name="walk",
    format="csv",
    crs="planar",
    time_unit="s",
    max_ahead_s=None,
    engine="local",
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
)


def main() -> None:
    """Writes the days, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vehicles", type=int, default=1000)
    parser.add_argument("--every", type=int, default=120, help="seconds between fixes")
    parser.add_argument("--days", type=int, default=1)
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        write_days(home, arguments.vehicles, arguments.every, arguments.days)
        run(home, STREAM, until_idle=True)
        plans = plans_of(arguments.queries)
        for cores in arguments.cores:
            print(json.dumps(measured(home, plans, arguments.days, cores)), flush=True)


def write_days(home: Home, vehicles: int, every_s: int, days: int) -> None:
    """A log of random walks, an hour a segment, and one fix behind the days."""
    rng, log = np.random.default_rng(7), bare_log(home.log(STREAM.name))
    place = rng.uniform(0, SIDE_M, (vehicles, 2))
    ids = np.char.add("v", np.arange(vehicles).astype(str))
    for hour in range(24 * days):
        times = T0_S + hour * 3600 + np.arange(0, 3600, every_s)
        steps = rng.normal(0, STEP_M, (len(times), vehicles, 2))
        path = np.clip(place + np.cumsum(steps, axis=0), 0, SIDE_M)
        place = path[-1]
        table = pa.table(
            {
                "id": np.tile(ids, len(times)),
                "t": np.repeat(times, vehicles),
                "x": path[..., 0].ravel(),
                "y": path[..., 1].ravel(),
            }
        )
        for start in range(0, len(table), 200_000):
            sink = io.BytesIO()
            pacsv.write_csv(table.slice(start, 200_000), sink)
            log.append(sink.getvalue(), arrival_us=0)
    end = T0_S + days * DAY_S + 60
    log.append(f"id,t,x,y\nv0,{end},0,0\n".encode(), arrival_us=0)


def statements(count: int) -> str:
    """Rectangles, each second one a fence with DWELL."""
    rng = np.random.default_rng(11)
    corners = rng.uniform(0, SIDE_M - 2000, (count, 2)).round()
    texts = []
    for number, (x, y) in enumerate(corners.tolist()):
        fence = "" if number % 2 == 0 else " DETECT ENTER, EXIT, DWELL 5 min"
        inside = f"INSIDE ({x}, {y}, {x + 2000}, {y + 2000}){fence}"
        named = f"REGISTER QUERY q{number} AS"
        texts.append(f"{named} SELECT * FROM walk {inside}")  # noqa: S608 - numbers
    return ";\n".join(texts)


def plans_of(queries: int) -> dict[str, Plan]:
    """So many plans by their names."""
    made = parse(statements(queries))
    return {one.name: one.plan for one in made if one.plan is not None}


def measured(
    home: Home, plans: Mapping[str, Plan], days: int, cores: int
) -> dict[str, object]:
    """A run by the clock, and for one process another one for the shares of its parts."""
    started_s = monotonic()
    done = backtest(home, STREAM, plans, days=days, cores=cores)
    seconds = monotonic() - started_s
    rate = done.fixes / seconds
    return {
        "cores": cores,
        "fixes": done.fixes,
        "queries": len(plans),
        "visits": sum(done.totals["visits"].to_pylist()),
        "seconds": round(seconds, 2),
        "fixes_per_s": round(rate),
        "month_of_1000_at_10_s_minutes": round(MONTH / rate / 60, 1),
        "shares": {} if cores > 1 else profiled(home, plans, days),
    }


def profiled(home: Home, plans: Mapping[str, Plan], days: int) -> dict[str, float]:
    """The shares of a run in this process, by all of its threads."""
    profile = cProfile.Profile()
    profile.runcall(backtest, home, STREAM, plans, days=days, cores=1)
    return shares(pstats.Stats(profile))


def shares(stats: pstats.Stats) -> dict[str, float]:
    """Which share of a profile's time each of `PARTS` takes, with all that it calls."""
    times = stats.stats  # type: ignore[attr-defined]
    total = stats.total_tt  # type: ignore[attr-defined]
    batch = ("/st_common/batch/", "/history/", "/runtime/stages", "/turn/changes")
    return {
        part: round(
            sum(
                row[3]
                for (file, _, name), row in times.items()
                if name == function and any(one in file for one in batch)
            )
            / total,
            2,
        )
        for part, function in PARTS.items()
    }


if __name__ == "__main__":
    main()
