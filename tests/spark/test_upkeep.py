"""Maintenance by delta-spark and by delta-rs: the same rows stay, the same go, and nothing is done twice (SPEC C5)."""

import json
import os
import shutil
import string
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from jobs.maintain import main
from st_common import tables
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.errors import FairwayError
from st_common.maintenance.maintain import maintain
from st_common.operations.status import StreamStatus, write_status
from st_common.spark.delta import ReplaceOnSpark
from st_common.spark.upkeep import WRITTEN, SparkUpkeep

pytestmark = [pytest.mark.spark, pytest.mark.spec("C5", "S13")]

RACES = int(os.environ.get("FAIRWAY_RACES", "1"))  # so many tables are raced for
TODAY = date(2024, 3, 10)  # by the wall clock, and by the stream's
OLD = TODAY - timedelta(days=500)  # visits are kept for 400 days
DAYS = [OLD, OLD + timedelta(days=1), *(TODAY - timedelta(days=n) for n in range(4))]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def some_rows(rng, contract, day, count):
    """Rows of a contract on a day: what has no meaning here is random text and numbers."""
    schema = contract.arrow_schema()
    midnight_us = (datetime(day.year, day.month, day.day, tzinfo=UTC) - EPOCH) // (
        timedelta(microseconds=1)
    )

    def values(kind):
        if pa.types.is_date(kind):
            return [day] * count
        if pa.types.is_timestamp(kind):
            times = midnight_us + rng.integers(0, 86_400_000_000, count)
            return pa.array(times).cast(kind)
        if pa.types.is_boolean(kind):
            return rng.random(count) < 0.5
        if pa.types.is_integer(kind):
            return rng.integers(0, 1000, count)
        if pa.types.is_floating(kind):
            return rng.normal(size=count)
        letters = rng.choice(list(string.ascii_letters), (count, 8))
        return ["".join(one) for one in letters]

    columns = [pa.array(values(field.type), field.type) for field in schema]
    return pa.table(columns, schema=schema)


