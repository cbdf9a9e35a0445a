"""What fences tell of vehicles that stand still at a border: false events with and without rules against jitter.

.venv/bin/python -m bench.fence_jitter

Parked: 60 vehicles for four hours, a fix every 10 s that scatters by 3, 10 or 30 m (standard deviation, each fix by
itself), on the border of a circle. Stays: wherever the people of Geolife's sample stood for 10 minutes within 100 m, a
circle whose border goes through the middle of their fixes. An event is false when it comes during a stay; the first
ENTER and the last EXIT of a stay are not counted as such, for somebody did come and go.
"""

import gzip
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from st_common import tables
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.run import run
from st_common.log.record_settings import log_for
from st_common.query.registry import register
from st_common.query.text import parse

GEOLIFE = Path("../shared/data/gps-geolife-beijing/geolife_sample.txt.gz")
STREAM = StreamSettings(
    name="fixes",
    format="csv",
    crs="planar",
    engine="local",
    shards=1,
    time_unit="s",
    max_ahead_s=None,
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
)
RULES = {
    "nothing": "",
    "enter_after, exit_after = 3 fixes": "WITH (enter_after = 3 fixes, exit_after = 3 fixes)",
    "hysteresis = 30 m": "WITH (hysteresis = 30 m)",
    "hysteresis = 30 m, exit_after = 3 fixes": "WITH (hysteresis = 30 m, exit_after = 3 fixes)",
    "hysteresis = 100 m": "WITH (hysteresis = 100 m)",
}
_STATEMENT = (
    "REGISTER QUERY q{n} AS SELECT * FROM fixes INSIDE CIRCLE ({stay.x}, {stay.y}, {radius_m:g}) "
    "DETECT ENTER, EXIT WHERE object = '{stay.id}' {rule};\n"
)
RADIUS_M = 200.0
EVERY_S, HOURS, VEHICLES = 10, 4, 60
STAY_S, STAY_M = 600, 100.0


def parked(scatter_m: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Fixes of parked vehicles, and the fence of each: a circle whose border goes through its place."""
    rng = np.random.default_rng(7)
    fixes = HOURS * 3600 // EVERY_S
    place = np.repeat(np.arange(VEHICLES) * 10_000.0, fixes)
    scatter = rng.normal(0, scatter_m, (2, len(place)))
    table = pd.DataFrame(
        {
            "id": np.repeat([f"v{n}" for n in range(VEHICLES)], fixes),
            "t": 1_000_000 + np.tile(np.arange(fixes) * EVERY_S, VEHICLES),
            "x": place + scatter[0],
            "y": scatter[1],
        }
    )
    stays = pd.DataFrame(
        {
            "id": [f"v{n}" for n in range(VEHICLES)],
            "x": np.arange(VEHICLES) * 10_000.0 - RADIUS_M,
            "y": 0.0,
            "begin": 1_000_000,
            "end": 1_000_000 + HOURS * 3600,
        }
    )
    return table.sort_values("t", kind="stable"), stays


def walked() -> tuple[pd.DataFrame, pd.DataFrame]:
    """The fixes of Geolife's sample in metres around Beijing, and a fence for each stay."""
    with gzip.open(GEOLIFE) as file:
        points = pd.read_csv(file, dtype={"uid": str})
    t = pd.to_datetime(points["datetime"]).astype("int64") // 10**9
    table = pd.DataFrame(
        {
            "id": points["uid"],
            "t": t,
            "x": (points["lng"] - 116.3) * 111_320 * np.cos(np.radians(39.9)),
            "y": (points["lat"] - 39.9) * 111_320,
        }
    ).drop_duplicates(["id", "t"])
    near = table[(table["x"].abs() < 100_000) & (table["y"].abs() < 100_000)]
    near = near.sort_values(["id", "t"], kind="stable")
    stays = pd.concat([stays_of(each) for _, each in near.groupby("id")])
    return near.sort_values("t", kind="stable"), stays.reset_index(drop=True)


def stays_of(track: pd.DataFrame) -> pd.DataFrame:
    """Where one object stood for `STAY_S` within `STAY_M` of the first fix, with fixes at most five minutes apart."""
    t, x, y = (track[name].to_numpy() for name in ("t", "x", "y"))
    found, at = [], 0
    while at < len(t):
        leaves = np.hypot(x[at:] - x[at], y[at:] - y[at]) > STAY_M
        leaves[1:] |= np.diff(t[at:]) > 300
        end = at + int(np.argmax(leaves)) if leaves.any() else len(t)
        if t[end - 1] - t[at] >= STAY_S:
            middle = np.median(x[at:end]), np.median(y[at:end])
            found.append((middle[0] - RADIUS_M, middle[1], t[at], t[end - 1]))
            at = end
        else:
            at += 1
    stays = pd.DataFrame(found, columns=["x", "y", "begin", "end"])
    return stays.assign(id=track["id"].iloc[0])


def false_events(fixes: pd.DataFrame, stays: pd.DataFrame, rule: str) -> int:
    """How many events a fence at each stay tells during it, but for a first ENTER and a last EXIT."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        text = "".join(
            _STATEMENT.format(n=n, stay=stay, radius_m=RADIUS_M, rule=rule)
            for n, stay in enumerate(stays.itertuples())
        )
        register(home, {"fixes": STREAM}, parse(text), owner="bench")
        log = log_for(home, STREAM)
        for start in range(0, len(fixes), 50_000):
            part = fixes.iloc[start : start + 50_000]
            log.append(part.to_csv(index=False).encode(), arrival_us=1)
        run(home, replace(STREAM), until_idle=True)
        rows = tables.read(home.table("changes", "fixes")).to_pandas()
    return _during(rows, stays)


def _during(rows: pd.DataFrame, stays: pd.DataFrame) -> int:
    number = rows["query"].str[1:].astype(int)
    t = rows["event_ts"].astype("int64") // 10**6
    begin, end = (stays[name].to_numpy()[number] for name in ("begin", "end"))
    mine = rows[(t >= begin) & (t <= end)].assign(number=number)
    mine = mine.sort_values(["position", "seq"])
    firsts = (mine.groupby("number")["sign"].first() > 0).sum()
    lasts = (mine.groupby("number")["sign"].last() < 0).sum()
    return len(mine) - int(firsts) - int(lasts)


def main() -> None:
    """Prints the table of docs/performance.md."""
    workloads = {
        f"parked, scatter {scatter_m} m": parked(scatter_m) for scatter_m in (3, 10, 30)
    } | {"stays of Geolife": walked()}
    sys.stdout.write(f"| against jitter | {' | '.join(workloads)} |\n")
    sys.stdout.write(f"|---|{'---|' * len(workloads)}\n")
    for name, rule in RULES.items():
        counts = [
            str(false_events(fixes, stays, rule)) for fixes, stays in workloads.values()
        ]
        sys.stdout.write(f"| {name} | {' | '.join(counts)} |\n")
    for name, (fixes, stays) in workloads.items():
        hours = float((stays["end"] - stays["begin"]).sum()) / 3600
        sys.stdout.write(
            f"{name}: {len(fixes):,} fixes, {len(stays)} fences, {hours:.0f} hours\n"
        )


if __name__ == "__main__":
    main()
