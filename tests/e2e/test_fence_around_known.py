"""A fence around a taxi of Porto: who kept it company, told as a plain loop over the fixes of two taxis finds it."""

import csv
import json
from datetime import UTC, datetime

import pytest
from pyproj import Geod

from st_common.checks.verify import verify
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.query.registry import register
from st_common.query.text import parse
from st_common.tables import read
from tests.kit.log_writer import bare_log

COLUMNS = Columns(object="id", event_ts="t", x="x", y="y")
TAXI, OTHER = "20000589", "20000398"
SILENCE_S, DWELL_S = 120, 120
QUERY = f"""
REGISTER QUERY company AS SELECT * FROM taxis INSIDE ('M', '{TAXI}', 200 m)
  DETECT ENTER, EXIT, DWELL {DWELL_S} s WITH (hysteresis = 50 m, enter_after = 10 s);
"""


@pytest.fixture(scope="module")
def fixes(shared):
    """The taxis' fixes in time order: seconds, id, longitude, latitude."""
    rows = []
    with (shared / "data" / "taxi-porto" / "train-1000.csv").open() as source:
        for record in csv.DictReader(source):
            start = int(record["TIMESTAMP"])
            for step, (x, y) in enumerate(json.loads(record["POLYLINE"])):
                rows.append((start + 15 * step, record["TAXI_ID"], x, y))
    return sorted(rows)


def company(fixes):
    """When the other taxi enters, dwells, leaves or falls silent, and how long it was there: by distances at fixes."""
    told, last, near_since, since, dwelt = [], {}, None, None, False
    own = [fix for fix in fixes if fix[1] in (TAXI, OTHER)]
    for number, (t, name, x, y) in enumerate(own):
        after = own[number + 1][0] if number + 1 < len(own) else t + 10 * SILENCE_S
        last[name] = (t, x, y)
        if len(last) == 2:
            (_, ax, ay), (_, bx, by) = last.values()
            metres = Geod(ellps="WGS84").inv(ax, ay, bx, by)[2]
            near_since = (near_since or t) if metres <= 200 else None
            if since is None and near_since is not None and t - near_since >= 10:
                told.append((t, "enter", None))
                since, dwelt = t, False
            elif since is not None and metres > 250:
                told.append((t, "leave", t - since))
                since, near_since = None, None
        silent = min((at + SILENCE_S for at, _, _ in last.values()), default=after)
        if since is not None and not dwelt and since + DWELL_S < min(after, silent):
            told.append((since + DWELL_S, "dwell", DWELL_S))
            dwelt = True
        if silent < after:
            if since is not None:
                told.append((silent, "expired", silent - since))
            gone = [one for one, (at, _, _) in last.items() if at + SILENCE_S < after]
            last = {one: fix for one, fix in last.items() if one not in gone}
            near_since, since = None, None
    return told


@pytest.mark.slow
@pytest.mark.e2e
@pytest.mark.spec("X3", "X1")
def test_who_kept_a_taxi_company_is_told_with_the_time(fixes, tmp_path):
    from st_common.engine.run import run

    home = Home(tmp_path)
    stream = StreamSettings(
        name="taxis",
        format="csv",
        columns=COLUMNS,
        time_unit="s",
        max_ahead_s=None,
        silence_s=float(SILENCE_S),
    )
    register(home, {"taxis": stream}, parse(QUERY), owner="test")
    lines = ["id,t,x,y", *(f"{name},{t},{x!r},{y!r}" for t, name, x, y in fixes)]
    bare_log(home.log("taxis")).append("\n".join(lines).encode(), arrival_us=0)
    run(home, stream, until_idle=True)
    rows = read(home.table("changes", "taxis")).to_pylist()
    rows.sort(key=lambda row: (row["position"], row["seq"]))
    expected = company(fixes)
    assert [
        (round(row["event_ts"].timestamp()), row["cause"], row["value"])
        for row in rows
        if row["object"] == OTHER
    ] == expected
    assert [cause for _, cause, _ in expected].count("dwell") == 2
    seven = datetime(2013, 7, 1, 7, 3, 56, tzinfo=UTC)
    assert (round(seven.timestamp()), "enter", None) in expected
    assert all(found.holds for found in verify(home, stream))
