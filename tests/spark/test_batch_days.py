"""Closed days on Spark: the same visits as in one process, and errors for people as they are there."""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
import shapely
from deltalake import DeltaTable
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from st_common import tables
from st_common.batch import ordered
from st_common.batch.backtest import backtest
from st_common.batch.due import due_days
from st_common.batch.processed import FOLDER
from st_common.batch.reprocess import reprocess
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import load_streams
from st_common.contracts import load_contract
from st_common.engine.run import run
from st_common.errors import LogError
from st_common.layers.announce import announce
from st_common.layers.rows import layer_rows
from st_common.query.registry import drop, register
from st_common.query.text import parse
from st_common.spark import batch_days
from st_common.spark.batch_days import SparkFold
from st_common.spark.delta import ReplaceOnSpark, fixes_between
from tests.kit.effort import tries
from tests.kit.grid_days import histories, segment
from tests.kit.layer_tables import REGIONS, features_of
from tests.kit.log_writer import bare_log
from tests.kit.oracle_rows import Feature

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


JOINED = "REGISTER QUERY in_parks AS SELECT * FROM grid JOIN parks ON ST_Within(grid, parks);"
LATER = "REGISTER QUERY right AS SELECT * FROM grid INSIDE (6, 0, 11, 11);"
TABLES = ("visits", "differences")


def on_spark(spark, shards):
    """What lets `reprocess` fold and commit on Spark."""
    return {
        "fold": SparkFold(lambda: spark, shards),
        "put": ReplaceOnSpark(lambda: spark, "reprocess"),
    }


def kept_of(home):
    """Both tables, each with its files and properties; they and all borders are gone then."""
    kept = {name: table_of(home.table(name, "grid")) for name in TABLES}
    borders = home.stream("grid") / FOLDER
    for folder in (*(home.table(name, "grid") for name in TABLES), borders):
        if folder.exists():
            count = len(list(folder.parent.glob(".*")))
            folder.rename(folder.with_name(f".{folder.name}.{count}"))
        tables.forget(folder)
    return kept


def table_of(path):
    """The rows of a table, its properties, how it is parted, and what is said of its files; None without one."""
    if not tables.exists(path):
        return None
    rows, table = tables.read(path), DeltaTable(path)
    meta, files = table.metadata(), pa.table(table.get_add_actions(flatten=True))
    files = files.select(["partition.event_date", "num_records"])
    return (
        rows.sort_by([(name, "ascending") for name in rows.column_names]).to_pylist(),
        (meta.name, meta.description, meta.configuration, meta.partition_columns),
        files.sort_by("partition.event_date").to_pylist(),
    )


def commits_of(path):
    """What is said of each commit of a table, the newest first."""
    return DeltaTable(path).history()


def filled(home, stream, queries):
    """A home in which an engine has told of all fixes, whose days are closed."""
    register(home, {"grid": stream}, parse(queries), owner="t")
    lines = [*fixes(), f"z,{round(T0.timestamp()) + (DAYS + 1) * 86_400},99,99"]
    log = bare_log(home.log("grid"))
    for start in range(0, len(lines), 2_000):
        rows = "\n".join(["id,t,x,y", *lines[start : start + 2_000]])
        log.append(rows.encode(), arrival_us=0)
    run(home, stream, until_idle=True)


@pytest.mark.spec("C6", "S13")
@pytest.mark.parametrize(("moving", "shards"), [(True, 2), (False, 3)])
def test_tables_of_days_on_spark_are_those_of_one_process(
    spark, tmp_path, moving, shards, monkeypatch
):
    home, stream = Home(tmp_path), replace(STREAM, moving=moving)
    filled(home, stream, STILL + (MOVING if moving else ""))
    monkeypatch.setattr(ordered, "ROWS", 700)
    days = [T0.date() + timedelta(days=n) for n in range(DAYS + 1)]
    here = reprocess(home, stream, days[0], days[-1])
    wanted = kept_of(home)
    done = reprocess(home, stream, days[0], days[-1], **on_spark(spark, shards))
    check_commits(home, days[:-1])
    assert kept_of(home) == wanted
    assert done.days == here.days
    assert sum(day.late for day in done.days) > 10
    assert [day.unexplained for day in done.days] == [0] * DAYS
    assert all(len(wanted[name][0]) > 100 for name in TABLES)
    if moving:
        check_backtest(spark, home, stream, monkeypatch)


