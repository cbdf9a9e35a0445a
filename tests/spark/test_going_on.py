"""A stream on Spark goes on from a table that was put back, and from a copy that was made beside it."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from time import sleep

import pytest
from deltalake import DeltaTable

from st_common import tables
from st_common.config.home import Home
from st_common.engine.log_identity import check_log
from st_common.engine.run import run
from st_common.lineage.telling import telling_stream
from st_common.log.log import Log
from st_common.maintenance.backup import back_up
from st_common.position import segment_of
from tests.kit.log_writer import settings_of, write_log
from tests.kit.on_spark import follow_on
from tests.kit.strategies import case_of

CASE = case_of(7, kept=(True,) * 120, names=("q1", "q2", "q3"), layers=False)
STREAM = settings_of("grid", CASE.rules, shards=2)
pytestmark = [pytest.mark.timeout(600), pytest.mark.spec("S2", "X6")]


def _follow(spark, home, stream):
    follow_on(spark, home, stream)


def _changes(home):
    order = [("position", "ascending"), ("seq", "ascending")]
    return tables.read(home.table("changes", "grid")).sort_by(order)


def _write(home, part):
    half = len(CASE.rows) // 2
    rows = (CASE.rows[:half], CASE.rows[half:])[part]
    write_log(home.log("grid"), rows, range(9, len(rows), 9))


@pytest.fixture(scope="module")
def half(spark, tmp_path_factory):
    """A home whose stream has come to the half of the case."""
    home = Home(tmp_path_factory.mktemp("half") / "home")
    _write(home, 0)
    _follow(spark, home, STREAM)
    return home.root


@pytest.fixture
def home(half, tmp_path):
    """A copy of it, as after a restart."""
    return Home(Path(shutil.copytree(half, tmp_path / "home")))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What the local engine tells of the whole case."""
    home = Home(tmp_path_factory.mktemp("whole"))
    for part in (0, 1):
        _write(home, part)
    run(home, replace(STREAM, engine="local", shards=1), until_idle=True)
    return _changes(home)


def test_a_stream_whose_table_was_put_back_goes_on_from_there(spark, half, home, whole):
    _write(home, 1)
    _follow(spark, home, STREAM)
    assert _changes(home).equals(whole)
    copy = Home(half).table("changes", "grid")
    assert len(whole) > tables.read(copy).num_rows > 0
    shutil.rmtree(home.table("changes", "grid"))
    shutil.copytree(copy, home.table("changes", "grid"))
    _follow(spark, home, STREAM)
    assert _changes(home).equals(whole)


@pytest.mark.spec("S4")
def test_a_copy_made_beside_the_stream_goes_on_with_the_same_rows(
    spark, home, whole, tmp_path
):
    _write(home, 1)
    copy, tries = Home(tmp_path / "copy0"), 0
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(_follow, spark, home, STREAM)
        while not running.done():
            copy, tries = Home(tmp_path / f"copy{tries}"), tries + 1
            back_up(home, copy.root)
            sleep(0.2)
        running.result()
    assert tries > 1
    assert _changes(home).equals(whole)
    earlier = Home(tmp_path / f"copy{tries // 2}")
    assert len(_changes(earlier)) <= len(whole)
    _follow(spark, earlier, STREAM)
    assert _changes(earlier).equals(whole)


@pytest.mark.spec("S10")
def test_lineage_tells_what_a_stream_on_spark_read_and_wrote(spark, home):
    conf = home.root / "conf"
    conf.mkdir(exist_ok=True)
    (conf / "operations.toml").write_text('[lineage]\nto = "file"\n')
    _write(home, 1)
    with telling_stream(home, conf, "grid"):
        _follow(spark, home, STREAM)
    (told,) = (home.root / "lineage").glob("*.jsonl")
    begun, ended = map(json.loads, told.read_text().splitlines())
    assert (begun["eventType"], ended["eventType"]) == ("START", "COMPLETE")
    read = {one["name"] for one in ended["inputs"]}
    assert str(home.log("grid")) in read
    written = {one["name"]: one["facets"] for one in ended["outputs"]}
    table = home.table("changes", "grid")
    version = written[str(table)]["version"]["datasetVersion"]
    assert version == str(DeltaTable(str(table)).version())


def test_a_commit_of_a_batch_keeps_which_log_it_was_made_from(spark, tmp_path):
    home = Home(tmp_path)
    write_log(home.log("grid"), CASE.rows)
    _follow(spark, home, STREAM)
    log, table = Log(home.log("grid")), home.table("changes", "grid")
    last = segment_of(tables.committed(table, "engine"))
    assert tables.committed(table, "engine-log") == log.mark(last) > 0
    check_log(home, "grid")
