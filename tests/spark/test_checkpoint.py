"""What Spark keeps is a cache of the log: torn, or ahead of a table that was restored, it is made again."""

import shutil

import pytest

from st_common import tables
from st_common.engine.owner import owned
from st_common.engine.topology import frozen
from st_common.home import Home
from st_common.ops.alerts import read_alerts
from st_common.spark import stream as streaming
from st_common.testing.log_writer import settings_of, write_log
from st_common.testing.strategies import case_of

pytestmark = [pytest.mark.timeout(600), pytest.mark.spec("S2", "X6")]


def _follow(spark, home, stream):
    with owned(home, stream.name, engine="spark") as owner:
        frozen(home, stream, engine="spark", shards=stream.shards)
        streaming.follow(spark, streaming.Sink(home=home, stream=stream, owner=owner), until_idle=True)


def _changes(home):
    order = [("position", "ascending"), ("seq", "ascending")]
    return tables.read(home.table("changes", "grid")).sort_by(order)


def test_a_stream_goes_on_whatever_became_of_its_checkpoint(spark, tmp_path):
    case = case_of(7, kept=(True,) * 120, names=("q1", "q2", "q3"), layers=False)
    home, stream = Home(tmp_path / "home"), settings_of("grid", case.rules, shards=2)
    half = len(case.rows) // 2
    write_log(home.log("grid"), case.rows[:half], range(9, half, 9))
    _follow(spark, home, stream)
    shutil.copytree(home.table("changes", "grid"), tmp_path / "copy")
    write_log(home.log("grid"), case.rows[half:], range(9, len(case.rows) - half, 9))
    _follow(spark, home, stream)
    whole = _changes(home)
    assert len(whole) > tables.read(tmp_path / "copy").num_rows > 0

    shutil.rmtree(home.table("changes", "grid"))
    shutil.copytree(tmp_path / "copy", home.table("changes", "grid"))
    _follow(spark, home, stream)
    assert _changes(home).equals(whole)
    assert "the table of changes before that" in read_alerts(home)[-1].text

    folder = home.stream("grid") / "spark"
    for name in ("offsets", "commits"):
        newest = max((folder / "checkpoint" / name).glob("[0-9]*"), key=lambda path: int(path.name))
        newest.write_bytes(b"")
    (folder / "keys.json").write_bytes(b"")
    write_log(home.log("grid"), case.rows[:0])
    _follow(spark, home, stream)
    assert _changes(home).equals(whole)
    assert "record of its batches is torn" in read_alerts(home)[-1].text


def test_a_stream_goes_on_when_files_of_spark_s_state_are_damaged(spark, tmp_path):
    case = case_of(7, kept=(True,) * 120, names=("q1", "q2", "q3"), layers=False)
    stream, half = settings_of("grid", case.rules, shards=2), len(case.rows) // 2
    calm, home = Home(tmp_path / "calm"), Home(tmp_path / "home")
    for at in (calm, home):
        write_log(at.log("grid"), case.rows[:half], range(9, half, 9))
        _follow(spark, at, stream)
        if at == home:
            _damage(home.stream("grid") / "spark" / "checkpoint" / "state")
        spark._jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()  # as after a restart
        write_log(at.log("grid"), case.rows[half:], range(9, len(case.rows) - half, 9))
        _follow(spark, at, stream)
    assert _changes(home).equals(_changes(calm))
    assert "is damaged; the stream is read again from segment 0" in read_alerts(home)[-1].text
    assert read_alerts(calm) == []


def _damage(state):
    """One bit of a file of the first shard is another one, files of the second are cut."""
    first = max((state / "0" / "0").glob("*.changelog"))
    data = bytearray(first.read_bytes())
    data[len(data) // 2] ^= 4
    first.write_bytes(data)
    for cut in (state / "0" / "1").glob("*.*"):
        if cut.is_file():
            cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 2])
