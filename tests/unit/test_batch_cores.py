"""Folding by processes of this machine: the same answers, errors for people, nothing left behind."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from st_common.batch.backtest import backtest
from st_common.batch.cores import ahead, fold_on
from st_common.batch.folding import fold_here
from st_common.batch.sharded import ShardedFold
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.run import run
from st_common.errors import TransientError
from st_common.query.text import parse
from tests.kit.log_writer import bare_log

DAY_S, FIRST_S = 86_400, 1_714_521_600  # 1 May 2024
QUERIES = """
REGISTER QUERY box AS SELECT * FROM walk INSIDE (0, 0, 50, 50);
REGISTER QUERY ring AS SELECT * FROM walk INSIDE CIRCLE (50, 50, 30) DETECT ENTER, EXIT, DWELL 2 hours;
"""
MOVING = """
REGISTER QUERY pairs AS SELECT * FROM walk a JOIN walk b ON ST_DWithin(a, b, 9 m);
REGISTER QUERY lately AS SELECT COUNT(*) FROM walk INSIDE (0, 0, 50, 50) WINDOW 5 hours;
"""


def walks(home: Home, *, moving: bool) -> StreamSettings:
    """A stream of 40 objects that jump about for three days, every half an hour each."""
    stream = StreamSettings(
        name="walk",
        format="csv",
        crs="planar",
        time_unit="s",
        max_ahead_s=None,
        engine="local",
        moving=moving,
        tick_s=1800.0,
        columns=Columns(object="id", event_ts="t", x="x", y="y"),
    )
    log = bare_log(home.log("walk"))
    for day in range(3):
        rows = [
            f"o{n},{FIRST_S + day * DAY_S + step * 1800 + n},{(n * 37 + step * 53) % 101},{(n * 59 + step * 41) % 97}"
            for step in range(48)
            for n in range(40)
        ]
        log.append("\n".join(["id,t,x,y", *rows, ""]).encode(), arrival_us=0)
    log.append(f"id,t,x,y\no0,{FIRST_S + 4 * DAY_S},0,0\n".encode(), arrival_us=0)
    run(home, stream, until_idle=True)
    return stream


@pytest.mark.spec("X10")
@pytest.mark.parametrize("moving", [False, True])
def test_what_queries_would_have_told_is_the_same_on_any_number_of_cores(
    tmp_path: Path, moving: bool
) -> None:
    home = Home(tmp_path)
    stream = walks(home, moving=moving)
    text = QUERIES + (MOVING if moving else "")
    plans = {one.name: one.plan for one in parse(text)}
    alone = backtest(home, stream, plans, days=3, cores=1)
    assert min(alone.totals["visits"].to_pylist()) > 10
    for cores in (2, 3):
        done = backtest(home, stream, plans, days=3, cores=cores)
        for name in ("totals", "days", "examples"):
            assert getattr(done, name).equals(getattr(alone, name)), (cores, name)
    assert list(tmp_path.rglob(".work*")) == []


def test_one_core_folds_without_other_processes() -> None:
    with fold_on(1) as fold:
        assert fold is fold_here


def test_a_process_that_is_killed_is_an_error_for_people() -> None:
    with fold_on(2) as fold:
        assert isinstance(fold, ShardedFold)
        assert fold.run([(1, 2), (3, 4)], max) == [2, 4]
        with pytest.raises(TransientError, match="was killed"):
            fold.run([(os.getpid(),)], os._exit)


FOLDING = """
import os, sys, time
from st_common.batch.cores import fold_on
if __name__ == "__main__":
    with fold_on(1 + 1) as fold:
        print(*fold.run([(), ()], os.getpid), flush=True)
        fold.run([(600.0,), (600.0,)], time.sleep)
"""


def test_processes_end_with_the_one_that_began_them(tmp_path: Path) -> None:
    program = tmp_path / "folding.py"
    program.write_text(FOLDING)
    with subprocess.Popen(
        [sys.executable, str(program)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    ) as parent:
        pids = {int(word) for word in parent.stdout.readline().split()}
        parent.kill()
    assert pids
    assert parent.pid not in pids
    deadline = time.monotonic() + 60
    while any(psutil.pid_exists(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_items_are_made_ahead_one_by_one_and_errors_come_in_their_turn() -> None:
    begun = threading.Event()

    def made():
        yield 1
        begun.set()
        yield 2
        raise ValueError("third")

    items = ahead(made())
    assert next(items) == 1
    assert begun.wait(timeout=60), "the second is made while the first is used"
    assert next(items) == 2
    with pytest.raises(ValueError, match="third"):
        next(items)
    assert list(ahead(iter(()))) == []
