"""A table that another program has altered is refused alone: whoever goes over several does the others and names it."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from jobs.maintain import main as maintain_job
from st_common import tables
from st_common.answers.sql import sql
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.errors import TableError
from st_common.operations.alerts import read_alerts
from tests.kit.foreign_tables import fairway, feed, two_streams

pytestmark = pytest.mark.spec("S4", "S10")

UNKNOWN = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["sunDials"],
    "writerFeatures": ["sunDials"],
}
WRITER_ONLY = {
    "minReaderVersion": 1,
    "minWriterVersion": 7,
    "writerFeatures": ["rowTracking", "domainMetadata"],
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which two streams have run, with a query each."""
    root = tmp_path_factory.mktemp("ran") / "home"
    two_streams(root, 1)
    return root


@pytest.fixture
def root(ran: Path, tmp_path: Path) -> Path:
    shutil.copytree(ran, tmp_path / "home")
    return tmp_path / "home"


def alter(path: Path, *actions: dict[str, object]) -> None:
    """Commits what only another program would."""
    version = (tables.version(path) or 0) + 1
    lines = "".join(json.dumps(action) + "\n" for action in actions)
    (path / "_delta_log" / f"{version:020d}.json").write_text(lines)


def altered(root: Path, name: str, protocol: dict[str, object]) -> Path:
    path = Home(root).table(name, "ill")
    alter(path, {"protocol": protocol})
    return path


def test_an_unknown_feature_refuses_that_table_by_name_with_what_cures_it(root):
    path = altered(root, "positions", UNKNOWN)
    with pytest.raises(TableError) as refused:
        tables.read(path)
    assert str(path) in str(refused.value)
    assert "sunDials" in str(refused.value)


@pytest.mark.parametrize("name", ["positions", "changes"])
def test_sql_refuses_only_texts_that_name_the_table(root, name):
    altered(root, name, UNKNOWN)
    home = Home(root)
    other = {"positions": "changes", "changes": "positions"}[name]
    for healthy in (f"{name}_good", f"{other}_ill", f"{other}_good", "visits_good"):
        assert len(sql(home, f"FROM {healthy}")), healthy
    assert f"{name}_ill" in sql(home, "SHOW TABLES")["name"].to_pylist()
    named = [f"{name}_ill", f"{name}_ILL"]
    named += ["changes", "visits", "visits_ill"] if name == "changes" else []
    for text in named:
        with pytest.raises(TableError, match="sunDials"):
            sql(home, f"SELECT count(*) FROM {text}")
    refused = fairway(root, "sql", f"SELECT * FROM {name}_ill", code=2)
    assert f"tables/{name}/ill" in refused


def test_the_own_name_of_a_stream_in_its_group_is_refused_with_its_table(root):
    altered(root, "positions", UNKNOWN)
    assert "12" in fairway(root, "sql", 'SELECT count(*) FROM "default".good')
    assert "sunDials" in fairway(
        root, "sql", 'SELECT count(*) FROM "default".ill', code=2
    )


def test_maintenance_does_the_others_and_ends_with_2(root, capsys):
    feed(root, "good", 100)
    feed(root, "ill", 100)
    path = altered(root, "positions", UNKNOWN)
    before = tables.stored(Home(root).table("positions", "good"))[0]
    assert before > 1
    places = ["--home", str(root), "--engine", "local"]
    assert maintain_job(places) == 2
    told = capsys.readouterr()
    assert f"error: positions/ill is left as it is: {path}" in told.err
    done = {one["table"]: one for one in json.loads(told.out)["tables"]}
    assert "sunDials" in done["positions/ill"]["refused"]
    assert [one for one in done.values() if one["refused"]] == [done["positions/ill"]]
    assert tables.stored(Home(root).table("positions", "good"))[0] < before
    assert "WRONG: positions/ill is left" in fairway(root, "maintain", code=2)