def check_commits(home, days):
    """Each day of both tables was replaced by one commit of delta-spark, and nothing of Hadoop's is beside them."""
    for name in TABLES:
        path = home.table(name, "grid")
        *written, _ = commits_of(path)
        assert [one["engineInfo"].split("/")[0] for one in written] == [
            "Apache-Spark"
        ] * len(days)
        replaced = [
            re.findall(r"\d+-\d+-\d+", one["operationParameters"]["predicate"])
            for one in written
        ]
        assert replaced == [[str(day)] for day in reversed(days)]
        assert list(path.rglob(".*.crc")) == []


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


@pytest.mark.spec("C6", "S13")
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
    wanted = kept_of(home)
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
    assert [name for name in left if name[0] == "."] == []
    assert kept_of(home) == wanted


@pytest.fixture
def told(tmp_path):
    """A home with three closed days, and its stream."""
    home, stream = Home(tmp_path), replace(STREAM, moving=True)
    filled(home, stream, STILL)
    return home, stream


FIRST, SECOND = T0.date(), T0.date() + timedelta(days=1)


@pytest.mark.spec("C6", "S13")
def test_a_day_done_again_on_spark_writes_nothing(spark, told):
    home, stream = told
    for replaced in (True, False):
        done = reprocess(home, stream, FIRST, SECOND, **on_spark(spark, 2))
        assert [day.replaced for day in done.days] == [replaced]
        assert [tables.version(home.table(name, "grid")) for name in TABLES] == [1, 1]
    here = reprocess(home, stream, FIRST, SECOND)
    assert [day.replaced for day in here.days] == [False]


@pytest.mark.spec("C6", "S13")
def test_days_that_late_fixes_made_due_come_on_spark_to_the_rows_of_all_fixes(
    spark, told
):
    home, stream = told
    end = FIRST + timedelta(days=DAYS)
    reprocess(home, stream, FIRST, end, **on_spark(spark, 2))
    assert due_days(home, stream) is None
    late = [f"o{n},{round(T0.timestamp()) + 30 * 3600 + n},{n},{n}" for n in range(5)]
    rows = "\n".join(["id,t,x,y", *late])
    bare_log(home.log("grid")).append(rows.encode(), arrival_us=0)
    run(home, stream, until_idle=True)
    due = due_days(home, stream)
    assert (due.since, due.until) == (SECOND, end)
    reprocess(home, stream, due.since, due.until, **on_spark(spark, 2))
    assert due_days(home, stream) is None
    rows = [kept[0] for kept in kept_of(home).values()]
    reprocess(home, stream, FIRST, end)
    assert [kept[0] for kept in kept_of(home).values()] == rows


@pytest.mark.spec("C6", "S13")
def test_a_day_that_changed_replaces_its_own_rows_alone(spark, told):
    home, stream = told
    reprocess(home, stream, FIRST, SECOND + timedelta(days=1), **on_spark(spark, 2))
    path = home.table("visits", "grid")
    before = tables.read(path, filters=[("event_date", "=", SECOND)])
    predicate = f"event_date = DATE'{FIRST}'"
    none = load_contract("visits").arrow_schema().empty_table()
    ReplaceOnSpark(lambda: spark, "reprocess")(
        path, none, load_contract("visits"), predicate=predicate
    )
    assert tables.read(path).equals(before)
    done = reprocess(
        home, stream, FIRST, SECOND + timedelta(days=1), **on_spark(spark, 2)
    )
    assert [day.replaced for day in done.days] == [True, False]


@pytest.mark.spec("C6", "S13")
def test_of_positions_the_files_of_a_day_and_the_columns_that_count_are_read(
    spark, told, capsys
):
    home, _ = told
    first_us = round(T0.timestamp()) * 1_000_000
    end_us = first_us + 86_400_000_000
    frame = fixes_between(
        spark, home, "grid", ("event_ts", "x"), since_us=first_us, until_us=end_us
    )
    files = {re.search(r"event_date=([^/]*)", name)[1] for name in frame.inputFiles()}
    assert files == {str(FIRST)}
    frame.explain("formatted")
    plan = capsys.readouterr().out
    (parted,) = re.findall(r"PartitionFilters: (.*)", plan)
    (pushed,) = re.findall(r"PushedFilters: (.*)", plan)
    assert f"(event_date#0 >= {FIRST})" in re.sub(r"#\d+", "#0", parted)
    assert f"GreaterThanOrEqual(event_ts,{FIRST}" in pushed
    assert "LessThan(segment," in pushed
    (schema,) = re.findall(r"ReadSchema: struct<(.*)>", plan)
    assert schema == "segment:bigint,row:int,event_ts:timestamp,x:double"
    bounds = [("event_date", "=", FIRST)]
    rows = tables.read(
        home.table("positions", "grid"), columns=["segment"], filters=bounds
    )
    assert frame.count() == len(rows) > 1_000


