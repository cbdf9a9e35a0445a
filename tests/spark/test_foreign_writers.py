"""What another program's Spark does to the tables of a home: each statement, tried (docs/foreign-writers.md).

Two streams have run, `good` and `ill`. Spark alters one table of `ill`. Then `ill` has more records, and all that reads
or writes tables is tried: what it gives is what Spark itself reads, or the error names that table, and the statements
that it says cure it. The other stream notices nothing.
"""

import json
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from jobs.maintain import main as maintain_job
from st_common import tables
from st_common.answers.changes import stream_changes
from st_common.answers.sql import sql
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.errors import FairwayError
from st_common.operations.alerts import read_alerts
from st_common.spark.session import configured
from st_common.tables.tail import Tail
from tests.kit.foreign_tables import fairway, feed, two_streams

pytestmark = [pytest.mark.spark, pytest.mark.spec("C5", "C7", "S4", "S10")]

PROPERTY = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.%s' = '%s')"
VECTORS = PROPERTY % ("enableDeletionVectors", "true")
MAPPING = PROPERTY % ("columnMapping.mode", "name")
DAY_S = 86_400
OK, REFUSED = "ok", "refused"
REMOVE = "the folder is removed"


@dataclass(frozen=True, kw_only=True)
class Case:
    """What Spark does, and what comes of it.

    `rows`: whether the table has the same rows as before. `append`, `maintain`, `read`: whether the engine goes on,
    and whether `maintain` and readers take the table. `cure`: what to do in place of what the error says. `alert`: what
    an alert names, where the engine goes on without something.
    """

    name: str
    statements: tuple[str, ...]
    table: str = "changes"
    rows: str = "same"
    append: str = OK
    maintain: str = OK
    read: str = OK
    cure: tuple[str, ...] = ()
    alert: str = ""