def test_doctor_names_it_and_backup_takes_it_along(root, tmp_path):
    path = altered(root, "positions", UNKNOWN)
    said = fairway(root, "doctor", code=2)
    drop = f"ALTER TABLE delta.`{path}` DROP FEATURE sunDials"
    assert f"WRONG table positions/ill: {path} has sunDials" in said
    assert drop in said
    assert "positions/good" not in said
    assert "ok    stream ill: its tables" in said
    log = sorted((path / "_delta_log").iterdir())
    fairway(root, "doctor", "--repair", code=2)
    assert sorted((path / "_delta_log").iterdir()) == log, "nothing was cut off"
    copied = fairway(root, "backup", "create", str(tmp_path / "copy"), code=2)
    assert f"WRONG table positions/ill: {path} has sunDials" in copied
    assert drop in copied, "of the table in the home, where it is cured"
    fairway(tmp_path / "back", "backup", "restore", str(tmp_path / "copy"), code=2)
    assert "WRONG table positions/ill" in fairway(tmp_path / "back", "doctor", code=2)


def test_verify_checks_the_other_streams(root):
    altered(root, "positions", UNKNOWN)
    said = fairway(root, "verify", code=2)
    assert "of_good: " in said
    assert "good: folds of" in said
    assert "sunDials" in said


def test_status_and_metrics_pass_over_it(root):
    altered(root, "positions", UNKNOWN)
    assert "ill" in fairway(root, "status")
    said = fairway(root, "status", "--metrics", "-")
    assert 'fairway_table_files{stream="good",table="positions"}' in said


def test_what_only_writers_must_know_is_read_and_refused_to_writers(root):
    path = altered(root, "positions", WRITER_ONLY)
    assert len(tables.read(path)) == 12
    stopped = feed(root, "ill", 100, code=2)
    drop = f"ALTER TABLE delta.`{path}` DROP FEATURE "
    assert f"{drop}rowTracking; {drop}domainMetadata" in stopped
    assert feed(root, "good", 100)
    assert "WRONG table positions/ill" in fairway(root, "doctor", code=2)


def test_a_table_with_vectors_is_appended_to_and_never_written_again(root, monkeypatch):
    """The vectors themselves are Spark's: tests/spark/test_foreign_writers.py."""
    features = ["deletionVectors"]
    protocol = {**UNKNOWN, "readerFeatures": features, "writerFeatures": features}
    path = altered(root, "positions", protocol)
    assert len(tables.read(path)) == 12, "no file has a vector"
    feed(root, "ill", 100)
    assert len(tables.read(path)) == 24
    monkeypatch.setattr("st_common.tables.foreign._has_vectors", lambda _: True)
    feed(root, "ill", 200)
    assert tables.stored(path)[0] == 3
    told = [one for one in read_alerts(Home(root)) if "vectors" in one.text]
    assert [one.stream for one in told] == ["ill"], "once, however often it is met"
    contract = load_contract("positions")
    rows = contract.arrow_schema().empty_table()
    for work in (
        lambda: tables.read(path),
        lambda: tables.compact(path, before=None),
        lambda: tables.purge(path, lambda files: [True] * len(files)),
        lambda: tables.replace(path, rows, contract, predicate="segment > 0"),
    ):
        with pytest.raises(TableError, match=r"REORG TABLE delta.`.*` APPLY \(PURGE\)"):
            work()
    assert tables.stored(path)[0] == 3


def mapped(fields: list[dict[str, object]]) -> Iterator[dict[str, object]]:
    for number, field in enumerate(fields):
        known = {
            "delta.columnMapping.id": number + 1,
            "delta.columnMapping.physicalName": field["name"],
        }
        yield {**field, "metadata": known}


