"""The local engine's journal: what it holds is told with the table's rows, once."""

import pytest

from st_common.answers.changes import stream_changes
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.journal import journal_path, pending
from st_common.engine.local import LocalEngine
from st_common.query.plan import Box, Plan
from tests.kit.log_writer import bare_log

STREAM = StreamSettings(
    name="s",
    format="csv",
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
    crs="planar",
    time_unit="s",
    max_ahead_s=None,
)


def prepare(tmp_path):
    import json

    home = Home(tmp_path)
    log = bare_log(home.log("s"))
    plan = Plan(stream="s", inside=Box(minx=0, miny=0, maxx=5, maxy=5)).to_json()
    row = {
        "op": "register",
        "query": "q",
        "version": 1,
        "plan": plan,
        "text": "",
        "owner": "t",
    }
    log.append(json.dumps(row).encode(), arrival_us=0, control=True)
    return home, log


@pytest.mark.spec("X6", "P6")
def test_changes_are_told_from_the_journal_before_and_from_the_table_after_a_commit(
    tmp_path,
):
    home, log = prepare(tmp_path)
    engine = LocalEngine(home, STREAM)
    log.append(b"id,t,x,y\na,1,1,1\nb,1,9,9\n", arrival_us=0)
    while engine.batch():
        pass
    assert sum(len(one.rows) for one in pending(home, "s")) == 1
    assert [
        (r["object"], r["sign"]) for r in stream_changes(home, "s").to_pylist()
    ] == [("a", 1)]
    engine.commit()
    assert pending(home, "s") == []
    log.append(b"id,t,x,y\na,2,9,9\nb,2,1,1\n", arrival_us=0)
    while engine.batch():
        pass
    told = [("a", 1), ("a", -1), ("b", 1)]
    assert [
        (r["object"], r["sign"]) for r in stream_changes(home, "s").to_pylist()
    ] == told
    engine.close()
    assert [
        (r["object"], r["sign"]) for r in stream_changes(home, "s").to_pylist()
    ] == told


def test_a_batch_that_was_cut_off_is_left_out(tmp_path):
    home, log = prepare(tmp_path)
    engine = LocalEngine(home, STREAM)
    for second in (1, 2):
        log.append(f"id,t,x,y\no{second},{second},1,1\n".encode(), arrival_us=0)
        while engine.batch():
            pass
    path = journal_path(home, "s")
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    assert sum(len(one.rows) for one in pending(home, "s")) == 1
    engine.close()