CASES = [
    Case(name="OPTIMIZE", statements=("OPTIMIZE {t}",)),
    Case(name="OPTIMIZE of positions", table="positions", statements=("OPTIMIZE {t}",)),
    Case(name="ZORDER BY", statements=("OPTIMIZE {t} ZORDER BY (object, position)",)),
    Case(name="VACUUM", statements=("VACUUM {t}",)),
    Case(
        name="VACUUM RETAIN 0", statements=("OPTIMIZE {t}", "VACUUM {t} RETAIN 0 HOURS")
    ),
    Case(
        name="DELETE", statements=("DELETE FROM {t} WHERE object = 'a'",), rows="fewer"
    ),
    Case(
        name="DELETE of positions",
        table="positions",
        statements=("DELETE FROM {t} WHERE object = 'a'",),
        rows="fewer",
    ),
    Case(
        name="UPDATE",
        statements=("UPDATE {t} SET x = 99 WHERE object = 'a'",),
        rows="others",
    ),
    Case(
        name="UPDATE of positions",
        table="positions",
        statements=("UPDATE {t} SET x = 2.5 WHERE object = 'a'",),
        rows="others",
    ),
    Case(
        name="MERGE INTO",
        statements=(
            "MERGE INTO {t} t USING (SELECT 'a' AS id) s ON t.object = s.id"
            " WHEN MATCHED THEN UPDATE SET y = 7",
        ),
        rows="others",
    ),
    Case(
        name="INSERT",
        statements=("INSERT INTO {t} SELECT * FROM {t} WHERE object = 'a'",),
        rows="more",
    ),
    Case(
        name="ADD COLUMN",
        statements=("ALTER TABLE {t} ADD COLUMN note STRING",),
        append=REFUSED,
        maintain=OK,
        cure=(MAPPING, "ALTER TABLE {t} DROP COLUMN note"),
    ),
    Case(
        name="ADD COLUMN to positions",
        table="positions",
        statements=("ALTER TABLE {t} ADD COLUMN note STRING",),
    ),
    Case(name="deletion vectors on", statements=(VECTORS,)),
    Case(
        name="deletion vectors",
        statements=(VECTORS, "DELETE FROM {t} WHERE object = 'a'"),
        rows="fewer",
        maintain=REFUSED,
        read=REFUSED,
    ),
    Case(
        name="deletion vectors of positions",
        table="positions",
        statements=(VECTORS, "DELETE FROM {t} WHERE object = 'a'"),
        rows="fewer",
        maintain=REFUSED,
        read=REFUSED,
    ),
    Case(
        name="deletion vectors dropped",
        statements=(
            VECTORS,
            "DELETE FROM {t} WHERE object = 'a'",
            "ALTER TABLE {t} DROP FEATURE deletionVectors",
        ),
        rows="fewer",
        append=REFUSED,
        maintain=REFUSED,
    ),
    Case(name="column mapping", statements=(MAPPING,)),
    Case(
        name="RENAME COLUMN",
        statements=(MAPPING, "ALTER TABLE {t} RENAME COLUMN object TO vehicle"),
        append=REFUSED,
        maintain=REFUSED,
        read=REFUSED,
    ),
    Case(
        name="ADD COLUMN under column mapping",
        table="positions",
        statements=(MAPPING, "ALTER TABLE {t} ADD COLUMN note STRING"),
        append=REFUSED,
        maintain=REFUSED,
        read=REFUSED,
    ),
    Case(
        name="DROP COLUMN",
        statements=(MAPPING, "ALTER TABLE {t} DROP COLUMN value"),
        append=REFUSED,
        read=REFUSED,
        cure=("RESTORE TABLE {t} TO VERSION AS OF {before}",),
    ),
    Case(
        name="CHECK constraint",
        statements=(
            "ALTER TABLE {t} ADD CONSTRAINT small CHECK (position < 1000000000000)",
        ),
    ),
    Case(name="append-only", statements=(PROPERTY % ("appendOnly", "true"),)),
    Case(
        name="change data feed",
        statements=(PROPERTY % ("enableChangeDataFeed", "true"),),
    ),
    Case(
        name="liquid clustering",
        table="latest",
        statements=("ALTER TABLE {t} CLUSTER BY (object)",),
        alert="clustering",
        cure=(REMOVE,),
    ),
    Case(
        name="type widening",
        statements=(PROPERTY % ("enableTypeWidening", "true"),),
        append=REFUSED,
        maintain=REFUSED,
    ),
    Case(
        name="row tracking",
        statements=(PROPERTY % ("enableRowTracking", "true"),),
        append=REFUSED,
        maintain=REFUSED,
    ),
    Case(
        name="in-commit timestamps",
        statements=(PROPERTY % ("enableInCommitTimestamps", "true"),),
        append=REFUSED,
        maintain=REFUSED,
    ),
    Case(
        name="v2 checkpoints",
        statements=(
            PROPERTY % ("checkpointPolicy", "v2"),
            PROPERTY % ("checkpointInterval", "1"),
            "UPDATE {t} SET x = x WHERE object = 'a'",
        ),
    ),
    Case(
        name="RESTORE",
        statements=("RESTORE TABLE {t} TO VERSION AS OF 1",),
        rows="fewer",
    ),
]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which two streams have run three times, over two days."""
    root = tmp_path_factory.mktemp("ran") / "home"
    settings = "snapshot_s = 60\nlatest_flush_s = 1\n"
    two_streams(root, 1, 100, DAY_S + 100, settings=settings)
    return root


@pytest.fixture(scope="module")
def foreign(spark) -> Iterator[object]:
    """The session of a data team that frees space at once; with few tasks, for the tables are small."""
    settings = {
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
    }
    with configured(spark, settings):
        yield spark


def does(spark, path: Path, *statements: str, before: int = 0) -> None:
    """Carries out statements; one that has to wait for history to be old enough is repeated, as Spark says."""
    for statement in statements:
        text = statement.format(t=f"delta.`{path}`", before=before)
        for left in reversed(range(60)):
            try:
                spark.sql(text).collect()
                break
            except Exception as error:
                if not left or "WAIT_FOR_RETENTION" not in str(error):
                    raise
                time.sleep(1)


def newest(path: Path) -> int:
    names = [one.stem for one in (path / "_delta_log").glob("*.json")]
    return max(int(name) for name in names if name.isdigit())


def by_spark(spark, path: Path) -> list[dict[str, object]]:
    """The rows as Spark reads them; by another path, so that it reads the log anew, checkpoints and all."""
    copy = path.with_name(f".{path.name}-{newest(path)}")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(path, copy)
    frame = spark.read.format("delta").load(str(copy))
    rows = [row.asDict() for row in frame.collect()]
    shutil.rmtree(copy)
    return in_order(rows)


def here(path: Path, contract: str) -> list[dict[str, object]]:
    return in_order(tables.read(path, contract=load_contract(contract)).to_pylist())


def in_order(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Rows in one order, their instants without zones: Spark's are of its session, which is UTC."""
    plain = [
        {
            name: value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value
            for name, value in row.items()
        }
        for row in rows
    ]
    return sorted(plain, key=lambda row: sorted(map(str, row.items())))


