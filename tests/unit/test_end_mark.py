"""An end mark's tick is told at the watermark, not later: nothing is said of a time that the stream has not come to."""

import pytest

from st_common.answers.answers import answer
from st_common.answers.changes import stream_changes
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.run import run
from st_common.log.control import write_end
from st_common.query.registry import register
from st_common.query.text import parse
from st_common.replay.files import replay
from tests.kit.log_writer import bare_log

STATEMENTS = """
REGISTER QUERY many AS SELECT COUNT(*) FROM ships INSIDE (0, 0, 10, 10);
REGISTER QUERY near AS SELECT * FROM ships KNN (2, 0, 0);
"""


@pytest.mark.spec("G7", "S1")
@pytest.mark.parametrize("lateness_s", [0.0, 5.0])
def test_the_last_tick_is_not_later_than_the_last_fix_and_holds_nobody_who_is_silent_then(
    tmp_path, lateness_s
):
    home = Home(tmp_path)
    stream = StreamSettings(
        name="ships",
        format="csv",
        crs="planar",
        time_unit="s",
        max_ahead_s=None,
        tick_s=60.0,
        silence_s=30.0,
        lateness_s=lateness_s,
        columns=Columns(object="id", event_ts="t", x="x", y="y"),
    )
    register(home, {"ships": stream}, parse(STATEMENTS), owner="me")
    log = bare_log(home.log("ships"))
    log.append(b"id,t,x,y\nold,600,1,1\nlast,628,1,1\n", arrival_us=0)
    write_end(log, arrival_us=0)
    run(home, stream, until_idle=True)
    rows = [
        row
        for row in stream_changes(home, "ships").to_pylist()
        if row["cause"] != "registered"
    ]
    assert max(row["event_ts"].timestamp() for row in rows) == 628
    assert answer(home, "near")["object"].to_pylist() == [
        "last",
        "old",
    ]  # 28 s is not too long; 60 s would be for both
    assert answer(home, "many")["value"].to_pylist() == [2.0]


@pytest.mark.spec("X2", "S1")
def test_files_replayed_one_after_the_other_are_not_late_after_the_end_marks_of_those_before(
    tmp_path,
):
    """Each file is shorter than the lateness; an end mark takes the clock to its last fix, and no further."""
    home = Home(tmp_path / "home")
    stream = StreamSettings(
        name="ships",
        format="csv",
        crs="planar",
        time_unit="s",
        max_ahead_s=None,
        lateness_s=5.0,
        columns=Columns(object="id", event_ts="t", x="x", y="y"),
    )
    log = bare_log(home.log("ships"))
    for second in range(100, 106):
        path = tmp_path / f"{second}.csv"
        path.write_text(f"id,t,x,y\na,{second},1,1\nb,{second},1,1\n")
        replay(log, path, stream)
    done = run(home, stream, until_idle=True)
    assert (done.fixes, done.late) == (12, 0)