@pytest.mark.spec("C6", "S13")
def test_a_task_that_is_killed_is_done_again_and_nobody_sees_it(
    spark, told, tmp_path, monkeypatch
):
    home, stream = told
    reprocess(home, stream, FIRST, SECOND)
    wanted, killed, fold = (
        kept_of(home),
        str(tmp_path / "killed"),
        batch_days.fold_shard,
    )

    def dying(*args, **words):
        done = fold(*args, **words)
        try:
            os.close(os.open(killed, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return done
        return os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(batch_days, "fold_shard", dying)
    reprocess(home, stream, FIRST, SECOND, **on_spark(spark, 2))
    assert Path(killed).exists()
    assert kept_of(home) == wanted


def test_a_task_holds_some_packets_of_a_shard_and_never_all(
    spark, told, tmp_path, monkeypatch
):
    home, stream = told
    rows, held = batch_days._rows, tmp_path / "held"

    def noted(batches):
        for batch in batches:
            with held.open("a") as notes:
                notes.write(f"{len(batch)}\n")
            yield from rows([batch])

    monkeypatch.setattr(batch_days, "_rows", noted)
    most = {"spark.sql.execution.arrow.maxBytesPerBatch": "1"}
    monkeypatch.setattr(batch_days, "_BATCH", most)
    monkeypatch.setattr(ordered, "ROWS", 700)
    reprocess(home, stream, FIRST, SECOND, **on_spark(spark, 2))
    sizes = held.read_text().split()
    assert set(sizes) == {"1"}
    assert len(sizes) >= 2 * 5  # two shards, each with a packet of each of five slices


def test_an_error_for_people_in_a_task_is_one_outside(spark, told, monkeypatch):
    home, stream = told

    def damaged(*_, **__):
        raise LogError("segment 2 is damaged", hint="restore it")

    monkeypatch.setattr(batch_days, "fold_shard", damaged)
    with pytest.raises(LogError, match=r"^segment 2 is damaged \(restore it\)$"):
        reprocess(home, stream, FIRST, SECOND, **on_spark(spark, 2))
    assert not tables.exists(home.table("visits", "grid"))


def load_park(home, *corners):
    """The next version of the layer `parks`, of one feature, which the logs are told."""
    feature = Feature("p", "park", shapely.box(*corners))
    rows = layer_rows(features_of([feature]), REGIONS)
    tables.replace(home.table("layers", "parks"), rows, load_contract("layers"))
    announce(home, layer="parks", arrival_us=0)


def follow(home, stream, arriving, cuts, queries):
    """A log in which queries come and go between fixes, and a layer changes; an engine tells of it, then archives."""
    streams = {"grid": stream}
    load_park(home, 0, 0, 4, 4)
    announce(home, stream="grid", arrival_us=0)
    register(home, streams, parse(queries), owner="t")
    log = bare_log(home.log("grid"))
    for number, (start, end) in enumerate(itertools.pairwise([0, *cuts])):
        segment(log, arriving[start:end])
        if number == 0:
            register(home, streams, parse(LATER), owner="t")
            load_park(home, 2, 2, 9, 9)
        if number == 1:
            drop(home, "left")
    run(home, stream, until_idle=True)


def days_of(home, stream, **engine):
    """What both tables hold of the three days, and what is said of these."""
    end = FIRST + timedelta(days=DAYS)
    done = reprocess(home, stream, FIRST, end, **engine)
    return done.days, kept_of(home)


@pytest.mark.spec("C6", "X2")
@settings(tries(3), phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(histories(), st.integers(1, 3), st.integers(2, 9), st.booleans(), st.data())
def test_whatever_came_late_both_engines_keep_equal_tables(
    spark, history, shards, rows, moving, data
):
    stream, arriving, cuts = history
    stream = replace(stream, moving=moving)
    arriving = [*data.draw(st.permutations(arriving[:-1])), arriving[-1]]
    queries = STILL + JOINED + (MOVING if moving else "")
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as small:
        home = Home(Path(folder))
        follow(home, stream, arriving, cuts, queries)
        small.setattr(ordered, "ROWS", rows)
        here = days_of(home, stream)
        assert days_of(home, stream, **on_spark(spark, shards)) == here
