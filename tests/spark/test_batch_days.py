"""Closed days on Spark: the same visits as in one process, and errors for people as they are there."""

import json
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from st_common import tables
from st_common.engine.batch.backtest import backtest
from st_common.engine.batch.borders import FOLDER
from st_common.engine.batch.reprocess import reprocess
from st_common.engine.batch.sharded import ShardedFold
from st_common.engine.run import run
from st_common.errors import LogError
from st_common.home import Home
from st_common.levels.visits import sorted_visits
from st_common.query.registry import register
from st_common.query.text import parse
from st_common.settings import Columns, StreamSettings, load_streams
from st_common.spark import batch_days
from st_common.spark.batch_days import OnSpark
from tests.kit.log_writer import bare_log

ROOT = Path(__file__).resolve().parents[2]
T0 = datetime(2024, 5, 1, tzinfo=UTC)
DAYS = 3
STREAM = StreamSettings(
    name="grid",
    format="csv",
    crs="planar",
    time_unit="s",
    max_ahead_s=None,
    lateness_s=600.0,
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
)
STILL = """
REGISTER QUERY left AS SELECT * FROM grid INSIDE (0, 0, 5, 11);
REGISTER QUERY fence AS SELECT * FROM grid INSIDE (3, 3, 7, 7) DETECT ENTER, EXIT, DWELL 30 min;
"""
MOVING = """
REGISTER QUERY near AS SELECT * FROM grid KNN (3, 5, 5);
REGISTER QUERY pairs AS SELECT * FROM grid a JOIN grid b ON ST_DWithin(a, b, 2 m);
REGISTER QUERY many AS SELECT COUNT(*) FROM grid INSIDE (0, 0, 11, 5);
REGISTER QUERY lately AS SELECT * FROM grid INSIDE (3, 3, 7, 7) WINDOW 3 h;
"""


def fixes():
    """Twenty objects to and fro, out of order by up to an hour, and by half a day at times."""
    rows = []
    for step in range(DAYS * 24 * 6):
        for n in range(20):
            behind_s = (
                12 * 3600 if (step * 20 + n) % 97 == 0 else (step * n * 37) % 3600
            )
            rows.append((step * 600 + n + behind_s, n, step))
    rows.sort()
    epoch = round(T0.timestamp())
    for _, n, step in rows:
        yield f"o{n},{epoch + step * 600 + n},{(step * (n + 3)) % 11},{(step * (n + 5)) % 13}"


def visits_of(home):
    """The visits that there are, which are gone then, with all borders."""
    path = home.table("visits", "grid")
    rows = sorted_visits(tables.read(path))
    for folder in (path, home.stream("grid") / FOLDER):
        folder.rename(
            folder.with_name(f".{folder.name}.{len(list(folder.parent.glob('.*')))}")
        )
    tables.forget(path)
    return rows


@pytest.mark.spec("C6")
@pytest.mark.parametrize(("moving", "shards"), [(True, 2), (False, 3)])
def test_visits_of_days_on_spark_are_those_of_one_process(
    spark, tmp_path, moving, shards, monkeypatch
):
    home, stream = Home(tmp_path), replace(STREAM, moving=moving)
    queries = STILL + (MOVING if moving else "")
    register(home, {"grid": stream}, parse(queries), owner="t")
    lines = [*fixes(), f"z,{round(T0.timestamp()) + (DAYS + 1) * 86_400},99,99"]
    log = bare_log(home.log("grid"))
    for start in range(0, len(lines), 2_000):
        rows = "\n".join(["id,t,x,y", *lines[start : start + 2_000]])
        log.append(rows.encode(), arrival_us=0)
    run(home, stream, until_idle=True)
    monkeypatch.setattr("st_common.engine.batch.ordered.ROWS", 700)
    days = [T0.date() + timedelta(days=n) for n in range(DAYS + 1)]
    here = reprocess(home, stream, days[0], days[-1])
    wanted = visits_of(home)
    fold = ShardedFold(OnSpark(lambda: spark), shards)
    done = reprocess(home, stream, days[0], days[-1], fold=fold)
    assert visits_of(home).equals(wanted)
    assert done.days == here.days
    assert sum(day.late for day in done.days) > 10
    assert [day.unexplained for day in done.days] == [0] * DAYS
    assert len(wanted) > 1_000
    if moving:
        check_backtest(spark, home, stream, monkeypatch)


def check_backtest(spark, home, stream, monkeypatch):
    """What would have told on Spark is what one process finds."""

    @contextmanager
    def of_tests(*_):
        yield lambda: spark

    monkeypatch.setattr(batch_days, "_session_of", of_tests)
    plans = {one.name: one.plan for one in parse(STILL + MOVING)}
    here = backtest(home, stream, plans, days=DAYS)
    there = batch_days.backtest_on_spark(home, stream, plans, days=DAYS)
    for name in ("totals", "days", "examples"):
        assert getattr(there, name).equals(getattr(here, name)), name


CONF = """
[streams.grid]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
"""


@pytest.mark.spec("C6")
def test_the_job_processes_a_day_on_spark_and_leaves_nothing_of_it(tmp_path):
    home = Home(tmp_path / "home")
    (home.root / "conf").mkdir(parents=True)
    (home.root / "conf" / "streams.toml").write_text(CONF)
    stream = load_streams(home.root / "conf")["grid"]
    register(home, {"grid": stream}, parse(STILL), owner="t")
    ends = f"z,{round(T0.timestamp()) + 2 * 86_400},99,99"
    rows = "\n".join(["id,t,x,y", *list(fixes())[:2_000], ends])
    bare_log(home.log("grid")).append(rows.encode(), arrival_us=0)
    run(home, stream, until_idle=True)
    day = T0.date()
    here = reprocess(home, stream, day, day + timedelta(days=1))
    wanted = visits_of(home)
    words = ["--home", home.root, "--from", day, "--to", day + timedelta(days=1)]
    done = subprocess.run(  # our own program
        [sys.executable, "-m", "jobs.reprocess", *map(str, words), "--engine", "spark"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (again,) = json.loads(done.stdout)["streams"]["grid"]["days"]
    assert again == here.days[0].to_json()
    left = sorted(path.name for path in (home.stream("grid") / FOLDER).iterdir())
    assert [name for name in left if name.startswith(".work")] == []
    assert visits_of(home).equals(wanted)


def test_an_error_for_people_in_a_task_is_one_outside(spark):
    def work(number):
        if number == 2:
            raise LogError("segment 2 is damaged", hint="restore it")
        return number

    on_spark = OnSpark(lambda: spark)
    assert on_spark([(0,), (1,)], work) == [0, 1]
    with pytest.raises(LogError, match=r"segment 2 is damaged \(restore it\)"):
        on_spark([(1,), (2,)], work)