def test_a_column_that_was_renamed_refuses_the_table_until_it_is_renamed_back(root):
    path = Home(root).table("positions", "ill")
    first = (path / "_delta_log" / f"{0:020d}.json").read_text().splitlines()
    meta = next(json.loads(line) for line in first if "metaData" in line)["metaData"]
    meta["configuration"] |= {"delta.columnMapping.mode": "name"}
    schema = json.loads(meta["schemaString"])
    schema["fields"] = list(mapped(schema["fields"]))
    protocol = {"minReaderVersion": 2, "minWriterVersion": 5}
    alter(
        path,
        {"protocol": protocol},
        {"metaData": {**meta, "schemaString": json.dumps(schema)}},
    )
    assert len(tables.read(path)) == 12
    renamed = json.dumps(schema).replace('"name": "object"', '"name": "vehicle"')
    alter(path, {"metaData": {**meta, "schemaString": renamed}})
    back = f"ALTER TABLE delta.`{path}` RENAME COLUMN vehicle TO object"
    with pytest.raises(TableError, match=back):
        tables.read(path)
    assert "vehicle is object in files" in feed(root, "ill", 100, code=2)
    alter(path, {"metaData": {**meta, "schemaString": json.dumps(schema)}})
    feed(root, "ill", 200)
    assert len(tables.read(path)) == 36, "what waited in the log is there, too"


def test_an_engine_appends_to_changes_with_vectors(root, monkeypatch):
    features = ["deletionVectors"]
    protocol = {**UNKNOWN, "readerFeatures": features, "writerFeatures": features}
    path = altered(root, "changes", protocol)
    stored = tables.stored(path)[0]
    monkeypatch.setattr(
        "st_common.tables.foreign._has_vectors",
        lambda table: table.table_uri.rstrip("/").endswith("changes/ill"),
    )
    feed(root, "ill", 100)
    assert tables.stored(path)[0] > stored
    assert len(sql(Home(root), "FROM changes_good"))
    with pytest.raises(TableError, match="deletion vectors"):
        sql(Home(root), "FROM changes_ill")


def inserted(table: DeltaTable) -> None:
    write_deltalake(table, table.to_pyarrow_table(), mode="append")


@pytest.mark.parametrize(
    ("name", "work", "code", "says"),
    [
        (
            "positions",
            lambda t: t.update(updates={"x": "2.5"}, predicate="object = 'a'"),
            3,
            "WRONG",
        ),
        (
            "changes",
            lambda t: t.update(updates={"x": "9.0"}, predicate="object = 'a'"),
            3,
            "another place",
        ),
        (
            "changes",
            lambda t: t.update(updates={"sign": "0"}, predicate="sign = -1"),
            3,
            "WRONG",
        ),
        ("changes", inserted, 3, "WRONG"),
        ("positions", lambda t: t.restore(0), 3, "WRONG"),
        ("changes", lambda t: t.restore(0), 3, "WRONG"),
        ("positions", lambda t: t.delete("object = 'a'"), 3, "were deleted"),
        ("changes", lambda t: t.delete("object = 'a'"), 3, "WRONG"),
    ],
)
def test_verify_sees_rows_that_another_program_wrote(root, name, work, code, says):
    """docs/foreign-writers.md says so; of rows alone, with no feature that would refuse the table."""
    work(DeltaTable(str(Home(root).table(name, "ill"))))
    said = fairway(root, "verify", code=code)
    assert says in said
    assert "of_good: " in said


@pytest.mark.spec("C8")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Great Expectations
@pytest.mark.parametrize("name", ["changes", "positions"])
def test_a_report_of_quality_checks_the_others_and_is_red_for_it(root, name):
    for stream in ("good", "ill"):
        feed(root, stream, 90_000)
    altered(root, name, UNKNOWN)
    said = fairway(root, "quality", "report", "--day", "1970-01-01", code=3)
    assert "sunDials" in said
    rows = sql(Home(root), "SELECT * FROM quality WHERE NOT passed").to_pylist()
    broken = {(row["table"], row["rule"]): row for row in rows}
    wanted = {(f"{name}/ill", "is_read")}
    wanted |= {("data/ill", "can_be_checked")} if name == "positions" else set()
    assert {key for key in broken if key[0].endswith("/ill")} >= wanted
    assert not [key for key in broken if key[0].endswith("/good")]
    told = broken[f"{name}/ill", "is_read"]
    assert told["verdict"] == "broken"
    assert "sunDials" in told["details"]