def some_home(root, seed, *names):
    """A home with some tables, or all, whose days came in several commits each; the stream's clock stands at today."""
    home, rng = Home(root), np.random.default_rng(seed)
    places = {
        "visits": home.table("visits", "taxis"),
        "differences": home.table("differences", "taxis"),
        "positions": home.table("positions", "taxis"),
        "quality": home.table("quality"),
        "trial": home.table("trials") / "taxis.wider",
    }
    for name in names or places:
        path = places[name]
        contract = load_contract("visits" if name == "trial" else name)
        for commit in range(3):
            for day in rng.permutation(DAYS):
                rows = some_rows(rng, contract, day, int(rng.integers(1, 300)))
                number = commit * 1000 + day.toordinal() % 1000
                tables.append(path, rows, contract, app=f"{day}", version=number)
    at_us = (datetime(2024, 3, 10, 1, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    status = StreamStatus(
        state="idle", beat_ts=1, position=0, end_position=0, now_ts=at_us
    )
    write_status(home.stream("taxis"), status)
    return home


def on_spark(spark):
    upkeep = SparkUpkeep(lambda: spark)
    return lambda one: upkeep if one.contract.name in WRITTEN else tables


def found(path):
    """The rows of a table in one order, its days, what it says was purged, and its properties."""
    rows = tables.read(path)
    partitions = sorted(map(str, DeltaTable(path).partitions()))
    order = [(name, "ascending") for name in rows.column_names]
    said = (tables.purged_rows(path), tables.purged_before(path))
    return (
        rows.sort_by(order).to_pylist(),
        partitions,
        said,
        DeltaTable(path).metadata().configuration,
        DeltaTable(path).metadata().partition_columns,
    )


def engines_of(path):
    """Which engines have committed to a table."""
    commits = sorted((path / "_delta_log").glob("*.json"))
    infos = [
        json.loads(line)["commitInfo"]
        for commit in commits
        for line in commit.read_text().splitlines()
        if "commitInfo" in line
    ]
    return {
        "spark" if "Spark" in one.get("engineInfo", "") else "rs": one["operation"]
        for one in infos
    }


def test_both_engines_keep_the_same_rows_and_days(spark, tmp_path):
    home = some_home(tmp_path / "spark", 1)
    shutil.copytree(home.root, tmp_path / "local")
    of_spark = on_spark(spark)
    done = list(maintain(home, today=TODAY, upkeep_of=of_spark))
    other = Home(tmp_path / "local")
    wanted = list(maintain(other, today=TODAY))

    assert [one.table for one in done] == [one.table for one in wanted]
    for one, two in zip(done, wanted, strict=True):
        assert one.retained.since == two.retained.since
        assert one.retained.purged.rows == two.retained.purged.rows
        days = {"positions/taxis": len(DAYS)}.get(one.table, one.after.files)
        assert one.after.files <= max(days, two.after.files), one.table
    assert sum(one.retained.purged.rows for one in done) > 0
    for path in paths_of(home):
        assert found(path) == found(other.root / path.relative_to(home.root))
        name = "visits" if "trials" in path.parts else path.parent.name
        by_spark = name in WRITTEN or path.name in WRITTEN
        assert ("spark" in engines_of(path)) == by_spark, path
        assert not list(path.rglob(".*.crc"))

    before = {path: tables.version(path) for path in paths_of(home)}
    again = list(maintain(home, today=TODAY, upkeep_of=of_spark))
    assert {path: tables.version(path) for path in paths_of(home)} == before
    assert sum(one.joined for one in again) == 0


def paths_of(home):
    return [log.parent for log in sorted(home.root.rglob("_delta_log"))]


def test_files_of_old_versions_go_when_nobody_can_read_them_any_more(spark, tmp_path):
    home = some_home(tmp_path / "home", 7, "visits")
    path, upkeep = home.table("visits", "taxis"), SparkUpkeep(lambda: spark)
    before = found(path)[0]
    assert upkeep.vacuum(path) == 0
    done = upkeep.compact(path, before=TODAY, zorder=("query", "object"))
    assert done["partitions"] == len(DAYS) - 1
    assert done["files_before"] == 3 * done["files_after"] == 3 * (len(DAYS) - 1)
    assert upkeep.vacuum(path) == 0, "a version that was just replaced can be read"
    assert upkeep.vacuum(path, retention_h=0) == done["files_before"]
    assert found(path)[0] == before
    assert spark.conf.get("spark.databricks.delta.optimize.maxFileSize", None) is None


def test_a_day_of_which_only_some_files_go_is_left_to_delta_rs(spark, tmp_path):
    """Results of checks go by when they were made: of one day some may be old, and others not."""
    home, rng = Home(tmp_path / "home"), np.random.default_rng(3)
    path, contract = home.table("quality"), load_contract("quality")
    for number in range(2):
        rows = some_rows(rng, contract, TODAY, 5)
        tables.append(path, rows, contract, app="check", version=number)
    upkeep = SparkUpkeep(lambda: spark)
    purged = upkeep.purge(path, lambda files: np.arange(len(files)) == 0, before=1)
    assert (purged.files, purged.rows) == (1, 5)
    assert len(tables.read(path)) == 5
    assert set(engines_of(path)) == {"rs"}


def test_who_reads_beside_the_upkeep_sees_every_row_once(spark, tmp_path):
    home = some_home(tmp_path / "home", 11, "visits")
    path = home.table("visits", "taxis")
    wanted = len(tables.read(path, filters=[("event_date", ">", OLD + timedelta(9))]))
    counts, ended = set(), threading.Event()

    def reads():
        while not ended.is_set():
            since = [("event_date", ">", OLD + timedelta(9))]
            counts.add(len(tables.read(path, filters=since)))

    reader = threading.Thread(target=reads)
    reader.start()
    try:
        of_spark = on_spark(spark)
        for _ in range(2):
            list(maintain(home, today=TODAY, upkeep_of=of_spark))
    finally:
        ended.set()
        reader.join()
    assert counts == {wanted}


@pytest.mark.spec("C6")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("race", range(RACES))
def test_days_replaced_by_both_engines_beside_the_upkeep_lose_no_commit(
    spark, tmp_path, race
):
    """Each has days of its own: what stands there at the end is what it put there last, whatever the others did."""
    path, contract = Home(tmp_path).table("visits", "taxis"), load_contract("visits")
    rng, ended = np.random.default_rng(9 + race), threading.Event()
    days = [TODAY - timedelta(days=n) for n in range(6)]
    rows = [some_rows(rng, contract, day, 20) for day in days for _ in range(2)]
    by_spark, upkeep = ReplaceOnSpark(lambda: spark, "race"), SparkUpkeep(lambda: spark)
    last = {}

    def replaces(put, own, times):
        for number in range(times):
            which = own[number % len(own)]
            chosen = rows[2 * which + number // len(own) % 2]
            put(path, chosen, contract, predicate=f"event_date = '{days[which]}'")
            last[which] = chosen

    def keeps():
        while not ended.is_set():
            upkeep.compact(path, before=TODAY, zorder=("query", "object"))
            upkeep.vacuum(path)
            ended.wait(0.2)  # nobody is next in turn for a lock

    tables.create(path, contract)
    with ThreadPoolExecutor(3) as pool:
        beside = pool.submit(keeps)
        racing = [
            pool.submit(replaces, by_spark, (0, 1, 2), 6),
            pool.submit(replaces, tables.replace, (3, 4, 5), 45),
        ]
        try:
            for one in racing:
                one.result(timeout=600)
        finally:
            ended.set()
        beside.result(timeout=60)
    order = [(name, "ascending") for name in rows[0].column_names]
    wanted = pa.concat_tables(list(last.values())).sort_by(order)
    assert tables.read(path).sort_by(order).equals(wanted)
    history = DeltaTable(path).history()
    assert [one["operation"] for one in history].count("WRITE") >= 6
    assert tables.version(path) >= 51
    assert len(history) == tables.version(path) + 1


def test_the_job_keeps_a_home_by_spark_unless_it_is_told_otherwise(
    spark, tmp_path, capsys
):
    home = some_home(tmp_path / "home", 5, "visits", "positions")
    assert main(["--home", str(home.root), "--no-purge"]) == 0
    said = json.loads(capsys.readouterr().out.splitlines()[-1])["tables"]
    files = {one["table"]: one["files_after"] for one in said}
    assert files["visits/taxis"] == len(DAYS)
    assert "spark" in engines_of(home.table("visits", "taxis"))
    assert Path(home.root).is_dir()


@pytest.mark.spec("S4")
def test_upkeep_on_spark_keeps_what_is_deleted_by_vectors_deleted(spark, tmp_path):
    """Only delta-rs does not know vectors (docs/foreign-writers.md)."""
    home = some_home(tmp_path / "home", 13, "visits", "positions")
    path = home.table("visits", "taxis")
    table, wanted = f"delta.`{path}`", f"event_date >= '{TODAY - timedelta(9)}'"
    for statement in (
        f"ALTER TABLE {table} SET TBLPROPERTIES (delta.enableDeletionVectors = true)",
        f"DELETE FROM {table} WHERE crc32(object) % 3 = 0",
    ):
        spark.sql(statement).collect()
    kept = spark.read.format("delta").load(str(path)).where(wanted).count()
    with pytest.raises(FairwayError, match="deletion vectors"):
        tables.read(path)
    done = {one.table: one for one in maintain(home, today=TODAY)}
    assert "deletion vectors" in done["visits/taxis"].refused
    assert not done["positions/taxis"].refused
    done = {
        one.table: one for one in maintain(home, today=TODAY, upkeep_of=on_spark(spark))
    }
    assert not any(one.refused for one in done.values())
    assert done["visits/taxis"].joined
    copy = shutil.copytree(path, tmp_path / "copy")
    frame = spark.read.format("delta").load(str(copy))
    assert frame.where(wanted).count() == frame.count() == kept
