"""Average speeds over the last stretch of the way, of taxis in Porto and ships by Denmark, against pandas and pyproj.

Everything goes through the commands and the local engine. What is expected is found from the files by plain arithmetic.
"""

import json

import numpy as np
import pandas as pd
import pytest
from pyproj import Geod
from typer.testing import CliRunner

from st_common.cli import app

CONF = """
[streams.trips]
format = "csv"
time_unit = "s"
tick_s = 15
max_ahead_s = "off"
engine = "local"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
attributes = { knots = "double" }
"""
GEOD = Geod(ellps="WGS84")
CLOSE = 2e-4  # engines measure metres on degrees to 0.01 %
pytestmark = pytest.mark.slow


def taxis(shared):
    """1,000 trips with a fix every 15 seconds: id, t, x, y, in the order of time."""
    trips = pd.read_csv(
        shared / "data" / "taxi-porto" / "train-1000.csv", dtype={"TRIP_ID": str}
    )
    rows = [
        (trip, start + 15 * number, x, y)
        for trip, start, line in zip(
            trips["TRIP_ID"], trips["TIMESTAMP"], trips["POLYLINE"], strict=True
        )
        for number, (x, y) in enumerate(json.loads(line))
    ]
    found = pd.DataFrame(rows, columns=["id", "t", "x", "y"]).assign(knots=np.nan)
    return found.sort_values("t", kind="stable", ignore_index=True)


def ships(shared):
    """A minute and a half of ships: id, t, x, y, knots; the first of doubles stays."""
    file = shared / "data" / "ais-denmark" / "aisdk-2026-04-26-first20000.csv"
    rows = pd.read_csv(file, dtype={"MMSI": str})
    rows = rows[
        rows["Type of mobile"].isin(["Class A", "Class B"]) & (rows["Latitude"] <= 90)
    ]
    when = pd.to_datetime(rows["# Timestamp"], format="%d/%m/%Y %H:%M:%S")
    found = pd.DataFrame(
        {
            "id": rows["MMSI"],
            "t": (when - pd.Timestamp(0)) // pd.Timedelta(1, "s"),
            "x": rows["Longitude"],
            "y": rows["Latitude"],
            "knots": rows["SOG"],
        }
    )
    return found.drop_duplicates(["id", "t"]).reset_index(drop=True)


def answers(root, fixes, queries):
    """What the queries, by name, answer after the fixes."""
    (root / "conf").mkdir()
    (root / "conf" / "streams.toml").write_text(CONF)
    fixes.to_csv(root / "fixes.csv", index=False)

    def run(*args):
        found = CliRunner().invoke(
            app, ["--home", str(root), *args], prog_name="fairway"
        )
        assert found.exit_code == 0, found.output
        return found.stdout

    for name, text in queries.items():
        run("query", "register", "--text", f"REGISTER QUERY {name} AS {text};")
    run("replay", "trips", str(root / "fixes.csv"))
    run("run", "trips", "--until-idle")
    return {
        name: [
            json.loads(line)
            for line in run("answer", name, "--format", "jsonl").splitlines()
        ]
        for name in queries
    }


def last_window(trip, range_m, slide_m):
    """The fixes of a trip in its last window with the way to each; None where 0.01 % decide what is in it."""
    x, y = trip["x"].to_numpy(), trip["y"].to_numpy()
    way = np.r_[0.0, np.cumsum(GEOD.inv(x[:-1], y[:-1], x[1:], y[1:])[2])]
    high = way[-1] // slide_m * slide_m
    low = high - range_m
    bounds = (
        [*np.arange(slide_m, way[-1] + slide_m, slide_m), low]
        if low > 0
        else [high, high + slide_m]
    )
    if any(
        (np.abs(way - bound) < CLOSE * way + 1e-6).any()
        for bound in bounds
        if bound > 0
    ):
        return None
    inside = trip.assign(way=way)[(way >= low) & (way <= high)]
    return inside if high > 0 else inside.iloc[:0]


def expected(fixes, range_m, slide_m):
    """Metres per second per trip that has slid a window, and the trips that are too close to a bound to say."""
    speeds, open_ = {}, set()
    for name, trip in fixes.groupby("id"):
        window = last_window(trip, range_m, slide_m)
        if window is None:
            open_.add(name)
        elif len(window) > 1 and window["t"].iloc[-1] > window["t"].iloc[0]:
            took = window["t"].iloc[-1] - window["t"].iloc[0]
            speeds[name] = (window["way"].iloc[-1] - window["way"].iloc[0]) / took
        elif len(window):
            speeds[name] = None
    return speeds, open_


def close(told, wanted, open_):
    assert told.keys() - open_ == wanted.keys()
    for name, speed in wanted.items():
        assert told[name] == (
            speed if speed is None else pytest.approx(speed, rel=1e-3)
        )


@pytest.mark.spec("W4", "W7")
def test_taxis_over_their_last_5_km_every_km(shared, tmp_path):
    fixes = taxis(shared)
    window = "[RANGE BY 5 km RATTR SPACE, SLIDE BY 1 km SATTR SPACE]"
    found = answers(
        tmp_path,
        fixes,
        {
            "speeds": f"SELECT object, AVGSPD(R) FROM R = trips {window}",
            "fixes": f"SELECT object, COUNT(*) FROM trips {window} GROUP BY object",
        },
    )
    speeds, open_ = expected(fixes, 5000, 1000)
    close({row["object"]: row["value"] for row in found["speeds"]}, speeds, open_)
    assert len(speeds) > 500
    assert len(open_) < 250
    counts = {row["object"]: row["value"] for row in found["fixes"]}
    for name, trip in fixes.groupby("id"):
        if name in speeds:
            assert counts[name] == len(last_window(trip, 5000, 1000))


@pytest.mark.spec("W4", "W7", "G9")
def test_ships_over_their_last_half_kilometre_are_as_fast_as_they_say(shared, tmp_path):
    fixes = ships(shared)
    window = "[RANGE BY 500 m RATTR SPACE, SLIDE BY 100 m SATTR SPACE]"
    found = answers(
        tmp_path, fixes, {"speeds": f"SELECT object, AVGSPD(R) FROM R = trips {window}"}
    )
    told = {row["object"]: row["value"] for row in found["speeds"]}
    speeds, open_ = expected(fixes, 500, 100)
    close(told, speeds, open_)
    said = fixes.groupby("id")["knots"].median() * 1852 / 3600
    ratios = [
        told[name] / said[name]
        for name, speed in speeds.items()
        if speed is not None and said[name] > 4
    ]
    assert len(ratios) > 100
    assert np.median(ratios) == pytest.approx(1, abs=0.02)
