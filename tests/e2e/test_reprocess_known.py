"""Real streams processed again: in order as they were told, and out of order as if they had come in order."""

import csv
import json
from datetime import UTC, datetime, timedelta

import pytest

from st_common import tables
from st_common.answers.sql import sql
from st_common.batch.reprocess import reprocess
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.run import run
from st_common.log.control import write_clock
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.log_writer import bare_log

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.spec("C6", "X2")]

DAY = timedelta(days=1)
SHIFT_S = (
    2 * 3600
)  # the trips begin at midnight: earlier by so much, midnight is among them
TAXIS = """
REGISTER QUERY centre AS SELECT * FROM taxis INSIDE (-8.63, 41.14, -8.60, 41.16);
REGISTER QUERY nearest AS SELECT * FROM taxis KNN (5, -8.61, 41.15);
REGISTER QUERY seen AS SELECT * FROM taxis INSIDE (-8.62, 41.14, -8.60, 41.15) WINDOW 10 min;
"""
SHIPS = """
REGISTER QUERY sound AS SELECT * FROM ships INSIDE (12, 55, 13, 57);
REGISTER QUERY many AS SELECT COUNT(*) FROM ships INSIDE (9, 54, 13, 58);
"""


def taxi_rows(shared):
    """Trip by trip, as the file has them: taxi, seconds, longitude, latitude."""
    with (shared / "data" / "taxi-porto" / "train-1000.csv").open() as source:
        for record in csv.DictReader(source):
            start = int(record["TIMESTAMP"]) - SHIFT_S
            for step, (x, y) in enumerate(json.loads(record["POLYLINE"])):
                yield record["TAXI_ID"], start + 15 * step, x, y


def ship_rows(shared):
    """In the order of the file, which is that of time: MMSI, seconds, longitude, latitude."""
    file = shared / "data" / "ais-denmark" / "aisdk-2026-04-26-first20000.csv"
    with file.open() as source:
        for record in csv.DictReader(source):
            told = f"{record['# Timestamp']} +0000"
            at_s = datetime.strptime(told, "%d/%m/%Y %H:%M:%S %z").timestamp()
            place = float(record["Longitude"]), float(record["Latitude"])
            if abs(place[1]) <= 90:  # 91 is the format's way to say that it is unknown
                yield record["MMSI"], round(at_s), *place


def stream_of(name, **changed):
    columns = Columns(object="id", event_ts="t", x="x", y="y")
    return StreamSettings(
        name=name,
        format="csv",
        columns=columns,
        time_unit="s",
        max_ahead_s=None,
        **changed,
    )


def followed(folder, stream, queries, rows):
    """A home whose engine has read the rows, and come to the end of their last day; that day's end."""
    home = Home(folder)
    register(home, {stream.name: stream}, parse(queries), owner="t")
    log = bare_log(home.log(stream.name))
    for start in range(0, len(rows), 10_000):
        lines = [f"{i},{t},{x!r},{y!r}" for i, t, x, y in rows[start : start + 10_000]]
        log.append("\n".join(["id,t,x,y", *lines]).encode(), arrival_us=0)
    last = datetime.fromtimestamp(max(t for _, t, _, _ in rows), UTC).date() + DAY
    ends = datetime(last.year, last.month, last.day, tzinfo=UTC) + timedelta(hours=1)
    write_clock(log, round(ends.timestamp() * 1e6), arrival_us=0)
    run(home, stream, until_idle=True)
    return home, last


def told_of(home, stream):
    visits = sql(home, f"SELECT * EXCLUDE (run) FROM visits_{stream.name}")
    closed = [row for row in visits.to_pylist() if row["cause_out"] is not None]
    return sorted(map(repr, closed))


def stored(home, stream):
    visits = tables.read(home.table("visits", stream.name)).drop_columns(["run"])
    return sorted(map(repr, visits.to_pylist()))


def first_day(rows):
    return datetime.fromtimestamp(min(t for _, t, _, _ in rows), UTC).date()


@pytest.fixture(scope="module")
def in_order(shared, tmp_path_factory):
    """The taxis in order of time: the home, its rows, the end of its days, what was told."""
    rows = sorted(taxi_rows(shared), key=lambda row: row[1])
    stream = stream_of("taxis")
    home, until = followed(tmp_path_factory.mktemp("in_order"), stream, TAXIS, rows)
    return home, rows, until, told_of(home, stream)


def test_taxis_that_came_in_order_have_the_visits_that_were_told(in_order):
    home, rows, until, told = in_order
    done = reprocess(home, stream_of("taxis"), first_day(rows), until)
    assert [day.differs for day in done.days] == [0, 0]
    assert [day.late for day in done.days] == [0, 0]
    assert sum(day.fixes for day in done.days) == 47_328
    assert stored(home, stream_of("taxis")) == told
    assert len(told) > 1_000


def test_taxis_that_came_trip_by_trip_have_the_visits_of_those_in_order(
    in_order, shared, tmp_path
):
    stream, rows = stream_of("taxis"), list(taxi_rows(shared))
    home, until = followed(tmp_path, stream, TAXIS, rows)
    done = reprocess(home, stream, first_day(rows), until)
    assert stored(home, stream) == in_order[3]
    assert all(day.late > 100 and day.differs > 100 for day in done.days)
    assert [day.unexplained for day in done.days] == [0, 0]


def test_ships_that_came_out_of_order_within_the_lateness_have_the_visits_that_were_told(
    shared, tmp_path
):
    rows = list(ship_rows(shared))
    rows = sorted(rows, key=lambda row: row[1] + hash_of(row) % 30)
    stream = stream_of("ships", lateness_s=30.0)
    home, until = followed(tmp_path, stream, SHIPS, rows)
    told = told_of(home, stream)
    (day,) = reprocess(home, stream, until - DAY, until).days
    assert (day.late, day.differs) == (0, 0)
    assert stored(home, stream) == told
    assert len(told) > 100


def hash_of(row):
    """A number that looks like chance and is the same each time."""
    return (int(row[0]) * 2_654_435_761 + row[1] * 40_503) >> 7