def reads(home: Home, name: str) -> list[str]:
    """What is said of the table by each that reads it: SQL, a follower from the beginning, the changes of a stream."""
    said = []
    schema = load_contract(name).arrow_schema()

    def followed():
        tail = Tail(
            home.table(name, "ill"), "position" if name == "changes" else "segment"
        )
        files = tail.added(0)
        assert tail.read(files, schema, pa.compute.field(schema.names[1]).is_valid())

    works = [lambda: sql(home, f"SELECT count(*) FROM {name}_ill"), followed]
    if name == "changes":
        works.append(lambda: stream_changes(home, "ill"))
    for work in works:
        try:
            work()
        except FairwayError as error:
            said.append(str(error))
    # One place decides; a follower reads what a dropped column had, for it is still in the files.
    assert len(said) in (0, len(works)) or "any more" in said[0]
    return said


def maintained(root: Path, capsys) -> tuple[int, dict[str, str]]:
    """The exit code of maintenance without a JVM, and the tables that it left, each with the reason."""
    capsys.readouterr()
    code = maintain_job(["--home", str(root), "--engine", "local"])
    done = json.loads(capsys.readouterr().out)["tables"]
    return code, {one["table"]: one["refused"] for one in done if one["refused"]}


def statements_in(said: str) -> list[str]:
    """What an error says to do in Spark."""
    found = re.search(r"in Spark SQL: (.*)\)", said)
    assert found, said
    return found[1].split("; ")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_spark_does_to_a_table(foreign, ran, tmp_path, capsys, case):
    root = tmp_path / "home"
    shutil.copytree(ran, root)
    home, path = Home(root), Home(root).table(case.table, "ill")
    before = here(path, case.table)
    does(foreign, path, *case.statements)
    altered = newest(path)

    said = reads(home, case.table)
    assert bool(said) == (case.read == REFUSED), said
    assert all(str(path) in one for one in said)
    if not said:
        assert_rows(case.rows, before, here(path, case.table))
    for healthy in ("changes_good", "positions_good", "latest_good", "visits_good"):
        assert len(sql(home, f"FROM {healthy}")), healthy

    wanted = 0 if case.append == OK else 2
    told = feed(root, "ill", DAY_S + 200, code=wanted)
    assert not wanted or str(path) in told
    feed(root, "good", DAY_S + 200)

    code, left = maintained(root, capsys)
    label = f"{case.table}/ill"
    assert (code, set(left)) == (
        (2, {label}) if case.maintain == REFUSED else (0, set())
    )
    alerts = [one.text for one in read_alerts(home) if str(path) in one.text]
    assert bool(alerts) >= bool(case.alert)
    assert all(case.alert in one for one in alerts)
    is_named = f"WRONG table {label}: {path}" in fairway(root, "doctor", code=None)
    is_refused = REFUSED in (case.append, case.maintain, case.read)
    is_altered = case.name != "ADD COLUMN"  # that is against the contract, no more
    assert is_named == ((is_refused or bool(case.alert)) and is_altered)
    if is_named or is_refused:
        assert_cured(foreign, root, case, altered - 1, capsys)
    assert here(path, case.table) == by_spark(foreign, path)


def assert_rows(what: str, before: list, now: list) -> None:
    assert (len(now) > len(before)) == (what == "more")
    assert (len(now) < len(before)) == (what == "fewer")
    names = before[0].keys()
    known = in_order([{name: row[name] for name in names} for row in now])
    assert (known == before) == (what == "same")


def assert_cured(spark, root: Path, case: Case, before: int, capsys) -> None:
    """What the error says is done, and all goes on; where Spark had taken rows out, they stay out."""
    home, path = Home(root), Home(root).table(case.table, "ill")
    cure = case.cure or statements_in(fairway(root, "doctor", code=None))
    if cure == (REMOVE,):
        shutil.rmtree(path)
    else:
        does(spark, path, *cure, before=before)
    cured = len(here(path, case.table)) if path.exists() else 0
    feed(root, "ill", DAY_S + 300)
    assert not reads(home, case.table)
    assert maintained(root, capsys) == (0, {})
    assert len(here(path, case.table)) > cured
    assert f"table {case.table}/ill" not in fairway(root, "doctor", code=None)
